"""The means of deciding, as people use them: real clicks, each step looked at in two sizes."""

from __future__ import annotations

from playwright.async_api import expect

from slack_sandbox import ADA, BEN, FINANCE, MIA, ROSA
from tests.browser.players import Player, demo, player
from tests.browser.test_page import browser, pytestmark

__all__ = ["browser", "demo", "player", "pytestmark"]


async def test_quorum_of_two_groups(player: Player) -> None:
    await player.ask("deploy payments 1.4.2 to production", shows="Needs approval")
    await player.look("asked")
    await player.press("approve")
    await player.look("confirm")
    await player.agree()
    await expect(player.private.last).to_contain_text("can't approve your own request")
    await player.look("own")
    await player.become(ADA)
    await player.press("approve")
    await player.agree()
    await player.sees("1 of 3 approvals")
    await player.look("one")
    await player.become(MIA)
    await player.press("approve")
    await player.agree()
    await player.sees("2 of 3 approvals")
    await player.look("two")
    await player.become(ADA)
    await player.pick("Details")
    await player.look("review-of-a-voter")
    await player.page.keyboard.press("Escape")
    await player.become(BEN)
    await player.press("approve")
    await player.agree()
    await player.sees("payments 1.4.2 is live in production")
    await player.look("ran")


async def test_second_stage(player: Player) -> None:
    await player.ask("deploy search 2.1.0 to production", shows="Stage 1 of 2")
    await player.look("asked")
    await player.become(MIA)
    await player.press("approve")
    await expect(player.private.last).to_contain_text("turn")
    await player.look("not-your-turn")
    await player.become(BEN)
    await player.press("approve")
    await player.sees("Stage 2 of 2")
    await player.look("second")
    await player.become(MIA)
    await player.press("approve")
    await player.sees("search 2.1.0 is live")
    await player.look("ran")


async def test_card_in_another_channel(player: Player) -> None:
    await player.ask("deploy ledger 3.0.0 to production", shows="#finance")
    await player.look("line")
    await player.become(MIA, channel=FINANCE, thread="")
    messages = player.page.get_by_test_id("messages")
    await expect(messages).to_contain_text("Deploy ledger 3.0.0 to production")
    await player.look("card")
    await player.press("approve", within=messages)
    await expect(messages).to_contain_text("Approved by @Mia Chen")
    await player.look("decided")
    await player.become(ROSA)
    await player.sees("ledger 3.0.0 is live in production")
    await player.look("answer")


async def test_direct_messages_are_redrawn_together(player: Player) -> None:
    await player.ask("deploy mail 1.0.0 to production", shows="Asked")
    await player.look("line")
    await player.talk_to_bot(BEN)
    messages = player.page.get_by_test_id("messages")
    await expect(messages).to_contain_text("Deploy mail 1.0.0 to production")
    await player.look("ben")
    await player.talk_to_bot(ADA)
    await player.look("ada")
    await player.press("approve", within=messages)
    await expect(messages).to_contain_text("Approved by")
    await player.look("ada-decided")
    await player.talk_to_bot(BEN)
    await expect(messages).to_contain_text("Approved by @Ada Lind")
    await player.look("ben-decided")
    await player.become(ROSA)
    await player.sees("mail 1.0.0 is live in production")
    await player.look("answer")


async def test_asked_in_a_direct_message(player: Player) -> None:
    await player.talk_to_bot(ROSA)
    await player.write("deploy cache 7.3.0 to production")
    await player.open_last()
    await player.sees("Asked")
    await player.look("asked")
    await player.talk_to_bot(BEN)
    messages = player.page.get_by_test_id("messages")
    await expect(messages).to_contain_text("Deploy cache 7.3.0 to production")
    await player.look("card")
    await player.press("approve", within=messages)
    await expect(messages.locator('[data-action-id="countersign:approve"]')).to_have_count(0)
    await player.talk_to_bot(ROSA)
    await player.open_last()
    await player.sees("cache 7.3.0 is live in production")
    await player.look("answer")
