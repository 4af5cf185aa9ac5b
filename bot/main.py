"""The composition root: picks concrete classes, opens them, runs the bot, closes everything."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import socket
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from importlib.metadata import version
from ipaddress import ip_network

from slack_sdk.errors import SlackClientError

from agents.core.component.exits import contained_task
from bot.api.door import ApiDoor
from bot.api.executions import ProgramExecutions
from bot.api.judging import ProgramPolicy
from bot.api.keyring import KeyRing
from bot.api.requests import ProgramRequests
from bot.api.states import event_body
from bot.api.threads import ProgramThreads
from bot.api.use_cases import ProgramEndpoints, Programs, name_of
from bot.api.waiting import Waiters
from bot.clock import MovableClock, system_clock
from bot.config.agents import DEMO_AGENTS, load_model
from bot.config.settings import Settings
from bot.errors import (
    CopyInPlaceError,
    FaultyPolicyError,
    InvalidSettingsError,
    SettingsError,
)
from bot.http.server import serve
from bot.leases import CLICK_PATIENCE
from bot.maintenance.clocks import check_clock
from bot.maintenance.policies import PolicyRecorder
from bot.observability import logs
from bot.observability.events import TellEvent, both, nobody
from bot.observability.readiness import Readiness
from bot.observability.tracing import Tracing, otlp_provider
from bot.people.quorum import QuorumCheck
from bot.policy.current import OF_SETTINGS, LoadedPolicy, PolicyNews, Tell, source_of
from bot.policy.evaluation.context import PolicyWorld, world_of
from bot.policy.parser.lookups import SlackFacts
from bot.policy.parser.problems import PolicyError
from bot.policy.parser.settings import settings_errors
from bot.ports.process import Clock
from bot.questions.record import Rules
from bot.records.programs import ProgramStore
from bot.redaction.mask import in_force, print_key
from bot.scheduler import Scheduler, TimeLapse
from bot.slack.app import STOP_PATIENCE, build, directory_of
from bot.slack.bot import Countersign
from bot.slack.calls import slack_fault
from bot.slack.connect import Slack, lookup_session, reach_slack
from bot.slack.intake.http import web_app
from bot.slack.intake.socketmode import SocketMode
from bot.slack.process import Process
from bot.slack.ratelimit import Pacer
from bot.slack.wiring import Wiring
from bot.stores import Stores
from bot.tasks import Closings, Tasks
from bot.threads.named_agents import Roster, load_roster
from bot.threads.runs.application_policy import GroupMembers
from bot.threads.runs.grant_uses import GrantCheck
from bot.threads.runs.model_limits import ModelLimits
from bot.webhooks.addresses import rules_of
from bot.webhooks.endpoints import WebhookEndpoints
from bot.webhooks.sending import HttpPoster, PostsWebhooks
from bot.webhooks.worker import WebhookWorker
from bot.words import working_for, workspace_language
from storage.errors import StorageError

logger = logging.getLogger(__name__)

_KEY_LOOK_S = 1.0
"""Seconds between two looks for the first key of a program."""


async def run(
    settings: Settings,
    *,
    stop: asyncio.Event,
    ready: asyncio.Event | None = None,
    demo: MovableClock | None = None,
    outside: Outside | None = None,
) -> None:
    """Run the bot until a stop signal.

    Args:
        settings: Checked settings.
        stop: Stops the bot when it is set.
        ready: Set when the bot receives messages and clicks.
        demo: The clock of a demo, which people can advance; None outside of a demo.
        outside: See `start`.

    Raises:
        SettingsError: A setting does not work: agent, model, token, port.
        StoreBusyError: Another process has the data directory.
        StoreUnavailableError: The database does not respond.
    """
    async with AsyncExitStack() as stack:
        async with _until(stop):
            if demo is None:
                countersign = await start(settings, stack, outside=outside)
            else:
                countersign = await start_demo(settings, stack, demo, outside=outside)
            listen_to_hangups(countersign, stack)
            if ready is not None:
                ready.set()
        await stop.wait()
        logger.info("stopping", extra={"action": "stopping"})


@asynccontextmanager
async def _until(stop: asyncio.Event) -> AsyncIterator[None]:
    """Leave the block at any `await` when the bot is stopped."""
    loop = asyncio.get_running_loop()

    async def watch(limit: asyncio.Timeout) -> None:
        await stop.wait()
        limit.reschedule(loop.time())

    limit = asyncio.timeout(None)
    try:
        async with limit:
            watcher = asyncio.create_task(watch(limit))
            try:
                yield
            finally:
                watcher.cancel()
    except TimeoutError:
        if not limit.expired():
            raise


async def run_alone(
    settings: Settings,
    *,
    stop: asyncio.Event,
    ready: asyncio.Event | None = None,
    demo: MovableClock | None = None,
) -> None:
    """Run the bot, and configure this process for it, including the log; see `run`."""
    # Loaded modules stay until the end. Without this, each full garbage collection examines them,
    # which blocks the event loop for a tenth of a second.
    gc.freeze()
    # Code of an agent, or a task that it has started, may call `sys.exit()`.
    asyncio.get_running_loop().set_task_factory(contained_task)
    logs.configure(settings.log, secrets=settings.secrets())
    await run(settings, ready=ready, stop=stop, demo=demo)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """The bot's connections, and its rate limits and waits.

    Attributes:
        storage: The database, not yet open; None for the configured one.
        slack: Access to Slack; None for the configured one.
        pacer: Keeps Slack's rate limits.
        sleep: Waits for some seconds; see `Process`.
        patience: Longest time to handle a click.
    """

    storage: Stores | None = None
    slack: Slack | None = None
    pacer: Pacer = field(default_factory=Pacer)
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    patience: timedelta = CLICK_PATIENCE


async def start(
    settings: Settings,
    stack: AsyncExitStack,
    *,
    clock: Clock = system_clock,
    outside: Outside | None = None,
    is_demo: bool = False,
) -> Countersign:
    """Start the bot; closing the stack stops it: intake first, then work, then the database.

    Args:
        settings: Checked settings.
        stack: Closes everything that is opened here.
        clock: The time now.
        outside: Database, Slack and rate limits; None for the configured ones.
        is_demo: Whether each rule of the policy may use `here`.

    Raises:
        SettingsError: A setting does not work: agent, model, token, port.
        InvalidSettingsError: The file of agents has faults, or an id cannot be used.
        FaultyPolicyError: The policy is faulty, or its ids cannot be looked up.
        StoreBusyError: Another process has the data directory.
        StoreUnavailableError: The database does not answer.
        CopyInPlaceError: The database is a backup without a `countersign restore`.
    """
    outside = outside or Outside()
    key = print_key(settings.slack_bot_token.get_secret_value())
    stack.enter_context(in_force(settings.redact, secrets=settings.secrets(), key=key))
    roster = load_roster(settings, load_model(settings.model))
    if settings.agents_file is None and settings.agent == DEMO_AGENTS:
        from bot.demo import LIMITS  # noqa: PLC0415 - only a demo loads the demo

        limits = {
            name: ModelLimits.model_validate({"tokens": text}) for name, text in LIMITS.items()
        }
        roster = replace(roster, limits=limits)
    world = world_of(roster.agents.values())
    # Faults of files first: the database and Slack may need seconds, or not answer at all.
    await load_policy(settings, world, None, _tell_nobody, is_demo=is_demo)
    stack.enter_context(workspace_language(settings.language))
    last = Closings()
    stack.push_async_callback(last.close)
    storage = outside.storage or settings.make_storage()
    kind = "the embedded database" if settings.mongodb_uri is None else "MongoDB"
    logger.info("opening %s", kind, extra={"action": "starting"})
    await _open(storage, last)
    listener, show = _listeners(settings, stack, last)
    tell = both(logs.StepLog(), listener)
    logger.info("connecting to Slack", extra={"action": "starting"})
    slack = outside.slack or await reach_slack(settings, sleep=outside.pacer.sleep)
    stack.enter_context(working_for(settings.company or slack.identity.team))
    lookups = lookup_session()
    last.add("the look-ups", lookups.close)
    process = Process(
        owner=f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}",
        clock=clock,
        tell=tell,
        pacer=outside.pacer,
        sleep=outside.sleep,
        patience=outside.patience,
        retention=settings.retention,
        epoch=str(await storage.restoring.epoch() or ""),
        lookups=lookups,
        model_timeout=settings.model_timeout,
        freeze_file=settings.freeze_file,
        tool_timeout=settings.tool_timeout,
        personal_url=settings.address_of_api if settings.personal_keys else "",
    )
    countersign = await _joined(settings, roster, storage, slack, process, is_demo=is_demo)
    show_metrics = partial(show, storage, countersign.tasks, clock)
    await _start(settings, countersign, stack, show_metrics, tell)
    return countersign


async def _joined(
    settings: Settings,
    roster: Roster,
    storage: Stores,
    slack: Slack,
    process: Process,
    *,
    is_demo: bool,
) -> Countersign:
    """Load the policy and build the bot; no work is started yet."""
    directory = directory_of(slack, process)
    policy = await load_policy(
        settings,
        world_of(roster.agents.values()),
        SlackFacts(
            lookups=directory, bot_user_id=slack.identity.bot_user_id, sleep=process.pacer.sleep
        ),
        _recorder(process, storage, slack.identity.team_id),
        is_demo=is_demo,
    )
    members = GroupMembers(directory, process.clock)
    of_programs = ProgramPolicy(in_force=lambda: policy.held, members=members, directory=directory)
    return build(
        slack=slack,
        storage=storage,
        roster=roster,
        rules=_rules(settings),
        process=replace(process, policy=policy, directory=directory),
        policy=lambda: policy.held,
        join=partial(
            programs_of,
            policy=of_programs,
            url=settings.address_of_api,
            poster=HttpPoster(rules=rules_of(settings), version=version("countersign-bot")),
        ),
    )


def programs_of(
    parts: Wiring, *, policy: ProgramPolicy, url: str, poster: PostsWebhooks
) -> Programs:
    """Build the use cases of programs upon the parts of the bot.

    Args:
        parts: The parts.
        policy: Judges calls of programs.
        url: Public address of the API.
        poster: Posts events to programs.
    """
    directory, clock, tasks = parts.slack.directory, parts.process.clock, parts.tasks
    waiters = Waiters(storage=parts.storage, clock=clock, sleep=parts.process.sleep)
    requests = ProgramRequests(
        storage=parts.storage,
        directory=directory,
        notices=parts.slack.notices,
        attendance=lambda: parts.attendance,
        policy=policy,
        grants=GrantCheck(parts.grants),
        quorum_check=QuorumCheck(directory, policy=parts.policy_now, clock=clock),
        rules=parts.rules,
        clock=clock,
        spawn=tasks.spawn,
        changed=waiters.changed,
        addresses=poster.rules,
    )
    executions = ProgramExecutions(
        storage=parts.storage,
        requests=requests,
        votes=lambda: parts.approvals.votes,
        switch=parts.switch,
        rules=parts.rules,
        clock=clock,
        spawn=tasks.spawn,
        changed=waiters.changed,
    )
    webhooks = WebhookWorker(
        storage=parts.storage,
        poster=poster,
        body_of=partial(event_body, url=url, name_of=partial(name_of, directory)),
        notices=parts.slack.notices,
        clock=clock,
        owner=parts.process.owner,
        spawn=tasks.spawn,
        tell=parts.process.tell,
    )
    threads = ProgramThreads(
        storage=parts.storage,
        directory=directory,
        starts=lambda: parts.starts,
        triggers=lambda: parts.triggers,
        waiters=waiters,
        webhooks=webhooks,
        clock=clock,
        link_of=parts.slack.notifier.thread_link,
        url=url,
    )
    keys = KeyRing(
        store=parts.storage.programs,
        audit=parts.storage.audit,
        directory=directory,
        notices=parts.slack.notices,
        clock=clock,
        spawn=tasks.spawn,
    )
    return Programs(
        storage=parts.storage,
        keys=keys,
        directory=directory,
        requests=requests,
        executions=executions,
        threads=threads,
        waiters=waiters,
        webhooks=webhooks,
        endpoints=ProgramEndpoints(
            endpoints=WebhookEndpoints(storage=parts.storage, addresses=poster.rules, clock=clock)
        ),
        clock=clock,
        link_of=parts.slack.notifier.thread_link,
        url=url,
    )


async def _open(storage: Stores, last: Closings) -> None:
    """Open the database. It is closed after everything else."""
    last.add("the database", storage.close)
    await storage.open()
    if await storage.restoring.is_copy():
        raise CopyInPlaceError
    await check_clock(storage)
    await storage.reconsider()


def _recorder(process: Process, storage: Stores, team_id: str) -> PolicyRecorder:
    """Return the recorder of policy changes."""
    return PolicyRecorder(
        audit=storage.audit,
        tell=process.tell,
        clock=process.clock,
        team_id=team_id,
        owner=process.owner,
    )


def _rules(settings: Settings) -> Rules:
    """Return the settings about approvers and times."""
    return Rules(
        approvers=settings.approvers,
        channels=settings.channels,
        self_approval=settings.self_approval,
        remind_after=settings.remind_after,
        escalate_after=settings.escalate_after,
        escalate_to=settings.escalate_to,
        expire_after=settings.expire_after,
        max_age=settings.max_age,
        exclude_editors=settings.exclude_editors,
    )


async def start_demo(
    settings: Settings,
    stack: AsyncExitStack,
    clock: MovableClock,
    *,
    outside: Outside | None = None,
) -> Countersign:
    """Start the bot of a demo on a clock that people can advance; see `start`."""
    countersign = await start(settings, stack, clock=clock, outside=outside, is_demo=True)
    clock.follower = TimeLapse(countersign.sweep, countersign.tasks)
    return countersign


async def load_policy(
    settings: Settings,
    world: PolicyWorld,
    slack: SlackFacts | None,
    tell: Tell,
    *,
    is_demo: bool = False,
) -> LoadedPolicy:
    """Load the policy from its file or from the settings. In a demo, each rule may use `here`.

    Raises:
        FaultyPolicyError: The file is invalid, or its ids cannot be looked up.
        InvalidSettingsError: The settings name ids that cannot be used.
    """
    source = source_of(settings, world, slack, tell, is_demo=is_demo)
    try:
        return await LoadedPolicy.load(source)
    except PolicyError as error:
        if source.name == OF_SETTINGS:
            raise InvalidSettingsError(settings_errors(error)) from error
        raise FaultyPolicyError(error.text(source.name)) from error


async def _tell_nobody(_: PolicyNews) -> None:
    """Drop news of a policy that is only checked."""


def listen_to_hangups(countersign: Countersign, stack: AsyncExitStack) -> None:
    """Reload the policy file on SIGHUP. Without a file, the signal keeps its default handler."""
    policy, loop = countersign.policy, asyncio.get_running_loop()
    if policy is None or policy.name == OF_SETTINGS:
        return

    async def reload() -> None:
        try:
            await policy.reload(anew=True)
        except StorageError as error:
            logger.warning("policy reload failed: %s", error, extra={"action": "tick_failed"})

    with suppress(NotImplementedError):  # some systems do not support signal handlers
        loop.add_signal_handler(signal.SIGHUP, lambda: countersign.tasks.spawn(reload()))
        stack.callback(loop.remove_signal_handler, signal.SIGHUP)


def _tracer(settings: Settings, last: Closings) -> TellEvent:
    if settings.traces == "off":
        return nobody
    provider, stop = otlp_provider()
    last.add("the sender of traces", stop)
    return Tracing(provider)


_Show = Callable[[Stores, Tasks, Clock, Closings], Awaitable[None]]


def _listeners(
    settings: Settings, stack: AsyncExitStack, last: Closings
) -> tuple[TellEvent, _Show]:
    """Return the receiver of events, and the function that opens the metrics port."""
    tracer, wanted = _tracer(settings, last), settings.metrics_port

    async def show_nothing(*_: object) -> None:
        pass

    if wanted is None:
        return tracer, show_nothing
    from bot.observability import metrics  # noqa: PLC0415 - Prometheus is loaded only with a port to show it

    counted = metrics.Metrics()

    async def show(storage: Stores, tasks: Tasks, clock: Clock, intake: Closings) -> None:
        port = await serve(
            metrics.metrics_app(counted, metrics.Gauges(storage, tasks, clock).read),
            host=settings.host,
            port=wanted,
            stack=stack,
            intake=intake,
            variable="COUNTERSIGN_METRICS_PORT",
        )
        logger.info("metrics on port %d", port, extra={"action": "metrics_ready"})

    return both(counted, tracer), show


async def _start(
    settings: Settings,
    countersign: Countersign,
    stack: AsyncExitStack,
    show: Callable[[Closings], Awaitable[None]],
    tell: TellEvent,
) -> None:
    """Start work, then intake; the stack stops intake first, then work."""
    stack.push_async_callback(countersign.tasks.drain, patience=STOP_PATIENCE)
    policy = countersign.policy
    scheduler = Scheduler(countersign.sweep, watch=None if policy is None else policy.reload)
    scheduler.start()
    stack.callback(scheduler.stop)
    intake = Closings()
    stack.push_async_callback(intake.close)
    await show(intake)
    app_token = settings.slack_app_token
    handler: SocketMode | None = None
    readiness = Readiness(countersign.storage, countersign.sweep.failing, scheduler.is_late)

    async def missing() -> str:
        if fault := await readiness.fault():
            return fault
        is_up = handler is not None and await handler.client.is_connected()
        if app_token is not None and not is_up:
            return "the Slack connection is down"
        return ""

    bolt = countersign.bolt if app_token is None else None
    app = web_app(bolt, missing, answering=countersign.answering)
    port = await serve(app, host=settings.host, port=settings.port, stack=stack, intake=intake)
    if settings.api_port is not None:
        door = await stack.enter_async_context(AsyncExitStack())
        listening = partial(_listen_to_programs, settings, countersign, missing, tell)
        opening = asyncio.create_task(listening(stack=door, intake=intake))
        stack.callback(opening.cancel)
    # Only after the port is open: it opens a session that would leak if that failed.
    if app_token is not None:
        token = app_token.get_secret_value()
        handler = SocketMode(countersign.bolt, token, answering=countersign.answering)
        await _connect(handler, intake)
    await scheduler.tick()
    countersign.tasks.spawn(countersign.approvals.attendance.catch_up())
    logger.info("ready, listening on port %d", port, extra={"action": "ready"})


async def _listen_to_programs(
    settings: Settings,
    countersign: Countersign,
    is_ready: Callable[[], Awaitable[str]],
    tell: TellEvent,
    *,
    stack: AsyncExitStack,
    intake: Closings,
) -> None:
    """Listen to programs as soon as there is a key; without one, nobody could prove itself."""
    programs, clock = countersign.programs, countersign.sweep.clock
    if not isinstance(programs, Programs):
        return
    if not programs.threads.triggers().entries:
        await _first_key(countersign.storage.programs)
    door = ApiDoor(
        use=programs,
        executions=programs.executions,
        threads=programs.threads,
        endpoints=programs.endpoints,
        keys=programs.keys,
        url=programs.url,
        is_ready=is_ready,
        clock=clock,
        proxies=[ip_network(network) for network in settings.api_proxies],
        tell=tell,
    )
    port = settings.api_port or 0
    try:
        port = await door.listen(host=settings.api_host, port=port, stack=stack, intake=intake)
    except SettingsError as error:
        logger.error("programs cannot ask: %s", error, extra={"action": "api_closed"})  # noqa: TRY400 - the text says it all
        return
    logger.info("programs can ask on port %d", port, extra={"action": "api_ready"})


async def _first_key(store: ProgramStore) -> None:
    """Wait until a program has a key."""
    is_told = False
    while True:
        with suppress(StorageError):
            if await store.all_keys():
                return
            if not is_told:
                is_told = True
                logger.info(
                    "the API opens with the first key of a program", extra={"action": "api_waits"}
                )
        await asyncio.sleep(_KEY_LOOK_S)


async def _connect(handler: SocketMode, intake: Closings) -> None:
    """Open the Socket Mode connection."""
    intake.add("the connection to Slack", handler.close_async)
    try:
        await handler.open()
    except SlackClientError as error:
        raise SettingsError(
            "SLACK_APP_TOKEN",
            f"Slack does not open a Socket Mode connection: {slack_fault(error)}",
            "check the app-level token (scope connections:write) and that Socket Mode is on",
        ) from error
