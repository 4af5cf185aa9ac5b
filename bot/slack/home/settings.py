"""Modal of an absence, and the sample card."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from bot.layout.action_ids import ActionId
from bot.layout.blocks import Block, actions, brief, context, header, plain, section
from bot.layout.inputs import Values, read_state
from bot.policy.localtime import to_ms
from bot.words import say

AWAY_FORM = "countersign:home_away_form"
UNTIL, WHO = "away_until", "away_who"
TEST_YES, TEST_NO = "countersign:home_test_yes", "countersign:home_test_no"
_PERSON = re.compile(r"[UW][A-Z0-9]{1,30}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Absence:
    """A submitted absence.

    Attributes:
        until_ms: End: the end of the selected day.
        delegate_id: Slack user id of the delegate; empty without one.
        block: Input that shows errors about the delegate.
    """

    until_ms: int
    delegate_id: str = ""
    block: str = WHO


def away_form() -> Block:
    """Render the modal: end and delegate."""
    return {
        "type": "modal",
        "callback_id": AWAY_FORM,
        "title": brief(say("form.away")),
        "submit": brief(say("button.save")),
        "close": brief(say("form.cancel")),
        "blocks": [
            _input(UNTIL, say("form.away_until"), {"type": "datepicker"}),
            {
                **_input(WHO, say("form.away_who"), {"type": "users_select"}),
                "optional": True,
                "hint": plain(say("form.hand_help")),
            },
        ],
    }


def read_away(values: Values, zone: ZoneInfo) -> Absence | dict[str, str]:
    """Parse the modal; return errors by input if invalid."""
    picked = read_state(values, UNTIL).get("selected_date")
    who = read_state(values, WHO).get("selected_user") or ""
    try:
        day = date.fromisoformat(picked) if isinstance(picked, str) else None
        after = datetime.combine(day + timedelta(days=1), time()) if day is not None else None
    except (ValueError, OverflowError):
        after = None
    if after is None:
        return {UNTIL: say("error.date")}
    if who and not (isinstance(who, str) and _PERSON.fullmatch(who)):
        return {WHO: say("error.choice")}
    return Absence(until_ms=to_ms(after, zone) - 1_000, delegate_id=who)


def test_card() -> dict[str, Any]:
    """Render a sample card without a record."""
    buttons = [
        {"type": "button", "action_id": name, "text": plain(say(key))}
        for name, key in ((TEST_YES, "button.approve"), (TEST_NO, "button.test_no"))
    ]
    blocks = [
        section(f"⏳ {say('status.needs_approval')}"),
        header(say("message.test_title")),
        context(plain(say("message.test"))),
        actions(*buttons),
    ]
    return {"text": say("message.test"), "blocks": blocks}


def _input(block_id: str, label: str, element: Block) -> Block:
    element = {**element, "action_id": str(ActionId.VALUE)}
    return {"type": "input", "block_id": block_id, "label": plain(label), "element": element}
