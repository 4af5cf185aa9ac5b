"""Modals that create and revoke a standing grant."""

from __future__ import annotations

import re
from datetime import timedelta

from bot.config.durations import format_duration
from bot.errors import InvalidInputError
from bot.layout.action_ids import ActionId
from bot.layout.blocks import (
    Block,
    context,
    mrkdwn,
    plain,
)
from bot.layout.forms.hints import humanised
from bot.layout.modals import (
    MOST_REASON,
    Errors,
    Values,
    alert,
    modal,
    named,
    read_state,
    read_text,
    text_input,
)
from bot.layout.text import clip
from bot.policy.demands import wants_reason
from bot.policy.grants import limits_of
from bot.policy.values import seconds
from bot.questions.drawing import OpenModal
from bot.questions.form import ask_of
from bot.questions.reasons import REASON
from bot.records.approval import Approval, GrantRequest, Kind
from bot.records.terms import GrantTerms
from bot.redaction.call import mask_call, mask_value
from bot.redaction.masks import Names
from bot.words import say

FOR, TIMES, ONLY, NEXT = "for", "times", "only", "next_time"
_ASK, _TIME, _USES = "ask", "time", "uses"
_MOST_BOXES, _OPTION, _MOST_VALUE = 10, 75, 34
_USUAL_S, _USUAL_USES = 3_600, 5
_NUMBER = re.compile("[1-9][0-9]{0,5}", re.ASCII)
_MOST_TYPED = 20


def limits_for(approval: Approval) -> GrantTerms | None:
    """Return the limits of an approval's grant; None if no grant is possible."""
    return limits_of(approval.terms) if approval.kind is Kind.APPROVAL else None


def grant_modal(approval: Approval, limits: GrantTerms | None, *, covered: int = 0) -> OpenModal:
    """Render the modal for a grant's duration and number of uses.

    Args:
        approval: A pending approval.
        limits: Limits of its rule; None renders plain approval.
        covered: Requests of the last 30 days that such a grant would have covered.
    """
    is_free = not wants_reason(approval, rejects=False)
    label = say("form.note" if is_free else "form.critical_why")
    why = text_input(REASON, label, MOST_REASON, hint=say("form.note_ph"), optional=is_free)
    if limits is None:
        words = (say("form.review"), say("form.approve_submit"))
        about = named(approval, say("form.grant_none"))
        return _form(approval, words, [about, why])
    is_program = bool(approval.caller_program)
    scope = say("form.grant_scope_program" if is_program else "form.grant_scope")
    longest, usual = _time(limits.max_time_s), _time(min(limits.max_time_s, _USUAL_S))
    uses = str(min(limits.max_uses, _USUAL_USES))
    blocks = [
        named(approval, say("form.grant_help_program" if is_program else "form.grant_help")),
        _short_input(
            FOR, say("form.grant_how_long"), usual, say("form.grant_time_most", time=longest)
        ),
        _short_input(
            TIMES, say("form.grant_times"), uses, say("form.grant_times_most", n=limits.max_uses)
        ),
        *_scope_boxes(approval, limits),
        alert(_covers(covered), "info"),
        why,
        context(mrkdwn(f"{scope} {say('form.grant_stop')}")),
    ]
    words = (say("form.grant"), say("form.grant_submit"))
    return _form(approval, words, blocks)


def _form(approval: Approval, words: tuple[str, str], blocks: list[Block]) -> OpenModal:
    view = modal(approval, ActionId.DETAILS_MODAL, words, blocks)
    return OpenModal(view=view, agrees=ActionId.GRANT_MODAL)


def _covers(covered: int) -> str:
    if not covered:
        return say("form.grant_cover_none")
    return say("form.grant_cover", n=covered)


def stop_modal(approval: Approval, *, is_withheld: bool) -> Block:
    """Render the modal that revokes a grant; with its id only for who may not see the request."""
    words = (say("confirm.stop_title"), say("confirm.stop_yes"))
    text = say("confirm.stop_program" if approval.caller_program else "confirm.stop_text")
    blocks = [named(approval, text, is_withheld=is_withheld)]
    return modal(approval, ActionId.STOP_GRANT_MODAL, words, blocks)


