"""Limits of standing grants: who may create one, and which calls it covers.

Pure functions; nothing is looked up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy

from agents.core.codec import Json
from bot.records.terms import GrantTerms, Risk, Terms

NEVER_GRANTED: frozenset[Risk] = frozenset({"high", "critical"})

_ANY = "*"
"""In a path: every item of a list."""


def limits_of(terms: Terms) -> GrantTerms | None:
    """Return the limits of a grant under some terms; None if no grant is permitted.

    A grant requires terms that one person can fulfill; otherwise one person's grant would replace
    the votes of several. High-risk and critical calls have no grants.
    """
    if terms.always_ask or terms.risk in NEVER_GRANTED:
        return None
    slots = sum(requirement.count for stage in terms.stages for requirement in stage.approve)
    return terms.grants if slots == 1 else None


def fixed_part(arguments: Mapping[str, Json], vary: Sequence[str]) -> dict[str, Json]:
    """Return the arguments that later calls must share."""
    left = deepcopy(dict(arguments))
    for path in vary:
        _leave_out(left, path.split("."))
    return left


def _leave_out(value: object, path: Sequence[str]) -> None:
    """Clear the value at a path, if it exists."""
    name, rest = path[0], path[1:]
    if isinstance(value, list):
        places = range(len(value)) if name == _ANY else _position(name, value)
        for place in places:
            if rest:
                _leave_out(value[place], rest)
            else:
                # Cleared, not deleted, so that the other items keep their positions.
                value[place] = None
    elif isinstance(value, dict) and name in value:
        if rest:
            _leave_out(value[name], rest)
        else:
            del value[name]


def _position(name: str, value: Sequence[object]) -> Sequence[int]:
    is_number = name.isascii() and name.isdecimal() and len(name) < len(str(2**31))
    return [int(name)] if is_number and int(name) < len(value) else []
