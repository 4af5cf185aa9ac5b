"""The parts of a card beside votes: the menu, a claim, questions, the dialog that confirms."""

from __future__ import annotations

import json

import pytest

from bot.approvals.comments import AGENT, with_answer
from bot.layout.action_ids import ActionId
from bot.layout.blocks import Card
from bot.questions.form import AnswerForm, Form
from bot.questions.reasons import confirmation_inputs
from bot.records.approval import Approval, CardClaim, Comment, Decision, PriorApproval, Status
from bot.records.terms import Stage
from bot.slack.cards.approval import MOST_SHOWN
from bot.slack.cards.card_for import card_for
from bot.slack.side_messages.reminders import question_message
from slack_sandbox.blockkit.rules import message_errors
from tests.unit.bot.slack.cards.reading import buttons, links
from tests.unit.bot.slack.cards.samples import CREATED, a_doubt, an_approval
from tests.unit.bot.slack.cards.test_progress import SECURITY, TERMS, a_vote, under

ODD = "*bold* <!channel> :x: <http://e|l> \u202e\u200b" + "long " * 1_000


def drawn(approval: Approval) -> Card:
    card = card_for(approval, approvers_text="")
    assert message_errors({"text": card.text, "blocks": card.blocks}) == []
    return card


def said(card: Card) -> str:
    return card.text + json.dumps(card.blocks, ensure_ascii=False)


def options(card: Card) -> list[str]:
    return [option["text"]["text"] for option in buttons(card)[ActionId.MORE]["options"]]


def test_the_menu_has_what_decides_nothing() -> None:
    claimed = an_approval().changed(claim=CardClaim().taken("UADA", 1_000))
    usual = ["Details", "Ask a question…", "I'm not on it", "Snooze…", "Withdraw…"]
    assert options(drawn(claimed)) == usual
    assert "👀 *<@UADA> is on it*" in said(drawn(claimed))


def test_a_critical_call_is_not_put_off() -> None:
    critical = under(TERMS.model_copy(update={"risk": "critical"}))
    assert "Snooze…" not in options(drawn(critical))


def test_a_claim_that_has_ended_is_not_shown() -> None:
    ended = CardClaim().taken("UADA", 1_000).ended(2_000)
    card = drawn(an_approval().changed(claim=ended))
    assert "is on it" not in said(card)
    assert "I'm not on it" not in options(card)


def test_a_question_and_its_answer_stand_on_the_card() -> None:
    asked = Comment(by="UADA", text="why now?", at_ms=1_000)
    card = drawn(an_approval().changed(dialog=(asked,)))
    assert "<@UADA> asked" in said(card)
    assert "<@U0ROSA>: reply in the thread to answer." in said(card)
    answered = with_answer(asked, by="UROSA", text="because", ts="1.1")
    card = drawn(an_approval().changed(dialog=(answered,)))
    assert "because" in said(card)
    assert "reply in the thread" not in said(card)
    assert card.blocks[0]["text"]["text"] == "⏳ *Needs approval*"


def test_a_card_has_the_newest_questions() -> None:
    many = [Comment(by="UADA", text=f"question-{n}", at_ms=n) for n in range(MOST_SHOWN + 2)]
    card = said(drawn(an_approval().changed(dialog=tuple(many))))
    assert "2 earlier questions" in card
    assert ("question-1" in card, "question-2" in card) == (False, True)


def test_a_question_mentions_all_who_asked_for_it() -> None:
    people = [f"U{number}" for number in range(12)]
    message = question_message(
        an_approval(), by="UADA", text="why?", mentions=people, link="https://a.example/p1"
    )
    assert "<@U0> <@U1>" in message.text
    assert "<@U11>" not in message.text
    assert links(message) == [("https://a.example/p1", "Deploy payments 1.4.2 to production")]
    assert "<@UADA> has a question about Deploy payments 1.4.2 to production: why?" in message.text


def test_a_question_to_the_agent_mentions_nobody_to_answer() -> None:
    message = question_message(an_approval(), by="UADA", text="why?", mentions=(), link="")
    assert message.text.count("<@") == 1
    assert "<@UADA> asked the agent about Deploy payments" in message.text
    assert "The agent's answer will appear on the card" in str(message.blocks)


def test_a_card_says_what_the_agent_answers() -> None:
    asked = Comment(by="UADA", text="why?", at_ms=1, ts="1.1", to=AGENT)
    card = drawn(an_approval().changed(dialog=(asked,)))
    assert "The agent's answer will appear here" in said(card)
    assert "reply in the thread to answer" not in said(card)
    answered = with_answer(asked, by=AGENT, text="because", ts=AGENT)
    card = drawn(an_approval().changed(dialog=(answered,)))
    assert "A (agent):" in str(card.blocks)


