"""Run one flow, starting with an empty database."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from agents import Agent
from bot.commands.simulation.agents import Script, actors
from bot.commands.simulation.cases import Case, Difference
from bot.commands.simulation.fakes import StageClock
from bot.commands.simulation.harness import Simulation
from bot.commands.simulation.models import CaseError, Data
from bot.commands.simulation.observed import Watcher
from bot.commands.simulation.play import Flow
from bot.commands.simulation.steps import THREAD, SimulatedSteps
from bot.maintenance.policies import PolicyRecorder
from bot.observability.events import nobody
from bot.policy.current import LoadedPolicy, PolicyNews, PolicySource
from bot.policy.evaluation.context import PolicyWorld, world_of
from bot.policy.parser.checks import CheckedPolicy, check
from bot.policy.parser.problems import PolicyError
from bot.questions.record import Rules
from bot.slack.app import build
from bot.slack.bot import Countersign
from bot.stores import Stores
from bot.threads.named_agents import Roster

NOBODY = Rules(
    approvers=("U0NOBODY",),
    self_approval=False,
    remind_after=timedelta(minutes=15),
    expire_after=timedelta(hours=8),
)
"""The settings of a simulation: without a policy, requests are undecidable."""
_BROKEN = b"version: 1"


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


async def rehearse(case: Case, storage: Stores, *, is_judged: bool = True) -> list[Difference]:
    """Run a flow; return the differences from its expectations.

    Args:
        case: A flow.
        storage: An open, empty database.
        is_judged: Whether to stop at the first event with differences.

    Raises:
        CaseError: The case cannot be run as written.
    """
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
    theatre = await _theatre(case, storage, clock, file, _places(case, agents, requests))

    async def swap(value: object) -> None:
        is_broken = isinstance(value, dict) and bool(value.get("broken"))
        file.data = _BROKEN if is_broken else _written(case.policy_named(value))
        if theatre.policy is not None:
            await theatre.policy.look()

    acts = SimulatedSteps(case=case, stage=theatre, script=script, swap_policy=swap)
    flow = Flow(case=case, acts=acts, watcher=Watcher(theatre, case.start_ms), script=script)
    try:
        differences = await flow.play(is_judged=is_judged)
        if not is_judged:
            await theatre.tick()  # work that the last event made due
        return differences
    finally:
        await theatre.settle()


async def _theatre(
    case: Case,
    storage: Stores,
    clock: StageClock,
    file: PolicyFileOnStage,
    agents: Mapping[str, Agent],
) -> Simulation:
    try:
        policy = await LoadedPolicy.load(file.source("T0ACMEWORK"))
    except PolicyError as error:
        raise CaseError(f"case {case.id}: its policy has faults:\n{error}") from error
    return Simulation(
        storage=storage,
        world=case.world,
        clock=clock,
        make=lambda settings, owner: joined(
            settings, owner, agents=agents, rules=NOBODY, policy=lambda: policy.held
        ),
        policy=policy,
    )


def _places(case: Case, agents: Mapping[str, Agent], requests: list[Data]) -> Mapping[str, Agent]:
    """Return the agents by name; the first one answers messages that address no agent.

    Raises:
        CaseError: A thread has requests of two agents, but one agent works in each thread.
    """
    by_thread: dict[str, str] = {}
    for request in requests:
        thread = str(request.get("thread", THREAD))
        name = str(request.get("agent", by_thread.get(thread, case.world.agents[0])))
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
    stage: Simulation, owner: str, *, agents: Mapping[str, Agent], **more: Any
) -> Countersign:
    """Create the bot of a simulation."""
    return build(
        slack=stage.slack,
        storage=stage.storage,
        roster=Roster(agents=agents),
        process=stage.process(owner),
        **more,
    )
