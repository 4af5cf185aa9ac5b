"""A request and its decision by the keyboard alone, in a real browser against the real bot."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio
from playwright.async_api import Browser, Page, Route, ViewportSize, expect

from tests.browser.players import PATIENCE_MS, turn_to
from tests.browser.shots import shot
from tests.browser.test_page import browser, pytestmark, stage
from tests.support.stage import Stage

__all__ = ["browser", "pytestmark", "stage"]

MOST_TABS = 120
PANE = '[data-testid="thread-pane"]'
IS_SEEN = """() => {
    const node = document.activeElement;
    const { outlineStyle, boxShadow } = getComputedStyle(node);
    const isItself = outlineStyle !== "none" || boxShadow !== "none";
    return isItself || node === document.body || node.closest(".composer") !== null;
}"""


@pytest_asyncio.fixture(loop_scope="session")
async def page(browser: Browser) -> AsyncIterator[Page]:
    size = ViewportSize(width=1280, height=800)
    async with await browser.new_context(viewport=size) as profile:
        page = await profile.new_page()
        page.set_default_timeout(PATIENCE_MS)
        yield page
        await shot(page, "test_keyboard")


async def tab_to(page: Page, selector: str, key: str = "Tab") -> None:
    """Press Tab until something has the focus; each thing on the way shows that it has it."""
    for _ in range(MOST_TABS):
        await page.keyboard.press(key)
        focused = await page.evaluate("document.activeElement.outerHTML.slice(0, 200)")
        assert await page.evaluate(IS_SEEN), focused
        if await page.evaluate("one => document.activeElement.matches(one)", selector):
            return
    raise AssertionError(f"{selector} is not reached")


async def test_request_and_decision_by_the_keyboard_alone(page: Page, stage: Stage) -> None:
    await page.goto(f"{stage.sandbox.url}/?as={stage.user('Rosa')}&channel={stage.channel}")
    await expect(page.get_by_test_id("person-switch")).to_contain_text("Rosa")
    await tab_to(page, ".skip")
    await page.keyboard.press("Enter")
    await expect(page.get_by_test_id("composer")).to_be_focused()
    await page.keyboard.type("@countersign deploy payments 1.4.2 to production")
    await page.keyboard.press("Enter")
    reject = f'{PANE} [data-action-id="countersign:reject"]'
    await expect(page.locator(reject)).to_be_visible()
    await tab_to(page, '[data-testid="person-switch"]')
    await page.keyboard.press("Enter")
    await page.keyboard.press("ArrowDown")
    await expect(page.get_by_test_id(f"person-option-{stage.user('Ada')}")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.get_by_test_id("person-switch")).to_contain_text("Ada")
    await expect(page.locator(reject)).to_be_visible()
    await tab_to(page, reject)
    await page.keyboard.press("Enter")
    modal = page.get_by_test_id("modal")
    await expect(page.get_by_test_id("modal-cancel")).to_be_visible()
    for key in ["Tab"] * 12 + ["Shift+Tab"] * 12:
        await page.keyboard.press(key)
        assert await modal.evaluate("node => node.contains(document.activeElement)")
    await page.keyboard.press("Escape")
    await expect(modal).to_have_count(0)
    await expect(page.locator(reject)).to_be_focused()
    await tab_to(page, f'{PANE} [data-action-id="countersign:approve"]', "Shift+Tab")
    await page.keyboard.press("Enter")
    confirm, decided = page.get_by_test_id("confirm-accept"), page.locator(PANE).get_by_text("live")
    await expect(confirm.or_(decided).first).to_be_visible()
    if await confirm.is_visible():
        await expect(confirm).to_be_focused()
        await page.keyboard.press("Enter")
    await expect(page.locator(PANE)).to_contain_text("payments 1.4.2 is live in production")


async def test_the_thread_opens_though_the_bot_is_faster_than_the_sandbox(
    page: Page, stage: Stage
) -> None:
    """The bot answers before the window is told the `ts` of the message that it has sent."""
    await page.goto(f"{stage.sandbox.url}/?as={stage.user('Rosa')}&channel={stage.channel}")
    card = page.get_by_role("heading", name="Deploy payments 2.7.1 to production")

    async def late(route: Route) -> None:
        answer = await route.fetch()
        await expect(card.first).to_be_visible()
        await route.fulfill(response=answer)

    await page.route("**/sandbox/post", late)
    await page.get_by_test_id("composer").fill("@countersign deploy payments 2.7.1 to production")
    await page.keyboard.press("Enter")
    await expect(page.locator(f'{PANE} [data-action-id="countersign:reject"]')).to_be_visible()


async def test_a_late_answer_opens_no_thread_for_who_came_after(page: Page, stage: Stage) -> None:
    """Rosa sends, and Ada takes her seat before the window is told the `ts` of the message."""
    await page.goto(f"{stage.sandbox.url}/?as={stage.user('Rosa')}&channel={stage.channel}")

    async def late(route: Route) -> None:
        answer = await route.fetch()
        await turn_to(page, f"{stage.sandbox.url}/?as={stage.user('Ada')}&channel={stage.channel}")
        await expect(page.get_by_test_id("person-switch")).to_contain_text("Ada")
        await expect(page.locator(".thread-count")).to_be_visible()
        await route.fulfill(response=answer)

    await page.route("**/sandbox/post", late)
    composer = page.get_by_test_id("composer")
    await composer.fill("@countersign deploy payments 2.7.1 to production")
    async with page.expect_response("**/sandbox/post") as answers:
        await page.keyboard.press("Enter")
    await (await answers.value).finished()
    for _ in range(3):
        await page.evaluate("() => new Promise(requestAnimationFrame)")
    await expect(page.locator(".thread-count")).to_be_visible()
    await expect(page.locator(PANE)).to_be_hidden()
