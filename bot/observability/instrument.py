"""Tells the telemetry what happens at the two edges: the database and Slack.

All that counts is on record, so that it can be seen where records are written; the use cases need
not know. What is written twice after a crash is counted where a conditional write says that it was
the first. Times from a decision to what follows are seen when both happen in this process.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, cast

from cachetools import LRUCache
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.clock import steady_clock
from bot.observability.telemetry import Count, Telemetry, Time
from storage.base import Storage
from storage.records import Approval, AuditEntry, Decision, DrawnCard, Kind, Message, Status

_MOST = 10_000
"""The most decisions, and leases that ended, that are remembered at a time."""

Write = Callable[..., Awaitable[Any]]


class _Store:
    """One store, with some of its methods replaced."""

    def __init__(self, store: object, methods: Mapping[str, Callable[[Write], Write]]) -> None:
        self._store = store
        self._methods = methods

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        wrap = self._methods.get(name)
        return wrap(found) if wrap is not None else found


class MeteredStorage:
    """A database that tells what is written to it; otherwise the same.

    Args:
        storage: The database.
        telemetry: Is told.
        clock: The time now, in milliseconds since the epoch.
    """

    def __init__(self, storage: Storage, telemetry: Telemetry, clock: Callable[[], int]) -> None:
        self._storage = storage
        self._told = telemetry
        self._clock = clock
        self._decided: LRUCache[str, Approval] = LRUCache(_MOST)
        self._undrawn: LRUCache[str, Approval] = LRUCache(_MOST)
        self._ended: LRUCache[str, int] = LRUCache(_MOST)
        self.inbox = _Store(storage.inbox, {"add": self._message})
        self.threads = _Store(
            storage.threads,
            {
                "due": self._due,
                "claim": self._claim("thread"),
                "set_turn": self._set_turn,
                "release": self._release_thread,
            },
        )
        self.checkpoints = _Store(
            storage.checkpoints,
            {
                "save": self._step("checkpoint"),
                "amend": self._step("checkpoint"),
                "claim": self._step("resume"),
                "close": self._step("end"),
            },
        )
        self.approvals = _Store(
            storage.approvals,
            {
                "add": self._request,
                "add_all": self._requests,
                "escalate": self._escalate,
                "decide": self._decide,
                "due": self._due,
                "claim": self._claim("approval"),
                "mark_card": self._mark_card,
                "close": self._close,
                "close_all": self._close_all,
                "release": self._release_card,
            },
        )
        self.audit = _Store(storage.audit, {"append": self._audit, "append_all": self._audit_all})

    @classmethod
    def around(cls, storage: Storage, telemetry: Telemetry, clock: Callable[[], int]) -> Storage:
        """Make one."""
        return cast("Storage", cls(storage, telemetry, clock))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    def _message(self, write: Write) -> Write:
        async def add(message: Message) -> bool:
            with self._told.span("message", message.thread_id, message=message.message_id):
                is_new: bool = await write(message)
            self._told.count(Count.MESSAGES, result="kept" if is_new else "known")
            return is_new

        return add

    def _request(self, write: Write) -> Write:
        async def add(approval: Approval) -> bool:
            with self._span("ask", approval):
                is_new: bool = await write(approval)
            if is_new:
                self._requested(approval)
            return is_new

        return add

    def _requests(self, write: Write) -> Write:
        async def add_all(approvals: Sequence[Approval], **values: Any) -> frozenset[str]:
            with ExitStack() as spans:
                for approval in approvals:
                    spans.enter_context(self._span("ask", approval))
                new: frozenset[str] = await write(approvals, **values)
            for approval in approvals:
                if approval.approval_id in new:
                    self._requested(approval)
            return new

        return add_all

    def _requested(self, approval: Approval) -> None:
        self._told.count(Count.REQUESTED, kind=str(approval.kind))
        if approval.kind is Kind.DOUBT:
            self._told.count(Count.IN_DOUBT)

    def _escalate(self, write: Write) -> Write:
        async def escalate(approval_id: str, **values: Any) -> Any:
            approval = await write(approval_id, **values)
            if approval is not None:
                with self._span("escalate", approval):
                    self._told.count(Count.ESCALATED, kind=str(approval.kind))
            return approval

        return escalate

    def _decide(self, write: Write) -> Write:
        async def decide(approval_id: str, decision: Decision, *, digest: str) -> Approval:
            approval: Approval = await write(approval_id, decision, digest=digest)
            with self._span("decide", approval):
                self._told.count(Count.DECIDED, outcome=str(approval.status))
            if approval.status is not Status.EXPIRED:
                waited = (decision.at_ms - approval.created_ms) / 1000
                self._told.observe(Time.DECISION, waited, kind=str(approval.kind))
                self._decided[approval_id] = approval
                self._undrawn[approval_id] = approval
            return approval

        return decide

    def _mark_card(self, write: Write) -> Write:
        async def mark_card(approval_id: str, **values: Any) -> bool:
            is_kept: bool = await write(approval_id, **values)
            if is_kept:
                self._drawn(approval_id, values.get("drawn_revision") or 0)
            return is_kept

        return mark_card

    def _release_card(self, write: Write) -> Write:
        give_back = self._release("approval")(write)

        async def release(approval_id: str, **values: Any) -> bool:
            is_done: bool = await give_back(approval_id, **values)
            drawn: DrawnCard | None = values.get("drawn")
            if is_done and drawn is not None:
                self._drawn(approval_id, drawn.revision)
            return is_done

        return release

    def _drawn(self, approval_id: str, revision: int) -> None:
        decided: Approval | None = self._undrawn.get(approval_id)
        if decided is not None and revision >= decided.revision:
            self._undrawn.pop(approval_id)  # what is drawn later is what became of it
            with self._span("redraw", decided):
                self._told.observe(Time.REDRAW, self._since(decided))

    def _close(self, write: Write) -> Write:
        async def close(approval_id: str) -> None:
            await write(approval_id)
            self._closed(approval_id)

        return close

    def _close_all(self, write: Write) -> Write:
        async def close_all(approval_ids: Sequence[str]) -> None:
            await write(approval_ids)
            for approval_id in approval_ids:
                self._closed(approval_id)

        return close_all

    def _closed(self, approval_id: str) -> None:
        decided: Approval | None = self._decided.get(approval_id)
        if decided is not None:
            self._told.observe(Time.RESUME, self._since(decided))

    def _due(self, write: Write) -> Write:
        async def due(**values: Any) -> Any:
            found = await write(**values)
            for record in found:
                if record.leased_by:
                    self._ended[_key_of(record)] = record.fence
            return found

        return due

    def _claim(self, kind: str) -> Callable[[Write], Write]:
        def wrap(write: Write) -> Write:
            async def claim(key: str, **values: Any) -> Any:
                record = await write(key, **values)
                if record is not None and self._ended.pop(key, None) == record.fence - 1:
                    self._told.count(Count.TAKEOVERS, record=kind)
                return record

            return claim

        return wrap

    def _release(self, kind: str) -> Callable[[Write], Write]:
        def wrap(write: Write) -> Write:
            async def release(key: str, **values: Any) -> Any:
                if values.get("failed") or values.get("retry_ms") is not None:
                    self._told.count(Count.RETRIES, record=kind)
                return await write(key, **values)

            return release

        return wrap

    def _release_thread(self, write: Write) -> Write:
        give_back = self._release("thread")(write)

        async def release(thread_id: str, **values: Any) -> bool:
            is_done: bool = await give_back(thread_id, **values)
            if values.get("ends_turn"):
                self._told.count(Count.TURNS)
            return is_done

        return release

    def _set_turn(self, write: Write) -> Write:
        async def set_turn(thread_id: str, **values: Any) -> bool:
            is_kept: bool = await write(thread_id, **values)
            if is_kept and not values["turn_open"]:
                self._told.count(Count.TURNS)
            return is_kept

        return set_turn

    def _step(self, name: str) -> Callable[[Write], Write]:
        def wrap(write: Write) -> Write:
            async def step(checkpoint_id: str, *args: Any, **values: Any) -> Any:
                thread_id, _, turn = checkpoint_id.rpartition("#")
                with self._told.span(name, thread_id, turn=turn):
                    return await write(checkpoint_id, *args, **values)

            return step

        return wrap

    def _audit(self, write: Write) -> Write:
        async def append(entry: AuditEntry) -> None:
            await write(entry)
            self._noted(entry)

        return append

    def _audit_all(self, write: Write) -> Write:
        async def append_all(entries: Sequence[AuditEntry]) -> None:
            await write(entries)
            for entry in entries:
                self._noted(entry)

        return append_all

    def _noted(self, entry: AuditEntry) -> None:
        if entry.action == "refused":
            self._told.count(Count.REFUSED_CLICKS)
        if "outcome" in entry.detail:
            self._told.count(Count.TOOL_CALLS, outcome=str(entry.detail["outcome"]))

    def _span(self, name: str, approval: Approval) -> Any:
        return self._told.span(
            name,
            approval.thread_id,
            approval=approval.approval_id,
            interrupt=approval.interrupt_id,
            turn=approval.checkpoint_id.rpartition("#")[2],
        )

    def _since(self, approval: Approval) -> float:
        decision = approval.decision
        return (self._clock() - decision.at_ms) / 1000 if decision is not None else 0.0


class MeteredClient(AsyncWebClient):
    """A client of Slack that counts and times its calls.

    Attributes:
        telemetry: Is told.
    """

    telemetry: Telemetry

    async def api_call(self, api_method: str, **options: Any) -> Any:
        """Call Slack; see `AsyncWebClient`."""
        begin = steady_clock()
        self.telemetry.count(Count.SLACK_CALLS, method=api_method)
        try:
            return await super().api_call(api_method, **options)
        except SlackApiError as error:
            code = str(error.response.get("error") or "unknown")
            self.telemetry.count(Count.SLACK_ERRORS, method=api_method, error=code)
            raise
        except Exception as error:
            name = type(error).__name__
            self.telemetry.count(Count.SLACK_ERRORS, method=api_method, error=name)
            raise
        finally:
            took = (steady_clock() - begin) / 1000
            self.telemetry.observe(Time.SLACK, took, method=api_method)


def _key_of(record: Any) -> str:
    return str(record.approval_id if isinstance(record, Approval) else record.thread_id)
