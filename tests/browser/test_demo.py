"""The demo as `make demo` starts it, in a real browser: its policy, and time that is skipped."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from slack_sandbox import ADA, BEN, MIA, OPS, ROSA
from tests.browser.players import NAMES, PATIENCE_MS, a_demo, turn_to
from tests.browser.shots import shot
from tests.browser.test_page import browser, expect_back, open_tool, pytestmark

__all__ = ["browser", "pytestmark"]

APPROVE = '[data-testid="thread-pane"] [data-action-id="countersign:approve"]'


@pytest_asyncio.fixture(loop_scope="session")
async def demo(tmp_path: Path) -> AsyncIterator[str]:
    """A demo; the address of its page."""
    async with a_demo(tmp_path) as url:
        yield url


@pytest_asyncio.fixture(
    params=[(1280, 800, "light"), (390, 844, "dark")], ids=["desk", "phone"], loop_scope="session"
)
async def page(request: pytest.FixtureRequest, browser: Browser, demo: str) -> AsyncIterator[Page]:
    width, height, scheme = request.param
    async with await browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme
    ) as profile:
        page = await profile.new_page()
        page.set_default_timeout(PATIENCE_MS)
        await page.goto(demo)
        yield page
        name = request.node.name.replace("[", "-").replace("]", "")
        await shot(page, f"{name}")


async def act_as(page: Page, demo: str, user: str, thread: str = "") -> None:
    """Open the page in #ops as somebody."""
    more = f"&thread={thread}" if thread else ""
    await turn_to(page, f"{demo}?as={user}&channel={OPS}{more}")
    await expect(page.get_by_test_id("person-switch")).to_contain_text(NAMES[user])


async def ask(page: Page, demo: str, text: str) -> str:
    """Write as Rosa in #ops, and wait for the card; return the root of the thread."""
    await act_as(page, demo, ROSA)
    composer = page.get_by_test_id("composer")
    words = f"@countersign {text}"
    await composer.fill(words)
    await composer.press("Enter")
    asked = page.get_by_test_id("messages").locator("article", has_text=words)
    opener = asked.locator('[data-testid^="thread-open-"]')
    thread = str(await opener.get_attribute("data-testid")).removeprefix("thread-open-")
    await act_as(page, demo, ROSA, thread)
    await expect(page.locator(APPROVE)).to_be_visible()
    return thread


async def approve(page: Page, demo: str, user: str, thread: str, *, is_risky: bool = False) -> None:
    """Press Approve as somebody, and say it once more where the risk is high."""
    await act_as(page, demo, user, thread)
    await page.locator(APPROVE).click()
    if is_risky:
        await page.get_by_role("alertdialog").get_by_role("button", name="Approve").click()


async def skip(page: Page, which: str) -> None:
    """Let time pass, by the keyboard alone."""
    await open_tool(page, "time", "Enter")
    button = page.get_by_test_id(f"time-{which}")
    await button.press("Enter")
    await expect(button).not_to_have_attribute("aria-busy", "true")
    await page.keyboard.press("Escape")
    await expect_back(page, "time")


async def test_staging_is_for_anybody_in_the_channel(page: Page, demo: str) -> None:
    thread = await ask(page, demo, "deploy search 2.0.1 to staging")
    await approve(page, demo, MIA, thread)
    await expect(page.get_by_test_id("thread-pane")).to_contain_text("search 2.0.1 is live")


async def test_production_takes_two_of_those_on_call(page: Page, demo: str) -> None:
    thread = await ask(page, demo, "deploy payments 1.4.2 to production")
    pane = page.get_by_test_id("thread-pane")
    await approve(page, demo, MIA, thread, is_risky=True)
    await expect(page.get_by_test_id("ephemeral")).to_be_visible()
    await approve(page, demo, ADA, thread, is_risky=True)
    await expect(pane).to_contain_text("1 of 2")
    await approve(page, demo, BEN, thread, is_risky=True)
    await expect(pane).to_contain_text("payments 1.4.2 is live in production")


async def test_large_refund_is_for_finance(page: Page, demo: str) -> None:
    thread = await ask(page, demo, "refund order 1234 120.50")
    await approve(page, demo, ADA, thread)
    await expect(page.get_by_test_id("ephemeral")).to_be_visible()
    await approve(page, demo, MIA, thread)
    await expect(page.get_by_test_id("thread-pane")).to_contain_text("120.50 EUR were refunded")


