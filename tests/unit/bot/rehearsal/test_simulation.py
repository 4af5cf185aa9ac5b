"""The stage of rehearsals: the real bot between a made-up Slack and a database."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest

from bot.questions.record import Rules
from bot.rehearsal.case_file import Case, offset, read_case_file
from bot.rehearsal.case_schema import CaseError
from bot.rehearsal.events import SimulatedSteps
from bot.rehearsal.run_case import joined
from bot.rehearsal.scripted_agents import Script, actors
from bot.rehearsal.simulation import Simulation, StageClock
from bot.slack.typing_status import BEFORE_FIRST
from bot.stores import Stores

CASES = Path(__file__).parents[3] / "data" / "cases.yaml"
RULES = Rules(
    approvers=("S0SRE",),
    self_approval=False,
    remind_after=timedelta(minutes=15),
    expire_after=timedelta(hours=8),
)
DEPLOY = {"tool": "deploy", "args": {"service": "web", "version": "1", "env": "staging"}}


@pytest.fixture(scope="module")
def case() -> Case:
    return next(
        listed_case for listed_case in read_case_file(CASES).cases() if listed_case.id == "E030"
    )


@dataclass(slots=True, kw_only=True)
class Watched(Simulation):
    """A stage that notes how long something has wanted to wait, and each look at what is due."""

    slept: list[float] = field(default_factory=list)
    ticks: list[int] = field(default_factory=list)

    async def sleep(self, seconds: float) -> None:
        """See `Simulation.sleep`."""
        self.slept.append(seconds)
        await Simulation.sleep(self, seconds)

    async def tick(self) -> None:
        """See `Simulation.tick`."""
        self.ticks.append(self.clock())
        await Simulation.tick(self)


@pytest.fixture
async def acts(case: Case, storage: Stores) -> AsyncIterator[SimulatedSteps]:
    script = Script()
    agents = actors(script, case.world, [DEPLOY])

    async def no_policy(_: object) -> None:
        raise AssertionError("nobody changes the policy here")

    stage = Watched(
        storage=storage,
        world=case.world,
        clock=StageClock(case.start_ms),
        make=lambda stores, owner: joined(
            stores, owner, agents={"*": agents["clerk"]}, rules=RULES
        ),
    )
    yield SimulatedSteps(case=case, stage=stage, script=script, swap_policy=no_policy)
    await stage.settle()


async def test_nothing_waits_by_the_clock_of_the_machine(acts: SimulatedSteps) -> None:
    await acts.request([DEPLOY])
    assert isinstance(acts.stage, Watched)
    assert acts.stage.slept == [BEFORE_FIRST.total_seconds()]


async def test_who_waits_for_no_time_goes_on(acts: SimulatedSteps) -> None:
    async with asyncio.timeout(60):
        await acts.stage.sleep(0)
        await acts.stage.sleep(0.0004)


async def test_an_unknown_event_is_told(acts: SimulatedSteps) -> None:
    with pytest.raises(CaseError, match="no event 'dance'"):
        await acts.play("dance", {})


def test_times_since_the_start() -> None:
    assert offset("+6m30s") == timedelta(minutes=6, seconds=30)
    assert offset("+30d") == timedelta(days=30)
    with pytest.raises(CaseError, match="write it as"):
        offset("6m")


def test_what_is_no_file_of_cases_is_told(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("[1]")
    with pytest.raises(CaseError, match="expected a mapping"):
        read_case_file(tmp_path / "x.yaml")
    with pytest.raises(CaseError, match=r"nowhere\.yaml"):
        read_case_file(tmp_path / "nowhere.yaml")


async def test_time_passes_in_few_steps_while_a_lease_is_extended(
    acts: SimulatedSteps, storage: Stores
) -> None:
    """A record was due when its lease was taken; it is due again when the extended lease ends."""
    await acts.request([DEPLOY])
    (thread_id,) = acts.threads.values()
    now = acts.case.start_ms
    await storage.threads.wake(thread_id, now_ms=now)
    claimed = await storage.threads.claim(
        thread_id, owner="other", now_ms=now, until_ms=now + 15_000
    )
    assert claimed is not None
    assert await storage.threads.extend(thread_id, fence=claimed.fence, until_ms=now + 90_000)
    assert isinstance(acts.stage, Watched)
    acts.stage.ticks.clear()
    await acts.stage.advance(now + 60_000)
    assert len(acts.stage.ticks) == 1
    await acts.stage.advance(now + 120_000)
    assert now + 90_000 in acts.stage.ticks
