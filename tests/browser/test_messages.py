"""The messages beside the cards in a real browser: a reminder, a direct message, a line."""

from __future__ import annotations

from pathlib import Path

from playwright.async_api import Page, expect

from tests.browser.test_page import act_as, ask, browser, page, pytestmark, stage
from tests.support.stage import Stage

__all__ = ["browser", "page", "pytestmark", "stage"]

TITLE = "Deploy payments 1.4.2 to production"
APPROVE = '[data-action-id="countersign:approve"]'
POLICY = """
version: 1
groups:
  sre: {users: [U0ADALINDQ]}
defaults: {approve: [{from: [sre]}], route: dm, expires: 2h}
rules: []
default: {ask: {}}
"""


async def test_a_reminder_links_to_its_card_and_goes_when_somebody_has_decided(
    page: Page, stage: Stage
) -> None:
    await stage.stop_bot()
    await stage.start_bot(COUNTERSIGN_APPROVERS=stage.user("Ada"))
    thread = await ask(page, stage, "deploy payments 1.4.2 to production")
    await act_as(page, stage, "Ada", thread=thread)
    await stage.rest()
    stage.clock.forward(minutes=20)
    await stage.tick()
    pane = page.get_by_test_id("thread-pane")
    await expect(pane).to_contain_text(f"Still waiting for you: {TITLE}. Expires ")
    link = pane.get_by_role("link", name=TITLE)
    card = (await stage.card())["ts"].replace(".", "")
    assert f"/p{card}" in str(await link.get_attribute("href"))
    assert await page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    await pane.locator(APPROVE).click()
    await expect(pane).to_contain_text("Approved by @Ada Lind")
    await expect(pane).not_to_contain_text("Still waiting for you")


async def test_a_card_by_direct_message_says_where_it_is_from_and_ends_in_all_places(
    page: Page, stage: Stage, tmp_path: Path
) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY, encoding="utf-8")
    await stage.stop_bot()
    await stage.start_bot(COUNTERSIGN_POLICY=str(file))
    await act_as(page, stage, "Rosa")
    root = await stage.say("Rosa", "@countersign deploy payments 1.4.2 to production")
    await stage.said(f"{TITLE} needs approval. Asked: ")
    await act_as(page, stage, "Rosa", thread=root)
    pane = page.get_by_test_id("thread-pane")
    await expect(pane).to_contain_text(f"{TITLE} needs approval. Asked: Ada Lind.")
    direct = next(
        str(call.args["channel"])
        for call in stage.sandbox.calls
        if call.method == "chat.postMessage" and str(call.args["channel"]).startswith("D")
    )
    await page.goto(f"{stage.sandbox.url}/?as={stage.user('Ada')}&channel={direct}")
    messages = page.get_by_test_id("messages")
    await expect(messages).to_contain_text("Requested by @Rosa Ortiz in #ops.")
    await expect(messages.get_by_role("link", name="Open the thread")).to_be_visible()
    await expect(messages).to_contain_text("You can decide because you're listed by name.")
    await messages.locator(APPROVE).click()
    await expect(messages).to_contain_text("Approved by @Ada Lind")
    await act_as(page, stage, "Rosa", thread=root)
    await expect(pane).to_contain_text("Approved by @Ada Lind")
    await expect(pane).not_to_contain_text(f"{TITLE} needs approval")
