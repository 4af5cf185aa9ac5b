"""The ports to what a thread shows beside its cards: who works, which tools run, how it ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from bot.approvals.model import Approval
from bot.people.model import Grant
from bot.ports.tools import ToolTask
from bot.threads.model import Thread

Words = Callable[[], str]
"""Writes a text when it is needed."""


class Presence(Protocol):
    """Shows in a thread that its agent works. Never raises; nothing depends on it."""

    def show(self, thread: Thread, words: Words, *, message_ts: str = "", title: str = "") -> None:
        """Show what it does, soon.

        Args:
            thread: Where.
            words: Writes it, such as “is thinking…”; only asked when it is shown.
            message_ts: The message that it answers; empty when that is not known.
            title: What the thread is about; empty when that is not known.
        """
        ...

    def refresh(self, thread_id: str) -> None:
        """Say that it still works: Slack takes down what is old."""
        ...

    async def clear(self, thread: Thread, *, message_ts: str = "", is_left: bool = False) -> None:
        """Take down what is shown, before people are asked something, and at the end.

        Args:
            thread: Where.
            message_ts: See `show`.
            is_left: Whether a process that died may have left something.
        """
        ...


class TaskBoard(Protocol):
    """Shows which tools run. Raises `DeliveryError`; nothing depends on it."""

    @property
    def is_there(self) -> bool:
        """Whether the workspace may have such a thing."""
        ...

    async def begin(self, thread: Thread, tasks: Sequence[ToolTask]) -> str:
        """Show tasks in a message of their own; return its `ts`."""
        ...

    async def update(self, thread: Thread, ts: str, tasks: Sequence[ToolTask]) -> None:
        """Show tasks that are new there, or have changed."""
        ...

    async def end(self, thread: Thread, ts: str, *, keep: bool) -> None:
        """End such a message; it stays as it is, or goes."""
        ...


class Reactions(Protocol):
    """Shows on the first message of a thread that something waits in it, or how it ended.

    Raises `DeliveryError` when Slack does not take it now; what it never will is no error.
    """

    async def put(
        self,
        approval: Approval,
        sign: str,
        *,
        was: str = "",
        look_first: bool = False,
        again: bool = False,
        waits: bool = False,
    ) -> None:
        """Show a sign; that it stands there is fine.

        Args:
            approval: Whose.
            sign: A name of `bot.approvals.due.thread_reactions`.
            was: The sign that this approval had; one that told of its end goes.
            look_first: Whether an earlier try may have shown it.
            again: Whether it is that of others, taken off too early.
            waits: Whether something else waits in the thread: its sign stays alone.
        """
        ...

    async def take(self, approval: Approval, sign: str, *, keep: str = "") -> None:
        """Take a sign off; that there is none is fine. One that looks like `keep` stays."""
        ...


class Notices(Protocol):
    """Shows what is no card. Raises `DeliveryError` when Slack refuses or does not answer."""

    async def show_grant(self, grant: Grant, approval: Approval, *, now_ms: int) -> str:
        """Show a standing grant in its thread: over its message, or as a new one.

        One that an earlier try may have posted is searched, and taken.

        Args:
            grant: As it is now.
            approval: What it was given with.
            now_ms: The time now: it may be over.

        Returns:
            The `ts` of the message.
        """
        ...

    async def alert(self, approval: Approval, *, to: str) -> None:
        """Say that a call runs without those who should decide: who lets it run, and why.

        One that an earlier try posted is enough: it may say by now who has seen it.

        Args:
            approval: As decided.
            to: Id of a channel, or of a user, who gets a direct message.
        """
        ...

    async def ask_admin(self, approval: Approval, *, to: str, by: str, text: str) -> None:
        """Tell an admin that nobody can decide something, once for each who asks.

        Args:
            approval: As it is.
            to: Slack user id of the admin.
            by: Of who asks.
            text: What they say beside it; may be empty.
        """
        ...

    async def summarise(self, thread: Thread, over: Sequence[Approval], *, ts: str) -> str:
        """Sum up in a thread what became of its requests: over the message `ts`, or a new one.

        One that an earlier try may have posted is searched, and taken.

        Args:
            thread: The thread.
            over: Requests that have come to their end, the oldest first.
            ts: Of the message; empty when it is not known.

        Returns:
            The `ts` of the message.
        """
        ...

    async def show_seen(
        self, approval: Approval, seen_by: Sequence[str], *, channel_id: str, ts: str
    ) -> None:
        """Write on such a message who has seen it.

        Args:
            approval: As decided.
            seen_by: User ids; the first was the first.
            channel_id: Where the message is.
            ts: Which one it is.
        """
        ...
