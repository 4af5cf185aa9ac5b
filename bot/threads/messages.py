"""Stored messages of a thread: messages of people, posts of agents, ephemeral messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum

from storage.documents import Collection, Document, Index, Spec, Text, WorkDocument, update
from storage.errors import RecordNotFoundError


class MessageStatus(StrEnum):
    """The status of a message of the inbox."""

    NEW = "new"  # not yet given to an agent
    TAKEN = "taken"  # input of the turn named in the record


class Message(Document):
    """A person's message in a thread."""

    spec = Spec(
        name="messages",
        noun="message",
        key="message_id",
        indexes=(Index(("thread_id", "turn", "ts")), Index(("received_ms",))),
        content=frozenset({"thread_id", "ts", "user_id", "received_ms"}),
    )

    message_id: str
    """`team:channel:ts`: the same for a mention and the channel message of one post."""
    thread_id: str
    ts: str
    user_id: str
    text: Text
    received_ms: int
    status: MessageStatus = MessageStatus.NEW
    turn: int = 0
    """The turn that took it; 0 while new."""


class Post(Document):
    """A text of the agent on its way into the thread."""

    spec = Spec(
        name="posts",
        noun="post",
        key="post_id",
        indexes=(
            Index(("thread_id", "created_ms"), {"posted": False, "failure": ""}),
            Index(("thread_id",)),
        ),
    )

    post_id: str
    """The key of the agent's event: the same when a run is repeated after a crash."""
    thread_id: str
    text: Text
    created_ms: int
    ts: str = ""
    """`ts` of the Slack message, once it is known."""
    posted: bool = False
    """Whether the message in Slack is complete."""
    failure: Text = ""
    """Why it never will be complete; empty while there is hope."""


class EphemeralMessage(WorkDocument):
    """A private answer on its way to one person."""

    spec = Spec(
        name="ephemeral_messages",
        noun="ephemeral message",
        key="message_id",
        indexes=(Index(("channel_id", "thread_ts")), Index(("created_ms",))),
    )

    message_id: str
    channel_id: str
    thread_ts: str
    """The thread in which it is shown; empty for the channel itself."""
    user_id: str
    text: Text
    created_ms: int
    withdraw: tuple[str, ...] = ()
    """Ids of the approvals that its reader is offered to withdraw."""
    decide: tuple[str, ...] = ()
    """Ids of the approvals whose buttons its reader is shown."""
    language: str = ""
    """The language of its text, for its buttons; empty for that of the workspace."""


class InboxStore:
    """People's messages, in the order of their `ts`.

    A list raises `RecordFormatError` when a message cannot be read: nobody knows what was said.
    """

    def __init__(self, collection: Collection[Message]) -> None:
        self.collection = collection

    async def add(self, message: Message) -> bool:
        """Keep a message. False (and nothing written) when its id is already known."""
        return bool(await self.collection.insert(message))

    async def new(self, thread_id: str, *, limit: int) -> Sequence[Message]:
        """Messages that no turn has taken, oldest first."""
        return await self._of(thread_id, 0, limit)

    async def of_turn(self, thread_id: str, turn: int) -> Sequence[Message]:
        """The input of a turn, oldest first."""
        return await self._of(thread_id, turn, None)

    async def take(self, message_ids: Sequence[str], *, turn: int) -> Sequence[Message]:
        """Make new messages the input of a turn; a message that was taken before stays as it is.

        Returns:
            Those of them that the turn has now, oldest first.
        """

        def take(one: Message) -> Message | None:
            is_free = one.turn in {0, turn}
            return one.changed(status=MessageStatus.TAKEN, turn=turn) if is_free else None

        async def taken(key: str) -> Message | None:
            try:
                return await update(self.collection, key, take)
            except RecordNotFoundError:
                return None

        # One after the other: a process that dies meanwhile leaves the newest ones unread.
        found = [await taken(one) for one in sorted(message_ids)]
        return sorted((one for one in found if one is not None), key=lambda one: one.ts)

    async def revise(self, message_id: str, text: str) -> Message | None:
        """Change the text of a message that no turn has taken; one that was taken stays as it is.

        Returns:
            The message as it is now; None when there is none.
        """

        def revise(one: Message) -> Message | None:
            return one.changed(text=text) if one.status is MessageStatus.NEW else None

        try:
            changed = await update(self.collection, message_id, revise)
            return changed or await self.collection.get(message_id)
        except RecordNotFoundError:
            return None

    async def _of(self, thread_id: str, turn: int, limit: int | None) -> list[Message]:
        where = {"thread_id": thread_id, "turn": turn}  # 0 while no turn has taken it
        page = await self.collection.find(where, sort=["ts"], limit=limit, strict=True)
        return page.documents


class PostStore:
    """The agent's texts on their way into threads."""

    def __init__(self, collection: Collection[Post]) -> None:
        self._posts = collection

    async def add(self, post: Post) -> bool:
        """Insert. False (and nothing written) when the id exists."""
        return bool(await self._posts.insert(post))

    async def add_or_get(self, post: Post) -> Post | None:
        """Insert, and return None; when the id exists, write nothing, and return what is stored."""
        return None if await self.add(post) else await self._posts.get(post.post_id)

    async def get(self, post_id: str) -> Post | None:
        """Read one; None when there is none."""
        try:
            return await self._posts.get(post_id)
        except RecordNotFoundError:
            return None

    async def begin(self, post_id: str, *, ts: str) -> None:
        """Record that the message `ts` shows a part of the text."""
        await self._change(post_id, lambda one: one.changed(ts=ts))

    async def finish(self, post_id: str, *, ts: str, text: str | None = None) -> None:
        """Record that the text stands in Slack, whole, as the message `ts`.

        Args:
            post_id: Of the post.
            ts: Of the message.
            text: The whole text, where the record was made when it began to grow.
        """

        def finish(one: Post) -> Post:
            return one.changed(ts=ts, posted=True, text=one.text if text is None else text)

        await self._change(post_id, finish)

    async def fail(self, post_id: str, *, reason: str) -> None:
        """Record that the text will never stand in Slack, and why; never empty."""
        await self._change(post_id, lambda one: one.changed(failure=reason))

    async def unfinished(self, thread_id: str) -> Sequence[Post]:
        """Posts of a thread that neither are finished nor have failed, oldest first.

        One that cannot be read is quarantined, and left out.
        """
        where = {"thread_id": thread_id, "posted": False, "failure": ""}
        return (await self._posts.find(where, sort=["created_ms"])).documents

    async def any_of(self, checkpoint_id: str) -> bool:
        """Whether its thread has a post whose id begins with `checkpoint_id` and a colon."""
        # A semicolon comes right after the colon: all ids that begin with it lie in between.
        ids = {"$gte": f"{checkpoint_id}:", "$lt": f"{checkpoint_id};"}
        thread_id = checkpoint_id.rpartition("#")[0]
        page = await self._posts.find({"thread_id": thread_id, "id": ids}, limit=1)
        return bool(page.documents)

    async def _change(self, post_id: str, change: Callable[[Post], Post]) -> None:
        """Change a post, if there is one."""
        try:
            await update(self._posts, post_id, change)
        except RecordNotFoundError:
            return
