"""All states of a card as a browser draws them: how high, how readable, and for whom to look at."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Literal

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, ViewportSize, expect

from bot.layout.parts import approvers_words
from bot.people.approvers import approvers_of
from bot.slack.cards.card_for import card_for
from slack_sandbox import OPS, ROSA, Sandbox
from tests.browser.players import PATIENCE_MS
from tests.browser.shots import shot
from tests.browser.states import ENDED, STATES
from tests.browser.test_page import browser, pytestmark
from tests.unit.bot.slack.cards.samples import DECIDED

__all__ = ["browser", "pytestmark"]

LOOKS: dict[str, tuple[int, Literal["light", "dark"]]] = {
    "1440-light": (1440, "light"),
    "1440-dark": (1440, "dark"),
    "390-light": (390, "light"),
    "390-dark": (390, "dark"),
}
DEPLOY, SHORT, HALF = 300, 110, 422
"""Pixels at most: a deployment with its name line, one that is over, and any other card."""
IN_FULL = {"failed", "override"}
"""Over, but their error, or their two reasons, stand there in full."""
FONT = "Lato, 'Noto Sans', 'DejaVu Sans Condensed', sans-serif"
"""Letters as wide as those of Slack."""

Gallery = tuple[Sandbox, dict[str, str]]


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def gallery() -> AsyncIterator[Gallery]:
    """A channel with a card of each state, and their `ts`."""
    async with Sandbox(clock=lambda: DECIDED / 1_000) as sandbox:
        shown = {}
        for state, approval in STATES.items():
            who = approvers_words(approvers_of(approval))
            card = card_for(approval, approvers_text=who)
            values = {"channel": OPS, "text": card.text, "blocks": card.blocks}
            answer = sandbox.answer("chat.postMessage", values)
            assert answer["ok"], (state, answer)
            shown[state] = answer["ts"]
        yield sandbox, shown


@asynccontextmanager
async def looking(browser: Browser, gallery: Gallery, look: str) -> AsyncIterator[Page]:
    """The page of somebody who looks at the channel a little later."""
    sandbox, shown = gallery
    width, scheme = LOOKS[look]
    size = ViewportSize(width=width, height=900)
    async with await browser.new_context(
        viewport=size, color_scheme=scheme, reduced_motion="reduce", timezone_id="UTC"
    ) as profile:
        page = await profile.new_page()
        page.set_default_timeout(PATIENCE_MS)
        await page.clock.set_fixed_time((DECIDED + 60_000) / 1_000)
        await page.goto(f"{sandbox.url}/?as={ROSA}&channel={OPS}")
        await page.evaluate("font => document.body.style.setProperty('--font', font)", FONT)
        await page.evaluate("font => (document.body.style.fontFamily = font)", FONT)
        await expect(page.get_by_test_id(f"message-{[*shown.values()][-1]}")).to_be_visible()
        yield page


UNDER_TOOLS = """
() => [...document.querySelectorAll(".message.compact")].filter((message) => {
  const tools = message.querySelector(".toolbar")?.getBoundingClientRect();
  const words = document.createRange();
  words.selectNodeContents(message.querySelector(".blocks")?.firstElementChild ?? message);
  return tools && [...words.getClientRects()].some((line) =>
    line.right > tools.left && line.bottom > tools.top + 1 && line.top < tools.bottom - 9
    && line.width < message.clientWidth - 80);
}).map((message) => message.textContent)
"""
"""The messages whose first line of text is under their tools."""


async def test_cards_are_no_higher_than_they_have_to_be(browser: Browser, gallery: Gallery) -> None:
    heights, first = {}, next(iter(gallery[1].values()))
    async with looking(browser, gallery, "390-light") as page:
        for state, ts in gallery[1].items():
            box = await page.get_by_test_id(f"message-{ts}").locator(".blocks").bounding_box()
            assert box is not None
            heights[state] = box["height"]
        named = await page.get_by_test_id(f"message-{first}").bounding_box()
        hidden = await page.evaluate(UNDER_TOOLS)
    assert hidden == [], "the tools cover the line of state and risk"
    assert named is not None
    assert named["height"] <= DEPLOY
    over = {state: heights[state] for state in ENDED if state not in IN_FULL}
    assert {state: height for state, height in over.items() if height > SHORT} == {}
    assert {state: height for state, height in heights.items() if height > HALF} == {}


@pytest.mark.parametrize("look", LOOKS)
async def test_cards_can_be_read(browser: Browser, gallery: Gallery, look: str) -> None:
    """Draws each state for people to look at; small text has a contrast of at least 4.5."""
    async with looking(browser, gallery, look) as page:
        for state, ts in gallery[1].items():
            message = page.get_by_test_id(f"message-{ts}")
            name = state.replace(" ", "-")
            await shot(message, f"card-{look}-{name}")
        pytest.importorskip("axe_playwright_python", reason="run make check to install it")
        axe = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
        await page.evaluate(axe)
        rule = "{runOnly: ['color-contrast'], resultTypes: ['violations']}"
        report = await page.evaluate(f"axe.run('.messages', {rule})")
        nodes = [node for fault in report["violations"] for node in fault["nodes"]]
    assert [(node["target"], node["failureSummary"]) for node in nodes] == []
