"""Break-glass modal, and the reasons on the card."""

from __future__ import annotations

from collections.abc import Iterator

from bot.layout.action_ids import ActionId
from bot.layout.blocks import (
    Block,
    plain,
)
from bot.layout.card_layout import third_line
from bot.layout.modals import (
    MOST_REASON,
    Values,
    alert,
    modal,
    named,
    read_state,
    read_text,
    text_input,
)
from bot.people.break_glass import LEAST_REASON, Reasons
from bot.questions.drawing import OpenModal
from bot.records.approval import Approval, Emergency
from bot.records.terms import BreakGlass
from bot.redaction.mask import mask_text
from bot.words import say

WHAT, WHY_NOW, SURE = "what", "why_now", "sure"
_YES = "yes"
_BOTH = 600


def override_modal(approval: Approval, glass: BreakGlass) -> OpenModal:
    """Render the modal that asks for the reasons and names who is alerted."""
    notice = say("form.override_told", channel=f"<#{glass.alert}>")
    hint = say("form.override_least", n=LEAST_REASON)
    what, why_now = say("form.override_why"), say("form.override_now")
    box: Block = {
        "type": "input",
        "block_id": SURE,
        "label": plain(say("form.override_sure")),
        "element": {
            "type": "checkboxes",
            "action_id": str(ActionId.VALUE),
            "options": [{"text": plain(say("form.override_yes")), "value": _YES}],
        },
    }
    blocks = [
        alert(f"*{say('form.override_now_runs')}* {notice}", "error"),
        named(approval),
        text_input(WHAT, what, MOST_REASON, hint=hint, optional=False),
        text_input(WHY_NOW, why_now, MOST_REASON, hint=hint, optional=False),
        box,
    ]
    words = (say("form.override"), say("form.override_submit"))
    view = modal(approval, ActionId.DETAILS_MODAL, words, blocks)
    return OpenModal(view=view, agrees=ActionId.OVERRIDE_MODAL)


def read_reasons(values: Values) -> Reasons:
    """Parse the modal; missing values are empty."""
    ticked = read_state(values, SURE).get("selected_options")
    options = ticked if isinstance(ticked, list) else []
    chosen = [option.get("value") for option in options if isinstance(option, dict)]
    return Reasons(
        what=read_text(values, WHAT), why_now=read_text(values, WHY_NOW), is_sure=_YES in chosen
    )


def emergency_reasons(emergency: Emergency | None) -> list[str]:
    """Return both reasons, masked; none without an emergency."""
    if emergency is None:
        return []
    texts = [mask_text(reason).strip() for reason in (emergency.what, emergency.why_now)]
    return [text for text in texts if text]


def reasons_of(emergency: Emergency) -> Iterator[Block]:
    """Render both reasons as the third line of a card."""
    lines = [f"“{text}”" for text in emergency_reasons(emergency)]
    if lines:
        yield third_line("\n".join(lines), _BOTH, lines=6)
