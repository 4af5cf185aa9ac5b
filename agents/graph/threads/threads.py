"""The threads of a graph: read, change, fork, cancel and delete them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from agents.core.checkpoint import CheckpointStatus, CheckpointStore, GraphThreadStore
from agents.core.errors import (
    AgentConfigError,
    CheckpointConflictError,
    CheckpointError,
    CheckpointNotFoundError,
    NothingPendingError,
)
from agents.graph.errors import GraphMismatchError, NoCheckpointerError, ThreadBusyError
from agents.graph.options import Options
from agents.graph.state.place import graph_point, graph_state, with_state
from agents.graph.state.plan import Topology
from agents.graph.threads.rewrite import edited, forked
from agents.graph.threads.snapshot import StateSnapshot, graph_address, pending_of, task_views
from agents.graph.threads.thread import GraphThread, is_copy, stored_id, thread_of
from agents.runs.document import RunDocument


class GraphThreads:
    """The threads of a graph: read, change, fork, cancel and delete them.

    Args:
        topology: The graph's structure.
        store: Stores the threads; None stores nothing.
        options: Other options of `compile`.
    """

    def __init__(
        self, topology: Topology, *, store: CheckpointStore | None, options: Options
    ) -> None:
        self.topology = topology
        self._store = store
        self._options = options

    @property
    def name(self) -> str:
        """Name of the graph: a part of addresses."""
        return self.topology.name

    async def get_state(self, thread_id: str, checkpoint: int | None = None) -> StateSnapshot:
        """Read the state of a thread.

        Args:
            thread_id: The thread.
            checkpoint: Number of an earlier checkpoint; by default the newest.

        Raises:
            NoCheckpointerError: The graph has no store.
            CheckpointNotFoundError: The thread never ran, or has no such checkpoint.
        """
        thread = self._thread(thread_id, "get_state()")
        head = await thread.need_head(self.topology)
        document = head if checkpoint is None else await thread.read(checkpoint)
        return self._snapshot(thread_id, document)

    async def history(self, thread_id: str, *, limit: int | None = None) -> list[StateSnapshot]:
        """Read the checkpoints of a thread, newest first.

        Args:
            thread_id: The thread.
            limit: Maximum number of checkpoints.

        Raises:
            NoCheckpointerError: The graph has no store.
            CheckpointNotFoundError: The thread never ran.
        """
        thread = self._thread(thread_id, "history()")
        head = await thread.need_head(self.topology)
        last = 0 if limit is None else max(head.number - limit, 0)
        numbers = range(head.number, last, -1)
        return [self._snapshot(thread_id, await thread.read(number)) for number in numbers]

    async def update_state(
        self, thread_id: str, update: Mapping[str, object], *, as_node: str = ""
    ) -> StateSnapshot:
        """Write to the state of an idle thread.

        Without `as_node`, pending questions are withdrawn, because they were about another state;
        their nodes ask again under new ids when the thread continues. With `as_node`, the update
        counts as the result of that node, and other nodes stay pending. A node that is not part of
        the step replaces all nodes of the step.

        Args:
            thread_id: The thread.
            update: By key of the state, through its reducers.
            as_node: The node that the update belongs to; `END` ends the turn.

        Raises:
            NoCheckpointerError: The graph has no store.
            CheckpointError: The thread never ran, is busy, or another process wrote first.
            AgentConfigError: The node is unknown.
            StateUpdateError: The update does not fit; nothing was written.
        """
        thread = self._thread(thread_id, "update_state()")
        head = await thread.need_head(self.topology)
        thread.refuse_running()
        document = await edited(self.topology, head, update, as_node)
        return self._snapshot(thread_id, await thread.save(document))

    async def fork(
        self, thread_id: str, *, at: int | None = None, new_thread_id: str = ""
    ) -> StateSnapshot:
        """Go back to a checkpoint, or copy it to another thread.

        Its pending questions become pending again, under new ids. The history stays.

        Args:
            thread_id: The thread.
            at: Number of the checkpoint; by default the newest.
            new_thread_id: A thread that does not exist yet; empty goes back in the same thread.

        Raises:
            NoCheckpointerError: The graph has no store.
            CheckpointError: The checkpoint is unknown, the thread is busy, the new thread exists,
                or another process wrote first.
        """
        thread = self._thread(thread_id, "fork()")
        head = await thread.need_head(self.topology)
        thread.refuse_running()
        source = head if at is None else await thread.read(at)
        document = forked(source, head, self._options.new_id)
        if new_thread_id and new_thread_id != thread_id:
            thread = self._thread(new_thread_id, "fork()")
            if await thread.load() is not None:
                raise CheckpointConflictError(
                    new_thread_id, "this thread exists already; give another `new_thread_id`"
                )
            document = replace(document, number=1, parent=None)
        return self._snapshot(thread.thread_id, await thread.save(document))

    async def threads(self, *, after: str = "", limit: int = 100) -> list[StateSnapshot]:
        """List the threads of this graph, ordered by id.

        Threads of other graphs in the same store and unreadable threads are left out.

        Args:
            after: Last thread id of the previous page; empty for the first page.
            limit: Maximum number of threads.

        Raises:
            NoCheckpointerError: The graph has no store that can list.
        """
        store, snapshots = self._listing("threads()"), list[StateSnapshot]()
        last = stored_id(after) if after else ""
        while len(snapshots) < limit and (page := await store.ids(after=last)):
            last = page[-1]
            for thread_id in filter(None, map(thread_of, page)):
                snapshot = await self._known(store, thread_id)
                snapshots += [snapshot] if snapshot else []
        return snapshots[:limit]

    async def delete_thread(self, thread_id: str) -> None:
        """Delete a thread with its whole history. This cannot be undone.

        Works for unreadable threads and after a rename of the graph. May be repeated after an
        error.

        Args:
            thread_id: The thread.

        Raises:
            NoCheckpointerError: The graph has no store that can delete.
            ThreadBusyError: The thread is busy.
            CheckpointConflictError: Another process wrote first.
            CheckpointNotFoundError: The thread does not exist.
        """
        store, key = self._listing("delete_thread()"), stored_id(thread_id)
        head = await store.load(key)
        if head is not None and head.status is CheckpointStatus.RUNNING:
            raise ThreadBusyError(thread_id)
        copies = await _copies(store, key)
        for copy in copies:
            stored = await store.load(copy)
            await store.delete(copy, expected_version=stored.version if stored else 0)
        # The head last: after an error before this, the thread still exists and can be deleted
        # again.
        await store.delete(key, expected_version=head.version if head else 0)
        if head is None and not copies:
            raise CheckpointNotFoundError(thread_id)

    async def _known(self, store: GraphThreadStore, thread_id: str) -> StateSnapshot | None:
        """Return a thread of this graph; None if it is another graph's or unreadable."""
        thread = GraphThread(store, thread_id)
        try:
            return self._snapshot(thread_id, await thread.need_head(self.topology))
        except (CheckpointError, GraphMismatchError):
            return None

    def _listing(self, what: str) -> GraphThreadStore:
        if self._store is None or not isinstance(self._store, GraphThreadStore):
            raise NoCheckpointerError(self.name, f"{what}, which takes a ThreadStore,")
        return self._store

    async def cancel(self, thread_id: str, reason: str) -> StateSnapshot:
        """End the turn of a thread and withdraw its pending questions.

        Works after a rename of the graph or its nodes.

        Args:
            thread_id: The thread.
            reason: Why; never empty.

        Raises:
            NoCheckpointerError: The graph has no store.
            NothingPendingError: The turn has ended.
            CheckpointError: The thread never ran, is busy, or another process wrote first.
            AgentConfigError: The reason is empty.
        """
        if not reason:
            raise AgentConfigError("cancel() needs a reason: people will ask")
        thread = self._thread(thread_id, "cancel()")
        head = await thread.any_head()
        thread.refuse_running()
        if head.phase in {"finished", "cancelled"}:
            raise NothingPendingError(thread_id)
        state = replace(graph_state(head), tasks=(), gate=(), joins={})
        document = with_state(head, state, phase="cancelled", reason=reason)
        saved = await thread.save(replace(document, parent=head.number))
        return self._snapshot(thread_id, saved)

    def _thread(self, thread_id: str, what: str) -> GraphThread:
        if self._store is None or not thread_id:
            raise NoCheckpointerError(self.name, what)
        return GraphThread(self._store, thread_id)

    def _snapshot(self, thread_id: str, document: RunDocument) -> StateSnapshot:
        state, waiting = graph_state(document), pending_of(graph_point(document))
        return StateSnapshot(
            thread_id=thread_id,
            checkpoint=document.number,
            parent=document.parent,
            phase=document.phase,
            reason=document.reason,
            step=state.step,
            values=self.topology.shown(state),
            next=state.next,
            tasks=task_views(state, graph_address(document.agent), waiting),
            interrupts=waiting,
        )


async def _copies(store: GraphThreadStore, key: str) -> list[str]:
    """Return the storage ids of a thread's history."""
    copies, last = list[str](), ""
    while page := await store.ids(prefix=f"{key}@", after=last):
        last = page[-1]
        copies += [copy_id for copy_id in page if is_copy(copy_id, key)]
    return copies
