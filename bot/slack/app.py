"""Joins the use cases and Slack: builds the Bolt app, its listeners, and the tick."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from slack_bolt.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_sdk.web.async_client import AsyncWebClient

from agents import Runner
from agents.gates.rulings import Judgement
from bot.clock import steady_clock
from bot.core.approvals import Approvals
from bot.core.attendance.consideration import Consideration
from bot.core.attendance.digests import Digests
from bot.core.attendance.explaining import AgentAnswers
from bot.core.attendance.planning import ListPlans
from bot.core.attendance.signs import Signs
from bot.core.attendance.visits import Attendance
from bot.core.attendance.wishes import Wishes
from bot.core.catalog import Catalog
from bot.core.decisions.emergencies import Alarm
from bot.core.decisions.explanations import Explanations
from bot.core.decisions.grants import Grants
from bot.core.decisions.overview import Overviews
from bot.core.edits import Edits
from bot.core.outbox import Outbox
from bot.core.runs.cards import policy_of_cards
from bot.core.runs.entries import HeldEntries, NotedFirst
from bot.core.runs.granted import GrantUses
from bot.core.runs.history import ThreadHistory
from bot.core.runs.house import GroupMembers, InForce, PolicyHouse
from bot.core.runs.starts import Starts
from bot.core.runs.witness import Witness
from bot.core.scheduler import Sweep
from bot.core.talk.inbox import ThreadInbox
from bot.core.talk.roster import Roster
from bot.core.talk.summaries import Summaries
from bot.core.tasks import Tasks
from bot.core.threads import Threads
from bot.core.turns import Turns
from bot.core.upkeep.forgetting import Forgetting, Retention
from bot.core.upkeep.sealing import Sealer
from bot.core.work import TakenLeases
from bot.errors import SettingsError
from bot.observability.instrument import MeteredStorage
from bot.observability.telemetry import Telemetry, Time
from bot.people.access import Access
from bot.questions.record import Rules
from bot.slack.agentview.prompts import SuggestedPrompts
from bot.slack.agentview.sessions import AgentSessions
from bot.slack.agentview.tasks import SlackTaskBoard
from bot.slack.bot import Countersign, Process
from bot.slack.cards.choose import is_folded
from bot.slack.directory import RecentDirectory, SlackDirectory
from bot.slack.home.homes import Composer, Homes
from bot.slack.listeners import (
    actions,
    admins,
    batches,
    commands,
    editing,
    emergencies,
    errors,
    events,
    grants,
    home,
    means,
    reviews,
    shortcuts,
    stops,
    views,
)
from bot.slack.listeners.context import ListenerContext, Press, Submit
from bot.slack.messages.notices import SlackBatchCards, SlackNotices
from bot.slack.messages.notifier import SlackNotifier
from bot.slack.messages.signs import SlackRootSigns
from bot.slack.messages.waitlists import SlackLists
from bot.slack.presence import SlackPresence
from bot.slack.ratelimit import Pacer
from bot.slack.reach import PATIENT_S, QUICK_S, Slack
from storage.base import Storage
from storage.records import Approval, Thread

QUICK_CALL = timedelta(milliseconds=300)
"""The length of a call up to which cards say only what came of it."""


def build(
    *,
    slack: Slack,
    storage: Storage,
    roster: Roster,
    rules: Rules,
    process: Process,
    policy: Callable[[], InForce] | None = None,
) -> Countersign:
    """Join everything.

    Args:
        slack: How Slack is reached.
        storage: Where records are kept; open.
        roster: The agents that work in the threads.
        rules: Who decides, and how long it may take.
        process: Where all this runs.
        policy: Gives the policy in force, which judges each call of each tool; None where gates in
            code alone have people asked.

    Raises:
        SettingsError: The environment would make Slack's library ignore the bot token.
    """
    clock, owner, telemetry = process.clock, process.owner, process.telemetry
    storage = MeteredStorage(storage, telemetry, clock)
    tasks = Tasks()
    quick, patient = (
        slack.client(timeout_s=seconds, telemetry=telemetry) for seconds in (QUICK_S, PATIENT_S)
    )
    looking = slack.client(timeout_s=QUICK_S, telemetry=telemetry, session=process.lookups)
    directory = SlackDirectory(looking, team_id=slack.identity.team_id, clock=clock)
    notifier = SlackNotifier(
        patient,
        team_id=slack.identity.team_id,
        clock=clock,
        pacer=Pacer(steady_clock, asyncio.sleep, process.limits),
        healed=lambda: tasks.spawn(catch_up()),
    )
    entries = HeldEntries(storage.audit, tasks.spawn)
    outbox = Outbox(storage=storage, notifier=notifier, clock=clock, owner=owner, spawn=tasks.spawn)
    waker = _Waker()

    async def judge(approval: Approval, arguments: dict[str, Any]) -> Judgement | None:
        return await catalog.judge(approval, arguments)

    cards, notices = policy_of_cards(policy, judge), SlackNotices(notifier)
    explanations = Explanations(
        agent=lambda approval: catalog.explainer(approval),  # noqa: PLW0108 - it is made later
        log=storage.log,
    )
    taken: TakenLeases[Approval] = TakenLeases(owner, clock, lambda: tasks.is_closed)
    woken: TakenLeases[Thread] = TakenLeases(owner, clock, lambda: tasks.is_closed)
    team_id, recent = slack.identity.team_id, RecentDirectory(directory, clock)
    wishes = Wishes(storage=storage, access=Access(recent), policy=cards, clock=clock)
    plans = ListPlans(storage=storage, wishes=wishes, team_id=team_id, clock=clock)
    grants = Grants(
        storage=storage,
        notices=notices,
        clock=clock,
        votes=lambda: approvals.votes,
    )
    attendance = Attendance(
        storage=storage,
        directory=directory,
        notifier=notifier,
        clock=clock,
        owner=owner,
        wake=waker,
        remind_after=rules.remind_after,
        policy=cards,
        alarm=Alarm(lambda: approvals.votes, notices, tasks.spawn),
        signs=Signs(storage.approvals, SlackRootSigns(notifier), clock),
        batches=SlackBatchCards(notifier, lambda items: catalog.batch_words(items)),  # noqa: PLW0108 - it is made later
        visited=lambda: homes.changed(),  # noqa: PLW0108 - they are made later
        taken=taken,
        woken=woken,
        consideration=Consideration(wishes=wishes, plans=plans if process.has_lists else None),
        answers=AgentAnswers(
            storage=storage,
            clock=clock,
            explain=explanations.answer,
            spawn=tasks.spawn,
            attend=lambda approval_id: attendance.attend(approval_id),  # noqa: PLW0108 - it is made here
        ),
        grant=grants.complete,
        entries=entries,
    )
    approvals = Approvals(
        storage=storage,
        access=Access(directory),
        clock=clock,
        folded=is_folded,
        attendance=attendance,
        policy=cards,
    )
    witness = Witness(
        storage.approvals,
        entries,
        clock,
        lambda approval_id: tasks.spawn(attendance.attend(approval_id)),
        quick=QUICK_CALL,
        taken=taken,
    )
    starts = Starts(
        storage=storage,
        votes=lambda: approvals.votes,
        clock=clock,
        max_age=rules.max_age,
        known=witness.watched,
        attend=lambda approval_id: tasks.spawn(attendance.attend(approval_id)),
        sleep=process.sleep,
    )
    house = policy and PolicyHouse(
        storage=storage,
        audit=entries,
        clock=clock,
        members=GroupMembers(directory, clock),
        in_force=policy,
        grants=GrantUses(grants, tasks.spawn),
        patience=starts.wait,
    )
    catalog = Catalog(
        roster.agents,
        descriptions=roster.descriptions,
        make_runner=lambda agent: Runner(
            agent,
            checkpoint_store=NotedFirst(storage.checkpoints, entries),
            message_log=ThreadHistory(storage.log),
            durability="step",
            streaming=True,
            before_start=starts,
            recorder=witness,
            policy=house,
            era=process.era,
        ),
        checkpoints=storage.checkpoints,
        channel_name=directory.channel_name,
    )
    turns = Turns(
        storage=storage,
        runners=catalog.runner,
        attendance=attendance,
        outlook=approvals.outlook(rules.channels),
        notifier=notifier,
        outbox=outbox,
        rules=rules,
        clock=clock,
        spawn=tasks.spawn,
        witness=witness,
        entries=entries,
        telemetry=telemetry,
        presence=SlackPresence(
            notifier.try_call,
            clock,
            tasks.spawn,
            process.sleep,
            sessions=AgentSessions(notifier.try_call),
        ),
        board=SlackTaskBoard(notifier.try_call),
    )
    inbox = ThreadInbox(
        storage=storage,
        access=approvals.access,
        approvals=approvals,
        outbox=outbox,
        clock=clock,
        stop=turns.stopping.stop,
        spoken_to=catalog.spoken_to,
        woken=woken,
    )
    threads = Threads(
        storage=storage,
        inbox=inbox,
        turns=turns,
        outbox=outbox,
        clock=clock,
        owner=owner,
        woken=woken,
        summaries=Summaries(storage, notices, clock),
    )

    overviews = Overviews(storage=storage, directory=recent, policy=cards, clock=clock)
    homes = Homes(
        Composer(
            overviews=overviews,
            channel_name=directory.channel_name,
            unseen=lambda approval, user_id: approvals.unseen(approval, user_id) is not None,
            team_id=slack.identity.team_id,
            has_slack=lambda: not notifier.is_refused,
        ),
        quick,
        tasks.spawn,
    )

    async def catch_up() -> None:
        await attendance.catch_up()
        for thread_id in await threads.catch_up():
            waker(thread_id)

    waker.work = lambda thread_id: tasks.spawn(threads.work(thread_id))
    desk = ListenerContext(
        storage=storage,
        approvals=approvals,
        inbox=inbox,
        threads=threads,
        check_call=catalog.check_call,
        judge=catalog.judge,
        facts=catalog.facts,
        explains=explanations.offered,
        edits=Edits(storage, approvals, rules, clock),
        grants=grants,
        wishes=wishes,
        outbox=outbox,
        homes=homes,
        client=quick,
        clock=clock,
        spawn=tasks.spawn,
        prompts=SuggestedPrompts(notifier.try_call, roster.offered()),
        patience=process.patience,
    )
    digests = Digests(
        storage=storage,
        overviews=overviews,
        plans=plans,
        board=SlackLists(
            poster=notifier, directory=recent, channel_name=directory.channel_name, policy=cards
        ),
        team_id=team_id,
        clock=clock,
    )
    bolt = _bolt(slack)
    register(bolt, desk)
    sweep = Sweep(
        storage=storage,
        attendance=attendance,
        threads=threads,
        outbox=outbox,
        clock=clock,
        spawn=tasks.spawn,
        retention=_retention(storage, process),
        sealer=Sealer(trail=storage.trail, clock=clock, owner=owner),
        grants=grants,
        lists=homes.refresh,
        digests=digests if process.has_lists else None,
    )
    return Countersign(
        bolt=bolt,
        storage=storage,
        approvals=approvals,
        turns=turns,
        sweep=sweep,
        tasks=tasks,
        answering=lambda: _answering(tasks, telemetry),
        policy=process.policy,
    )


def _retention(storage: Storage, process: Process) -> Retention | None:
    if process.retention is None:
        return None
    forgetting = Forgetting(storage=storage, clock=process.clock, owner=process.owner)
    return Retention(forgetting=forgetting, keep=process.retention)


@contextmanager
def _answering(tasks: Tasks, telemetry: Telemetry) -> Iterator[None]:
    """Hold work back until an answer has left, and measure how long somebody waited for it."""
    begin = steady_clock()
    with tasks.held_back():
        yield
        telemetry.observe(Time.ACKNOWLEDGEMENT, (steady_clock() - begin) / 1000)


class _Waker:
    """Lets approvals start the work of threads, which are built after them."""

    work: Callable[[str], None]

    def __call__(self, thread_id: str) -> None:
        self.work(thread_id)


def _bolt(slack: Slack) -> AsyncApp:
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
        # Its token comes with each request, from `authorize`.
        client=AsyncWebClient(base_url=slack.api_url, timeout=PATIENT_S, retry_handlers=[]),
        signing_secret=slack.signing_secret,
        authorize=authorize,
        # The listener has recorded before it acknowledges, and the answer leaves at once.
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


def register(app: AsyncApp, desk: ListenerContext) -> None:
    """Bind all listeners.

    They are few and dispatch by themselves: with many, Bolt asks each one at every payload.
    """
    home.register(app, desk)
    editing.register(app, desk)
    events.register(app, desk)
    stops.register(app, desk)
    clicks: dict[str, Press] = {}
    forms: dict[str, Submit] = {}
    for one in (reviews, grants, emergencies, means, admins, batches):
        clicks |= one.CLICKS
        forms |= one.FORMS
    actions.register(app, desk, clicks)
    views.register(app, desk, forms)
    commands.register(app, desk)
    shortcuts.register(app, desk)
    errors.register(app, desk)


STOP_PATIENCE = timedelta(seconds=4)
"""The time for work that goes on when the bot has to stop; in all it stops within ten seconds."""
