"""Limits of what models use: counted at each answer, asked before the next request."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

import pytest
from pydantic_ai.messages import ModelResponse

from agents import InterruptContext, InterruptEvent, MemoryCheckpointStore, ResumeDataError
from agents.core.asking.answers import ApprovalResult, Cancelled, Expired
from agents.core.asking.limits import LimitInfo
from agents.core.checkpoint import CheckpointStatus
from agents.core.errors import LimitReachedError, ModelError
from agents.middlewares.retry import ModelRetryMiddleware
from agents.models import Turn, call, say
from agents.runner import Runner
from agents.workflows.agenttool import AgentTool
from tests.unit.agents.support import Died, DyingStore, Plain, World, brief, collect, contexts

STEP = 2
SCRIPT: list[Turn] = [
    call("look", id="c1"),
    call("look", id="c2"),
    call("look", id="c3"),
    say("done"),
]


@dataclass
class Answers:
    """A budget of a number of answers. It outlives the process."""

    allowed: int = STEP
    used: int = 0
    runs: list[str] = field(default_factory=list)
    fails: Exception | None = None

    async def reached(self, checkpoint_id: str) -> LimitInfo | None:
        if self.fails is not None:
            raise self.fails
        if self.used < self.allowed:
            return None
        return LimitInfo(
            limit="answers",
            period="1",
            used=self.used,
            allowed=self.allowed,
            more=STEP,
            title="Go on with 2 more answers",
            text=f"This run has used {self.used} of {self.allowed} answers.",
        )

    async def extend(self, checkpoint_id: str, approved: LimitInfo) -> None:
        self.allowed = max(self.allowed, approved.allowed + approved.more)

    async def count(self, checkpoint_id: str, response: ModelResponse) -> None:
        self.runs.append(checkpoint_id)
        self.used += 1


async def asked(runner: Runner) -> InterruptContext:
    """Run up to the question whether it may go on."""
    (context,) = contexts(await collect(runner.query("hi", checkpoint_id="1"))).values()
    return context


def info_of(asked: Mapping[str, InterruptContext]) -> LimitInfo:
    (context,) = asked.values()
    info = context.info
    assert isinstance(info, LimitInfo)
    return info


@pytest.mark.parametrize("streaming", [False, True])
async def test_people_are_asked_before_the_next_request_and_the_run_goes_on(
    streaming: bool,
) -> None:
    budget, look = Answers(), Plain("look")
    world = World(SCRIPT, [look])
    runner = world.runner(budget=budget, streaming=streaming)
    context = await asked(runner)
    info = info_of({"": context})
    assert str(info) == "This run has used 2 of 2 answers. Go on with 2 more answers?"
    assert (world.models[0].calls, len(look.calls)) == (2, 2)
    lines = brief(await collect(runner.resume("1", {context.id: info.approve(by="U1")})))
    assert lines[-1].endswith("done")
    assert (budget.used, budget.allowed, len(look.calls)) == (4, 4, 3)
    assert budget.runs == ["1"] * 4


async def test_the_limit_is_asked_again_when_it_is_reached_again() -> None:
    budget = Answers(allowed=1)
    runner = World([*SCRIPT[:3], call("look", id="c4"), say("done")], [Plain("look")]).runner(
        budget=budget
    )
    first = await asked(runner)
    again = contexts(await collect(runner.resume("1", {first.id: first.info.approve()})))  # type: ignore[attr-defined]
    assert info_of(again).allowed == 1 + STEP
    (second,) = again.values()
    assert second.id != first.id
    lines = brief(await collect(runner.resume("1", {second.id: second.info.approve()})))  # type: ignore[attr-defined]
    assert lines[-1].endswith("done")


@pytest.mark.parametrize(
    "answer", [ApprovalResult(approved=False, reason="no"), Expired(), Cancelled()]
)
async def test_without_approval_the_run_ends(answer: object) -> None:
    world = World(SCRIPT, [Plain("look")])
    runner = world.runner(budget=Answers())
    context = await asked(runner)
    with pytest.raises(LimitReachedError, match="used 2 of 2 answers"):
        await collect(runner.resume("1", {context.id: answer}))
    assert world.models[0].calls == 2


async def test_i2_an_approval_of_another_request_is_refused() -> None:
    runner = World(SCRIPT, [Plain("look")]).runner(budget=Answers())
    context = await asked(runner)
    info = context.info
    assert isinstance(info, LimitInfo)
    more = replace(info, more=100).bound(thread="1", address=str(context.address))
    for other in (more.approve(), ApprovalResult(approved=True), "yes"):
        with pytest.raises(ResumeDataError):
            await collect(runner.resume("1", {context.id: other}))


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("at", range(1, 7))
async def test_i4_a_crash_after_the_approval_neither_loses_nor_doubles_it(
    at: int, before: bool
) -> None:
    budget, store = Answers(), MemoryCheckpointStore()
    world = World(SCRIPT, [Plain("look")], store=store, durability="step", by_history=True)
    runner = world.runner(budget=budget)
    context = await asked(runner)
    info = info_of({"": context})
    world.store = DyingStore(store, at=at, before=before)
    with suppress(Died):
        await collect(world.runner(budget=budget).resume("1", {context.id: info.approve()}))
    world.store = store
    runner = world.runner(budget=budget)
    stored = await store.load("1")
    assert stored is not None
    if stored.status is CheckpointStatus.CLOSED:
        return
    is_pending = stored.status is CheckpointStatus.PENDING
    work = runner.resume("1", {context.id: info.approve()}) if is_pending else runner.recover("1")
    events = await collect(work)
    assert budget.allowed == STEP * 2
    if isinstance(events[-1], InterruptEvent):  # an answer that was lost in the crash was counted
        assert info_of(contexts(events)).allowed == STEP * 2
    else:
        assert brief(events)[-1].endswith("done")


async def test_agents_inside_of_tools_count_too() -> None:
    budget = Answers(allowed=3)
    inner = World([call("look", id="i1"), say("found")], [Plain("look")]).agent("inner")
    world = World([call("inner", {"request": "x"}, id="c1"), say("done")], [AgentTool(inner)])
    context = await asked(world.runner(budget=budget))
    assert budget.used == 3
    assert isinstance(context.info, LimitInfo)


async def test_each_answer_of_a_retry_counts_and_failures_do_not() -> None:
    budget = Answers(allowed=10)
    retry = ModelRetryMiddleware(attempts=3, sleep=_now)
    world = World([ModelError("away"), say("done")], options={"middlewares": [retry]})
    await collect(world.runner(budget=budget).query("hi"))
    assert budget.used == 1


async def test_a_budget_that_fails_stops_the_run() -> None:
    budget = Answers(fails=LimitReachedError("cost", "It has no price."))
    world = World([say("done")])
    with pytest.raises(LimitReachedError, match="no price"):
        await collect(world.runner(budget=budget).query("hi"))
    assert world.models[0].calls == 0


async def _now(_: float) -> None:
    return
