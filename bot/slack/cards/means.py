"""The forms of the means beside a vote: a snooze, and a question that is asked back."""

from __future__ import annotations

from bot.core.decisions.dialog import LONGEST_ASKED
from bot.layout.action_ids import ActionId
from bot.layout.blocks import Block, plain, section
from bot.layout.modals import Errors, Values, modal, named, read_text, text_input
from bot.policy.values import seconds
from bot.words.mrkdwn import date
from storage.records import Approval

FOR = "for"
"""Block id of how long."""
QUESTION = "question"
"""Block id of what is asked."""
_MOST_TYPED = 40


def snooze_modal(approval: Approval) -> Block:
    """Ask how long somebody is to be left in peace."""
    words = (
        "You are not mentioned about this until then, and told once after that. Others are, as "
        f"ever, and it still expires {date(approval.expires_ms)}."
    )
    block = {
        "type": "input",
        "block_id": FOR,
        "label": plain("For"),
        "hint": plain("Such as 30m, 1h or 1h30m."),
        "element": {
            "type": "plain_text_input",
            "action_id": str(ActionId.VALUE),
            "max_length": _MOST_TYPED,
            "initial_value": "1h",
        },
    }
    blocks = [named(approval), section(words), block]
    return modal(approval, ActionId.SNOOZE_MODAL, ("Snooze", "Snooze"), blocks)


def read_snooze(values: Values) -> int | Errors:
    """Read how long, in seconds; or what is wrong with it."""
    try:
        return seconds(read_text(values, FOR).replace(" ", "").lower())
    except ValueError:
        return {FOR: "Please write a time such as 30m, 1h or 1h30m."}


def question_modal(approval: Approval) -> Block:
    """Ask what somebody wants to know of those who asked for it."""
    words = (
        "This asks in the thread. Question and answer stand on the card. Nothing is decided by it, "
        f"and it still expires {date(approval.expires_ms)}."
    )
    block = text_input(QUESTION, "Question", LONGEST_ASKED, optional=False)
    blocks = [named(approval), section(words), block]
    return modal(approval, ActionId.ASK_BACK_MODAL, ("Ask a question", "Ask"), blocks)


def read_question(values: Values) -> str:
    """Read what is asked."""
    return read_text(values, QUESTION)
