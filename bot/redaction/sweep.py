"""One look at all texts of a value, which finds those that may have something to be masked.

Whoever masks a value of many parts looks closer at these alone. Nothing is left out: what is found
here is more than what is masked, and where that cannot be known, it is everything.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Protocol

from agents.core.patterns import Pattern
from bot.redaction.names import NAME_GATE
from bot.redaction.patterns import FIRST_GATE, MORE_GATE
from bot.redaction.places import CURL_GATE, NAMES_GATE
from bot.redaction.rules import MaskRules, rules_now


class Suspects(Protocol):
    """Texts and numbers that may have something to be masked, or name a secret."""

    def __contains__(self, one: object) -> bool: ...
    def isdisjoint(self, many: Collection[object], /) -> bool:
        """Tell whether none of these is among them."""


class _Everything:
    """All texts and numbers."""

    def __contains__(self, one: object) -> bool:
        return True

    def isdisjoint(self, many: Collection[object], /) -> bool:
        """Tell whether there are none."""
        return not many


EVERYTHING: Suspects = _Everything()


def suspects_in(value: object, *, is_open: bool = False) -> Suspects:
    """Find the texts and numbers of a value that may have something to be masked.

    Names of keys are such texts, too.

    Args:
        value: JSON data of any depth.
        is_open: Whether guesses are shown.
    """
    rules = rules_now()
    gates = () if is_open else _gates(rules)
    if gates is None:
        return EVERYTHING
    found = _scalars(value)
    texts = [one if isinstance(one, str) else _digits(one) for one in found]
    hot: set[int] = set()
    for secret in rules.values:
        hot.update(number for number, text in enumerate(texts) if secret in text)
    if gates:
        scan = _Scan(texts)
        for gate in gates:
            hot.update(scan.hits(gate))
    return frozenset(found[number] for number in hot)


def _scalars(value: object) -> list[object]:
    """All texts and numbers of a value, and the names of its keys, each once."""
    found: set[object] = set()
    stack = [value]
    while stack:
        one = stack.pop()
        match one:
            case dict():
                found.update(one)
                stack += [part for part in one.values() if not _is_taken(part, found)]
            case list() | tuple():
                stack += [part for part in one if not _is_taken(part, found)]
            case _:
                found.add(one)
    return [one for one in found if isinstance(one, str | int | float)]
