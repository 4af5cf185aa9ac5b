"""Each condition of a write, alone: the right record, of this release, under the lease."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from bot.stores import Stores
from storage.errors import RecordConflictError, RecordFormatError
from storage.ports.approvals import ApprovalStore
from storage.records import Status
from tests.contract.builders import DIGEST, a_decision, an_approval
from tests.contract.spoiling import COLUMNS, raw, spoil

NOW = 1_200
UNTIL = 1_900


@dataclass(frozen=True)
class Write:
    """Something that changes one approval.

    Attributes:
        run: Does it, as the holder of a lease with a fence.
        before: Fields that the record must have.
        needs: Under which conditions it is done: "lease", "pending", "digest" for the one that is
            on record, and "v" for this release.
    """

    run: Callable[[ApprovalStore, str, int], Awaitable[object]]
    needs: frozenset[str]
    before: dict[str, Any] = field(default_factory=dict)


def body(stored: dict[str, Any]) -> dict[str, Any]:
    """A stored record without what the engine keeps beside it."""
    return {name: value for name, value in stored.items() if name not in {*COLUMNS, "_work"}}


def the_write(
    run: Callable[[ApprovalStore, str, int], Awaitable[object]], needs: str, **before: Any
) -> Write:
    return Write(run, frozenset(needs.split()), before)


DECIDED = {"status": Status.APPROVED, "decision": a_decision()}
WRITES = {
    "decide": the_write(
        lambda store, key, _: store.decide(key, a_decision(), digest=DIGEST), "pending digest v"
    ),
    "withdraw": the_write(
        lambda store, key, _: store.withdraw(key, a_decision(status=Status.CANCELLED)),
        "v",
        **DECIDED,
    ),
    "vote": the_write(
        lambda store, key, _: store.vote(
            an_approval(approval_id=key, votes_json='[{"by":"U2"}]'), revision=1, now_ms=NOW
        ),
        "pending digest v",
    ),
    "rebind": the_write(
        lambda store, key, _: store.rebind(
            an_approval(approval_id=key, digest="e" * 64), digest=DIGEST, now_ms=NOW
        ),
        "pending digest v",
    ),
    "set_said": the_write(
        lambda store, key, _: store.set_said(key, '["a"]', revision=1, now_ms=NOW), "pending v"
    ),
    "annotate": the_write(
        lambda store, key, _: store.annotate(
            an_approval(approval_id=key, claim_json='{"by":"U2"}'), revision=1, now_ms=NOW
        ),
        "pending v",
    ),
    "mark_seen": the_write(
        lambda store, key, _: store.mark_seen(key, digest=DIGEST, before="[]", seen_json="[1]"),
        "pending digest v",
    ),
    "mark_run": the_write(
        lambda store, key, _: store.mark_run(key, was="", run_json="{}", now_ms=NOW), "v", **DECIDED
    ),
    "redraw": the_write(lambda store, key, _: store.redraw(key, now_ms=NOW), "v"),
    "close": the_write(lambda store, key, _: store.close(key), ""),
    "claim": the_write(
        lambda store, key, _: store.claim(key, owner="b", now_ms=UNTIL, until_ms=2_500), "v"
    ),
    "mark_card": the_write(
        lambda store, key, fence: store.mark_card(key, fence=fence, card_ts="1", drawn_revision=1),
        "lease",
    ),
    "mark_undeliverable": the_write(
        lambda store, key, fence: store.mark_undeliverable(key, fence=fence, reason="x"), "lease"
    ),
    "mark_reminded": the_write(
        lambda store, key, fence: store.mark_reminded(
            key, fence=fence, digest=DIGEST, remind_ms=7_000, reminder_ts="1"
        ),
        "lease pending digest",
    ),
    "mark_stuck": the_write(
        lambda store, key, fence: store.mark_stuck(key, fence=fence, digest=DIGEST, stuck="x"),
        "lease pending digest",
    ),
    "escalate": the_write(
        lambda store, key, fence: store.escalate(key, fence=fence, now_ms=NOW),
        "lease pending v",
        escalate_ms=NOW,
    ),
    "mark_escalation_told": the_write(
        lambda store, key, fence: store.mark_escalation_told(
            key, fence=fence, digest=DIGEST, escalation_ts="1"
        ),
        "lease digest",
    ),
    "mark_messages": the_write(
        lambda store, key, fence: store.mark_messages(
            key, fence=fence, reminder_ts="1", escalation_ts=None
        ),
        "lease",
    ),
    "climb": the_write(
        lambda store, key, fence: store.climb(
            an_approval(approval_id=key, fence=fence, steps=1),
            revision=1,
            now_ms=NOW,
            redraws=True,
        ),
        "lease pending v",
    ),
    "mark_beside": the_write(
        lambda store, key, fence: store.mark_beside(key, fence=fence, cards_json="[1]"), "lease"
    ),
    "release": the_write(
        lambda store, key, fence: store.release(
            key, fence=fence, revision=1, due_ms=None, now_ms=NOW
        ),
        "lease",
    ),
}


def those(need: str) -> list[str]:
    return [name for name, write in WRITES.items() if need in write.needs]


async def added(storage: Stores, key: str, write: Write) -> int:
    """Add the record that a write is about, take its lease, and give its fence."""
    await storage.approvals.add(replace(an_approval(approval_id=key), **write.before))
    claimed = await storage.approvals.claim(key, owner="a", now_ms=1_000, until_ms=UNTIL)
    assert claimed is not None
    return claimed.fence


async def tried(storage: Stores, write: Write, key: str, fence: int) -> bool:
    """Whether it was done."""
    try:
        return await write.run(storage.approvals, key, fence) not in {None, False}
    except (RecordConflictError, RecordFormatError):
        return False


@pytest.mark.parametrize("name", WRITES)
async def test_a_write_changes_the_record_that_it_names_and_no_other(
    storage: Stores, name: str
) -> None:
    write = WRITES[name]
    others = ("apr_1", "apr_3")
    for key in others:
        await added(storage, key, write)
    fence = await added(storage, "apr_2", write)
    before = {key: await raw(storage, "approvals", key) for key in ("apr_1", "apr_2", "apr_3")}

    assert await tried(storage, write, "apr_2", fence) or name == "close"

    assert await raw(storage, "approvals", "apr_2") != before["apr_2"]
    for key in others:
        assert await raw(storage, "approvals", key) == before[key]


@pytest.mark.parametrize("name", those("v"))
async def test_a_write_leaves_alone_what_a_newer_release_wrote(storage: Stores, name: str) -> None:
    write = WRITES[name]
    fence = await added(storage, "apr_1", write)
    await spoil(storage, "approvals", "apr_1", v=9)
    before = await raw(storage, "approvals", "apr_1")

    assert not await tried(storage, write, "apr_1", fence)
    assert body(await raw(storage, "approvals", "apr_1")) == body(before)


@pytest.mark.parametrize("name", those("lease"))
async def test_a_write_needs_the_lease(storage: Stores, name: str) -> None:
    write = WRITES[name]
    fence = await added(storage, "apr_1", write)
    before = await raw(storage, "approvals", "apr_1")
    for other in (fence - 1, fence + 1):
        assert not await tried(storage, write, "apr_1", other)
    assert await raw(storage, "approvals", "apr_1") == before
    await storage.approvals.release("apr_1", fence=fence, revision=1, due_ms=NOW, now_ms=NOW)
    before = await raw(storage, "approvals", "apr_1")

    assert not await tried(storage, write, "apr_1", fence)
    assert await raw(storage, "approvals", "apr_1") == before


@pytest.mark.parametrize("name", those("pending"))
async def test_a_write_needs_that_nobody_has_decided(storage: Stores, name: str) -> None:
    write = WRITES[name]
    for status in set(Status) - {Status.PENDING}:
        key = f"apr_{status.value}"
        fence = await added(storage, key, write)
        await spoil(storage, "approvals", key, status=status.value)
        before = await raw(storage, "approvals", key)

        assert not await tried(storage, write, key, fence), status
        assert await raw(storage, "approvals", key) == before, status


@pytest.mark.parametrize("name", those("digest"))
async def test_a_write_is_about_the_call_that_is_on_record(storage: Stores, name: str) -> None:
    write = WRITES[name]
    fence = await added(storage, "apr_1", write)
    await spoil(storage, "approvals", "apr_1", digest="e" * 64)
    before = await raw(storage, "approvals", "apr_1")

    assert not await tried(storage, write, "apr_1", fence)
    assert await raw(storage, "approvals", "apr_1") == before


@pytest.mark.parametrize("now_ms", [1_000, UNTIL - 1])
async def test_nobody_takes_a_lease_that_another_has(storage: Stores, now_ms: int) -> None:
    await added(storage, "apr_1", WRITES["claim"])
    await spoil(storage, "approvals", "apr_1", due_ms=1_000)  # due, and still taken

    assert await storage.approvals.due(now_ms=now_ms, limit=9) == []
    assert await storage.approvals.count_due(now_ms=now_ms) == 0
    assert not await storage.approvals.claim("apr_1", owner="b", now_ms=now_ms, until_ms=2_500)
    assert await storage.approvals.claim("apr_1", owner="b", now_ms=UNTIL, until_ms=2_500)


async def test_nobody_takes_what_is_not_due(storage: Stores) -> None:
    await storage.approvals.add(an_approval(approval_id="apr_1", due_ms=1_000))
    await storage.approvals.add(an_approval(approval_id="apr_2", due_ms=None))
    for key in ("apr_1", "apr_2"):
        assert not await storage.approvals.claim(key, owner="a", now_ms=999, until_ms=2_000)

    assert await storage.approvals.claim("apr_1", owner="a", now_ms=1_000, until_ms=2_000)
    assert not await storage.approvals.claim("apr_2", owner="a", now_ms=1_000, until_ms=2_000)


async def test_a_claim_takes_what_another_release_could_not_read(storage: Stores) -> None:
    await storage.approvals.add(an_approval(approval_id="apr_1"))
    mark = {"quarantined_by": "another", "quarantine_reason": "a field"}
    await spoil(storage, "approvals", "apr_1", **mark)

    assert await storage.approvals.claim("apr_1", owner="a", now_ms=1_000, until_ms=2_000)


async def test_a_newer_release_looks_after_its_own_cards(storage: Stores) -> None:
    await storage.approvals.add(an_approval(approval_id="apr_1", undeliverable="token_revoked"))
    await spoil(storage, "approvals", "apr_1", v=9)
    before = await raw(storage, "approvals", "apr_1")

    reasons = frozenset({"token_revoked"})
    assert await storage.approvals.undelivered(reasons=reasons, limit=9) == []
    assert body(await raw(storage, "approvals", "apr_1")) == body(before)
