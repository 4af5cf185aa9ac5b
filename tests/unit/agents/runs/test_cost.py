"""I11: what an interrupt and its resume cost, whatever came before; and what a runner remembers."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart

from agents.agent import AgentEvent, InterruptEvent, MessageEvent, ToolEvent
from agents.chat.agent import ChatModelAgent
from agents.core.asking.infos import CallInfo
from agents.core.checkpoint import CheckpointStatus, Durability, StoredCheckpoint
from agents.core.errors import (
    AgentConfigError,
    CheckpointBusyError,
    CheckpointClosedError,
    UnknownInterruptError,
)
from agents.core.messages import log_text, user_message
from agents.core.observers import ToolOutcome
from agents.core.pending import InterruptContext, InterruptSignal
from agents.core.scope import Scope
from agents.gates import approval_gate, tool
from agents.memory import MemoryCheckpointStore, MemoryMessageLog
from agents.models import ScriptedModel, Turn, call, say
from agents.runner import Runner
from agents.runs.answers import ResumeParams
from tests.unit.agents.support import Asker, WatchedStore, collect, contexts, yes


@tool
def transfer(amount: int, to: str, reason: str = "") -> str:
    """Transfer money.

    Args:
        amount: In cents.
        to: Account of the receiver.
        reason: What for.
    """
    return "transferred"


@dataclass
class Costs:
    """A store and a log, and what went through them."""

    commands: list[str] = field(default_factory=list)
    written: int = 0

    def note(self, command: str, text: str = "") -> None:
        self.commands.append(command)
        self.written += len(text.encode())

    def take(self) -> tuple[list[str], int]:
        taken = self.commands, self.written
        self.commands, self.written = [], 0
        return taken


class CostlyStore(WatchedStore):
    def __init__(self, costs: Costs) -> None:
        super().__init__()
        self._costs = costs

    async def load(self, checkpoint_id: str) -> StoredCheckpoint | None:
        self._costs.note("load")
        return await super().load(checkpoint_id)

    def at(self, write: str, text: str, *, before: bool) -> None:
        if before:
            self._costs.note(write, text)


class CostlyLog(MemoryMessageLog):
    def __init__(self, costs: Costs) -> None:
        super().__init__()
        self._costs = costs

    async def append(self, log_id: str, turn: int, data: str) -> None:
        self._costs.note("log", data)
        await super().append(log_id, turn, data)

    async def load(self, log_id: str, *, before_turn: int) -> Sequence[str]:
        self._costs.note("history")
        return await super().load(log_id, before_turn=before_turn)


@dataclass
class Bank:
    """A thread with a past."""

    messages: int
    durability: Durability
    costs: Costs = field(default_factory=Costs)

    def __post_init__(self) -> None:
        self.store, self.log = CostlyStore(self.costs), CostlyLog(self.costs)
        self.turn = self.messages // 2 + 1

    async def fill(self) -> None:
        for turn in range(1, self.turn):
            said: list[ModelMessage] = [
                user_message("hello"),
                ModelResponse(parts=[TextPart("fine " * 20)]),
            ]
            await self.log.append("t", turn, log_text(said))
        self.costs.take()

    def runner(self, *script: Turn) -> Runner:
        agent = ChatModelAgent(
            name="clerk", model=ScriptedModel(list(script)), tools=[approval_gate(transfer)]
        )
        return Runner(
            agent,
            checkpoint_store=self.store,
            message_log=self.log,
            durability=self.durability,
        )

    async def ask(self, runner: Runner) -> list[AgentEvent]:
        log = ("t", self.turn)
        return await collect(runner.query("Pay invoice 17", checkpoint_id="t#x", log=log))


ARGUMENTS = {"amount": 500, "to": "DE89370400440532013000", "reason": "invoice 17 of May"}
CALL: Turn = [say("I transfer it."), call("transfer", ARGUMENTS, id="call_abcdefghijklmno")]
STEPS = {
    "interrupt": (
        ["history", "load", "save"],
        ["claim", "append", "append", "log", "close"],
    ),
    "step": (
        ["history", "save", "append", "save"],
        ["claim", "append", "append", "append", "log", "close"],
    ),
}


@pytest.mark.parametrize("durability", ["interrupt", "step"])
async def test_i11_an_interrupt_costs_the_same_whatever_came_before(
    durability: Durability,
) -> None:
    written = {}
    for messages in (10, 100, 1000):
        bank = Bank(messages, durability)
        await bank.fill()
        runner = bank.runner(CALL, say("Done."))

        waiting = contexts(await bank.ask(runner))
        asked = bank.costs.take()
        await collect(runner.resume("t#x", {c.id: yes(c) for c in waiting.values()}))
        resumed = bank.costs.take()

        to_ask, to_resume = STEPS[durability]
        assert asked[0] == to_ask
        assert resumed[0] == to_resume
        assert asked[1] <= 4096
        assert resumed[1] <= 2048
        written[messages] = asked[1]
    # Only numbers, of the turn and of tokens, have more digits.
    assert max(written.values()) - min(written.values()) <= 32


async def test_i11_a_round_trip_takes_six_commands_of_the_checkpoint_store() -> None:
    """In one process, as the next test; another process reads the checkpoint once more."""
    for is_same, expected in ((True, 6), (False, 7)):
        bank = Bank(10, "interrupt")
        runner = bank.runner(CALL, say("Done."))
        waiting = contexts(await bank.ask(runner))
        other = runner if is_same else bank.runner(say("Done."))
        await collect(other.resume("t#x", {c.id: yes(c) for c in waiting.values()}))

        commands, _ = bank.costs.take()
        assert len([name for name in commands if name not in {"log", "history"}]) == expected


def two_runners() -> tuple[Runner, Runner]:
    """Two processes on one store."""
    store = MemoryCheckpointStore()
    return Runner(Asker("a"), checkpoint_store=store), Runner(Asker("a"), checkpoint_store=store)


async def test_what_a_runner_remembers_is_not_trusted_over_the_store() -> None:
    first, second = two_runners()
    await collect(first.query("hi", checkpoint_id="1"))
    (old,) = await first.pending("1")
    await collect(second.resume("1"))
    (new,) = await first.pending("1")

    with pytest.raises(UnknownInterruptError, match=new.id):
        await collect(first.resume("1", {old.id: "x"}))
    await collect(first.resume("1", {new.id: "x"}))


async def test_what_a_runner_remembers_may_be_taken_by_another() -> None:
    first, second = two_runners()
    await collect(first.query("hi", checkpoint_id="1"))
    (context,) = await first.pending("1")
    params = ResumeParams(targets={context.id: "x"})
    going = second.resume_with_params("1", params)
    await anext(going)

    with pytest.raises(CheckpointBusyError):
        await collect(first.resume_with_params("1", params))
    await going.aclose()


async def test_a_runner_remembers_only_so_many() -> None:
    store = MemoryCheckpointStore()
    runner = Runner(Asker("a"), checkpoint_store=store)
    for number in range(205):
        await collect(runner.query("hi", checkpoint_id=str(number)))

    assert len(runner._setup.fresh) == 200
    assert "4" not in runner._setup.fresh
    for number in (0, 204):
        await collect(runner.resume(str(number), {"agent:a": "x"}))
    assert len(runner._setup.fresh) == 199


async def test_a_run_that_was_opened_is_not_read_again() -> None:
    bank = Bank(10, "step")
    runner = bank.runner(CALL, say("Done."))
    await bank.ask(runner)
    bank.costs.take()
    other = bank.runner(say("Done."))

    run = await other.open("t#x")
    assert run is not None
    targets = {context.id: yes(context) for context in run.pending()}
    await collect(other.resume_with_params("t#x", ResumeParams(targets=targets), run=run))

    assert (run.status, run.agent_name) == (CheckpointStatus.PENDING, "clerk")
    assert bank.costs.take()[0] == ["load", "history", *STEPS["step"][1]]


async def test_a_run_that_died_is_recovered_from_what_was_opened() -> None:
    bank = Bank(10, "step")
    events = bank.runner(CALL).query("Pay", checkpoint_id="t#x", log=("t", bank.turn))
    await anext(events)
    await events.aclose()
    bank.costs.take()
    other = bank.runner()

    run = await other.open("t#x")
    assert run is not None
    assert run.pending() == ()
    await collect(other.recover("t#x", run=run))

    assert bank.costs.take()[0] == ["load", "history", "append", "save"]
    pending = await other.open("t#x")
    (event,) = await collect(other.recover("t#x", run=pending))
    assert isinstance(event, InterruptEvent)
    assert bank.costs.take()[0] == ["load"]


async def test_what_was_opened_is_read_anew_when_somebody_wrote_since() -> None:
    first, second = two_runners()
    await collect(first.query("hi", checkpoint_id="1"))
    run = await second.open("1")
    await collect(first.resume("1"))
    (new,) = await first.pending("1")

    params = ResumeParams(targets={new.id: "x"})
    await collect(second.resume_with_params("1", params, run=run))

    ended = await first.open("1")
    assert ended is not None
    assert (ended.status, ended.agent_name) == (CheckpointStatus.CLOSED, "")
    assert ended.pending() == ()
    assert await first.open("2") is None
    with pytest.raises(CheckpointClosedError):
        await collect(first.resume_with_params("1", params, run=run))


async def test_nobody_goes_on_with_another_run_than_the_one_that_was_opened() -> None:
    store = MemoryCheckpointStore()
    runner = Runner(Asker("a"), checkpoint_store=store)
    for name in ("1", "2"):
        await collect(runner.query("hi", checkpoint_id=name))
    other = await runner.open("2")

    params = ResumeParams(targets={"agent:a": "x"})
    for events in (
        runner.resume_with_params("1", params, run=other),
        runner.recover("1", run=other),
    ):
        with pytest.raises(AgentConfigError, match="'2'"):
            await collect(events)
    assert len(await runner.pending("1")) == len(await runner.pending("2")) == 1


def many(count: int) -> Turn:
    return [call("transfer", {**ARGUMENTS, "amount": n}, id=f"c{n}") for n in range(count)]


async def answer(runner: Runner, context: InterruptContext) -> list[AgentEvent]:
    return await collect(runner.resume("t#x", {context.id: yes(context)}))


async def test_an_answer_costs_the_same_however_many_wait_beside_it() -> None:
    written = {}
    for count in (10, 40):
        bank = Bank(10, "step")
        runner = bank.runner(many(count), say("Done."))
        waiting = contexts(await bank.ask(runner))
        bank.costs.take()
        await answer(runner, waiting["c5"])
        commands, written[count] = bank.costs.take()
        assert commands == ["claim", "append", "append", "amend"]
    assert written[40] - written[10] <= 16
    assert written[40] <= 1536


async def test_another_process_goes_on_from_a_document_and_its_changes() -> None:
    bank = Bank(10, "step")
    waiting = contexts(await bank.ask(bank.runner(many(12))))
    events: list[AgentEvent] = []
    for number in range(12):
        run = await bank.store.load("t#x")
        assert run is not None
        assert len(run.changes) == number
        other = bank.runner(say("Done."))
        pending = await other.pending("t#x")
        assert [c.id for c in pending] == [waiting[f"c{n}"].id for n in range(number, 12)]
        events = await answer(other, pending[0])
    assert isinstance(events[-1], MessageEvent)
    assert events[-1].text == "Done."
    ended = await bank.store.load("t#x")
    assert ended is not None
    assert (ended.status, ended.changes) == (CheckpointStatus.CLOSED, ())


async def test_a_document_is_written_anew_before_its_changes_outgrow_it() -> None:
    bank = Bank(10, "step")
    runner = bank.runner(many(1), *(many(1) for _ in range(15)))
    (context,) = contexts(await bank.ask(runner)).values()
    seen = set()
    for _ in range(15):
        (context,) = contexts(await answer(runner, context)).values()
        stored = await bank.store.load("t#x")
        assert stored is not None
        assert sum(map(len, stored.changes)) <= len(stored.data)
        seen.add(bool(stored.changes))
    assert seen == {True, False}


async def test_whoever_changes_what_was_shown_changes_nothing_of_what_asked() -> None:
    bank = Bank(10, "step")
    runner = bank.runner(many(3), say("Done."))
    shown = contexts(await bank.ask(runner))
    info = shown["c0"].info
    assert isinstance(info, CallInfo)
    fitting = yes(shown["c0"])
    info.arguments["amount"] = 1_000_000

    shown = contexts(await collect(runner.resume("t#x", {shown["c0"].id: fitting})))
    later = shown["c1"].info
    assert isinstance(later, CallInfo)
    fitting = yes(shown["c1"])
    later.arguments["amount"] = 1_000_000
    (done, *_) = await collect(runner.resume("t#x", {shown["c1"].id: fitting}))
    assert isinstance(done, ToolEvent)
    assert (done.call.id, done.outcome) == ("c1", ToolOutcome.RAN)


async def test_a_runner_remembers_large_runs_only_as_long_as_there_is_room() -> None:
    runner = Runner(Asker("a"), checkpoint_store=MemoryCheckpointStore())
    for number in range(5):
        text = "x" * 1_500_000
        await collect(runner.query(text, checkpoint_id=str(number)))

    assert list(runner._setup.fresh) == ["3", "4"]


async def test_an_interrupt_keeps_nothing_of_its_run_alive() -> None:
    bank = Bank(10, "interrupt")
    runner = bank.runner(CALL, say("Done."))
    gc.collect()
    gc.disable()  # what only the collector would find is there still
    before = _left()
    try:
        (context,) = contexts(await bank.ask(runner)).values()
        assert _left() == before
        await answer(runner, context)
        assert _left() == before
    finally:
        gc.enable()


def _left() -> int:
    # By its type: `isinstance` would have lazy modules of other libraries load what they stand for.
    return sum(type(tracked) in {Scope, InterruptSignal} for tracked in gc.get_objects())
