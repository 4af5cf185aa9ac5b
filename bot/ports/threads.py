"""The ports to other displays of a thread: agent status, tools, reactions, notices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from bot.records.approval import Approval
from bot.records.people import Grant
from bot.records.starts import ThreadStart
from bot.records.switch import Freeze, FreezeAlert
from bot.records.thread import Thread


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedCall:
    """A pending call with edited or completed arguments.

    Attributes:
        arguments: The arguments. If the tool is known, it has validated them and filled in
            defaults.
        title: The tool's title for the call: verb and object; empty if the tool has no title.
        preview: The effect of the call; empty if the tool has no preview.
    """

    arguments: dict[str, Any]
    title: str = ""
    preview: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchWords:
    """A tool's texts for a batch: several of its calls on one card.

    Attributes:
        title: Title of all calls on the card; empty if the tool has none.
        rest: Title of the pending calls; empty if the tool has none.
        largest: Approval ids, the largest call first; empty if the tool has no order.
    """

    title: str = ""
    rest: str = ""
    largest: tuple[str, ...] = ()


class TaskStatus(StrEnum):
    """The state of a running call. The values are Slack's."""

    RUNNING = "in_progress"
    COMPLETE = "complete"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolTask:
    """A running or finished call in a thread's task message.

    Attributes:
        task_id: Id of the task within its message.
        title: The tool's name in words, without arguments.
        status: The state of the call.
    """

    task_id: str
    title: str
    status: TaskStatus = TaskStatus.RUNNING


Words = Callable[[], str]
"""Returns a text in the current language, right before the text is shown."""


class Presence(Protocol):
    """Shows in a thread that its agent works. Optional, so its methods never raise."""

    def show(self, thread: Thread, words: Words, *, message_ts: str = "", title: str = "") -> None:
        """Show a status after a short delay, unless the work ends before.

        Args:
            thread: The thread of the agent.
            words: Returns the status, such as “is thinking…”.
            message_ts: The message that the agent answers; empty if unknown.
            title: Title of the thread; empty if unknown.
        """
        ...

    def refresh(self, thread_id: str) -> None:
        """Send the status again if it is old: Slack removes a status after two minutes."""
        ...

    async def clear(self, thread: Thread, *, message_ts: str = "", is_left: bool = False) -> None:
        """Remove the status: before a card is posted, and when the run ends.

        Args:
            thread: The thread of the agent.
            message_ts: See `show`.
            is_left: Whether a crashed process may have left a status.
        """
        ...


class TaskBoard(Protocol):
    """Shows which tools run. Optional; raises `DeliveryError`."""

    @property
    def is_there(self) -> bool:
        """Whether the workspace may support task messages: Slack has not refused them lately."""
        ...

    async def begin(self, thread: Thread, tasks: Sequence[ToolTask]) -> str:
        """Post a message with tasks; return its `ts`."""
        ...

    async def update(self, thread: Thread, ts: str, tasks: Sequence[ToolTask]) -> None:
        """Add or update tasks of a message."""
        ...

    async def end(self, thread: Thread, ts: str, *, keep: bool) -> None:
        """Close a task message: keep the message, or delete it."""
        ...


class Reactions(Protocol):
    """Shows on a thread's first message that an approval is pending, or its outcome.

    Raises `DeliveryError` if a retry may succeed. A final refusal is not an error.
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
        """Show an approval's reaction, or a line if reactions are unavailable. Idempotent.

        Args:
            approval: The approval.
            sign: Name of the reaction, see `bot.approvals.due.thread_reactions`.
            was: The approval's previous reaction. A previous outcome is removed.
            look_first: Whether an earlier attempt may have posted the line.
            again: Whether this restores a reaction that was removed too early. Lines need no
                restoring: each approval has its own line.
            waits: Whether another approval of the thread is pending. Then the thread keeps its
                pending reaction, and only the line changes.
        """
        ...

    async def remove(self, approval: Approval, sign: str, *, keep: str = "") -> None:
        """Remove a reaction, if it exists. A reaction with the same emoji as `keep` stays."""
        ...


class Notices(Protocol):
    """Posts messages other than cards. Raises `DeliveryError` on refusal or without a response.

    A message that an earlier attempt may have posted is searched for before a post.
    """

    async def show_grant(self, grant: Grant, approval: Approval, *, now_ms: int) -> str:
        """Post or update the message about a standing grant in its thread.

        Args:
            grant: The current state of the grant.
            approval: The approval that created the grant.
            now_ms: The time now; decides whether the grant has expired.

        Returns:
            The `ts` of the message.
        """
        ...

    async def alert(self, approval: Approval, *, to: str) -> None:
        """Post an alert that a break-glass decision bypassed the approvers: by whom, and why.

        An earlier attempt's message is kept unchanged, because it may list its readers by now.

        Args:
            approval: The approval with its decision.
            to: Id of a channel, or of a user, who gets a direct message.
        """
        ...

    async def show_freeze(self, alert: FreezeAlert, *, count: int) -> str:
        """Post or update the alert about a freeze.

        Args:
            alert: The freeze, the place of its alert, and its end, if it was lifted.
            count: How many people must lift it.

        Returns:
            The `ts` of the message.
        """
        ...

    async def show_start(self, start: ThreadStart) -> str:
        """Post the first message of a thread that no person started; return its `ts`."""
        ...

    async def show_hold(self, hold: ThreadStart) -> str:
        """Post or update the message about a held trigger; return its `ts`."""
        ...

    async def remind_of_freeze(self, freeze: Freeze, *, day: int) -> None:
        """Tell the person who froze, in a direct message, that the freeze still holds.

        Args:
            freeze: The freeze, set by a person.
            day: For how many days it has been in force. A day's message is posted once.
        """
        ...

    async def ask_admin(self, approval: Approval, *, to: str, by: str, text: str) -> None:
        """Ask an admin for help with an undecidable approval, once for each asking person.

        Args:
            approval: The undecidable approval.
            to: Slack user id of the admin.
            by: Slack user id of the asking person.
            text: A note from that person; may be empty.
        """
        ...

    async def tell(self, text: str, *, to: str, key: str) -> None:
        """Send a direct message, once for each key.

        Args:
            text: The message, as mrkdwn.
            to: Slack user id of the person.
            key: Id of the message.
        """
        ...

    async def show_group(self, approval: Approval, title: str, *, looks: bool) -> str:
        """Post the first message of the thread of a program's group; return its `ts`.

        Args:
            approval: A request of the group.
            title: The group, in the program's words.
            looks: Whether an earlier attempt may have posted it.
        """
        ...

    async def show_asker(self, *, channel_id: str, thread_ts: str, by: str, key: str) -> None:
        """Post who asked an agent about a message, in the thread of that message.

        Args:
            channel_id: The channel.
            thread_ts: The thread.
            by: Slack user id of the asking person.
            key: Id of the question to the agent.
        """
        ...

    async def summarise(self, thread: Thread, over: Sequence[Approval], *, ts: str) -> str:
        """Post or update the summary of a thread's closed requests.

        Args:
            thread: The thread.
            over: Closed requests, the oldest first.
            ts: The `ts` of an earlier summary; empty if unknown.

        Returns:
            The `ts` of the message.
        """
        ...

    async def show_seen(
        self, approval: Approval, seen_by: Sequence[str], *, channel_id: str, ts: str
    ) -> None:
        """List in an alert who has confirmed it.

        Args:
            approval: The approval with its decision.
            seen_by: Slack user ids, in the order of their confirmations.
            channel_id: The channel of the alert.
            ts: The `ts` of the alert.
        """
        ...
