"""Each pattern of the demo through Slack's own payloads, in its channel, to its end.

The demo's policy says who decides. Numbers are those of Eino's examples. The bot is stopped and
started again in the middle, on the same data, where `restarted` is played.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bot.demo import PATTERNS, POLICY
from bot.layout.action_ids import ActionId
from tests.support.stage import Stage, a_stage, buttons

EXAMPLES = {pattern.channel: pattern.example for pattern in PATTERNS}


class Visit:
    """A visitor, Rosa, in the channel of a pattern; Ada decides."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.seen = 0

    async def ask(self, channel: str, text: str = "") -> str:
        """Write in a channel; the root of the thread."""
        self.stage.room = channel.removeprefix("#")
        return await self.stage.say("Rosa", f"@countersign {text or EXAMPLES[channel]}")

    async def next_card(self, word: str = "") -> dict[str, Any]:
        """Wait for the next card."""
        self.seen += 1
        return await self.stage.card(number=self.seen, word=word)

    async def decide(self, card: dict[str, Any], action: ActionId, **typed: str) -> None:
        """Click on a card, and send the form that opens, if one does.

        Args:
            card: The card.
            action: Which button.
            **typed: What is typed or chosen in the inputs, by the beginning of their label.
        """
        await self.stage.click("Ada", card, str(action))
        if not typed:
            return
        view = await self.stage.modal("Ada")
        outcome = await self.stage.sandbox.submit(self.stage.user("Ada"), view, filled(view, typed))
        assert "errors" not in outcome, outcome

    async def is_final(self, number: int, word: str) -> None:
        """Wait until a card tells its outcome, and has no buttons."""
        card = await self.stage.card(number=number, word=word)
        assert buttons(card) == []

    async def restart(self) -> None:
        await self.stage.restart_bot()


def filled(view: dict[str, Any], typed: dict[str, str]) -> dict[str, str]:
    """What is typed or chosen, by the ids of the inputs."""
    values = {}
    if view["callback_id"] == ActionId.REJECT_MODAL and "why" in typed:
        typed = {"in_your_own_words": typed["why"], "reason": "Another reason"}
    for words, value in typed.items():
        wanted = words.replace("_", " ")
        (block,) = [
            block
            for block in view["blocks"]
            if block["type"] == "input" and _label(block).startswith(wanted)
        ]
        options = block["element"].get("options", [])
        by_text = {option["text"]["text"]: option["value"] for option in options}
        values[block["block_id"]] = by_text.get(value, value)
    return values


def _label(block: dict[str, Any]) -> str:
    return str(block["label"]["text"]).lower().replace("_", " ")


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Visit]:
    settings = {"COUNTERSIGN_AGENT": "bot.demo:channels", "COUNTERSIGN_POLICY": str(POLICY)}
    async with a_stage(tmp_path, "socket", **settings) as stage:
        yield Visit(stage)


async def test_p1_approval_restarted(stage: Visit) -> None:
    await stage.ask("#approval")
    card = await stage.next_card("Book a ticket to Beijing for Martin")
    assert str(ActionId.EDIT) not in buttons(card)
    await stage.restart()
    await stage.decide(card, ActionId.APPROVE)
    await stage.stage.said(r"^Done\.$")
    await stage.is_final(1, "Approved")


async def test_p1_rejection(stage: Visit) -> None:
    await stage.ask("#approval")
    await stage.decide(await stage.next_card(), ActionId.REJECT, why="too far")
    await stage.stage.said("^It was rejected")
    await stage.is_final(1, "Rejected")


async def test_p2_review_and_edit(stage: Visit) -> None:
    await stage.ask("#review-edit")
    await stage.decide(await stage.next_card(), ActionId.EDIT, location="Rome")
    await stage.stage.said("^Done, as a person changed it: Martin has a ticket to Rome")
    await stage.is_final(1, "Rome")


async def test_p2_no_need_to_edit_and_rejection(stage: Visit) -> None:
    await stage.ask("#review-edit")
    await stage.decide(await stage.next_card(), ActionId.APPROVE)
    await stage.stage.said(r"^Done\.$")
    await stage.ask("#review-edit", "book a ticket for Nora to Rome, phone 555-1234")
    await stage.decide(await stage.next_card("Nora"), ActionId.REJECT, why="no money left")
    await stage.stage.said("^It was rejected")


