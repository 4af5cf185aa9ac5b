"""Batch modals: list cards of a turn with checkboxes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from bot.approvals.batches import MOST_CARDS, Chosen
from bot.approvals.execution import execution_of
from bot.layout.action_ids import ActionId, decode, encode
from bot.layout.blocks import Block, Errors, brief, context, line, literal, plain, quote, rich
from bot.layout.card_layout import small_lines
from bot.layout.modals import MOST_REASON, Values, modal, read_state, read_text, text_input
from bot.layout.parts import deciders_names
from bot.layout.sentences import title_of
from bot.layout.text import clip, show
from bot.policy.demands import wants_reason
from bot.policy.refusals import is_blank
from bot.questions.reasons import REASON, rejection_inputs
from bot.questions.shown import what_runs
from bot.questions.yes import Proof, yes
from bot.records.approval import Approval
from bot.redaction.mask import mask_text
from bot.redaction.masks import masked_once
from bot.slack.cards.batch_items import (
    SharedParts,
    batch_title,
    common_line,
    common_to,
    item_line,
    item_parts,
    item_text,
)
from bot.slack.cards.change_note import frozen
from bot.slack.cards.listed import body_of, is_listed, takes_line
from bot.slack.cards.secondary_actions import question_modal
from bot.words import say

PAGE = 10
"""Options per checkbox group: Slack's limit."""
REST = "rest"
"""Block id of the choice for cards that are not selected."""
_OPEN, _REJECT = "open", "reject"
WHICH = "which"
"""Block id of the card that a question is about."""
_CARDS = "cards"
_ID, _SHOWN = 12, 8
"""Characters of an approval's id and digest in a group's block id."""
_OPTION = 70
_TITLE = 150
_ARGUMENTS = 240
_MOST_BLOCKS = 100
_ROOM = 100 - 16
"""Entries and blocks of a modal, besides its inputs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchChoice:
    """A submitted batch modal.

    Attributes:
        ticked: The cards to approve, as listed.
        listed: Prefixes of ids of all listed cards, each with the prefix of its digest.
        rejects: Whether the other cards are rejected; otherwise they stay open.
    """

    ticked: tuple[Chosen, ...]
    listed: tuple[tuple[str, str], ...]
    rejects: bool

    def left(self, cards: Sequence[Approval]) -> list[Chosen]:
        """Return the listed cards that were not selected, as listed."""
        ticked = {card.approval_id for card in self.ticked}
        known = dict(self.listed)
        return [
            Chosen(approval_id=card.approval_id, shown=encode(card.approval_id, card.digest)[-32:])
            for card in cards
            if card.approval_id not in ticked and known.get(_start_of(card)) == card.digest[:_SHOWN]
        ]


@masked_once()
def batch_modal(
    first: Approval,
    cards: Sequence[Approval],
    title: str = "",
    *,
    ticked: Sequence[Approval] = (),
    chosen: str = "",
) -> Block:
    """Render the cards that it can show in full; it counts the others, and the selected ones.

    No card is selected beforehand: nothing is approved that the reader did not select.

    Args:
        first: The card with the button.
        cards: All cards in the order of the thread.
        title: Title of the batch; empty for the number of calls.
        ticked: The selected cards.
        chosen: Title of the selected cards, with their sum if the tool tells it.
    """
    shown = _fitting(cards, first)
    head = _head(shown or cards, title, say("form.choose_help"))
    names = {card.approval_id for card in ticked}
    held = next((card for card in cards if card.frozen is not None), first)
    blocks = [head, *frozen(held), *_boxes_of(shown, names, is_whole=True), _rest()]
    if ticked:
        what = batch_title(ticked, chosen)
        blocks.append(context(plain(clip(say("form.chosen", what=what), _TITLE))))
    if left := len(cards) - len(shown):
        blocks.insert(1, context(plain(say("form.choose_own", n=left))))
    is_needed = wants_reason(first, rejects=False)
    label = say("form.critical_why" if is_needed else "form.note")
    hint = say("form.note_ph")
    blocks.append(text_input(REASON, label, MOST_REASON, hint=hint, optional=not is_needed))
    submit = say("form.choose_submit", n=len(names), of=len(shown))
    words = (say("form.choose_title"), submit)
    proof = Proof(is_whole=bool(shown))  # each of these in full
    return yes(ActionId.BATCH_MODAL, modal(first, ActionId.DETAILS_MODAL, words, blocks), proof)


@masked_once()
def reject_all_modal(cards: Sequence[Approval], title: str) -> Block:
    """Render the modal that rejects several cards, all selected."""
    first = cards[0]
    head = _head(cards, title, say("form.reject_all_help"))
    blocks = [head, *_boxes_of(cards, _all(cards)), *rejection_inputs(first)]
    words = (say("form.reject_all"), say("form.reject_submit"))
    return modal(first, ActionId.BATCH_REJECT_MODAL, words, blocks)


@masked_once()
def withdraw_all_modal(cards: Sequence[Approval], title: str) -> Block:
    """Render the modal that withdraws several requests, with a text for the agent."""
    first = cards[0]
    tell = text_input(
        REASON, say("form.withdraw_tell"), MOST_REASON, hint=say("form.withdraw_hint")
    )
    head = _head(cards, title, say("form.withdraw_all_help"))
    words = (say("form.withdraw_all"), say("form.withdraw_submit"))
    return modal(
        first, ActionId.BATCH_WITHDRAW_MODAL, words, [head, *_boxes_of(cards, _all(cards)), tell]
    )


def ask_one_modal(cards: Sequence[Approval], title: str) -> Block:
    """Render the modal that asks about one of the cards: question and recipient."""
    first = cards[0]
    view = question_modal(first)
    which = {
        "type": "input",
        "block_id": WHICH,
        "label": plain(say("form.ask_which")),
        "element": {
            "type": "static_select",
            "action_id": str(ActionId.VALUE),
            "options": _options([*enumerate(cards, 1)]),
        },
    }
    head = _head(cards, title, say("form.ask_one_help"))
    blocks = [head, which, *view["blocks"][1:]]
    return {**view, "callback_id": str(ActionId.BATCH_ASK_MODAL), "blocks": blocks}


def read_asked(values: Values) -> Chosen | Errors:
    """Parse the card that a question is about.

    Raises:
        InvalidInputError: The modal has no such value.
    """
    option = read_state(values, WHICH).get("selected_option")
    if not isinstance(option, dict):
        return {WHICH: say("error.choose_option")}
    about = decode(option.get("value"))
    return Chosen(approval_id=about.approval_id, shown=about.shown)


@masked_once()
def list_modal(items: Sequence[Approval], title: str) -> Block:
    """Render the state of each approval and who decided it, read-only."""
    shared = common_to(items)
    blocks = [rich(line(literal(clip(title, _TITLE), "bold")))]
    blocks += [rich(common_line(shared))] if shared else []
    by = {who for _, who in _deciders(items, 1)}
    for start in range(0, len(items), PAGE):
        page = items[start : start + PAGE]
        blocks.append(
            rich(*(element for approval in page for element in _item_blocks(approval, shared)))
        )
        if len(by) > 1:
            people = [f"{number}. {who}" for number, who in _deciders(page, start + 1)]
            blocks += small_lines(people)
    blocks += small_lines(by) if len(by) == 1 else []
    return {
        "type": "modal",
        "callback_id": str(ActionId.NOTICE_MODAL),
        "title": brief(say("form.details")),
        "close": brief(say("form.close")),
        "blocks": blocks[:_MOST_BLOCKS],
    }


def _item_blocks(item: Approval, shared: SharedParts) -> Iterator[Block]:
    yield item_line(item, shared)
    decision, run = item.decision, execution_of(item)
    for text in (decision.reason if decision is not None else "", run.text if run else ""):
        if text.strip():
            view = show(mask_text(text.strip()), _ARGUMENTS, lines=3)
            yield quote(literal(f"{view.text}{'…' if view.hidden else ''}"))


def _deciders(items: Sequence[Approval], start: int) -> Iterator[tuple[int, str]]:
    for number, item in enumerate(items, start):
        if who := deciders_names(item):
            yield number, say("batch.by", who=who)


def _head(cards: Sequence[Approval], title: str, help_text: str) -> Block:
    words = batch_title(cards, title)
    return rich(line(literal(clip(words, _TITLE), "bold")), line(literal(help_text)))


def _all(cards: Sequence[Approval]) -> frozenset[str]:
    return frozenset(card.approval_id for card in cards)


def _boxes_of(
    cards: Sequence[Approval], ticked: Collection[str], *, is_whole: bool = False
) -> Iterator[Block]:
    """Yield checkbox groups, each below the content that its labels cannot show.

    Args:
        cards: All listed cards.
        ticked: Ids of the selected cards.
        is_whole: Whether selecting approves, so each card is shown in full, and each selection is
            counted.
    """
    shared = common_to(cards) if all(takes_line(card) for card in cards) else ()
    if shared:
        yield rich(common_line(shared))
    for start in range(0, len(cards), PAGE):
        page = list(enumerate(cards[start : start + PAGE], start + 1))
        yield from _listed(page, shared, is_whole=is_whole)
        boxes = _boxes(start, page, ticked, shared, is_all=len(page) == len(cards))
        yield {**boxes, "dispatch_action": True} if is_whole else boxes


def _fitting(cards: Sequence[Approval], first: Approval) -> list[Approval]:
    """Return the cards that a modal can show in full, in order; the first has priority."""
    listed = sorted(
        filter(is_listed, cards), key=lambda approval: approval.approval_id != first.approval_id
    )
    listed, kept = listed[:MOST_CARDS], set[str]()
    room = MOST_CARDS if all(map(takes_line, listed)) else _ROOM  # lines share their blocks
    for card in listed:
        if (size := _size(card)) <= room:
            room -= size
            kept.add(card.approval_id)
    return [approval for approval in cards if approval.approval_id in kept]


def _size(card: Approval) -> int:
    return 1 if takes_line(card) else 2 + len(body_of(card).blocks)


def read_ticked(values: Values) -> tuple[Chosen, ...] | Errors:
    """Parse the selected cards; return errors if invalid.

    Raises:
        InvalidInputError: The modal has no such value.
    """
    groups = [block_id for block_id in values if block_id.startswith(_CARDS)]
    ticked = _chosen_cards(values, groups)
    return tuple(ticked.values()) or {(groups or [_CARDS])[0]: say("error.tick_one")}


def read_listed(values: Values, turn: Sequence[Approval]) -> tuple[list[Approval], list[Approval]]:
    """Return the cards of a turn that an open batch modal lists, and the selected ones."""
    groups = [block_id for block_id in values if block_id.startswith(_CARDS)]
    known = dict(pair for block_id in groups for pair in _named_in(block_id))
    listed = [card for card in turn if known.get(_start_of(card)) == card.digest[:_SHOWN]]
    ticked = _chosen_cards(values, groups)
    return listed, [card for card in listed if card.approval_id in ticked]


def read_batch(first: Approval, values: Values) -> BatchChoice | Errors:
    """Parse the selected cards and the choice for the others, or return errors.

    Raises:
        InvalidInputError: The modal has no such value.
    """
    groups = [block_id for block_id in values if block_id.startswith(_CARDS)]
    ticked = _chosen_cards(values, groups)
    option = read_state(values, REST).get("selected_option")
    rejects = isinstance(option, dict) and option.get("value") == _REJECT
    if not ticked and not rejects:
        return {(groups or [_CARDS])[0]: say("error.tick_one")}
    needs_reason = rejects and wants_reason(first, rejects=True)
    if needs_reason and is_blank(read_text(values, REASON)):
        return {REASON: say("error.required")}
    listed = tuple(pair for block_id in groups for pair in _named_in(block_id))
    return BatchChoice(ticked=tuple(ticked.values()), listed=listed, rejects=rejects)


def _chosen_cards(values: Values, groups: Sequence[str]) -> dict[str, Chosen]:
    """Return the selected cards by id."""
    by_id: dict[str, Chosen] = {}
    for block_id in groups:
        ticked = read_state(values, block_id).get("selected_options")
        for option in ticked if isinstance(ticked, list) else []:
            about = decode(option.get("value") if isinstance(option, dict) else None)
            by_id[about.approval_id] = Chosen(approval_id=about.approval_id, shown=about.shown)
    return by_id


def _listed(
    page: Sequence[tuple[int, Approval]], shared: SharedParts, *, is_whole: bool
) -> Iterator[Block]:
    """Yield what checkbox labels omit: a line, or the content of a call's card."""
    lines: list[Block] = []
    for number, card in page:
        if takes_line(card):
            if not _fits_box(card, shared):
                lines.append(line(literal(f"{number}. ", "bold"), *item_parts(card, shared)))
            continue
        if lines:
            yield rich(*lines)
            lines = []
        yield rich(line(literal(f"{number}. {clip(title_of(card), _TITLE)}", "bold")))
        yield from body_of(card).blocks if is_whole else ()
    if lines:
        yield rich(*lines)


