"""A recorder: no start without its record, and all that comes of it is told, also after a crash."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from agents import InDoubtResult, MemoryCheckpointStore, Runner, ToolOutcome, approval_gate
from agents.core.codec import Json
from agents.core.errors import CheckpointDecodeError
from agents.core.journal import notices_in
from agents.core.observers import (
    CallFinished,
    NodeFailed,
    NodeFinished,
    WorkInDoubt,
    WorkNotice,
    WorkStarted,
)
from agents.core.pending import InterruptContext
from agents.core.scope import StartingCall
from agents.graph import GraphAgent, StateGraph
from agents.models import Turn, call, say
from agents.tools import start_call
from tests.unit.agents.graph.support import State
from tests.unit.agents.support import (
    Died,
    Plain,
    World,
    brief,
    collect,
    contexts,
    die,
    dies_in,
    no,
    yes,
)

AT = "agent:A;tool:pay:c1"
SCRIPT: list[Turn] = [[call("pay", {"x": 2}, id="c1")], say("done")]


class RecordLostError(Exception):
    """The record could not be written."""


@dataclass
class Book:
    """A recorder that remembers, and fails where a test wants it."""

    fails_at: type[WorkNotice | StartingCall] | None = None
    starts: list[StartingCall] = field(default_factory=list)
    notices: list[WorkNotice] = field(default_factory=list)

    async def start(self, call: StartingCall) -> dict[str, Json]:
        self._may_fail(call)
        self.starts += [] if call.only_checks else [call]
        return {}

    async def noted(self, notice: WorkNotice) -> None:
        self._may_fail(notice)
        self.notices.append(notice)

    def _may_fail(self, notice: WorkNotice | StartingCall) -> None:
        if self.fails_at is type(notice):
            self.fails_at = None
            raise RecordLostError

    @property
    def kinds(self) -> list[str]:
        return [type(notice).__name__ for notice in self.notices]


async def begun(
    book: Book, durability: str = "interrupt", *, idempotent: bool = False
) -> tuple[World, Plain, InterruptContext]:
    """A world, its tool, and what people are asked about the one call."""
    pay = Plain("pay", idempotent=idempotent)
    world = World(list(SCRIPT), [approval_gate(pay)], durability=durability, recorder=book)
    world.before_start = book.start
    return world, pay, contexts(await world.run())["c1"]


@pytest.mark.parametrize("durability", ["interrupt", "step"])
async def test_a_start_is_on_record_before_it_and_its_end_after(durability: str) -> None:
    book = Book()
    world, pay, asked = await begun(book, durability)
    seen: list[int] = []

    def look(_: dict[str, Json]) -> str:
        seen.append(len(book.starts))
        return "paid"

    pay.body = look
    assert (book.starts, book.notices) == ([], [])
    await world.resume({asked.id: yes(asked)})
    assert seen == [1]
    [start] = book.starts
    assert (start.checkpoint_id, start.address, start.arguments) == ("1", AT, {"x": 2})
    assert book.notices == [
        WorkStarted(checkpoint_id="1", address=AT),
        CallFinished(checkpoint_id="1", address=AT, outcome=ToolOutcome.RAN, text="paid"),
    ]


async def test_a_start_that_cannot_be_put_on_record_does_not_start() -> None:
    book = Book(fails_at=StartingCall)
    world, pay, asked = await begun(book)
    with pytest.raises(RecordLostError):
        await world.resume({asked.id: yes(asked)})
    assert (pay.calls, book.notices) == ([], [])

    events = await world.recover()  # nobody is in doubt: the answer still counts, once

    assert brief(events)[-1] == "says done"
    assert (len(pay.calls), len(book.starts)) == (1, 1)


@pytest.mark.parametrize("notice", [WorkStarted, CallFinished])
async def test_what_was_not_put_on_record_ends_the_run_and_is_told_again(
    notice: type[WorkNotice],
) -> None:
    book = Book(fails_at=notice)
    world, pay, asked = await begun(book)
    with pytest.raises(RecordLostError):
        await world.resume({asked.id: yes(asked)})
    runs = len(pay.calls)
    assert runs == (1 if notice is CallFinished else 0)
    await world.recover()
    assert len(pay.calls) == runs
    assert notice in {type(recorded) for recorded in book.notices}


async def test_what_a_dead_process_noted_is_told_before_anything_runs() -> None:
    world, pay, asked = await begun(Book())
    await dies_in(pay, world.resume({asked.id: yes(asked)}))
    after = Book()
    world.recorder = after
    doubt = contexts(await world.recover())["c1"]
    assert after.kinds == ["WorkStarted", "WorkInDoubt"]
    assert after.notices[0] == WorkStarted(checkpoint_id="1", address=AT, is_news=False)
    assert after.notices[1].address == AT
    assert after.starts == []

    pay.body = None
    await world.resume({doubt.id: InDoubtResult(choice="again")})
    assert after.kinds[2:] == ["WorkStarted", "CallFinished"]


async def test_a_start_once_more_is_another_and_a_repeated_one_the_same() -> None:
    book = Book()
    world, pay, asked = await begun(book, "step")
    pay.body = die
    with pytest.raises(Died):
        await world.resume({asked.id: yes(asked)})
    doubt = contexts(await world.recover())["c1"]
    with pytest.raises(Died):
        await world.resume({doubt.id: InDoubtResult(choice="again")})
    first, second = book.starts
    assert first.segment != second.segment

    book = Book()
    world, pay, asked = await begun(book, "step", idempotent=True)
    await dies_in(pay, world.resume({asked.id: yes(asked)}))
    await world.recover()
    first, second = book.starts
    assert (first.segment, first.repeats, second.repeats) == (second.segment, False, True)


async def test_a_doubt_that_cannot_be_put_on_record_is_no_failure_of_the_call() -> None:
    book = Book()
    world, pay, asked = await begun(book)
    await dies_in(pay, world.resume({asked.id: yes(asked)}))
    book.fails_at = WorkInDoubt
    with pytest.raises(RecordLostError):
        await world.recover()
    assert list(contexts(await world.recover())) == ["c1"]
    assert len(pay.calls) == 1


async def test_a_rejected_call_does_not_start() -> None:
    book = Book()
    world, _, asked = await begun(book, "step")
    await world.resume({asked.id: no(asked, "too much")})
    assert book.starts == []
    [finished] = book.notices
    assert isinstance(finished, CallFinished)
    assert finished.outcome is ToolOutcome.REJECTED


async def test_the_text_of_a_failed_call_is_its_error() -> None:
    book = Book()
    world, pay, asked = await begun(book)

    def fail(_: dict[str, Json]) -> str:
        raise OSError("the disk is full")

    pay.body = fail
    await world.resume({asked.id: yes(asked)})
    finished = book.notices[-1]
    assert isinstance(finished, CallFinished)
    assert (finished.outcome, finished.text) == (ToolOutcome.FAILED, "OSError: the disk is full")


async def test_without_a_store_a_start_is_on_record_all_the_same() -> None:
    async def begin(arguments: dict[str, Json]) -> str:
        await start_call(pay.definition, arguments)
        return "paid"

    book, pay = Book(), Plain("pay", body=begin)
    agent = World(list(SCRIPT), [pay]).agent()
    await collect(Runner(agent, before_start=book.start, recorder=book).query("Go."))
    [start] = book.starts
    assert (start.checkpoint_id, start.address, start.segment) == ("", AT, 0)
    assert book.kinds == ["WorkStarted", "CallFinished"]


@pytest.mark.parametrize("error", [None, OSError("full")])
async def test_steps_behind_a_breakpoint_are_told_as_well(error: OSError | None) -> None:
    book, store = Book(), MemoryCheckpointStore()

    def deploy(state: State) -> dict[str, object]:
        if error is not None:
            raise error
        return {"foo": "deployed"}

    def runner() -> Runner:
        graph = StateGraph(State).add_node("deploy", deploy)
        graph.add_edge("__start__", "deploy").add_edge("deploy", "__end__")
        ship = graph.compile(interrupt_before=["deploy"])
        agent = GraphAgent(ship, "ship", to_input=lambda _: {}, to_text=str)
        return Runner(agent, checkpoint_store=store, before_start=book.start, recorder=book)

    await collect(runner().query("Go.", checkpoint_id="1"))
    [waiting] = await runner().pending("1")
    work = runner().resume("1", {waiting.id: True})
    if error is None:
        await collect(work)
    else:
        with pytest.raises(OSError, match="full"):
            await collect(work)
    [start] = book.starts
    assert (start.arguments, start.address.split(";")[-1]) == ({}, "node:deploy")
    end = book.notices[-1]
    assert book.notices[:-1] == [WorkStarted(checkpoint_id="1", address=start.address)]
    if error is None:
        assert end == NodeFinished(checkpoint_id="1", address=start.address)
    else:
        error_text = "OSError: full"
        assert end == NodeFailed(checkpoint_id="1", address=start.address, error=error_text)


@pytest.mark.parametrize("entry", ["[]", "{", '{"kind":"finished","at":"a","outcome":"gone"}'])
def test_a_damaged_journal_is_an_error(entry: str) -> None:
    with pytest.raises(CheckpointDecodeError):
        list(notices_in("1", [entry]))
