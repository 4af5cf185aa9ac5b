"""The form that approves several cards of a turn: all of them listed, any can be left out."""

from __future__ import annotations

from collections.abc import Sequence

from bot.core.decisions.batches import Chosen
from bot.layout.action_ids import ActionId, decode, encode
from bot.layout.arguments import read_pairs, short_text
from bot.layout.blocks import Block, line, literal, plain, rich, section
from bot.layout.modals import MOST_REASON, Values, modal, read_state, text_input
from bot.layout.parts import title_of
from bot.layout.text import clip
from bot.people.progress import wants_reason
from bot.questions.form import ask_of
from bot.questions.reasons import REASON
from storage.records import Approval

PAGE = 10
"""Options of one group of checkboxes: Slack's limit."""
_OPTION = 70
_TITLE = 150
_ARGUMENTS = 600


def batch_modal(first: Approval, cards: Sequence[Approval]) -> Block:
    """List the cards with what they are about; all are ticked.

    Args:
        first: The card that the button was on.
        cards: All, in the order of the thread.
    """
    words = (
        "You approve each of these by itself, as it is listed here. Untick what you leave open. "
        "What has changed meanwhile is left out, and named."
    )
    blocks = [section(words)]
    for start in range(0, len(cards), PAGE):
        page = list(enumerate(cards[start : start + PAGE], start + 1))
        blocks += [_listed(number, card) for number, card in page]
        blocks.append(_boxes(start, page))
    if wants_reason(first, rejects=False):
        blocks.append(text_input(REASON, "Why is this fine?", MOST_REASON, optional=False))
    return modal(first, ActionId.BATCH_MODAL, ("Approve several", "Approve these"), blocks)


def read_chosen(values: Values) -> list[Chosen]:
    """Read what is ticked.

    Raises:
        InvalidInputError: It is nothing that the form has.
    """
    found: dict[str, Chosen] = {}
    for block_id in values:
        ticked = read_state(values, block_id).get("selected_options")
        for option in ticked if isinstance(ticked, list) else []:
            about = decode(option.get("value") if isinstance(option, dict) else None)
            found[about.approval_id] = Chosen(approval_id=about.approval_id, shown=about.shown)
    return [*found.values()]


def _listed(number: int, card: Approval) -> Block:
    pairs = read_pairs(card.arguments_json)
    text = short_text(pairs, _ARGUMENTS, ask_of(card).masks)
    title = clip(title_of(card), _TITLE)
    return rich(line(literal(f"{number}. {title}", "bold")), line(literal(text or "No arguments")))


def _boxes(start: int, page: Sequence[tuple[int, Approval]]) -> Block:
    options = [
        {
            "text": plain(clip(f"{number}. {title_of(card)}", _OPTION)),
            "value": encode(card.approval_id, card.digest),
        }
        for number, card in page
    ]
    return {
        "type": "input",
        "block_id": f"cards{start}",
        "label": plain("Approve"),
        "optional": True,
        "element": {
            "type": "checkboxes",
            "action_id": str(ActionId.VALUE),
            "options": options,
            "initial_options": options,
        },
    }
