"""The arguments of a call as a card shows them: names and values in words, as short as they allow.

What stands in the title is not said again, and what there is no room for is counted. In full, and
as JSON, they are in the details: see `bot.layout.arguments`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime

from bot.layout.arguments import NAME, as_text, is_ambiguous
from bot.layout.blocks import Block, line, literal, plain, preformatted, quote, rich
from bot.layout.data import same
from bot.layout.parts import Body
from bot.layout.text import ShownText, clip, is_plain, show, width
from bot.redaction.call import mask_call, mask_value
from bot.redaction.masks import NO_NAMES, Mask, Names, Words, has_guess, length, masks_in
from bot.words import say

WHOLE = 2_400
"""Characters of all facts."""
MOST = 20
"""Facts of one card."""
FEW, PAIRS = 3, 10
"""So many short facts stand on one line, and so many in two columns."""
SHORT = 40
"""Characters of a short value."""
LONG = 300
"""Characters of a value that is shown whole."""
HEAD = 200
"""Characters of the beginning of a longer one."""
_HEAD_LINES, _LONG_LINES = 4, 12
_ON_ONE_LINE = 70
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.0+)?)?(Z|[+-]\d{2}:\d{2})", re.ASCII)
_MOST_READ = 300
"""Characters of a text that may look like data."""
_OUR_WORDS = frozenset({"yes", "no", "none"})
_MISSING = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """The words of a tool's author for the arguments of a call.

    Attributes:
        title: The title of the card, as it is shown; empty when not all of it is.
        named: Names of the arguments that stand in it.
        labels: Names of arguments for people.
        masks: What is secret, and what is not.
    """

    title: str = ""
    named: Sequence[str] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    masks: Names = NO_NAMES

    def covers(self, name: str, value: object) -> bool:
        """Whether the title shows all of an argument."""
        if name not in self.named or isinstance(value, bool | dict | None):
            return False
        text = (_listed(value) or "") if isinstance(value, list | tuple) else str(value)
        if not 0 < len(text) <= SHORT or text not in self.title:
            return False
        is_plain_line = "\n" not in text and is_plain(text)
        return is_plain_line and not any(masks_in(self.words(name, value)))

    def label(self, name: str) -> Words:
        """An argument's name for people: its author's, else its own in words.

        It is masked before it is put into words: nothing recognises the pieces of a secret.
        """
        is_open = self.masks.is_open
        if own := self.labels.get(name, "").strip():
            return mask_call(own, is_open=is_open)
        words = mask_call(name, is_open=is_open)
        is_plain_name = not any(masks_in(words)) and len(name) <= NAME
        return mask_call(humanised(name), is_open=is_open) if is_plain_name else words

    def words(self, name: str, value: object) -> Words:
        """A value in words; what is masked, or has parts, is as in the details."""
        simple = _simple(value)
        masked = mask_value(name, value, self.masks)
        return masked if simple is None or any(masks_in(masked)) else (simple,)


def humanised(name: str) -> str:
    """A name of a program as words: `order_id` is `Order ID`."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name.replace("_", " ").replace("-", " "))
    made = [_ACRONYMS.get(one.lower(), one.lower()) for one in words.split()]
    text = " ".join(made)
    return text[:1].upper() + text[1:]


_ACRONYMS = {
    one.lower(): one for one in ("ID", "URL", "API", "IP", "SQL", "VAT", "IBAN", "UTC", "DNS")
}


def facts(pairs: Iterable[tuple[str, object]], naming: Naming) -> Body:
    """Show arguments in words, but for those that the title shows.

    Args:
        pairs: Names and values.
        naming: The words for them.
    """
    sheet = _Sheet(naming)
    for name, value in pairs:
        if not naming.covers(name, value):
            sheet.add(name, value)
    return sheet.body()


