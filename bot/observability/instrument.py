"""The two edges that tell of the bot's work: the database and Slack.

All that counts is on record, so that it is told where records are written; the use cases need not
know. Each store is the typed port, whole: what is metered is a method here, all else is the
adapter's own. A method that the port renames is an error of the type checker.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from agents.core.checkpoint import AmendingStore, CheckpointStatus
from bot.clock import steady_clock
from bot.observability.activity import Activity
from bot.observability.telemetry import Count, Telemetry, Time
from storage.base import Storage
from storage.ports.approvals import ApprovalStore
from storage.ports.audit import AuditStore
from storage.ports.messages import InboxStore
from storage.ports.threads import ThreadStore
from storage.records import Approval, AuditEntry, Decision, DrawnCard, Lease, Message, Thread

REFUSED = "refused"
"""The action of an entry of the audit: somebody who may not decide has tried to."""


class MeteredInbox:
    """An inbox that tells of messages.

    Args:
        store: The inbox.
        activity: Told of them.
    """

    def __init__(self, store: InboxStore, activity: Activity) -> None:
        self._store, self._activity = store, activity
        self.new, self.take, self.of_turn = store.new, store.take, store.of_turn
        self.revise = store.revise

    async def add(self, message: Message) -> bool:
        """See `InboxStore.add`."""
        with self._activity.keeping(message):
            is_new = await self._store.add(message)
        self._activity.kept(is_new=is_new)
        return is_new


class MeteredThreads:
    """Threads that tell of leases and turns.

    Args:
        store: The threads.
        activity: Told of them.
    """

    def __init__(self, store: ThreadStore, activity: Activity) -> None:
        self._store, self._activity = store, activity
        self.ensure = store.ensure
        self.get = store.get
        self.count_due = store.count_due
        self.running = store.running
        self.set_aside = store.set_aside
        self.extend = store.extend
        self.set_requesters = store.set_requesters

    async def add(self, thread: Thread) -> bool:
        """See `ThreadStore.add`."""
        is_new = await self._store.add(thread)
        if is_new and thread.leased_by:
            self._activity.claimed(thread)
        return is_new

    async def wake(
        self, thread_id: str, *, now_ms: int, lease: Lease | None = None
    ) -> Thread | None:
        """See `ThreadStore.wake`."""
        thread = await self._store.wake(thread_id, now_ms=now_ms, lease=lease)
        if thread is not None and lease is not None and lease.is_on(thread):
            self._activity.claimed(thread)
        return thread

    async def due(self, *, now_ms: int, limit: int) -> Sequence[Thread]:
        """See `ThreadStore.due`."""
        found = await self._store.due(now_ms=now_ms, limit=limit)
        for thread in found:
            self._activity.due(thread)
        return found

    async def claim(
        self, thread_id: str, *, owner: str, now_ms: int, until_ms: int
    ) -> Thread | None:
        """See `ThreadStore.claim`."""
        thread = await self._store.claim(thread_id, owner=owner, now_ms=now_ms, until_ms=until_ms)
        if thread is not None:
            self._activity.claimed(thread)
        return thread

    async def set_turn(
        self,
        thread_id: str,
        *,
        fence: int,
        turn: int,
        turn_open: bool,
        requesters_json: str | None = None,
    ) -> bool:
        """See `ThreadStore.set_turn`."""
        is_kept = await self._store.set_turn(
            thread_id,
            fence=fence,
            turn=turn,
            turn_open=turn_open,
            requesters_json=requesters_json,
        )
        if is_kept and not turn_open:
            self._activity.turn_ended()
        return is_kept

    async def release(
        self,
        thread_id: str,
        *,
        fence: int,
        wakes: int,
        now_ms: int,
        retry_ms: int | None = None,
        ends_turn: bool = False,
    ) -> bool:
        """See `ThreadStore.release`."""
        if retry_ms is not None:
            self._activity.failed("thread")
        is_done = await self._store.release(
            thread_id,
            fence=fence,
            wakes=wakes,
            now_ms=now_ms,
            retry_ms=retry_ms,
            ends_turn=ends_turn,
        )
        if ends_turn:
            self._activity.turn_ended()
        return is_done


class MeteredCheckpoints:
    """Checkpoints that tell of the steps of runs.

    Args:
        store: The checkpoints.
        activity: Told of them.
    """

    def __init__(self, store: AmendingStore, activity: Activity) -> None:
        self._store, self._activity = store, activity
        self.load, self.append = store.load, store.append

    async def save(
        self, checkpoint_id: str, data: str, *, status: CheckpointStatus, expected_version: int
    ) -> int:
        """See `CheckpointStore.save`."""
        with self._activity.run_step("checkpoint", checkpoint_id):
            return await self._store.save(
                checkpoint_id, data, status=status, expected_version=expected_version
            )

    async def amend(self, checkpoint_id: str, change: str, *, expected_version: int) -> int:
        """See `AmendingStore.amend`."""
        with self._activity.run_step("checkpoint", checkpoint_id):
            return await self._store.amend(checkpoint_id, change, expected_version=expected_version)

    async def claim(self, checkpoint_id: str, claim: str, *, expected_version: int) -> int:
        """See `CheckpointStore.claim`."""
        with self._activity.run_step("resume", checkpoint_id):
            return await self._store.claim(checkpoint_id, claim, expected_version=expected_version)

    async def close(self, checkpoint_id: str, *, expected_version: int) -> None:
        """See `CheckpointStore.close`."""
        with self._activity.run_step("end", checkpoint_id):
            await self._store.close(checkpoint_id, expected_version=expected_version)


class MeteredApprovals:
    """Approvals that tell of requests, decisions and cards.

    Args:
        store: The approvals.
        activity: Told of them.
    """

    def __init__(self, store: ApprovalStore, activity: Activity) -> None:
        self._store, self._activity = store, activity
        self.get = store.get
        self.get_all = store.get_all
        self.withdraw = store.withdraw
        self.set_said = store.set_said
        self.annotate = store.annotate
        self.open_of = store.open_of
        self.heads_of = store.heads_of
        self.newest_of = store.newest_of
        self.of_turn = store.of_turn
        self.undelivered = store.undelivered
        self.redraw = store.redraw
        self.count_due = store.count_due
        self.count_pending = store.count_pending
        self.mark_undeliverable = store.mark_undeliverable
        self.mark_reminded = store.mark_reminded
        self.mark_stuck = store.mark_stuck
        self.mark_seen = store.mark_seen
        self.mark_escalation_told = store.mark_escalation_told
        self.mark_messages = store.mark_messages
        self.mark_batch = store.mark_batch
        self.split = store.split
        self.mark_beside = store.mark_beside

    async def add(self, approval: Approval) -> bool:
        """See `ApprovalStore.add`."""
        with self._activity.asking([approval]):
            is_new = await self._store.add(approval)
        if is_new:
            self._activity.asked(approval)
        return is_new

    async def add_all(
        self, approvals: Sequence[Approval], *, entries: Sequence[AuditEntry] = ()
    ) -> frozenset[str]:
        """See `ApprovalStore.add_all`."""
        with self._activity.asking(approvals):
            new = await self._store.add_all(approvals, entries=entries)
        for approval in approvals:
            if approval.approval_id in new:
                self._activity.asked(approval)
        return new

    async def escalate(self, approval_id: str, *, fence: int, now_ms: int) -> Approval | None:
        """See `ApprovalStore.escalate`."""
        approval = await self._store.escalate(approval_id, fence=fence, now_ms=now_ms)
        if approval is not None:
            self._activity.escalated(approval)
        return approval

    async def climb(
        self, changed: Approval, *, revision: int, now_ms: int, redraws: bool
    ) -> Approval | None:
        """See `ApprovalStore.climb`."""
        before = changed.escalated_ms
        approval = await self._store.climb(
            changed, revision=revision, now_ms=now_ms, redraws=redraws
        )
        if approval is not None and before == now_ms:
            self._activity.escalated(approval)
        return approval

    async def decide(self, approval_id: str, decision: Decision, *, digest: str) -> Approval:
        """See `ApprovalStore.decide`."""
        approval = await self._store.decide(approval_id, decision, digest=digest)
        self._activity.decided(approval, decision)
        return approval

    async def vote(
        self, changed: Approval, *, revision: int, now_ms: int, restarts: bool = False
    ) -> Approval:
        """See `ApprovalStore.vote`."""
        return self._noted(
            await self._store.vote(changed, revision=revision, now_ms=now_ms, restarts=restarts)
        )

    async def rebind(self, changed: Approval, *, digest: str, now_ms: int) -> Approval:
        """See `ApprovalStore.rebind`."""
        return self._noted(await self._store.rebind(changed, digest=digest, now_ms=now_ms))

    def _noted(self, approval: Approval) -> Approval:
        if approval.decision is not None:
            self._activity.decided(approval, approval.decision)
        return approval

    async def due(self, *, now_ms: int, limit: int) -> Sequence[Approval]:
        """See `ApprovalStore.due`."""
        found = await self._store.due(now_ms=now_ms, limit=limit)
        for approval in found:
            self._activity.due(approval)
        return found

    async def claim(
        self, approval_id: str, *, owner: str, now_ms: int, until_ms: int
    ) -> Approval | None:
        """See `ApprovalStore.claim`."""
        approval = await self._store.claim(
            approval_id, owner=owner, now_ms=now_ms, until_ms=until_ms
        )
        if approval is not None:
            self._activity.claimed(approval)
        return approval

    async def mark_card(
        self, approval_id: str, *, fence: int, card_ts: str | None, drawn_revision: int | None
    ) -> bool:
        """See `ApprovalStore.mark_card`."""
        is_kept = await self._store.mark_card(
            approval_id, fence=fence, card_ts=card_ts, drawn_revision=drawn_revision
        )
        if is_kept and drawn_revision is not None:
            self._activity.drawn(approval_id, drawn_revision)
        return is_kept

    async def mark_run(
        self,
        approval_id: str,
        *,
        was: str,
        run_json: str,
        now_ms: int,
        closes: bool = False,
        lease: Lease | None = None,
    ) -> Approval | None:
        """See `ApprovalStore.mark_run`."""
        approval = await self._store.mark_run(
            approval_id, was=was, run_json=run_json, now_ms=now_ms, closes=closes, lease=lease
        )
        if approval is not None and lease is not None and lease.is_on(approval):
            self._activity.claimed(approval)
        if approval is not None and closes:
            self._activity.closed(approval_id)
        return approval

    async def close(self, approval_id: str) -> None:
        """See `ApprovalStore.close`."""
        await self._store.close(approval_id)
        self._activity.closed(approval_id)

    async def close_all(self, approval_ids: Sequence[str]) -> None:
        """See `ApprovalStore.close_all`."""
        await self._store.close_all(approval_ids)
        for approval_id in approval_ids:
            self._activity.closed(approval_id)

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
        """See `ApprovalStore.release`."""
        if failed:
            self._activity.failed("approval")
        is_done = await self._store.release(
            approval_id,
            fence=fence,
            revision=revision,
            due_ms=due_ms,
            now_ms=now_ms,
            failed=failed,
            drawn=drawn,
            sign=sign,
        )
        if is_done and drawn is not None:
            self._activity.drawn(approval_id, drawn.revision)
        return is_done


class MeteredAudit:
    """An audit that tells of refusals.

    Args:
        store: The audit.
        activity: Told of them.
    """

    def __init__(self, store: AuditStore, activity: Activity) -> None:
        self._store, self._activity = store, activity
        self.of_thread = store.of_thread

    async def append(self, entry: AuditEntry) -> None:
        """See `AuditStore.append`."""
        await self._store.append(entry)
        self._tell(entry)

    async def append_all(self, entries: Sequence[AuditEntry]) -> None:
        """See `AuditStore.append_all`."""
        await self._store.append_all(entries)
        for entry in entries:
            self._tell(entry)

    def _tell(self, entry: AuditEntry) -> None:
        if entry.action == REFUSED:
            self._activity.refused()


class MeteredStorage:
    """A database that tells what is written to it; otherwise the same.

    Args:
        storage: The database.
        telemetry: Is told.
        clock: The time now, in milliseconds since the epoch.
    """

    def __init__(self, storage: Storage, telemetry: Telemetry, clock: Callable[[], int]) -> None:
        activity = Activity(telemetry, clock)
        self.inbox = MeteredInbox(storage.inbox, activity)
        self.threads = MeteredThreads(storage.threads, activity)
        self.checkpoints = MeteredCheckpoints(storage.checkpoints, activity)
        self.approvals = MeteredApprovals(storage.approvals, activity)
        self.audit = MeteredAudit(storage.audit, activity)
        self.log = storage.log
        self.posts = storage.posts
        self.whispers = storage.whispers
        self.delegations = storage.delegations
        self.people = storage.people
        self.grants = storage.grants
        self.lists = storage.lists
        self.retention = storage.retention
        self.trail = storage.trail
        self.restoring = storage.restoring
        self.open = storage.open
        self.open_beside = storage.open_beside
        self.open_to_read = storage.open_to_read
        self.reconsider = storage.reconsider
        self.ping = storage.ping
        self.examine = storage.examine
        self.count_unreadable = storage.count_unreadable
        self.unreadable = storage.unreadable
        self.close = storage.close


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
