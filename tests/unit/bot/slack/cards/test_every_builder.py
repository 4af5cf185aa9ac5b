"""No words of others are markup, in whatever is drawn: cards, forms, messages and Home."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from babel import Locale

from bot.approvals.comments import AGENT, with_answer
from bot.approvals.overview import GrantWithOrigin, HomeData
from bot.errors import InvalidInputError
from bot.layout.action_ids import ActionId
from bot.layout.blocks import Block, Card
from bot.ports.people import Person
from bot.ports.threads import BatchWords
from bot.questions.drawing import OpenModal, drawn_question
from bot.records.approval import (
    Approval,
    CastVote,
    Comment,
    Emergency,
    Execution,
    ExecutionState,
    Kind,
    RequesterMessage,
    Status,
    StoredBatch,
    StoredEdits,
)
from bot.slack.cards.batch import batch_modal
from bot.slack.cards.batch_card import batch_card
from bot.slack.cards.break_glass import override_modal
from bot.slack.cards.card_for import card_for
from bot.slack.cards.grants import grant_modal
from bot.slack.cards.modals import late_modal, withdraw_modal
from bot.slack.cards.secondary_actions import question_modal, snooze_modal
from bot.slack.home.items import ShownNames
from bot.slack.home.state import HomeState, Shown
from bot.slack.home.times import TimeReader
from bot.slack.home.view import HomePage, home_view
from bot.slack.side_messages.grant import grant_card
from bot.slack.side_messages.notices import admin_card, alert_card, root_card, summary_card
from bot.slack.side_messages.private import choice_card, withdrawal_card
from bot.slack.side_messages.reminders import (
    closed_question,
    concluded_text,
    line_card,
    nudge_text,
    question_message,
)
from slack_sandbox.blockkit.rules import message_errors, view_errors
from tests.support.named import with_backups
from tests.unit.bot.asked import form_of, review_pages
from tests.unit.bot.slack.cards.samples import (
    CREATED,
    DECIDED,
    GLASS,
    GRANTS,
    HERE,
    LINK,
    a_choice,
    a_feedback,
    a_form,
    a_human,
    a_question,
    a_step,
    an_approval,
    decided,
)
from tests.unit.bot.slack.cards.test_properties import walk
from tests.unit.bot.slack.side_messages.test_alerts import GRANT

WORD = "Qodd"
ODD = f"*{WORD}* <!channel> :x: <http://e|l> _{WORD}_ `{WORD}`"
READER = TimeReader(ZoneInfo("UTC"), Locale("en"), DECIDED)
NAMES = ShownNames(people={"U0ROSA": ODD, "U0BEN": ODD, "U0ADA": ODD}, channels={"C1": f"#{ODD}"})
SAID = (RequesterMessage(by="U0ROSA", text=ODD, at_ms=1),)
LONG = f"{ODD} \u202e\u200b\x00 {'long ' * 4_000}"
ASKED = Comment(by="U0ADA", text=LONG, at_ms=1)
TO_AGENT = Comment(by="U0ADA", text=ODD, at_ms=1, ts="1.2", to=AGENT)
BASES = {
    "call": an_approval(),
    "doubt": an_approval(kind=Kind.DOUBT),
    "question": a_question(),
    "choice": a_choice(),
    "feedback": a_feedback(version=2, previous=f"{ODD} before", content=ODD),
    "form": a_form(),
    "human": a_human("accept", "edit", "response", "ignore"),
    "step": a_step(),
}


def odd(approval: Approval) -> Approval:
    """A record of which others have written all that others may write."""
    vote = CastVote(by="U0ADA", choice="approve", at_ms=1, digest=approval.digest, note=ODD)
    arguments = approval.arguments
    return approval.changed(
        title=LONG,
        why=ODD,
        preview=ODD,
        asked_again=ODD,
        arguments={**arguments, ODD: ODD, "to": [ODD], "questions": [ODD, ODD]},
        dialog=(
            with_answer(ASKED, by="U0ROSA", text=LONG, ts="1.1"),
            with_answer(TO_AGENT, by=AGENT, text=ODD, ts=AGENT),
        ),
        said=SAID,
        votes=(vote,),
        edits=StoredEdits(by="U0ADA"),
    )


def ended(approval: Approval) -> Iterator[Approval]:
    for status in Status:
        if status is not Status.PENDING:
            over = decided(approval, status, reason=ODD)
            yield over
            yield over.changed(arguments={"a": f"{ODD} edited"})
    for state in ExecutionState:
        run = Execution(state=state, at_ms=DECIDED, text=ODD)
        yield decided(approval, Status.APPROVED, reason=ODD).changed(execution=run)


def forms_of(approval: Approval) -> Iterator[Block]:
    yield from review_pages(approval)
    yield from (withdraw_modal(approval), snooze_modal(approval, HERE), question_modal(approval))
    yield batch_modal(approval, [approval])
    yield form_of(approval, override_modal(approval, GLASS))
    yield form_of(approval, grant_modal(approval, GRANTS.grants, covered=3))
    yield late_modal(decided(approval, Status.REJECTED, reason=ODD), ActionId.EDIT_MODAL)
    for action in ActionId:
        with suppress(InvalidInputError):
            result = drawn_question(approval).press(action)
            if isinstance(result, OpenModal):
                yield form_of(approval, result)


def messages_of(approval: Approval) -> Iterator[Card]:
    yield card_for(approval, approvers_text="<@U0BEN>")
    for kind in ("reminder", "escalation", "mention", "handover", "snooze_over", "quiet"):
        yield nudge_text(approval, kind, ["U0BEN"], link=LINK)
    open_to_all = with_backups(approval, "channel")
    yield from (
        nudge_text(open_to_all, "escalation", []),
        line_card(approval, ["U0BEN"], link=LINK),
    )
    yield question_message(approval, by="U0ADA", text=LONG, mentions=["U0ROSA"], link=LINK)
    yield question_message(approval, by="U0ADA", text=ODD, mentions=(), link=LINK)
    yield closed_question(approval, by="U0ADA", text=ODD, is_answered=True)
    yield from (choice_card("Our words", [approval]), withdrawal_card("Our words", [approval]))
    yield root_card(approval, who="Our words", link=LINK)
    yield admin_card(approval.changed(stuck="our words"), by="U0ADA", text=ODD, link=LINK)
    words = BatchWords(title=ODD, rest=ODD)
    one = approval.changed(batch=StoredBatch(owner_id=approval.approval_id))
    yield batch_card([one, one, *ended(one)], words, approvers_text="<@U0BEN>")
    for over in ended(approval):
        yield card_for(over, approvers_text="")
        yield from (concluded_text(over, link=LINK), root_card(over, who="", link=LINK))
    yield batch_card([*ended(one)], words, approvers_text="")
    done = decided(approval, Status.APPROVED, emergency=Emergency(what=ODD, why_now=ODD))
    yield from (alert_card(done, link=LINK), summary_card([*ended(approval)]))
    grant = GRANT.changed(vary=(ODD,), tool=ODD, agent=ODD)
    yield from (grant_card(grant, approval, now_ms=CREATED), grant_card(grant, done, now_ms=10**14))


def homes_of(approval: Approval) -> Iterator[Block]:
    person = Person(user_id="U0BEN", team_id="T1", name=ODD)
    given = GrantWithOrigin(grant=GRANT.changed(tool=ODD), approval=approval)
    overview = HomeData(
        person=person,
        at_ms=DECIDED,
        waiting=(approval,),
        mine=(approval,),
        ended=(*ended(approval),),
        grants=(given,),
    )
    for show in Shown:
        state = HomeState(show=show)
        yield home_view(HomePage(overview=overview, state=state, names=NAMES, reader=READER))


@pytest.mark.parametrize("name", BASES)
def test_no_words_of_others_are_markup_in_a_message(name: str) -> None:
    drawn = messages_of(odd(BASES[name]))
    assert any(WORD in str(card.blocks) for card in drawn)
    for card in drawn:
        assert message_errors({"text": card.text, "blocks": card.blocks}) == []
        assert live_in(card.blocks) == []
        assert "<!channel>" not in card.text
        assert "<http://e" not in card.text


@pytest.mark.parametrize("name", BASES)
def test_no_words_of_others_are_markup_in_a_form_or_home(name: str) -> None:
    drawn = [*forms_of(odd(BASES[name])), *homes_of(odd(BASES[name]))]
    assert len([view for view in drawn if WORD in str(view)]) > 5
    for view in drawn:
        assert view_errors(view) == []
        assert live_in(view["blocks"]) == []


def live_in(blocks: list[dict[str, Any]]) -> list[str]:
    """What others wrote and Slack would obey: in mrkdwn, as a mention, or as an emoji."""
    elements = list(walk(blocks))
    texts = [
        element["text"]
        for element in elements
        if element.get("type") == "mrkdwn" and WORD in element["text"]
    ]
    emoji = [
        str(element)
        for element in elements
        if element.get("emoji") is True and WORD in str(element)
    ]
    parts = [str(element) for element in elements if element.get("type") in {"broadcast", "emoji"}]
    return [*texts, *emoji, *(part for part in parts if "'x'" in part or "broadcast" in part)]
