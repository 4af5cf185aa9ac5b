"""Action ids of buttons and modals, and the values that they carry.

A value is an opaque approval id and a prefix of the digest that the person saw. Everything else is
read from the record: data from Slack carries no authority.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from bot.errors import InvalidInputError

SHOWN_LENGTH = 32
"""Number of hexadecimal digits of the digest in a button's value."""
MOST_TARGETS = 8
"""Maximum number of approvals that one button decides."""

_APPROVAL_ID = re.compile(r"apr_[0-9a-f]{32}")
_VALUE = re.compile(rf"(apr_[0-9a-f]{{32}})\.([0-9a-f]{{{SHOWN_LENGTH}}})")
_PAGE = re.compile(r"request|text\.[1-9][0-9]{0,3}|history|technical")
_DIGEST = re.compile(rf"[0-9a-f]{{{SHOWN_LENGTH},128}}")


class ActionId(StrEnum):
    """Action ids of buttons, and callback ids of modals."""

    APPROVE = "countersign:approve"
    REJECT = "countersign:reject"
    EDIT = "countersign:edit"
    ANSWER = "countersign:answer"
    DETAILS = "countersign:details"
    REVEAL = "countersign:reveal"
    """Shows the person values that were masked because they look like a secret."""
    RAN = "countersign:ran"
    AGAIN = "countersign:again"
    GIVE_UP = "countersign:give_up"
    ACCEPT = "countersign:accept"
    """Answers a request for feedback without changes and without a form."""
    RESPOND = "countersign:respond"
    IGNORE = "countersign:ignore"
    CHOOSE = "countersign:choose"
    COMPARE = "countersign:compare"
    """Shows two versions of a text."""
    WITHDRAW = "countersign:withdraw"
    TAKE_BACK = "countersign:take_back"
    """Withdraws the person's own vote."""
    GRANT = "countersign:grant"
    """Opens the form that approves and allows later calls, too."""
    REVOKE = "countersign:revoke"
    """Revokes a standing grant."""
    STOP_GRANT = "countersign:stop_grant"
    """Opens the form that revokes a standing grant."""
    OVERRIDE = "countersign:override"
    """Opens the form for break-glass."""
    SEEN = "countersign:seen"
    """Marks the message about a break-glass decision as seen."""
    BATCH = "countersign:batch"
    """Opens the form that approves several cards at once."""
    APPROVE_ALL = "countersign:approve_all"
    """Approves all pending approvals of a batch card."""
    BATCH_REJECT = "countersign:batch_reject"
    BATCH_DETAILS = "countersign:batch_details"
    BATCH_SPLIT = "countersign:batch_split"
    """Posts a card of its own for each pending approval of a batch card."""
    BATCH_ASK = "countersign:batch_ask"
    BATCH_WITHDRAW = "countersign:batch_withdraw"
    CLAIM = "countersign:claim"
    LET_GO = "countersign:let_go"
    STOP_AGENT = "countersign:stop_agent"
    """Stops the agent of a thread; carries the thread's id."""
    LIFT = "countersign:lift"
    """Opens the form that lifts a freeze; carries the id of the freeze."""
    LET_RUN = "countersign:let_run"
    """Lets a held trigger run again; carries the id of the hold."""
    SNOOZE = "countersign:snooze"
    ASK_BACK = "countersign:ask_back"
    ASK_ADMIN = "countersign:ask_admin"
    """Opens the form that asks an admin about a request without approvers."""
    HAND_OVER = "countersign:hand_over"
    """Opens the form that delegates the person's right."""
    PAGE = "countersign:page"
    """Selects a page of the form about a card; its options carry pages."""
    PAGE_BACK = "countersign:page_back"
    PAGE_NEXT = "countersign:page_next"
    MORE = "countersign:more"
    """The menu of further actions; its options carry action ids."""
    PICK_1 = "countersign:pick_1"
    PICK_2 = "countersign:pick_2"
    PICK_3 = "countersign:pick_3"
    PICK_4 = "countersign:pick_4"
    EDIT_PAGE = "countersign:edit_page"
    """The page menu of a long form."""
    VALUE = "countersign:value"
    """The single element of each input block in our modals."""
    REJECT_MODAL = "countersign:reject_modal"
    EDIT_MODAL = "countersign:edit_modal"
    ANSWER_MODAL = "countersign:answer_modal"
    DETAILS_MODAL = "countersign:details_modal"
    RAN_MODAL = "countersign:ran_modal"
    RESPOND_MODAL = "countersign:respond_modal"
    CHOOSE_MODAL = "countersign:choose_modal"
    WITHDRAW_MODAL = "countersign:withdraw_modal"
    GRANT_MODAL = "countersign:grant_modal"
    STOP_GRANT_MODAL = "countersign:stop_grant_modal"
    OVERRIDE_MODAL = "countersign:override_modal"
    BATCH_MODAL = "countersign:batch_modal"
    BATCH_REJECT_MODAL = "countersign:batch_reject_modal"
    BATCH_ASK_MODAL = "countersign:batch_ask_modal"
    BATCH_WITHDRAW_MODAL = "countersign:batch_withdraw_modal"
    LIFT_MODAL = "countersign:lift_modal"
    SNOOZE_MODAL = "countersign:snooze_modal"
    ASK_BACK_MODAL = "countersign:ask_back_modal"
    ASK_ADMIN_MODAL = "countersign:ask_admin_modal"
    REVIEW_MODAL = "countersign:review_modal"
    HAND_OVER_MODAL = "countersign:hand_over_modal"
    NOTICE_MODAL = "countersign:notice_modal"


