"""Modals of secondary actions: snooze, question, admin, delegation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

from bot.approvals.comments import AGENT, LONGEST_ASKED
from bot.errors import InvalidInputError
from bot.layout.action_ids import ActionId
from bot.layout.blocks import Block, context, line, literal, mrkdwn, plain, rich
from bot.layout.modals import Errors, Values, modal, named, read_state, read_text, text_input
from bot.layout.sentences import title_of
from bot.layout.text import clip
from bot.policy.hours import to_local, to_ms
from bot.policy.refusals import is_blank
from bot.ports.people import Person
from bot.records.approval import Approval
from bot.records.people import DelegationRecord
from bot.slack.typed_times import end_of_day
from bot.words import say
from bot.words.mrkdwn import date, is_person, mention

WHEN, UNTIL = "when", "until"
"""Block ids of an end time: a choice, or another time."""
WHOM, PERSON, QUESTION = "whom", "person", "question"
"""Block ids of a question: recipient and text."""
TO, DAY, WHAT = "to", "day", "what"
"""Block ids of a delegation: delegate, last day, scope."""
OTHER, _REQUESTERS, _THIS, _ALL = "other", "requesters", "this", "all"
_HOUR_MS, _MINUTE_MS = 3_600_000, 60_000
_SHORTLY = 15
_LUNCH, _MORNING = time(13), time(9)
_OPTION = 75
_MOST_GROUPS = 9
_MOST_OPEN, _OPEN = 5, 150


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """The time now, for a reader."""

    now_ms: int
    zone: ZoneInfo

    def day(self, add: int = 0) -> datetime:
        """Return local midnight of today plus a number of days."""
        return datetime.combine(to_local(self.now_ms, self.zone).date(), time()) + timedelta(add)

    def at(self, clock: time, *, add: int = 0) -> int:
        """Return a local time of today plus a number of days."""
        return to_ms(datetime.combine(self.day(add).date(), clock), self.zone)


def snooze_modal(approval: Approval, here: Here) -> Block:
    """Render the snooze modal."""
    options = [*_later(approval, here), _option(OTHER, say("form.snooze_other"))]
    when = _radios(WHEN, say("form.snooze_when"), options)
    other = {
        "type": "input",
        "block_id": UNTIL,
        "label": plain(say("form.snooze_time")),
        "hint": plain(say("form.snooze_time_hint")),
        "optional": True,
        "element": {"type": "datetimepicker", "action_id": str(ActionId.VALUE)},
    }
    words = (say("form.snooze"), say("form.snooze_submit"))
    blocks = [named(approval, say("form.snooze_help")), when, other]
    return modal(approval, ActionId.SNOOZE_MODAL, words, blocks)


def _later(approval: Approval, here: Here) -> list[Block]:
    """Render the usual times before the expiry."""
    left_ms = approval.expires_ms - here.now_ms
    options: list[Block] = []
    if left_ms > _HOUR_MS:
        options.append(_option(f"in.{_HOUR_MS}", say("form.snooze_hour")))
    elif left_ms > _SHORTLY * _MINUTE_MS:
        shortly = say("form.snooze_minutes", n=_SHORTLY)
        options.append(_option(f"in.{_SHORTLY * _MINUTE_MS}", shortly))
    lunch, morning = here.at(_LUNCH), here.at(_MORNING, add=1)
    if here.now_ms + _HOUR_MS < lunch < approval.expires_ms:
        options.append(_option(f"at.{lunch}", say("form.snooze_lunch", time=_clock(_LUNCH))))
    if morning < approval.expires_ms:
        words = say("form.snooze_tomorrow", time=_clock(_MORNING))
        options.append(_option(f"at.{morning}", words))
    if left_ms > 2 * _HOUR_MS:
        last = approval.expires_ms - _HOUR_MS
        options.append(_option(f"at.{last}", say("form.snooze_last")))
    return options


def snoozed_in(values: Values) -> str:
    """Return the block with the end of the snooze."""
    return UNTIL if _chosen(values, WHEN) == OTHER else WHEN


def read_snooze(values: Values, *, now_ms: int) -> int | Errors:
    """Parse the duration in seconds; return errors if invalid.

    Raises:
        InvalidInputError: The form has no such value.
    """
    value = _chosen(values, WHEN)
    if value == OTHER:
        picked = read_state(values, UNTIL).get("selected_date_time")
        if type(picked) is not int:
            return {UNTIL: say("error.datetime")}
        at_ms = picked * 1_000
    else:
        kind, _, number = value.partition(".")
        if kind not in {"in", "at"} or not (number.isascii() and number.isdecimal()):
            raise InvalidInputError("this form")
        if len(number) > _MOST_DIGITS:
            raise InvalidInputError("this form")
        at_ms = int(number) + (now_ms if kind == "in" else 0)
    for_s = (at_ms - now_ms) // 1_000
    return for_s if for_s > 0 else {snoozed_in(values): say("error.past")}


_MOST_DIGITS = 15


def question_modal(approval: Approval, *, has_agent: bool = False) -> Block:
    """Render the question modal.

    Args:
        approval: The approval.
        has_agent: Whether the agent can be asked.
    """
    options = [_option(_REQUESTERS, say("form.ask_requesters"))]
    if has_agent:
        help_text = plain(say("form.ask_agent_help"))
        options.append({**_option(AGENT, say("form.ask_agent")), "description": help_text})
    options.append(_option(OTHER, say("form.ask_other")))
    person = {
        "type": "input",
        "block_id": PERSON,
        "label": plain(say("form.ask_person")),
        "hint": plain(say("form.ask_person_hint")),
        "optional": True,
        "element": {"type": "users_select", "action_id": str(ActionId.VALUE)},
    }
    blocks = [
        named(approval, say("form.ask_help")),
        _radios(WHOM, say("form.ask_whom"), options),
        person,
        text_input(
            QUESTION,
            say("form.ask_question"),
            LONGEST_ASKED,
            hint=say("form.ask_hint"),
            optional=False,
        ),
    ]
    words = (say("form.ask"), say("form.ask_submit"))
    return modal(approval, ActionId.ASK_BACK_MODAL, words, blocks)


def read_question(values: Values) -> tuple[str, str] | Errors:
    """Parse the question and its recipient: empty for the requesters.

    Raises:
        InvalidInputError: The form has no such recipient.
    """
    text, whom = read_text(values, QUESTION), _chosen(values, WHOM)
    errors: Errors = {}
    if whom not in {"", _REQUESTERS, AGENT, OTHER}:
        raise InvalidInputError("this form")
    to = AGENT if whom == AGENT else ""
    if whom == OTHER:
        to = str(read_state(values, PERSON).get("selected_user") or "")
        if not is_person(to):
            errors[PERSON] = say("error.choose_person")
    if is_blank(text):
        errors[QUESTION] = say("error.question")
    return errors or (text, to)


def admin_modal(approval: Approval, admins: Sequence[Person] = ()) -> Block:
    """Render the modal that asks an admin about an undecidable approval."""
    element: Block = {"type": "users_select", "action_id": str(ActionId.VALUE)}
    if options := [
        _option(admin.user_id, clip(admin.name, _ADMIN)) for admin in admins[:_MOST_ADMINS]
    ]:
        element = {**element, "type": "static_select", "options": options}
    person = {
        "type": "input",
        "block_id": PERSON,
        "label": plain(say("form.admin_who")),
        "element": element,
    }
    note = text_input(QUESTION, say("form.note"), LONGEST_ASKED, hint=say("form.admin_note_hint"))
    words = (say("form.admin"), say("form.ask_submit"))
    blocks = [named(approval, say("form.admin_help")), person, note]
    return modal(approval, ActionId.ASK_ADMIN_MODAL, words, blocks)


def read_admin(values: Values) -> str | Errors:
    """Parse the selected admin; return errors if invalid."""
    state = read_state(values, PERSON)
    option = state.get("selected_option")
    chosen = option.get("value") if isinstance(option, Mapping) else state.get("selected_user")
    to = str(chosen or "")
    return to if is_person(to) else {PERSON: say("error.choose_person")}


_ADMIN = 75
_MOST_ADMINS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnRights:
    """The rights that a person can delegate."""

    groups: Mapping[str, str]
    waiting: Sequence[Approval] = ()
    handed: Sequence[DelegationRecord] = ()


def hand_over_modal(approval: Approval, rights: OwnRights, here: Here) -> Block:
    """Render the delegation modal: delegate, end, scope."""
    to = {
        "type": "input",
        "block_id": TO,
        "label": plain(say("form.hand_to")),
        "hint": plain(say("form.hand_help")),
        "element": {"type": "users_select", "action_id": str(ActionId.VALUE)},
    }
    day = {
        "type": "input",
        "block_id": DAY,
        "label": plain(say("form.hand_until")),
        "hint": plain(say("form.hand_until_hint")),
        "element": {
            "type": "datepicker",
            "action_id": str(ActionId.VALUE),
            "initial_date": f"{here.day(1):%Y-%m-%d}",
        },
    }
    options = [_option(_THIS, say("form.hand_this")), _option(_ALL, say("form.hand_all"))]
    options += [
        _option(f"{_GROUP}{name}", say("form.hand_group", group=title))
        for name, title in [*rights.groups.items()][:_MOST_GROUPS]
    ]
    what = _radios(WHAT, say("form.hand_what"), options)
    blocks = [named(approval), to, what, day, *_open_ones(rights)]
    words = (say("form.hand_over"), say("form.hand_submit"))
    return modal(approval, ActionId.HAND_OVER_MODAL, words, blocks)


def _open_ones(rights: OwnRights) -> list[Block]:
    """Describe the delegated approvals, and the delegations that end."""
    values = [
        say("form.hand_now", who=mention(delegation.delegate_id), when=date(delegation.until_ms))
        for delegation in rights.handed
        if not delegation.group_name and not delegation.approval_id
    ]
    notes = [context(mrkdwn("\n".join(values[:_MOST_GROUPS])))] if values else []
    if not rights.waiting:
        return [context(mrkdwn(say("form.hand_open"))), *notes]
    shown = rights.waiting[:_MOST_OPEN]
    lines = [literal(f"• {clip(title_of(approval), _OPEN)}") for approval in shown]
    if len(rights.waiting) > len(shown):
        lines.append(literal(say("form.hand_more", n=len(rights.waiting) - len(shown))))
    lead = literal(say("form.hand_waits", n=len(rights.waiting)), "bold")
    return [rich(line(lead), *(line(element) for element in lines)), *notes]


_GROUP = "group."


@dataclass(frozen=True, slots=True, kw_only=True)
class Handing:
    """A requested delegation.

    Attributes:
        to: Slack user id of the delegate.
        until_ms: When it ends.
        group: The only group; empty for all.
        is_this: Whether it covers this approval only, while pending.
    """

    to: str
    until_ms: int
    group: str = ""
    is_this: bool = False


def read_handing(values: Values, here: Here, *, ends_ms: int) -> Handing | Errors:
    """Parse the delegation; return errors if invalid.

    Raises:
        InvalidInputError: The form has no such value.
    """
    errors: Errors = {}
    to = str(read_state(values, TO).get("selected_user") or "")
    if not is_person(to):
        errors[TO] = say("error.choose_person")
    what = _chosen(values, WHAT)
    if what == _THIS:
        return errors or Handing(to=to, until_ms=ends_ms, is_this=True)
    try:
        day = datetime.fromisoformat(str(read_state(values, DAY).get("selected_date")))
        until_ms = end_of_day(day.date(), here.zone)
    except (ValueError, OverflowError):
        errors[DAY], until_ms = say("error.date"), 0
    if what != _ALL and not what.startswith(_GROUP):
        raise InvalidInputError("this form")
    if not errors and until_ms <= here.now_ms:
        errors[DAY] = say("error.past")
    group = what.removeprefix(_GROUP) if what != _ALL else ""
    return errors or Handing(to=to, until_ms=until_ms, group=group)


def _chosen(values: Values, block_id: str) -> str:
    option = read_state(values, block_id).get("selected_option")
    return str(option.get("value")) if isinstance(option, Mapping) else ""


def _radios(block_id: str, label: str, options: Sequence[Block]) -> Block:
    return {
        "type": "input",
        "block_id": block_id,
        "label": plain(label),
        "element": {
            "type": "radio_buttons",
            "action_id": str(ActionId.VALUE),
            "options": [*options],
            "initial_option": options[0],
        },
    }


def _option(value: str, label: str) -> Block:
    return {"text": plain(clip(label, _OPTION)), "value": value}


def _clock(at: time) -> str:
    return f"{at:%I:%M %p}".lstrip("0")