def test_an_approval_is_confirmed_where_the_rule_says_so() -> None:
    title = ODD[:60]
    terms = TERMS.model_copy(update={"confirm": True})
    confirmed = drawn(under(terms, title=title, arguments={}))
    dialog = buttons(confirmed)[ActionId.APPROVE]["confirm"]
    assert dialog["title"]["text"] == "Approve this?"
    assert {dialog[part]["type"] for part in dialog} == {"plain_text"}
    assert "confirm" not in buttons(drawn(under(TERMS, arguments={})))[ActionId.APPROVE]
    # What the card does not show is agreed to in a form.
    hidden = buttons(drawn(under(terms, title=ODD)))[ActionId.APPROVE]
    assert ("confirm" in hidden, hidden["text"]["text"]) == (False, "Approve…")


@pytest.mark.parametrize(
    ("preview", "more"),
    [
        (
            "Replaces 1.4.1, one replica after another.",
            " Replaces 1.4.1, one replica after another.",
        ),
        ("Replaces 1.4.1. Then restarts it.", " Replaces 1.4.1."),
        ("", ""),
        ("-  count: 3\n+  count: 5.", ""),
        ("Order\tSum\nA\t1.", ""),
        ("long " * 45 + ".", ""),
        ("Turned \u202e over.", ""),
    ],
)
def test_the_dialog_says_what_changes(preview: str, more: str) -> None:
    alone = {"confirm": True, "stages": (Stage(approve=(SECURITY,)),)}
    terms = TERMS.model_copy(update=alone)
    card = drawn(under(terms, preview=preview, title="Deploy payments", arguments={}))
    words = f"Deploy payments.{more} No one else has to approve."
    assert buttons(card)[ActionId.APPROVE]["confirm"]["text"]["text"] == words


def test_a_critical_call_asks_for_the_name_of_what_its_tool_calls_so() -> None:
    ask = AnswerForm(form=Form.CALL, labels={"tbl": "Table"})
    terms = TERMS.model_copy(update={"risk": "critical"})
    critical = under(
        terms, title="Delete orders_2019", arguments={"tbl": "orders_2019"}, form=ask.to_data()
    )
    assert "To confirm, type the table" in str(confirmation_inputs(critical))


def test_a_form_needs_no_dialog() -> None:
    terms = TERMS.model_copy(update={"confirm": True, "approve_reason": True})
    card = drawn(under(terms))
    approve = buttons(card)[ActionId.APPROVE]
    assert ("confirm" in approve, approve["text"]["text"]) == (False, "Approve…")
    assert options(card)[:2] == ["Details", "Ask a question…"]


def test_a_card_says_on_whose_behalf_it_was_decided() -> None:
    votes = [a_vote("UTOM").changed(on_behalf_of="UMIA"), a_vote("UADA")]
    for by, words in (
        ("UTOM", "by <@UADA>, <@UTOM> for <@UMIA>"),
        ("UADA", "by <@UTOM> for <@UMIA>, <@UADA>"),
    ):
        approval = under(TERMS, *votes)
        decision = Decision(status=Status.APPROVED, by=by, at_ms=5_000, digest=approval.digest)
        card = drawn(approval.changed(status=Status.APPROVED, decision=decision))
        assert words in card.text
        assert words in said(card)


def test_a_decided_card_names_all_who_agreed_and_nobody_who_did_not() -> None:
    votes = [a_vote("UADA"), a_vote("UMIA").changed(choice="reject"), a_vote("UBEN")]
    approval = under(TERMS, *votes)
    decision = Decision(status=Status.APPROVED, by="UBEN", at_ms=5_000, digest=approval.digest)
    card = drawn(approval.changed(status=Status.APPROVED, decision=decision))
    assert "by <@UADA>, <@UBEN>*" in said(card)
    assert "UMIA" not in said(card)


def test_who_is_left_in_peace_is_named_also_in_a_group() -> None:
    until = CREATED + 3_600_000
    snoozes = {"U0ADA": until}
    group = drawn(an_approval(snoozes=snoozes, approvers=("S0OPS",)))
    assert said(group).count("<@U0ADA> snoozed this until ") == 1
    alone = card_for(an_approval(snoozes=snoozes), approvers_text="<@U0ADA>, <@U0BEN>")
    assert said(alone).count("<@U0ADA> (💤 until ") == 1
    assert "💤" not in said(drawn(an_approval()))


def test_a_card_in_doubt_says_who_had_approved_the_call() -> None:
    known = PriorApproval(by=("U0ADA", "U0BEN"), at_ms=CREATED)
    assert "Approved by <@U0ADA>, <@U0BEN>, <!date^" in said(drawn(a_doubt(prior_approval=known)))
    shown = said(drawn(a_doubt()))
    assert ("Approved by" in shown, "Requested by" in shown) == (False, True)


def test_a_notification_says_why_nobody_can_decide() -> None:
    card = drawn(an_approval(stuck="Nobody of sre is left."))
    assert card.text.startswith("No one can decide this: Deploy payments")
    assert card.text.endswith("Nobody of sre is left.")
    assert set(buttons(card)) == {ActionId.ASK_ADMIN, *_LEFT}
    assert options(card) == ["Details", "Ask a question…"]


_LEFT = (ActionId.REJECT, ActionId.WITHDRAW, ActionId.MORE)
