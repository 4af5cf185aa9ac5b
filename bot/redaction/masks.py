"""The masked values of a call, for one rendering.

One mask, a text with masks, declared names; and the texts and values of a card, which needs each of
them several times.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar, cast

from bot.redaction.patterns import REDACTED
from bot.redaction.rules import print_of

Source = TypeVar("Source")
Result = TypeVar("Result")


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
    return any(isinstance(part, Mask) and part.is_guess for part in words)


@dataclass(frozen=True, slots=True)
class Made:
    """All that was made for one drawing.

    Attributes:
        texts: Masked texts, each by itself and whether guesses are shown.
        values: Masked objects and lists, each by its name, as JSON, and what its author says.
        same: The same by identity, with what has it: as long as that is kept, its id is its own.
        read: JSON data, each by its text.
        of: What `once` has made, by its maker and the identity of what it is made of, with that.
    """

    texts: dict[tuple[str, bool], Words] = field(default_factory=dict)
    values: dict[tuple[str, str, Names], Words] = field(default_factory=dict)
    same: dict[tuple[str, int, Names], tuple[object, Words]] = field(default_factory=dict)
    read: dict[str, object] = field(default_factory=dict)
    of: dict[tuple[object, int], tuple[object, object]] = field(default_factory=dict)


_made: ContextVar[Made | None] = ContextVar("made", default=None)


@contextmanager
def masked_once() -> Iterator[None]:
    """Read and mask each text and each value once inside of this block, and of those inside of it.

    Nobody changes what is read inside of it.
    """
    if _made.get() is not None:
        yield
        return
    token = _made.set(Made())
    try:
        yield
    finally:
        _made.reset(token)


made_now = _made.get
"""All that was made for this drawing so far; None outside of one."""


def once(make: Callable[[Source], Result], source: Source) -> Result:
    """Make something of a source, once inside of `masked_once`.

    Args:
        make: Makes always the same of the same.
        source: Kept until the end of the block; nobody changes it.
    """
    made = made_now()
    if made is None:
        return make(source)
    itself = (make, id(source))
    if itself not in made.of:
        made.of[itself] = (source, make(source))
    return cast(Result, made.of[itself][1])


def read_strictly(text: str) -> object:
    """Read JSON data, in which NaN is no number; None when they are damaged, or too deep."""
    made = _made.get()
    if made is not None and text in made.read:
        return made.read[text]
    try:
        found = _STRICT.decode(text)
    except (ValueError, RecursionError):
        found = None
    if made is not None:
        made.read[text] = found
    return found


def read_data(text: str) -> object:
    """Read JSON data as the runtime does, for which NaN is one; None when they are damaged."""
    found = read_strictly(text)
    if found is not None:
        return found
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _refuse(name: str) -> object:
    raise ValueError(name)


_STRICT = json.JSONDecoder(parse_constant=_refuse)
"""Made once: `json.loads` would make another for each text."""
