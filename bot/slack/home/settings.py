"""The form of an absence, and the card that only shows what cards look like."""

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
    """An absence as somebody filled it in.

    Attributes:
        until_ms: When it ends: with the day that was chosen.
        delegate_id: Slack user id of who decides meanwhile; empty for nobody.
        block: The input where an error about that person stands.
    """

    until_ms: int
    delegate_id: str = ""
    block: str = WHO


def away_form() -> Block:
    """The form: until when, and who decides meanwhile."""
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
    """Read the form; or what is wrong in it, by input."""
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
    """The text and the blocks of a card about which nothing is on record."""
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
