"""Modal of notification preferences: quiet hours, direct cards, daily digest."""

from __future__ import annotations

from dataclasses import dataclass

from bot.errors import InvalidInputError
from bot.layout.action_ids import ActionId
from bot.layout.blocks import Block, brief, plain
from bot.layout.inputs import Values, read_state
from bot.notifications.preferences import check_hours
from bot.people.model import PersonRecord
from bot.words import say

MESSAGES_FORM = "countersign:home_messages_form"
FROM, UNTIL = "messages_from", "messages_until"
COPIES, LIST = "messages_copies", "messages_list"
_YES = "yes"


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePreferences:
    """Submitted notification preferences.

    Attributes:
        quiet: Start and end of quiet hours; two empty texts for none.
        has_digest: Whether they want a daily digest.
        has_copies: Whether they want cards by direct message.
    """

    quiet: tuple[str, str]
    has_digest: bool
    has_copies: bool


def messages_form(person: PersonRecord) -> Block:
    """Render the modal with the current preferences."""
    copies = _box(say("form.copies_yes"), is_ticked=person.has_copies)
    digest = _box(say("form.list_yes"), is_ticked=person.has_digest)
    return {
        "type": "modal",
        "callback_id": MESSAGES_FORM,
        "title": brief(say("form.messages")),
        "submit": brief(say("button.save")),
        "close": brief(say("form.cancel")),
        "blocks": [
            _input(FROM, say("form.quiet_from"), _time(person.quiet_from)),
            {
                **_input(UNTIL, say("form.quiet_until"), _time(person.quiet_until)),
                "hint": plain(say("form.quiet_help")),
            },
            {
                **_input(COPIES, say("form.copies"), copies),
                "hint": plain(say("form.copies_help")),
            },
            _input(LIST, say("form.list"), digest),
        ],
    }


def read_messages(values: Values) -> MessagePreferences | dict[str, str]:
    """Parse the modal; return errors by input if invalid.

    Raises:
        InvalidInputError: It was not sent by our modal.
    """
    picked = [read_state(values, one).get("selected_time") or "" for one in (FROM, UNTIL)]
    boxes = [read_state(values, one).get("selected_options") or [] for one in (COPIES, LIST)]
    start, until = picked
    is_ours = all(isinstance(one, list) for one in boxes)
    if not isinstance(start, str) or not isinstance(until, str) or not is_ours:
        raise InvalidInputError("this form")
    if bool(start) != bool(until):
        return {UNTIL if start else FROM: say("error.quiet_both")}
    if start and start == until:
        return {UNTIL: say("error.quiet_same")}
    check_hours(start, until)
    copies, digest = map(bool, boxes)
    return MessagePreferences(quiet=(start, until), has_digest=digest, has_copies=copies)


def _box(label: str, *, is_ticked: bool) -> Block:
    yes = {"text": plain(label), "value": _YES}
    boxes: Block = {"type": "checkboxes", "options": [yes]}
    return {**boxes, "initial_options": [yes]} if is_ticked else boxes


def _time(text: str) -> Block:
    return {"type": "timepicker", **({"initial_time": text} if text else {})}


def _input(block_id: str, label: str, element: Block) -> Block:
    element = {**element, "action_id": str(ActionId.VALUE)}
    return {
        "type": "input",
        "block_id": block_id,
        "label": plain(label),
        "element": element,
        "optional": True,
    }
