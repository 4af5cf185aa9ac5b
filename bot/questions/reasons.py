"""The reason of a vote in a form, and the confirmation dialog."""

from __future__ import annotations

from enum import StrEnum

from bot.errors import InvalidInputError
from bot.layout.action_ids import ActionId
from bot.layout.blocks import (
    MOST_REASON,
    Block,
    Errors,
    Values,
    plain,
    read_state,
    read_text,
    text_input,
)
from bot.layout.sentences import title_of
from bot.layout.short_ids import short_id
from bot.layout.text import clip, is_plain
from bot.policy.demands import is_critical, wants_reason
from bot.policy.refusals import is_blank
from bot.questions.form import ask_of
from bot.records.approval import Approval
from bot.redaction.call import is_masked, mask_call, written
from bot.words import for_all, say

REASON = "reason"
"""Block id of a reason in the person's own words."""
CANNED = "canned"
"""Block id of a reason to select: one of the rule's, or the meaning of a rejection."""
NAME = "name"
"""Block id of the name that a person types to approve a critical call."""
_MOST_NAME = 60
_MOST_RADIOS = 10
_VERDICT = 75
_MOST_CONFIRMED = 240


class RejectionKind(StrEnum):
    """The meaning of a rejection for the agent. The record stores its text, not this value."""

    LATER = "later"
    FIX = "fix"
    NEVER = "never"
    OTHER = "other"


def reason_inputs(approval: Approval, label: str, *, hint: str = "") -> list[Block]:
    """Return the input for the reason of an approval, or for its note.

    The rule's list of reasons is for rejections only. A note is always optional.
    """
    is_needed = wants_reason(approval, rejects=False)
    return [
        text_input(REASON, label, MOST_REASON, hint=hint, optional=not is_needed, is_long=is_needed)
    ]


def rejection_inputs(approval: Approval) -> list[Block]:
    """Return the inputs of a rejection: its meaning or one of the rule's reasons, and a text.

    The text is optional, unless the rule requires a reason and lists none.
    """
    canned = approval.terms.reasons
    is_needed = wants_reason(approval, rejects=True)
    hint = say("form.own_words_hint")
    options = [
        *(_option(str(number), text) for number, text in enumerate(canned)),
        _option(RejectionKind.LATER, say("form.reason_later"), say("form.reason_later_help")),
        _option(RejectionKind.FIX, say("form.reason_fix"), say("form.reason_fix_help")),
        _option(RejectionKind.NEVER, say("form.reason_never"), say("form.reason_never_help")),
        _option(RejectionKind.OTHER, say("form.reason_other"), say("form.reason_other_help")),
    ]
    kind = "radio_buttons" if len(options) <= _MOST_RADIOS else "static_select"
    choice = {
        "type": "input",
        "block_id": CANNED,
        "label": plain(say("form.reason")),
        "optional": False,
        "element": {"type": kind, "action_id": str(ActionId.VALUE), "options": options},
    }
    words = text_input(
        REASON,
        say("form.own_words"),
        MOST_REASON,
        hint=hint,
        optional=bool(canned) or not is_needed,
    )
    return [choice, words]


def read_reason(approval: Approval, values: Values) -> str:
    """Return the reason: the selected one, the typed one, or both.

    Raises:
        InvalidInputError: The selected reason is not in the form.
    """
    typed = read_text(values, REASON)
    value = _chosen(values)
    if value is None or value == RejectionKind.OTHER:
        return typed
    known = {str(number): text for number, text in enumerate(approval.terms.reasons)}
    chosen = known.get(value) or _verdict_words(value)
    if not chosen:
        raise InvalidInputError("this form")
    return f"{chosen}: {typed}" if typed else chosen


def rejection_errors(approval: Approval, values: Values) -> Errors:
    """Return the errors of a rejection: a text that *Another reason* or the rule requires."""
    value = _chosen(values)
    if value is None or not is_blank(read_text(values, REASON)):
        return {}
    is_canned = value.isdecimal()
    is_needed = wants_reason(approval, rejects=True) and not is_canned
    return {REASON: say("error.required")} if is_needed or value == RejectionKind.OTHER else {}


def edit_errors(approval: Approval, values: Values) -> Errors:
    """Return the errors of an edit that approves: a missing reason, or a wrong name."""
    if is_critical(approval):
        return confirmation_errors(approval, values)
    is_asked = REASON in values and wants_reason(approval, rejects=False)
    is_given = not is_blank(read_text(values, REASON))
    return {REASON: say("refuse.reason")} if is_asked and not is_given else {}


