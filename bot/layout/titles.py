"""The title of a record, as people read it: masked, and never empty."""

from __future__ import annotations

from bot.layout.blocks import HEADER
from bot.layout.text import clip_mrkdwn, show
from bot.redaction.call import mask_call, written
from bot.words import say
from storage.records import Approval


def title_of(approval: Approval) -> str:
    """The title, with secrets masked; never empty."""
    return (
        written(mask_call(approval.title.strip())) or approval.tool.strip() or say("line.untitled")
    )


def title_hidden(approval: Approval) -> int:
    """Count the characters of the title that the header does not show."""
    return show(title_of(approval), HEADER, one_line=True).hidden


def spoken_title(approval: Approval) -> str:
    """The title inside a sentence."""
    return clip_mrkdwn(title_of(approval), 300)
