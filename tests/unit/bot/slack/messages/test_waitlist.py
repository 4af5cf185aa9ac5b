"""The daily list as a message: whatever stands on it, Slack takes it, and nothing of it is live."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from bot.notifications.digest import Digest, ListItem
from bot.people.current_policy import NoPolicy
from bot.ports.people import Person
from bot.records.approval import Approval, Decision, Status, StoredBatch
from bot.records.people import PostedDigest
from bot.slack.calls import Putting
from bot.slack.home.digest import waitlist_card
from bot.slack.home.items import ShownNames
from bot.slack.home.times import TimeReader
from bot.slack.home.view import LIST
from bot.slack.messages.notices import SlackLists
from slack_sandbox.blockkit.rules import message_errors
from tests.contract.builders import an_approval
from tests.support.fakes import FakeDirectory

ADA = Person(user_id="UADA", team_id="T1", name="Ada", timezone="Europe/Berlin", locale="en-US")
NOW = 1_795_341_600_000
NAMES = ShownNames(people={"U1": "Rosa"}, channels={"C1": "#ops"})
LINK = "https://acme.slack.com/archives/C1/p1800000000000001"
EVIL = "*a* <!channel> <@U1> :x: <http://e|l> `b` ~c~\n> d"


def a_list(*approvals: Approval, **changes: Any) -> Digest:
    known: dict[str, Any] = {
        "key": "T1:UADA:2026-11-23",
        "person": ADA,
        "now_ms": NOW,
        "items": [ListItem(approval=one) for one in approvals],
        "total": len(approvals),
    }
    return Digest(**{**known, **changes})


def waiting(number: int = 1, **changes: Any) -> Approval:
    approval = an_approval(approval_id=f"apr_{number:032x}", expires_ms=NOW + number * 3_600_000)
    return approval.changed(**changes)


def drawn(shown: Digest) -> dict[str, Any]:
    reader = replace(TimeReader.of(ADA, NOW), is_lasting=True)
    links = {one.approval.approval_id: LINK for one in shown.items}
    card = waitlist_card(shown, NAMES, reader, links)
    message = {"text": card.text, "blocks": card.blocks}
    assert message_errors(message) == []
    return message


def mrkdwn(message: object) -> list[str]:
    """All texts of which Slack makes something."""
    match message:
        case {"type": "mrkdwn", "text": str(text)}:
            return [text]
        case dict():
            return [one for value in message.values() for one in mrkdwn(value)]
        case list():
            return [one for value in message for one in mrkdwn(value)]
        case _:
            return []


def test_a_line_has_title_deadline_risk_place_link_and_button() -> None:
    message = drawn(a_list(waiting()))
    block = message["blocks"][1]
    title, small = block["text"]["text"].split("\n")
    assert title == "Deploy payments 1.4.2 to production"
    assert small.endswith("Rosa in #ops")
    assert "Nov" in small  # never “today”: it may be read tomorrow
    assert block["fields"][0]["text"] == f"<{LINK}|Open the card>"
    assert block["accessory"]["text"]["text"] == "Review"


def test_a_button_opens_the_list_as_long_as_something_on_it_waits() -> None:
    (head, *_) = drawn(a_list(waiting()))["blocks"]
    assert head["accessory"]["text"]["text"] == "Open list"
    assert head["accessory"]["action_id"] == LIST
    decided = waiting().changed(status=Status.CANCELLED)
    (head, *_) = drawn(a_list(decided))["blocks"]
    assert "accessory" not in head


@pytest.mark.parametrize("total", [1, 10, 999])
def test_slack_takes_a_list_of_any_length(total: int) -> None:
    items = [waiting(number, title=EVIL * 50) for number in range(1, min(total, 10) + 1)]
    last_ms = NOW + 9_999_999 if total > 10 else 0
    message = drawn(a_list(*items, total=total, last_ms=last_ms))
    assert ("989 more" in str(message)) is (total == 999)


def test_nothing_of_a_title_is_live() -> None:
    message = drawn(a_list(waiting(title=EVIL)))
    assert all("channel>" not in text and "http://e" not in text for text in mrkdwn(message))
    assert "channel>" not in message["text"]


def test_the_lines_say_what_became_of_them() -> None:
    decision = Decision(status=Status.REJECTED, by="UADA", at_ms=NOW)
    ended = waiting(2, status=Status.REJECTED, decision=decision)
    voted = ListItem(approval=waiting(3), waits=False)
    shown = a_list(waiting(1))
    shown = replace(shown, items=[*shown.items, ListItem(approval=ended, waits=False), voted])
    message = drawn(replace(shown, total=3))
    assert "*1 of 3 still waiting for you*" in message["blocks"][0]["text"]["text"]
    assert "⛔ Rejected by you" in message["blocks"][2]["text"]["text"]
    labels = [one["accessory"]["text"]["text"] for one in message["blocks"][1:4]]
    assert labels == ["Review", "Open", "Open"]


def test_a_list_that_is_over_says_so_and_offers_no_decision() -> None:
    decision = Decision(status=Status.APPROVED, by="UBEN", at_ms=NOW)
    ended = waiting(1, status=Status.APPROVED, decision=decision)
    shown = replace(a_list(ended), items=[ListItem(approval=ended, waits=False)])
    message = drawn(shown)
    assert shown.is_over
    assert message["text"] == "Nothing here is waiting for you now"
    assert "Review" not in json.dumps(message)


def test_a_list_of_before_only_says_that_there_is_a_newer_one() -> None:
    message = drawn(a_list(waiting(), is_replaced=True))
    assert len(message["blocks"]) == 1
    assert message["text"] == "See the newer list below."


def test_what_is_left_of_a_long_list_is_counted() -> None:
    decision = Decision(status=Status.APPROVED, by="UBEN", at_ms=NOW)
    ended = waiting(1, status=Status.APPROVED, decision=decision)
    shown = replace(a_list(ended), items=[ListItem(approval=ended, waits=False)], total=4)
    message = drawn(shown)
    assert "*3 of 4 still waiting for you*" in message["blocks"][0]["text"]["text"]
    assert "And 3 more" in str(message["blocks"][-1])


class Poster:
    """Notes what is posted."""

    def __init__(self) -> None:
        self.put_in: list[Putting] = []
        self.linked: list[str] = []

    async def put(self, putting: Putting, _: object) -> str:
        self.put_in.append(putting)
        return putting.ts or "1.1"

    async def link(self, approval: Approval) -> str:
        self.linked.append(approval.thread_card.ts)
        return LINK


def a_board(poster: Poster) -> SlackLists:
    async def name(_: str) -> str:
        return "ops"

    return SlackLists(
        poster=poster, directory=FakeDirectory(), channel_name=name, policy=NoPolicy()
    )


async def test_what_is_on_a_card_with_others_leads_to_that() -> None:
    poster, keeper = Poster(), f"apr_{1:032x}"
    alone = waiting(1, batch=StoredBatch(keeper=keeper))
    first = alone.with_message(alone.batch_card.changed(ts="7.000001"))
    second = waiting(2, batch=StoredBatch(keeper=keeper))
    left = waiting(3, batch=StoredBatch(keeper=keeper, left=True)).with_card_ts("8.000001")
    await a_board(poster).show(a_list(first, second, left), where=PostedDigest())
    assert poster.linked == ["7.000001", "7.000001", "8.000001"]
    poster.linked.clear()
    await a_board(poster).show(a_list(alone, second), where=PostedDigest())
    assert poster.linked == ["", ""], "it is not posted"


async def test_a_new_list_is_looked_for_and_a_posted_one_is_not_posted_again() -> None:
    poster = Poster()
    board = a_board(poster)
    shown = a_list(waiting())
    posted = await board.show(shown, where=PostedDigest())
    assert (posted.ts, posted.mark, posted.total) == ("1.1", shown.mark, 1)
    await board.show(shown, where=posted)
    first, second = poster.put_in
    assert (first.channel_id, first.looks, first.ts, first.is_last) == ("UADA", True, "", False)
    assert (second.ts, second.is_last) == ("1.1", True)
