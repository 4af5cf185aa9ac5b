"""The page of the limits: constants whose docstring begins with "Maximum" or "Longest"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module

from bot.config.durations import format_duration
from reference_pages import sources, text

PURPOSE = (
    "Every fixed limit and time-out of Countersign, for operators and authors. Limits that you can "
    "set are in the settings and in the policy file. Sizes and numbers come first, then times."
)
_GROUPS = (
    ("Policies and settings", ("bot.policy", "bot.config", "bot.ports", "bot.redaction")),
    ("Slack and people", ("bot.slack", "bot.http", "bot.layout", "bot.questions", "bot.people")),
    ("Programs", ("bot.api", "bot.webhooks")),
    (
        "Work and processes",
        (
            "bot.approvals",
            "bot.audit",
            "bot.freezes",
            "bot.maintenance",
            "bot.notifications",
            "bot.records",
            "bot.threads",
            "bot.triggers",
            "bot.leases",
            "bot.scheduler",
            "bot.tasks",
            "bot.commands",
        ),
    ),
    ("Agents", ("agents",)),
    ("Storage", ("storage",)),
)
_UNIT = re.compile(r", in (?P<unit>characters|bytes|seconds|milliseconds)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A constant that limits something.

    Attributes:
        place: Module and name.
        meaning: Its docstring.
        value: As people read it.
    """

    place: str
    meaning: str
    value: str

    @property
    def file(self) -> str:
        """The file that sets it."""
        return f"{self.place.rpartition('.')[0].replace('.', '/')}.py"


def build() -> str:
    """Make the page."""
    ordered = sorted(limits(), key=lambda limit: limit.meaning.startswith("Longest"))
    parts: list[str] = []
    for title, modules in _GROUPS:
        rows = [
            (limit.meaning, limit.value, f"`{limit.file}`")
            for limit in ordered
            if limit.place.startswith(modules)
        ]
        parts += [text.section(2, title), text.table(("Limit", "Value", "Set in"), rows)]
    return text.page("Limits", PURPOSE, parts)


def grouped() -> int:
    """Count the limits that have a group."""
    return sum(limit.place.startswith(modules) for limit in limits() for _, modules in _GROUPS)


def limits() -> Iterator[Limit]:
    """Give every limit, by module."""
    for path, tree in sources.trees(*sources.PACKAGES):
        if {"slack_sandbox", "rehearsal", "demo"} & set(path.relative_to(sources.ROOT).parts):
            continue
        name = ".".join(path.relative_to(sources.ROOT).with_suffix("").parts)
        for constant, said in sources.assigned_texts(tree.body).items():
            if said.startswith(("Maximum ", "Longest ")):
                value = getattr(import_module(name), constant)
                yield Limit(
                    place=f"{name}.{constant}",
                    meaning=_UNIT.sub("", said),
                    value=_value(value, said),
                )


def _value(value: object, said: str) -> str:
    unit = match["unit"] if (match := _UNIT.search(said)) else ""
    if isinstance(value, timedelta):
        return _seconds(value.total_seconds())
    assert isinstance(value, int | float)  # noqa: S101 - a limit is a number
    if unit in {"seconds", "milliseconds"}:
        return _seconds(value / (1000 if unit == "milliseconds" else 1))
    return f"{value:,} {unit}".strip()


def _seconds(seconds: float) -> str:
    if seconds >= 60 and seconds == int(seconds):
        return text.code(format_duration(timedelta(seconds=seconds)))
    return "1 second" if seconds == 1 else f"{seconds:g} seconds"
