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

from bot.clock import steady_clock
from bot.errors import SettingsError
from bot.observability.events import ClickAnswered, TellEvent
from bot.observability.instrument import metered
from bot.questions.record import Rules
from bot.slack.bot import Countersign
from bot.slack.connect import LOOKUP_S, PATIENT_S, QUICK_S, Slack
from bot.slack.directory import SlackDirectory
from bot.slack.listeners import (
    actions,
    admins,
    batches,
    break_glass,
    commands,
    editing,
    errors,
    events,
    grants,
    home,
    reviews,
    secondary_actions,
    shortcuts,
    stops,
    views,
)
from bot.slack.listeners.context import ListenerContext, Press, Submit
from bot.slack.messages.notices import SlackBatchCards, SlackNotices
from bot.slack.messages.notifier import SlackNotifier
from bot.slack.process import Process, SlackSide
from bot.slack.wiring import Wiring
from bot.stores import Stores
from bot.tasks import Tasks
from bot.threads.named_agents import Roster
from bot.threads.runs.application_policy import InForce


def build(
    *,
    slack: Slack,
    storage: Stores,
    roster: Roster,
    rules: Rules,
    process: Process,
    policy: Callable[[], InForce] | None = None,
) -> Countersign:
    """Build the bot from its parts.

    Args:
        slack: Access to Slack.
        storage: An open database.
        roster: The agents.
        rules: Approvers and time limits of the settings.
        process: The process.
        policy: Returns the policy in force; None if only gates in code ask.

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
    bolt = bolt_app(slack)
    register(bolt, parts.desk)
    return Countersign(
        bolt=bolt,
        storage=storage,
        approvals=parts.approvals,
        turns=parts.turns,
        sweep=parts.sweep,
        tasks=tasks,
        answering=lambda: answering(tasks, process.tell),
        policy=process.policy,
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


def register(app: AsyncApp, services: ListenerContext) -> None:
    """Register all listeners.

    Bolt tries the listeners in order for every payload, which is slow. Therefore there are few,
    they dispatch themselves, and the most frequent come first.
    """
    clicks: dict[str, Press] = {}
    forms: dict[str, Submit] = {}
    for module in (reviews, grants, break_glass, secondary_actions, admins, batches):
        clicks |= module.CLICKS
        forms |= module.FORMS
    actions.register(app, services, clicks)
    events.register(app, services)
    home.register(app, services)
    editing.register(app, services)
    stops.register(app, services)
    views.register(app, services, forms)
    commands.register(app, services)
    shortcuts.register(app, services)
    errors.register(app, services)


STOP_PATIENCE = timedelta(seconds=4)
"""Longest time for running work at shutdown, which takes ten seconds at most."""
