"""Read approvals by the indexes of their collection.

Functions whose result decides something raise an error if a record cannot be read: without the
record, the bot would ask twice or lose a decision. Functions for display skip such records.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from bot.records.approval import ENDED, PENDING, Approval, Kind
from storage.documents import Collection, Place
from storage.errors import RecordNotFoundError
from storage.thread_ids import turn_of

ApprovalCollection: TypeAlias = Collection[Approval]

START: Place = (0, "")
"""Before the first page of a list."""
_MOST_AT_ONE_TS = 10
"""Limit of requests to look at; messages of different channels may have one `ts`."""


async def get_all(approvals: ApprovalCollection, ids: Sequence[str]) -> list[Approval]:
    """Read several approvals in one query, in the order of their ids.

    Raises:
        RecordNotFoundError: No approval has one of these ids.
        RecordFormatError: A record cannot be read.
    """
    where = {"id": {"$in": list(ids)}}
    documents = (await approvals.find(where, strict=True)).documents if ids else []
    by_id = {approval.approval_id: approval for approval in documents}
    if missing := [name for name in ids if name not in by_id]:
        raise RecordNotFoundError("approval", missing[0])
    return [by_id[name] for name in ids]


async def open_of(approvals: ApprovalCollection, thread_id: str) -> list[Approval]:
    """Read the open approvals of a thread, by creation time, then position.

    Raises:
        RecordFormatError: A record cannot be read.
    """
    where = {"thread_id": thread_id, "open": True}
    order = ["created_ms", "position"]
    return (await approvals.find(where, sort=order, strict=True)).documents


async def newest_of(approvals: ApprovalCollection, thread_id: str, *, limit: int) -> list[Approval]:
    """Read the approvals of a thread, newest first. Skip unreadable records."""
    order = ["-created_ms", "-position"]
    return (await approvals.find({"thread_id": thread_id}, sort=order, limit=limit)).documents


async def of_turn(approvals: ApprovalCollection, checkpoint_id: str) -> list[Approval]:
    """Read the approvals of one turn, by creation time, then position. Skip unreadable records."""
    thread_id, turn = turn_of(checkpoint_id)
    where = {"thread_id": thread_id, "turn": turn}
    return (await approvals.find(where, sort=["created_ms", "position"])).documents


async def calls_of(
    approvals: ApprovalCollection,
    thread_id: str,
    *,
    tool: str,
    since_ms: int,
    limit: int,
    program: str = "",
) -> list[Approval]:
    """Read the approvals of a tool's calls in a thread, or of a program, newest first."""
    where = {"thread_id": thread_id, "created_ms": {"$gte": since_ms}}
    order = ["-created_ms", "-position"]
    if program:
        where = {"asker.program": program, "created_ms": {"$gte": since_ms}}
        order = ["-created_ms"]
    tool_calls: list[Approval] = []
    after: Place | None = None
    while len(tool_calls) < limit:
        page = await approvals.find(where, sort=order, limit=limit, after=after)
        calls = (approval for approval in page.documents if approval.kind is Kind.APPROVAL)
        tool_calls += [call for call in calls if call.tool == tool]
        after = page.last
        if after is None:
            break
    return tool_calls[: max(limit, 0)]


async def waiting(
    approvals: ApprovalCollection,
    *,
    now_ms: int,
    limit: int,
    after: Place = START,
    asked_by: str = "",
) -> tuple[list[Approval], Place | None]:
    """Read a page of pending approvals that have not expired, the earliest expiry first.

    Args:
        approvals: Stored approvals.
        now_ms: The time now.
        limit: Maximum number of approvals on the page.
        after: End of the previous page.
        asked_by: Slack user id of the first requester; empty for all requesters.

    Returns:
        The approvals, and the end of the page. The end is None if no approvals follow.
    """
    where = {**PENDING, "expires_ms": {"$gt": now_ms}}
    if asked_by:
        where["requester_id"] = asked_by
    page = await approvals.find(where, sort=["expires_ms"], limit=limit, after=after)
    return page.documents, page.last


async def ended_of(approvals: ApprovalCollection, user_id: str, *, limit: int) -> list[Approval]:
    """Read ended approvals that a person decided or requested, newest first."""
    by_id: dict[str, Approval] = {}
    for name in ("decision.by", "requester_id"):
        where = {name: user_id, **ENDED}
        page = await approvals.find(where, sort=["-created_ms"], limit=limit)
        by_id |= {approval.approval_id: approval for approval in page.documents}
    newest_first = sorted(
        by_id.values(),
        key=lambda approval: (approval.created_ms, approval.approval_id),
        reverse=True,
    )
    return newest_first[: max(limit, 0)]


async def of_program_at(
    approvals: ApprovalCollection, *, channel_id: str, ts: str
) -> Approval | None:
    """Return a program's request whose thread begins with a message; None without one."""
    page = await approvals.find({"root_ts": ts}, limit=_MOST_AT_ONE_TS)
    return next((known for known in page.documents if known.channel_id == channel_id), None)


async def named(approvals: ApprovalCollection, prefix: str, *, limit: int) -> list[Approval]:
    """Read approvals whose ids begin with a prefix, in the order of their ids."""
    ids = {"$gte": prefix, "$lt": f"{prefix}{chr(0x10FFFF)}"}
    return (await approvals.find({"id": ids}, limit=limit)).documents


async def undelivered(
    approvals: ApprovalCollection, *, reasons: frozenset[str], limit: int
) -> list[Approval]:
    """Read approvals whose card Slack refused with one of these error codes, newest first."""
    where = {"card.error": {"$in": sorted(reasons - {""}), "$gt": ""}}
    return (await approvals.find(where, sort=["-created_ms"], limit=limit)).documents


async def count_pending(approvals: ApprovalCollection) -> int:
    """Count the pending approvals."""
    return await approvals.count(PENDING)


async def count_due(approvals: ApprovalCollection, *, now_ms: int) -> int:
    """Count the approvals that are due and have no lease."""
    return await approvals.count({"due_ms": {"$lte": now_ms}, "leased_until_ms": {"$lte": now_ms}})
