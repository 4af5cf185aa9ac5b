"""Entries of a policy file that also have a short form, and their base classes.

`edit: yes`, `remind: 15m` and `route: dm` become the same models as the long forms.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from bot.config.durations import LONGEST
from bot.policy.values import (
    HOUR_S,
    LONGEST_S,
    MINUTE_S,
    ChannelId,
    Duration,
    as_tuple,
    between,
    refuse,
    unknown,
    wrong_type,
)

Expires = Annotated[
    int,
    BeforeValidator(
        between(MINUTE_S, int(LONGEST.total_seconds()), "1m to 30d"),
        json_schema_input_type=Duration,
    ),
]
MaxAge = Annotated[
    int,
    BeforeValidator(between(MINUTE_S, 24 * HOUR_S, "1m to 24h"), json_schema_input_type=Duration),
]
LONGEST_GRANT_S = 24 * HOUR_S
"""Longest standing grant that a policy permits, in seconds."""
MaxTime = Annotated[
    int,
    BeforeValidator(between(1, LONGEST_GRANT_S, "1s to 24h"), json_schema_input_type=Duration),
]
Wait = Annotated[
    int, BeforeValidator(between(1, LONGEST_S, "1s to a year"), json_schema_input_type=Duration)
]


class Entry(BaseModel):
    """A map of the policy file: immutable, with strict types and without unknown keys."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True
    )

    @model_validator(mode="before")
    @classmethod
    def _is_map(cls, value: object) -> object:
        if not isinstance(value, dict | cls):
            wrong_type(value, "a map")
        return value


class Filled(Entry):
    """A map that permits no null: an unused key must be absent."""

    @field_validator("*", mode="before")
    @classmethod
    def _has_value(cls, value: object) -> object:
        if value is None:
            refuse("wrong_type", "it has no value", "write one, or leave the key out")
        return value


class RemindEntry(Filled):
    """When to remind people of an undecided request."""

    after: Wait
    """Time from the request to the first reminder.

    Example: `after: 30m`

    Errors: `bad_duration`
    """
    times: int = Field(default=3, ge=1, le=6)
    """Number of reminders. Each wait is twice the wait before.

    Example: `times: 2`

    Errors: `bad_value`
    """


class EditEntry(Filled):
    """The people who can edit the arguments."""

    by: Annotated[tuple[str, ...] | None, BeforeValidator(as_tuple)] = Field(min_length=1)
    """`approvers`, `requesters`, or names of groups. `approvers` are the people who can approve
    now.

    Example: `by: [approvers, requesters]`

    Errors: `unknown_group`
    """


class RejectEntry(Filled):
    """How many people must reject to stop the call."""

    count: int = Field(ge=2, le=10)
    """How many different people must reject.

    Example: `count: 2`

    Errors: `bad_value`
    """


class RouteEntry(Filled):
    """The channel of the card."""

    channel: ChannelId
    """Id of the channel. The bot must be a member of the channel.

    Example: `channel: C0APPR`

    Errors: `bad_id`, `unknown_id`, `bot_not_in_channel`
    """


class ReasonEntry(Filled):
    """Whether approvals and rejections need a reason."""

    approve: Literal["optional", "required"] = "optional"
    """Whether an approval needs a reason.

    Example: `approve: required`

    Errors: `bad_value`
    """
    reject: Literal["optional", "required"] = "optional"
    """Whether a rejection needs a reason.

    Example: `reject: required`

    Errors: `bad_value`
    """


class GrantsEntry(Filled):
    """The limits of standing grants."""

    max_time: MaxTime
    """Longest time for which an approver can allow later calls, from `1s` to `24h`.

    Example: `max_time: 1h`

    Errors: `bad_duration`
    """
    max_uses: int = Field(ge=1, le=100)
    """Maximum number of later calls.

    Example: `max_uses: 5`

    Errors: `bad_value`
    """
    vary: Annotated[tuple[str, ...], BeforeValidator(as_tuple)] = ()
    """Paths of arguments that may differ in later calls. All other arguments must be equal.

    Example: `vary: [version]`

    Errors: `unknown_path`
    """


class BreakGlassEntry(Filled):
    """The emergency override."""

    by: Annotated[tuple[str, ...], BeforeValidator(as_tuple), Field(min_length=1)]
    """Names of groups whose members can run the call alone. They must give two reasons.

    Example: `by: [leads]`

    Errors: `unknown_group`
    """
    alert: ChannelId
    """Channel that receives an alert about each use.

    Example: `alert: C0ALERT`

    Errors: `bad_id`, `unknown_id`, `bot_not_in_channel`
    """


def read_edit(value: object) -> object:
    """Convert the short forms of `edit`: no or yes."""
    if isinstance(value, dict | EditEntry):
        return value
    if value is True or value == "yes":
        return EditEntry.model_construct(by=None)
    if value is False or value == "no":
        return EditEntry.model_construct(by=())
    raise unknown(value, "no, yes, or {by: [groups]}")


def read_remind(value: object) -> object:
    """Convert the short forms of `remind`: never or a duration."""
    if isinstance(value, dict | RemindEntry):
        return value
    if value == "never":
        return RemindEntry.model_construct(after=0, times=0)
    if not isinstance(value, str):
        wrong_type(value, "never, a duration, or {after: 15m, times: 3}")
    return {"after": value}


def read_reject(value: object) -> object:
    """Convert the short form of `reject`: any."""
    if isinstance(value, dict | RejectEntry):
        return value
    if value == "any":
        return RejectEntry.model_construct(count=1)
    raise unknown(value, "any, or {count: 2}")


def read_route(value: object) -> object:
    """Convert the short forms of `route`: thread or dm."""
    if isinstance(value, dict | RouteEntry):
        return value
    if value in ("thread", "dm"):
        return RouteEntry.model_construct(channel=value)
    raise unknown(value, "thread, dm, or {channel: C…}")


def read_grants(value: object) -> object:
    """Convert the short form of `grants`: never."""
    if isinstance(value, dict | GrantsEntry):
        return value
    if value == "never":
        return GrantsEntry.model_construct(max_time=0, max_uses=0, vary=())
    raise unknown(value, "never, or {max_time: 1h, max_uses: 3}")


def read_break_glass(value: object) -> object:
    """Convert the short form of `break_glass`: no."""
    if isinstance(value, dict | BreakGlassEntry):
        return value
    if value is False or value == "no":
        return BreakGlassEntry.model_construct(by=(), alert="")
    raise unknown(value, "no, or {by: [groups], alert: C…}")
