"""A thread, the messages that people write in it, and the texts that it sends."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """One Slack thread and the agent that lives in it. Stored: version 1, must stay readable."""

    thread_id: str
    """`team:channel:thread_ts`."""
    team_id: str
    channel_id: str
    thread_ts: str
    requester_id: str
    """Slack user id of the person whose message started the thread."""
    created_ms: int
    turn: int = 0
    """Number of the newest turn; the first is 1."""
    turn_open: bool = False
    """Whether that turn has not ended: it runs, waits, or was cut off by a crash."""
    wakes: int = 0
    """Counts the calls for work; tells a release whether more came meanwhile."""
    attempts: int = 0
    """Counts the claims in a row that ended in an error."""
    requesters_json: str = "[]"
    """JSON list of user ids: everybody whose words the agent has read here, in no order."""
    restored_epoch: int = 0
    """The epoch that began when the database went back to a copy in which this thread was not at
    rest; 0 once the thread was looked at after that. See `RestoreStore.epoch`."""
    restored_to_ms: int = 0
    """The moment to which it last went back."""
    restored_turn: int = 0
    """The turn that waited for people then: all that it asks may have been decided before."""
    active_ms: int = 0
    """The time of the last call for work; of the creation, before the first."""
    agent: str = ""
    """The agent that its first message named; empty for the one of its channel."""
    due_ms: int | None = None
    leased_by: str = ""
    leased_until_ms: int = 0
    fence: int = 0
    clean_fence: int = 0
    """The fence of the last claim whose lease was given back; later ones were cut off."""
    crashes: int = 0
    """Counts claims in a row that followed one that was cut off; raised before the work begins."""

    @property
    def was_cut_off(self) -> bool:
        """Whether the lease of the claim before was never given back: its process may be dead."""
        return self.fence - 1 > self.clean_fence or self.crashes > 0

    @property
    def checkpoint_id(self) -> str:
        """Id of the checkpoint of the newest turn."""
        return f"{self.thread_id}#{self.turn}"


class MessageStatus(StrEnum):
    """The status of a message of the inbox. Stored: version 1, must stay readable."""

    NEW = "new"  # not yet given to an agent
    TAKEN = "taken"  # input of the turn named in the record


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A person's message in a thread. Stored: version 1, must stay readable."""

    message_id: str
    """`team:channel:ts`: the same for a mention and the channel message of one post."""
    thread_id: str
    ts: str
    user_id: str
    text: str
    received_ms: int
    status: MessageStatus = MessageStatus.NEW
    turn: int = 0
    """The turn that took it; 0 while new."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """A text of the agent on its way into the thread. Stored: version 1, must stay readable."""

    post_id: str
    """The key of the agent's event: the same when a run is repeated after a crash."""
    thread_id: str
    text: str
    created_ms: int
    ts: str = ""
    """`ts` of the Slack message, once it is known."""
    posted: bool = False
    """Whether the message in Slack is complete."""
    failure: str = ""
    """Why it never will be complete; empty while there is hope."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Whisper:
    """A private answer on its way to one person. Stored: version 1, must stay readable."""

    whisper_id: str
    channel_id: str
    thread_ts: str
    """The thread in which it is shown; empty for the channel itself."""
    user_id: str
    text: str
    created_ms: int
    due_ms: int | None = None
    leased_by: str = ""
    leased_until_ms: int = 0
    fence: int = 0
    withdraw_json: str = "[]"
    """JSON list: ids of the approvals that its reader is offered to withdraw."""
    decide_json: str = "[]"
    """JSON list: ids of the approvals whose buttons its reader is shown."""
    language: str = ""
    """The language of its text, for its buttons; empty for that of the workspace."""
