"""The part of a pending card that says who has voted, and who is still missing."""

from __future__ import annotations

from bot.layout.blocks import Block, context, literal, mrkdwn, plain, quote, rich
from bot.layout.text import clip, show
from bot.people.progress import progress_of
from bot.policy.ballot import CastVote
from bot.redaction.mask import mask_text
from bot.words.mrkdwn import date, mention
from storage.records import Approval

_MOST = 10
"""Votes that are listed; the newest."""
_NAME = 100
_NOTE = 300
_WORDS = {
    "approve": "approved",
    "reject": "rejected",
    "again": "would run it again",
    "ran": "says that it ran",
    "give_up": "would give it up",
}


def progress(approval: Approval) -> list[Block]:
    """Say how far it is: each requirement, and each vote; nothing where the first vote decides."""
    found = progress_of(approval)
    if found.is_plain:
        return []
    stage = f"{clip(found.stage, _NAME)}: " if found.stage else ""
    counts = " · ".join(f"{clip(one.name, _NAME)}: {one}" for one in found.tallies)
    blocks = [context(plain(f"⏳ {stage}{counts}"))] if counts else []
    for vote in found.votes[-_MOST:]:
        blocks.append(context(mrkdwn(_said(vote))))
        if vote.note.strip():
            note = show(mask_text(vote.note), _NOTE, lines=5)
            blocks.append(rich(quote(literal(note.text or "…"))))
    if found.rejections > 1:
        blocks.append(context(mrkdwn(f"{found.rejections} people have to reject it to stop it.")))
    return blocks


def spoken_progress(approval: Approval) -> str:
    """The same as a sentence, for notifications and screen readers; empty where it is plain."""
    found = progress_of(approval)
    if found.is_plain or not found.tallies:
        return ""
    return (
        "Approvals so far: " + ", ".join(f"{one.have} of {one.need}" for one in found.tallies) + "."
    )


def _said(vote: CastVote) -> str:
    words = _WORDS.get(vote.choice, "answered")
    behalf = f" for {mention(vote.on_behalf_of)}" if vote.on_behalf_of else ""
    return f"{mention(vote.by)} {words}{behalf}, {date(vote.at_ms)}"
