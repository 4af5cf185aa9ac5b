"""The buttons of a pending card: those of its question, and those that all cards have."""

from __future__ import annotations

from bot.core.decisions.unseen import guesses
from bot.layout.action_ids import ActionId
from bot.layout.blocks import Block, actions, context, mrkdwn, section
from bot.layout.parts import stuck_words
from bot.people.progress import progress_of
from bot.questions.drawing import DrawnQuestion
from bot.slack.cards.details import fits_details


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
    if approval.stuck:
        blocks = [] if lead else [section(stuck_words(approval))]
        buttons = [*question.no(), *withdraw]
    elif question.needs_all() and not fits_details(approval):
        words = "This is too long to be shown in full, so it cannot be approved here."
        blocks = [context(mrkdwn(words))]
        buttons = [*question.no(), *withdraw]
        hidden = True
    else:
        blocks = [context(mrkdwn(note)) for note in question.notes()]
        buttons = [*question.yes(), *question.no(), *question.last(), *withdraw]
    if progress_of(approval).votes:
        buttons.append(question.button("Take back", ActionId.TAKE_BACK))
    if hidden:
        buttons.append(question.button("Details", ActionId.DETAILS))
    if guesses(approval):
        buttons.append(question.button("Reveal…", ActionId.REVEAL))
    return [*blocks, actions(*buttons)] if buttons else blocks
