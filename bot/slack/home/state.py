"""Selection in a person's Home: list, filter, page. Stored in the view only."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

PAGE = 20
"""Items per page."""
_FILTER = re.compile(r"(channel:[CDG][A-Z0-9]{1,30}|risk|today)?")
_MOST_START = 10_000


class Shown(StrEnum):
    """List that Home shows first."""

    WAITING = "waiting"
    MINE = "mine"
    DECIDED = "decided"


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeState:
    """Selection of one person.

    Attributes:
        show: The list.
        only: `channel:` and an id, `risk`, `today`, or empty for all.
        start: First item of the page, from 0.
    """

    show: Shown = Shown.WAITING
    only: str = ""
    start: int = 0

    def to_text(self) -> str:
        """Serialize for the view's private metadata."""
        values = {"show": self.show.value, "only": self.only, "start": self.start}
        return json.dumps(values, separators=(",", ":"))

    @classmethod
    def from_text(cls, text: object) -> HomeState:
        """Parse; invalid values become the defaults, because they decide nothing."""
        try:
            data = json.loads(text) if isinstance(text, str) else {}
            return cls(
                show=Shown(data["show"]), only=_only(data["only"]), start=_start(data["start"])
            )
        except (ValueError, KeyError, TypeError, RecursionError):
            return cls()

    def turned(self, by: int) -> HomeState:
        """Return the selection with another page."""
        return replace(self, start=min(max(self.start + by, 0), _MOST_START))

    def chosen(self, name: str, value: Any) -> HomeState:
        """Return the selection with another list or filter, on the first page."""
        try:
            if name == "show":
                return HomeState(show=Shown(value))
            return HomeState(show=self.show, only=_only(value))
        except (ValueError, TypeError):
            return self


def state_of(view: Mapping[str, Any]) -> HomeState:
    """Read the selection from a view that Slack sent back."""
    return HomeState.from_text(view.get("private_metadata"))


def _only(value: object) -> str:
    if value == "all":
        return ""
    if not isinstance(value, str) or not _FILTER.fullmatch(value):
        raise ValueError(value)
    return value


def _start(value: object) -> int:
    if type(value) is not int:
        raise TypeError(value)
    return min(max(value, 0), _MOST_START) // PAGE * PAGE
