"""The private answer to one who wrote a verdict as a reply: what waits, with its buttons."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from bot.layout.blocks import Block, Card, context, mrkdwn, plain, section
from bot.layout.text import clip
from bot.layout.titles import title_of
from bot.words import say
from storage.records import Approval, Status

MOST_CHOICES = 3
"""Requests with their buttons; the others are decided on their cards."""
_TITLE = 300

DrawCard = Callable[[Approval], Card]
"""Draws the card of a record as it stands."""


def choice_card(text: str, approvals: Sequence[Approval], draw: DrawCard) -> Card:
    """Draw an answer with the buttons of cards; what is decided by now has none.

    Args:
        text: Escaped mrkdwn, our own words.
        approvals: Records that wait, as far as that is known.
        draw: Draws their cards, whose buttons these are.
    """
    waiting = [one for one in approvals if one.status is Status.PENDING]
    blocks = [
        section(text),
        *(block for one in waiting[:MOST_CHOICES] for block in _choice(one, draw)),
    ]
    if (left := len(waiting) - MOST_CHOICES) > 0:
        blocks.append(context(mrkdwn(say("message.more_to_decide", n=left))))
    return Card(text=text, blocks=blocks)


def _choice(approval: Approval, draw: DrawCard) -> Iterator[Block]:
    """The title and the buttons, which are those of the card: so they are checked like those."""
    yield {"type": "section", "text": plain(clip(title_of(approval), _TITLE))}
    yield from (block for block in draw(approval).blocks if block["type"] == "actions")