async def test_p3_feedback_loop(stage: Visit) -> None:
    root = await stage.ask("#feedback")
    card = await stage.next_card("pound for pound")
    await stage.decide(card, ActionId.ANSWER, what_should="shorter")
    await stage.is_final(1, "shorter")
    card = await stage.next_card("you do what others never would")
    assert "pound for pound" not in str(card)
    await stage.stage.say("Ada", "mention butter", thread_ts=root)
    await stage.decide(await stage.next_card("mention butter"), ActionId.ACCEPT)
    await stage.is_final(3, "Approved by")
    assert len(stage.stage.cards()) == 3


async def test_p4_follow_up_restarted(stage: Visit) -> None:
    root = await stage.ask("#follow-up")
    card = await stage.next_card("What do you like")
    await stage.decide(
        card,
        ActionId.ANSWER,
        what_do="museums, and food",
        how_much="I do not know yet",
        who_travels="my sister",
    )
    await stage.next_card("Please write a number")
    await stage.restart()
    await stage.stage.say("Ada", "200", thread_ts=root)
    await stage.stage.said(r"New York City, 3 days.*likes museums, food; at most 200 USD")


async def test_p5_supervisor_restarted(stage: Visit) -> None:
    await stage.ask("#supervisor")
    card = await stage.next_card("Transfer 500")
    await stage.restart()
    await stage.decide(card, ActionId.APPROVE)
    await stage.stage.said(
        "(?s)^All in all.*The balance of checking is 5000 USD.*"
        "Successfully transferred 500.00 USD from checking to savings"
    )


async def test_p5_rejection(stage: Visit) -> None:
    await stage.ask("#supervisor")
    await stage.decide(await stage.next_card(), ActionId.REJECT, why="over the limit")
    await stage.stage.said("(?s)^All in all.*The transfer of 500 .* was rejected.*over the limit")


async def test_p6_plan_execute_replan_restarted(stage: Visit) -> None:
    await stage.ask("#plan")
    card = await stage.next_card("Book a flight from Berlin to Tokyo")
    await stage.restart()
    await stage.decide(card, ActionId.APPROVE)
    card = await stage.next_card("Book a hotel in Tokyo")
    await stage.restart()
    await stage.decide(card, ActionId.EDIT, check_out="2027-10-20")
    await stage.stage.said("(?s)^This is what came of your trip.*booked from .* to 2027-10-20")
    assert sum("is booked, 1 seat" in text for text in stage.stage.texts()) == 2  # step, summary


async def test_p6_an_edit_that_does_not_fit_is_refused_in_the_form(stage: Visit) -> None:
    await stage.ask("#plan")
    card = await stage.next_card("Book a flight")
    await stage.stage.click("Ada", card, str(ActionId.EDIT))
    view = await stage.stage.modal("Ada")
    ada = stage.stage.user("Ada")
    outcome = await stage.stage.sandbox.submit(ada, view, filled(view, {"passengers": "12"}))
    assert outcome["response_action"] == "errors"
    assert buttons(await stage.stage.card())


async def test_p6_rejection_changes_the_plan(stage: Visit) -> None:
    await stage.ask("#plan")
    await stage.decide(await stage.next_card("Book a flight"), ActionId.REJECT, why="too far")
    await stage.stage.said("There is no flight, so I booked no hotel either")
    assert len(stage.stage.cards()) == 1


async def test_p7_deep_agent(stage: Visit) -> None:
    await stage.ask("#deep")
    card = await stage.next_card("Which period")
    await stage.decide(
        card, ActionId.ANSWER, which_period="2024", which_region="Europe", what_shall="to invest"
    )
    await stage.stage.said("(?s)^The analysis of.*growth of about 26 percent")
    await stage.is_final(1, "Europe")


async def test_p8_supervisor_over_plan_execute_restarted(stage: Visit) -> None:
    await stage.ask("#project")
    card = await stage.next_card("Allocate 150000 USD")
    await stage.restart()
    await stage.decide(card, ActionId.APPROVE)
    await stage.stage.said("Alice, Bob, Charlie work on Customer Portal")
    await stage.stage.said("^All in all, for Customer Portal: The project is set up")


async def test_p8_rejection(stage: Visit) -> None:
    await stage.ask("#project")
    await stage.decide(await stage.next_card(), ActionId.REJECT, why="no money")
    await stage.stage.said("^All in all, for Customer Portal: There is no budget")


