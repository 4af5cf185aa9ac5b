"""The texts and values of one drawing, each read and masked once: a card needs them often."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from bot.redaction.masks import Names, Words


@dataclass(frozen=True, slots=True)
class Made:
    """All that was made for one drawing.

    Attributes:
        texts: Masked texts, each by itself and whether guesses are shown.
        values: Masked objects and lists, each by its name, as JSON, and what its author says.
        same: The same by identity, with what has it: as long as that is kept, its id is its own.
        read: JSON data, each by who read it and its text.
    """

    texts: dict[tuple[str, bool], Words] = field(default_factory=dict)
    values: dict[tuple[str, str, Names], Words] = field(default_factory=dict)
    same: dict[tuple[str, int, Names], tuple[object, Words]] = field(default_factory=dict)
    read: dict[tuple[Callable[[str], object], str], object] = field(default_factory=dict)


_made: ContextVar[Made | None] = ContextVar("made", default=None)


@contextmanager
def masked_once() -> Iterator[None]:
    """Read and mask each text and each value once inside of this block.

    Nobody changes what is read inside of it.
    """
    token = _made.set(Made())
    try:
        yield
    finally:
        _made.reset(token)


def made_now() -> Made | None:
    """All that was made for this drawing so far; None outside of one."""
    return _made.get()


def read_strictly(text: str) -> object:
    """Read JSON data, in which NaN is no number; None when they are damaged, or too deep."""
    return _read_once(_strictly, text)


def read_data(text: str) -> object:
    """Read JSON data as the runtime does, for which NaN is one; None when they are damaged."""
    found = read_strictly(text)
    return _read_once(_loosely, text) if found is None else found


def _read_once(read: Callable[[str], object], text: str) -> object:
    made = _made.get()
    if made is None:
        return read(text)
    if (read, text) not in made.read:
        made.read[read, text] = read(text)
    return made.read[read, text]


def _strictly(text: str) -> object:
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None


def _refuse(name: str) -> object:
    raise ValueError(name)


def _loosely(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
