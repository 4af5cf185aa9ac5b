"""The title of a record for people: masked, and never empty."""

from __future__ import annotations

from bot.approvals.model import Approval
from bot.layout.blocks import HEADER
from bot.layout.text import clip_mrkdwn, show
from bot.redaction.call import mask_call, written
from bot.words import say


def title_of(approval: Approval) -> str:
    """Return the title with secrets masked; never empty."""
    return (
        written(mask_call(approval.title.strip())) or approval.tool.strip() or say("line.untitled")
    )


def title_hidden(approval: Approval) -> int:
    """Return the number of characters of the title that the header does not show."""
    return show(title_of(approval), HEADER, one_line=True).hidden


def spoken_title(approval: Approval) -> str:
    """Return the title for use inside a sentence."""
    return clip_mrkdwn(title_of(approval), 300)
