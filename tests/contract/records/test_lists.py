"""The lists that people are shown: in order, bounded, and by an index; on each database."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from bot.records.approval import Approval, Kind, Status
from bot.records.approval_queries import START, calls_of, ended_of, named, waiting
from bot.stores import Stores
from storage.documents import Place
from tests.contract.builders import DIGEST, THREAD_ID, a_decision, a_grant, an_approval
from tests.contract.spoiling import spoil
from tests.support.decided import decide


def numbered(number: int, **changes: object) -> Approval:
    fields: dict[str, object] = {"approval_id": f"apr_{number:03}", "position": number, **changes}
    return an_approval(**fields)


async def approve(storage: Stores, approval_id: str, by: str, at_ms: int = 2_000) -> None:
    decision = a_decision(by=by, at_ms=at_ms)
    await decide(storage.approvals, approval_id, decision, digest=DIGEST)


async def test_what_waits_comes_by_its_deadline(storage: Stores) -> None:
    times = {1: 9_000, 2: 7_000, 3: 8_000, 4: 7_000}
    for number, expires_ms in times.items():
        await storage.approvals.insert(numbered(number, expires_ms=expires_ms))

    approvals, after = await waiting(storage.approvals, now_ms=1_000, limit=9)

    assert [approval.approval_id for approval in approvals] == [
        "apr_002",
        "apr_004",
        "apr_003",
        "apr_001",
    ]
    assert after is None


async def test_what_waits_comes_page_by_page_and_once(storage: Stores) -> None:
    for number in range(7):
        await storage.approvals.insert(numbered(number, expires_ms=9_000 + number // 3))
    seen: list[str] = []
    after: Place | None = START
    while after is not None:
        page, after = await waiting(storage.approvals, now_ms=1_000, limit=2, after=after)
        assert len(page) <= 2
        seen += [approval.approval_id for approval in page]

    assert seen == [f"apr_{number:03}" for number in range(7)]


async def test_i14_what_cannot_be_read_hides_nothing_behind_it(storage: Stores) -> None:
    """Each list is read to its end, whether its records are damaged or of another release."""
    for number in range(9):
        await storage.approvals.insert(
            numbered(number, expires_ms=9_000 + number, requester_id="U1")
        )
    for number, harm in ((0, {"v": 2}), (1, {"position": "x"}), (4, {"v": 2}), (5, {"v": 2})):
        await spoil(storage, "approvals", f"apr_{number:03}", **harm)
    good = [f"apr_{number:03}" for number in (2, 3, 6, 7, 8)]

    async def all_pages(
        read: Callable[..., Awaitable[tuple[Sequence[Approval], Place | None]]],
    ) -> list[str]:
        seen: list[str] = []
        after: Place | None = START
        while after is not None:
            page, after = await read(now_ms=1_000, limit=2, after=after)
            seen += [approval.approval_id for approval in page]
        return seen

    assert await all_pages(partial(waiting, storage.approvals)) == good
    assert await all_pages(partial(waiting, storage.approvals, asked_by="U1")) == good
    assert [
        approval.approval_id for approval in await named(storage.approvals, "apr_", limit=3)
    ] == good[:3]
    calls = await calls_of(storage.approvals, THREAD_ID, tool="deploy", since_ms=0, limit=4)
    assert [approval.approval_id for approval in calls] == good[:0:-1]


async def test_i14_what_ended_and_cannot_be_read_hides_nothing(storage: Stores) -> None:
    for number in range(6):
        await storage.approvals.insert(numbered(number, created_ms=10 * number))
        await approve(storage, f"apr_{number:03}", "U2")
    for number in (5, 4):
        await spoil(storage, "approvals", f"apr_{number:03}", v=2)

    for user_id in ("U1", "U2"):
        approvals = await ended_of(storage.approvals, user_id, limit=2)
        assert [approval.approval_id for approval in approvals] == ["apr_003", "apr_002"]


async def test_i14_a_grant_that_cannot_be_read_hides_none(storage: Stores) -> None:
    for number in range(5):
        await storage.grants.add(a_grant(grant_id=f"g{number}", until_ms=9_000 + number))
    for number in (0, 1):
        await spoil(storage, "grants", f"g{number}", v=2)

    grants = await storage.grants.of_team("T1", now_ms=1_000, limit=2)

    assert sorted(grant.grant_id for grant in grants) == ["g2", "g3"]


async def test_own_requests_come_page_by_page(storage: Stores) -> None:
    for number in range(6):
        asked = "U1" if number % 2 else "U9"
        await storage.approvals.insert(
            numbered(number, expires_ms=9_000 + number // 4, requester_id=asked)
        )
    await approve(storage, "apr_001", "U2")
    first, after = await waiting(storage.approvals, asked_by="U1", now_ms=1_000, limit=1)
    assert after is not None
    second, after = await waiting(
        storage.approvals, asked_by="U1", now_ms=1_000, limit=2, after=after
    )
    assert [approval.approval_id for approval in (*first, *second)] == ["apr_003", "apr_005"]
    assert after is None


async def test_what_is_decided_or_past_its_deadline_does_not_wait(storage: Stores) -> None:
    for number, expires_ms in enumerate((9_000, 9_000, 3_000)):
        await storage.approvals.insert(numbered(number, expires_ms=expires_ms))
    await approve(storage, "apr_000", "U2")

    approvals, _ = await waiting(storage.approvals, now_ms=3_000, limit=9)

    assert [approval.approval_id for approval in approvals] == ["apr_001"]


async def test_what_ended_is_of_who_decided_it_and_of_who_asked(storage: Stores) -> None:
    for number, (asked, made_ms) in enumerate([("U1", 10), ("U9", 20), ("U9", 30), ("U1", 40)]):
        await storage.approvals.insert(numbered(number, requester_id=asked, created_ms=made_ms))
    await approve(storage, "apr_000", "U2")  # asked for by U1
    await approve(storage, "apr_001", "U1")  # decided by U1
    await approve(storage, "apr_002", "U2")  # no business of U1
    # the last one of U1 still waits

    approvals = await ended_of(storage.approvals, "U1", limit=9)

    assert [approval.approval_id for approval in approvals] == ["apr_001", "apr_000"]
    assert [
        approval.approval_id for approval in await ended_of(storage.approvals, "U1", limit=1)
    ] == ["apr_001"]
    assert await ended_of(storage.approvals, "U1", limit=0) == []
    assert await ended_of(storage.approvals, "U5", limit=9) == []


async def test_who_asked_and_decided_reads_it_once(storage: Stores) -> None:
    await storage.approvals.insert(numbered(1))
    await approve(storage, "apr_001", "U1")
    assert len(await ended_of(storage.approvals, "U1", limit=9)) == 1


async def test_requests_are_found_by_the_beginning_of_their_ids(storage: Stores) -> None:
    for name in ("apr_0a1", "apr_0a2", "apr_0b1"):
        await storage.approvals.insert(an_approval(approval_id=name))

    approvals = await named(storage.approvals, "apr_0a", limit=9)

    assert [approval.approval_id for approval in approvals] == ["apr_0a1", "apr_0a2"]
    assert len(await named(storage.approvals, "apr_0a", limit=1)) == 1
    assert await named(storage.approvals, "apr_.", limit=9) == []


async def test_calls_of_a_thread_are_those_of_one_tool_since_then(storage: Stores) -> None:
    fields: tuple[dict[str, Any], ...] = (
        {"created_ms": 999},
        {"created_ms": 1_000},
        {"created_ms": 3_000},
        {"tool": "refund"},
        {"kind": Kind.QUESTION},
        {"kind": Kind.DOUBT},
        {"thread_id": "T1:C1:1800000000.000200"},
        {"created_ms": 2_000, "status": Status.EXPIRED},
    )
    for number, changes in enumerate(fields):
        await storage.approvals.insert(numbered(number, **{"created_ms": 1_500, **changes}))

    async def deploys(limit: int) -> list[str]:
        calls = await calls_of(
            storage.approvals, THREAD_ID, tool="deploy", since_ms=1_000, limit=limit
        )
        return [approval.approval_id for approval in calls]

    assert await deploys(9) == ["apr_002", "apr_007", "apr_001"]
    assert await deploys(2) == ["apr_002", "apr_007"]


async def test_grants_that_last_are_those_of_the_workspace(storage: Stores) -> None:
    fields: dict[str, dict[str, Any]] = {
        "late": {"created_ms": 3},
        "early": {"created_ms": 2},
        "over": {"until_ms": 1_000},
        "elsewhere": {"team_id": "T2"},
        "used": {"uses": ("a", "b")},
        "ended": {},
    }
    for name, changes in fields.items():
        await storage.grants.add(a_grant(name, **changes))
    await storage.grants.end("ended", by="U1", now_ms=1_000)

    grants = await storage.grants.of_team("T1", now_ms=1_000, limit=9)

    assert [grant.grant_id for grant in grants] == ["early", "late"]
    assert len(await storage.grants.of_team("T1", now_ms=1_000, limit=1)) <= 1
