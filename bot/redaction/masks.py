"""The values of masks in what people agree to: one mask, a text with masks, declared names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from bot.redaction.patterns import REDACTED
from bot.redaction.rules import print_of


@dataclass(frozen=True, slots=True)
class Mask:
    """A mask in the place of something that is not shown.

    Attributes:
        size: Characters that it hides.
        fingerprint: Equal for equal texts; empty when no key is in force.
        is_guess: Whether it only looks like a secret: then who agrees has to open it before.
        clear: What it hides.
    """

    size: int
    fingerprint: str
    is_guess: bool
    clear: str = field(repr=False, compare=False)

    def __str__(self) -> str:
        told = [] if self.is_guess else ["secret"]
        told.append(f"{self.size:,} character{'' if self.size == 1 else 's'}")
        told += [f"#{self.fingerprint}"] if self.fingerprint else []
        return f"{REDACTED} ({', '.join(told)})"

    @classmethod
    def of(cls, clear: str, *, is_guess: bool) -> Mask:
        """Mask a text."""
        return cls(len(clear), print_of(clear), is_guess, clear)


Words: TypeAlias = tuple[str | Mask, ...]
"""A text with masks in it."""


@dataclass(frozen=True, slots=True)
class Names:
    """The tool author's lists of names of arguments.

    Attributes:
        secret: Names of those that nobody is shown.
        shown: Names of those that are no secrets, whatever they look like.
        is_open: Whether guesses are shown, for who opens them in private.
    """

    secret: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    is_open: bool = False


NO_NAMES = Names()


def length(words: Words) -> int:
    """Characters of a text, with its masks as they are written."""
    return sum(len(str(part)) for part in words)


def masks_in(words: Iterable[str | Mask]) -> Iterator[Mask]:
    """The masks of a text."""
    return (part for part in words if isinstance(part, Mask))


def has_guess(words: Iterable[str | Mask]) -> bool:
    """Tell whether something is masked that is not surely secret."""
    return any(mask.is_guess for mask in masks_in(words))
