"""The guide of `make demo`: its first screen, its steps, and that it stays closed."""

from __future__ import annotations

from playwright.async_api import Page, expect

from slack_sandbox import ADA, ROSA
from tests.browser.players import DESK, PHONE
from tests.browser.shots import shot
from tests.browser.test_demo import browser, demo, page, pytestmark
from tests.browser.test_page import open_tool

__all__ = ["browser", "demo", "page", "pytestmark"]

APPROVE = '[data-action-id="countersign:approve"]'
STILL = """async node => {
  let moving;
  while ((moving = node.getAnimations().filter(each => each.playState === "running")).length)
    await Promise.allSettled(moving.map(each => each.finished));
}"""
"""Resolves when an element has stopped to move; what is drawn anew cancels its animation."""


async def follow(page: Page, text: str) -> None:
    """See the arrow with a text, and press what it points at."""
    arrow = page.get_by_test_id("guide-arrow")
    await expect(arrow).to_have_text(text)
    await expect(arrow).to_be_in_viewport(ratio=1)
    await arrow.evaluate(STILL)
    box = await arrow.bounding_box()
    assert box is not None
    tip = box["x"] + float(
        await arrow.evaluate("node => parseFloat(node.style.getPropertyValue('--tip'))")
    )
    is_above = await arrow.evaluate("node => node.classList.contains('above')")
    await page.mouse.click(tip, box["y"] + box["height"] + 22 if is_above else box["y"] - 22)


async def begin(page: Page, number: int) -> None:
    """Press a step of the strip."""
    await page.get_by_test_id(f"guide-step-{number}").click()


async def is_not_wide(page: Page) -> None:
    assert await page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


async def test_it_opens_as_ada_on_one_card_with_an_arrow_to_its_approval(page: Page) -> None:
    await expect(page.get_by_test_id("person-switch")).to_contain_text("Ada")
    await expect(page.get_by_test_id("guide-text")).to_contain_text("You are Ada")
    await expect(page.locator(APPROVE)).to_have_count(1)
    await expect(page.get_by_test_id("guide-arrow")).to_have_text("Press Approve")
    await is_not_wide(page)
    await shot(page, f"guide-first-{page.viewport_size}")
    await follow(page, "Press Approve")
    await expect(page.locator(APPROVE)).to_have_count(0)
    await expect(page.get_by_test_id("messages")).to_contain_text("payments 1.4.2 is live")
    await expect(page.get_by_test_id("guide-arrow")).to_be_hidden()
    await expect(page.get_by_test_id("guide-text")).to_contain_text("Try more")


async def test_a_notice_stands_below_the_guide(page: Page) -> None:
    await page.locator(APPROVE).click()
    await expect(page.get_by_test_id("messages")).to_contain_text("payments 1.4.2 is live")
    await open_tool(page, "time")
    await page.get_by_test_id("time-next").click()
    notice = page.get_by_test_id("notice").first
    await expect(notice).to_be_visible()
    await notice.evaluate(STILL)
    above, below = await page.get_by_test_id("guide").bounding_box(), await notice.bounding_box()
    assert above is not None
    assert below is not None
    assert above["y"] + above["height"] <= below["y"]


async def test_an_approval_in_another_channel_is_no_step(page: Page, demo: str) -> None:
    await page.goto(f"{demo}?as={ROSA}&channel=C0STAGES00")
    composer = page.get_by_test_id("composer")
    await composer.fill("@countersign deploy payments 1.4.2 to production")
    await composer.press("Enter")
    await page.goto(f"{demo}?as={ADA}&channel=C0STAGES00")
    await page.locator('[data-testid^="thread-open-"]').last.click()
    approve = page.get_by_test_id("thread-pane").locator(APPROVE)
    await expect(approve).to_be_visible()
    await expect(page.get_by_test_id("guide-arrow")).to_be_hidden()
    await approve.click()
    await expect(page.get_by_test_id("thread-pane")).to_contain_text("Stage 2 of 2")
    await expect(page.get_by_test_id("guide-text")).to_contain_text("You are Ada")


