"""Arguments as people read them: each value shown as it is, with its hidden rest counted."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from bot.cards.blocks import Block, line, literal, preformatted
from bot.cards.text import clip, more, show, width
from bot.redaction import REDACTED, mask, mask_text

NAME = 80
INLINE = 120
_MISSING = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """Rich text elements, and what they do not show.

    Attributes:
        elements: Elements of a rich text block.
        hidden: Characters that were cut away.
        masked: Whether a secret was masked.
        altered: Whether characters that cannot be seen were spelled out.
    """

    elements: tuple[Block, ...] = ()
    hidden: int = 0
    masked: bool = False
    altered: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How much room there is.

    Attributes:
        whole: Characters of all names and values.
        value: Characters of one value.
        names: How many arguments at most.
    """

    whole: int
    value: int
    names: int = 30


def read_object(text: str) -> dict[str, object] | None:
    """Read a JSON object; None when it is damaged, too deep, or something else."""
    try:
        found = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _refuse(name: str) -> object:
    raise ValueError(name)


def read_pairs(text: str) -> list[tuple[str, object]]:
    """Read arguments as pairs of name and value; what cannot be read is one pair, whole."""
    found = read_object(text)
    return [("arguments", text)] if found is None else list(found.items())


def value_text(name: str, value: object) -> str:
    """Write a value for people: secrets masked, texts as they are, the rest as JSON."""
    masked = mask(name, value)
    if isinstance(masked, str):
        return json.dumps(masked) if _needs_quotes(masked) else masked
    indent = 2 if isinstance(masked, dict | list) and len(_dump(masked)) > INLINE else None
    return _dump(masked, indent=indent)


def is_masked(name: str, value: object) -> bool:
    """Tell whether a value would not be shown as it is."""
    return mask(name, value) != value


def same(left: object, right: object) -> bool:
    """Tell whether two JSON values are equal; unlike in Python, true is not 1 and 1 is not 1.0."""
    if left is right:
        return True
    return type(left) is type(right) and _dump(left) == _dump(right)


def list_arguments(pairs: Iterable[tuple[str, object]], budget: Budget) -> Listed:
    """Show arguments one below the other, as far as there is room."""
    elements: list[Block] = []
    hidden = 0
    masked = altered = False
    room = budget.whole
    left = budget.names
    for name, value in pairs:
        text = value_text(name, value)
        if left <= 0 or room < 2 * NAME:
            hidden += len(name) + len(text)
            continue
        shown = _Value.of(text, min(budget.value, room - NAME))
        made = [*_named(name, shown)]
        elements.extend(made)
        room -= text_width(made)
        left -= 1
        hidden += shown.hidden
        masked = masked or is_masked(name, value)
        altered = altered or shown.altered
    return Listed(elements=tuple(elements), hidden=hidden, masked=masked, altered=altered)


def list_changes(
    before: Mapping[str, object], after: Mapping[str, object], budget: Budget
) -> Listed:
    """Show what an edit changed, old and new, as far as there is room."""
    changed = [
        name
        for name in dict.fromkeys((*before, *after))
        if not same(before.get(name, _MISSING), after.get(name, _MISSING))
    ]
    elements: list[Block] = []
    hidden = 0
    room = budget.whole
    for count, name in enumerate(changed):
        old, new = (_side(name, side) for side in (before, after))
        if count >= budget.names or room < 3 * NAME:
            hidden += len(name) + len(old) + len(new)
            continue
        most = min(budget.value, (room - NAME) // 2)
        shown = _Value.of(old, most), _Value.of(new, most)
        made = [*_changed(name, *shown)]
        elements.extend(made)
        room -= text_width(made)
        hidden += sum(side.hidden for side in shown)
    return Listed(elements=tuple(elements), hidden=hidden)


def short_text(pairs: Iterable[tuple[str, object]], most: int) -> str:
    """Write arguments on one line, for notifications. Not escaped."""
    return clip("; ".join(f"{name}: {value_text(name, value)}" for name, value in pairs), most)


def text_width(elements: Iterable[Block]) -> int:
    """Characters of all texts in rich text elements, after Slack escaped them."""
    total = 0
    for element in elements:
        total += width(str(element.get("text", "")))
        total += text_width(element.get("elements", ()))
    return total


@dataclass(frozen=True, slots=True)
class _Value:
    """A value on its way into rich text: in the line when it is short, else in a box."""

    text: str
    hidden: int
    altered: bool
    inline: bool

    @classmethod
    def of(cls, text: str, most: int) -> _Value:
        shown = show(text, most, lines=25)
        inline = "\n" not in text and width(shown.text) <= INLINE and not shown.hidden
        return cls(shown.text, shown.hidden, shown.altered, inline)

    def in_line(self) -> Block:
        if self.text == REDACTED:
            return literal(REDACTED, "italic")
        return literal(self.text, "code") if self.text else literal("not given", "italic")

    def in_box(self) -> Iterator[Block]:
        yield preformatted(self.text or " ")
        if self.hidden:
            yield line(literal(more(self.hidden), "italic"))


def _named(name: str, value: _Value) -> Iterator[Block]:
    label = literal(f"{_name(name)}: ", "bold")
    if value.inline:
        yield line(label, value.in_line())
        return
    yield line(label)
    yield from value.in_box()


def _changed(name: str, old: _Value, new: _Value) -> Iterator[Block]:
    label = literal(f"{_name(name)}: ", "bold")
    if old.inline and new.inline:
        yield line(label, old.in_line(), literal(" → "), new.in_line())
        return
    yield line(label, literal("was"))
    yield from old.in_box()
    yield line(label, literal("is now"))
    yield from new.in_box()


def _name(name: str) -> str:
    return clip(mask_text(name), NAME - 2) or "(no name)"


def _side(name: str, side: Mapping[str, object]) -> str:
    return value_text(name, side[name]) if name in side else ""


def _needs_quotes(text: str) -> bool:
    """Tell whether a text would be taken for a truth value, or for nothing at all."""
    return text != text.strip() or text in {"", "true", "false", "null"}


def _dump(value: object, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)
