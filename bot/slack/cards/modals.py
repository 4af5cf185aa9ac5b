"""All modals: reject, edit, answer, choose, respond, details, what came of a doubt, a notice."""

from __future__ import annotations

from collections.abc import Iterator

from bot.layout.action_ids import ActionId, encode
from bot.layout.blocks import LABEL, Block, line, literal, plain, rich, section
from bot.layout.forms.fields import MOST_CHECKS, NotEditable
from bot.layout.parts import title_of
from bot.layout.text import clip, show
from bot.mrkdwn import escape
from bot.questions.form import Form, Option, ask_of
from bot.questions.inputs import edit_view, fields_view
from bot.redaction.call import mask_call
from bot.redaction.mask import mask_text
from bot.slack.cards.details import details_modal
from bot.slack.cards.outcomes import MOST_OPTIONS, no_words, option_label, questions_of
from storage.records import Approval

__all__ = [
    "answer_modal",
    "choose_modal",
    "details_modal",
    "edit_modal",
    "notice_modal",
    "ran_modal",
    "reject_modal",
    "respond_modal",
    "withdraw_modal",
]

REASON = "reason"
RESULT = "result"
RESPONSE = "response"
CHOICE = "choice"
MOST_REASON = 1_000
MOST_ANSWER = 3_000
MOST_ANSWERS = 90
_LABEL = 1_900
_QUESTION_WHOLE = 2_900


def reject_modal(approval: Approval) -> Block:
    """Ask for the reason of a no; it may be left out."""
    hint = "The agent is told this, word for word, and so is the thread."
    block = _text_input(REASON, "Why?", MOST_REASON, hint=hint)
    ask = ask_of(approval)
    words = no_words(ask, tool=approval.tool)
    words = "Cancel request" if ask.form is Form.FIELDS else words  # the modal has a Cancel, too
    return _modal(approval, ActionId.REJECT_MODAL, (words, words), [_about(approval), block])


def withdraw_modal(approval: Approval) -> Block:
    """Ask a requester whether to take it back, and what the agent is told; that may be left out."""
    words = "Nothing runs. The agent hears that you withdrew it, and so does the thread."
    block = _text_input(REASON, "Why?", MOST_REASON, hint="The agent can act on this at once.")
    blocks = [_about(approval), section(words), block]
    return _modal(approval, ActionId.WITHDRAW_MODAL, ("Withdraw this?", "Withdraw"), blocks)


def respond_modal(approval: Approval) -> Block:
    """Ask what the agent is told in place of the result of a call that does not run."""
    hint = "The call does not run. The agent gets this in place of its result."
    block = _text_input(
        RESPONSE, "What should the agent be told?", MOST_ANSWER, hint=hint, optional=False
    )
    words = ("Respond", "Respond")
    return _modal(approval, ActionId.RESPOND_MODAL, words, [_about(approval), block])


def choose_modal(approval: Approval) -> Block:
    """Ask which of the options; say so when there is no such form."""
    ask = ask_of(approval)
    if not 0 < len(ask.options) <= MOST_OPTIONS:
        return notice_modal("Choose", "There is no form for this. Please look at the card.")
    options = [
        _option(option, number, index)
        for index, (number, option) in enumerate(enumerate(ask.options, 1))
    ]
    few = len(options) <= MOST_CHECKS
    if ask.multiple:
        kind = "checkboxes" if few else "multi_static_select"
    else:
        kind = "radio_buttons" if few else "static_select"
    block: Block = {
        "type": "input",
        "block_id": CHOICE,
        "label": plain("Choose one or more" if ask.multiple else "Choose one"),
        "optional": False,
        "element": {"type": kind, "action_id": str(ActionId.VALUE), "options": options},
    }
    question = show(mask_call(ask.question), _QUESTION_WHOLE, lines=40).text
    blocks = [rich(line(literal(question or "…", "bold"))), block]
    return _modal(approval, ActionId.CHOOSE_MODAL, ("Choose", "Choose"), blocks)


def _option(option: Option, number: int, index: int) -> Block:
    made: Block = {"text": plain(option_label(option, number, LABEL)), "value": str(index)}
    if option.description.strip():
        made["description"] = plain(clip(mask_call(option.description), LABEL))
    return made


def edit_modal(approval: Approval) -> Block:
    """Ask for other arguments, one typed input each; say so when there is no such form."""
    view = edit_view(approval)
    if isinstance(view, NotEditable):
        return notice_modal("Edit", f"This cannot be edited here: {escape(view.reason)}")
    return view


def answer_modal(approval: Approval) -> Block:
    """Ask for the answer: one input for each question, or for each field, or for feedback."""
    match ask_of(approval).form:
        case Form.FEEDBACK:
            block = _text_input(
                answer_id(0), "What should be different?", MOST_ANSWER, optional=False
            )
            words = ("Give feedback", "Give feedback")
            return _modal(approval, ActionId.ANSWER_MODAL, words, [_about(approval), block])
        case Form.FIELDS:
            view = fields_view(approval, [*_asked(approval)])
            if isinstance(view, NotEditable):
                return notice_modal(
                    "Answer", f"This cannot be answered here: {escape(view.reason)}"
                )
            return view
        case _:
            blocks = [*_questions(approval)][:100]
            return _modal(approval, ActionId.ANSWER_MODAL, ("Answer", "Answer"), blocks)


def _asked(approval: Approval) -> Iterator[Block]:
    """What a form is about: the title of a call, or the question."""
    if approval.tool.strip():
        yield _about(approval)
        return
    for question in questions_of(approval)[:1]:
        yield rich(line(literal(show(mask_text(question), _QUESTION_WHOLE, lines=40).text or "…")))


def _questions(approval: Approval) -> Iterator[Block]:
    for index, question in enumerate(questions_of(approval)[:MOST_ANSWERS]):
        clean = mask_text(question)
        label = clip(clean, _LABEL)
        if show(clean, _LABEL).hidden:
            yield rich(line(literal(show(clean, _QUESTION_WHOLE).text)))
            label = f"Question {index + 1}"
        yield _text_input(answer_id(index), label, MOST_ANSWER, optional=False)


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
