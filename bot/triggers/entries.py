"""Triggers and schedules as the file of agents names them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal
from zoneinfo import ZoneInfo, available_timezones

from apscheduler.triggers.cron import CronTrigger
from pydantic import AfterValidator, BeforeValidator, Field

from agents.core.patterns import PatternError
from bot.policy.entries import Filled
from bot.policy.evaluation.conditions import ArgCondition
from bot.policy.model import ArgEntry
from bot.policy.values import ChannelId, as_tuple, refuse
from bot.triggers.signatures import VerifyKind, secret_bytes

LARGEST_SECRET_FILE = 4_096
"""Maximum size of the file with the secrets of a trigger, in bytes."""


def _secret_file(text: str) -> str:
    try:
        secrets_in(text)
    except (OSError, ValueError) as error:
        refuse("bad_value", f"the secret cannot be used: {error}", "write the secret into the file")
    return text


def secrets_in(path: str) -> list[bytes]:
    """Read the secrets of a file, one in a line. Each request reads it, so that it can change.

    Raises:
        OSError: The file cannot be read.
        ValueError: It has no secret, or one that cannot be used.
    """
    with Path(path).open("rb") as file:
        lines = file.read(LARGEST_SECRET_FILE).decode().split()
    if not lines:
        raise ValueError("the file is empty")
    return [secret_bytes(line) for line in lines]


def _condition(entry: ArgEntry) -> ArgEntry:
    try:
        ArgCondition.of(entry)
    except PatternError as error:
        refuse("bad_pattern", str(error), "write a pattern of RE2")
    return entry


def _zone(text: str) -> str:
    if text not in available_timezones():
        refuse("bad_value", f"{text!r} isn't a time zone", "write one such as Europe/Berlin")
    return text


def _cron(text: str) -> str:
    try:
        CronTrigger.from_crontab(text, timezone="UTC")
    except ValueError as error:
        refuse("bad_value", f"{text!r} isn't valid: {error}", 'write five fields: "0 9 * * mon"')
    return text


UserId = Annotated[str, Field(pattern=r"^[UW][A-Z0-9]{1,30}$")]


class VerifyEntry(Filled):
    """How the sender proves itself: the form of its signature, and the file of the secret."""

    kind: VerifyKind
    secret_file: Annotated[str, AfterValidator(_secret_file)]


class TriggerLimits(Filled):
    """Limits of one trigger: starts in an hour, and open threads."""

    per_hour: int = Field(default=12, ge=1, le=100)
    open: int = Field(default=3, ge=1, le=20)


class StartEntry(Filled):
    """An agent, where it starts, and who answers for it."""

    agent: str = ""
    """Name of the agent in the file; empty for the channel's."""
    channel: ChannelId
    owner: UserId
    """The person who answers for it, and who approves nothing of it."""


class TriggerEntry(StartEntry):
    """A webhook that starts an agent. `{path}` in a text is a value of the JSON body."""

    verify: VerifyEntry
    title: str = Field(default="", max_length=150)
    text: str = Field(default="{body}", min_length=1, max_length=2_000)
    key: str = Field(default="", max_length=200)
    when: Annotated[
        tuple[Annotated[ArgEntry, AfterValidator(_condition)], ...], BeforeValidator(as_tuple)
    ] = ()
    limits: TriggerLimits = TriggerLimits()

    @property
    def conditions(self) -> tuple[ArgCondition, ...]:
        """The conditions on the body; all must hold."""
        return tuple(map(ArgCondition.of, self.when))


class ScheduleEntry(StartEntry):
    """A time at which an agent starts."""

    cron: Annotated[str, AfterValidator(_cron)]
    timezone: Annotated[str, AfterValidator(_zone)] = "UTC"
    text: str = Field(min_length=1, max_length=2_000)
    """The task of the agent, in the operator's words."""
    missed: Literal["skip", "once"] = "skip"
    """Whether a start that is more than five minutes late is left out, or made up for."""

    @property
    def times(self) -> CronTrigger:
        """The due times."""
        return CronTrigger.from_crontab(self.cron, timezone=ZoneInfo(self.timezone))
