"""The judge of webhooks: it finds an event that is lost, out of order, or told twice."""

from __future__ import annotations

import pytest

from bot.records.approval import Execution, ExecutionState, ProgramEventType, Status
from tests.chaos.receiver import Arrival, faults_of
from tests.contract.builders import an_approval

CREATED = Arrival(ProgramEventType.CREATED, 1, "pending")
UPDATED = Arrival(ProgramEventType.UPDATED, 2, "pending")
DECIDED = Arrival(ProgramEventType.DECIDED, 3, "approved")
STARTED = Arrival(ProgramEventType.STARTED, 4, "approved")
ENDED = Arrival(ProgramEventType.ENDED, 5, "approved")
WHOLE = (CREATED, UPDATED, DECIDED, STARTED, ENDED)
RAN = an_approval(status=Status.APPROVED).changed(execution=Execution(state=ExecutionState.ENDED))


def judge(*arrived: Arrival) -> list[str]:
    return faults_of(arrived, RAN, ends={"approved"}, starts=1)


@pytest.mark.parametrize("lost", [CREATED, DECIDED, STARTED, ENDED], ids=lambda event: event.type)
def test_a_lost_event_is_found(lost: Arrival) -> None:
    assert len(judge(*(event for event in WHOLE if event != lost))) == 1


def test_repeated_events_and_merged_updates_are_no_faults() -> None:
    assert judge(*WHOLE) == []
    assert judge(CREATED, CREATED, DECIDED, CREATED, STARTED, ENDED, ENDED) == []


def test_a_later_event_that_comes_first_is_found() -> None:
    assert len(judge(CREATED, DECIDED, UPDATED, STARTED, ENDED)) == 1


def test_a_second_decision_is_found() -> None:
    assert len(judge(*WHOLE, Arrival(ProgramEventType.DECIDED, 6, "rejected"))) == 2
