"""The panel that says who is where, in a real browser."""

from __future__ import annotations

from playwright.async_api import Page, expect

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

APPROVE = '[data-testid="thread-pane"] [data-action-id="countersign:approve"]'


async def test_whoever_joins_a_group_may_decide(page: Page, stage: Stage) -> None:
    await stage.stop_bot()
    await stage.start_bot(COUNTERSIGN_APPROVERS="S0ONCALL01")
    thread = await ask(page, stage, "deploy payments 1.4.2 to production")
    await act_as(page, stage, "Mia", thread=thread)
    await page.locator(APPROVE).click()
    await expect(page.get_by_test_id("ephemeral")).to_be_visible()
    assert len(stage.cards()) == 1
    await open_tool(page, "roster", "Enter")
    oncall = page.get_by_role("group", name="@oncall")
    mia = oncall.get_by_role("checkbox", name="Mia Chen")
    await expect(mia).not_to_be_checked()
    await mia.press("Space")
    await expect(mia).to_be_checked()
    await expect(mia).to_be_focused()
    await page.keyboard.press("Escape")
    await expect_back(page, "roster")
    await page.locator(APPROVE).click()
    await expect(page.get_by_test_id("thread-pane")).to_contain_text("Approved by @Mia Chen")


async def test_people_leave_a_channel_and_come_back(page: Page, stage: Stage) -> None:
    await act_as(page, stage, "Rosa")
    await stage.say("Ada", "Anybody here?")
    panel = page.get_by_test_id("roster")
    messages, composer = page.get_by_test_id("messages"), page.get_by_test_id("composer")
    await expect(messages).to_contain_text("Anybody here?")
    await open_tool(page, "roster")
    await expect(panel).to_be_in_viewport(ratio=1)
    assert await page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    rosa = page.get_by_role("group", name="#ops").get_by_role("checkbox", name="Rosa Ortiz")
    await rosa.uncheck()
    await page.get_by_test_id("roster-close").click()
    await expect(composer).to_be_hidden()
    await expect(page.get_by_text("You are not in this channel.")).to_be_visible()
    await stage.say("Ada", "She has gone.")
    await open_tool(page, "roster")
    await rosa.check()
    await page.get_by_test_id("roster-close").click()
    await expect(composer).to_be_visible()
    await expect(messages).to_contain_text("She has gone.")


async def test_closed_account_is_seen_and_opened_again(page: Page, stage: Stage) -> None:
    await act_as(page, stage, "Rosa")
    await expect(page.get_by_test_id("time-toggle")).to_be_hidden()  # of the demo alone
    await open_tool(page, "roster")
    ben = page.get_by_role("group", name="Accounts").get_by_role("checkbox", name="Ben Okafor")
    await ben.uncheck()
    await stage.sandbox.until(lambda: stage.sandbox.workspace.people[stage.user("Ben")].deleted)
    await page.reload()
    await open_tool(page, "roster")
    await expect(ben).not_to_be_checked()
    await ben.check()
    await stage.sandbox.until(lambda: not stage.sandbox.workspace.people[stage.user("Ben")].deleted)
