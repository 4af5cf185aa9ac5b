"""Reads approvals by the indexes of their collection.

What decides something raises where one cannot be read: to leave it out would be to ask twice, or to
lose a decision. What is only shown passes over it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from bot.approvals.model import ENDED, PENDING, Approval, Kind
from storage.documents import Collection, Place
from storage.errors import RecordNotFoundError

ApprovalCollection: TypeAlias = Collection[Approval]

START: Place = (0, "")
"""Before the first page of a list."""


async def get_all(approvals: ApprovalCollection, ids: Sequence[str]) -> list[Approval]:
    """Read several in one command, in the order of their ids.

    Raises:
        RecordNotFoundError: No approval has one of these ids.
        RecordFormatError: One cannot be read.
    """
    where = {"id": {"$in": list(ids)}}
    found = (await approvals.find(where, strict=True)).documents if ids else []
    by_id = {one.approval_id: one for one in found}
    if missing := [name for name in ids if name not in by_id]:
        raise RecordNotFoundError("approval", missing[0])
    return [by_id[name] for name in ids]


async def open_of(approvals: ApprovalCollection, thread_id: str) -> list[Approval]:
    """Read the open approvals of a thread, by creation time, then position.

    Raises:
        RecordFormatError: One cannot be read.
    """
    where = {"thread_id": thread_id, "open": True}
    order = ["created_ms", "position"]
    return (await approvals.find(where, sort=order, strict=True)).documents


async def newest_of(approvals: ApprovalCollection, thread_id: str, *, limit: int) -> list[Approval]:
    """Read approvals of a thread that can be read, newest first."""
    order = ["-created_ms", "-position"]
    return (await approvals.find({"thread_id": thread_id}, sort=order, limit=limit)).documents


async def of_turn(approvals: ApprovalCollection, checkpoint_id: str) -> list[Approval]:
    """Read the approvals of one turn that can be read, by creation time, then position."""
    thread_id, _, turn = checkpoint_id.rpartition("#")
    where = {"thread_id": thread_id, "turn": int(turn)}
    return (await approvals.find(where, sort=["created_ms", "position"])).documents


async def calls_of(
    approvals: ApprovalCollection, thread_id: str, *, tool: str, since_ms: int, limit: int
) -> list[Approval]:
    """Read calls of a tool that people of a thread were asked about since then, newest first."""
    where = {"thread_id": thread_id, "created_ms": {"$gte": since_ms}}
    order = ["-created_ms", "-position"]
    found: list[Approval] = []
    after: Place | None = None
    while len(found) < limit:
        page = await approvals.find(where, sort=order, limit=limit, after=after)
        calls = (one for one in page.documents if one.kind is Kind.APPROVAL)
        found += [one for one in calls if one.tool == tool]
        after = page.last
        if after is None:
            break
    return found[: max(limit, 0)]


async def waiting(
    approvals: ApprovalCollection,
    *,
    now_ms: int,
    limit: int,
    after: Place = START,
    asked_by: str = "",
) -> tuple[list[Approval], Place | None]:
    """Read a page of pending approvals that expire later, the earliest deadline first.

    Args:
        approvals: Stored approvals.
        now_ms: The time now.
        limit: The most of one page.
        after: Where the page before ended.
        asked_by: Slack user id of the first requester; empty for anybody.

    Returns:
        They, and where the page ended; None where nothing comes after it.
    """
    where = {**PENDING, "expires_ms": {"$gt": now_ms}}
    if asked_by:
        where["requester_id"] = asked_by
    page = await approvals.find(where, sort=["expires_ms"], limit=limit, after=after)
    return page.documents, page.last


async def ended_of(approvals: ApprovalCollection, user_id: str, *, limit: int) -> list[Approval]:
    """Read approvals that have ended, and that a person decided or asked for; newest first."""
    found: dict[str, Approval] = {}
    for name in ("decision.by", "requester_id"):
        where = {name: user_id, **ENDED}
        page = await approvals.find(where, sort=["-created_ms"], limit=limit)
        found |= {one.approval_id: one for one in page.documents}
    newest_first = sorted(
        found.values(), key=lambda one: (one.created_ms, one.approval_id), reverse=True
    )
    return newest_first[: max(limit, 0)]


async def named(approvals: ApprovalCollection, prefix: str, *, limit: int) -> list[Approval]:
    """Read approvals whose id begins so, in the order of their ids."""
    ids = {"$gte": prefix, "$lt": f"{prefix}{chr(0x10FFFF)}"}
    return (await approvals.find({"id": ids}, limit=limit)).documents


async def undelivered(
    approvals: ApprovalCollection, *, reasons: frozenset[str], limit: int
) -> list[Approval]:
    """Read approvals whose card Slack refused for one of these reasons, newest first."""
    where = {"card.error": {"$in": sorted(reasons - {""}), "$gt": ""}}
    return (await approvals.find(where, sort=["-created_ms"], limit=limit)).documents


async def count_pending(approvals: ApprovalCollection) -> int:
    """Count the approvals that nobody has decided."""
    return await approvals.count(PENDING)


async def count_due(approvals: ApprovalCollection, *, now_ms: int) -> int:
    """Count the approvals that are due and free."""
    return await approvals.count({"due_ms": {"$lte": now_ms}, "leased_until_ms": {"$lte": now_ms}})
