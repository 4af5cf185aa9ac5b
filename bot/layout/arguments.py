"""Arguments in full for people: each value as it is, with a count of hidden parts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from bot.layout.blocks import Block, line, literal, preformatted
from bot.layout.text import ShownText, clip, more, show, width
from bot.redaction.call import INLINE, mask_call, mask_value
from bot.redaction.masks import Mask, Words, has_guess, length, masks_in
from bot.words import say

NAME = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """Rich text elements, and what they do not show.

    Attributes:
        elements: Elements of a rich text block.
        hidden: Number of hidden characters.
        masked: Whether a secret was masked.
        guessed: Whether a value was masked only because it looks like a secret.
        altered: Whether invisible or look-alike characters were spelled out.
        turned: Whether there is right-to-left text.
    """

    elements: tuple[Block, ...] = ()
    hidden: int = 0
    masked: bool = False
    guessed: bool = False
    altered: bool = False
    turned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The room for arguments.

    Attributes:
        whole: Maximum number of characters of all names and values.
        value: Maximum number of characters of one value.
        names: Maximum number of arguments.
    """

    whole: int
    value: int
    names: int = 30


def list_arguments(pairs: Iterable[tuple[str, object]], budget: Budget) -> Listed:
    """Show arguments one below the other, within a budget."""
    listing = _Listing(budget.whole)
    left = budget.names
    for name, value in pairs:
        text = _MaskedText(mask_value(name, value), is_ambiguous(value))
        if left <= 0 or listing.room < 2 * NAME:
            listing.leave_out(name, text)
            continue
        listing.put(name, text.cut(min(budget.value, listing.room - NAME)))
        left -= 1
    return listing.whole()


def text_width(elements: Iterable[Block]) -> int:
    """Return the number of characters of all texts after Slack's escaping."""
    total = 0
    for element in elements:
        total += width(str(element.get("text", "")))
        total += text_width(element.get("elements", ()))
    return total


def is_ambiguous(value: object) -> bool:
    """Whether a text would look like an object or a list, because it contains JSON."""
    if not isinstance(value, str) or value.lstrip()[:1] not in {"{", "["}:
        return False
    try:
        json.loads(value)
    except RecursionError:
        return True
    except ValueError:
        return False
    return True


def as_text() -> str:
    """Return the words that mark such a text."""
    return f"{say('line.as_text')} "


@dataclass(frozen=True, slots=True)
class _MaskedText:
    """A masked value in full."""

    words: Words
    is_ambiguous: bool

    def cut(self, most: int) -> _Value:
        shown = show(self.words, most, lines=25)
        inline = "\n" not in shown.text and width(shown.text) <= INLINE and not shown.hidden
        return _Value(self, shown, inline)


@dataclass(frozen=True, slots=True)
class _Value:
    """A value as rich text: on a line if it is short, else in a box."""

    whole: _MaskedText
    shown: ShownText
    inline: bool

    @property
    def notes(self) -> list[Block]:
        return [literal(as_text(), "italic")] if self.whole.is_ambiguous else []

    def in_line(self) -> Block:
        if len(self.whole.words) == 1 and isinstance(self.whole.words[0], Mask):
            return literal(self.shown.text, "italic")
        text = self.shown.text
        return literal(text, "code") if text else literal(say("line.not_given"), "italic")

    def in_box(self) -> Iterator[Block]:
        yield preformatted(self.shown.text or " ")
        if self.shown.hidden:
            yield line(literal(more(self.shown.hidden), "italic"))


class _Listing:
    """Lays out arguments one below the other."""

    def __init__(self, room: int) -> None:
        self.room = room
        self._elements: list[Block] = []
        self._hidden = 0
        self._shown: list[ShownText] = []
        self._masks: list[Mask] = []

    def leave_out(self, name: str, text: _MaskedText) -> None:
        """Count an argument as hidden."""
        self._hidden += len(name) + length(text.words)
        self._masks += masks_in(text.words)

    def put(self, name: str, value: _Value) -> None:
        """Show a value."""
        words = mask_call(name)
        label = show(words, NAME - 2, one_line=True)
        self._hidden += label.hidden
        made = [*_labelled(_label(words), value)]
        self._elements += made
        self.room -= text_width(made)
        self._hidden += value.shown.hidden
        self._shown += [label, value.shown]
        self._masks += [*masks_in(words), *masks_in(value.whole.words)]

    def whole(self) -> Listed:
        """Return the list of all arguments."""
        return Listed(
            elements=tuple(self._elements),
            hidden=self._hidden,
            masked=bool(self._masks),
            guessed=has_guess(self._masks),
            altered=any(shown.altered for shown in self._shown),
            turned=any(shown.turned for shown in self._shown),
        )


def _label(words: Words) -> Block:
    name = clip(words, NAME - 2)
    # A placeholder must not look like the name of an argument.
    return literal(f"{name}: ", "bold") if name else literal(f"{say('line.no_name')}: ", "italic")


def _labelled(label: Block, value: _Value) -> Iterator[Block]:
    if value.inline:
        yield line(label, *value.notes, value.in_line())
    else:
        yield line(label, *value.notes)
        yield from value.in_box()
