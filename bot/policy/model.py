"""The policy file as it is written: rules, groups, and what silence means (specification, 1).

The models hold what one value, or one entry by itself, must be; what an entry means to others is
checked in `bot.policy.reading`. Keys have the names of the file; `from`, `for`, `in` and `as` end
in an underscore here. Absent fields of `ask` are None, and are taken from `defaults`.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from bot.policy.entries import (
    BreakGlassEntry,
    EditEntry,
    Entry,
    Expires,
    Filled,
    GrantsEntry,
    MaxAge,
    ReasonEntry,
    RejectEntry,
    RemindEntry,
    RouteEntry,
    Wait,
    read_break_glass,
    read_edit,
    read_grants,
    read_reject,
    read_remind,
    read_route,
)
from bot.policy.terms import Risk
from bot.policy.values import (
    ChannelId,
    ClockTime,
    GroupTitle,
    LocalTime,
    Name,
    PersonId,
    Place,
    Reason,
    RequirementName,
    Turn,
    UsergroupId,
    YesNo,
    Zone,
    as_tuple,
    only_true,
    refuse,
)

Scalar = str | int | float | bool | None
Op = Literal[
    "eq", "ne", "in", "not_in", "gt", "ge", "lt", "le", "matches", "contains", "exists", "missing"
]
"""The operators of conditions (1.21)."""
Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]


class OverrideEntry(Filled):
    """Somebody on duty out of turn, from a time (`from`) until another, exclusive."""

    from_: LocalTime = Field(alias="from")
    until: LocalTime
    user: PersonId

    @model_validator(mode="after")
    def _ends_later(self) -> Self:
        if self.until <= self.from_:
            refuse("bad_order", "it ends before it begins", "make until later than from")
        return self


class RotationEntry(Filled):
    """A duty that people take in turns (1.6); the zone is the file's unless it has its own."""

    start: LocalTime
    every: Turn
    people: Annotated[tuple[PersonId, ...], BeforeValidator(as_tuple), Field(min_length=1)]
    overrides: Annotated[tuple[OverrideEntry, ...], BeforeValidator(as_tuple)] = ()
    timezone: Zone | None = None


class GroupEntry(Filled):
    """A group: the union of its sources (1.3)."""

    users: Annotated[tuple[PersonId, ...], BeforeValidator(as_tuple)] = Field(
        default=(), min_length=1
    )
    usergroups: Annotated[tuple[UsergroupId, ...], BeforeValidator(as_tuple)] = Field(
        (), min_length=1
    )
    channels: Annotated[tuple[ChannelId, ...], BeforeValidator(as_tuple)] = Field(
        default=(), min_length=1
    )
    rotation: RotationEntry | None = None
    here: Annotated[bool, BeforeValidator(only_true)] = False
    title: GroupTitle | None = None

    @model_validator(mode="before")
    @classmethod
    def _has_source(cls, value: object) -> object:
        if value == {} or (isinstance(value, dict) and set(value) == {"title"}):
            refuse(
                "empty_group",
                "it names nobody",
                "give it users, usergroups, channels, a rotation, or here: true",
            )
        return value


class QuietEntry(Filled):
    """Quiet hours (5.7): a daily span (`from`, `until`), whole days, or both."""

    from_: ClockTime | None = Field(default=None, alias="from")
    until: ClockTime | None = None
    days: Annotated[tuple[Day, ...], BeforeValidator(as_tuple)] = Field(default=(), min_length=1)
    timezone: Zone | None = None

    @model_validator(mode="after")
    def _has_time(self) -> Self:
        if (self.from_ is None) != (self.until is None):
            refuse("bad_value", "from and until belong together", "write both, or only days")
        if self.from_ is None and not self.days:
            refuse("bad_value", "it names no time", "write from and until, or days")
        if self.from_ is not None and self.from_ == self.until:
            refuse("bad_value", "from and until are the same", "name whole days in days")
        return self


