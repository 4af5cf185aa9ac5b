"""Format JSON data with masks for people, like `json.dumps`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from bot.redaction.masks import Mask, Words


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
