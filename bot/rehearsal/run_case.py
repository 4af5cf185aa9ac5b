"""Run a case of any kind; a case with a timeline on a bot of its own, with an empty database."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import ValidationError

from agents import Agent
from bot.config import stores
from bot.errors import BotError
from bot.maintenance.policies import PolicyRecorder
from bot.observability.events import nobody
from bot.policy.current import LoadedPolicy, PolicyNews, PolicySource
from bot.policy.evaluation.context import PolicyWorld, world_of
from bot.policy.parser.checks import CheckedPolicy, check
from bot.policy.parser.problems import PolicyError
from bot.questions.record import Rules
from bot.rehearsal.audit_cases import play_append, play_audit
from bot.rehearsal.case_file import Case, Difference
from bot.rehearsal.case_schema import CaseError, Data
from bot.rehearsal.events import THREAD, SimulatedSteps
from bot.rehearsal.outcome import Watcher
from bot.rehearsal.policy_cases import play_check, play_explain
from bot.rehearsal.scripted_agents import Script, actors, name_of_agent
from bot.rehearsal.simulation import Simulation, StageClock
from bot.rehearsal.timeline import Flow
from bot.slack.app import build
from bot.slack.bot import Countersign
from bot.stores import Stores
from bot.threads.named_agents import Roster
from bot.threads.runs.model_limits import ModelLimits
from slack_sandbox.errors import RefusedError

NOBODY = Rules(
    approvers=("U0NOBODY",),
    self_approval=False,
    remind_after=timedelta(minutes=15),
    expire_after=timedelta(hours=8),
)
"""The settings of a simulation: without a policy, requests are undecidable."""
_BROKEN = b"version: 1"
PATIENCE_S = 60
"""Timeout of one case, in seconds of real time."""
Play: TypeAlias = Callable[[Case], Awaitable[dict[str, object]]]
"""Plays a case; returns the outcome by the keys of `expect`."""


async def run_case(case: Case, more: Mapping[str, Play] | None = None) -> list[Difference]:
    """Run a case.

    Args:
        case: A case of a known kind.
        more: Kinds of cases that only the caller can play.

    Returns:
        The differences; empty without any. A case that cannot be run as written, or does not end,
        is a difference.
    """
    try:
        async with asyncio.timeout(PATIENCE_S):
            if case.kind == "flow":
                return await _flow(case)
            play = {**_KINDS, **(more or {})}.get(case.kind)
            if play is None:
                raise CaseError(f"cases of the kind {case.kind} cannot be played here")
            return _compare(case, await play(case))
    except (BotError, RefusedError, LookupError, ValueError) as error:
        return [_difference(case, "case", "it can be played", f"{type(error).__name__}: {error}")]
    except TimeoutError:
        return [_difference(case, "case", "it ends", f"nothing for {PATIENCE_S} s")]


async def _flow(case: Case) -> list[Difference]:
    storage = stores.in_memory()
    await storage.open()
    try:
        return await rehearse(case, storage)
    finally:
        await storage.close()


def _compare(case: Case, observed: Mapping[str, object]) -> list[Difference]:
    expected = case.data["expect"]
    return [
        _difference(case, name, expected.get(name), observed.get(name))
        for name in sorted({*expected, *observed})
        if expected.get(name) != observed.get(name)
    ]


def _difference(case: Case, key: str, expected: object, observed: object) -> Difference:
    return Difference(case=case.id, step=0, key=key, expected=expected, actual=observed)


async def rehearse(case: Case, storage: Stores, *, is_judged: bool = True) -> list[Difference]:
    """Run a flow; return the differences from its expectations.

    Args:
        case: A flow.
        storage: An open, empty database.
        is_judged: Whether to stop at the first event with differences.

    Raises:
        CaseError: The case cannot be run as written.
    """
    with tempfile.TemporaryDirectory(prefix="countersign-case-") as directory:
        return await _rehearse(case, storage, Path(directory) / "freeze", is_judged=is_judged)


async def _rehearse(
    case: Case, storage: Stores, freeze_file: Path, *, is_judged: bool
) -> list[Difference]:
    requests = [event["request"] for event in case.data["timeline"] if "request" in event]
    script, clock = Script(), StageClock(case.start_ms)
    agents = actors(script, case.world, requests)
    file = PolicyFileOnStage(
        data=_written(case.policy),
        world=world_of(agents.values()),
        is_demo=bool(case.data.get("demo")),
        storage=storage,
        clock=clock,
    )
    places = _places(case, agents, requests)
    simulation = await _simulation(case, storage, clock, file, places, freeze_file)
    script.stall = simulation.stall

    async def swap(value: object) -> None:
        is_broken = isinstance(value, dict) and bool(value.get("broken"))
        file.data = _BROKEN if is_broken else _written(case.policy_named(value))
        if simulation.policy is not None:
            await simulation.policy.reload()

    acts = SimulatedSteps(case=case, stage=simulation, script=script, swap_policy=swap)
    flow = Flow(case=case, acts=acts, watcher=Watcher(simulation, case.start_ms), script=script)
    try:
        differences = await flow.play(is_judged=is_judged)
        if not is_judged:
            await simulation.tick()  # work that the last event made due
        return differences
    finally:
        simulation.end_stalls()
        await simulation.settle()


async def _simulation(
    case: Case,
    storage: Stores,
    clock: StageClock,
    file: PolicyFileOnStage,
    agents: Mapping[str, Agent],
    freeze_file: Path,
) -> Simulation:
    try:
        policy = await LoadedPolicy.load(file.source("T0ACMEWORK"))
    except PolicyError as error:
        raise CaseError(f"case {case.id}: its policy has faults:\n{error}") from error
    limits = {name: _limits(case, name, given) for name, given in case.world.limits.items()}
    return Simulation(
        storage=storage,
        world=case.world,
        clock=clock,
        make=lambda settings, owner: joined(
            settings,
            owner,
            agents=agents,
            limits=limits,
            rules=NOBODY,
            policy=lambda: policy.held,
        ),
        policy=policy,
        freeze_file=freeze_file,
    )


def _limits(case: Case, name: str, given: Data) -> ModelLimits:
    """Return the limits of an agent.

    Raises:
        CaseError: They are invalid.
    """
    try:
        return ModelLimits.model_validate(given)
    except ValidationError as error:
        fault = error.errors()[0]["msg"]
        raise CaseError(f"case {case.id}: world.limits.{name}: {fault}") from error


def _places(case: Case, agents: Mapping[str, Agent], requests: list[Data]) -> Mapping[str, Agent]:
    """Return the agents by name; the first one answers messages that address no agent.

    Raises:
        CaseError: A thread has requests of two agents, but one agent works in each thread.
    """
    by_thread: dict[str, str] = {}
    for request in requests:
        thread = str(request.get("thread", THREAD))
        name = name_of_agent(request) or by_thread.get(thread, case.world.agents[0])
        if by_thread.setdefault(thread, name) != name:
            raise CaseError(
                f"case {case.id}: {by_thread[thread]} works in the thread {thread}; "
                f"write the request of {name} in another thread"
            )
    named = {f"@{name}": agent for name, agent in agents.items()}
    return {"*": agents[case.world.agents[0]], **named}


def _written(policy: Data) -> bytes:
    """Return the bytes of a policy file; JSON is valid YAML."""
    return json.dumps(policy, default=str).encode()


def joined(
    stage: Simulation,
    owner: str,
    *,
    agents: Mapping[str, Agent],
    limits: Mapping[str, ModelLimits] | None = None,
    **more: Any,
) -> Countersign:
    """Create the bot of a simulation."""
    return build(
        slack=stage.slack,
        storage=stage.storage,
        roster=Roster(agents=agents, limits=limits or {}),
        process=stage.process(owner),
        **more,
    )


@dataclass
class PolicyFileOnStage:
    """The simulated policy file, which a case can change.

    Attributes:
        data: Its bytes.
        world: The tools and agents for its checks.
        is_demo: Whether every rule may use `here`.
        storage: The database, for audit entries about the policy.
    """

    data: bytes
    world: PolicyWorld
    is_demo: bool
    storage: Stores
    clock: StageClock
    _is_first: bool = field(default=True)

    def source(self, team_id: str) -> PolicySource:
        """Return the bot's source of the policy."""
        recorder = PolicyRecorder(
            audit=self.storage.audit,
            tell=nobody,
            clock=self.clock,
            team_id=team_id,
            owner="rehearsal",
        )

        async def tell(news: PolicyNews) -> None:
            if not self._is_first:
                await recorder(news)
            self._is_first = False

        return PolicySource(name="policy.yaml", read=self._read, check=self._check, tell=tell)

    async def _read(self) -> bytes:
        return self.data

    async def _check(self, data: bytes) -> CheckedPolicy:
        return check(data, self.world, demo=self.is_demo)


async def perform(case: Case, timeline: Sequence[Data], storage: Stores) -> None:
    """Run other events in the world of a flow, without a comparison; see `rehearse`."""
    data = {**case.data, "timeline": [{**event, "expect": None} for event in timeline]}
    await rehearse(replace(case, data=data), storage, is_judged=False)


_KINDS: Mapping[str, Play] = {
    "check": play_check,
    "explain": play_explain,
    "audit": play_audit,
    "append": partial(play_append, perform=perform),
}
"""The function that plays a case, by the kind of the case."""
