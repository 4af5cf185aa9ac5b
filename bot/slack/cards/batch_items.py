"""An item of a batch card: one line with its content and state."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from bot.approvals.outcome import RequestOutcome, outcome_of
from bot.layout.argument_fields import Naming, humanised
from bot.layout.arguments import NAME, as_text, is_ambiguous
from bot.layout.blocks import Block, line, literal
from bot.layout.sentences import title_of
from bot.layout.text import ShownText, clip, show, width
from bot.questions.shown import shown_question, what_runs
from bot.records.approval import Approval, Status
from bot.redaction.call import mask_call, written
from bot.redaction.masks import once
from bot.slack.cards.status import EMOJI, counted, outcome_word
from bot.words import say

MOST_LINE = 200
"""Maximum length of an item of a batch card, in characters."""
_GAP = "   "


@dataclass(frozen=True, slots=True)
class LinePart:
    """Part of a line: the title, an argument that it lacks, or the effect."""

    view: ShownText
    label: str = ""
    style: str = ""

    @property
    def text(self) -> str:
        """Return the displayed text, with a sign if it is cut."""
        return f"{self.view.text}…" if self.view.hidden else self.view.text


def batch_title(items: Sequence[Approval], tool_title: str) -> str:
    """Return a batch's title: the tool's text, or its name and the number of calls.

    A single item has its own title.

    Args:
        items: At least one.
        tool_title: The tool's text; empty without one.
    """
    if len(items) == 1:
        return title_of(what_runs(items[0]))
    if tool_title.strip():
        return tool_title.strip()
    if len({approval.tool for approval in items}) > 1:
        return say("card.requests", n=len(items))
    what = humanised(items[0].tool) or title_of(items[0])
    return say("card.times", n=len(items), what=what)


def fits_line(approval: Approval) -> bool:
    """Whether title, arguments and effect fit in a line."""
    parts = [*_parts(approval)]
    size = sum(width(part.label) + width(part.view.text) + len(_GAP) for part in parts)
    is_whole = not any(part.view.hidden or part.view.altered for part in parts)
    return is_whole and size <= MOST_LINE


SharedParts = Collection[LinePart]
"""Parts of lines that all items share, displayed once."""


def common_to(items: Sequence[Approval]) -> tuple[LinePart, ...]:
    """Return the parts of lines that all items share, besides the title."""
    lines = [once(_line_of, approval) for approval in items]
    first = lines[0][1:] if len(lines) > 1 else ()
    return tuple(part for part in first if all(part in parts[1:] for parts in lines))


def item_text(approval: Approval, shared: SharedParts = ()) -> str:
    """Return an item's text; without shared parts if it fits in a line."""
    return _GAP.join(
        f"{part.label} {part.text}".strip() for part in _unshared_parts(approval, shared)
    )


def long_text(approval: Approval, most: int) -> str:
    """Return a call's text with a maximum length per part.

    Args:
        approval: The approval.
        most: Maximum characters of the title, of an argument, and of the effect.
    """
    return _GAP.join(f"{part.label} {part.text}".strip() for part in _parts(approval, most))


def item_parts(approval: Approval, shared: SharedParts = ()) -> Iterator[Block]:
    """Render an item's text; names of arguments are bold."""
    yield from _written(_unshared_parts(approval, shared))


def common_line(shared: SharedParts) -> Block:
    """Render the line with the shared parts."""
    return line(literal(f"{say('batch.each')} "), *_written(shared))


def _unshared_parts(approval: Approval, shared: SharedParts) -> Iterator[LinePart]:
    title, *others = once(_line_of, approval)
    yield title
    yield from (part for part in others if part not in shared)


def _written(parts: Iterable[LinePart]) -> Iterator[Block]:
    for number, part in enumerate(parts):
        if number:
            yield literal(_GAP)
        if part.label:
            yield literal(f"{part.label} ", "bold")
        yield literal(part.view.text or say("line.none"), *([part.style] if part.style else []))


def item_line(approval: Approval, shared: SharedParts = ()) -> Block:
    """Render an item with its symbol, and its outcome unless pending."""
    outcome = outcome_of(approval)
    parts: list[Block] = [{"type": "emoji", "name": EMOJI[outcome]}, literal(" ")]
    parts += item_parts(approval, shared)
    if outcome is not RequestOutcome.WAITS:
        parts.append(literal(f" {say('batch.state', state=outcome_word(outcome))}", "italic"))
    return line(*parts)


def _line_of(approval: Approval) -> tuple[LinePart, ...]:
    """Return the parts of an item's line, after edits."""
    return tuple(_parts(what_runs(approval)))


def _parts(approval: Approval, most: int = MOST_LINE) -> Iterator[LinePart]:
    ask, title = shown_question(approval).ask, title_of(approval)
    yield LinePart(show(title, most, one_line=True))
    naming = Naming(title=title, named=ask.named, labels=ask.labels, masks=ask.masks)
    for name, value in approval.arguments.items():
        if naming.covers(name, value):
            continue
        words = naming.words(name, value)
        note = f"{as_text()} " if is_ambiguous(value) else ""
        view = show((note, *words), most, one_line=True)
        label = clip(naming.label(name), NAME) or say("line.no_name")
        has_breaks = any("\n" in part for part in words if isinstance(part, str))
        yield LinePart(replace(view, altered=view.altered or has_breaks), label)
    if approval.preview.strip():
        text = written(mask_call(approval.preview.strip()))
        view = show(text, most, one_line=True)
        yield LinePart(replace(view, altered=view.altered or "\n" in text), style="italic")


def counts(items: Sequence[Approval]) -> list[str]:
    """Describe the number of items per outcome, without pending ones."""
    return counted(
        outcome
        for approval in items
        if (outcome := outcome_of(approval)) is not RequestOutcome.WAITS
    )


def number_of(items: Sequence[Approval]) -> int:
    """Return the number of pending items."""
    return sum(approval.status is Status.PENDING for approval in items)