def changed(
    before: Mapping[str, object], after: Mapping[str, object], naming: Naming, *, most: int
) -> Body:
    """Show what an edit changed, old and new, one a line, as plain text.

    Args:
        before: The arguments as first asked for.
        after: As they are now.
        naming: The words for them.
        most: Lines at most.
    """
    names = [
        name
        for name in dict.fromkeys((*before, *after))
        if not same(before.get(name, _MISSING), after.get(name, _MISSING))
    ]
    sheet = _Sheet(naming)
    lines = [sheet.change(name, before, after) for name in names[:most]]
    if left := len(names) - most:
        lines += [say("line.more_changes", n=left)] if left > 0 else []
    return sheet.closed([rich(line(literal("\n".join(lines))))] if lines else [])


@dataclass(frozen=True, slots=True)
class _Fact:
    """An argument on its way to the card."""

    label: str
    words: Words
    shown: ShownText
    note: str = ""

    @property
    def is_short(self) -> bool:
        """Whether it can stand beside others."""
        text = self.shown.text
        return not self.shown.hidden and len(text) <= SHORT and "\n" not in text and not self.note

    @property
    def text(self) -> str:
        """Its value; our own word where there is none."""
        return self.shown.text or say("line.none")


class _Sheet:
    """Facts while they are put together."""

    def __init__(self, naming: Naming) -> None:
        self._naming = naming
        self._facts: list[_Fact] = []
        self._room = WHOLE
        self._hidden = 0
        self._masks: list[Mask] = []
        self._views: list[ShownText] = []

    def add(self, name: str, value: object) -> None:
        """Add an argument; count it where there is no room."""
        label, words = self._naming.label(name), self._naming.words(name, value)
        self._masks += [*masks_in(label), *masks_in(words)]
        if len(self._facts) >= MOST or self._room < 2 * NAME:
            self._hidden += len(name) + length(words)
            return
        head = show(label, NAME, one_line=True)
        view = _cut(words, min(LONG, self._room - NAME))
        self._hidden += head.hidden + view.hidden
        self._views += [head, view]
        note = as_text() if is_ambiguous(value) else ""
        fact = _Fact(_label(label), words, view, note)
        self._room -= width(fact.label) + width(view.text) + 4
        self._facts.append(fact)

    def change(self, name: str, before: Mapping[str, object], after: Mapping[str, object]) -> str:
        """One changed argument, as a line."""
        label = self._naming.label(name)
        self._masks += [*masks_in(label)]
        sides = [self._side(name, one) for one in (before, after)]
        return f"{_label(label)} {' → '.join(sides)}"

    def _side(self, name: str, side: Mapping[str, object]) -> str:
        if name not in side:
            return say("line.none")
        words = self._naming.words(name, side[name])
        self._masks += [*masks_in(words)]
        view = show(words, 2 * SHORT, one_line=True)
        self._hidden += view.hidden
        self._views.append(view)
        return (clip(words, 2 * SHORT) if view.hidden else view.text) or say("line.none")

    def body(self) -> Body:
        """The facts: the short ones first."""
        short = [one for one in self._facts if one.is_short]
        long = [one for one in self._facts if not one.is_short]
        blocks = [*_compact(short)]
        if long:
            blocks.append(rich(*(element for one in long for element in _full(one))))
        return self.closed(blocks)

    def closed(self, blocks: Sequence[Block]) -> Body:
        """The sheet, with a count of all that it does not show."""
        return Body(
            blocks=tuple(blocks),
            hidden=self._hidden,
            masked=bool(self._masks),
            guessed=has_guess(self._masks),
            altered=any(one.altered for one in self._views),
            turned=any(one.turned for one in self._views),
        )


def _cut(words: Words, most: int) -> ShownText:
    """All of a value that is not long, else its beginning."""
    view = show(words, most, lines=_LONG_LINES)
    return show(words, min(most, HEAD), lines=_HEAD_LINES) if view.hidden else view


def _label(words: Words) -> str:
    return clip(words, NAME) or say("line.no_name")


