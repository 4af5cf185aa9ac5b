"""The names of buttons and modals, and the values that they carry.

A value is an opaque approval id and the beginning of the digest that was shown. Everything else is
read from the record: nothing that comes back from Slack carries authority.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from bot.errors import InvalidInputError

SHOWN_LENGTH = 32
"""The number of hexadecimal digits of the digest that a button carries."""
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
    """Shows the presser in clear what only looks like a secret."""
    RAN = "countersign:ran"
    AGAIN = "countersign:again"
    GIVE_UP = "countersign:give_up"
    ACCEPT = "countersign:accept"
    """Nothing is to be changed: the answer to a request for feedback, without a form."""
    RESPOND = "countersign:respond"
    IGNORE = "countersign:ignore"
    CHOOSE = "countersign:choose"
    COMPARE = "countersign:compare"
    """Shows two versions of a text."""
    WITHDRAW = "countersign:withdraw"
    TAKE_BACK = "countersign:take_back"
    """Removes the presser's own vote."""
    GRANT = "countersign:grant"
    """Approves, and allows later calls, too: opens a form."""
    REVOKE = "countersign:revoke"
    """Ends a standing grant."""
    STOP_GRANT = "countersign:stop_grant"
    """Opens the form that ends a standing grant."""
    OVERRIDE = "countersign:override"
    """Breaks the glass: opens a form."""
    SEEN = "countersign:seen"
    """Marks the message about an emergency as seen by the presser."""
    BATCH = "countersign:batch"
    """Approves several cards at once: opens a form."""
    APPROVE_ALL = "countersign:approve_all"
    """Approves all that waits on a card of several, as it is listed there."""
    BATCH_REJECT = "countersign:batch_reject"
    BATCH_DETAILS = "countersign:batch_details"
    BATCH_SPLIT = "countersign:batch_split"
    """Gives each that waits on a card of several a card of its own."""
    BATCH_ASK = "countersign:batch_ask"
    BATCH_WITHDRAW = "countersign:batch_withdraw"
    CLAIM = "countersign:claim"
    LET_GO = "countersign:let_go"
    STOP_AGENT = "countersign:stop_agent"
    """Stops the agent of a thread; carries the thread's id."""
    SNOOZE = "countersign:snooze"
    ASK_BACK = "countersign:ask_back"
    ASK_ADMIN = "countersign:ask_admin"
    """Asks an admin of the workspace to see to what nobody can decide: opens a form."""
    HAND_OVER = "countersign:hand_over"
    """Lets somebody else use the presser's right: opens a form."""
    PAGE = "countersign:page"
    """Chooses a page of the form about a card; its options carry pages."""
    PAGE_BACK = "countersign:page_back"
    PAGE_NEXT = "countersign:page_next"
    MORE = "countersign:more"
    """The menu of all that has no button of its own; its options carry action ids."""
    PICK_1 = "countersign:pick_1"
    PICK_2 = "countersign:pick_2"
    PICK_3 = "countersign:pick_3"
    PICK_4 = "countersign:pick_4"
    EDIT_PAGE = "countersign:edit_page"
    """The menu of the pages of a long form."""
    VALUE = "countersign:value"
    """The one element of each input block in our modals."""
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
    SNOOZE_MODAL = "countersign:snooze_modal"
    ASK_BACK_MODAL = "countersign:ask_back_modal"
    ASK_ADMIN_MODAL = "countersign:ask_admin_modal"
    REVIEW_MODAL = "countersign:review_modal"
    HAND_OVER_MODAL = "countersign:hand_over_modal"
    NOTICE_MODAL = "countersign:notice_modal"


