"""All modals: reject, edit, answer, details, the result of a call in doubt, a notice."""

from __future__ import annotations

from bot.action_ids import ActionId, encode
from bot.cards.blocks import Block, line, literal, plain, rich, section
from bot.cards.details import details_modal
from bot.cards.edit import edit_view
from bot.cards.fields import NotEditable
from bot.cards.parts import title_of
from bot.cards.question import questions_of
from bot.cards.text import clip, show
from bot.mrkdwn import escape
from bot.redaction import mask_text
from storage.records import Approval

__all__ = [
    "answer_modal",
    "details_modal",
    "edit_modal",
    "loading_modal",
    "notice_modal",
    "ran_modal",
    "reject_modal",
]

REASON = "reason"
RESULT = "result"
MOST_REASON = 1_000
MOST_ANSWER = 3_000
MOST_ANSWERS = 90
_LABEL = 1_900
_QUESTION_WHOLE = 2_900


def reject_modal(approval: Approval) -> Block:
    """Ask for the reason of a rejection; it may be left out."""
    hint = "The agent is told this, word for word, and so is the thread."
    block = _text_input(REASON, "Why?", MOST_REASON, hint=hint)
    return _modal(approval, ActionId.REJECT_MODAL, ("Reject", "Reject"), [_about(approval), block])


def edit_modal(approval: Approval) -> Block:
    """Ask for other arguments, one typed input each; say so when there is no such form."""
    view = edit_view(approval)
    if isinstance(view, NotEditable):
        return notice_modal("Edit", f"This cannot be edited here: {escape(view.reason)}")
    return view


def answer_modal(approval: Approval) -> Block:
    """Ask the questions of a record, one input each."""
    blocks: list[Block] = []
    for index, question in enumerate(questions_of(approval)[:MOST_ANSWERS]):
        clean = mask_text(question)
        label = clip(clean, _LABEL)
        if show(clean, _LABEL).hidden:
            blocks.append(rich(line(literal(show(clean, _QUESTION_WHOLE).text))))
            label = f"Question {index + 1}"
        blocks.append(_text_input(answer_id(index), label, MOST_ANSWER, optional=False))
    return _modal(approval, ActionId.ANSWER_MODAL, ("Answer", "Answer"), blocks[:100])


def answer_id(index: int) -> str:
    """Block id of the input for one question; the first is 0."""
    return f"answer_{index}"


def ran_modal(approval: Approval) -> Block:
    """Ask what came out of a call that did run."""
    hint = "The agent takes this as the result of the call."
    block = _text_input(RESULT, "What came out of it?", MOST_ANSWER, hint=hint, optional=False)
    return _modal(approval, ActionId.RAN_MODAL, ("It ran", "It ran"), [_about(approval), block])


def notice_modal(title: str, words: str) -> Block:
    """Say something in our own words, in place of a form or while one is made.

    Args:
        title: At most 24 characters.
        words: Escaped mrkdwn, such as the text of a `UserFacingError`.

    Returns:
        A modal with nothing to submit.
    """
    return {
        "type": "modal",
        "callback_id": str(ActionId.NOTICE_MODAL),
        "title": plain(title),
        "close": plain("Close"),
        "blocks": [section(words)],
    }


def loading_modal() -> Block:
    """The first view of a form that is still being made."""
    return notice_modal("One moment", "Loading…")


def _modal(
    approval: Approval, callback: ActionId, words: tuple[str, str], blocks: list[Block]
) -> Block:
    title, submit = words
    return {
        "type": "modal",
        "callback_id": str(callback),
        "private_metadata": encode(approval.approval_id, approval.digest),
        "title": plain(title),
        "submit": plain(submit),
        "close": plain("Cancel"),
        "blocks": blocks,
    }


def _about(approval: Approval) -> Block:
    return rich(line(literal(clip(title_of(approval), 300), "bold")))


def _text_input(
    block_id: str, label: str, most: int, *, hint: str = "", optional: bool = True
) -> Block:
    block: Block = {
        "type": "input",
        "block_id": block_id,
        "label": plain(label),
        "optional": optional,
        "element": {
            "type": "plain_text_input",
            "action_id": str(ActionId.VALUE),
            "multiline": True,
            "max_length": most,
        },
    }
    return {**block, "hint": plain(hint)} if hint else block
