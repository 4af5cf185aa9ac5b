"""The panel in which one lets Slack misbehave, in a real browser."""

from __future__ import annotations

import asyncio

from playwright.async_api import Page, Route, expect

from tests.browser.test_page import (
    act_as,
    ask,
    browser,
    expect_back,
    open_tool,
    page,
    pytestmark,
    stage,
)
from tests.support.stage import Stage

__all__ = ["browser", "page", "pytestmark", "stage"]


async def test_switches_work_by_keyboard_and_survive_a_reload(page: Page, stage: Stage) -> None:
    await act_as(page, stage, "Rosa")
    opener = page.get_by_test_id("trouble-toggle")
    await open_tool(page, "trouble", "Enter")
    switch = page.get_by_role("switch", name="Slow Slack")
    await expect(switch).to_have_accessible_description(
        "Each call of the bot is answered 1.5 seconds later."
    )
    await switch.press("Space")
    await expect(switch).to_be_checked()
    label = "Simulate Slack problems, 1 thing on"
    await expect(opener).to_have_attribute("aria-label", label)
    await page.reload()
    await open_tool(page, "trouble")
    await expect(switch).to_be_checked()
    await page.get_by_test_id("trouble-calm").press("Enter")
    await expect(switch).not_to_be_checked()
    assert stage.sandbox.troubles == 0
    await page.keyboard.press("Escape")
    await expect(page.get_by_test_id("trouble")).to_be_hidden()
    await expect_back(page, "trouble")


async def test_a_switch_is_not_turned_back_by_what_was_read_before(
    page: Page, stage: Stage
) -> None:
    await act_as(page, stage, "Rosa")
    await open_tool(page, "trouble")
    switch = page.get_by_role("switch", name="Slow Slack")
    await expect(switch).not_to_be_checked()
    old = await (await page.request.get(f"{stage.sandbox.url}/control/panel")).json()
    asked, late = asyncio.Event(), asyncio.Event()

    async def hold(route: Route) -> None:
        asked.set()
        await late.wait()
        await route.fulfill(json={**old, "connections": 7})

    await page.route("**/control/panel*", hold)
    await page.route("**/control/switch", lambda _: None)  # not answered yet
    await asked.wait()
    await switch.click()
    late.set()
    notice = page.get_by_test_id("trouble-connections")
    await expect(notice).to_have_text("The bot has 7 connections open.")
    await expect(switch).to_be_checked()
    await page.unroute_all(behavior="ignoreErrors")


async def test_panel_fits_and_leaves_when_one_goes_on(page: Page, stage: Stage) -> None:
    await act_as(page, stage, "Rosa")
    await open_tool(page, "trouble")
    panel = page.get_by_test_id("trouble")
    await expect(panel).to_be_in_viewport(ratio=1)
    wide = await page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert wide
    await page.get_by_test_id("trouble-close").click()
    await expect(panel).to_be_hidden()


async def test_disconnected_bot_comes_back(page: Page, stage: Stage) -> None:
    await act_as(page, stage, "Rosa")
    await open_tool(page, "trouble")
    notice = page.get_by_test_id("trouble-connections")
    await expect(notice).to_have_text("The bot has 1 connection open.")
    await page.get_by_test_id("trouble-disconnect").click()
    await stage.sandbox.until(lambda: stage.sandbox.connections_so_far >= 2)
    await expect(notice).to_have_text("The bot has 1 connection open.")


async def test_a_decision_with_duplicate_events_and_lost_answers(page: Page, stage: Stage) -> None:
    await act_as(page, stage, "Rosa")
    await open_tool(page, "trouble")
    for name in ("Duplicate events", "Unheard acknowledgements"):
        await page.get_by_role("switch", name=name).check()
    await page.get_by_test_id("trouble-close").click()
    thread = await ask(page, stage, "deploy payments 1.4.2 to production")
    await act_as(page, stage, "Ada", thread=thread)
    await page.locator('[data-testid="thread-pane"] [data-action-id="countersign:approve"]').click()
    pane = page.get_by_test_id("thread-pane")
    await expect(pane).to_contain_text("payments 1.4.2 is live in production")
    assert len(stage.cards()) == 1
    assert stage.sandbox.doubles() == {}
    await open_tool(page, "trouble")
    coped = page.get_by_test_id("trouble-coped")
    await expect(coped).to_contain_text("Duplicate messages0")
    await expect(coped).not_to_contain_text("Duplicate deliveries0")