async def test_skipped_time_brings_the_reminder_the_wider_ask_and_the_expiry(
    page: Page, demo: str
) -> None:
    await ask(page, demo, "deploy payments 1.4.2 to production")
    messages = page.get_by_test_id("thread-pane").locator("article.message")
    beside_the_card = messages.filter(has_not=page.locator("[data-action-id]"))
    await skip(page, "next")
    await expect(page.get_by_test_id("time-ahead")).to_have_text(re.compile(r"^\+1\d min$"))
    await expect(beside_the_card.filter(has_text="@oncall")).to_have_count(1)
    await expect(beside_the_card.filter(has_text="@Mia Chen")).to_have_count(0)
    await skip(page, "3600")
    await expect(page.get_by_test_id("time-ahead")).to_have_text("+1 h")
    await expect(beside_the_card.filter(has_text="@Mia Chen")).to_have_count(1)
    await skip(page, "86400")
    label = "Skip ahead in time, 1 day 1 hour ahead"
    await expect(page.get_by_test_id("time-toggle")).to_have_attribute("aria-label", label)
    await expect(page.locator(APPROVE)).to_have_count(0)
    card = messages.filter(has=page.locator('[data-action-id="countersign:details"]'))
    await expect(card).to_contain_text(re.compile(r"Expired .*no one decided"))
    await expect(card).to_contain_text("Nothing ran")
    await expect(beside_the_card.filter(has_text="@oncall")).to_have_count(0)
    await expect(beside_the_card.filter(has_text="@Mia Chen")).to_have_count(0)
    await expect(messages.last).to_contain_text("no one answered in time")


async def test_panel_of_the_time_says_how_late_it_is(page: Page, demo: str) -> None:
    await page.locator('[data-action-id="countersign:approve"]').click()
    await expect(page.get_by_test_id("messages")).to_contain_text("payments 1.4.2 is live")
    await act_as(page, demo, ROSA)
    await open_tool(page, "time")
    panel = page.get_by_test_id("time")
    await expect(panel).to_be_in_viewport(ratio=1)
    note = page.get_by_test_id("time-told")
    await expect(note).to_contain_text("No time skipped")
    await expect(note).to_contain_text("Nothing due")
    await page.get_by_test_id("time-next").click()
    await expect(page.get_by_role("region", name="Notices")).to_contain_text("Nothing is due")
    await page.get_by_test_id("time-900").click()
    await expect(note).to_contain_text("15 minutes")
    assert await page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


async def test_a_freeze_is_played_by_the_examples_of_its_channel(page: Page, demo: str) -> None:
    async def try_example(number: int) -> None:
        await page.get_by_test_id("hint-example").nth(number).click()
        await page.get_by_test_id("composer").press("Enter")

    card = page.locator('[data-testid^="broadcast-"]')
    await turn_to(page, f"{demo}?as={ROSA}&channel=C0FREEZE00")
    await try_example(0)
    await expect(card).to_contain_text("Restart cache on 2026-12-01")
    await turn_to(page, f"{demo}?as={ADA}&channel=C0FREEZE00")
    await try_example(1)
    await expect(card).to_contain_text("Frozen by")
    await card.locator('[data-action-id="countersign:approve"]').click()
    await expect(card).to_contain_text("frozen, nothing starts")
    await try_example(2)
    await expect(card).to_contain_text("is planned for 2026-12-01")


async def test_a_script_outside_of_the_bot_asks_in_the_channel_of_programs(
    page: Page, demo: str
) -> None:
    await turn_to(page, f"{demo}?as={ROSA}&channel=C0PROGRAMS")
    await page.get_by_test_id("hint-example").first.click()
    await page.get_by_test_id("composer").press("Enter")
    await turn_to(page, f"{demo}?as={ADA}&channel=C0PROGRAMS")
    await expect(page.locator("body")).to_contain_text("Deploy payments 1.4.2 from CI")
    await expect(page.locator("body")).to_contain_text("the program ci (of")
    await page.locator('[data-action-id="countersign:approve"]').last.click()
    await expect(page.locator("body")).to_contain_text("Approved by")
    await page.get_by_text(re.compile(r"^\d+ replies")).click()
    await expect(page.locator("body")).to_contain_text("Deploying {'service': 'payments'")