def read_allowance(approval: Approval, values: Values) -> GrantRequest | Errors | None:
    """Parse the requested grant.

    Returns:
        Errors by input if invalid; None if the form had no such inputs.
    """
    if FOR not in values and TIMES not in values:
        return None
    time, times = read_text(values, FOR), read_text(values, TIMES)
    errors: Errors = {}
    try:
        for_s = seconds(time)
    except ValueError:
        for_s = 0
        errors[FOR] = say("error.duration")
    if not _NUMBER.fullmatch(times):
        errors[TIMES] = say("error.times")
    vary = _unticked(approval, values)
    return errors or GrantRequest(for_s=for_s, uses=int(times), vary=vary)


def next_time(approval: Approval) -> list[Block]:
    """Render the choice for the next similar call, at normal risk and if permitted."""
    limits = limits_for(approval)
    if limits is None:
        return []
    time = _time(min(limits.max_time_s, _USUAL_S))
    uses = min(limits.max_uses, _USUAL_USES)
    options = [
        _choice(_ASK, say("form.ask_again")),
        _choice(_TIME, say("form.allow_time", time=time), say("form.allow_help")),
        _choice(
            _USES,
            say("form.allow_times", n=uses),
            say("form.allow_times_help", time=_time(limits.max_time_s)),
        ),
    ]
    element = {
        "type": "radio_buttons",
        "action_id": str(ActionId.VALUE),
        "options": options,
        "initial_option": options[0],
    }
    label = plain(say("form.next_time"))
    return [{"type": "input", "block_id": NEXT, "label": label, "element": element}]


def read_next_time(approval: Approval, values: Values) -> GrantRequest | None:
    """Parse the choice for the next similar call; None to ask again.

    Raises:
        InvalidInputError: The form has no such value.
    """
    option = read_state(values, NEXT).get("selected_option")
    value = option.get("value") if isinstance(option, dict) else _ASK
    limits = limits_for(approval)
    if value == _ASK:
        return None
    if limits is None or value not in {_TIME, _USES}:
        raise InvalidInputError("this form")
    if value == _TIME:
        for_s = min(limits.max_time_s, _USUAL_S)
        return GrantRequest(for_s=for_s, uses=limits.max_uses, vary=())
    uses = min(limits.max_uses, _USUAL_USES)
    return GrantRequest(for_s=limits.max_time_s, uses=uses, vary=())


def _scope_boxes(approval: Approval, limits: GrantTerms) -> list[Block]:
    """Render the arguments that may vary, all selected: the narrowest grant."""
    if not limits.vary:
        return []
    masks, arguments = ask_of(approval).masks, approval.arguments
    options = [
        _choice(str(place), _argument_label(path, arguments.get(path.split(".")[0]), masks))
        for place, path in enumerate(limits.vary[:_MOST_BOXES])
    ]
    block: Block = {
        "type": "input",
        "block_id": ONLY,
        "label": plain(say("form.grant_only")),
        "hint": plain(say("form.grant_untick")),
        "optional": True,
        "element": {
            "type": "checkboxes",
            "action_id": str(ActionId.VALUE),
            "options": options,
            "initial_options": options,
        },
    }
    return [block]


def _unticked(approval: Approval, values: Values) -> tuple[str, ...]:
    """Return the paths of arguments that may have any value."""
    limits = limits_for(approval)
    if limits is None or ONLY not in values:
        return ()
    ticked = read_state(values, ONLY).get("selected_options")
    options = ticked if isinstance(ticked, list) else []
    fixed = {str(option.get("value")) for option in options if isinstance(option, dict)}
    paths = enumerate(limits.vary[:_MOST_BOXES])
    return tuple(path for place, path in paths if str(place) not in fixed)


def _argument_label(path: str, value: object, masks: Names) -> str:
    """Return an argument with its value, for an option."""
    shown = clip(mask_value(path, value, masks), _MOST_VALUE)
    return say(
        "form.grant_value", field=clip(mask_call(humanised(path)), _MOST_VALUE), value=shown
    )[:_OPTION]


def _choice(value: str, label: str, description: str = "") -> Block:
    option: Block = {"text": plain(label), "value": value}
    return {**option, "description": plain(clip(description, _OPTION))} if description else option


def _time(seconds_: int) -> str:
    return format_duration(timedelta(seconds=seconds_))


def _short_input(block_id: str, label: str, value: str, hint: str) -> Block:
    return {
        "type": "input",
        "block_id": block_id,
        "label": plain(label),
        "hint": plain(hint),
        "element": {
            "type": "plain_text_input",
            "action_id": str(ActionId.VALUE),
            "max_length": _MOST_TYPED,
            "initial_value": value,
        },
    }