def confirmation_inputs(approval: Approval) -> list[Block]:
    """Return the inputs that confirm a critical approval."""
    noun, _ = _object_of(approval)
    label, hint = say("form.critical_why"), say("form.note_ph")
    why = text_input(REASON, label, MOST_REASON, hint=hint, optional=False)
    typed = {
        "type": "input",
        "block_id": NAME,
        "label": plain(say("form.critical_type", noun=noun)),
        "optional": False,
        "element": {
            "type": "plain_text_input",
            "action_id": str(ActionId.VALUE),
            "placeholder": plain(say("form.critical_place")),
            "max_length": _MOST_NAME,
        },
    }
    return [why, typed]


def name_to_type(approval: Approval) -> str:
    """Return the name that a person must type to approve a critical call."""
    return _object_of(approval)[1]


def confirmation_errors(approval: Approval, values: Values) -> Errors:
    """Return the errors of a critical approval; empty for all other approvals."""
    if not is_critical(approval):
        return {}
    errors: Errors = {}
    _, name = _object_of(approval)
    if is_blank(read_text(values, REASON)):
        errors[REASON] = say("error.required")
    if " ".join(read_text(values, NAME).split()) != name:
        errors[NAME] = say("error.name", name=name)
    return errors


def confirmed(button: Block, approval: Approval) -> Block:
    """Return a button that approves, with a confirmation dialog if the rule requires one."""
    terms = approval.terms
    if not terms.confirm:
        return button
    what = _what_changes(approval)
    is_alone = (
        sum(requirement.count for stage in terms.stages for requirement in stage.approve) == 1
    )
    return {
        **button,
        "confirm": {
            "title": plain(say("confirm.title")),
            "text": plain(say("confirm.alone", what=what) if is_alone else what),
            "confirm": plain(say("confirm.yes")),
            "deny": plain(say("confirm.no")),
        },
    }


def _what_changes(approval: Approval) -> str:
    """Return the title as a sentence, and the first sentence of the preview, if it is a text."""
    title = clip(title_of(approval), _MOST_CONFIRMED)
    title = title if title.endswith((".", "!", "?", "…")) else f"{title}."
    clean = written(mask_call(approval.preview)).strip()
    first, is_more, _ = clean.partition(". ")
    first = f"{first}." if is_more else first
    is_sentence = first.endswith((".", "!")) and "\n" not in first and "\t" not in first
    left = _MOST_CONFIRMED - len(title)
    return f"{title} {first}" if is_sentence and is_plain(first) and len(first) < left else title


def _chosen(values: Values) -> str | None:
    """Return the selected value; empty without one.

    Raises:
        InvalidInputError: The value is not an option.
    """
    option = read_state(values, CANNED).get("selected_option")
    if option is None:
        return None
    if not isinstance(option, dict):
        raise InvalidInputError("this form")
    return str(option.get("value"))


def _verdict_words(value: str) -> str:
    """Return the meaning of a rejection as a text for people and the agent; empty without one."""
    with for_all():
        return _said_verdict(value)


def _said_verdict(value: str) -> str:
    match value:
        case RejectionKind.LATER:
            return say("form.reason_later_told")
        case RejectionKind.FIX:
            return say("form.reason_fix_told")
        case RejectionKind.NEVER:
            return say("form.reason_never_told")
        case _:
            return ""


def _object_of(approval: Approval) -> tuple[str, str]:
    """Return the noun and the name to type: an argument in the title, or the request.

    Nobody can type a masked value, or a value with invisible characters.
    """
    title, ask = title_of(approval), ask_of(approval)
    for name, value in approval.arguments.items():
        text = " ".join(value.split()) if isinstance(value, str) else ""
        is_short = 1 < len(text) <= _MOST_NAME and text == value
        if is_short and text in title and is_plain(text) and not is_masked(name, value, ask.masks):
            label = ask.labels.get(name, "").strip() or name.replace("_", " ")
            noun = " ".join(label.split()).lower()
            return (clip(noun, _NOUN) if is_plain(noun) and noun else _request()), text
    return _request(), short_id(approval.approval_id)


def _request() -> str:
    return say("form.critical_request")


_NOUN = 40


def _option(value: str, label: str, description: str = "") -> Block:
    option: Block = {"text": plain(clip(label, _VERDICT)), "value": str(value)}
    return {**option, "description": plain(description)} if description else option
