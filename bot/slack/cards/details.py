"""The details modal: everything of an approval, in full."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

from bot.layout.action_ids import ActionId, encode
from bot.layout.arguments import AS_TEXT, is_ambiguous, read_pairs, text_width
from bot.layout.blocks import (
    Block,
    context,
    line,
    literal,
    mrkdwn,
    plain,
    preformatted,
    rich,
    section,
)
from bot.layout.parts import asked_by
from bot.layout.text import chunks, clip, width
from bot.questions.drawing import drawn_question, what_runs
from bot.redaction.call import INLINE, Words, mask_call, mask_value, written
from bot.redaction.mask import mask_text
from bot.words.mrkdwn import date
from storage.records import Approval

CHUNK = 2_800
MOST_BLOCKS = 90
MOST_BYTES = 150_000
"""Below the 250 KB of a view, as the transport may spell characters longer than UTF-8 does."""
_ROWS = 40


def details_modal(approval: Approval, *, is_open: bool = False) -> Block:
    """Show title, why, preview and all arguments whole; after a decision, of what it lets run.

    Args:
        approval: The record.
        is_open: Whether what only looks like a secret is shown, too: to one person, in private.
    """
    approval = what_runs(approval)
    blocks, left_out = _fitting(approval, is_open=is_open)
    if left_out:
        words = "*The rest is too long for Slack and is not shown.* It cannot be approved here."
        blocks.append(section(words))
    return {
        "type": "modal",
        "callback_id": str(ActionId.DETAILS_MODAL),
        "private_metadata": encode(approval.approval_id, approval.digest),
        "title": plain("Revealed" if is_open else "Details"),
        "close": plain("Close"),
        "blocks": [_facts(approval), *blocks],
    }


def fits_details(approval: Approval) -> bool:
    """Tell whether all of an approval can be shown; nobody can agree to what they cannot see."""
    return not (_fitting(approval)[1] or _fitting(approval, is_open=True)[1])


def _fitting(approval: Approval, *, is_open: bool = False) -> tuple[list[Block], bool]:
    blocks: list[Block] = []
    size = 0
    for block in _packed(_everything(approval, is_open=is_open)):
        size += len(json.dumps(block).encode())
        if len(blocks) >= MOST_BLOCKS or size > MOST_BYTES:
            return blocks, True
        blocks.append(block)
    return blocks, False


def _facts(approval: Approval) -> Block:
    return context(
        mrkdwn(f"Asked for by {asked_by(approval)}"),
        mrkdwn(f"On {date(approval.created_ms)}"),
        mrkdwn(f"Expires {date(approval.expires_ms)}"),
        plain(f"Tool: {clip(approval.tool, 200) or 'none'}"),
        plain(f"Rule: {clip(approval.rule, 200) or 'none'}"),
        plain(f"Digest: {clip(approval.digest, 128)}"),
    )


def _everything(approval: Approval, *, is_open: bool) -> Iterator[Block]:
    """All rich text elements, each of at most `CHUNK` characters and a little more."""
    yield from _whole("Title", written(mask_call(approval.title)))
    yield from _whole("Why, in the agent's own words", mask_text(approval.why))
    yield from _whole("What will happen", written(mask_call(approval.preview)))
    question = drawn_question(approval)
    ask, laid_out = question.ask, question.laid_out()
    masks = replace(ask.masks, is_open=is_open)
    yield from _whole("Why you are asked", mask_text(ask.reason))
    for name, value in read_pairs(approval.arguments_json):
        if name not in laid_out:
            note = AS_TEXT if is_ambiguous(value) else ""
            yield from _argument(
                mask_call(name, is_open=is_open), mask_value(name, value, masks), note=note
            )
    yield from _whole("To be chosen", written(mask_call(ask.question, is_open=is_open)))
    for number, option in enumerate(ask.options, 1):
        words = mask_call(option.words, is_open=is_open)
        yield from _argument((f"Option {number}",), words)
    for name, words in question.more_details():
        yield from _argument((name,), words)
    yield from _whole("Only a program can answer this", mask_text(ask.program))


def _whole(label: str, text: str) -> Iterator[Block]:
    if text.strip():
        yield line(literal(label, "bold"))
        yield from (preformatted(part) for part in chunks(text, CHUNK))


def _argument(name: Words, words: Words, *, note: str = "") -> Iterator[Block]:
    shown = chunks(words, CHUNK)  # made one by one: what does not fit is never made
    names = list(chunks(name, CHUNK)) or ["(no name)"]
    for part in names[:-1]:
        yield line(literal(part, "bold"))
    notes = [literal(note, "italic")] if note else []
    label = literal(f"{names[-1]}: ", "bold" if any(name) else "italic")
    text = written(words)
    if "\n" not in text and width(text) <= INLINE and width(names[-1]) <= INLINE:
        yield line(label, *notes, literal(next(shown, "…"), "code"))
    else:
        yield line(label, *notes)
        yield from (preformatted(part) for part in shown)


def _packed(elements: Iterator[Block]) -> Iterator[Block]:
    rows: list[Block] = []
    used = 0
    for element in elements:
        size = text_width((element,))
        if rows and (used + size > CHUNK or len(rows) >= _ROWS):
            yield rich(*rows)
            rows, used = [], 0
        rows.append(element)
        used += size
    if rows:
        yield rich(*rows)
