"""Find the texts of a value that may contain secrets, in one pass.

The masking of a large value then examines only these texts. The result is always a superset of the
texts to mask; if that cannot be guaranteed, it is every text.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TypeAlias

from agents.core.patterns import Pattern, utf8
from bot.redaction.rules import rules_now

Gates: TypeAlias = Sequence[tuple[int, Pattern]]
"""Pre-check patterns by the bit of their group. A pattern matches in every text with a secret of
its group.
"""


class Suspects:
    """The texts and numbers of a value that may need a mask.

    Args:
        forms: By text or number, the groups of secrets that it may contain, as bits.
    """

    def __init__(self, forms: Mapping[object, int]) -> None:
        self._forms = forms

    def forms(self, value: object) -> int:
        """Return the groups of secrets that a text or number may contain, as bits."""
        return self._forms.get(value, 0)

    def has_none_of(self, many: Iterable[object]) -> bool:
        """Whether none of these values may need a mask. A fast check.

        Raises:
            TypeError: A value is a list or an object.
        """
        return self._forms.keys().isdisjoint(many)


def suspects_in(value: object, own: int, gates: Gates | None) -> Suspects | None:
    """Find the texts and numbers of a value that may need a mask or are secret names.

    Args:
        value: JSON data of any depth. Keys of objects are texts, too.
        own: The bit of the bot's own secrets.
        gates: See `gates_now`.

    Returns:
        The suspects; None if unknown.
    """
    if gates is None:
        return None
    scalars = [*_scalars(value)]
    scan = _Scan([scalar if isinstance(scalar, str) else _digits(scalar) for scalar in scalars])
    forms: dict[object, int] = {}
    for secret in rules_now().values:
        forms |= {scalars[number]: own for number in scan.that_hold(secret)}
    for form, gate in gates:
        for number in scan.hits(gate):
            forms[scalars[number]] = forms.get(scalars[number], own) | form
    return Suspects(forms)


def _scalars(value: object) -> Iterator[str | float]:
    """Yield each distinct text, number and key of a value.

    Of equal numbers, such as 1 and 1.0, one is returned.
    """
    scalars: set[object] = set()
    parts = [value]
    while parts:
        part = parts.pop()
        if isinstance(part, dict):
            scalars.update(part)
            part = part.values()
        elif not isinstance(part, list | tuple):
            scalars.add(part)
            continue
        try:
            scalars.update(part)
        except TypeError:  # a part is a list or an object
            parts += part
    return (scalar for scalar in scalars if isinstance(scalar, str | int | float))


_MOST_DIGITS = 30
"""Number of digits, up to which a number is searched for secrets."""


def _digits(number: float) -> str:
    """Return the digits of an integral number; empty for other numbers, which are not searched."""
    if not isinstance(number, int) and not number.is_integer():
        return ""
    return str(int(number)) if abs(number) < 10**_MOST_DIGITS else ""


_BETWEEN = "\n"
"""Separator between joined texts. It can cause additional matches, but prevent none."""


class _Scan:
    """Searches many texts as a single joined text."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self._joined = _BETWEEN.join(texts)
        parts = texts if self._joined.isascii() else [utf8(text) for text in texts]
        self._ends = [*accumulate(len(part) + len(_BETWEEN) for part in parts)]
        self._data = utf8(self._joined)

    def that_hold(self, part: str) -> Iterator[int]:
        """Yield the indexes of the texts that contain a given text."""
        if part in self._joined:
            yield from (number for number, text in enumerate(self._texts) if part in text)

    def hits(self, gate: Pattern) -> Iterator[int]:
        """Yield the indexes of all texts that a match of a pattern touches."""
        number = 0
        while number < len(self._texts):
            span = gate.first_in(self._data, self._ends[number - 1] if number else 0)
            if span is None:
                return
            first = min(bisect_right(self._ends, span[0]), len(self._texts) - 1)
            number = max(bisect_left(self._ends, span[1]), first) + 1
            yield from range(first, min(number, len(self._texts)))
