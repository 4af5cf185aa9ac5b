"""Standing grants, as far as rules say: who may give one, and which calls it covers (6.5).

Pure: nothing is looked up here.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import cast

from agents.core.codec import Json
from agents.core.digest import canonical_json
from bot.policy.terms import GrantTerms, Terms

_ANY = "*"
"""In a path: every item of a list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantRequest:
    """The wish of an approver to allow later calls, too.

    Attributes:
        for_s: How long, in seconds.
        uses: How many calls.
        vary: Paths of arguments that may differ, of those that the rule lets differ; None for all
            of these.
    """

    for_s: int
    uses: int
    vary: tuple[str, ...] | None = None

    def to_text(self) -> str:
        """Write it for `Decision.allowance_json`: version 1, must stay readable."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_text(cls, text: str) -> GrantRequest | None:
        """Read what `to_text` wrote; None where nothing stands there, or what is damaged."""
        try:
            found = json.loads(text) if text else None
        except (ValueError, RecursionError):
            return None
        if not isinstance(found, dict):
            return None
        for_s, uses, vary = (found.get(name) for name in ("for_s", "uses", "vary"))
        if type(for_s) is not int or type(uses) is not int:
            return None
        if vary is None:
            return cls(for_s=for_s, uses=uses)
        if not isinstance(vary, list) or not all(isinstance(path, str) for path in vary):
            return None
        return cls(for_s=for_s, uses=uses, vary=tuple(vary))


def limits_of(terms: Terms) -> GrantTerms | None:
    """The limits of a grant under some terms; None where nobody can give one.

    One person must be enough to decide: a grant of one would else stand for the votes of others.
    """
    slots = sum(one.count for stage in terms.stages for one in stage.approve)
    return terms.grants if slots == 1 and not terms.always_ask else None


def is_within(allowance: GrantRequest, limits: GrantTerms) -> bool:
    """Whether a rule lets an approver allow as much as this."""
    is_time = 0 < allowance.for_s <= limits.max_time_s
    if not set(allowance.vary or ()) <= set(limits.vary):
        return False
    return is_time and 0 < allowance.uses <= limits.max_uses


def fixed_part(arguments_json: str, vary: Sequence[str]) -> str:
    """The arguments that a call must share with the one that was approved, as canonical JSON.

    Args:
        arguments_json: All arguments: a JSON object.
        vary: Paths of those that may be anything, also absent.

    Raises:
        ValueError: It is no JSON.
        TypeError: It is no object.
    """
    arguments = json.loads(arguments_json)
    if not isinstance(arguments, dict):
        raise TypeError("the arguments of a call are an object")
    for path in vary:
        _leave_out(arguments, path.split("."))
    return canonical_json(cast("dict[str, Json]", arguments))


def _leave_out(value: object, path: Sequence[str]) -> None:
    """Empty a place; one that does not exist stays so."""
    name, rest = path[0], path[1:]
    if isinstance(value, list):
        places = range(len(value)) if name == _ANY else _position(name, value)
        for place in places:
            if rest:
                _leave_out(value[place], rest)
            else:
                value[place] = None
    elif isinstance(value, dict) and name in value:
        if rest:
            _leave_out(value[name], rest)
        else:
            del value[name]


def _position(name: str, value: Sequence[object]) -> Sequence[int]:
    is_number = name.isascii() and name.isdecimal() and len(name) < len(str(2**31))
    return [int(name)] if is_number and int(name) < len(value) else []
