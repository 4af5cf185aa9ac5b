"""One small wrong change, and whether a test noticed it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one change.

    Attributes:
        path: Of the module.
        place: The function, or the line.
        diff: Lines that are left out (`-`) and put in (`+`), or the change in words.
        is_killed: Whether a test failed.
    """

    path: str
    place: str
    diff: str
    is_killed: bool
