"""The arguments of a call on a card: names and values in words, abbreviated.

Arguments in the title are left out, and arguments beyond the limits are counted. The details show
them in full, as JSON: see `bot.layout.arguments`.
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
"""The maximum number of characters of all facts."""
MOST = 20
"""The maximum number of facts on one card."""
FEW, PAIRS = 3, 10
"""The maximum number of short facts on one line, and in two columns."""
SHORT = 40
"""The maximum number of characters of a short value."""
LONG = 300
"""The maximum number of characters of a value that is shown in full."""
HEAD = 200
"""Number of characters shown of a longer value."""
_HEAD_LINES, _LONG_LINES = 4, 12
_ON_ONE_LINE = 70
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.0+)?)?(Z|[+-]\d{2}:\d{2})", re.ASCII)
_MOST_READ = 300
"""The maximum number of characters of a text that is checked for data."""
_OUR_WORDS = (
    "line.yes",
    "line.no",
    "line.none",
    "line.empty_text",
    "line.not_set",
    "line.no_fields",
)
"""The words that stand for a value. A text that reads the same is quoted."""
_MISSING = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """The tool author's words for the arguments of a call.

    Attributes:
        title: The title of the card as shown; empty if it is cut.
        named: Names of the arguments in the title.
        labels: Names of arguments for people.
        masks: Which arguments are secret, and which are not.
    """

    title: str = ""
    named: Sequence[str] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    masks: Names = NO_NAMES

    def covers(self, name: str, value: object) -> bool:
        """Whether the title shows an argument in full."""
        if name not in self.named or isinstance(value, bool | dict | None):
            return False
        text = (_listed(value) or "") if isinstance(value, list | tuple) else str(value)
        if not 0 < len(text) <= SHORT or text not in self.title:
            return False
        is_plain_line = "\n" not in text and is_plain(text)
        return is_plain_line and not any(masks_in(self.words(name, value)))

    def label(self, name: str) -> Words:
        """Return an argument's name for people: the author's, or its own name in words.

        The name is masked before it is split into words, because parts of a secret are not
        recognized.
        """
        is_open = self.masks.is_open
        if own := self.labels.get(name, "").strip():
            return mask_call(own, is_open=is_open)
        words = mask_call(name, is_open=is_open)
        is_plain_name = not any(masks_in(words)) and len(name) <= NAME
        return mask_call(humanised(name), is_open=is_open) if is_plain_name else words

    def words(self, name: str, value: object) -> Words:
        """Return a value in words; masked and nested values as in the details."""
        simple = _simple(value)
        masked = mask_value(name, value, self.masks)
        return masked if simple is None or any(masks_in(masked)) else (simple,)


def humanised(name: str) -> str:
    """Convert an identifier to words: `order_id` becomes `Order ID`."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name.replace("_", " ").replace("-", " "))
    made = [_ACRONYMS.get(word.lower(), word.lower()) for word in words.split()]
    text = " ".join(made)
    return text[:1].upper() + text[1:]


_ACRONYMS = {
    acronym.lower(): acronym
    for acronym in ("ID", "URL", "API", "IP", "SQL", "VAT", "IBAN", "UTC", "DNS")
}


def facts(pairs: Iterable[tuple[str, object]], naming: Naming) -> Body:
    """Show arguments in words, except those in the title."""
    sheet = _Sheet(naming)
    for name, value in pairs:
        if not naming.covers(name, value):
            sheet.add(name, value)
    return sheet.body()


def changed(
    before: Mapping[str, object], after: Mapping[str, object], naming: Naming, *, most: int
) -> Body:
    """Show the changes of an edit, old and new value per line, as plain text."""
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
    """One argument of the card."""

    label: str
    words: Words
    shown: ShownText
    note: str = ""

    @property
    def is_short(self) -> bool:
        """Whether it fits beside other facts."""
        text = self.shown.text
        return not self.shown.hidden and len(text) <= SHORT and "\n" not in text and not self.note

    @property
    def text(self) -> str:
        """The value, or a placeholder for an empty value."""
        return self.shown.text or say("line.none")


