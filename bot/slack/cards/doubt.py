"""The card of a doubt: the program stopped while a call ran, so that nobody knows its end."""

from __future__ import annotations

from enum import StrEnum

from bot.core.unseen import guesses
from bot.layout.action_ids import ActionId, encode
from bot.layout.arguments import read_object
from bot.layout.blocks import Block, Card, actions, button, header, rich, section
from bot.layout.parts import (
    REASON,
    asked_by,
    deciders,
    final_print,
    notes,
    outcome,
    said,
    small_print,
    spoken,
    spoken_outcome,
    spoken_title,
    stuck_words,
    title_of,
)
from bot.mrkdwn import utc
from bot.slack.cards.anew import anew, wrote_since
from bot.slack.cards.approval import describe
from bot.slack.cards.ran import ran
from storage.records import Approval, Status


class DoubtChoice(StrEnum):
    """What a person says of a call in doubt: `choice` in the answer. Stored: version 1."""

    RAN = "ran"
    AGAIN = "again"
    GIVE_UP = "give_up"


_WORDS = {
    DoubtChoice.RAN: "It ran",
    DoubtChoice.AGAIN: "To be run again",
    DoubtChoice.GIVE_UP: "Given up",
}
_STATUS_WORDS = {
    Status.EXPIRED: "Expired",
    Status.CANCELLED: "Cancelled",
    Status.UNDECIDABLE: "Nobody can decide this",
}
_ASK = (
    "*It is not known whether this ran.* The program stopped while it was running. "
    "Please look, and say what is true."
)


def doubt_card(approval: Approval, *, approvers_text: str) -> Card:
    """Draw the card of a doubt as the record stands.

    Args:
        approval: The record, of kind doubt.
        approvers_text: Who may decide, in our own words.

    Returns:
        The card: with buttons while it is pending, without any afterwards.
    """
    about = describe(approval)
    title = header(title_of(approval))
    if approval.status is Status.PENDING:
        small = small_print(approval, deciders(approval, approvers_text))
        stuck = [section(stuck_words(approval))] if approval.stuck else []
        blocks = [title, section(_ASK), *stuck, *anew(approval), *about.blocks]
        blocks += [*wrote_since(approval), small]
        blocks += notes(about, can_open=True)
        choices = _choices(approval, hidden=bool(about.hidden))
        return Card(text=_pending_text(approval), blocks=[*blocks, choices])
    words = doubt_words(approval)
    result = said("Result, as given", doubt_answer(approval)[1], REASON)
    blocks = [title, *outcome(approval, approval.decision, words)]
    blocks += [rich(*result.elements)] if result.elements else []
    run = ran(approval)
    blocks += [*about.blocks, *run.blocks, final_print(approval)]
    blocks += notes(run.and_notes(about), can_open=False)
    text = spoken(f"{spoken_title(approval)}:", spoken_outcome(approval, words), run.spoken)
    return Card(text=text, blocks=blocks)


def doubt_answer(approval: Approval) -> tuple[DoubtChoice | None, str]:
    """Read what a person said of a doubt: the choice, None when there is none, and the result."""
    answer_json = approval.decision.answer_json if approval.decision else ""
    found = read_object(answer_json) or {}
    result = found.get("result")
    try:
        choice = DoubtChoice(str(found.get("choice", "")))
    except ValueError:
        return None, ""
    return choice, result if isinstance(result, str) else ""


def doubt_words(approval: Approval) -> str:
    """Name the outcome of a doubt for people."""
    choice, _ = doubt_answer(approval)
    if choice is not None:
        return _WORDS[choice]
    return _STATUS_WORDS.get(approval.status, "Decided")


def _choices(approval: Approval, *, hidden: bool) -> Block:
    value = encode(approval.approval_id, approval.digest)
    title = title_of(approval)
    buttons = [button("Give up", ActionId.GIVE_UP, value, of=title)]
    if not approval.stuck:
        buttons[:0] = [
            button("It ran…", ActionId.RAN, value, of=title),
            button("Run again", ActionId.AGAIN, value, of=title, style="danger"),
        ]
    if hidden:
        buttons.append(button("Details", ActionId.DETAILS, value, of=title))
    if guesses(approval):
        buttons.append(button("Reveal…", ActionId.REVEAL, value, of=title))
    return actions(*buttons)


def _pending_text(approval: Approval) -> str:
    return spoken(
        f"It is not known whether this ran: {spoken_title(approval)}.",
        f"Asked for by {asked_by(approval)}.",
        f"Expires {utc(approval.expires_ms)}.",
        "Please say whether it ran, is to be run again, or is given up.",
    )
