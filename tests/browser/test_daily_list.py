"""The daily list in a browser: five wait, one message; and the form that says when none comes."""

from __future__ import annotations

from pathlib import Path

from playwright.async_api import Browser, expect

from slack_sandbox import ADA
from tests.browser.players import DESK, PATIENCE_MS, POLICY, Player, a_demo
from tests.browser.test_page import browser, pytestmark

__all__ = ["browser", "pytestmark"]


async def test_five_that_wait_are_one_list_that_stays_true(
    browser: Browser, tmp_path: Path
) -> None:
    async with (
        a_demo(tmp_path, policy=str(POLICY), daily_list="yes") as url,
        await browser.new_context(viewport=DESK, reduced_motion="reduce") as profile,
    ):
        page = await profile.new_page()
        page.set_default_timeout(PATIENCE_MS)
        player = Player(page, url, "list")
        for number in range(5):
            await player.ask(f"deploy billing 1.4.{number} to production", shows="Needs approval")
        for _ in range(2):  # reminders of high risk go first; the list comes an hour later
            await player.skip("3600")
        await player.talk_to_bot(ADA, tab="messages")
        messages = page.get_by_test_id("messages")
        await expect(messages).to_contain_text(
            "5 requests are waiting for you", timeout=PATIENCE_MS
        )
        await player.look("five")

        await messages.locator('[data-action-id="countersign:details"]').first.click()
        await expect(player.form).to_contain_text("billing 1.4.0")
        await player.submit()
        await player.skip("900")
        await expect(messages).to_contain_text("4 of 5 still waiting for you", timeout=PATIENCE_MS)
        await player.look("four")

        await player.talk_to_bot(ADA, tab="home")
        await page.locator('[data-action-id="countersign:home_messages"]').click()
        await expect(player.form).to_contain_text("Daily list")
        await player.look("form")