PICKS = (ActionId.PICK_1, ActionId.PICK_2, ActionId.PICK_3, ActionId.PICK_4)
"""Buttons of a card that choose the option of that number, from 1."""


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
"""Actions that stand in the menu of a card."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """The target of a button or a modal.

    Attributes:
        approval_id: `apr_` and 32 hexadecimal digits.
        shown: The beginning of the digest that the person was shown, 32 hexadecimal digits.
        page: Of the form about a card, the page; empty elsewhere.
        others: The other targets of a button that is about several.
    """

    approval_id: str
    shown: str
    page: str = ""
    others: tuple[Reference, ...] = ()


def encode(approval_id: str, digest: str) -> str:
    """Make the value of a button, or the private metadata of a modal.

    Raises:
        ValueError: The id or the digest has not the form that this program gives them.

    Source:
        https://docs.slack.dev/reference/block-kit/block-elements/button-element (value ≤ 2000)
    """
    if not _APPROVAL_ID.fullmatch(approval_id) or not _DIGEST.fullmatch(digest):
        raise ValueError("the approval id or the digest is malformed")
    return f"{approval_id}.{digest[:SHOWN_LENGTH]}"


def encode_all(targets: Iterable[tuple[str, str]]) -> str:
    """Make the value of a button that is about several: ids, each with the digest that is shown.

    Raises:
        ValueError: See `encode`; or they are too many.
    """
    values = [encode(approval_id, digest) for approval_id, digest in targets]
    if not 0 < len(values) <= MOST_TARGETS:
        raise ValueError("a button is about a few")
    return ",".join(values)


def decode_all(value: object) -> Reference:
    """Read the value of a button that is about several: the first, with the others in it.

    Raises:
        InvalidInputError: It is anything but what `encode_all` makes.
    """
    found = value.split(",", MOST_TARGETS) if isinstance(value, str) else [""]
    if len(found) > MOST_TARGETS:
        raise InvalidInputError("this button or form")
    first, *others = map(decode, found)
    return replace(first, others=tuple(others))


def encode_option(action: ActionId, approval_id: str, digest: str) -> str:
    """Make the value of an option of the menu.

    Raises:
        ValueError: See `encode`.

    Source:
        https://docs.slack.dev/reference/block-kit/composition-objects/option-object (value ≤ 150)
    """
    return f"{action}={encode(approval_id, digest)}"


def decode_option(value: object) -> tuple[ActionId, Reference]:
    """Read the value of an option of the menu.

    Raises:
        InvalidInputError: It is anything but what `encode_option` makes.
    """
    name, _, rest = value.partition("=") if isinstance(value, str) else ("", "", "")
    for action in IN_MENU:
        if name == action:
            return action, decode(rest)
    raise InvalidInputError("this menu")


def encode_page(page: str, approval_id: str, digest: str) -> str:
    """Make the value of what turns to a page of the form about a card.

    Raises:
        ValueError: It is no page; see also `encode`.
    """
    if not _PAGE.fullmatch(page):
        raise ValueError("this is no page")
    return f"{page}={encode(approval_id, digest)}"


def decode_page(value: object) -> Reference:
    """Read the value of what turns to a page.

    Raises:
        InvalidInputError: It is anything but what `encode_page` makes.
    """
    page, _, rest = value.partition("=") if isinstance(value, str) else ("", "", "")
    if not _PAGE.fullmatch(page):
        raise InvalidInputError("this page")
    return replace(decode(rest), page=page)


def decode(value: object) -> Reference:
    """Read the value of a button, or the private metadata of a modal.

    Raises:
        InvalidInputError: It is anything but what `encode` makes.
    """
    found = _VALUE.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise InvalidInputError("this button or form")
    return Reference(approval_id=found[1], shown=found[2])


def with_rest(about: str, rest: str) -> str:
    """The text that a modal keeps: its subject, and whatever else it has to remember."""
    return f"{about}{_REST}{rest}" if rest else about


def rest_of(kept: object) -> tuple[object, str]:
    """Take apart what a modal kept; see `with_rest`."""
    if not isinstance(kept, str):
        return kept, ""
    about, _, rest = kept.partition(_REST)
    return about, rest


_REST = "|"
"""Parts what a modal is about from the rest; neither has it."""