PICKS = (ActionId.PICK_1, ActionId.PICK_2, ActionId.PICK_3, ActionId.PICK_4)
"""Buttons of a card that select the option of that number, from 1."""


IN_MENU = (
    ActionId.DETAILS,
    ActionId.WITHDRAW,
    ActionId.ASK_BACK,
    ActionId.CLAIM,
    ActionId.LET_GO,
    ActionId.SNOOZE,
    ActionId.REJECT,
    ActionId.COMPARE,
    ActionId.STOP_GRANT,
    ActionId.BATCH_REJECT,
    ActionId.BATCH_DETAILS,
    ActionId.BATCH_SPLIT,
    ActionId.BATCH_ASK,
    ActionId.BATCH_WITHDRAW,
)
"""Actions in the menu of a card."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """The target of a button or a modal.

    Attributes:
        approval_id: `apr_` and 32 hexadecimal digits.
        shown: Prefix of the digest that the person saw, 32 hexadecimal digits.
        page: Page of the form about a card; empty elsewhere.
        others: Further targets of a button for several approvals.
    """

    approval_id: str
    shown: str
    page: str = ""
    others: tuple[Reference, ...] = ()


def encode(approval_id: str, digest: str) -> str:
    """Return the value of a button, or the private metadata of a modal.

    Raises:
        ValueError: The id or the digest is malformed.

    Source:
        https://docs.slack.dev/reference/block-kit/block-elements/button-element (value ≤ 2000)
    """
    if not _APPROVAL_ID.fullmatch(approval_id) or not _DIGEST.fullmatch(digest):
        raise ValueError("the approval id or the digest is malformed")
    return f"{approval_id}.{digest[:SHOWN_LENGTH]}"


def encode_all(targets: Iterable[tuple[str, str]]) -> str:
    """Return the value of a button for several approvals.

    Raises:
        ValueError: See `encode`; or there are too many targets.
    """
    values = [encode(approval_id, digest) for approval_id, digest in targets]
    if not 0 < len(values) <= MOST_TARGETS:
        raise ValueError("a button is about a few")
    return ",".join(values)


def decode_all(value: object) -> Reference:
    """Parse the value of a button for several approvals, as the first with the others.

    Raises:
        InvalidInputError: The value is not from `encode_all`.
    """
    parts = value.split(",", MOST_TARGETS) if isinstance(value, str) else [""]
    if len(parts) > MOST_TARGETS:
        raise InvalidInputError("this button or form")
    first, *others = map(decode, parts)
    return replace(first, others=tuple(others))


def encode_option(action: ActionId, approval_id: str, digest: str) -> str:
    """Return the value of a menu option.

    Raises:
        ValueError: See `encode`.

    Source:
        https://docs.slack.dev/reference/block-kit/composition-objects/option-object (value ≤ 150)
    """
    return f"{action}={encode(approval_id, digest)}"


def decode_option(value: object) -> tuple[ActionId, Reference]:
    """Parse the value of a menu option.

    Raises:
        InvalidInputError: The value is not from `encode_option`.
    """
    name, _, rest = value.partition("=") if isinstance(value, str) else ("", "", "")
    for action in IN_MENU:
        if name == action:
            return action, decode(rest)
    raise InvalidInputError("this menu")


def encode_page(page: str, approval_id: str, digest: str) -> str:
    """Return the value of a page button or option in the form about a card.

    Raises:
        ValueError: The page is unknown; see also `encode`.
    """
    if not _PAGE.fullmatch(page):
        raise ValueError("this is no page")
    return f"{page}={encode(approval_id, digest)}"


def decode_page(value: object) -> Reference:
    """Parse the value of a page button or option.

    Raises:
        InvalidInputError: The value is not from `encode_page`.
    """
    page, _, rest = value.partition("=") if isinstance(value, str) else ("", "", "")
    if not _PAGE.fullmatch(page):
        raise InvalidInputError("this page")
    return replace(decode(rest), page=page)


def decode(value: object) -> Reference:
    """Parse the value of a button, or the private metadata of a modal.

    Raises:
        InvalidInputError: The value is not from `encode`.
    """
    match = _VALUE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise InvalidInputError("this button or form")
    return Reference(approval_id=match[1], shown=match[2])


def with_rest(about: str, rest: str) -> str:
    """Return a modal's private metadata: its subject and further data."""
    return f"{about}{_REST}{rest}" if rest else about


def rest_of(kept: object) -> tuple[object, str]:
    """Split a modal's private metadata; see `with_rest`."""
    if not isinstance(kept, str):
        return kept, ""
    about, _, rest = kept.partition(_REST)
    return about, rest


_REST = "|"
"""Separates a modal's subject from further data; neither contains it."""