class ApproveEntry(Filled):
    """A requirement: so many different people of some groups."""

    from_: Annotated[tuple[str, ...], BeforeValidator(as_tuple)] = Field(alias="from", min_length=1)
    count: int = Field(default=1, ge=1, le=10)
    name: RequirementName | None = None

    @property
    def title(self) -> str:
        """Its name; without one of its own, the groups joined by `+`."""
        return self.name or "+".join(self.from_)


Requirements = Annotated[
    tuple[ApproveEntry, ...], BeforeValidator(as_tuple), Field(min_length=1, max_length=20)
]


class StageEntry(Filled):
    """A stage: requirements that are all needed before the next stage begins."""

    name: Name
    approve: Requirements


class EscalateEntry(Filled):
    """A step of the ladder (5.2); `for_` is empty where there is only one requirement."""

    after: Wait
    add: Annotated[tuple[str, ...], BeforeValidator(as_tuple), Field(min_length=1)]
    for_: Annotated[tuple[str, ...], BeforeValidator(as_tuple)] = Field(
        (), alias="for", min_length=1
    )


class AskEntry(Filled):
    """The way in which people are asked (1.16). None is absent: `over` takes it from defaults."""

    approve: Requirements | None = None
    stages: (
        Annotated[
            tuple[StageEntry, ...], BeforeValidator(as_tuple), Field(min_length=2, max_length=5)
        ]
        | None
    ) = None
    exclude: Annotated[tuple[str, ...] | None, BeforeValidator(as_tuple)] = None
    edit: Annotated[
        EditEntry | None, BeforeValidator(read_edit, json_schema_input_type=bool | str | EditEntry)
    ] = None
    reject: Annotated[
        RejectEntry | None,
        BeforeValidator(read_reject, json_schema_input_type=Literal["any"] | RejectEntry),
    ] = None
    expires: Expires | None = None
    on_expiry: Literal["expired", "cancel_run"] | None = None
    max_age: MaxAge | None = None
    remind: Annotated[
        RemindEntry | None, BeforeValidator(read_remind, json_schema_input_type=str | RemindEntry)
    ] = None
    escalate: Annotated[tuple[EscalateEntry, ...] | None, BeforeValidator(as_tuple)] = None
    route: Annotated[
        RouteEntry | None,
        BeforeValidator(read_route, json_schema_input_type=Literal["thread", "dm"] | RouteEntry),
    ] = None
    mention: YesNo | None = None
    clock: Literal["wall", "working"] | None = None
    urgent: YesNo | None = None
    risk: Risk | None = None
    confirm: YesNo | None = None
    reason: ReasonEntry | None = None
    reasons: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=75, pattern=r"\S")], ...] | None,
        BeforeValidator(as_tuple),
    ] = Field(default=None, max_length=8)
    grants: Annotated[
        GrantsEntry | None,
        BeforeValidator(read_grants, json_schema_input_type=Literal["never"] | GrantsEntry),
    ] = None
    break_glass: Annotated[
        BreakGlassEntry | None,
        BeforeValidator(
            read_break_glass, json_schema_input_type=bool | Literal["no"] | BreakGlassEntry
        ),
    ] = None
    delegation: YesNo | None = None
    always_ask: YesNo | None = None

    @property
    def requirements(self) -> tuple[ApproveEntry, ...]:
        """All requirements of all stages; empty when the entry itself names none."""
        if self.stages is not None:
            return tuple(one for stage in self.stages for one in stage.approve)
        return self.approve or ()

    def over(self, defaults: AskEntry) -> Self:
        """Take what is absent here from the defaults, whole (1.10).

        `approve` and `stages` are in place of each other: who has one takes neither.
        """
        absent = {
            name: getattr(defaults, name)
            for name in type(self).model_fields
            if getattr(self, name) is None
        }
        if self.approve is not None or self.stages is not None:
            absent.pop("approve", None)
            absent.pop("stages", None)
        return self.model_copy(update=absent)