def _compact(found: Sequence[_Fact]) -> Iterator[Block]:
    """Short facts: on one line, in two columns, or one a line."""
    size = sum(len(one.label) + len(one.text) + 4 for one in found)
    if not found:
        return
    if len(found) <= FEW and size <= _ON_ONE_LINE:
        parts: list[Block] = []
        for one in found:
            parts += [literal("   ")] if parts else []
            parts += [literal(f"{one.label} ", "bold"), literal(one.text)]
        yield rich(line(*parts))
    elif FEW < len(found) <= PAIRS:
        half = (len(found) + 1) // 2
        columns = [found[:half], found[half:]]
        lines = ["\n".join(f"{one.label}: {one.text}" for one in column) for column in columns]
        yield {"type": "section", "fields": [plain(one) for one in lines]}
    else:
        yield rich(*(element for one in found for element in _full(one)))


def _full(fact: _Fact) -> Iterator[Block]:
    """A fact by itself: in the line when it is of one, else in a quote or a box."""
    notes = [literal(fact.note, "italic")] if fact.note else []
    label = literal(f"{fact.label} ", "bold")
    if "\n" not in fact.shown.text and not fact.shown.hidden:
        yield line(label, *notes, literal(fact.text))
        return
    yield line(label, *notes)
    rest = "…" if fact.shown.hidden else ""
    if "\n" in fact.shown.text and re.search(r"^\s+\S", fact.shown.text, re.MULTILINE):
        yield preformatted(f"{fact.shown.text}{rest}" or " ")
    else:
        yield quote(literal(f"{fact.shown.text}{rest}" or "…"))


def _simple(value: object) -> str | None:
    """A plain value in words; None where it has parts, or could be taken for something else."""
    match value:
        case bool():
            return say("line.yes") if value else say("line.no")
        case None:
            return say("line.none")
        case str():
            return _text(value)
        case int() | float():
            return repr(value) if type(value) is int else json.dumps(value)
        case list() | tuple():
            return _listed(value)
        case _:
            return say("line.none") if value == {} else None


def _text(value: str) -> str | None:
    if value == "":
        return say("line.none")
    if _DATE.fullmatch(value) or _TIME.fullmatch(value):
        return _moment(value)
    is_padded = value != value.strip() and "\n" not in value.strip()
    if is_padded or value.lower() in _OUR_WORDS or value[0] in '"“' or _is_data(value):
        return json.dumps(value, ensure_ascii=False)
    return value


_DATA_BEGINS = frozenset("-0123456789[{NI")
"""The first characters of numbers, among them `NaN` and `Infinity`, of lists, and of objects."""


def _is_data(text: str) -> bool:
    """Whether a text would read as a number, or as data that has parts."""
    if len(text) > _MOST_READ or text.lstrip()[:1] not in _DATA_BEGINS:
        return False
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, int | float | list | dict) and not isinstance(found, bool)


def _listed(values: Sequence[object]) -> str | None:
    """A list of plain values, unless it could be read in two ways."""
    if not values:
        return say("line.none")
    if len(values) == 1 or any(one in ("", None) for one in values):
        return None  # it would read as a text, or as nothing at all
    texts: list[str] = []
    for one in values:
        text = None if isinstance(one, list | tuple | dict) else _simple(one)
        if not text or ", " in text or "\n" in text:
            return None
        texts.append(text)
    return ", ".join(texts)


def _moment(value: str) -> str:
    """A date as people write it; a time that has a zone in UTC."""
    try:
        if _DATE.fullmatch(value):
            day = date.fromisoformat(value)
            return f"{day.day} {day:%b %Y}"
        at = datetime.fromisoformat(value)
    except ValueError:
        return value
    shift = f" (UTC{at:%z})" if at.utcoffset() else " UTC"
    return f"{at.day} {at:%b %Y %H:%M}{f':{at:%S}' if at.second else ''}{shift}"
