"""The reason of a vote, as a form asks for it, and the dialog that confirms a yes (6.10)."""

from __future__ import annotations

from bot.errors import InvalidInputError
from bot.layout.action_ids import ActionId
from bot.layout.blocks import Block, plain
from bot.layout.inputs import MOST_REASON, Values, read_state, read_text, text_input
from bot.layout.parts import title_of
from bot.layout.text import clip
from bot.people.progress import wants_reason
from bot.people.terms_of import terms_of
from bot.policy.terms import Terms, TermsError
from storage.records import Approval

REASON = "reason"
"""Block id of a reason in one's own words."""
CANNED = "canned"
"""Block id of a reason that the rule offers."""
_MOST_CONFIRMED = 300


def reason_inputs(approval: Approval, label: str, *, rejects: bool, hint: str = "") -> list[Block]:
    """Draw the inputs of a reason: one of the rule's, where it has any, and one's own words.

    Where both are there, either is enough, and what was given is checked when it comes back.
    """
    terms = _terms(approval)
    canned = terms.reasons if terms is not None else ()
    is_needed = wants_reason(approval, rejects=rejects)
    words = text_input(
        REASON, label, MOST_REASON, hint=hint, optional=bool(canned) or not is_needed
    )
    return [_select(canned), words] if canned else [words]


def read_reason(approval: Approval, values: Values) -> str:
    """Read a reason: the one that was chosen, the one that was typed, or both.

    Raises:
        InvalidInputError: What was chosen is not among the reasons of the rule.
    """
    typed = read_text(values, REASON)
    option = read_state(values, CANNED).get("selected_option")
    if option is None:
        return typed
    terms = _terms(approval)
    known = {str(number): text for number, text in enumerate(terms.reasons if terms else ())}
    chosen = known.get(str(option.get("value"))) if isinstance(option, dict) else None
    if chosen is None:
        raise InvalidInputError("this form")
    return f"{chosen}: {typed}" if typed else chosen


def confirmed(button: Block, approval: Approval) -> Block:
    """A button that lets a call run, with a dialog in between where the rule wants one."""
    terms = _terms(approval)
    if terms is None or not terms.confirm:
        return button
    label = str(button["text"]["text"])
    return {
        **button,
        "confirm": {
            "title": plain(f"{label}?"),
            "text": plain(clip(title_of(approval), _MOST_CONFIRMED)),
            "confirm": plain(label),
            "deny": plain("Go back"),
        },
    }


def _terms(approval: Approval) -> Terms | None:
    """The terms of an approval; None where they cannot be read: nobody decides it then."""
    try:
        return terms_of(approval)
    except TermsError:
        return None


def _select(reasons: tuple[str, ...]) -> Block:
    options = [{"text": plain(text), "value": str(number)} for number, text in enumerate(reasons)]
    return {
        "type": "input",
        "block_id": CANNED,
        "label": plain("Choose a reason"),
        "optional": True,
        "element": {
            "type": "static_select",
            "action_id": str(ActionId.VALUE),
            "options": options,
        },
    }
