"""The silence ladder through Slack's own payloads: reminder, escalation, and who may click when."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from slack_sandbox.workspace.people import ADA, BEN
from tests.support.stage import APPROVE, Stage, a_stage, buttons


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    settings = {
        "COUNTERSIGN_APPROVERS": ADA,
        "COUNTERSIGN_REMIND_AFTER": "20m",
        "COUNTERSIGN_ESCALATE_AFTER": "50m",
        "COUNTERSIGN_ESCALATE_TO": BEN,
        "COUNTERSIGN_EXPIRE_AFTER": "2h",
    }
    async with a_stage(tmp_path, "socket", **settings) as opened:
        yield opened


def mentions(stage: Stage) -> list[tuple[int, int]]:
    """How often Ada and Ben are mentioned in each message that asks, beside the card."""
    cards = {card["ts"] for card in stage.cards()}
    posts = [
        str(message["blocks"])
        for message in stage.messages()
        if message["ts"] not in cards and "; then nothing runs." in message["text"]
    ]
    return [(post.count(ADA), post.count(BEN)) for post in posts]


async def after(stage: Stage, minutes: int, pattern: str, posts: int) -> None:
    """Time passes, the bot looks for due work, and says something."""
    await stage.later(minutes=minutes)
    await stage.until_retried(lambda: len(mentions(stage)) == posts)
    await stage.said(pattern)


async def test_the_ladder(stage: Stage) -> None:
    card = await stage.asked("@countersign deploy payments 1.4.2 to production", word=APPROVE)
    await stage.click("Ben", card, APPROVE)
    await stage.whispered("Ben", "Until then, <@U0ADALINDQ> can")

    await after(stage, 21, "Still waiting for you", 1)
    await after(stage, 30, "Still undecided", 2)
    card = await stage.card(word="Escalated to backup")
    assert (str(card).count(f"<@{ADA}>"), str(card["blocks"]).count(f"<@{BEN}>")) == (1, 1)
    await stage.later(minutes=11)
    await stage.until_retried(lambda: mentions(stage) == [(0, 1), (1, 1)])

    await stage.click("Mia", card, APPROVE)
    await stage.whispered("Mia", "not an approver")
    await stage.click("Ben", card, APPROVE)
    await stage.said("1.4.2.*production")
    final = await stage.card(word="Approved")
    assert BEN in str(final)
    assert buttons(final) == []
    await stage.until_retried(lambda: mentions(stage) == [])
    # The card says how it ended: the reminder and the message to the backup people are gone.
    assert not [text for text in stage.texts() if f"<@{BEN}>: " in text]
    await stage.later(hours=3)
    assert mentions(stage) == []


async def test_an_expiry_is_told_once_below_the_card(stage: Stage) -> None:
    await stage.asked("@countersign deploy payments 1.4.2 to production", word=APPROVE)
    await after(stage, 21, "Still waiting for you", 1)
    await after(stage, 30, "Still undecided", 2)
    await stage.later(hours=2)
    await stage.card(word="Expired")
    await stage.rest()
    # Beside the card stand the agent's own words, before the call and after it.
    await stage.until_retried(lambda: len(stage.texts()) == 2)


async def test_a_restart_after_a_lost_answer(stage: Stage) -> None:
    """The message took effect, its answer was lost, and the bot is another one now."""
    await stage.asked("@countersign deploy payments 1.4.2 to production", word=APPROVE)
    stage.sandbox.faults.add("lost_answer", "chat.postMessage", times=1)
    await stage.later(minutes=51)
    await stage.until_retried(lambda: mentions(stage) != [])
    await stage.restart_bot()
    await stage.later(minutes=1)
    calls = stage.sandbox.calls
    await stage.until_retried(lambda: "conversations.replies" in {call.method for call in calls})
    await stage.later(minutes=1)
    await stage.click("Ben", await stage.card(word="Escalated to backup"), APPROVE)
    await stage.said("1.4.2.*production")
    assert len([text for text in stage.texts() if "Still undecided" in text]) == 1
