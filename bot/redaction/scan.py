"""Find the texts of a value that may contain secrets, in one pass.

Whoever masks a value of many parts looks closer at these alone. Nothing is left out: what is found
here is more than what is masked, and where that cannot be known, it is everything.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TypeAlias

from agents.core.patterns import Pattern, utf8
from bot.redaction.rules import rules_now

Gates: TypeAlias = Sequence[tuple[int, Pattern]]
"""Groups of what may be secret, each a bit, and what finds something in every text that has one."""


class Suspects:
    """The texts and numbers of a value that may have something to be masked.

    Args:
        forms: The groups of which each may have something in it, as bits.
    """

    def __init__(self, forms: Mapping[object, int]) -> None:
        self._forms = forms

    def forms(self, one: object) -> int:
        """The groups of which something may be in a text or a number."""
        return self._forms.get(one, 0)

    def has_none_of(self, many: Iterable[object]) -> bool:
        """Whether none of these has anything in it, found out quickly.

        Raises:
            TypeError: One of these has parts.
        """
        return self._forms.keys().isdisjoint(many)


def suspects_in(value: object, own: int, gates: Gates | None) -> Suspects | None:
    """Find the texts and numbers of a value that may have something to be masked, or name a secret.

    Args:
        value: JSON data of any depth; the names of its keys are texts, too.
        own: The group of the bot's own secrets.
        gates: See `places.gates_now`.

    Returns:
        None where that cannot be known.
    """
    if gates is None:
        return None
    found = [*_scalars(value)]
    scan = _Scan([one if isinstance(one, str) else _digits(one) for one in found])
    forms: dict[object, int] = {}
    for secret in rules_now().values:
        forms |= {found[number]: own for number in scan.that_hold(secret)}
    for form, gate in gates:
        for number in scan.hits(gate):
            forms[found[number]] = forms.get(found[number], own) | form
    return Suspects(forms)


def _scalars(value: object) -> Iterator[str | float]:
    """Yield all texts and numbers of a value, and the names of its keys, each once.

    Of numbers that are equal, such as 1 and 1.0, it is one of them.
    """
    found: set[object] = set()
    parts = [value]
    while parts:
        one = parts.pop()
        if isinstance(one, dict):
            found.update(one)
            one = one.values()
        elif not isinstance(one, list | tuple):
            found.add(one)
            continue
        try:
            found.update(one)
        except TypeError:  # one has parts
            parts += one
    return (one for one in found if isinstance(one, str | int | float))


_MOST_DIGITS = 30
"""A longer number is not masked for its digits."""


def _digits(number: float) -> str:
    """A whole number as it is written; nothing of another, which is never masked for its digits."""
    if not isinstance(number, int) and not number.is_integer():
        return ""
    return str(int(number)) if abs(number) < 10**_MOST_DIGITS else ""


_BETWEEN = "\n"
"""Stands between two texts. A gate may find more for it, but nothing less."""


class _Scan:
    """Many texts, searched as one.

    Args:
        texts: These.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self._joined = _BETWEEN.join(texts)
        parts = texts if self._joined.isascii() else [utf8(one) for one in texts]
        self._ends = [*accumulate(len(one) + len(_BETWEEN) for one in parts)]
        self._data = utf8(self._joined)

    def that_hold(self, part: str) -> Iterator[int]:
        """Yield the numbers of the texts that hold another."""
        if part in self._joined:
            yield from (number for number, text in enumerate(self._texts) if part in text)

    def hits(self, gate: Pattern) -> Iterator[int]:
        """Yield the numbers of the texts in which a gate finds something, wherever that ends."""
        number = 0
        while number < len(self._texts):
            span = gate.first_in(self._data, self._ends[number - 1] if number else 0)
            if span is None:
                return
            first = min(bisect_right(self._ends, span[0]), len(self._texts) - 1)
            number = max(bisect_left(self._ends, span[1]), first) + 1
            yield from range(first, min(number, len(self._texts)))
