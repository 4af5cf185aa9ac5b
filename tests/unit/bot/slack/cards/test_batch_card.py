"""The card of several: Slack's limits, nothing live in what others wrote, and what fits a line."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from bot.layout.action_ids import MOST_TARGETS, ActionId, decode_all, encode_all
from bot.layout.blocks import Card
from bot.ports.threads import BatchWords
from bot.questions.form import AnswerForm, Form
from bot.records.approval import Approval, RequesterMessage, Status
from bot.slack.cards.batch import batch_modal, list_modal
from bot.slack.cards.batch_card import batch_card
from bot.slack.cards.batch_items import batch_title
from bot.slack.cards.listed import takes_line
from slack_sandbox.blockkit.rules import message_errors, text_characters, view_errors
from tests.unit.bot.slack.cards.batch_samples import ASK, an_item, ended, ran, refunds
from tests.unit.bot.slack.cards.samples import an_approval


def card_of(items: list[Approval], words: BatchWords | None = None) -> Card:
    return batch_card(items, words or BatchWords(), approvers_text="the members of this channel")


def as_it_ended(item: Approval, end: str) -> Approval:
    if end == "wait":
        return item
    return ran(item) if end == "ran" else ended(item, Status.REJECTED)


@given(
    st.integers(1, 100),
    st.text(max_size=200),
    st.text(max_size=200),
    st.lists(st.sampled_from(["wait", "ran", "no"]), min_size=100, max_size=100),
)
def test_any_card_and_its_forms_are_taken_by_slack(
    count: int, title: str, words: str, ends: list[str]
) -> None:
    waiting = [approval.changed(title=title or "x") for approval in refunds(an_approval(), count)]
    items = [as_it_ended(approval, end) for end, approval in zip(ends, waiting, strict=False)]
    largest = tuple(approval.approval_id for approval in reversed(items))
    card = card_of(items, BatchWords(title=words, rest=words, largest=largest))
    assert message_errors({"text": card.text, "blocks": card.blocks}) == []
    assert text_characters({"blocks": card.blocks}) <= 9_000
    for view in (batch_modal(items[0], items, words), list_modal(items, words or "x")):
        assert view_errors(view) == []
        assert len(view["blocks"]) <= 100


def test_the_button_carries_just_what_is_listed_and_waits() -> None:
    first, two, three, *rest = refunds(an_approval())
    card = card_of([first, ran(two), three, *rest])
    (row,) = [block for block in card.blocks if block["type"] == "actions"]
    (button,) = [
        element for element in row["elements"] if element["action_id"] == ActionId.APPROVE_ALL
    ]
    about = decode_all(button["value"])
    targets = [about.approval_id, *(other.approval_id for other in about.others)]
    assert targets == [item.approval_id for item in (first, three, *rest)]
    assert button["confirm"]["text"]["type"] == "plain_text"


def test_a_button_is_about_a_few() -> None:
    targets = [
        (approval.approval_id, approval.digest)
        for approval in refunds(an_approval(), MOST_TARGETS + 1)
    ]
    with pytest.raises(ValueError, match="a few"):
        encode_all(targets)
    with pytest.raises(ValueError, match="a few"):
        encode_all([])


def test_a_line_takes_what_it_shows_whole() -> None:
    assert takes_line(an_item(an_approval(), 1, "20.00"))
    assert takes_line(an_item(an_approval(), 1, "20.00", preview="Once."))


@pytest.mark.parametrize(
    "changes",
    [
        {"title": "x" * 300},
        {"arguments": {"note": "x" * 300}},
        {"arguments": {"note": "two\nlines"}},
        {"arguments": {"token": "sk-abcdefghijklmnopqrstuvwxyz"}},
        {"arguments": {"note": "a\u202eb"}},
        {"preview": "one\ntwo"},
        {"form": AnswerForm(form=Form.CHOICE, question="Which?").to_data()},
    ],
)
def test_what_a_line_cannot_show_has_a_card_of_its_own(changes: dict[str, str]) -> None:
    assert not takes_line(an_item(an_approval(), 1, "20.00", **changes))


def first_line(card: Card) -> str:
    return str(card.blocks[0]["text"]["text"])


def third_line(card: Card) -> str:
    return str(card.blocks[2]["text"]["text"])


@pytest.mark.parametrize(
    ("status", "symbol", "next_step"),
    [
        (Status.SUPERSEDED, "⏩ *5 replaced*", "Nothing ran from this request."),
        (
            Status.CANCELLED,
            "⏹️ *5 cancelled*",
            "The agent stopped before anyone decided. Nothing ran.",
        ),
        (Status.UNDECIDABLE, "⚠️ *5 no one can decide*", "Nothing ran."),
        (Status.DENIED, "⛔ *5 blocked*", "Nothing ran."),
    ],
)
def test_an_end_that_all_share_has_its_own_symbol_and_says_that_nothing_ran(
    status: Status, symbol: str, next_step: str
) -> None:
    items = [approval.changed(newer_ts="1.1") for approval in refunds(an_approval())]
    card = card_of([ended(approval, status, by="") for approval in items])
    assert first_line(card) == symbol
    assert third_line(card) == next_step


def test_done_is_said_only_where_all_went_as_people_decided() -> None:
    refused = [ended(item, Status.REJECTED) for item in refunds(an_approval(), 2)]
    card = card_of(refused, BatchWords(title="2 refunds"))
    assert card.text.startswith("2 rejected, by <@U0ADA>: 2 refunds. Rejected: ")


def test_a_reason_that_all_share_is_said() -> None:
    items = [
        ended(approval, Status.WITHDRAWN, reason="Done by hand")
        for approval in refunds(an_approval())
    ]
    assert third_line(card_of(items)) == "“Done by hand”"
    items[0] = ended(items[0], Status.WITHDRAWN, reason="Another")
    assert third_line(card_of(items)) == "Nothing ran."


def test_the_risk_and_the_requesters_words_are_in_the_text_too() -> None:
    ask = replace(ASK, leaves=True).to_data()
    said = (RequesterMessage(by="U0ROSA", text="Wait", at_ms=1),)
    items = [approval.changed(form=ask, said=said) for approval in refunds(an_approval())]
    text = card_of(items, BatchWords(title="5 refunds")).text
    assert text.startswith("5 approvals needed, goes outside the company: 5 refunds.")
    assert text.endswith(" <@U0ROSA> added a message after asking. Read it before you decide.")


def test_without_words_of_its_tool_its_name_and_number_are_the_title() -> None:
    items = [approval.changed(tool="book_ticket") for approval in refunds(an_approval())]
    assert batch_title(items, "") == "Book ticket, 5 times"
    assert batch_title(items, " 5 tickets ") == "5 tickets"
    items[0] = items[0].changed(tool="book_hotel")
    assert batch_title(items, "") == "5 requests"