def _boxes(
    start: int,
    page: Sequence[tuple[int, Approval]],
    ticked: Collection[str],
    shared: SharedParts,
    *,
    is_all: bool,
) -> Block:
    options = _options(page, shared)
    pairs = zip(options, page, strict=True)
    chosen = [option for option, (_, card) in pairs if card.approval_id in ticked]
    names = ".".join(f"{_start_of(card)}{card.digest[:_SHOWN]}" for _, card in page)
    first, last = start + 1, start + len(page)
    single = say("form.choose_single", n=first)
    several = say("form.choose_group", first=first, last=last)
    return {
        "type": "input",
        "block_id": f"{_CARDS}{start}.{names}",
        "label": plain(single if first == last else several),
        "optional": not is_all,  # with more boxes elsewhere, each group may stay empty
        "element": {
            "type": "checkboxes",
            "action_id": str(ActionId.VALUE),
            "options": options,
            **({"initial_options": chosen} if chosen else {}),
        },
    }


def _options(page: Sequence[tuple[int, Approval]], shared: SharedParts = ()) -> list[Block]:
    return [
        {
            "text": plain(clip(f"{number}. {_label(card, shared)}", _OPTION)),
            "value": encode(card.approval_id, card.digest),
        }
        for number, card in page
    ]


def _label(card: Approval, shared: SharedParts) -> str:
    if not takes_line(card):
        return title_of(card)
    return item_text(card, shared) if _fits_box(card, shared) else title_of(what_runs(card))


def _fits_box(card: Approval, shared: SharedParts) -> bool:
    """Whether the whole line fits in the checkbox's label."""
    return len(item_text(card, shared)) <= _OPTION - 5


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
    """Return the cards of a group: prefixes of ids and digests."""
    _, _, names = block_id.partition(".")
    for name in names.split("."):
        if len(name) == _ID + _SHOWN:
            yield name[:_ID], name[_ID:]
