"""Each form of a decision, on a desk and on a phone: all of it can be reached, nothing is cut."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from tests.browser.shots import shot
from tests.browser.test_page import BROWSER, act_as, ask, browser, page, stage
from tests.support.stage import Stage
from tests.unit.bot.slack.cards.samples import MODALS

__all__ = ["browser", "page", "stage"]

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(BROWSER is None, reason="no chromium on this machine"),
    pytest.mark.asyncio(loop_scope="session"),
]

FORMS = (
    "modal_review",
    "modal_review_text",
    "modal_review_grant",
    "modal_critical",
    "modal_details",
    "modal_technical",
    "modal_reject",
    "modal_grant",
    "modal_override",
    "modal_withdraw",
    "modal_snooze",
    "modal_ask_back",
    "modal_hand_over",
    "modal_late",
)


async def test_each_form_fits_its_window(page: Page, stage: Stage) -> None:
    views, user = stage.sandbox.workspace.views, stage.user("Ada")
    await act_as(page, stage, "Ada")
    shown = page.get_by_test_id("modal")
    for name in FORMS:
        view = MODALS[name]()
        for opened in list(views.stack(user)):
            views.close(opened, everything=True)
        views.open(user, view)
        stage.sandbox.workspace.changes.tell()
        await expect(shown).to_contain_text(view["title"]["text"])
        if "submit" in view:
            await expect(page.get_by_test_id("modal-submit")).to_be_in_viewport()
        assert await shown.evaluate("one => one.scrollWidth <= one.clientWidth"), name
        width = await page.evaluate("window.innerWidth")
        await shot(page, f"{name}-{width}")


async def test_a_rejection_says_what_the_agent_may_do(page: Page, stage: Stage) -> None:
    thread = await ask(page, stage, "deploy payments 1.4.2 to production")
    await act_as(page, stage, "Ada", thread=thread)
    await page.locator('[data-testid="thread-pane"] [data-action-id="countersign:reject"]').click()
    modal = page.get_by_test_id("modal")
    await modal.get_by_text("Not now").click()
    await modal.locator("textarea").fill("Freeze until Monday")
    await page.get_by_test_id("modal-submit").click()
    pane = page.get_by_test_id("thread-pane")
    await expect(pane).to_contain_text("Not now, ask again later: Freeze until Monday")
