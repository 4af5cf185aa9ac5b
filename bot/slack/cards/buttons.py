"""The buttons of a pending card: those of its question, and those that all cards have."""

from __future__ import annotations

from collections.abc import Iterator

from bot.core.decisions.unseen import guesses
from bot.layout.action_ids import ActionId, encode_option
from bot.layout.blocks import Block, actions, context, menu, mrkdwn, section
from bot.layout.parts import stuck_words
from bot.people.meanwhile import read_claim
from bot.people.progress import progress_of
from bot.questions.drawing import DrawnQuestion
from bot.slack.cards.details import fits_details
from storage.records import Kind


def choices(question: DrawnQuestion, *, hidden: bool) -> list[Block]:
    """Draw what people can do.

    Args:
        question: Of a pending record.
        hidden: Whether something of it is not on the card.

    Returns:
        Notes about what cannot be done here, and the buttons.
    """
    approval, lead = question.approval, question.lead()
    withdraw = [question.button("Withdraw…", ActionId.WITHDRAW)] if question.can_withdraw() else []
    can_approve = False
    if approval.stuck:
        blocks = [] if lead else [section(stuck_words(approval))]
        buttons = [*question.no(), *question.emergency(), *withdraw]
    elif question.needs_all() and not fits_details(approval):
        words = "This is too long to be shown in full, so it cannot be approved here."
        blocks = [context(mrkdwn(words))]
        buttons = [*question.no(), *withdraw]
        hidden = True
    else:
        blocks = [context(mrkdwn(note)) for note in question.notes()]
        buttons = [*question.yes(), *question.no(), *question.last()]
        buttons += [*question.emergency(), *withdraw]
        can_approve = True
    if progress_of(approval).votes:
        buttons.append(question.button("Take back", ActionId.TAKE_BACK))
    if hidden:
        buttons.append(question.button("Details", ActionId.DETAILS))
    if guesses(approval):
        buttons.append(question.button("Reveal…", ActionId.REVEAL))
    if approval.kind is not Kind.QUESTION:
        buttons.append(_more(question, can_approve=can_approve))
    return [*blocks, actions(*buttons)] if buttons else blocks


def _more(question: DrawnQuestion, *, can_approve: bool) -> Block:
    """The menu of all that decides nothing, and of a yes with a note."""
    approval = question.approval

    def options() -> Iterator[tuple[str, ActionId]]:
        if can_approve and question.takes_note():
            yield f"{question.yes_words()} with a note…", ActionId.NOTE
        yield "Ask a question…", ActionId.ASK_BACK
        if read_claim(approval.claim_json).by:
            yield "Let go", ActionId.LET_GO
        yield "I'm on it", ActionId.CLAIM
        yield "Snooze…", ActionId.SNOOZE

    return menu(
        ActionId.MORE,
        [
            (label, encode_option(action, approval.approval_id, approval.digest))
            for label, action in options()
        ],
    )
