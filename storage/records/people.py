"""Single people: their notification preferences, and the rights that they hand on."""

from __future__ import annotations

import json
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, ConfigDict

from storage.documents import Document, Index, Spec, WorkDocument


def _is_object(text: str) -> str:
    if not isinstance(json.loads(text), dict):
        raise ValueError("no JSON object")  # noqa: TRY004 - pydantic asks for it
    return text


JsonObject = Annotated[str, AfterValidator(_is_object)]
"""A JSON object as canonical text: free keys of other people's tools are no names of fields."""


class DelegationRecord(Document):
    """A right to decide that somebody has handed to somebody else, or an absence."""

    spec = Spec(
        name="delegations",
        noun="delegation",
        key="delegation_id",
        indexes=(
            Index(("team_id", "until_ms")),
            Index(("until_ms",)),
            Index(("id",), {"ended_ms": None}),
        ),
    )

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

    def ended(self, now_ms: int) -> Self | None:
        """Return it as ended; None when somebody ended it before."""
        return self.changed(ended_ms=now_ms) if self.ended_ms is None else None


class PostedDigest(BaseModel):
    """The daily list of a person that was sent, or is about to be."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    ts: str = ""
    """`ts` of the message; empty before it is posted."""
    ids: tuple[str, ...] = ()
    """The approvals on it."""
    total: int = 0
    """How many waited in all."""
    mark: str = ""
    """A digest of what it shows."""

    @property
    def is_posted(self) -> bool:
        """Whether it stands in Slack."""
        return bool(self.ts)


class PersonRecord(WorkDocument):
    """A person's notification preferences, and the daily list that they were sent last.

    It is due for the next list, or for a look at the last one.
    """

    spec = Spec(
        name="people",
        noun="person",
        key="person_id",
        indexes=(
            Index(("team_id", "quiet_from"), {"quiet_from": {"$gt": ""}}),
            Index(("team_id",), {"has_copies": True}),
            Index(
                ("digest_ms", "reminded_ms"),
                {"quiet_from": "", "has_digest": True, "has_copies": False},
            ),
        ),
    )

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
    posted: PostedDigest | None = None
    """The last list; None where nothing of it will change any more."""
    reminded_ms: int = 0
    """When a reminder last mentioned them."""
    next_ms: int | None = None
    """When the next list is due; None while nothing waits for them by name."""
    attempts: int = 0
    """Tries in a row at which Slack did not take the list."""


class Grant(WorkDocument):
    """A standing grant: the permission to run later calls of one kind without a question.

    It is due when its message has to be drawn again; never, when that shows for good how it ended.
    """

    spec = Spec(
        name="grants",
        noun="grant",
        key="grant_id",
        indexes=(
            Index(("thread_id", "until_ms")),
            Index(("team_id", "until_ms"), {"ended_ms": None}),
            Index(("id",), {"ended_ms": None}),
        ),
    )

    grant_id: str
    """The thread's id, `:grant:`, and the id of the approval that it was given with."""
    team_id: str
    thread_id: str
    agent: str
    """Name of the agent whose calls it is about, behind those of the agents around it and `/`."""
    tool: str
    arguments_json: JsonObject
    """The arguments that a call must have, without those that may vary."""
    vary: tuple[str, ...]
    """The paths of arguments that may be anything."""
    ruling: str
    """The ruling digest that a call must have."""
    requesters: tuple[str, ...]
    """Slack user ids: those of a call must be among them."""
    granter_id: str
    approval_id: str
    created_ms: int
    until_ms: int
    max_uses: int
    uses: tuple[str, ...] = ()
    """The calls that it was used for, each once."""
    used_ms: int | None = None
    """The time of the last of them; None where there was none, or nobody noted it."""
    ended_ms: int | None = None
    """The time when somebody revoked it; None while nobody has."""
    ended_by: str = ""
    card_ts: str = ""
    """`ts` of the message that shows it; empty until it is posted."""

    @property
    def is_used_up(self) -> bool:
        """Whether it lets nothing more run, however long it lasts."""
        return len(self.uses) >= self.max_uses

    @property
    def is_void(self) -> bool:
        """Whether it never began: when it was made, its giver could not give it any more."""
        return self.ended_ms is not None and self.ended_ms <= self.created_ms

    def is_over(self, now_ms: int) -> bool:
        """Whether nothing starts by it any more: it was ended, used up, or its time is over."""
        return self.ended_ms is not None or self.is_used_up or now_ms >= self.until_ms

    def with_use(self, call: str, *, now_ms: int, due_ms: int | None) -> Self | None:
        """Return it as used for a call; None when nothing starts by it any more.

        Args:
            call: Names the call; one that it was used for before needs no other use.
            now_ms: The time now.
            due_ms: When its message is drawn, unless somebody does so before; None to leave that.
        """
        if self.ended_ms is not None or now_ms >= self.until_ms:
            return None
        due_ms = self.due_ms if due_ms is None else due_ms
        if call in self.uses:
            return self.changed(due_ms=due_ms)
        if self.is_used_up:
            return None
        return self.changed(uses=(*self.uses, call), used_ms=now_ms, due_ms=due_ms)

    def ended(self, *, by: str, now_ms: int, due_ms: int | None) -> Self | None:
        """Return it as ended; None when it was ended before. `due_ms` as in `with_use`."""
        if self.ended_ms is not None:
            return None
        due_ms = self.due_ms if due_ms is None else due_ms
        return self.changed(ended_ms=now_ms, ended_by=by, due_ms=due_ms)

    def with_card(self, drawn: Grant, *, due_ms: int | None) -> Self:
        """Return it with the message that shows `drawn`; due as before if more happened since."""
        is_same = (self.uses, self.ended_ms) == (drawn.uses, drawn.ended_ms)
        return self.changed(card_ts=drawn.card_ts, due_ms=due_ms if is_same else self.due_ms)