class Then(Filled):
    """The effect of a rule: `allow`, or `deny` with its reason, or `ask`; exactly one."""

    allow: bool = False
    deny: Reason | None = None
    ask: AskEntry | None = None

    @model_validator(mode="before")
    @classmethod
    def _exactly_one(cls, value: object) -> object:
        if value == "allow":
            return {"allow": True}
        remedy = "write allow, {deny: why}, or {ask: {…}}"
        if not isinstance(value, dict):
            refuse("bad_then", f"{value!r} is not known here", remedy)
        if "allow" in value or len(value) != 1:
            refuse("bad_then", "it is not exactly one of the three", remedy)
        return value


class ArgEntry(Entry):
    """A condition on an argument (1.21). `has_value` tells an absent value from null."""

    path: str = Field(min_length=1, max_length=200)
    op: Op
    value: Annotated[
        Scalar | tuple[Scalar, ...],
        BeforeValidator(as_tuple, json_schema_input_type=Scalar | list[Scalar]),
    ] = None
    each: Literal["any", "all"] | None = None
    as_: Literal["number"] | None = Field(default=None, alias="as")

    @field_validator("path", "op", "each", "as_", mode="before")
    @classmethod
    def _has_value(cls, value: object) -> object:
        if value is None:
            refuse("wrong_type", "it has no value", "write one, or leave the key out")
        return value

    @property
    def has_value(self) -> bool:
        """Whether the file gives a value, even if it is null."""
        return "value" in self.model_fields_set


class RequesterEntry(Filled):
    """A condition on all requesters (1.14): exactly one of `in_` and `not_in`."""

    in_: Annotated[tuple[str, ...], BeforeValidator(as_tuple)] = Field(
        default=(), alias="in", min_length=1
    )
    not_in: Annotated[tuple[str, ...], BeforeValidator(as_tuple)] = Field(default=(), min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _exactly_one(cls, value: object) -> object:
        if isinstance(value, dict) and len(value.keys() & {"in", "not_in"}) != 1:
            refuse("bad_value", "it is not exactly one of the two", "write in, or not_in")
        return value


class When(Filled):
    """The calls that a rule matches: all that is given must hold; None is not given (1.11)."""

    tool: Annotated[
        tuple[str, ...] | None,
        BeforeValidator(
            lambda value: (value,) if isinstance(value, str) else as_tuple(value),
            json_schema_input_type=str | list[str],
        ),
    ] = Field(default=None, min_length=1)
    tags: Annotated[tuple[str, ...] | None, BeforeValidator(as_tuple)] = Field(
        default=None, min_length=1
    )
    risk: Annotated[tuple[Risk, ...] | None, BeforeValidator(as_tuple)] = Field(
        default=None, min_length=1
    )
    gated: YesNo | None = None
    args: Annotated[tuple[ArgEntry, ...], BeforeValidator(as_tuple)] = Field(
        default=(), min_length=1
    )
    requester: RequesterEntry | None = None
    channel: Annotated[tuple[Place, ...] | None, BeforeValidator(as_tuple)] = Field(
        default=None, min_length=1
    )
    agent: Annotated[tuple[str, ...] | None, BeforeValidator(as_tuple)] = Field(
        default=None, min_length=1
    )


class RuleEntry(Filled):
    """A rule; an absent `when` matches every call."""

    name: Name
    when: When = When()
    then: Then


class PolicyFile(Filled):
    """A policy file (1.1)."""

    version: Literal[1]
    timezone: Zone | None = None
    groups: dict[Name, GroupEntry] = Field(default_factory=dict)
    quiet: QuietEntry | None = None
    defaults: AskEntry = AskEntry()
    rules: Annotated[tuple[RuleEntry, ...], BeforeValidator(as_tuple)]
    default: Then
