"""The ports to messages: what people write, what the agent says, what one person is told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from storage.records import Message, Post, Whisper


class InboxStore(Protocol):
    """People's messages, in the order of their `ts`."""

    async def add(self, message: Message) -> bool:
        """Keep a message. False (and nothing written) when its id is already known."""
        ...

    async def new(self, thread_id: str, *, limit: int) -> Sequence[Message]:
        """Messages that no turn has taken, oldest first.

        Raises:
            RecordFormatError: One cannot be read: nobody knows what was said.
        """
        ...

    async def take(self, message_ids: Sequence[str], *, turn: int) -> Sequence[Message]:
        """Make new messages the input of a turn; a message that was taken before stays as it is.

        Returns:
            Those of them that the turn has now, oldest first.

        Raises:
            RecordFormatError: One cannot be read: nobody knows what was said.
        """
        ...

    async def revise(self, message_id: str, text: str) -> Message | None:
        """Change the text of a message that no turn has taken; one that was taken stays as it is.

        Returns:
            The message as it is now; None when there is none.

        Raises:
            RecordFormatError: It cannot be read.
        """
        ...

    async def of_turn(self, thread_id: str, turn: int) -> Sequence[Message]:
        """The input of a turn, oldest first.

        Raises:
            RecordFormatError: One cannot be read: nobody knows what was said.
        """
        ...


class PostStore(Protocol):
    """The agent's texts on their way into threads."""

    async def add(self, post: Post) -> bool:
        """Insert. False (and nothing written) when the id exists."""
        ...

    async def add_or_get(self, post: Post) -> Post | None:
        """Insert, and return None; when the id exists, write nothing, and return what is stored."""
        ...

    async def get(self, post_id: str) -> Post | None:
        """Read one; None when there is none."""
        ...

    async def begin(self, post_id: str, *, ts: str) -> None:
        """Record that the message `ts` shows a part of the text."""
        ...

    async def finish(self, post_id: str, *, ts: str, text: str | None = None) -> None:
        """Record that the text stands in Slack, whole, as the message `ts`.

        Args:
            post_id: Of the post.
            ts: Of the message.
            text: The whole text, where the record was made when it began to grow.
        """
        ...

    async def fail(self, post_id: str, *, reason: str) -> None:
        """Record that the text will never stand in Slack, and why; never empty."""
        ...

    async def unfinished(self, thread_id: str) -> Sequence[Post]:
        """Posts of a thread that neither are finished nor have failed, oldest first.

        One that cannot be read is marked, and left out.
        """
        ...

    async def any_of(self, checkpoint_id: str) -> bool:
        """Whether its thread has a post whose id begins with `checkpoint_id` and a colon."""
        ...


class WhisperStore(Protocol):
    """Private answers on their way to people."""

    async def add(self, whisper: Whisper) -> bool:
        """Insert. False (and nothing written) when the id exists."""
        ...

    async def due(self, *, now_ms: int, limit: int) -> Sequence[Whisper]:
        """Whispers with `due_ms <= now_ms` and no lease beyond `now_ms`, earliest first.

        Those that were set aside are not among them.
        """
        ...

    async def claim(
        self, whisper_id: str, *, owner: str, now_ms: int, until_ms: int
    ) -> Whisper | None:
        """Take the lease, as `ThreadStore.claim` does."""
        ...

    async def release(self, whisper_id: str, *, fence: int, due_ms: int | None) -> bool:
        """Give the lease back; None means that it was told, or never will be.

        Returns:
            False, and nothing is written, when the lease was lost.
        """
        ...
