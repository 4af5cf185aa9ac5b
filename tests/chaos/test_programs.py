"""The judge of a play with programs finds each of the faults that it is there for."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from bot.records.approval import (
    Approval,
    Execution,
    ExecutionState,
    ProgramEventType,
    ProgramRun,
    Status,
)
from storage.audit import AuditEntry
from tests.chaos.programs import AskingPrograms
from tests.chaos.receiver import Arrival
from tests.chaos.test_chaos import on_sqlite
from tests.contract.builders import a_decision, an_approval
from tests.support.stores import SqliteStores

Plant = Callable[["World"], None]


def ran(**changes: Any) -> Execution:
    execution = Execution(
        state=ExecutionState.ENDED, number=1, program=ProgramRun(generation=1, token="t")
    )
    return execution.changed(**changes)


@dataclass
class World:
    """A play of one job after a good end, in which tests change something.

    Attributes:
        approval: The request; None if it is lost.
        journal: What the programs wrote.
        audit: The acts about the request.
        events: What the receiver took.
        frozen: Times of freezes.
        cards: How many cards there are.
    """

    approval: Approval | None
    journal: list[dict[str, Any]]
    audit: list[str]
    events: list[Arrival]
    frozen: list[tuple[int, int]] = field(default_factory=list)
    cards: int = 1

    def change(self, **changes: Any) -> None:
        """Change the request."""
        assert self.approval is not None
        self.approval = self.approval.changed(**changes)

    def again(self, what: str, **changes: Any) -> None:
        """Let a program write a line once more, with changes."""
        line = next(line for line in self.journal if line["what"] == what)
        self.journal.append({**line, **changes})


def world() -> World:
    approval = an_approval(
        tool="pay",
        status=Status.APPROVED,
        open=False,
        decision=a_decision(),
        arguments={"ref": "job-0-1", "amount": 10},
        execution=ran(),
    )
    arguments = dict(approval.arguments)
    types = (
        (ProgramEventType.CREATED, "pending"),
        (ProgramEventType.DECIDED, "approved"),
        (ProgramEventType.STARTED, "approved"),
        (ProgramEventType.ENDED, "approved"),
    )
    return World(
        approval=approval,
        journal=[
            {"what": "asked", "id": approval.approval_id, "at_ms": 1_000},
            {"what": "decided", "status": "approved", "at_ms": 2_000},
            {"what": "started", "generation": 1, "token": "t", "asked_ms": 3_000, "at_ms": 3_050},
            {"what": "acted", "arguments": arguments, "execution_id": "exe_1", "at_ms": 3_100},
            {"what": "over", "at_ms": 3_200},
        ],
        audit=["requested", "decided", "started"],
        events=[
            Arrival(event_type, number, status)
            for number, (event_type, status) in enumerate(types, 1)
        ],
    )


async def judged(made: World, directory: Path, storage: SqliteStores) -> list[str]:
    """Put a world where the play looks, and return what it finds wrong."""
    play = AskingPrograms(on_sqlite(directory, threads=1))
    play._make_channels()
    asked = next(line["id"] for line in made.journal if line["what"] == "asked")
    play.journal.write_text("".join(f"{json.dumps({'job': 0, **x})}\n" for x in made.journal))
    play.receiver.arrived[asked] = made.events
    play.frozen = made.frozen
    if made.approval is not None:
        await storage.approvals.insert(made.approval)
    for number, action in enumerate(made.audit):
        thread_id = an_approval().thread_id
        entry = AuditEntry(
            entry_id=f"e{number}",
            at_ms=number,
            action=action,
            thread_id=thread_id,
            approval_id=asked,
        )
        await storage.audit.append(entry)
    channel = play.sandbox.workspace.channels[play.channels[0]]
    metadata = {"event_type": "countersign_card", "event_payload": {"id": asked}}
    bot = play.sandbox.user_id("countersign")
    for _ in range(made.cards):
        play.sandbox.workspace.post(channel, bot, "", metadata=metadata)
    return (await play.check(storage)).wrong


async def test_a_good_end_is_no_fault(tmp_path: Path, storage: SqliteStores) -> None:
    assert await judged(world(), tmp_path, storage) == []


def lost(made: World) -> None:
    made.approval = None


def asked_twice(made: World) -> None:
    made.again("asked", id="apr_2")


def decided_twice_for_programs(made: World) -> None:
    made.again("decided", status="rejected")


def decided_twice_in_the_audit(made: World) -> None:
    made.audit.append("decided")


def undecided(made: World) -> None:
    made.change(status=Status.PENDING, decision=None)


def another_decision(made: World) -> None:
    made.change(status=Status.REJECTED)


def acted_twice(made: World) -> None:
    made.again("acted")


def started_twice(made: World) -> None:
    made.change(execution=ran(program=ProgramRun(generation=2, token="u")))


def two_tokens(made: World) -> None:
    made.again("started", token="u")


def left_in_the_middle(made: World) -> None:
    made.change(execution=ran(state=ExecutionState.STARTED))


def started_without_a_record(made: World) -> None:
    made.audit.remove("started")


def other_arguments(made: World) -> None:
    made.journal[3]["arguments"] = {"ref": "job-0-1", "amount": 1_000}


def started_under_a_freeze(made: World) -> None:
    made.frozen.append((2_900, 3_100))


def webhook_missing(made: World) -> None:
    made.events.pop()


def webhooks_out_of_order(made: World) -> None:
    made.events[1], made.events[2] = made.events[2], made.events[1]


def webhook_of_another_decision(made: World) -> None:
    made.events[1] = replace(made.events[1], status="rejected")


def two_cards(made: World) -> None:
    made.cards = 2


@pytest.mark.parametrize(
    ("plant", "words"),
    [
        (lost, "lost: "),
        (asked_twice, "its key names 2 requests"),
        (decided_twice_for_programs, "it ended as ['approved', 'rejected']"),
        (decided_twice_in_the_audit, "its audit has {'requested': 1, 'decided': 2, 'started': 1}"),
        (undecided, "it is not over: pending"),
        (another_decision, "it ran, and is rejected"),
        (acted_twice, "it ran 2 times"),
        (started_twice, "2 starts, and people let it run again 0 times"),
        (two_tokens, "a start has several tokens: {1: 2}"),
        (left_in_the_middle, "its execution is left started"),
        (started_without_a_record, "it started, and its audit has {'requested': 1, 'decided': 1}"),
        (other_arguments, "other arguments ran than were approved"),
        (started_under_a_freeze, "a program got a start under a confirmed freeze"),
        (webhook_missing, "0 events execution.ended arrived, not 1"),
        (webhooks_out_of_order, "its events came first in the order [1, 3, 2, 4]"),
        (webhook_of_another_decision, "its events told ['rejected'], and its program read"),
        (two_cards, "approval: there are 2 cards"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
async def test_a_fault_is_found(
    tmp_path: Path, storage: SqliteStores, plant: Plant, words: str
) -> None:
    made = world()
    plant(made)
    wrong = await judged(made, tmp_path, storage)
    assert any(line.startswith(f"job 0 (once): {words}") for line in wrong), wrong
