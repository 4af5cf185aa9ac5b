"""Build the bot: use cases, Bolt app, listeners, scheduler."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any

from slack_bolt.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_sdk.web.async_client import AsyncWebClient

from bot.approvals.delegation import Delegating
from bot.approvals.editing import Edits
from bot.approvals.secondary_actions import SecondaryActions
from bot.clock import steady_clock
from bot.errors import SettingsError
from bot.observability.events import ClickAnswered, TellEvent
from bot.observability.instrument import metered
from bot.people.viewer import Viewers
from bot.ports.people import Actor
from bot.ports.programs import ProgramCalls
from bot.questions.record import Rules
from bot.slack.bot import Countersign
from bot.slack.connect import LOOKUP_S, PATIENT_S, QUICK_S, Slack
from bot.slack.decisions import Decisions
from bot.slack.directory import SlackDirectory
from bot.slack.handlers import Handlers
from bot.slack.listeners import (
    actions,
    admins,
    batches,
    break_glass,
    commands,
    editing,
    errors,
    events,
    freezes,
    grants,
    holds,
    home,
    reviews,
    secondary_actions,
    shortcuts,
    stops,
    views,
)
from bot.slack.messages.notices import SlackBatchCards, SlackNotices
from bot.slack.messages.notifier import SlackNotifier
from bot.slack.process import Process, SlackSide
from bot.slack.responding import Responder
from bot.slack.slash_commands.answers import Asker
from bot.slack.slash_commands.words import ShownLists
from bot.slack.wiring import Wiring
from bot.stores import Stores
from bot.tasks import Tasks
from bot.threads.message_event import Revisions
from bot.threads.named_agents import Roster
from bot.threads.runs.application_policy import InForce


def build(  # noqa: PLR0913 - the parts of the bot, given by name
    *,
    slack: Slack,
    storage: Stores,
    roster: Roster,
    rules: Rules,
    process: Process,
    policy: Callable[[], InForce] | None = None,
    join: Callable[[Wiring], ProgramCalls] | None = None,
) -> Countersign:
    """Build the bot from its parts.

    Args:
        slack: Access to Slack.
        storage: An open database.
        roster: The agents.
        rules: Approvers and time limits of the settings.
        process: The process.
        policy: Returns the policy in force; None if only gates in code ask.
        join: Builds the door for programs upon the parts; None for no door.

    Raises:
        SettingsError: The environment would make Slack's library ignore the bot token.
    """
    tasks, storage = Tasks(), metered(storage, process.tell, process.clock)
    parts = Wiring(
        slack=_side_of(slack, process, healed=lambda: tasks.spawn(parts.catch_up())),
        storage=storage,
        roster=roster,
        rules=rules,
        process=process,
        tasks=tasks,
        policy=policy,
    )
    if join is not None:
        parts.programs = join(parts)
    bolt = bolt_app(slack)
    register(bolt, parts)
    return Countersign(
        bolt=bolt,
        storage=storage,
        approvals=parts.approvals,
        turns=parts.turns,
        sweep=parts.sweep,
        tasks=tasks,
        answering=lambda: answering(tasks, process.tell),
        policy=process.policy,
        programs=parts.programs,
    )


def directory_of(slack: Slack, process: Process) -> SlackDirectory:
    """Build the directory of a process."""
    client = slack.client(timeout_s=LOOKUP_S, tell=process.tell, session=process.lookups)
    return SlackDirectory(
        client,
        team_id=slack.identity.team_id,
        clock=process.clock,
        pacer=process.pacer,
        max_age=process.lookup_age,
    )


def _side_of(slack: Slack, process: Process, *, healed: Callable[[], None]) -> SlackSide:
    """Build the Slack clients: quick for waiting people, patient for the rest."""
    clock, team_id = process.clock, slack.identity.team_id
    quick, patient = (
        slack.client(timeout_s=seconds, tell=process.tell) for seconds in (QUICK_S, PATIENT_S)
    )
    notifier = SlackNotifier(
        patient,
        clock=clock,
        pacer=process.pacer,
        healed=healed,
    )
    directory = process.directory or directory_of(slack, process)
    return SlackSide(
        team_id=team_id,
        client=quick,
        directory=directory,
        notifier=notifier,
        notices=SlackNotices(notifier),
        batches=partial(SlackBatchCards, notifier),
    )


@contextmanager
def answering(tasks: Tasks, tell: TellEvent) -> Iterator[None]:
    """Hold work back until a response is sent; measure the time of the response.

    The time is reported even if the response could not be sent.
    """
    begin = steady_clock()
    with tasks.held_back():
        try:
            yield
        finally:
            tell(ClickAnswered((steady_clock() - begin) / 1000))


def bolt_app(slack: Slack) -> AsyncApp:
    """Build the Bolt app without listeners."""
    identity = slack.identity

    async def authorize(**_: Any) -> AuthorizeResult:
        return AuthorizeResult(
            enterprise_id=identity.enterprise_id or None,
            team_id=identity.team_id,
            bot_token=slack.token,
            bot_id=identity.bot_id,
            bot_user_id=identity.bot_user_id,
        )

    app = AsyncApp(
        name="countersign",
        # `authorize` adds the token to each request.
        client=AsyncWebClient(base_url=slack.api_url, timeout=PATIENT_S, retry_handlers=[]),
        signing_secret=slack.signing_secret,
        authorize=authorize,
        # Listeners store before they acknowledge, and the response is sent at once.
        process_before_response=True,
        raise_error_for_unhandled_request=True,
        attaching_conversation_kwargs_enabled=False,
        logger=logging.getLogger("slack_bolt"),
    )
    if app.oauth_flow is not None:
        raise SettingsError(
            "SLACK_CLIENT_ID",
            "together with SLACK_CLIENT_SECRET it makes Slack's library ignore SLACK_BOT_TOKEN",
            "unset both; Countersign does not use them",
        )
    return app


def register(app: AsyncApp, parts: Wiring) -> None:
    """Register all listeners.

    Bolt tries the listeners in order for every payload, which is slow. Therefore there are few,
    they dispatch themselves, and the most frequent come first.
    """
    storage, approvals, inbox, catalog = parts.storage, parts.approvals, parts.inbox, parts.catalog
    client, team_id = parts.slack.client, parts.slack.team_id
    clock, spawn = parts.process.clock, parts.tasks.spawn
    outbox, notices, homes = parts.outbox, parts.slack.notices, parts.homes
    responder = Responder(directory=approvals.access.directory, patience=parts.process.patience)
    decisions = Decisions(approvals=approvals, check_call=catalog.check_call, clock=clock)
    on_pending = SecondaryActions(storage, approvals, clock, parts.explanations.offered)
    viewers = Viewers(approvals.access.directory, approvals.policy, clock, storage.delegations)
    delegating = Delegating(
        storage,
        approvals.access,
        approvals.policy,
        clock,
        left=lambda team_id: spawn(approvals.attendance.look_who_is_left(team_id)),
    )

    def asker(actor: Actor) -> Asker:
        return Asker(
            actor=actor,
            team_id=team_id,
            composer=homes.composer,
            changed=homes.changed,
            delegating=delegating,
            grants=parts.grants,
            preferences=parts.preferences,
            freezing=parts.freezing,
            spawn=spawn,
        )

    shown_lists = ShownLists(publish_home=homes.acted, asker=asker, respond=outbox.respond)
    handlers = Handlers()
    reviews.register(
        handlers,
        reviews.ReviewServices(
            storage=storage,
            approvals=approvals,
            decisions=decisions,
            viewers=viewers,
            grants=parts.grants,
            spawn=spawn,
        ),
    )
    grants.register(
        handlers,
        grants.GrantServices(
            approvals=approvals,
            decisions=decisions,
            viewers=viewers,
            grants=parts.grants,
            spawn=spawn,
        ),
    )
    break_glass.register(
        handlers,
        break_glass.BreakGlassServices(approvals=approvals, decisions=decisions, spawn=spawn),
    )
    secondary_actions.register(
        handlers,
        secondary_actions.SecondaryActionServices(
            approvals=approvals,
            secondary_actions=on_pending,
            delegating=delegating,
            composer=homes.composer,
            clock=clock,
            spawn=spawn,
        ),
    )
    admins.register(
        handlers,
        admins.AdminServices(
            secondary_actions=on_pending,
            viewers=viewers,
            composer=homes.composer,
            notices=notices,
            outbox=outbox,
            spawn=spawn,
        ),
    )
    batches.register(
        handlers,
        batches.BatchServices(
            storage=storage,
            approvals=approvals,
            decisions=decisions,
            viewers=viewers,
            secondary_actions=on_pending,
            clock=clock,
            spawn=spawn,
        ),
    )
    actions.register(
        app,
        actions.ActionServices(
            responder=responder,
            client=client,
            storage=storage,
            approvals=approvals,
            decisions=decisions,
            viewers=viewers,
            secondary_actions=on_pending,
            notices=notices,
            outbox=outbox,
            shown_lists=shown_lists,
            spawn=spawn,
        ),
        handlers.clicks,
    )
    events.register(
        app,
        events.EventServices(
            responder=responder,
            hear=parts.slack.directory.hear,
            approvals=approvals,
            inbox=inbox,
            revisions=Revisions(
                storage=storage,
                receive=inbox.receive,
                spoken_to=inbox.spoken_to,
                approvals=approvals,
                outbox=outbox,
                clock=clock,
            ),
            threads=parts.threads,
            facts=catalog.facts,
            asker=asker,
            outbox=outbox,
            clock=clock,
            spawn=spawn,
        ),
    )
    home.register(
        app,
        home.HomeServices(
            responder=responder,
            client=client,
            policy=approvals.policy,
            homes=homes,
            delegating=delegating,
            preferences=parts.preferences,
            prompts=parts.prompts,
            outbox=outbox,
            team_id=team_id,
            spawn=spawn,
            keys=parts.personal_keys,
        ),
    )
    editing.register(
        app,
        editing.EditingServices(
            responder=responder, client=client, approvals=approvals, decisions=decisions
        ),
    )
    stops.register(
        app,
        stops.StopServices(
            responder=responder,
            inbox=inbox,
            threads=parts.threads,
            shown_lists=shown_lists,
            team_id=team_id,
            spawn=spawn,
        ),
    )
    freezes.register(
        app,
        freezes.FreezeServices(
            responder=responder,
            client=client,
            freezing=parts.freezing,
            changed=homes.changed,
        ),
    )
    holds.register(
        app,
        holds.HoldServices(
            responder=responder, holds=parts.holds, work=parts.starts.work, spawn=spawn
        ),
    )
    views.register(
        app,
        views.ViewServices(
            responder=responder,
            approvals=approvals,
            decisions=decisions,
            edits=Edits(storage, approvals, parts.rules, clock),
            check_call=catalog.check_call,
            judge=catalog.judge,
            outbox=outbox,
            shown_lists=shown_lists,
            spawn=spawn,
        ),
        handlers.forms,
    )
    commands.register(app, responder=responder, client=client, asker=asker)
    shortcuts.register(
        app,
        shortcuts.ShortcutServices(
            responder=responder,
            client=client,
            composer=homes.composer,
            inbox=inbox,
            threads=parts.threads,
            notices=notices,
            outbox=outbox,
            team_id=team_id,
            spawn=spawn,
        ),
    )
    errors.register(
        app,
        errors.ErrorServices(
            responder=responder,
            client=client,
            storage=storage,
            approvals=approvals,
            outbox=outbox,
            team_id=team_id,
            clock=clock,
            spawn=spawn,
        ),
    )


STOP_PATIENCE = timedelta(seconds=4)
"""Longest time for running work at shutdown, which takes ten seconds at most."""
