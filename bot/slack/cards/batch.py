"""The form that decides several cards of a turn: all of them ticked, any can be left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bot.core.decisions.batches import Chosen
from bot.layout.action_ids import ActionId, decode, encode
from bot.layout.arguments import read_pairs, short_text
from bot.layout.blocks import Block, line, literal, plain, rich
from bot.layout.facts import Naming, humanised
from bot.layout.inputs import Errors
from bot.layout.modals import MOST_REASON, Values, modal, read_state, read_text, text_input
from bot.layout.parts import title_hidden, title_of
from bot.layout.text import clip
from bot.people.progress import wants_reason
from bot.policy.refusals import is_blank
from bot.questions.form import ask_of
from bot.questions.reasons import REASON
from bot.words import say
from storage.records import Approval

PAGE = 10
"""Options of one group of checkboxes: Slack's limit."""
REST = "rest"
"""Block id of what becomes of the cards that are not ticked."""
_OPEN, _REJECT = "open", "reject"
_CARDS = "cards"
_ID, _SHOWN = 12, 8
"""Characters of an approval's id and of its digest in the id of a group: it names all of it."""
_OPTION = 70
_TITLE = 150
_ARGUMENTS = 240


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchChoice:
    """The wish of who submitted the form.

    Attributes:
        ticked: The cards to approve, as they were listed.
        listed: The beginnings of all listed cards' ids, each with that of its digest.
        rejects: Whether those that are not ticked are rejected; else they stay open.
    """

    ticked: tuple[Chosen, ...]
    listed: tuple[tuple[str, str], ...]
    rejects: bool

    def left(self, cards: Sequence[Approval]) -> list[Chosen]:
        """Return the cards that were listed and not ticked, as they were listed.

        Args:
            cards: Of the turn.
        """
        ticked = {one.approval_id for one in self.ticked}
        known = dict(self.listed)
        return [
            Chosen(approval_id=card.approval_id, shown=encode(card.approval_id, card.digest)[-32:])
            for card in cards
            if card.approval_id not in ticked and known.get(_start_of(card)) == card.digest[:_SHOWN]
        ]


def batch_modal(first: Approval, cards: Sequence[Approval]) -> Block:
    """List the cards with what they are about; all are ticked.

    Args:
        first: The card that the button was on.
        cards: All, in the order of the thread.
    """
    title = say("card.times", n=len(cards), what=humanised(first.tool) or title_of(first))
    head = line(literal(clip(title, _TITLE), "bold"))
    blocks = [rich(head, line(literal(say("form.choose_help"))))]
    for start in range(0, len(cards), PAGE):
        page = list(enumerate(cards[start : start + PAGE], start + 1))
        more = [*_listed(page)]
        blocks += [rich(*more)] if more else []
        blocks.append(_boxes(start, page))
    blocks.append(_rest())
    is_needed = wants_reason(first, rejects=False)
    label = say("form.critical_why" if is_needed else "form.note")
    hint = say("form.note_ph")
    blocks.append(text_input(REASON, label, MOST_REASON, hint=hint, optional=not is_needed))
    words = (say("form.choose_title"), say("form.choose_submit"))
    return modal(first, ActionId.BATCH_MODAL, words, blocks)


def read_batch(first: Approval, values: Values) -> BatchChoice | Errors:
    """Read what is ticked, and what becomes of the rest; or what is wrong with it.

    Raises:
        InvalidInputError: It is nothing that the form has.
    """
    found: dict[str, Chosen] = {}
    groups = [one for one in values if one.startswith(_CARDS)]
    for block_id in groups:
        ticked = read_state(values, block_id).get("selected_options")
        for option in ticked if isinstance(ticked, list) else []:
            about = decode(option.get("value") if isinstance(option, dict) else None)
            found[about.approval_id] = Chosen(approval_id=about.approval_id, shown=about.shown)
    option = read_state(values, REST).get("selected_option")
    rejects = isinstance(option, dict) and option.get("value") == _REJECT
    if not found and not rejects:
        return {(groups or [_CARDS])[0]: say("error.tick_one")}
    needs_reason = rejects and wants_reason(first, rejects=True)
    if needs_reason and is_blank(read_text(values, REASON)):
        return {REASON: say("error.required")}
    listed = tuple(pair for block_id in groups for pair in _named_in(block_id))
    return BatchChoice(ticked=tuple(found.values()), listed=listed, rejects=rejects)


def _listed(page: Sequence[tuple[int, Approval]]) -> Iterator[Block]:
    """All that the labels of the boxes leave out: a long title, and the arguments beside it."""
    for number, card in page:
        ask, title = ask_of(card), title_of(card)
        naming = Naming(title=title, named=ask.named, labels=ask.labels, masks=ask.masks)
        pairs = read_pairs(card.arguments_json)
        left = [(name, value) for name, value in pairs if not naming.covers(name, value)]
        text = short_text(left, _ARGUMENTS, ask.masks)
        if text or title_hidden(card) or len(title) > _OPTION - 5:
            yield line(literal(f"{number}. {clip(title, _TITLE)}", "bold"), literal(f"  {text}"))


def _boxes(start: int, page: Sequence[tuple[int, Approval]]) -> Block:
    options = [
        {
            "text": plain(clip(f"{number}. {title_of(card)}", _OPTION)),
            "value": encode(card.approval_id, card.digest),
        }
        for number, card in page
    ]
    names = ".".join(f"{_start_of(card)}{card.digest[:_SHOWN]}" for _, card in page)
    return {
        "type": "input",
        "block_id": f"{_CARDS}{start}.{names}",
        "label": plain(say("form.choose_group", first=start + 1, last=start + len(page))),
        "optional": True,
        "element": {
            "type": "checkboxes",
            "action_id": str(ActionId.VALUE),
            "options": options,
            "initial_options": options,
        },
    }


def _rest() -> Block:
    options = [
        {"text": plain(say("form.choose_open")), "value": _OPEN},
        {"text": plain(say("form.choose_reject")), "value": _REJECT},
    ]
    return {
        "type": "input",
        "block_id": REST,
        "label": plain(say("form.choose_rest")),
        "element": {
            "type": "radio_buttons",
            "action_id": str(ActionId.VALUE),
            "options": options,
            "initial_option": options[0],
        },
    }


def _start_of(card: Approval) -> str:
    return card.approval_id.removeprefix("apr_")[:_ID]


def _named_in(block_id: str) -> Iterator[tuple[str, str]]:
    """The cards that a group listed: the beginnings of their ids and digests."""
    _, _, names = block_id.partition(".")
    for one in names.split("."):
        if len(one) == _ID + _SHOWN:
            yield one[:_ID], one[_ID:]