async def test_a_request_is_edited(page: Page) -> None:
    await begin(page, 1)
    await follow(page, "Change the call")
    form = page.get_by_test_id("modal")
    await form.get_by_label("Replicas").fill("5")
    await form.get_by_role("button", name="Approve with changes").click()
    await expect(page.get_by_test_id("thread-pane")).to_contain_text("Replicas 3 → 5")
    await expect(page.get_by_test_id("guide-step-1")).to_contain_text("done")


async def test_two_people_approve(page: Page) -> None:
    await begin(page, 2)
    await follow(page, "Approve as Ada")
    await page.get_by_test_id("confirm-accept").click()
    await expect(page.get_by_test_id("thread-pane")).to_contain_text("1 of 2 approvals")
    await shot(page, f"guide-two-{page.viewport_size}")
    await follow(page, "Act as Ben Okafor")
    await follow(page, "Act as Ben Okafor")  # in the menu
    await follow(page, "Approve as Ben, too")
    await page.get_by_test_id("confirm-accept").click()
    await expect(page.get_by_test_id("thread-pane")).to_contain_text("is live in production")
    await expect(page.get_by_test_id("guide-text")).to_contain_text("Two different people")


async def test_the_clock_brings_a_reminder(page: Page) -> None:
    await begin(page, 3)
    await expect(page.get_by_test_id("thread-pane").locator(APPROVE)).to_be_visible()
    if page.viewport_size == PHONE:
        await follow(page, "Open the clock")  # in the menu of tools
        await expect(page.get_by_test_id("time-toggle")).to_be_visible()
    await follow(page, "Open the clock")
    await follow(page, "Skip ahead, and watch the thread")
    await expect(page.get_by_test_id("thread-pane")).to_contain_text("Still waiting for you")


async def test_the_last_step_tells_how_to_run_an_own_agent(page: Page) -> None:
    await begin(page, 4)
    command = "COUNTERSIGN_AGENT=wifi:build PYTHONPATH=examples .venv/bin/countersign demo"
    await expect(page.get_by_test_id("guide")).to_contain_text(command)
    await expect(page.get_by_test_id("guide-step-4")).to_contain_text("done")
    await is_not_wide(page)


async def test_it_stays_closed_until_it_is_asked_for(page: Page, demo: str) -> None:
    guide = page.get_by_test_id("guide")
    await page.get_by_test_id("guide-close").click()
    await expect(guide).to_be_hidden()
    await expect(page.get_by_test_id("guide-arrow")).to_be_hidden()
    await expect(page.get_by_test_id("hint")).to_be_visible()
    await page.goto(f"{demo}?as={ROSA}")
    await expect(page.get_by_test_id("composer")).to_be_visible()
    await expect(guide).to_be_hidden()
    if page.viewport_size != DESK:
        await page.get_by_test_id("tools-toggle").click()
    await page.get_by_test_id("help-toggle").click()
    await page.get_by_test_id("help-guide").click()
    await expect(guide).to_be_visible()


async def test_a_thread_beside_its_channel_shows_a_card_once(page: Page) -> None:
    await page.locator('[data-testid^="thread-open-"]').first.click()
    shown = page.locator(APPROVE).filter(visible=True)
    await expect(page.get_by_test_id("thread-pane").locator(APPROVE)).to_be_visible()
    if page.viewport_size == DESK:
        await expect(shown).to_have_count(1)


async def test_sections_of_channels_are_folded_but_for_the_first(page: Page) -> None:
    if page.viewport_size == PHONE:
        await page.get_by_role("button", name="Channels and direct messages").click()
    rows = page.locator("#sidebar a")
    await expect(rows).to_have_count(4)
    await page.get_by_test_id("section-Patterns").click()
    await expect(rows).to_have_count(16)
    await page.reload()
    await expect(rows).to_have_count(16)
