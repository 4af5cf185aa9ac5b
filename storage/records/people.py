"""Single people: their wishes, and the rights that they hand on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationRecord:
    """A right to decide that somebody has handed to somebody else, or an absence.

    Stored: version 1, must stay readable.
    """

    delegation_id: str
    team_id: str
    owner_id: str
    """Slack user id of whose right it is, or of who is away."""
    delegate_id: str
    """Slack user id of who may use it; empty for an absence: the owner is not mentioned then."""
    group_name: str
    """Name of the only group of the policy whose right it is; empty for all."""
    created_ms: int
    until_ms: int
    approval_id: str = ""
    """The only request that it is for; empty for all."""
    ended_ms: int | None = None
    """The time when somebody ended it early; None while nobody has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonRecord:
    """A person's wishes about messages, and the lists of what waits that they were sent.

    Stored: version 1, must stay readable.
    """

    person_id: str
    """The workspace, a colon, and the Slack user id."""
    team_id: str
    user_id: str
    quiet_from: str = ""
    """When messages have to wait, as `22:00` in the person's own zone; empty for never."""
    quiet_until: str = ""
    """Until when; empty for never. Earlier than `quiet_from` is the next day."""
    timezone: str = ""
    """Name of the zone that they had when it was last looked up."""
    has_digest: bool = True
    """Whether they are sent one list a day of all that waits for them."""
    has_copies: bool = False
    """Whether they want cards by direct message even where they are in their channel."""
    digest_day: str = ""
    """The local day of the last list, as `2026-11-23`: on record before that is sent."""
    digest_ms: int = 0
    """When that was; 0 when there was none, or Slack did not take it."""
    digest_json: str = ""
    """JSON object with `ts`, `ids`, `total` and `mark`: where the last list stands, which approvals
    are on it, how many waited, and a digest of what it shows. Empty where nothing of it will change
    any more; `ts` is empty while it is not posted."""
    reminded_ms: int = 0
    """When a reminder last mentioned them."""
    next_ms: int | None = None
    """When the next list is due; None while nothing waits for them by name."""
    due_ms: int | None = None
    """When something has to be done: the next list, or a look at the last one."""
    attempts: int = 0
    """Tries in a row at which Slack did not take the list."""
    revision: int = 0
    """One higher with each change; 0 is never stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A standing grant: the permission to run later calls of one kind without a question.

    Stored: version 1, must stay readable.
    """

    grant_id: str
    """The thread's id, `:grant:`, and the id of the approval that it was given with."""
    team_id: str
    thread_id: str
    agent: str
    """Name of the agent whose calls it is about, behind those of the agents around it and `/`."""
    tool: str
    arguments_json: str
    """Canonical JSON object: the arguments that a call must have, without those that may vary."""
    vary_json: str
    """JSON list: the paths of arguments that may be anything."""
    ruling: str
    """The ruling digest that a call must have."""
    requesters_json: str
    """JSON list of user ids: those of a call must be among them."""
    granter_id: str
    approval_id: str
    created_ms: int
    until_ms: int
    max_uses: int
    uses_json: str = "[]"
    """JSON list of texts: the calls that it was used for, each once."""
    used_ms: int | None = None
    """The time of the last of them; None where there was none, or nobody noted it."""
    ended_ms: int | None = None
    """The time when somebody revoked it; None while nobody has."""
    ended_by: str = ""
    card_ts: str = ""
    """`ts` of the message that shows it; empty until it is posted."""
    due_ms: int | None = None
    """When its message has to be drawn again; None when it shows for good how it ended."""
