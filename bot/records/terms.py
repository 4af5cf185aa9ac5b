"""The terms of a request: who decides, how many must, in which order, until when.

Terms are frozen into the interrupt and the approval when people are asked; a later policy can only
take rights away.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PlainSerializer,
    ValidationError,
    ValidationInfo,
    model_validator,
)

Risk = Literal["low", "medium", "high", "critical"]
"""The harm that a call can do. From `high` on, approvals are confirmed by default."""
EXPIRES_S = 8 * 3_600
"""Default time to decide, in seconds."""
MAX_AGE_S = 15 * 60
"""Default time after a decision in which the call may start, in seconds."""
REMIND_S = 15 * 60
"""Default time from the request to the first reminder, in seconds."""
ANY = 1
"""Default number of people who must reject to end a request."""
CODE = "code:"
"""Prefix of the names of rules and groups that come from code or the settings."""


class TermsError(ValueError):
    """Stored terms are damaged or cannot be used. The caller must refuse."""


class _Frozen(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def _tuple(value: object) -> object:
    """Convert a JSON list to a tuple, which strict models require."""
    return tuple(value) if isinstance(value, list) else value


def _local(value: object) -> object:
    return datetime.fromisoformat(value) if isinstance(value, str) else value


Names = Annotated[tuple[str, ...], BeforeValidator(_tuple)]
"""Names or ids, in the order of the file."""
Local = Annotated[datetime, BeforeValidator(_local)]
"""A local time without a time zone."""


class Override(_Frozen):
    """A person who is on duty out of turn.

    Attributes:
        start: Local time.
        until: Local time, exclusive.
        user: Slack user id.
    """

    start: Local
    until: Local
    user: str


class Rotation(_Frozen):
    """A duty that people take in turns.

    Attributes:
        start: Start of the first turn, local.
        every: The length of a turn: `12h`, `1d`, `1w`. Turns of days and weeks begin at the same
            local time; hours are elapsed time.
        people: Slack user ids, in order; the first person follows the last one.
        overrides: Exceptions. If several apply at one time, the last one counts.
        timezone: IANA time zone.
    """

    start: Local
    every: str
    people: Names
    overrides: Annotated[tuple[Override, ...], BeforeValidator(_tuple)] = ()
    timezone: str


class Group(_Frozen):
    """A group of people: the union of its sources.

    Attributes:
        users: Slack user ids.
        usergroups: Ids of Slack user groups.
        channels: Ids of channels. People count who were members at the request and still are.
        rotation: The rotation whose person on duty counts.
        here: Whether the members of the thread's channel count.
        title: Name for people. If it is empty, texts name the users, user groups and channels.
    """

    users: Names = ()
    usergroups: Names = ()
    channels: Names = ()
    rotation: Rotation | None = None
    here: bool = False
    title: str = ""


class Requirement(_Frozen):
    """A number of different people of some groups.

    Attributes:
        name: Name for people: its own, or the groups joined by `+`. The second of two equal names
            in the same terms gets the suffix ` #2`.
        groups: Names of groups; members of any of them count.
        count: Number of people, 1 to 10.
    """

    name: str
    groups: Names
    count: int = 1


class Stage(_Frozen):
    """Requirements that must be fulfilled in parallel.

    Attributes:
        name: Empty for the only stage of a rule with `approve`.
        approve: At least one.
    """

    name: str = ""
    approve: Annotated[tuple[Requirement, ...], BeforeValidator(_tuple)]


class Escalation(_Frozen):
    """An escalation step: additional approvers from a time on.

    Attributes:
        after_s: Time from the request, in seconds.
        add: Names of groups.
        requirements: Names of the requirements that the added approvers count for.
    """

    after_s: int
    add: Names
    requirements: Names


class GrantTerms(_Frozen):
    """Limits of standing grants that an approver may create.

    Attributes:
        max_time_s: In seconds; at most a day.
        max_uses: At most 100.
        vary: Paths of arguments that may differ.
    """

    max_time_s: int
    max_uses: int
    vary: Names = ()


class BreakGlass(_Frozen):
    """People who may run the call in an emergency, and the alerted channel.

    Attributes:
        groups: Names of groups.
        alert: Id of the channel.
    """

    groups: Names
    alert: str


class QuietHours(_Frozen):
    """Time without mentions and reminders.

    Attributes:
        start: `20:00`, local; empty if only whole days are quiet.
        until: `08:00`; a time before `start` is on the next day.
        days: Whole days: `mon` to `sun`.
        timezone: IANA time zone.
    """

    start: str = ""
    until: str = ""
    days: Names = ()
    timezone: str


class Terms(_Frozen):
    """The terms of a request. Stored: version 1, must stay readable.

    Attributes:
        rules: Names of the rules that ask. Names of rules in code begin with `code:`.
        reason: Why people are asked, from a policy in code; may be empty.
        stages: In order, at least one.
        groups: Definitions of all named groups, by name.
        exclude: `requesters`, `editors`, or names of groups.
        edit: `no`, `yes` (who may approve now), or `by` with `editors`.
        editors: With `by`: `approvers`, `requesters`, or names of groups.
        reject: Number of people who must reject to end the request.
        expires_s: Time from the request to its deadline, in seconds.
        on_expiry: Whether the deadline ends only the request, or the run, too.
        on_delete: What happens when the message that asked is deleted: the request stays, with a
            line on its card, or is withdrawn.
        max_age_s: Time after the decision in which the call may start, in seconds.
        remind_s: Time from the request to the first reminder, in seconds; 0 for never.
        remind_times: Maximum number of reminders.
        escalate: Steps, in order of time.
        route: `thread`, `dm`, or the id of a channel.
        mention: Whether approvers are notified.
        clock: Whether reminders, steps and the deadline count only time outside of quiet hours.
        urgent: Whether quiet hours are ignored.
        quiet: The quiet hours of the file, or None.
        risk: The risk that the card shows.
        confirm: Whether an approval is confirmed in a dialog.
        approve_reason: Whether an approval needs a reason.
        reject_reason: Whether a rejection needs one.
        reasons: Reasons to choose from.
        grants: Limits of standing grants; None permits none.
        break_glass: Emergency override; None permits none.
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
    on_delete: Literal["keep", "withdraw"] = "keep"
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
        names = [requirement.name for stage in self.stages for requirement in stage.approve]
        if len(set(names)) < len(names):
            raise ValueError("two requirements have one name: one of them would be lost")
        return self

    @property
    def rule(self) -> str:
        """The names of all rules, joined."""
        return " + ".join(self.rules)

    @property
    def requirements(self) -> Mapping[str, Requirement]:
        """All requirements of all stages, by name."""
        by_name = {
            requirement.name: requirement for stage in self.stages for requirement in stage.approve
        }
        return MappingProxyType(by_name)

    @property
    def reminders_s(self) -> tuple[int, ...]:
        """Times of the reminders in seconds since the request; the wait doubles each time."""
        times = self.remind_times if self.remind_s else 0
        return tuple(self.remind_s * (2**number - 1) for number in range(1, times + 1))

    @cached_property
    def digest(self) -> str:
        """Digest of the terms: 64 hexadecimal digits.

        The digest covers who may decide and how. It does not cover when, where and how people are
        notified.
        """
        data = self.model_dump(mode="json", exclude=_NOT_BOUND)
        text = json.dumps({"effect": "ask", **data}, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode("ascii")).hexdigest()

    @cached_property
    def text(self) -> str:
        """The terms as canonical JSON, for `Terms.from_text`."""
        return json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy with other values. It does not keep the digest and the text."""
        copy = super().model_copy(update=update, deep=deep)
        for name in ("digest", "text"):
            copy.__dict__.pop(name, None)
        return copy

    @classmethod
    def from_text(cls, text: str) -> Terms:
        """Parse stored terms.

        Raises:
            TermsError: The terms are damaged or of a later release, so they cannot be used.
        """
        return _read(text)


_NOT_BOUND: Mapping[str, Any] = {
    "expires_s": True,
    "on_delete": True,
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
        raise TermsError("the terms of this request cannot be read") from error


def _from_stored(value: object, info: ValidationInfo) -> object:
    if info.mode != "json":
        return value
    if not isinstance(value, str):
        raise ValueError("terms are stored as a text")  # noqa: TRY004 - pydantic takes ValueError
    return Terms.from_text(value)


StoredTerms = Annotated[
    Terms,
    BeforeValidator(_from_stored),
    PlainSerializer(lambda terms: terms.text, return_type=str, when_used="json"),
]
"""Terms as a field of a document. They are stored as a text with all values, so that a later
default changes no stored terms."""
