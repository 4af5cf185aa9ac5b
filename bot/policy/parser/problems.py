"""Faults of a policy file: position, code, description, and remedy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal, get_args

Code = Literal[
    "not_yaml",
    "too_big",
    "anchor",
    "duplicate_key",
    "unknown_key",
    "missing_key",
    "wrong_type",
    "bad_version",
    "bad_name",
    "duplicate_rule",
    "unreachable",
    "bad_then",
    "bad_value",
    "bad_duration",
    "bad_order",
    "bad_id",
    "bad_operator",
    "bad_pattern",
    "each_required",
    "empty_group",
    "needs_zone",
    "no_approvers",
    "approve_and_stages",
    "for_required",
    "grants_slots",
    "grants_risk",
    "always_ask_conflict",
    "here_needs_channel",
    "allow_on_gated",
    "unknown_tool",
    "unknown_tag",
    "unknown_agent",
    "unknown_path",
    "unknown_group",
    "unknown_requirement",
    "unknown_id",
    "bot_not_in_channel",
    "unresolvable",
]
"""The codes of faults."""
_NEAR = 0.65
"""Likeness of two words from which one is taken for the other. `count` is not `route`."""
CODES: frozenset[str] = frozenset(get_args(Code))


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyProblem:
    """A fault of a policy file.

    Attributes:
        code: The kind of fault.
        key: The path of the key, such as `rules[0].when.tool`; empty for the whole file.
        line: From 1.
        column: From 0; used only to order faults in one line.
        fault: The fault, as a clause.
        remedy: The remedy, as a clause.
    """

    code: Code
    key: str
    line: int
    column: int = 0
    fault: str
    remedy: str

    def text(self, file: str) -> str:
        """Return the line for people."""
        key = f"{self.key}: " if self.key else ""
        return f"{file}:{self.line}: {key}{self.fault}; {self.remedy} [{self.code}]"


class PolicyError(Exception):
    """A policy file that cannot be used.

    Attributes:
        problems: All faults, in the order of their places; at least one.
    """

    def __init__(self, problems: Iterable[PolicyProblem]) -> None:
        """Sort the faults by position, and keep one per key."""
        first: dict[str, PolicyProblem] = {}
        for problem in problems:
            first.setdefault(problem.key or f"line {problem.line}", problem)
        self.problems = tuple(
            sorted(first.values(), key=lambda problem: (problem.line, problem.column))
        )
        count = len(self.problems)
        faults = f"{count} {'fault' if count == 1 else 'faults'}"
        super().__init__(f"{faults}, first: {self.text().splitlines()[0]}")

    def text(self, file: str = "policy") -> str:
        """Return all faults, one per line."""
        return "\n".join(problem.text(file) for problem in self.problems)


def nearest(word: str, known: Iterable[str], otherwise: str) -> str:
    """Return the remedy for an unknown word."""
    close = get_close_matches(word, sorted(known), n=1, cutoff=_NEAR)
    return f"did you mean {close[0]}?" if close else otherwise
