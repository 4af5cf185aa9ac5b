"""The ports of the use cases: the clock, the people, and the way to show things to them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from storage.records import Approval, Grant, Post, Thread

CHANNEL = "channel"
"""Among those who may decide: the members of the thread's channel."""
EXCLUDED = "!"
"""Marks, in an approval's frozen list of who may decide, a person who may not."""

Clock = Callable[[], int]
"""The time now: milliseconds since the epoch, UTC."""

Spawn = Callable[[Coroutine[Any, Any, None]], None]
"""Starts work of our own that outlives the caller, and keeps it referenced until it ends."""


Newest = Callable[[], Awaitable[Approval]]
"""Reads a record again, as late as possible: what is drawn is what it says then."""

Began = Callable[[str], Awaitable[None]]
"""Told the `ts` of a message as soon as it exists."""


Words = Callable[[], str]
"""Writes a text when it is needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """The sender of a payload, as Slack (not the payload's text) says.

    Attributes:
        user_id: Slack user id.
        team_id: The person's home workspace; empty when Slack did not say.
        enterprise_id: The person's organisation on Enterprise Grid; empty without one.
        payload: Id of the payload, for the audit; empty where nobody has clicked.
    """

    user_id: str
    team_id: str
    enterprise_id: str = ""
    payload: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A user, as Slack knows them.

    Attributes:
        user_id: Slack user id.
        team_id: Home workspace.
        name: The name that people see.
        is_bot: An app, not a person.
        is_guest: A single-channel or multi-channel guest.
        is_external: From another organisation (Slack Connect).
        is_deleted: Deactivated.
        timezone: Name of the zone that they have chosen; empty when Slack does not say.
        locale: Their language and region, such as `de-DE`; empty when Slack does not say.
        is_admin: An admin or owner of the workspace.
    """

    user_id: str
    team_id: str
    name: str
    is_bot: bool = False
    is_guest: bool = False
    is_external: bool = False
    is_deleted: bool = False
    timezone: str = ""
    locale: str = ""
    is_admin: bool = False
    enterprise_id: str = ""

    def is_home(self, actor: Actor, team_id: str) -> bool:
        """Whether somebody is of a workspace, by their payload and by what Slack says of them."""
        if actor.team_id and actor.team_id == team_id:
            return True
        # On Enterprise Grid a payload may name no team, the organisation, or another workspace of
        # it, in which its sender sees the channel. Then what Slack says of the user counts.
        is_of_house = bool(self.enterprise_id) and actor.enterprise_id == self.enterprise_id
        return (not actor.team_id or is_of_house) and self.team_id == team_id


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedCall:
    """A waiting call with arguments that people changed or completed, as its tool reads them.

    Attributes:
        arguments: In canonical form.
        title: Verb and object, in the tool's words; empty where it has none.
        preview: What will happen; empty where the tool does not say.
    """

    arguments: dict[str, Any]
    title: str = ""
    preview: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SideMessage:
    """A message of an approval beside the one in its thread: another card of it, or a nudge.

    Attributes:
        key: Its name among the messages of its approval.
        kind: `card`, or why it is sent: `reminder`, `escalation`, `mention`, `handover`,
            `snooze_over`, `quiet`.
        user: Whose direct message it is; empty for a channel.
        channel: Id of the channel; empty where it is the one of the cards, or not known yet.
        mentions: Ids of the people and user groups that it notifies.
        ts: Of the message; empty before it is posted, `UNKNOWN_TS` while nobody knows.
        since_ms: Since when those were asked whom it is for.
    """

    key: str
    kind: str
    user: str = ""
    channel: str = ""
    mentions: tuple[str, ...] = ()
    ts: str = ""
    since_ms: int = 0

    @property
    def moment(self) -> str:
        """The part of the key that all messages of one moment share."""
        return self.key.split("@")[0]


class Directory(Protocol):
    """Looks people up. A look-up that fails raises `DirectoryError`; it never guesses.

    What decides is looked up anew each time: who was removed a moment ago is not found any more.
    """

    async def person(self, user_id: str) -> Person:
        """Read a user."""
        ...

    async def writer(self, user_id: str) -> Person:
        """Read a user who writes a message; what is known may be a minute old."""
        ...

    async def channel_members(self, channel_id: str) -> frozenset[str]:
        """User ids of the members of a channel."""
        ...

    async def group_members(self, group_id: str) -> frozenset[str]:
        """User ids of the members of a user group."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """The buttons of a private answer; each is checked at the click, like those of cards.

    Attributes:
        withdraw: What its reader asked for and can take back.
        decide: What waits, with the buttons of its card.
    """

    withdraw: Sequence[Approval] = ()
    decide: Sequence[Approval] = ()


NO_OFFER = Offer()


class Stream(Protocol):
    """One text of the agent that grows while people read it."""

    async def append(self, text: str) -> None:
        """Add a piece. What Slack does not take is no error here: it comes with the finish."""
        ...

    async def finish(self, text: str) -> str:
        """Show the whole text; return the `ts` of its (first) message."""
        ...

    async def abandon(self) -> None:
        """The run was cut: leave what is shown, end the stream. Never raises."""
        ...


class Notifier(Protocol):
    """Shows records to people. Raises `DeliveryError` when Slack refuses or does not answer."""

    async def post_card(self, approval: Approval, *, look_first: bool, newest: Newest) -> Approval:
        """Post the card of a record.

        With `look_first`, a card that an earlier try may have posted is searched, and taken.

        Returns:
            The record as drawn, with the `ts` of its card.
        """
        ...

    async def update_card(self, approval: Approval, *, newest: Newest) -> Approval | None:
        """Draw the card again.

        Returns:
            The record as drawn; None when the message is gone.
        """
        ...

    async def remind(
        self, approval: Approval, *, look_first: bool, go: Callable[[], Awaitable[bool]]
    ) -> str:
        """Post a reminder into the thread; it mentions the people who may decide, once.

        With `look_first`, one that an earlier try may have posted is searched, and is enough. `go`
        is asked when nothing is in the way any more; False means that it is not wanted.

        Returns:
            The `ts` of the message; empty when it was not wanted.
        """
        ...

    async def escalate(
        self, approval: Approval, *, look_first: bool, go: Callable[[], Awaitable[bool]]
    ) -> str:
        """Ask the backup people in the thread; each is mentioned once. See `remind`."""
        ...

    async def ask_back(
        self, approval: Approval, *, key: str, by: str, text: str, mentions: Sequence[str]
    ) -> str:
        """Ask in the thread what somebody wants to know of the requesters, or of the agent.

        Args:
            approval: What it is about.
            key: The name of the question; one that an earlier try posted is searched by it.
            by: Slack user id of who asks.
            text: The question.
            mentions: Slack user ids of who is to answer; none where the agent is.

        Returns:
            The `ts` of the message.
        """
        ...

    async def close_question(
        self, approval: Approval, *, ts: str, by: str, text: str, is_answered: bool
    ) -> None:
        """Say in such a message that no answer is needed any more; nothing when it is gone.

        Args:
            approval: What it is about.
            ts: Of the message.
            by: Slack user id of who asked.
            text: The question.
            is_answered: Whether it was answered; else what it is about is over.
        """
        ...

    async def take_back(self, approval: Approval, *, reminder: bool) -> None:
        """Remove the reminder, or the message to backup people; nothing when it is gone."""
        ...

    async def conclude(self, approval: Approval, *, reminder: bool) -> None:
        """Say in such a message that nobody has to decide any more; nothing when it is gone."""
        ...

    async def post_copy(
        self, approval: Approval, copy: SideMessage, *, look_first: bool, newest: Newest
    ) -> SideMessage:
        """Post one more card of a record, in a direct message or another channel. See `post_card`.

        Returns:
            The copy, with its channel and `ts`.
        """
        ...

    async def update_copy(self, copy: SideMessage, *, newest: Newest) -> bool:
        """Draw such a card again; False when the message is gone."""
        ...

    async def nudge(
        self,
        approval: Approval,
        message: SideMessage,
        *,
        look_first: bool,
        go: Callable[[], Awaitable[bool]],
    ) -> SideMessage | None:
        """Tell people that a card waits for them, below it or in a direct message. See `remind`.

        Returns:
            The message, with its channel and `ts`; None when it was not wanted.
        """
        ...

    async def remove(self, approval: Approval, message: SideMessage) -> None:
        """Remove a nudge; nothing when it is gone."""
        ...

    async def close(self, approval: Approval, message: SideMessage) -> None:
        """Say in a nudge that nobody has to decide any more; nothing when it is gone."""
        ...

    async def say(self, thread: Thread, post: Post, *, look_first: bool) -> str:
        """Show a text of the agent, whole; return its `ts`. Goes on where a stream was cut."""
        ...

    def stream(self, thread: Thread, key: str, *, began: Began) -> Stream:
        """Begin a text that grows. Nothing is sent before its first piece."""
        ...

    async def end_stream(self, thread: Thread, ts: str, record_id: str) -> None:
        """A text will not grow any more: leave what is shown, marked as ours. Never raises."""
        ...

    async def lose(self, place: Approval | Thread, reason: str) -> None:
        """Tell whoever asked there, once, that nothing can be written into a thread any more.

        Args:
            place: The thread, or something that is asked in it.
            reason: Slack's word for why not.
        """
        ...

    async def send_ephemeral(
        self,
        channel_id: str,
        user_id: str,
        text: str,
        *,
        thread_ts: str = "",
        offer: Offer = NO_OFFER,
    ) -> None:
        """Tell one person something that nobody else sees, with buttons."""
        ...

    async def respond(self, address: str, text: str, *, thread_ts: str = "") -> None:
        """Tell whoever clicked, by the address that came with the click: it needs no token."""
        ...

    @property
    def is_refused(self) -> bool:
        """Whether Slack refused the app when it was last called."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchWords:
    """The words of a tool for several of its calls that wait on one card.

    Attributes:
        title: For all on the card; empty where it has none.
        rest: For those that wait; empty where it has none.
        largest: Ids of the approvals, the largest first; empty where it does not say.
    """

    title: str = ""
    rest: str = ""
    largest: tuple[str, ...] = ()


Items = Callable[[], Awaitable[Sequence[Approval]]]
"""Reads all that is on one card, as late as possible."""


class BatchCards(Protocol):
    """Shows several approvals on one card. Raises `DeliveryError` like a `Notifier`."""

    def takes(self, approval: Approval) -> bool:
        """Whether one line of such a card shows all of an approval."""
        ...

    async def title_of(self, items: Sequence[Approval]) -> str:
        """The words for all of them; the tool's, where it has some."""
        ...

    async def post_batch(self, keeper: Approval, items: Items, *, look_first: bool) -> str:
        """Post the card; with `look_first`, one that an earlier try may have posted is taken.

        Returns:
            Its `ts`.
        """
        ...

    async def update_batch(self, keeper: Approval, items: Items) -> bool:
        """Draw the card at `batch_ts` again; False when the message is gone."""
        ...

    async def post_copy(
        self, keeper: Approval, copy: SideMessage, items: Items, *, look_first: bool
    ) -> SideMessage:
        """Post the card in a direct message; see `post_batch`.

        Returns:
            Where it stands.
        """
        ...

    async def update_copy(self, keeper: Approval, copy: SideMessage, items: Items) -> bool:
        """Draw one in a direct message again; False when the message is gone."""
        ...

    async def remove_batch(self, keeper: Approval, ts: str) -> None:
        """Remove a card that was posted twice; it stays where Slack does not take that."""
        ...


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


class TaskStatus(StrEnum):
    """The state of a tool's call, in Slack's words."""

    RUNNING = "in_progress"
    COMPLETE = "complete"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolTask:
    """A call of a tool, as people see that it runs.

    Attributes:
        task_id: Of the call.
        title: The tool's name in words, without arguments.
        status: Whether it has ended, and how.
    """

    task_id: str
    title: str
    status: TaskStatus = TaskStatus.RUNNING


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


class RootSigns(Protocol):
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
    ) -> None:
        """Show a sign; that it stands there is fine.

        Args:
            approval: Whose.
            sign: A name of `bot.core.attendance.signs`.
            was: The sign that this approval had; one that told of its end goes.
            look_first: Whether an earlier try may have shown it.
            again: Whether it is that of others, taken off too early.
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