class _Sheet:
    """Collects facts within the limits."""

    def __init__(self, naming: Naming) -> None:
        self._naming = naming
        self._facts: list[_Fact] = []
        self._room = WHOLE
        self._hidden = 0
        self._masks: list[Mask] = []
        self._views: list[ShownText] = []

    def add(self, name: str, value: object) -> None:
        """Add an argument, or count it as hidden if there is no room."""
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
        """Return one changed argument as a line."""
        label = self._naming.label(name)
        self._masks += [*masks_in(label)]
        sides = [self._side(name, arguments) for arguments in (before, after)]
        return f"{_label(label)} {' → '.join(sides)}"

    def _side(self, name: str, side: Mapping[str, object]) -> str:
        if name not in side:
            return say("line.not_set")
        words = self._naming.words(name, side[name])
        self._masks += [*masks_in(words)]
        view = show(words, 2 * SHORT, one_line=True)
        self._hidden += view.hidden
        self._views.append(view)
        return (clip(words, 2 * SHORT) if view.hidden else view.text) or say("line.none")

    def body(self) -> Body:
        """Return the facts, short ones first."""
        short = [fact for fact in self._facts if fact.is_short]
        long = [fact for fact in self._facts if not fact.is_short]
        blocks = [*_compact(short)]
        if long:
            blocks.append(rich(*(element for fact in long for element in _full(fact))))
        return self.closed(blocks)

    def closed(self, blocks: Sequence[Block]) -> Body:
        """Return the blocks with a count of hidden arguments."""
        return Body(
            blocks=tuple(blocks),
            hidden=self._hidden,
            masked=bool(self._masks),
            guessed=has_guess(self._masks),
            altered=any(view.altered for view in self._views),
            turned=any(view.turned for view in self._views),
        )


def _cut(words: Words, most: int) -> ShownText:
    """Return a value in full, or the beginning of a long one."""
    view = show(words, most, lines=_LONG_LINES)
    return show(words, min(most, HEAD), lines=_HEAD_LINES) if view.hidden else view


def _label(words: Words) -> str:
    return clip(words, NAME) or say("line.no_name")


def _compact(short_facts: Sequence[_Fact]) -> Iterator[Block]:
    """Lay out short facts: on one line, in two columns, or one per line."""
    size = sum(len(fact.label) + len(fact.text) + 4 for fact in short_facts)
    if not short_facts:
        return
    if len(short_facts) <= FEW and size <= _ON_ONE_LINE:
        parts: list[Block] = []
        for fact in short_facts:
            parts += [literal("   ")] if parts else []
            parts += [literal(f"{fact.label} ", "bold"), literal(fact.text)]
        yield rich(line(*parts))
    elif FEW < len(short_facts) <= PAIRS:
        half = (len(short_facts) + 1) // 2
        columns = [short_facts[:half], short_facts[half:]]
        lines = ["\n".join(f"{fact.label}: {fact.text}" for fact in column) for column in columns]
        yield {"type": "section", "fields": [plain(text) for text in lines]}
    else:
        yield rich(*(element for fact in short_facts for element in _full(fact)))


def _full(fact: _Fact) -> Iterator[Block]:
    """Lay out one fact: on a line if it has one, else in a quote or a box."""
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
    """Return a plain value in words; None if it is nested or ambiguous."""
    match value:
        case bool():
            return say("line.yes") if value else say("line.no")
        case None:
            return say("line.not_set")
        case str():
            return _text(value)
        case int() | float():
            return repr(value) if type(value) is int else json.dumps(value)
        case list() | tuple():
            return _listed(value)
        case _:
            return say("line.no_fields") if value == {} else None


def _text(value: str) -> str | None:
    if value == "":
        return say("line.empty_text")
    if _DATE.fullmatch(value) or _TIME.fullmatch(value):
        return _moment(value)
    is_padded = value != value.strip() and "\n" not in value.strip()
    is_ours = value.lower() in {say(key).lower() for key in _OUR_WORDS}
    if is_padded or is_ours or value[0] in '"“' or _is_data(value):
        return json.dumps(value, ensure_ascii=False)
    return value


_DATA_BEGINS = frozenset("-0123456789[{NI")
"""First characters of JSON numbers (with `NaN` and `Infinity`), lists and objects."""


def _is_data(text: str) -> bool:
    """Whether a text looks like a number or like nested data."""
    if len(text) > _MOST_READ or text.lstrip()[:1] not in _DATA_BEGINS:
        return False
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(data, int | float | list | dict) and not isinstance(data, bool)


def _listed(values: Sequence[object]) -> str | None:
    """Return a list of plain values as text; None if the text would be ambiguous."""
    if not values:
        return say("line.none")
    if len(values) == 1 or any(value in ("", None) for value in values):
        return None  # it would look like a text, or like an empty value
    texts: list[str] = []
    for value in values:
        text = None if isinstance(value, list | tuple | dict) else _simple(value)
        if not text or ", " in text or "\n" in text:
            return None
        texts.append(text)
    return ", ".join(texts)


def _moment(value: str) -> str:
    """Format a date for people; a time with a zone in UTC."""
    try:
        if _DATE.fullmatch(value):
            day = date.fromisoformat(value)
            return f"{day.day} {day:%b %Y}"
        at = datetime.fromisoformat(value)
    except ValueError:
        return value
    shift = f" (UTC{at:%z})" if at.utcoffset() else " UTC"
    return f"{at.day} {at:%b %Y %H:%M}{f':{at:%S}' if at.second else ''}{shift}"
