"""Forms for personal settings: absences, quiet hours, copies, and keys of own programs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from bot.errors import InvalidInputError
from bot.layout.action_ids import ActionId
from bot.layout.blocks import (
    Block,
    Card,
    Values,
    actions,
    brief,
    context,
    header,
    plain,
    preformatted,
    read_state,
    rich,
    section,
)
from bot.notifications.preferences import check_hours
from bot.policy.hours import to_ms
from bot.records.people import PersonRecord
from bot.words import say

AWAY_FORM = "countersign:home_away_form"
AWAY_UNTIL, WHO = "away_until", "away_who"
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
            _input(AWAY_UNTIL, say("form.away_until"), {"type": "datepicker"}),
            {
                **_optional(WHO, say("form.away_who"), {"type": "users_select"}),
                "hint": plain(say("form.hand_help")),
            },
        ],
    }


def read_away(values: Values, zone: ZoneInfo) -> Absence | dict[str, str]:
    """Parse the modal; return errors by input if invalid."""
    picked = read_state(values, AWAY_UNTIL).get("selected_date")
    who = read_state(values, WHO).get("selected_user") or ""
    try:
        day = date.fromisoformat(picked) if isinstance(picked, str) else None
        after = datetime.combine(day + timedelta(days=1), time()) if day is not None else None
    except (ValueError, OverflowError):
        after = None
    if after is None:
        return {AWAY_UNTIL: say("error.date")}
    if who and not (isinstance(who, str) and _PERSON.fullmatch(who)):
        return {WHO: say("error.choice")}
    return Absence(until_ms=to_ms(after, zone) - 1_000, delegate_id=who)


def test_card() -> Card:
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
    return Card(text=say("message.test"), blocks=blocks)


def _input(block_id: str, label: str, element: Block) -> Block:
    element = {**element, "action_id": str(ActionId.VALUE)}
    return {"type": "input", "block_id": block_id, "label": plain(label), "element": element}


def _optional(block_id: str, label: str, element: Block) -> Block:
    return {**_input(block_id, label, element), "optional": True}


MESSAGES_FORM = "countersign:home_messages_form"
FROM, QUIET_UNTIL = "messages_from", "messages_until"
COPIES = "messages_copies"
_YES = "yes"


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePreferences:
    """Submitted notification preferences.

    Attributes:
        quiet: Start and end of quiet hours; two empty texts for none.
        has_copies: Whether they want cards by direct message.
    """

    quiet: tuple[str, str]
    has_copies: bool


def messages_form(person: PersonRecord) -> Block:
    """Render the modal with the current preferences."""
    copies = _box(say("form.copies_yes"), is_ticked=person.has_copies)
    return {
        "type": "modal",
        "callback_id": MESSAGES_FORM,
        "title": brief(say("form.messages")),
        "submit": brief(say("button.save")),
        "close": brief(say("form.cancel")),
        "blocks": [
            _optional(FROM, say("form.quiet_from"), _time(person.quiet_from)),
            {
                **_optional(QUIET_UNTIL, say("form.quiet_until"), _time(person.quiet_until)),
                "hint": plain(say("form.quiet_help")),
            },
            {
                **_optional(COPIES, say("form.copies"), copies),
                "hint": plain(say("form.copies_help")),
            },
        ],
    }


def read_messages(values: Values) -> MessagePreferences | dict[str, str]:
    """Parse the modal; return errors by input if invalid.

    Raises:
        InvalidInputError: It was not sent by our modal.
    """
    picked = [
        read_state(values, block_id).get("selected_time") or "" for block_id in (FROM, QUIET_UNTIL)
    ]
    copies = read_state(values, COPIES).get("selected_options") or []
    start, until = picked
    is_ours = isinstance(copies, list)
    if not isinstance(start, str) or not isinstance(until, str) or not is_ours:
        raise InvalidInputError("this form")
    if bool(start) != bool(until):
        return {QUIET_UNTIL if start else FROM: say("error.quiet_both")}
    if start and start == until:
        return {QUIET_UNTIL: say("error.quiet_same")}
    check_hours(start, until)
    return MessagePreferences(quiet=(start, until), has_copies=bool(copies))


CONNECT_FORM = "countersign:home_connect_form"
NAME, CHANNELS = "connect_name", "connect_channels"


def connect_form() -> Block:
    """Render the modal that makes a key: name and channels."""
    text: Block = {"type": "plain_text_input", "max_length": 40}
    channels: Block = {
        "type": "multi_conversations_select",
        "filter": {"include": ["public", "private"], "exclude_bot_users": True},
    }
    return {
        "type": "modal",
        "callback_id": CONNECT_FORM,
        "title": brief(say("form.connect")),
        "submit": brief(say("form.connect_submit")),
        "close": brief(say("form.cancel")),
        "blocks": [
            {"type": "section", "text": plain(say("form.connect_help"))},
            {
                **_input(NAME, say("form.connect_name"), text),
                "hint": plain(say("form.connect_name_hint")),
            },
            {
                **_optional(CHANNELS, say("form.connect_channels"), channels),
                "hint": plain(say("form.connect_channels_hint")),
            },
        ],
    }


def read_connect(values: Values) -> tuple[str, list[str]]:
    """Parse the modal: a name and channels.

    Raises:
        InvalidInputError: It was not sent by our modal.
    """
    name = read_state(values, NAME).get("value") or ""
    channels = read_state(values, CHANNELS).get("selected_conversations") or []
    is_list = isinstance(channels, list) and all(isinstance(channel, str) for channel in channels)
    if not isinstance(name, str) or not is_list:
        raise InvalidInputError("this form")
    return name.strip(), channels


def connected_view(key: str, url: str, *, days: int) -> Block:
    """Render the modal that shows a key, once."""
    lines = f"COUNTERSIGN_URL={url}\nCOUNTERSIGN_KEY={key}"
    return {
        "type": "modal",
        "title": brief(say("form.connected")),
        "close": brief(say("form.close")),
        "blocks": [
            {"type": "section", "text": plain(say("form.connected_help", n=days))},
            rich(preformatted(lines)),
            context(plain(say("form.connected_stop"))),
        ],
    }


def _box(label: str, *, is_ticked: bool) -> Block:
    yes = {"text": plain(label), "value": _YES}
    boxes: Block = {"type": "checkboxes", "options": [yes]}
    return {**boxes, "initial_options": [yes]} if is_ticked else boxes


def _time(text: str) -> Block:
    return {"type": "timepicker", **({"initial_time": text} if text else {})}
