"""Report the bot's calls of the database and of Slack as events.

Everything that is counted is stored, so wrappers of the stores report the events and the use cases
need not know of them. Only methods with an event are wrapped.

A write that is repeated after a crash is reported once if its condition shows which attempt was the
first. Durations since a decision are known only if both events happen in this process.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, cast

from cachetools import LRUCache
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from agents.core.checkpoint import AmendingStore
from bot.clock import steady_clock, system_nanoseconds
from bot.observability import events
from bot.records.approval import Approval, Status
from bot.records.messages import InboxStore, Message
from bot.records.thread import Thread, ThreadStore
from bot.stores import Stores
from storage.audit import AuditEntry, AuditStore
from storage.documents import Collection

_MOST = 10_000
"""Size of the caches of decisions and of expired leases that this process remembers."""

P = ParamSpec("P")
R = TypeVar("R")


class _Write(Generic[P, R]):
    """Wraps a write of a store with a report.

    Args:
        write: The store's method. The wrappers keep its types.
    """

    def __init__(self, write: Callable[P, Coroutine[Any, Any, R]]) -> None:
        self._write = write

    def then(self, tell: Callable[Concatenate[R, P], None]) -> Callable[P, Coroutine[Any, Any, R]]:
        """Return the write with a report of its result."""
        write = self._write

        async def call(*args: P.args, **options: P.kwargs) -> R:
            result = await write(*args, **options)
            tell(result, *args, **options)
            return result

        return call

    def kept(self, tell: Callable[P, None]) -> Callable[P, Coroutine[Any, Any, R]]:
        """Return the write with a report, unless it returns False: its condition did not hold."""
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
        """Return the write with a report of its times and outcome, even after a failure."""
        write = self._write

        async def call(*args: P.args, **options: P.kwargs) -> R:
            began_ns = system_nanoseconds()
            try:
                result = await write(*args, **options)
            except BaseException as error:
                fault = type(error).__name__ if isinstance(error, Exception) else ""  # cancelled
                ended_ns = system_nanoseconds()
                tell(events.TimedWrite(began_ns, ended_ns, fault=fault), *args, **options)
                raise
            tell(events.TimedWrite(began_ns, system_nanoseconds(), result), *args, **options)
            return result

        return call


class _Leases:
    """Leases that expired without a release, until this process takes one over."""

    def __init__(self, tell: events.TellEvent, record: events.WorkedOn) -> None:
        self._tell, self._record = tell, record
        self._ended: LRUCache[str, int] = LRUCache(_MOST)

    def due(self, records: Sequence[Thread | Approval], **_: object) -> None:
        """Remember expired leases: due work has a lease only if it was not released."""
        for record in records:
            if record.leased_by:
                self._ended[record.key] = record.fence

    def taken(self, record: Thread | Approval | None, *_: object, **__: object) -> None:
        """Report a takeover if the new fencing token follows the token of an expired lease."""
        if record is not None and self._ended.pop(record.key, None) == record.fence - 1:
            self._tell(events.LeaseTakenOver(self._record))


class _Told:
    """A store some of whose methods are wrapped; all others are passed through."""

    def __init__(self, store: object) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class _MeteredInbox(_Told):
    """An inbox that reports messages."""

    def __init__(self, store: InboxStore, tell: events.TellEvent) -> None:
        super().__init__(store)

        def added(write: events.TimedWrite[bool], message: Message) -> None:
            tell(events.MessageWritten(message, write))

        self.add = _Write(store.add).timed(added)


class _MeteredThreads(_Told):
    """A thread store that reports leases and turns."""

    def __init__(self, store: ThreadStore, tell: events.TellEvent) -> None:
        super().__init__(store)
        self._tell, self._leases = tell, _Leases(tell, "thread")
        self.due = _Write(store.due).then(self._leases.due)
        self.claim = _Write(store.claim).then(self._leases.taken)
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
    """Reports a write of a checkpoint as a step of its run."""

    tell: events.TellEvent
    step: events.RunStep

    def __call__(
        self, write: events.TimedWrite[object], /, checkpoint_id: str, *_: object, **__: object
    ) -> None:
        self.tell(events.RunWritten(self.step, checkpoint_id, write))


class _MeteredCheckpoints(_Told):
    """A checkpoint store that reports the steps of runs."""

    def __init__(self, store: AmendingStore, tell: events.TellEvent) -> None:
        super().__init__(store)
        # `isinstance` with a protocol does not find methods that only `__getattr__` provides.
        self.load, self.append = store.load, store.append
        self.save = _Write(store.save).timed(_TellStep(tell, "checkpoint"))
        self.amend = _Write(store.amend).timed(_TellStep(tell, "checkpoint"))
        self.claim = _Write(store.claim).timed(_TellStep(tell, "resume"))
        self.close = _Write(store.close).timed(_TellStep(tell, "end"))


class _MeteredApprovals(_Told):
    """An approval collection that reports requests, decisions and cards.

    The change of a write is found by comparing the approval before and after it.
    """

    def __init__(
        self, store: Collection[Approval], tell: events.TellEvent, clock: Callable[[], int]
    ) -> None:
        super().__init__(store)
        self._tell, self._clock = tell, clock
        self._decided: LRUCache[str, Approval] = LRUCache(_MOST)
        self._undrawn: LRUCache[str, Approval] = LRUCache(_MOST)
        leases = _Leases(tell, "approval")
        self.due = _Write(store.due).then(leases.due)
        self.claim = _Write(store.claim).then(leases.taken)
        self.insert = _Write(store.insert).timed(self._inserted)
        self.replace = _Write(store.replace).then(self._replaced)

    def _inserted(self, write: events.TimedWrite[frozenset[str]], *approvals: Approval) -> None:
        new = [approval for approval in approvals if approval.approval_id in (write.result or ())]
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
            self._tell(events.Decided(stored, stored.decision))
            if stored.status is not Status.EXPIRED:
                self._decided[stored.approval_id] = stored
                self._undrawn[stored.approval_id] = stored
        if stored.escalation.steps and not based_on.escalation.steps:
            self._tell(events.Escalated(stored))
        if based_on.open and not stored.open:
            self._went_on(stored)
        if stored.card.revision > based_on.card.revision:
            self._was_drawn(stored)
        if stored.attempts > based_on.attempts:
            self._tell(events.WorkFailed("approval"))

    def _went_on(self, approval: Approval) -> None:
        """Report that the run continued after a decision."""
        decided: Approval | None = self._decided.get(approval.approval_id)
        if decided is not None:
            self._tell(events.GoneOn(self._since(decided)))

    def _was_drawn(self, approval: Approval) -> None:
        """Report the first card that shows the decision."""
        decided: Approval | None = self._undrawn.get(approval.approval_id)
        if decided is not None and approval.card.revision >= decided.shown_revision:
            # Later updates show the outcome of the call, not the decision.
            self._undrawn.pop(approval.approval_id)
            self._tell(events.Redrawn(decided, self._since(decided)))

    def _since(self, approval: Approval) -> float:
        decision = approval.decision
        return (self._clock() - decision.at_ms) / 1000 if decision is not None else 0.0


class _MeteredAudit(_Told):
    """An audit store that reports its entries."""

    def __init__(self, store: AuditStore, tell: events.TellEvent) -> None:
        super().__init__(store)

        def appended(*entries: AuditEntry) -> None:
            tell(events.EntriesWritten(entries))

        self.append = _Write(store.append).kept(appended)


def metered(stores: Stores, tell: events.TellEvent, clock: Callable[[], int]) -> Stores:
    """Wrap stores so that they report their writes; return them unchanged without a subscriber.

    Args:
        stores: All stores of a database.
        tell: Receives the events.
        clock: The time now, in milliseconds since the epoch.
    """
    if tell is events.nobody:
        return stores
    metered: Any = _Told(stores)
    metered.inbox = _MeteredInbox(stores.inbox, tell)
    metered.threads = _MeteredThreads(stores.threads, tell)
    metered.checkpoints = _MeteredCheckpoints(stores.checkpoints, tell)
    metered.approvals = _MeteredApprovals(stores.approvals, tell, clock)
    metered.audit = _MeteredAudit(stores.audit, tell)
    return cast("Stores", metered)


class MeteredClient(AsyncWebClient):
    """A Slack client that reports its calls.

    Attributes:
        tell: Receives the events.
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
