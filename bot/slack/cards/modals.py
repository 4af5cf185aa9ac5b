"""General modals: withdrawal, notice, decided meanwhile."""

from __future__ import annotations

from bot.layout.action_ids import ActionId
from bot.layout.blocks import Block
from bot.layout.card_layout import ButtonRow, notes
from bot.layout.modals import MOST_REASON, modal, named, notice_modal, text_input
from bot.layout.preview import preview
from bot.questions.drawing import OpenModal
from bot.questions.reasons import REASON
from bot.questions.shown import shown_question
from bot.questions.yes import Proof, yes
from bot.records.approval import Approval, Status
from bot.redaction.masks import masked_once
from bot.slack.cards.approval import describe
from bot.slack.cards.status import final_status
from bot.words import say
from bot.words.mrkdwn import date

__all__ = ["late_modal", "notice_modal", "withdraw_modal"]


def withdraw_modal(approval: Approval, *, is_withheld: bool = False) -> Block:
    """Render the withdrawal modal, with an optional text for the agent.

    Args:
        approval: A pending approval.
        is_withheld: Whether the person may not see it any more; the modal then shows its id only.
    """
    block = text_input(
        REASON, say("form.withdraw_tell"), MOST_REASON, hint=say("form.withdraw_hint")
    )
    words = (say("form.withdraw"), say("form.withdraw_submit"))
    about = named(approval, say("form.withdraw_help"), is_withheld=is_withheld)
    blocks = [about, block]
    return modal(approval, ActionId.WITHDRAW_MODAL, words, blocks)


def late_modal(approval: Approval, callback_id: str = "") -> Block:
    """Render the notice that the approval has already ended.

    Args:
        approval: Its current state.
        callback_id: The submitted modal; empty without one.
    """
    words = _how(approval)
    if callback_id:
        words = f"{words} {_unused(callback_id)}"
    note = say("form.late_kept") if callback_id else ""
    return notice_modal(say("form.too_late"), words, level="warning", note=note)


@masked_once()
def agreeing_form(approval: Approval, form: OpenModal, proof: Proof) -> Block:
    """Let a form agree, and add everything that approval runs; see `Surface.FORM`.

    Content that is longer than a card has been opened before, and is not repeated.
    """
    if form.agrees is None or "submit" not in form.view:
        return form.view
    view = yes(form.agrees, form.view, proof)
    about = describe(approval)
    if form.agrees is ActionId.EDIT_MODAL:  # its inputs are the arguments
        about = preview(approval.preview)
    if about.hidden:
        return view
    blocks = view["blocks"]
    place = next(n for n, block in enumerate(blocks, 1) if block["type"] != "alert")
    shown = [*about.blocks, *notes(about, ButtonRow(blocks=()))]
    return {**view, "blocks": [*blocks[:place], *shown, *blocks[place:]]}


def _how(approval: Approval) -> str:
    """Describe the outcome."""
    if approval.status is Status.PENDING:
        return say("refuse.expired", time=date(approval.expires_ms))
    return say("form.late_ended", how=final_status(shown_question(approval)).words)


def _unused(callback_id: str) -> str:
    """Return the part of a modal that was not used."""
    match callback_id:
        case ActionId.EDIT_MODAL:
            return say("form.late_edit")
        case ActionId.REJECT_MODAL:
            return say("form.late_reject")
        case ActionId.OVERRIDE_MODAL:
            return say("form.late_override")
        case ActionId.REVIEW_MODAL | ActionId.GRANT_MODAL:
            return say("form.late_approve")
        case _:
            return say("form.late_text")
