"""The buttons of a pending request: those of its question, and the menu that all cards have.

Each button that can say yes is made here, by `yes_buttons`, for what its surface shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bot.layout.action_ids import ActionId, encode_option
from bot.layout.blocks import Block, actions, menu
from bot.layout.card_layout import ButtonRow
from bot.layout.parts import Body
from bot.people.claims import read_claim
from bot.people.progress import progress_of
from bot.people.terms_of import risk_of
from bot.questions.form import Form
from bot.questions.shown import ShownQuestion
from bot.words import say
from storage.records import Kind

MOST_OPTIONS = 5
"""Slack's limit of a menu."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """A view of a pending request: all that one surface shows of it.

    Attributes:
        is_whole: Whether all that a yes would let run is on it, and in clear.
        is_listed: Whether a form about several requests lists it: see `bot.slack.cards.listed`.
        is_card: Whether it is the card: its *Approve…* acts for who has opened the rest, and opens
            the review for all others.
    """

    is_whole: bool
    is_listed: bool = False
    is_card: bool = False

    @classmethod
    def of_card(cls, about: Body) -> Sight:
        """The view that a card gives of a request.

        Args:
            about: All that it shows, with its guessed masks.
        """
        is_whole = not (about.hidden or about.guessed)
        is_listed = is_whole and not (about.altered or about.turned)
        return cls(is_whole=is_whole, is_listed=is_listed, is_card=True)


TITLE_ALONE = Sight(is_whole=False)
"""A surface with the title and no more for certain: a list, or a private answer."""


def yes_buttons(question: ShownQuestion, sight: Sight) -> list[Block]:
    """Make the buttons that say yes to a request; *Review* where its surface does not show all.

    Args:
        question: Of a pending record.
        sight: What that very surface shows of it.
    """
    if not sight.is_card and not sight.is_whole:
        return [question.button(say("button.review"), ActionId.DETAILS)]
    if sight.is_whole and risk_of(question.approval) != "critical":
        return [*question.yes()]
    return [_reviewed(one, question) for one in question.yes()]


def way_in(question: ShownQuestion) -> Block:
    """Make the one button of a request in a list: a question opens its form, all else its review.

    Args:
        question: Of a pending record.
    """
    if question.approval.kind is Kind.QUESTION:
        for one in question.yes():
            label = str(one.get("text", {}).get("text", ""))
            if one.get("type") == "button" and label.endswith("…"):
                return one
    (review,) = yes_buttons(question, TITLE_ALONE)
    return review


def choices(question: ShownQuestion, sight: Sight, *, is_too_long: bool) -> ButtonRow:
    """Draw what people can do on a card.

    Args:
        question: Of a pending record.
        sight: What the card shows of it.
        is_too_long: Whether nobody can agree to it, as not all of it can be shown.
    """
    approval, notes = question.approval, [*question.notes()]
    can_approve = not approval.stuck and not is_too_long
    yes: list[Block] = []
    if approval.stuck:
        ask = question.button(say("button.ask_admin"), ActionId.ASK_ADMIN, "primary")
        buttons = [ask, *question.no(), *_withdraws(question)]
    elif can_approve:
        yes = yes_buttons(question, sight)
        buttons = [*yes, *question.no(), *_edits(question, sight)]
    else:
        buttons = [*question.no()]
    if is_too_long and not approval.stuck:
        notes = [say("line.too_long")]
    options = [*_options(question)]
    value = (approval.approval_id, approval.digest)
    if options:
        named = [(label, encode_option(action, *value)) for label, action in options]
        buttons.append(menu(ActionId.MORE, named[:MOST_OPTIONS]))
    blocks = [actions(*buttons)] if buttons else []
    has_approve = any(one["action_id"] == ActionId.APPROVE for one in yes)
    can_review = can_approve and not sight.is_whole and has_approve
    return ButtonRow(blocks=blocks, notes=notes, can_review=can_review)


def _reviewed(button: Block, question: ShownQuestion) -> Block:
    """A yes to what the card does not show, or does not let pass in one click: it opens a form."""
    if button["action_id"] != ActionId.APPROVE:
        return button
    return question.button(say("button.approve_form"), ActionId.APPROVE, "primary")


def _edits(question: ShownQuestion, sight: Sight) -> Iterator[Block]:
    """*Edit…*, before the first vote: an edit voids votes. And the means behind it."""
    has_votes = bool(progress_of(question.approval).votes)
    for one in question.last():
        if has_votes and one["action_id"] == ActionId.EDIT:  # it is in the review
            continue
        is_listed = sight.is_listed and question.form == Form.CALL
        if one["action_id"] != ActionId.BATCH or is_listed:
            yield one


def _withdraws(question: ShownQuestion) -> Iterator[Block]:
    if question.can_withdraw():
        yield question.button(say("button.withdraw"), ActionId.WITHDRAW)


def _options(question: ShownQuestion) -> Iterator[tuple[str, ActionId]]:
    """The menu of all that decides nothing, and of what takes it back."""
    approval = question.approval
    yield say("button.details"), ActionId.DETAILS
    yield from question.more()
    if approval.kind is Kind.QUESTION:
        if question.can_withdraw():
            yield say("button.withdraw"), ActionId.WITHDRAW
        return
    yield say("button.ask"), ActionId.ASK_BACK
    if approval.stuck:  # the rest is for who decides; *Withdraw…* is a button here
        return
    if read_claim(approval.claim_json).by:
        yield say("button.unclaim"), ActionId.LET_GO
    else:
        yield say("button.claim"), ActionId.CLAIM
    if risk_of(approval) != "critical":
        yield say("button.snooze"), ActionId.SNOOZE
    if question.can_withdraw():
        yield say("button.withdraw"), ActionId.WITHDRAW
