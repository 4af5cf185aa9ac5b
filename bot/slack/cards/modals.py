"""The modals that no kind of question has of its own: a withdrawal, the details, a notice."""

from __future__ import annotations

from bot.layout.action_ids import ActionId
from bot.layout.blocks import Block, section
from bot.layout.modals import MOST_REASON, modal, named, notice_modal, text_input
from bot.questions.reasons import REASON
from bot.slack.cards.details import details_modal
from storage.records import Approval

__all__ = ["details_modal", "notice_modal", "withdraw_modal"]


def withdraw_modal(approval: Approval) -> Block:
    """Ask a requester whether to take it back, and what the agent is told; that may be left out."""
    words = "Nothing runs. The agent hears that you withdrew it, and so does the thread."
    block = text_input(REASON, "Why?", MOST_REASON, hint="The agent can act on this at once.")
    blocks = [named(approval), section(words), block]
    return modal(approval, ActionId.WITHDRAW_MODAL, ("Withdraw this?", "Withdraw"), blocks)
