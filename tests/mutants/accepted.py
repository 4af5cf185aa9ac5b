"""Changes that no test has to notice, because nobody could: what can be seen stays the same."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.result import Result

FILE = Path(__file__).with_name("accepted.toml")
_CAST = re.compile(r"\bcast\((\"[^\"]*\"|None), ")
"""The type in a cast is a word for the type checker; the program never reads it."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """What is accepted, by its module, its place and its lines.

    Attributes:
        reasons: Why.
    """

    reasons: dict[tuple[str, str, str], str]

    def reason(self, result: Result) -> str | None:
        """Why nobody could notice it; None when there is no reason."""
        if _says_the_same(result.diff):
            return "only the type in a cast differs"
        return self.reasons.get((result.path, result.place, _lines(result.diff)))


def read_accepted() -> Accepted:
    """Read accepted.toml; each entry has a reason."""
    document = tomllib.loads(FILE.read_text())
    return Accepted(
        {
            (entry["path"], entry["place"], _lines(diff)): entry["why"]
            for entry in document["accepted"]
            for diff in entry["diffs"]
        }
    )


def _says_the_same(diff: str) -> bool:
    sides = {"-": "", "+": ""}
    for line in diff.splitlines():
        if line[:1] in sides:
            sides[line[0]] += _CAST.sub("cast(…, ", line[1:]) + "\n"
    return sides["-"] == sides["+"] != ""


def _lines(diff: str) -> str:
    return "\n".join(" ".join(line.split()) for line in diff.strip().splitlines())