async def test_graph_approval_node_restarted(stage: Visit) -> None:
    await stage.ask("#graph")
    card = await stage.next_card("Delete the record 42")
    await stage.restart()
    await stage.decide(card, ActionId.APPROVE)
    await stage.stage.said("The record 42 is deleted")
    await stage.ask("#graph", "delete record 43")
    await stage.decide(await stage.next_card("43"), ActionId.REJECT, why="keep it")
    await stage.stage.said("The record 43 stays")


async def test_graph_form(stage: Visit) -> None:
    root = await stage.ask("#graph", "onboard Nora")
    card = await stage.next_card("What does Nora need")
    await stage.decide(
        card, ActionId.ANSWER, laptop="13 inch", monitors="2", first_day="2027-01-04"
    )
    await stage.next_card("Who is the mentor of Nora")
    await stage.stage.say("Ada", "Ben", thread_ts=root)
    await stage.stage.said("(?s)^Ordered for Nora.*laptop: 13 inch.*mentor: Ben")


async def test_graph_breakpoint_with_an_edit(stage: Visit) -> None:
    await stage.ask("#graph", "newsletter about our new office")
    card = await stage.next_card("Recipients")
    await stage.decide(card, ActionId.EDIT, recipients="12")
    await stage.stage.said("Sent “News about our new office” to 12 people")


async def test_graph_breakpoint_refused(stage: Visit) -> None:
    await stage.ask("#graph", "newsletter about our new office")
    await stage.decide(await stage.next_card(), ActionId.REJECT, why="not now")
    await stage.stage.said("not now")
    assert not [text for text in stage.stage.texts() if text.startswith("Sent")]


async def test_graph_loop(stage: Visit) -> None:
    root = await stage.ask("#graph", "slogan for a bakery")
    await stage.next_card("The best bakery")
    await stage.stage.say("Ada", "with fresh bread", thread_ts=root)
    await stage.next_card("with fresh bread")
    await stage.stage.say("Ada", "good", thread_ts=root)
    await stage.stage.said("The slogan is: The best bakery, with fresh bread!")


async def test_graph_approvals_side_by_side(stage: Visit) -> None:
    await stage.ask("#graph", "release 2.0.0")
    await stage.stage.card(number=3, word="countersign:approve")
    by_name = {
        name: card
        for card in stage.stage.cards()
        for name in ("Quality", "Security", "Legal")
        if name in str(card["blocks"])
    }
    await stage.decide(by_name["Legal"], ActionId.APPROVE)
    await stage.decide(by_name["Quality"], ActionId.APPROVE)
    await stage.restart()
    await stage.decide(by_name["Security"], ActionId.REJECT, why="a hole")
    await stage.stage.said("2.0.0 is not released .Legal: yes; Quality: yes; Security: no")


@pytest.mark.parametrize(
    ("action", "typed", "words"),
    [
        (ActionId.APPROVE, {}, r"^Done\.$"),
        (ActionId.IGNORE, {}, "put aside"),
        (ActionId.RESPOND, {"what": "call her"}, "I did not send it. I was told: call her"),
        (
            ActionId.EDIT,
            {"text": "Tuesday"},
            "^Done, as a person changed it: sent to nora@acme.example",
        ),
    ],
)
async def test_react(stage: Visit, action: ActionId, typed: dict[str, str], words: str) -> None:
    await stage.ask("#react")
    card = await stage.next_card()
    assert "Goes outside Acme" in card["blocks"][0]["text"]["text"]
    await stage.decide(card, action, **typed)
    await stage.stage.said(words)
    if words.startswith("^Done"):
        await stage.is_final(1, typed.get("text", "the office moves on Monday"))


async def test_elsewhere_the_on_call_agent_works(stage: Visit) -> None:
    await stage.ask("#ops", "status of payments")
    await stage.stage.said("payments is healthy")


async def test_other_words_get_a_hint(stage: Visit) -> None:
    await stage.ask("#supervisor", "hello")
    await stage.stage.said("write something like")


async def test_limit(stage: Visit) -> None:
    await stage.ask("#limit")
    card = await stage.next_card(word="Go on with another 200 tokens")
    assert "of 200 tokens" in str(card)
    await stage.decide(card, ActionId.APPROVE)
    await stage.stage.said("I have read 6 pages")
