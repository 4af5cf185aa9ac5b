"""What a stranger does in the first five minutes, in a real browser against the real bot."""

from __future__ import annotations

import re
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, async_playwright, expect

from tests.browser.players import PATIENCE_MS, turn_to
from tests.browser.shots import shot
from tests.support.stage import Stage, a_stage

BROWSER = next(
    (
        path
        for name in ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
        if (path := shutil.which(name))
    ),
    None,
)
"""The shell alone, where it is there: a window takes a tenth of the processor time, as nobody has
to draw bars and menus around the page."""

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(BROWSER is None, reason="no chromium on this machine"),
    pytest.mark.asyncio(loop_scope="session"),  # that of the browser
]


@pytest_asyncio.fixture(loop_scope="session")
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with a_stage(tmp_path, "socket") as opened:
        opened.clock.follow()
        yield opened


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """One for all tests; each has a profile of its own in it."""
    expect.set_options(timeout=PATIENCE_MS)
    async with async_playwright() as playwright:
        opened = await playwright.chromium.launch(
            executable_path=BROWSER, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield opened
        await opened.close()


@pytest_asyncio.fixture(
    params=[(1280, 800), (390, 844)], ids=["desk", "phone"], loop_scope="session"
)
async def page(
    request: pytest.FixtureRequest, browser: Browser, stage: Stage
) -> AsyncIterator[Page]:
    width, height = request.param
    async with await browser.new_context(viewport={"width": width, "height": height}) as profile:
        page = await profile.new_page()
        page.set_default_timeout(PATIENCE_MS)
        yield page
        name = request.node.name.replace("[", "-").replace("]", "")
        await shot(page, f"{name}")


async def act_as(page: Page, stage: Stage, name: str, *, thread: str = "") -> None:
    """Open the page as one of the five people."""
    where = f"?as={stage.user(name)}&channel={stage.channel}"
    more = f"&thread={thread}" if thread else ""
    await turn_to(page, f"{stage.sandbox.url}/{where}{more}")
    await expect(page.get_by_test_id("person-switch")).to_contain_text(name)


async def open_tool(page: Page, name: str, key: str = "") -> None:
    """Open a panel of the top bar; on a phone they are in a menu of their own."""
    tools = page.get_by_test_id("tools-toggle")
    if await tools.is_visible():
        await (tools.press(key) if key else tools.click())
    opener = page.get_by_test_id(f"{name}-toggle")
    await (opener.press(key) if key else opener.click())


async def expect_back(page: Page, name: str) -> None:
    """The focus is where a panel was opened from."""
    tools = page.get_by_test_id("tools-toggle")
    opener = tools if await tools.is_visible() else page.get_by_test_id(f"{name}-toggle")
    await expect(opener).to_be_focused()


async def ask(page: Page, stage: Stage, text: str) -> str:
    """Write as Rosa in the channel; return the root of the thread."""
    await act_as(page, stage, "Rosa")
    composer = page.get_by_test_id("composer")
    await composer.fill(f"@countersign {text}")
    await composer.press("Enter")
    card = await stage.card()
    return str(card["thread_ts"])


async def expect_only_details(page: Page) -> None:
    """Nothing is left to decide, in the thread or in the channel; a card can still be looked up."""
    details = '[data-action-id="countersign:details"]'
    await expect(page.get_by_test_id("thread-pane").locator(details)).to_have_count(1)
    await expect(page.locator(f"[data-action-id]:not({details})")).to_have_count(0)


async def test_approve(page: Page, stage: Stage) -> None:
    thread = await ask(page, stage, "deploy payments 1.4.2 to production")
    await act_as(page, stage, "Ada", thread=thread)
    await page.locator('[data-testid="thread-pane"] [data-action-id="countersign:approve"]').click()
    pane = page.get_by_test_id("thread-pane")
    await expect(pane).to_contain_text("payments 1.4.2 is live in production")
    await expect(pane).to_contain_text("Approved by @Ada Lind")
    await expect_only_details(page)


async def test_reject_with_a_reason(page: Page, stage: Stage) -> None:
    thread = await ask(page, stage, "deploy payments 1.4.2 to production")
    await act_as(page, stage, "Ada", thread=thread)
    await page.locator('[data-testid="thread-pane"] [data-action-id="countersign:reject"]').click()
    await page.get_by_test_id("modal").get_by_role("radio", name="Not now").check()
    await page.get_by_test_id("modal").locator("textarea").fill("Freeze until Monday")
    await page.get_by_test_id("modal-submit").click()
    pane = page.get_by_test_id("thread-pane")
    await expect(pane).to_contain_text("Rejected by @Ada Lind")
    await expect(pane).to_contain_text("You can ask me again later.")
    await expect(pane.get_by_text("Freeze until Monday")).to_have_count(1)  # on the card alone
    await expect_only_details(page)


async def test_edit_with_a_wrong_value_first(page: Page, stage: Stage) -> None:
    thread = await ask(page, stage, "deploy payments 1.4.2 to production")
    await act_as(page, stage, "Ada", thread=thread)
    await page.locator('[data-testid="thread-pane"] [data-action-id="countersign:edit"]').click()
    modal = page.get_by_test_id("modal")
    await modal.get_by_label("version").fill("1.4.3")
    await modal.get_by_label("replicas").fill("many")
    await page.get_by_test_id("modal-submit").click()
    await expect(page.get_by_test_id("field-error")).to_contain_text("whole number")
    await expect(modal.get_by_label("version")).to_have_value("1.4.3")
    await modal.get_by_label("replicas").fill("5")
    await page.get_by_test_id("modal-submit").click()
    pane = page.get_by_test_id("thread-pane")
    await expect(pane).to_contain_text("payments 1.4.3 is live in production with 5 replicas")
    edited = re.compile(r"Edited by @Ada Lind\s*·\s*ran \d")
    card = pane.locator("article.message").filter(has_text=edited)
    await expect(card).to_have_count(1)
    await expect(card).to_contain_text("Deploy payments 1.4.3 to production")
    await expect(card).to_contain_text("Version 1.4.2 → 1.4.3")
    await expect(card).to_contain_text("Replicas 3 → 5")
    await expect(pane).not_to_contain_text("Deploy payments 1.4.2 to production")
    await expect_only_details(page)


async def test_a_reply_answers_then_a_card(page: Page, stage: Stage) -> None:
    thread = await ask(page, stage, "deploy payments")
    await act_as(page, stage, "Rosa", thread=thread)
    reply = page.get_by_test_id("thread-composer")
    await reply.fill("1.4.2, production")
    await reply.press("Enter")
    pane = page.get_by_test_id("thread-pane")
    await expect(pane).to_contain_text("Deploy payments 1.4.2 to production")
    await expect(
        page.locator('[data-testid="thread-pane"] [data-action-id="countersign:answer"]')
    ).to_have_count(0)
    await page.locator('[data-testid="thread-pane"] [data-action-id="countersign:approve"]').click()
    await expect(page.get_by_test_id("ephemeral")).to_contain_text("approve your own request")


async def two_cards(page: Page, stage: Stage, thread: str) -> None:
    """Give each of two calls that share a card its own, as Ben."""
    await stage.card(word="Deploy search")
    await act_as(page, stage, "Ben", thread=thread)
    await page.locator('[data-testid="thread-pane"] [data-action-id="countersign:more"]').click()
    await page.get_by_role("menuitem", name="Split into cards").click()
    await stage.card(number=3)


async def test_stop_cancels_what_waits(page: Page, stage: Stage) -> None:
    thread = await ask(page, stage, "deploy payments 1.4.2 and search 2.0.1 to production")
    await two_cards(page, stage, thread)
    await act_as(page, stage, "Rosa", thread=thread)
    reply = page.get_by_test_id("thread-composer")
    await reply.fill("stop")
    await reply.press("Enter")
    pane = page.get_by_test_id("thread-pane")
    await expect(pane.get_by_text("Cancelled")).to_have_count(2)
    await expect(pane.locator('[data-action-id="countersign:approve"]')).to_have_count(0)


async def test_two_cards_second_decided_first(page: Page, stage: Stage) -> None:
    thread = await ask(page, stage, "deploy payments 1.4.2 and search 2.0.1 to production")
    await two_cards(page, stage, thread)
    approve = page.locator('[data-testid="thread-pane"] [data-action-id="countersign:approve"]')
    await expect(approve).to_have_count(2)
    await approve.nth(1).click()
    await expect(approve).to_have_count(1)
    pane = page.get_by_test_id("thread-pane")
    await expect(pane).to_contain_text("Approved by @Ben Okafor")
    await approve.click()
    await expect(pane).to_contain_text("payments 1.4.2 is live")
    await expect(pane).to_contain_text("search 2.0.1 is live")
    await expect(approve).to_have_count(0)
