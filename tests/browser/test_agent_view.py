"""Slack's surface for agents in a real browser: prompts, title, stop; and a thread's summary."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio
from playwright.async_api import Page, expect

from tests.browser.shots import shot
from tests.browser.test_page import act_as, browser, page, pytestmark
from tests.scenario import agents
from tests.support.stage import Stage, a_stage

__all__ = ["browser", "page", "pytestmark"]

ROSTER = """
version: 1
agents:
  bench:
    use: tests.scenario.agents:patient
    channels: ["*"]
    prompts:
      - {title: Measure the table, message: measure the table in the hall and all of its chairs}
      - {title: Measure everything on the second floor, message: measure it all}
  sender:
    use: tests.scenario.agents:thrice
"""


@pytest_asyncio.fixture(loop_scope="session")
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    file = tmp_path / "countersign.yaml"
    file.write_text(ROSTER, encoding="utf-8")
    agents.RAN.clear()
    agents.GATES[:] = [asyncio.Event()]
    async with a_stage(tmp_path, "socket", COUNTERSIGN_AGENTS_FILE=str(file)) as opened:
        opened.clock.follow()
        yield opened
        agents.GATES[0].set()
    agents.GATES.clear()


def is_stopped(stage: Stage, channel: str, root: str) -> bool:
    assert stage.bot is not None
    thread_id = f"{stage.sandbox.workspace.team_id}:{channel}:{root}"
    return not stage.bot.turns.stopping.is_running(thread_id)


async def test_a_prompt_begins_and_the_button_stops(page: Page, stage: Stage) -> None:
    rosa = stage.user("Rosa")
    direct = stage.sandbox.workspace.direct_message(rosa).id
    await page.goto(f"{stage.sandbox.url}/?as={rosa}&channel={direct}")
    prompts = page.get_by_test_id("prompts")
    await expect(prompts.get_by_test_id("prompt")).to_have_text(
        ["Measure the table", "Measure everything on the second floor", "What can you do?"]
    )
    assert await page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    await shot(page, f"prompts-{page.viewport_size['width']}")  # type: ignore[index]
    await prompts.get_by_role("button", name="Measure the table").click()
    await expect(prompts).to_be_hidden()
    await stage.sandbox.until(lambda: bool(stage.sandbox.workspace.agent_view.sessions))
    ((_, root),) = stage.sandbox.workspace.agent_view.sessions
    await page.goto(f"{stage.sandbox.url}/?as={rosa}&channel={direct}&thread={root}")
    pane = page.get_by_test_id("thread-pane")
    words = "measure the table in the hall and all of its chairs"
    await expect(pane.get_by_test_id("session-title")).to_have_text(words)
    stop = pane.get_by_test_id("stop-agent")
    await expect(stop).to_be_visible()
    await expect(pane.get_by_test_id("thread-close")).to_be_in_viewport(ratio=1)
    await shot(page, f"stop-{page.viewport_size['width']}")  # type: ignore[index]
    await stop.click()
    await stage.sandbox.until(lambda: is_stopped(stage, direct, root))  # the event takes its time
    agents.GATES[0].set()
    await expect(pane).to_contain_text("Stopped by Rosa")
    await expect(stop).to_have_count(0)
    assert len(agents.RAN) == 1


async def test_three_decisions_are_summed_up(page: Page, stage: Stage) -> None:
    root = await stage.say("Rosa", "@countersign sender: send all three")
    await stage.choose("Ada", await stage.card(word="Send the report"), "countersign:batch_split")
    await stage.card(number=4)
    await act_as(page, stage, "Ada", thread=root)
    pane = page.get_by_test_id("thread-pane")
    for number in (1, 2):
        await stage.click("Ada", stage.cards()[number], "countersign:approve")
    await stage.click("Ada", stage.cards()[3], "countersign:reject")
    form = await stage.modal("Ada")
    await stage.sandbox.submit(stage.user("Ada"), form, {"canned": "later"})
    await expect(pane).to_contain_text("Summary")
    await expect(pane).to_contain_text("3 requests")
    await expect(pane).to_contain_text("Send the report, ran, Ada Lind")
    await expect(pane).to_contain_text("Send a <!channel> joke, rejected, Ada Lind")
    assert await page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    await shot(page, f"summary-{page.viewport_size['width']}")  # type: ignore[index]
