"""The document of a thread that no person starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bot.records.origin import RequestOrigin
from bot.records.thread import Thread, ThreadStore
from storage.documents import Collection, Index, Spec, Text, WorkDocument
from storage.thread_ids import name_of, thread_id_of


class ThreadStart(WorkDocument):
    """One start of an agent's thread by a program, a trigger or a schedule.

    It is due until its thread begins, and again when the thread's time is over. A hold of a trigger
    is a start that begins no thread: it is due until its message is true.
    """

    spec = Spec(
        name="thread_starts",
        noun="start",
        indexes=(
            Index(("created_ms",)),
            Index(("channel_id", "created_ms")),
            Index(("origin.program", "created_ms")),
            Index(("origin.program", "under", "created_ms")),
            Index(("thread_id", "created_ms")),
            Index(("key_digest", "created_ms")),
        ),
    )

    id: str
    """`thr_` and 32 hexadecimal digits of a digest of the idempotency key and of the id that the
    key named before, so that a key starts once; or `sch_`, the name of a schedule and the due
    minute; or, for a hold, `hld_` and digits of a digest of the trigger and the text."""
    key_digest: str = ""
    """Digest of the idempotency key, in hexadecimal; empty for a schedule and for a hold."""
    team_id: str
    channel_id: str
    origin: RequestOrigin
    """The door of the start, and the person who answers for it."""
    agent: str = ""
    """Name by which the agent is addressed; empty for the channel's agent."""
    agent_name: str
    """Name of the agent at the time of the start."""
    title: Text
    text: Text
    """The agent's input, with secrets masked."""
    fingerprint: str
    """SHA-256 of the content, in hexadecimal."""
    metadata: Mapping[str, str] = {}
    """Texts by name that the program gets back; nobody else sees them."""
    depth: int = 1
    """How many starts without a person led to it, with itself."""
    requesters: tuple[str, ...]
    """Slack user ids of the owner and of the person for whom the program asks."""
    created_ms: int
    expires_ms: int
    deliveries: tuple[str, ...] = ()
    """Identities of the webhooks that named this start, so that none is taken twice."""
    under: str = ""
    """`ts` of the first message of the open thread that it joins; empty for a thread of its own."""
    thread_id: str = ""
    """Id of its thread; empty until its first message is in Slack."""
    is_restored: bool = False
    """Whether it was due in a restored copy: its first message may be in Slack."""
    failure: Text = ""
    """Why no thread began; empty while one can begin."""
    ended: str = ""
    """Why its turns are stopped: `stopped` by its program or `expired`; empty if neither is. Why a
    hold is over: `lifted` or `quiet`."""
    message_ts: str = ""
    """`ts` of the message about a hold."""
    lifted_by: str = ""
    """Slack user id of the person who lifted a hold."""

    @property
    def is_hold(self) -> bool:
        """Whether it only says that a trigger is held."""
        return self.id.startswith("hld_")

    @property
    def thread_ts(self) -> str:
        """`ts` of the first message; empty until it is in Slack."""
        return name_of(self.thread_id) if self.thread_id else ""

    def begun(self, ts: str) -> ThreadStart:
        """Record that its message is in Slack. It is due again when its time is over."""
        thread_id = thread_id_of(self.team_id, self.channel_id, self.under or ts)
        return self.changed(thread_id=thread_id, due_ms=None if self.under else self.expires_ms)


def all_requesters(origin: RequestOrigin) -> Sequence[str]:
    """Return the people who answer for a start, the owner first. None of them can approve."""
    return tuple(dict.fromkeys(filter(None, (origin.owner, origin.requested_for))))


def revision_of(start: ThreadStart, thread: Thread | None) -> int:
    """Return the revision of a start and its thread together; it rises with each change."""
    return start.revision + (thread.revision if thread is not None else 0)


async def revisions_of(
    starts: Collection[ThreadStart], threads: ThreadStore, ids: Sequence[str]
) -> dict[str, int]:
    """Return the revisions of starts by id, in two queries. Skip unreadable records."""
    chosen = (await starts.find({"id": {"$in": list(ids)}})).documents
    names = [start.thread_id for start in chosen if start.thread_id]
    read = (await threads.collection.find({"id": {"$in": names}})).documents if names else []
    by_id = {thread.thread_id: thread for thread in read}
    return {start.id: revision_of(start, by_id.get(start.thread_id)) for start in chosen}
