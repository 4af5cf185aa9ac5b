"""Report the bot's calls of the database and of Slack as events.

All that counts is on record, so that it is told where records are written; the use cases need not
know. What is told of is a write with something after it, all else is the store's own.

What is written twice after a crash is told once, where a conditional write says that it was the
first. Times from a decision to what follows are seen when both happen in this process.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, cast

from cachetools import LRUCache
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from agents.core.checkpoint import AmendingStore
from bot.approvals.model import Approval, Decision, Status
from bot.clock import steady_clock, system_nanoseconds
from bot.observability import events
from bot.stores import Stores
from bot.threads.messages import InboxStore, Message
from bot.threads.model import Thread, ThreadStore
from storage.audit import AuditEntry, AuditStore
from storage.documents import Collection

_MOST = 10_000
"""The most decisions, and leases that ended, that are remembered at a time."""

P = ParamSpec("P")
R = TypeVar("R")


class _Write(Generic[P, R]):
    """A write of a store, to be followed by what tells of it.

    Args:
        write: The store's own method, whose types hold for all that is made of it.
    """

    def __init__(self, write: Callable[P, Coroutine[Any, Any, R]]) -> None:
        self._write = write

    def told(self, tell: Callable[Concatenate[R, P], None]) -> Callable[P, Coroutine[Any, Any, R]]:
        """The write, which tells what it returned."""
        write = self._write

        async def call(*args: P.args, **options: P.kwargs) -> R:
            result = await write(*args, **options)
            tell(result, *args, **options)
            return result

        return call

    def kept(self, tell: Callable[P, None]) -> Callable[P, Coroutine[Any, Any, R]]:
        """The write, which tells of it unless its condition did not hold."""
        write = self._write

        async def call(*args: P.args, **options: P.kwargs) -> R:
            result = await write(*args, **options)
            if result is not False:
                tell(*args, **options)
            return result

        return call

    def timed(
        self, tell: Callable[Concatenate[events.TimedWrite[R], P], None]
    ) -> Callable[P, Coroutine[Any, Any, R]]:
        """The write, which tells how it went, even where it fails."""
        write = self._write

        async def call(*args: P.args, **options: P.kwargs) -> R:
            began_ns = system_nanoseconds()
            try:
                result = await write(*args, **options)
            except BaseException as error:
                fault = type(error).__name__ if isinstance(error, Exception) else ""  # cut off
                ended_ns = system_nanoseconds()
                tell(events.TimedWrite(began_ns, ended_ns, fault=fault), *args, **options)
                raise
            tell(events.TimedWrite(began_ns, system_nanoseconds(), result), *args, **options)
            return result

        return call


class _Leases:
    """The leases that ended unreleased, until this process takes one of them over."""

    def __init__(self, tell: events.TellEvent, record: events.WorkedOn) -> None:
        self._tell, self._record = tell, record
        self._ended: LRUCache[str, int] = LRUCache(_MOST)

    def due(self, records: Sequence[Thread | Approval], **_: object) -> None:
        """Work is due; if its record has a lease, that ended unreleased."""
        for record in records:
            if record.leased_by:
                self._ended[_id_of(record)] = record.fence

    def taken(self, record: Thread | Approval | None, *_: object, **__: object) -> None:
        """This process has the lease of a record, if there is one."""
        if record is not None and self._ended.pop(_id_of(record), None) == record.fence - 1:
            self._tell(events.LeaseTakenOver(self._record))


class _Told:
    """A store of which some writes are told; otherwise the same."""

    def __init__(self, store: object) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class _MeteredInbox(_Told):
    """An inbox that tells of messages."""

    def __init__(self, store: InboxStore, tell: events.TellEvent) -> None:
        super().__init__(store)

        def added(write: events.TimedWrite[bool], message: Message) -> None:
            tell(events.MessageWritten(message, write))

        self.add = _Write(store.add).timed(added)


class _MeteredThreads(_Told):
    """Threads that tell of leases and turns."""

    def __init__(self, store: ThreadStore, tell: events.TellEvent) -> None:
        super().__init__(store)
        self._tell, self._leases = tell, _Leases(tell, "thread")
        self.due = _Write(store.due).told(self._leases.due)
        self.claim = _Write(store.claim).told(self._leases.taken)
        self.set_turn = _Write(store.set_turn).kept(self._turned)
        self.release = _Write(store.release).timed(self._released)

    def _turned(self, *_: object, turn_open: bool, **__: object) -> None:
        if not turn_open:
            self._tell(events.TurnEnded())

    def _released(
        self,
        write: events.TimedWrite[bool],
        *_: object,
        retry_ms: int | None = None,
        ends_turn: bool = False,
        **__: object,
    ) -> None:
        if retry_ms is not None:
            self._tell(events.WorkFailed("thread"))
        if ends_turn and write.result is not None:
            self._tell(events.TurnEnded())


@dataclass(frozen=True, slots=True)
class _TellStep:
    """Tells of a write of a checkpoint as a step of its run, whatever else it was given."""

    tell: events.TellEvent
    step: events.RunStep

    def __call__(
        self, write: events.TimedWrite[object], /, checkpoint_id: str, *_: object, **__: object
    ) -> None:
        self.tell(events.RunWritten(self.step, checkpoint_id, write))


class _MeteredCheckpoints(_Told):
    """Checkpoints that tell of the steps of runs."""

    def __init__(self, store: AmendingStore, tell: events.TellEvent) -> None:
        super().__init__(store)
        # A check for a protocol does not see what `__getattr__` finds.
        self.load, self.append = store.load, store.append
        self.save = _Write(store.save).timed(_TellStep(tell, "checkpoint"))
        self.amend = _Write(store.amend).timed(_TellStep(tell, "checkpoint"))
        self.claim = _Write(store.claim).timed(_TellStep(tell, "resume"))
        self.close = _Write(store.close).timed(_TellStep(tell, "end"))


class _MeteredApprovals(_Told):
    """Approvals that tell of requests, decisions and cards.

    What a write was is seen by the approval before and after it.
    """

    def __init__(
        self, store: Collection[Approval], tell: events.TellEvent, clock: Callable[[], int]
    ) -> None:
        super().__init__(store)
        self._tell, self._clock = tell, clock
        self._decided: LRUCache[str, Approval] = LRUCache(_MOST)
        self._undrawn: LRUCache[str, Approval] = LRUCache(_MOST)
        leases = _Leases(tell, "approval")
        self.due = _Write(store.due).told(leases.due)
        self.claim = _Write(store.claim).told(leases.taken)
        self.insert = _Write(store.insert).timed(self._inserted)
        self.replace = _Write(store.replace).told(self._replaced)

    def _inserted(self, write: events.TimedWrite[frozenset[str]], *approvals: Approval) -> None:
        new = [one for one in approvals if one.approval_id in (write.result or ())]
        self._tell(events.RequestsWritten(list(approvals), new, write))

    def _replaced(
        self,
        stored: Approval,
        /,
        document: Approval,  # noqa: ARG002 - as `replace` names it
        *,
        based_on: Approval,
        **_: object,
    ) -> None:
        if stored.decision is not None and based_on.decision is None:
            self._was_decided(stored, stored.decision)
        if stored.steps and not based_on.steps:
            self._tell(events.Escalated(stored))
        if based_on.open and not stored.open:
            self._went_on(stored)
        if stored.card.revision > based_on.card.revision:
            self._was_drawn(stored)
        if stored.attempts > based_on.attempts:
            self._tell(events.WorkFailed("approval"))

    def _was_decided(self, approval: Approval, decision: Decision) -> None:
        self._tell(events.Decided(approval, decision))
        if approval.status is not Status.EXPIRED:
            self._decided[approval.approval_id] = approval
            self._undrawn[approval.approval_id] = approval

    def _went_on(self, approval: Approval) -> None:
        """The agent has gone on from a decision."""
        decided: Approval | None = self._decided.get(approval.approval_id)
        if decided is not None:
            self._tell(events.GoneOn(self._since(decided)))

    def _was_drawn(self, approval: Approval) -> None:
        """A card shows this revision of its record."""
        decided: Approval | None = self._undrawn.get(approval.approval_id)
        if decided is not None and approval.card.revision >= decided.shown_revision:
            self._undrawn.pop(approval.approval_id)  # what is drawn later is what became of it
            self._tell(events.Redrawn(decided, self._since(decided)))

    def _since(self, approval: Approval) -> float:
        decision = approval.decision
        return (self._clock() - decision.at_ms) / 1000 if decision is not None else 0.0


class _MeteredAudit(_Told):
    """An audit that tells of its entries."""

    def __init__(self, store: AuditStore, tell: events.TellEvent) -> None:
        super().__init__(store)

        def appended(entry: AuditEntry) -> None:
            tell(events.EntriesWritten([entry]))

        def all_appended(entries: Sequence[AuditEntry]) -> None:
            tell(events.EntriesWritten(entries))

        self.append = _Write(store.append).kept(appended)
        self.append_all = _Write(store.append_all).kept(all_appended)


def metered(stores: Stores, tell: events.TellEvent, clock: Callable[[], int]) -> Stores:
    """The stores that tell what is written to them; themselves, where nobody listens.

    Args:
        stores: All stores of a database.
        tell: Takes the events.
        clock: The time now, in milliseconds since the epoch.
    """
    if tell is events.nobody:
        return stores
    told: Any = _Told(stores)
    told.inbox = _MeteredInbox(stores.inbox, tell)
    told.threads = _MeteredThreads(stores.threads, tell)
    told.checkpoints = _MeteredCheckpoints(stores.checkpoints, tell)
    told.approvals = _MeteredApprovals(stores.approvals, tell, clock)
    told.audit = _MeteredAudit(stores.audit, tell)
    return cast("Stores", told)


class MeteredClient(AsyncWebClient):
    """A client of Slack that tells of its calls.

    Attributes:
        tell: Takes the events.
    """

    tell: events.TellEvent

    async def api_call(self, api_method: str, **options: Any) -> Any:
        """Call Slack; see `AsyncWebClient`."""
        begin, fault = steady_clock(), ""
        self.tell(events.SlackCalled(api_method))
        try:
            return await super().api_call(api_method, **options)
        except SlackApiError as error:
            fault = str(error.response.get("error") or "unknown")
            raise
        except Exception as error:
            fault = type(error).__name__
            raise
        finally:
            self.tell(events.SlackAnswered(api_method, (steady_clock() - begin) / 1000, fault))


def _id_of(record: Thread | Approval) -> str:
    return record.approval_id if isinstance(record, Approval) else record.thread_id
