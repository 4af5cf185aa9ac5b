"""What is written together is counted as if it was written one by one."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext

import pytest

from bot.observability.instrument import MeteredStorage
from bot.observability.telemetry import Count, Telemetry, Time
from storage.base import Storage
from storage.records import DrawnCard, Kind
from storage.sqlite import SqliteStorage
from tests.contract.builders import APPROVAL_ID, DIGEST, a_decision, an_approval, an_entry
from tests.support.fakes import FakeClock


class Tally(Telemetry):
    """Counts what is counted and timed."""

    def __init__(self) -> None:
        self.of: Counter[Count | Time] = Counter()
        self.spans: list[str] = []

    def count(self, name: Count, **_: str) -> None:
        self.of[name] += 1

    def observe(self, name: Time, seconds: float, **_: str) -> None:
        self.of[name] += 1

    def span(self, name: str, request: str, **_: str) -> nullcontext[None]:
        self.spans.append(name)
        return nullcontext()


@pytest.fixture
def tally() -> Tally:
    return Tally()


@pytest.fixture
def metered(storage: SqliteStorage, tally: Tally) -> Storage:
    return MeteredStorage.around(storage, tally, FakeClock())


async def test_requests_made_together_are_counted_once_each(metered: Storage, tally: Tally) -> None:
    approvals = [an_approval(), an_approval(approval_id="b", kind=Kind.DOUBT)]

    await metered.approvals.add_all(approvals)
    await metered.approvals.add_all(approvals)

    assert tally.of == {Count.REQUESTED: 2, Count.IN_DOUBT: 1}
    assert tally.spans == ["ask"] * 4


async def test_entries_kept_together_are_counted(metered: Storage, tally: Tally) -> None:
    await metered.audit.append_all(
        [an_entry("a", action="refused"), an_entry("b", detail={"outcome": "ran"}), an_entry("c")]
    )

    assert tally.of == {Count.REFUSED_CLICKS: 1, Count.TOOL_CALLS: 1}


async def test_the_way_from_a_decision_to_its_card_and_its_run_is_timed(
    metered: Storage, tally: Tally
) -> None:
    await metered.approvals.add(an_approval())
    decided = await metered.approvals.decide(APPROVAL_ID, a_decision(), digest=DIGEST)
    claimed = await metered.approvals.claim(APPROVAL_ID, owner="a", now_ms=2_000, until_ms=3_000)
    assert claimed is not None
    await metered.approvals.close_all([APPROVAL_ID, "another"])

    await metered.approvals.release(
        APPROVAL_ID,
        fence=claimed.fence,
        revision=decided.revision,
        due_ms=None,
        now_ms=2_500,
        drawn=DrawnCard(card_ts="1.2", revision=decided.revision),
    )

    assert (tally.of[Time.RESUME], tally.of[Time.REDRAW]) == (1, 1)


async def test_a_card_is_not_drawn_by_who_lost_the_lease(metered: Storage, tally: Tally) -> None:
    await metered.approvals.add(an_approval())
    await metered.approvals.decide(APPROVAL_ID, a_decision(), digest=DIGEST)

    await metered.approvals.release(
        APPROVAL_ID,
        fence=7,
        revision=2,
        due_ms=None,
        now_ms=2_500,
        drawn=DrawnCard(card_ts="1.2", revision=2),
        failed=True,
    )

    assert tally.of[Time.REDRAW] == 0
    assert tally.of[Count.RETRIES] == 1
