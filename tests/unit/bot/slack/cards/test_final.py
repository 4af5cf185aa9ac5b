"""After an edit a card shows what runs; what was asked for first stands in its changes alone."""

from __future__ import annotations

import pytest

from agents.core.codec import Json
from bot.approvals.overview import HomeData
from bot.ports.people import Person
from bot.questions.shown import what_runs
from bot.records.approval import Approval, Status
from bot.slack.cards.card_for import card_for
from bot.slack.home.state import HomeState, Shown
from bot.slack.home.view import HomePage, home_view
from bot.slack.side_messages.notices import root_card, summary_card
from bot.slack.side_messages.reminders import concluded_text
from tests.unit.bot.asked import details_of
from tests.unit.bot.slack.cards.samples import (
    DECIDED,
    LINK,
    a_call_choice,
    a_form,
    an_approval,
    decided,
)
from tests.unit.bot.slack.cards.test_every_builder import NAMES, READER
from tests.unit.bot.slack.cards.test_words import shown

OLD = "Deploy payments 1.4.2 to production"
NEW = "Deploy payments 9.9.9 to staging"


def edited(**changes: str) -> Approval:
    """Approved with another version."""
    asked = an_approval(arguments={"version": "1.4.2"})
    fields = {"title": NEW, "preview": "Replaces 1.4.1 with 9.9.9.", **changes}
    return decided(asked, Status.APPROVED, arguments={"version": "9.9.9"}, **fields)


def card_of(approval: Approval) -> str:
    card = card_for(approval, approvers_text="")
    return f"{card.text}\n{shown(card.blocks)}"


def test_an_edited_card_shows_what_ran_everywhere_but_in_its_changes() -> None:
    card = card_for(edited(), approvers_text="")
    title, last = card.blocks[1:]
    assert title["elements"][0]["elements"][0]["text"] == NEW
    assert card.text.startswith("Edited by <@U0BEN>")
    assert NEW in card.text
    assert OLD not in card_of(edited())
    assert last["text"] == {"type": "plain_text", "text": "Version 1.4.2 → 9.9.9", "emoji": False}


def test_messages_and_home_name_an_edited_call_by_what_ran() -> None:
    over, person = edited(), Person(user_id="U0BEN", team_id="T1", name="Ben")
    overview = HomeData(person=person, at_ms=DECIDED, waiting=(), mine=(), ended=(over,))
    states = [HomeState(show=show) for show in Shown]
    pages = [
        HomePage(overview=overview, state=state, names=NAMES, reader=READER) for state in states
    ]
    messages = [concluded_text(over), root_card(over, who="", link=""), summary_card([over])]
    drawn = [str(message) for message in messages] + [str(home_view(page)) for page in pages]
    assert [text for text in drawn if OLD in text] == []
    assert len([text for text in drawn if NEW in text]) == len(messages) + 2


def test_without_words_of_the_tool_the_old_title_is_never_shown() -> None:
    said = card_of(edited(title="", preview=""))
    assert OLD not in said
    assert "Replaces payments 1.4.1" not in said
    assert "Run deploy with other values" in said


def test_details_of_an_edited_call_are_those_of_what_ran() -> None:
    said = shown(details_of(edited())["blocks"])
    assert NEW in said
    assert "1.4.2" not in said.replace("You asked me to bring 1.4.2 to production.", "")


@pytest.mark.parametrize("status", [Status.REJECTED, Status.EXPIRED, Status.CANCELLED])
def test_what_did_not_run_stays_what_was_asked_for(status: Status) -> None:
    approval = decided(an_approval(), status, arguments={"version": "9.9.9"})
    assert what_runs(approval) == approval


def test_a_choice_that_the_model_had_made_itself_is_replaced() -> None:
    asked = a_call_choice().changed(arguments={"place": "lima", "seats": 2}, title="Book Lima")
    chosen = decided(asked, Status.APPROVED, answer={"selected": ["a"]}, title="Book Rome")
    assert what_runs(chosen).arguments == {"place": "rome", "seats": 2}
    assert what_runs(chosen).title == "Book Rome"
    untold = decided(asked, Status.APPROVED, answer={"selected": ["a"]})
    assert what_runs(untold).title == "Run deploy with the chosen option"
    assert "Book Lima" not in card_of(untold)


def test_a_filled_in_call_has_the_title_of_what_runs() -> None:
    values: Json = {"values": {"place": "Rome", "days": 2, "who": ["Mia"]}}
    filled = decided(a_form(), Status.ANSWERED, answer=values, title="Book Rome for Mia")
    assert card_of(filled).startswith("Answered by <@U0BEN>")
    assert "Book Rome for Mia" in card_of(filled)
    assert what_runs(decided(a_form(), Status.ANSWERED, answer=values)).title == "Book"


def test_a_damaged_choice_shows_that_nothing_is_known_of_it() -> None:
    asked = a_call_choice().changed(arguments={"place": "lima"})
    chosen = decided(asked, Status.APPROVED, answer=[1])
    assert what_runs(chosen).arguments == {"place": None}


def test_a_request_that_is_asked_anew_leads_to_the_newer_card() -> None:
    old = decided(an_approval(), Status.SUPERSEDED, by="").changed(newer_ts="1.1")
    card = card_for(old, approvers_text="", newer=LINK)
    assert f"⏩ *Replaced by a newer request*  ·  <{LINK}|open the new one>" in str(card.blocks[0])
    assert "Nothing ran from this request." in str(card.blocks)
    odd = card_for(old, approvers_text="", newer="https://x|y>")
    assert "open the new one" not in str(odd.blocks)
