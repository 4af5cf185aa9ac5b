"""While nobody decides: claims, questions, snoozes, people away, and the ladder to the end."""

from __future__ import annotations

from playwright.async_api import expect

from slack_sandbox import ADA, BEN, MIA, ROSA
from tests.browser.players import PATIENCE_MS, Player, demo, player
from tests.browser.test_page import browser, pytestmark

__all__ = ["browser", "demo", "player", "pytestmark"]


async def test_claim_and_let_go(player: Player) -> None:
    await player.ask("deploy web 1.1.0 to production", shows="Needs approval")
    await player.become(ADA)
    await player.press("more")
    await player.look("menu")
    await player.page.get_by_role("menuitem", name="I'm on it").click()
    await player.sees("is on it")
    await player.look("claimed")
    await player.become(BEN)
    await player.pick("I'm not on it")
    await expect(player.private.last).to_be_visible()
    await player.look("not-mine")
    await player.become(ADA)
    await player.pick("I'm not on it")
    await player.sees("Needs approval")
    await player.look("let-go")
    await player.pick("Snooze")
    await player.look("snooze-form")
    await player.submit()
    await expect(player.form).to_have_count(0)
    await player.look("snoozed")
    await player.press("approve")
    await player.sees("web 1.1.0 is live")


async def test_question_is_asked_back(player: Player) -> None:
    await player.ask("deploy web 1.2.0 to production", shows="Needs approval")
    await player.become(ADA)
    await player.pick("Ask a question")
    await player.look("form")
    await player.form.locator("textarea").fill("Did the tests of 1.2.0 pass?")
    await player.submit()
    await player.sees("asked")
    await player.look("asked")
    await player.become(ROSA)
    await player.look("requester")
    await player.reply("Yes, all of them, an hour ago.")
    await player.sees("A: Yes, all of them, an hour ago.")
    await player.look("answered")
    await player.become(ADA)
    await player.press("approve")
    await player.sees("web 1.2.0 is live")
    await player.look("ran")


async def test_right_is_handed_over_by_command_and_from_home(player: Player) -> None:
    await player.become(ADA, thread="")
    await player.write("/countersign delegate @mia until tomorrow")
    await expect(player.private.last).to_contain_text("@Mia Chen can decide for you")
    await player.look("delegated")
    await player.ask("deploy web 1.3.0 to production", shows="Needs approval")
    await player.become(MIA)
    await player.press("approve")
    await player.sees("Approved by @Mia Chen for @Ada Lind")
    await player.look("for-ada")
    await player.talk_to_bot(ADA, tab="home")
    home = player.page.get_by_test_id("home-view")
    await expect(home).to_contain_text("Mia Chen decides for you until")
    await expect(home.get_by_role("button", name="End delegation")).to_be_visible()
    await player.look("home")
    await player.become(ADA, thread="")
    await player.write("/countersign delegate off")
    await expect(player.private.last).to_contain_text("can no longer decide for you")
    await player.look("ended")
    await player.write("/countersign away until tomorrow")
    await expect(player.private.last).to_contain_text("You won't be mentioned until")
    await player.look("away")
    await player.talk_to_bot(ADA, tab="home")
    await expect(home).to_contain_text("Away until", timeout=PATIENCE_MS)
    await player.look("home-away")
    await player.become(ADA, thread="")
    await player.write("/countersign back")
    await expect(player.private.last).to_contain_text("Welcome back")
    await player.look("back")


async def test_ladder_to_the_end(player: Player) -> None:
    await player.ask("deploy ladder 1.0.0 to production", shows="Needs approval")
    await player.look("asked")
    await player.skip("next")
    await player.sees("Still waiting")
    await player.look("reminded")
    await player.skip("3600")
    await player.sees("Escalated to backup")
    await player.look("backup")
    await player.skip("86400")
    await player.sees("no one decided")
    await player.look("expired")
