"""The masked values of a call, for one rendering, and JSON data written with masks.

Has masks, texts with masks, the tool author's names, and a cache: a card needs its masked texts and
values several times.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
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
    """A mask in place of a hidden text.

    Attributes:
        size: Length of the hidden text, in characters.
        fingerprint: Equal for equal texts; empty without a key.
        is_guess: Whether the text only looks like a secret. Then approvers must open it before they
            approve.
        clear: The hidden text.
    """

    size: int
    fingerprint: str
    is_guess: bool
    clear: str = field(repr=False, compare=False)

    def __str__(self) -> str:
        details = [] if self.is_guess else ["secret"]
        details.append(f"{self.size:,} character{'' if self.size == 1 else 's'}")
        details += [f"#{self.fingerprint}"] if self.fingerprint else []
        return f"{REDACTED} ({', '.join(details)})"

    @classmethod
    def of(cls, clear: str, *, is_guess: bool) -> Mask:
        """Mask a text."""
        return cls(len(clear), print_of(clear), is_guess, clear)


Words: TypeAlias = tuple[str | Mask, ...]
"""A text with masks."""


@dataclass(frozen=True, slots=True)
class Names:
    """The tool author's lists of argument names.

    Attributes:
        secret: Names of arguments that are never shown.
        shown: Names of arguments that are not secret, even if they look like secrets.
        is_open: Whether guesses are shown, because a person opened them in private.
    """

    secret: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    is_open: bool = False


NO_NAMES = Names()


def length(words: Words) -> int:
    """Return the length of a text with its masks, as people see it."""
    return sum(len(str(part)) for part in words)


def masks_in(words: Iterable[str | Mask]) -> Iterator[Mask]:
    """Return the masks of a text."""
    return (part for part in words if isinstance(part, Mask))


def has_guess(words: Iterable[str | Mask]) -> bool:
    """Whether a text has a mask of a guess."""
    return any(isinstance(part, Mask) and part.is_guess for part in words)


@dataclass(frozen=True, slots=True)
class Made:
    """The cache of one rendering.

    Attributes:
        texts: Masked texts, by text and whether guesses are shown.
        values: Masked objects and lists, by name, JSON text and the author's lists.
        same: The same by the identity of the object, with the object: keeping it prevents reuse of
            its id.
        of: Results of `once`, by function and the identity of the source, with the source.
    """

    texts: dict[tuple[str, bool], Words] = field(default_factory=dict)
    values: dict[tuple[str, str, Names], Words] = field(default_factory=dict)
    same: dict[tuple[str, int, Names], tuple[object, Words]] = field(default_factory=dict)
    of: dict[tuple[object, int], tuple[object, object]] = field(default_factory=dict)


_made: ContextVar[Made | None] = ContextVar("made", default=None)


@contextmanager
def masked_once() -> Iterator[None]:
    """Cache parsed and masked values within this block and nested ones.

    Cached values must not be changed within the block.
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
"""Returns the cache of the current rendering; None outside of `masked_once`."""


def once(make: Callable[[Source], Result], source: Source) -> Result:
    """Compute a value from a source, once within `masked_once`.

    Args:
        make: A pure function.
        source: The argument, which must not change until the end of the block.
    """
    made = made_now()
    if made is None:
        return make(source)
    itself = (make, id(source))
    if itself not in made.of:
        made.of[itself] = (source, make(source))
    return cast(Result, made.of[itself][1])


@dataclass(frozen=True, slots=True)
class TextWithMasks:
    """A JSON text with masks."""

    words: Words


@dataclass(frozen=True, slots=True)
class ObjectWithMasks:
    """A JSON object with masks."""

    pairs: tuple[tuple[Words, object], ...]


@dataclass(frozen=True, slots=True)
class ListWithMasks:
    """A JSON list with masks."""

    items: tuple[object, ...]


def joined_words(words: Iterable[str | Mask]) -> Words:
    """Join adjacent texts."""
    made: list[str | Mask] = []
    texts: list[str] = []
    for word in words:
        if isinstance(word, str):
            texts.append(word)
            continue
        made += ["".join(texts), word] if texts else [word]
        texts = []
    return (*made, "".join(texts)) if texts else tuple(made)


def write(value: object, indent: int | None, depth: int = 1) -> Iterator[str | Mask]:
    """Format masked JSON data like `json.dumps`, with its masks.

    Args:
        value: JSON data, with texts, objects and lists with masks.
        indent: Spaces per level; None for a single line.
        depth: Level of the contained values.
    """
    match value:
        case TextWithMasks(words=words):
            yield from _between('"', words) if any(isinstance(w, str) for w in words) else words
        case ObjectWithMasks(pairs=pairs):
            items = [
                (*_between('"', name), ": ", *write(item, indent, depth + 1))
                for name, item in pairs
            ]
            yield from _joined(items, "{}", indent, depth)
        case ListWithMasks(items=parts):
            items = [tuple(write(item, indent, depth + 1)) for item in parts]
            yield from _joined(items, "[]", indent, depth)
        case _:
            text = json.dumps(value, ensure_ascii=False, indent=indent)
            yield text.replace("\n", "\n" + " " * (indent or 0) * (depth - 1))


def _joined(
    items: Sequence[Words], brackets: str, indent: int | None, depth: int
) -> Iterator[str | Mask]:
    if not items:
        yield brackets
        return
    gap = "" if indent is None else "\n" + " " * indent * depth
    yield brackets[0]
    for number, item in enumerate(items):
        yield ("," + (gap or " ") if number else gap) or ""
        yield from item
    yield ("" if indent is None else "\n" + " " * indent * (depth - 1)) + brackets[1]


def _between(quote: str, words: Words) -> Iterator[str | Mask]:
    yield quote
    for part in words:
        yield part if isinstance(part, Mask) else json.dumps(part, ensure_ascii=False)[1:-1]
    yield quote
