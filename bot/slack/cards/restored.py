"""The notice on a card after the database went back to a copy: it may have been decided before."""

from __future__ import annotations

from bot.layout.blocks import Card, section
from bot.layout.parts import spoken
from bot.words.mrkdwn import date, utc
from storage.records import Approval, Kind, Status

_MAY = {
    Kind.APPROVAL: "this may have been decided, and may have run.",
    Kind.QUESTION: "this may have been answered.",
    Kind.DOUBT: "somebody may have said what is true, and it may have run again.",
}
_PLEASE = {
    Kind.APPROVAL: "Please check before you approve it. If it has run, reject it, and say so.",
    Kind.QUESTION: "Please answer it again.",
    Kind.DOUBT: "Please look again before you choose.",
}


def restored(card: Card, approval: Approval) -> Card:
    """Say right below the title why people are asked again; once it is decided, why they were.

    Args:
        card: As drawn without it.
        approval: The record.
    """
    if not approval.restored_to_ms:
        return card
    title, *rest = card.blocks
    told = section(f":warning: *Asked again.* {_why(approval, date(approval.restored_to_ms))}")
    words = _why(approval, utc(approval.restored_to_ms))
    return Card(text=spoken(words, card.text), blocks=[title, told, *rest])


def _why(approval: Approval, moment: str) -> str:
    back = f"My database went back to a copy that ends at {moment}."
    why = f"{back} What came after that I do not know: {_MAY[approval.kind]}"
    return f"{why} {_PLEASE[approval.kind]}" if approval.status is Status.PENDING else why
