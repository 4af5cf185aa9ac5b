"""The messages about emergencies and grants: one line first, and nothing in them is obeyed."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest

from bot.layout.action_ids import ActionId
from bot.layout.blocks import Card
from bot.records.approval import Approval, Decision, Emergency, Status
from bot.records.people import Grant
from bot.slack.calls import Putting
from bot.slack.messages.notices import SlackNotices
from bot.slack.side_messages.grant import grant_card
from bot.slack.side_messages.notices import alert_card
from bot.words import say
from bot.words.catalog import Catalogue, catalogue, speaking
from slack_sandbox.blockkit.rules import message_errors
from tests.unit.bot.slack.cards.reading import seen, symbols
from tests.unit.bot.slack.cards.samples import CREATED, LINK, an_approval, decided

NOW = CREATED + 60_000
GRANT = Grant(
    grant_id="g",
    team_id="T1",
    thread_id="T1:C1:1",
    approval_id=an_approval().approval_id,
    granter_id="U0ADA",
    tool="deploy",
    ruling="a" * 64,
    agent="deployer",
    arguments={},
    vary=(),
    requesters=(),
    created_ms=CREATED,
    until_ms=CREATED + 3_600_000,
    max_uses=5,
)


def broken(what: str = "Payments are down", why: str = "Nobody answers") -> Approval:
    decision = Decision(
        status=Status.APPROVED,
        by="U0ROSA",
        at_ms=NOW,
        digest="d",
        emergency=Emergency(what=what, why_now=why),
    )
    return an_approval().changed(status=Status.APPROVED, decision=decision)


def test_an_alert_says_who_what_why_and_where() -> None:
    card = alert_card(broken(), link=LINK)
    assert card.text == (
        "Emergency override by <@U0ROSA>: Deploy payments 1.4.2 to production. "
        "Reason: Payments are down Nobody answers"
    )
    assert symbols(card) == ["rotating_light"]
    assert seen(card).startswith("<@U0ROSA> used the emergency override")
    shown = json.dumps(card.blocks)
    assert f"<{LINK}|Open the card>" in shown
    assert ActionId.DETAILS in shown
    assert message_errors({"text": card.text, "blocks": card.blocks}) == []


def test_an_alert_names_who_has_seen_it() -> None:
    nobody = alert_card(broken(), link=LINK)
    assert ActionId.SEEN in json.dumps(nobody.blocks)
    assert "Seen by" not in seen(nobody) + nobody.text
    two = alert_card(broken(), link=LINK, seen_by=["U0ADA", "U0BEN"])
    assert "Seen by <@U0ADA> <@U0BEN>" in seen(two)
    assert two.text.endswith("Seen by <@U0ADA> <@U0BEN>")
    assert ActionId.SEEN in json.dumps(two.blocks)
    own = alert_card(broken(), link=LINK, seen_by=["U0ADA"], can_press=False)
    assert ActionId.SEEN not in json.dumps(own.blocks)
    many = alert_card(broken(), link=LINK, seen_by=[f"U0{n}" for n in range(100)])
    assert many.text.endswith("<@U019> and 80 more")
    assert message_errors({"text": many.text, "blocks": many.blocks}) == []


@pytest.mark.parametrize("link", ["", "https://x|y>"])
def test_only_an_address_is_a_link(link: str) -> None:
    assert "Open the card" not in str(alert_card(broken(), link=link).blocks)


def test_an_alert_without_reasons_is_still_one() -> None:
    damaged = broken()
    assert damaged.decision is not None
    damaged = damaged.changed(decision=damaged.decision.changed(emergency=None))
    assert alert_card(damaged, link="").text.endswith("Reason: …")


def test_a_grant_says_how_much_is_left_and_can_be_stopped() -> None:
    card = grant_card(GRANT, an_approval(), now_ms=NOW)
    assert card.blocks[0]["text"]["text"] == "🔑 *Standing permission*  ·  not used yet"
    title = "Deploy payments 1.4.2 to production"
    assert card.text.startswith(
        f"Standing permission, not used yet: {title}. Standing permission from <@U0ADA>: 0 of 5"
    )
    assert [option["text"]["text"] for option in card.blocks[2]["accessory"]["options"]] == [
        "Details",
        "Stop permission…",
    ]
    assert "only this exact action" in str(card.blocks[-1])
    wide = grant_card(GRANT.changed(vary=("version",)), an_approval(), now_ms=NOW)
    assert "version, in this thread" in str(wide.blocks[-1])


def test_a_grant_of_an_edited_call_has_the_title_of_what_ran() -> None:
    edited = decided(
        an_approval(), Status.APPROVED, arguments={"version": "1.4.3"}, title="Deploy 1.4.3"
    )
    assert "Deploy 1.4.3" in seen(grant_card(GRANT, edited, now_ms=NOW))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"ended_ms": NOW, "ended_by": "U0BEN"}, "Stopped by <@U0BEN>, so people are asked again."),
        ({"ended_ms": NOW}, "It has ended, so people are asked again."),
        ({"max_uses": 0}, "It's used up, so people are asked again."),
        ({"until_ms": NOW}, "Its time is up, so people are asked again."),
    ],
)
def test_a_grant_that_is_over_says_why_and_cannot_be_stopped(
    change: dict[str, object], words: str
) -> None:
    card = grant_card(GRANT.changed(**change), an_approval(), now_ms=NOW)
    assert words in card.text
    assert words in card.blocks[2]["text"]["text"]
    assert card.blocks[-1]["accessory"]["action_id"] == ActionId.DETAILS


@dataclass
class Wall:
    """Notes what is shown, and over which message."""

    shown: list[tuple[Putting, Card]] = field(default_factory=list)

    async def put(self, putting: Putting, card: Card) -> str:
        self.shown.append((putting, card))
        return putting.ts

    async def link(self, approval: Approval) -> str:
        return f"{LINK}?{approval.approval_id}"


@pytest.mark.parametrize(("channel_id", "can_press"), [("C0ALERT", True), ("D0ADA", False)])
async def test_who_has_seen_it_is_written_over_the_message_with_the_button(
    channel_id: str, can_press: bool
) -> None:
    wall, own = Wall(), Catalogue("de", {"button.seen": "Gelesen"}, catalogue("en").texts)
    with speaking(own):  # whoever presses: all read the message
        await SlackNotices(wall).show_seen(broken(), ["U0ADA"], channel_id=channel_id, ts="9.1")
    ((putting, card),) = wall.shown
    assert (putting.channel_id, putting.ts, putting.thread_ts) == (channel_id, "9.1", "")
    assert "Seen by <@U0ADA>" in card.text
    assert (ActionId.SEEN in json.dumps(card.blocks)) is can_press
    assert (say("button.seen") in json.dumps(card.blocks)) is can_press
