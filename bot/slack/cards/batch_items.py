"""One of several approvals on one card, in a line: what it is about, and how it stands."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from bot.approvals.execution import RunState, run_of
from bot.layout.argument_fields import Naming, humanised
from bot.layout.arguments import NAME, as_text, is_ambiguous
from bot.layout.blocks import Block, line, literal
from bot.layout.data import read_pairs
from bot.layout.text import ShownText, clip, show, width
from bot.layout.titles import title_of
from bot.questions.shown import shown_question, what_runs
from bot.redaction.call import mask_call, written
from bot.redaction.masks import once
from bot.words import say
from storage.records import Approval, Status

MOST_LINE = 200
"""Characters of a line."""
_GAP = "   "


@dataclass(frozen=True, slots=True)
class ItemState:
    """The state of one item.

    Attributes:
        emoji: The name of its symbol.
        symbol: The same as a character.
        one: Key of the word for one of them.
        many: Key of the words for several, with their number.
    """

    emoji: str
    symbol: str
    one: str
    many: str


def _state(emoji: str, symbol: str, name: str) -> ItemState:
    return ItemState(emoji, symbol, f"batch.{name}", f"batch.n_{name}")


_WAITS = _state("hourglass_flowing_sand", "⏳", "waits")
_APPROVED = _state("white_check_mark", "✅", "approved")
_ENDS = {
    Status.PENDING: _WAITS,
    Status.APPROVED: _APPROVED,
    Status.ANSWERED: _APPROVED,
    Status.REJECTED: _state("no_entry", "⛔", "rejected"),
    Status.DENIED: _state("no_entry", "⛔", "denied"),
    Status.EXPIRED: _state("alarm_clock", "⏰", "expired"),
    Status.WITHDRAWN: _state("leftwards_arrow_with_hook", "↩️", "withdrawn"),
    Status.SUPERSEDED: _state("fast_forward", "⏩", "replaced"),
    Status.CANCELLED: _state("black_square_for_stop", "⏹️", "cancelled"),
    Status.UNDECIDABLE: _state("warning", "⚠️", "undecidable"),
}
_RUNS = {
    RunState.RUNNING: _state("gear", "⚙️", "running"),
    RunState.RAN: _state("white_check_mark", "✅", "ran"),
    RunState.FAILED: _state("warning", "⚠️", "failed"),
    RunState.STOPPED: _state("warning", "⚠️", "stopped"),
    RunState.DOUBT: _state("question", "❓", "doubt"),
}
IN_ORDER = (*_RUNS.values(), *_ENDS.values())
"""All states; those of a run first."""


def state_of(approval: Approval) -> ItemState:
    """The state of an item."""
    run = run_of(approval) if approval.status in {Status.APPROVED, Status.ANSWERED} else None
    return _ENDS[approval.status] if run is None else _RUNS[run.state]


@dataclass(frozen=True, slots=True)
class LinePart:
    """A part of a line: the title, an argument that it does not show, or what will happen."""

    view: ShownText
    label: str = ""
    style: str = ""

    @property
    def text(self) -> str:
        """All of it that is shown, and a sign where that is not all."""
        return f"{self.view.text}…" if self.view.hidden else self.view.text


def batch_title(items: Sequence[Approval], told: str) -> str:
    """The words for several: those of the tool, else its name, and how often it is called.

    Of one, it is its own title: the words of a tool are for many.

    Args:
        items: At least one.
        told: The words of the tool; empty for none.
    """
    if len(items) == 1:
        return title_of(what_runs(items[0]))
    if told.strip():
        return told.strip()
    if len({one.tool for one in items}) > 1:
        return say("card.requests", n=len(items))
    what = humanised(items[0].tool) or title_of(items[0])
    return say("card.times", n=len(items), what=what)


def fits_line(approval: Approval) -> bool:
    """Whether a line has room for the title, the arguments and what will happen."""
    parts = [*_parts(approval)]
    size = sum(width(one.label) + width(one.view.text) + len(_GAP) for one in parts)
    is_whole = not any(one.view.hidden or one.view.altered for one in parts)
    return is_whole and size <= MOST_LINE


Said = Collection[LinePart]
"""Parts of lines that are the same in all items, and said once for all of them."""


def common_to(items: Sequence[Approval]) -> tuple[LinePart, ...]:
    """The parts of lines beside the title that all items have."""
    lines = [once(_line_of, one) for one in items]
    first = lines[0][1:] if len(lines) > 1 else ()
    return tuple(part for part in first if all(part in one[1:] for one in lines))


def item_text(approval: Approval, said: Said = ()) -> str:
    """An item in words; of one that takes a line, all of it but for what is said elsewhere."""
    return _GAP.join(f"{one.label} {one.text}".strip() for one in _left(approval, said))


def long_text(approval: Approval, most: int) -> str:
    """A call in words, with so many characters of each part at most.

    Args:
        approval: The record.
        most: Of the title, of an argument, and of what will happen.
    """
    return _GAP.join(f"{one.label} {one.text}".strip() for one in _parts(approval, most))


def item_parts(approval: Approval, said: Said = ()) -> Iterator[Block]:
    """The same as parts of a line: the names of arguments are bold, as nothing else is."""
    yield from _written(_left(approval, said))


def common_line(said: Said) -> Block:
    """The line that says once what all items have in common."""
    return line(literal(f"{say('batch.each')} "), *_written(said))


def _left(approval: Approval, said: Said) -> Iterator[LinePart]:
    title, *others = once(_line_of, approval)
    yield title
    yield from (one for one in others if one not in said)


def _written(parts: Iterable[LinePart]) -> Iterator[Block]:
    for number, one in enumerate(parts):
        if number:
            yield literal(_GAP)
        if one.label:
            yield literal(f"{one.label} ", "bold")
        yield literal(one.view.text or say("line.none"), *([one.style] if one.style else []))


def item_line(approval: Approval, said: Said = ()) -> Block:
    """An item with its symbol, and its state in a word where it waits no more."""
    state = state_of(approval)
    parts: list[Block] = [{"type": "emoji", "name": state.emoji}, literal(" ")]
    parts += item_parts(approval, said)
    if approval.status is not Status.PENDING:
        parts.append(literal(f" {say('batch.state', state=say(state.one))}", "italic"))
    return line(*parts)


def _line_of(approval: Approval) -> tuple[LinePart, ...]:
    """The line of an item, as it was edited."""
    return tuple(_parts(what_runs(approval)))


def _parts(approval: Approval, most: int = MOST_LINE) -> Iterator[LinePart]:
    ask, title = shown_question(approval).ask, title_of(approval)
    yield LinePart(show(title, most, one_line=True))
    naming = Naming(title=title, named=ask.named, labels=ask.labels, masks=ask.masks)
    for name, value in read_pairs(approval.arguments_json):
        if naming.covers(name, value):
            continue
        words = naming.words(name, value)
        note = f"{as_text()} " if is_ambiguous(value) else ""
        view = show((note, *words), most, one_line=True)
        label = clip(naming.label(name), NAME) or say("line.no_name")
        has_breaks = any("\n" in one for one in words if isinstance(one, str))
        yield LinePart(replace(view, altered=view.altered or has_breaks), label)
    if approval.preview.strip():
        text = written(mask_call(approval.preview.strip()))
        view = show(text, most, one_line=True)
        yield LinePart(replace(view, altered=view.altered or "\n" in text), style="italic")


def counts(items: Sequence[Approval]) -> list[str]:
    """How many are in which state, in words; without those that wait."""
    found = [state_of(one) for one in items]
    states = [one for one in IN_ORDER if one is not _WAITS]
    numbers = [(one, found.count(one)) for one in dict.fromkeys(states)]
    return [say(one.many, n=number) for one, number in numbers if number]


def number_of(items: Sequence[Approval]) -> int:
    """Count those that wait."""
    return sum(one.status is Status.PENDING for one in items)
