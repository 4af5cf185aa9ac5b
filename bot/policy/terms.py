"""The terms of a ruling that asks: who decides, how many, in which order, and what silence means.

They are frozen into the interrupt and the approval when people are asked; what is in force later
can only take rights away. Source: the specification of policies, 1.16 and 2.6.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, model_validator

Risk = Literal["low", "medium", "high", "critical"]
"""The harm that a call can do; from `high` on, an approval is confirmed."""
EXPIRES_S = 8 * 3_600
"""The time in which people decide, unless a rule says another, in seconds."""
MAX_AGE_S = 15 * 60
"""The time after a decision in which its call may start, in seconds."""
REMIND_S = 15 * 60
"""The time from the request to the first reminder, in seconds."""
ANY = 1
"""So many people end a request by rejecting it."""


class TermsError(ValueError):
    """Kept terms cannot be read: whoever asks must refuse."""


class _Frozen(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def _tuple(value: object) -> object:
    """JSON has lists where strict tuples are wanted."""
    return tuple(value) if isinstance(value, list) else value


def _local(value: object) -> object:
    return datetime.fromisoformat(value) if isinstance(value, str) else value


Names = Annotated[tuple[str, ...], BeforeValidator(_tuple)]
"""Names, or ids, in the order in which they were written."""
Local = Annotated[datetime, BeforeValidator(_local)]
"""A time without a zone, as clocks on the wall show it."""


class Override(_Frozen):
    """Somebody who is on duty in place of whoever the rotation names.

    Attributes:
        start: From when, local.
        until: To when, local and exclusive.
        user: Slack user id.
    """

    start: Local
    until: Local
    user: str


class Rotation(_Frozen):
    """A duty that people take in turns (1.6).

    Attributes:
        start: When the first begins, local.
        every: The length of a turn: `12h`, `1d`, `1w`. Days and weeks are steps at the same local
            time, hours are absolute.
        people: Slack user ids, in order; after the last comes the first.
        overrides: Of those that hold at a time, the last counts.
        timezone: Its IANA zone.
    """

    start: Local
    every: str
    people: Names
    overrides: Annotated[tuple[Override, ...], BeforeValidator(_tuple)] = ()
    timezone: str


class Group(_Frozen):
    """A group of people: the union of its sources (1.3).

    Attributes:
        users: Slack user ids.
        usergroups: Ids of Slack user groups.
        channels: Ids of channels whose members count; see 1.5.
        rotation: Whoever is on duty.
        here: Whether the members of the thread's channel count.
        title: What people call it; empty where its members say who it is.
    """

    users: Names = ()
    usergroups: Names = ()
    channels: Names = ()
    rotation: Rotation | None = None
    here: bool = False
    title: str = ""


class Requirement(_Frozen):
    """So many different people of some groups (1.16, `approve`).

    Attributes:
        name: Shown to people: its own, or the groups joined by `+`; of two of one name in the same
            terms, the later has ` #2` behind it.
        groups: Names of groups; members of any of them count.
        count: How many, 1 to 10.
    """

    name: str
    groups: Names
    count: int = 1


class Stage(_Frozen):
    """Requirements that are all needed at the same time.

    Attributes:
        name: Empty for the only stage of a rule with `approve`.
        approve: At least one.
    """

    name: str = ""
    approve: Annotated[tuple[Requirement, ...], BeforeValidator(_tuple)]


class Escalation(_Frozen):
    """A step of the ladder: people who may decide, too, from a time on (5.2).

    Attributes:
        after_s: From the request, in seconds.
        add: Names of groups.
        requirements: Names of the requirements that they count for.
    """

    after_s: int
    add: Names
    requirements: Names


class GrantTerms(_Frozen):
    """The limits within which an approver may let later calls run, too (6.5).

    Attributes:
        max_time_s: In seconds; at most a day.
        max_uses: At most 100.
        vary: Paths of arguments that may differ.
    """

    max_time_s: int
    max_uses: int
    vary: Names = ()


class BreakGlass(_Frozen):
    """The people who may override, and the channel that hears of it (6.4).

    Attributes:
        groups: Names of groups.
        alert: Id of the channel.
    """

    groups: Names
    alert: str


class QuietHours(_Frozen):
    """The time in which nobody is disturbed (5.7).

    Attributes:
        start: `20:00`, local; empty when only whole days are quiet.
        until: `08:00`; before `start` when it is of the next day.
        days: Whole days: `mon` to `sun`.
        timezone: Its IANA zone.
    """

    start: str = ""
    until: str = ""
    days: Names = ()
    timezone: str


class Terms(_Frozen):
    """The terms of a ruling that asks (1.16). Stored: version 1, must stay readable.

    Attributes:
        rules: Names of the rules that ask, as they are shown; of code with `code:`.
        reason: Why people are asked, in the words of a policy in code; may be empty.
        stages: In order, at least one.
        groups: The definitions of all groups that are named here, by name.
        exclude: `requesters`, `editors`, or names of groups.
        edit: `no`, `yes` (who may approve now), or `by` with `editors`.
        editors: Of `by`: `approvers`, `requesters`, or names of groups.
        reject: So many people end it by rejecting; 1 for any.
        expires_s: From the request to its deadline, in seconds.
        on_expiry: What the deadline ends: the request, or the run, too.
        max_age_s: How long after the decision the call may start, in seconds.
        remind_s: From the request to the first reminder, in seconds; 0 for never.
        remind_times: So many reminders at most.
        escalate: Steps, in the order of their times.
        route: `thread`, `dm`, or the id of a channel.
        mention: Whether those who are asked are notified.
        clock: Whether reminders, steps and the deadline count only time outside of quiet hours.
        urgent: Whether quiet hours are ignored.
        quiet: The quiet hours of the file; None without.
        risk: The badge.
        confirm: Whether an approval is confirmed in a dialog.
        approve_reason: Whether an approval needs a reason.
        reject_reason: Whether a rejection needs one.
        reasons: Canned reasons.
        grants: Limits of standing grants; None for never.
        break_glass: Who may override; None for nobody.
        delegation: Whether delegations count.
        always_ask: Whether grants, break-glass and batches are off.
    """

    rules: Names
    reason: str = ""
    stages: Annotated[tuple[Stage, ...], BeforeValidator(_tuple)]
    groups: dict[str, Group]
    exclude: Names = ("requesters",)
    edit: Literal["no", "yes", "by"] = "no"
    editors: Names = ()
    reject: int = ANY
    expires_s: int = EXPIRES_S
    on_expiry: Literal["expired", "cancel_run"] = "expired"
    max_age_s: int = MAX_AGE_S
    remind_s: int = REMIND_S
    remind_times: int = 3
    escalate: Annotated[tuple[Escalation, ...], BeforeValidator(_tuple)] = ()
    route: str = "thread"
    mention: bool = True
    clock: Literal["wall", "working"] = "wall"
    urgent: bool = False
    quiet: QuietHours | None = None
    risk: Risk = "medium"
    confirm: bool = False
    approve_reason: bool = False
    reject_reason: bool = False
    reasons: Names = ()
    grants: GrantTerms | None = None
    break_glass: BreakGlass | None = None
    delegation: bool = True
    always_ask: bool = False

    @model_validator(mode="after")
    def _names_are_unique(self) -> Self:
        names = [one.name for stage in self.stages for one in stage.approve]
        if len(set(names)) < len(names):
            raise ValueError("two requirements have one name: one of them would be lost")
        return self

    @property
    def rule(self) -> str:
        """The names of all rules, joined as they are shown (2.5)."""
        return " + ".join(self.rules)

    @property
    def requirements(self) -> Mapping[str, Requirement]:
        """All requirements of all stages, by name."""
        found = {one.name: one for stage in self.stages for one in stage.approve}
        return MappingProxyType(found)

    @property
    def reminders_s(self) -> tuple[int, ...]:
        """When each reminder comes: seconds since the request; the wait doubles each time."""
        times = self.remind_times if self.remind_s else 0
        return tuple(self.remind_s * (2**number - 1) for number in range(1, times + 1))

    @property
    def digest(self) -> str:
        """The ruling digest: 64 hexadecimal digits (2.6).

        It covers what a decision is made under. When, where and how people are told is not in it.
        """
        data = self.model_dump(mode="json", exclude=_NOT_BOUND)
        text = json.dumps({"effect": "ask", **data}, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode("ascii")).hexdigest()

    def to_text(self) -> str:
        """Write them as canonical JSON; `Terms.from_text` reads the same again."""
        return json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_text(cls, text: str) -> Terms:
        """Read kept terms.

        Raises:
            TermsError: They are damaged, or of a later release; nobody may decide under them.
        """
        return _read(text)


_NOT_BOUND: Mapping[str, Any] = {
    "expires_s": True,
    "remind_s": True,
    "remind_times": True,
    "route": True,
    "mention": True,
    "clock": True,
    "urgent": True,
    "quiet": True,
    "reasons": True,
    "groups": {"__all__": {"title"}},
}


@lru_cache(maxsize=500)
def _read(text: str) -> Terms:
    try:
        return Terms.model_validate_json(text)
    except (ValidationError, RecursionError) as error:
        raise TermsError(
            "the terms of this request cannot be read; nobody can decide it"
        ) from error
