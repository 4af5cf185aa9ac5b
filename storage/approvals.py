"""The store of approvals: requests and questions, their decisions and outcomes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any

from storage.codec import AUDIT
from storage.documents import Collection, Document, Index, Place, Spec, Where
from storage.errors import RecordConflictError, RecordNotFoundError
from storage.flat import FlatRecords, flat_document
from storage.ports.audit import AuditStore
from storage.ports.lists import START
from storage.records.approvals import Approval, ApprovalHead, Decision, DrawnCard, Kind, Status
from storage.records.audit import AuditEntry

_PEOPLE = (
    "approvers_json",
    "backups_json",
    "requesters_json",
    "editors_json",
    "voided_json",
    "counted_json",
    "mentioned_json",
)
"""Texts of an approval that hold a list of people or groups, unless they are empty."""

_PENDING: Where = {"status": Status.PENDING.value}
_ENDED: Where = {"status": {"$ne": Status.PENDING.value}}

ApprovalDocument = flat_document(
    Approval,
    Spec(
        name="approvals",
        noun="approval",
        key="approval_id",
        indexes=(
            Index(("expires_ms", "id"), _PENDING),
            Index(("requester_id", "expires_ms", "id"), _PENDING),
            Index(("requester_id", "created_ms"), _ENDED),
            Index(("decision.by", "created_ms"), _ENDED),
            Index(("thread_id", "created_ms", "position")),
            Index(("thread_id", "created_ms", "position"), {"open": True}),
            Index(("id",), {"open": True}),
            Index(("checkpoint_id", "created_ms", "position")),
            Index(("undeliverable", "created_ms"), {"undeliverable": {"$gt": ""}}),
        ),
        content=frozenset(
            {
                "address",
                "approvers_json",
                "arguments_json",
                "backups_json",
                "channel_id",
                "checkpoint_id",
                "created_ms",
                "digest",
                "form_json",
                "interrupt_id",
                "kind",
                "members_json",
                "original_json",
                "policy_file",
                "position",
                "preview",
                "requester_id",
                "requesters_json",
                "rule",
                "ruling_json",
                "self_approval",
                "team_id",
                "terms_json",
                "thread_id",
                "thread_ts",
                "title",
                "tool",
                "why",
            }
        ),
    ),
    {**{name: [str] for name in _PEOPLE}, "members_json": (list, dict)},
)

_VOTED = ("status", "decision", "votes_json", "stage", "claim_json")
"""Fields of an approval that each vote changes."""

_ANNOTATED = ("claim_json", "snoozes_json", "dialog_json")
"""Fields of an approval that people change beside their votes."""

_RESTARTED = (
    "ladder_ms",
    "remind_ms",
    "reminders",
    "steps",
    "escalate_ms",
    "escalated_ms",
    "escalation_told",
)
"""Fields of an approval whose reminders and escalation begin anew, with those who are asked now."""

_CLIMBED = (
    "reminders",
    "steps",
    "escalate_ms",
    "escalated_ms",
    "mentioned_json",
    "snoozes_json",
    "cards_json",
    "messages_json",
    "ladder_json",
)
"""Fields of an approval that a step of its escalation changes."""

_REBOUND = (
    "rule",
    "title",
    "preview",
    "arguments_json",
    "schema_json",
    "digest",
    "approvers_json",
    "self_approval",
    "backups_json",
    "members_json",
    "ruling_json",
    "original_json",
    "edited_by",
    "editors_excluded",
    "editors_json",
    "edit_json",
    "voided_json",
    "counted_json",
    "stuck",
    "expires_ms",
    "remind_ms",
    "escalate_ms",
    "terms_json",
    "policy_file",
    "votes_json",
    "stage",
    "steps",
    "ladder_ms",
    "mentioned_json",
    "claim_json",
    "status",
    "decision",
)
"""Fields of an approval that an edit changes while it waits; it may be the last that it needed."""

_HEAD = tuple(one.name for one in fields(ApprovalHead))

Change = Callable[[Approval], Approval | None]


class ApprovalRecords:
    """See `storage.ports.approvals.ApprovalStore`.

    Args:
        collection: Where the documents are.
        audit: Where entries go that are written with approvals.
    """

    def __init__(self, collection: Collection[Document], audit: AuditStore) -> None:
        self._approvals = FlatRecords(collection, Approval)
        self._collection = collection
        self._audit = audit

    async def add(self, approval: Approval) -> bool:
        return bool(await self._approvals.insert(approval))

    async def add_all(
        self, approvals: Sequence[Approval], *, entries: Sequence[AuditEntry] = ()
    ) -> frozenset[str]:
        for entry in entries:
            AUDIT.encode(entry)  # refused before anything is written
        new = await self._approvals.insert(*approvals)
        await self._audit.append_all(entries)
        return new

    async def get(self, approval_id: str) -> Approval:
        return await self._approvals.get(approval_id)

    async def get_all(self, approval_ids: Sequence[str]) -> Sequence[Approval]:
        where = {"id": {"$in": list(approval_ids)}}
        found = (await self._approvals.find(where, strict=True)).records if approval_ids else []
        by_id = {one.approval_id: one for one in found}
        if missing := [name for name in approval_ids if name not in by_id]:
            raise RecordNotFoundError("approval", missing[0])
        return [by_id[name] for name in approval_ids]

    async def decide(self, approval_id: str, decision: Decision, *, digest: str) -> Approval:
        def decide(one: Approval) -> Approval | None:
            is_in_time = decision.status is Status.EXPIRED or decision.at_ms < one.expires_ms
            if one.status is not Status.PENDING or one.digest != digest or not is_in_time:
                return None
            at_ms = decision.at_ms
            return _shown(
                one, status=decision.status, decision=decision, remind_ms=None, due_ms=at_ms
            )

        return await self._must(approval_id, decide)

    async def vote(
        self, changed: Approval, *, revision: int, now_ms: int, restarts: bool = False
    ) -> Approval:
        names = (*_VOTED, *_RESTARTED) if restarts else _VOTED
        values = {name: getattr(changed, name) for name in names}
        if changed.status is not Status.PENDING:
            values["remind_ms"] = None

        def vote(one: Approval) -> Approval | None:
            is_same = (one.revision, one.digest) == (revision, changed.digest)
            if not is_same or not _waits(one, now_ms):
                return None
            return _shown(one, **values, due_ms=now_ms)

        return await self._must(changed.approval_id, vote)

    async def rebind(self, changed: Approval, *, digest: str, now_ms: int) -> Approval:
        values = {name: getattr(changed, name) for name in _REBOUND}
        fresh: dict[str, Any] = {
            "reminders": 0,
            "seen_json": "[]",
            "escalated_ms": None,
            "escalation_told": False,
            "due_ms": now_ms,
        }

        def rebind(one: Approval) -> Approval | None:
            is_same = one.digest == digest and _waits(one, now_ms)
            return _shown(one, **values, **fresh) if is_same else None

        return await self._must(changed.approval_id, rebind)

    async def withdraw(self, approval_id: str, decision: Decision) -> Approval:
        def withdraw(one: Approval) -> Approval | None:
            if not one.open or one.status not in _REFUSABLE:
                return None
            return _shown(one, status=decision.status, decision=decision, due_ms=decision.at_ms)

        return await self._must(approval_id, withdraw)

    async def set_said(
        self, approval_id: str, said_json: str, *, revision: int, now_ms: int
    ) -> bool:
        def say(one: Approval) -> Approval | None:
            is_same = one.status is Status.PENDING and one.revision == revision
            return _shown(one, said_json=said_json, due_ms=now_ms) if is_same else None

        return await self._approvals.changed(approval_id, say, writes_due=True) is not None

    async def annotate(
        self, changed: Approval, *, revision: int, now_ms: int, redraws: bool = True
    ) -> Approval | None:
        values = {name: getattr(changed, name) for name in _ANNOTATED}

        def annotate(one: Approval) -> Approval | None:
            if one.revision != revision or not _waits(one, now_ms):
                return None
            return _shown(one, **values, due_ms=now_ms) if redraws else replace(one, **values)

        key = changed.approval_id
        return await self._approvals.changed(key, annotate, writes_due=redraws)

    async def open_of(self, thread_id: str) -> Sequence[Approval]:
        where = {"thread_id": thread_id, "open": True}
        order = ["created_ms", "position"]
        return (await self._approvals.find(where, sort=order, strict=True)).records

    async def heads_of(self, thread_id: str) -> Sequence[ApprovalHead]:
        return [
            ApprovalHead(**{name: getattr(one, name) for name in _HEAD})
            for one in await self.open_of(thread_id)
        ]

    async def newest_of(self, thread_id: str, *, limit: int) -> Sequence[Approval]:
        order = ["-created_ms", "-position"]
        page = await self._approvals.find({"thread_id": thread_id}, sort=order, limit=limit)
        return page.records

    async def of_turn(self, checkpoint_id: str) -> Sequence[Approval]:
        order = ["created_ms", "position"]
        page = await self._approvals.find({"checkpoint_id": checkpoint_id}, sort=order)
        return page.records

    async def mark_run(
        self,
        approval_id: str,
        *,
        was: str,
        run_json: str,
        now_ms: int,
        closes: bool = False,
    ) -> Approval | None:
        def mark(one: Approval) -> Approval | None:
            is_so = one.status in {Status.APPROVED, Status.ANSWERED} and one.run_json == was
            is_open = one.open and not closes
            return _shown(one, run_json=run_json, open=is_open, due_ms=now_ms) if is_so else None

        return await self._approvals.changed(approval_id, mark, writes_due=True)

    async def close(self, approval_id: str) -> None:
        await self._approvals.changed(
            approval_id, lambda one: replace(one, open=False) if one.open else None
        )

    async def close_all(self, approval_ids: Sequence[str]) -> None:
        where = {"id": {"$in": list(approval_ids)}, "open": True}
        found = (await self._approvals.find(where)).records if approval_ids else []
        await asyncio.gather(*(self.close(one.approval_id) for one in found))

    async def redraw(self, approval_id: str, *, now_ms: int, newer_ts: str = "") -> bool:
        def redraw(one: Approval) -> Approval:
            return _shown(one, newer_ts=newer_ts or one.newer_ts, due_ms=now_ms)

        return await self._approvals.changed(approval_id, redraw, writes_due=True) is not None

    async def split(self, batch: str, *, checkpoint_id: str, now_ms: int) -> frozenset[str]:
        def split(one: Approval) -> Approval | None:
            if one.batch != batch or one.batch_left or one.status is not Status.PENDING:
                return None
            return _shown(one, batch_left=True, post_tried=False, due_ms=now_ms)

        ids = [one.approval_id for one in await self.of_turn(checkpoint_id)]
        changes = (self._approvals.changed(key, split, writes_due=True) for key in ids)
        found = await asyncio.gather(*changes)
        return frozenset(one.approval_id for one in found if one is not None)

    async def mark_seen(
        self, approval_id: str, *, digest: str, before: str, seen_json: str
    ) -> bool:
        def see(one: Approval) -> Approval | None:
            is_same = (one.digest, one.seen_json) == (digest, before)
            is_same = is_same and one.status is Status.PENDING
            return replace(one, seen_json=seen_json) if is_same else None

        return await self._approvals.changed(approval_id, see) is not None

    async def due(self, *, now_ms: int, limit: int) -> Sequence[Approval]:
        return await self._approvals.due(now_ms=now_ms, limit=limit)

    async def count_due(self, *, now_ms: int) -> int:
        return await self._collection.count(
            {"due_ms": {"$lte": now_ms}, "leased_until_ms": {"$lte": now_ms}}
        )

    async def count_pending(self) -> int:
        return await self._collection.count(_PENDING)

    async def undelivered(self, *, reasons: frozenset[str], limit: int) -> Sequence[Approval]:
        where = {"undeliverable": {"$in": sorted(reasons - {""}), "$gt": ""}}
        page = await self._approvals.find(where, sort=["-created_ms"], limit=limit)
        return page.records

    async def claim(
        self, approval_id: str, *, owner: str, now_ms: int, until_ms: int
    ) -> Approval | None:
        return await self._approvals.claim(
            approval_id, owner=owner, now_ms=now_ms, until_ms=until_ms
        )

    async def release(  # noqa: PLR0913 - the parts of one write, given by name
        self,
        approval_id: str,
        *,
        fence: int,
        revision: int,
        due_ms: int | None,
        now_ms: int,
        failed: bool = False,
        drawn: DrawnCard | None = None,
        sign: str | None = None,
    ) -> bool:
        def release(one: Approval) -> Approval:
            if drawn is not None:
                one = _drawn(one, drawn.card_ts, drawn.revision)
            return replace(
                one,
                due_ms=due_ms if one.revision == revision else now_ms,
                attempts=one.attempts + 1 if failed else 0,
                sign=one.sign if sign is None else sign,
            )

        stored = await self._approvals.changed(
            approval_id, release, fence=fence, writes_due=True, releases=True
        )
        return stored is not None and stored.revision == revision

    async def mark_card(
        self, approval_id: str, *, fence: int, card_ts: str | None, drawn_revision: int | None
    ) -> bool:
        return await self._held(
            approval_id, fence, lambda one: _drawn(one, card_ts, drawn_revision)
        )

    async def mark_undeliverable(self, approval_id: str, *, fence: int, reason: str) -> bool:
        return await self._held(approval_id, fence, lambda one: replace(one, undeliverable=reason))

    async def mark_reminded(
        self,
        approval_id: str,
        *,
        fence: int,
        digest: str,
        remind_ms: int | None,
        reminder_ts: str,
    ) -> bool:
        def remind(one: Approval) -> Approval | None:
            if one.status is not Status.PENDING or one.digest != digest:
                return None
            count = one.reminders + 1
            return replace(one, reminders=count, remind_ms=remind_ms, reminder_ts=reminder_ts)

        return await self._held(approval_id, fence, remind)

    async def mark_messages(
        self,
        approval_id: str,
        *,
        fence: int,
        reminder_ts: str | None,
        escalation_ts: str | None,
    ) -> bool:
        given = {"reminder_ts": reminder_ts, "escalation_ts": escalation_ts}
        return await self._held(approval_id, fence, lambda one: _with(one, given))

    async def escalate(self, approval_id: str, *, fence: int, now_ms: int) -> Approval | None:
        def escalate(one: Approval) -> Approval | None:
            is_due = one.escalate_ms is not None and one.escalate_ms <= now_ms
            if not is_due or not _waits(one, now_ms):
                return None
            return _shown(one, escalated_ms=now_ms, escalate_ms=None)

        return await self._approvals.changed(approval_id, escalate, fence=fence)

    async def mark_escalation_told(
        self, approval_id: str, *, fence: int, digest: str, escalation_ts: str
    ) -> bool:
        def tell(one: Approval) -> Approval | None:
            told = {"escalation_told": True, "escalation_ts": escalation_ts}
            return replace(one, **told) if one.digest == digest else None  # type: ignore[arg-type]

        return await self._held(approval_id, fence, tell)

    async def climb(
        self, changed: Approval, *, revision: int, now_ms: int, redraws: bool
    ) -> Approval | None:
        values = {name: getattr(changed, name) for name in _CLIMBED}

        def climb(one: Approval) -> Approval | None:
            if one.revision != revision or not _waits(one, now_ms):
                return None
            return _shown(one, **values) if redraws else replace(one, **values)

        return await self._approvals.changed(changed.approval_id, climb, fence=changed.fence)

    async def mark_beside(
        self,
        approval_id: str,
        *,
        fence: int,
        cards_json: str | None = None,
        messages_json: str | None = None,
        dialog_json: str | None = None,
    ) -> bool:
        given = {
            "cards_json": cards_json,
            "messages_json": messages_json,
            "dialog_json": dialog_json,
        }
        return await self._held(approval_id, fence, lambda one: _with(one, given))

    async def mark_batch(
        self, approval_id: str, *, fence: int, batch_ts: str | None = None, leaves: bool = False
    ) -> bool:
        def mark(one: Approval) -> Approval:
            one = _with(one, {"batch_ts": batch_ts})
            return replace(one, batch_left=True, post_tried=False) if leaves else one

        return await self._held(approval_id, fence, mark)

    async def mark_stuck(
        self, approval_id: str, *, fence: int, digest: str, stuck: str
    ) -> Approval | None:
        def mark(one: Approval) -> Approval | None:
            is_same = one.status is Status.PENDING and one.digest == digest
            return _shown(one, stuck=stuck) if is_same else None

        return await self._approvals.changed(approval_id, mark, fence=fence)

    async def _must(self, approval_id: str, change: Change) -> Approval:
        """Change an approval, and make it due; else say that somebody was quicker."""
        stored = await self._approvals.change(approval_id, change, writes_due=True)
        if stored is None:
            raise RecordConflictError("approval", approval_id)
        return stored

    async def _held(self, approval_id: str, fence: int, change: Change) -> bool:
        """Change an approval under its lease; False when it was lost."""
        return await self._approvals.changed(approval_id, change, fence=fence) is not None


class ApprovalLists:
    """See `storage.ports.lists.ListStore`."""

    def __init__(self, collection: Collection[Document]) -> None:
        self._approvals = FlatRecords(collection, Approval)

    async def waiting(
        self, *, now_ms: int, limit: int, after: Place = START
    ) -> tuple[Sequence[Approval], Place | None]:
        return await self._page({}, now_ms, limit, after)

    async def asked_by(
        self, user_id: str, *, now_ms: int, limit: int, after: Place = START
    ) -> tuple[Sequence[Approval], Place | None]:
        return await self._page({"requester_id": user_id}, now_ms, limit, after)

    async def ended_of(self, user_id: str, *, limit: int) -> Sequence[Approval]:
        found: dict[str, Approval] = {}
        for name in ("decision.by", "requester_id"):
            where = {name: user_id, **_ENDED}
            page = await self._approvals.find(where, sort=["-created_ms"], limit=limit)
            found |= {one.approval_id: one for one in page.records}
        newest_first = sorted(
            found.values(), key=lambda one: (one.created_ms, one.approval_id), reverse=True
        )
        return newest_first[: max(limit, 0)]

    async def named(self, prefix: str, *, limit: int) -> Sequence[Approval]:
        ids = {"$gte": prefix, "$lt": f"{prefix}{chr(0x10FFFF)}"}
        return (await self._approvals.find({"id": ids}, limit=limit)).records

    async def calls_of(
        self, thread_id: str, *, tool: str, since_ms: int, limit: int
    ) -> Sequence[Approval]:
        where = {"thread_id": thread_id, "created_ms": {"$gte": since_ms}}
        order = ["-created_ms", "-position"]
        found: list[Approval] = []
        after: Place | None = None
        while len(found) < limit:
            page = await self._approvals.find(where, sort=order, limit=limit, after=after)
            calls = (one for one in page.records if one.kind is Kind.APPROVAL)
            found += [one for one in calls if one.tool == tool]
            after = page.last
            if after is None:
                break
        return found[: max(limit, 0)]

    async def _page(
        self, where: Where, now_ms: int, limit: int, after: Place
    ) -> tuple[Sequence[Approval], Place | None]:
        waiting = {**where, **_PENDING, "expires_ms": {"$gt": now_ms}}
        page = await self._approvals.find(waiting, sort=["expires_ms"], limit=limit, after=after)
        return page.records, page.last


_REFUSABLE = frozenset({Status.APPROVED, Status.REJECTED, Status.ANSWERED})
"""The statuses of decisions that a run may refuse."""


def _waits(one: Approval, now_ms: int) -> bool:
    return one.status is Status.PENDING and one.expires_ms > now_ms


def _shown(one: Approval, **changes: Any) -> Approval:
    """Change what people can see of an approval."""
    return replace(one, **changes, revision=one.revision + 1)


def _with(one: Approval, given: dict[str, str | None]) -> Approval:
    """Change the fields that are given."""
    changes: dict[str, Any] = {name: text for name, text in given.items() if text is not None}
    return replace(one, **changes)


def _drawn(one: Approval, card_ts: str | None, drawn_revision: int | None) -> Approval:
    """Note a step with the card: a post that begins (None), its `ts`, or that it is gone."""
    changes: dict[str, Any] = {"post_tried": card_ts != ""}
    if card_ts is not None:
        changes["card_ts"] = card_ts
    if drawn_revision is not None:
        changes |= {"drawn_revision": drawn_revision, "undeliverable": ""}
    return replace(one, **changes)
