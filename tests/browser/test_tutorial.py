"""The tutorial, click by click: what its page quotes is what the terminal and the browser show."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from bot.commands.demo import welcome
from bot.commands.parser import PORT
from bot.demo import POLICY
from slack_sandbox import ADA, BEN, MIA
from tests.browser.players import DESK, PATIENCE_MS, Player, a_demo
from tests.browser.test_page import browser, pytestmark

__all__ = ["browser", "pytestmark"]

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "tutorial.md"
CLOCK = re.compile(r"(?:today at )?\d+:\d\d [AP]M")
ANY_TIME = r"(?:(?:today|tomorrow) at )?\d+:\d\d [AP]M"
"""In the evening, what comes in an hour comes tomorrow."""


@dataclass
class Step:
    """One numbered section of the tutorial, and what is left of it to play.

    Attributes:
        text: The section.
        typed: What the reader is to write, in order.
        quoted: Lines that the reader is to see.
    """

    text: str
    typed: list[str] = field(init=False)
    quoted: list[str] = field(init=False)

    def __post_init__(self) -> None:
        self.typed = re.findall(r"^> @countersign (.*)$", self.text, re.MULTILINE)
        blocks = re.findall(r"^ *```text\n(.*?)^ *```$", self.text, re.MULTILINE | re.DOTALL)
        lines = [line.strip() for block in blocks for line in block.splitlines()]
        self.quoted = [line for line in lines if line]

    async def sees(self, player: Player, count: int = 1) -> None:
        """See the next lines that the page quotes, in the thread or as what only one sees."""
        for _ in range(count):
            line = self.quoted.pop(0)
            pattern = CLOCK.sub(lambda _: ANY_TIME, re.escape(line).replace("\\ ", " "))
            await expect(player.pane).to_contain_text(re.compile(pattern))

    def has(self, text: str) -> str:
        """Return words that the page tells the reader to press, choose or look for."""
        assert re.search(rf"\*{re.escape(text)}\*|`{re.escape(text)}`", self.text), text
        return text


def step(number: int) -> Step:
    match = re.search(
        rf"^## {number}\. .*?(?=^## )", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    assert match is not None
    return Step(match[0])


@asynccontextmanager
async def played(browser: Browser, folder: Path, **settings: str) -> AsyncIterator[Player]:
    """A demo, and a reader before it."""
    async with (
        a_demo(folder, **settings) as url,
        await browser.new_context(viewport=DESK, reduced_motion="reduce") as profile,
    ):
        page = await profile.new_page()
        page.set_default_timeout(PATIENCE_MS)
        faults: list[str] = []
        page.on("pageerror", lambda error: faults.append(str(error)))
        yield Player(page, url, "tutorial")
        assert faults == []


async def press(player: Player, label: str) -> None:
    """Press a button of the newest card by its label."""
    words = re.compile(f"^{re.escape(label)}$")
    await player.pane.locator("[data-action-id]", has_text=words).last.click()


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "examples"))


async def test_approve_edit_and_reject(browser: Browser, tmp_path: Path) -> None:
    two, three = step(2), step(3)
    async with played(browser, tmp_path) as player:
        await player.page.goto(player.url)
        await player.open_last()
        await two.sees(player, 3)
        await press(player, two.has("Approve"))
        await two.sees(player, 3)

        await player.ask(three.typed.pop(0))
        await press(player, three.has("Approve"))
        await three.sees(player)
        await player.become(ADA)
        await press(player, three.has("Edit…"))
        await player.form.get_by_label(three.has("Replicas")).fill(three.has("5"))
        await player.form.get_by_role("button", name=three.has("Approve with changes")).click()
        await three.sees(player, 4)

        await player.ask(three.typed.pop(0))
        await player.become(ADA)
        await press(player, three.has("Reject…"))
        await player.form.get_by_role("radio", name=three.has("Not now")).check()
        await player.form.locator("textarea").fill(three.has("Freeze until Monday"))
        await player.form.get_by_role("button", name=three.has("Reject")).click()
        await three.sees(player, 4)
        await press(player, three.has("Details"))
        await player.form.get_by_role("combobox").select_option(label=three.has("History"))
        await expect(player.form).to_contain_text("@Rosa Ortiz requested it")
        await expect(player.form).to_contain_text("@Ada Lind rejected")
    assert two.typed + two.quoted + three.typed + three.quoted == []


async def test_two_approvers_and_the_clock(browser: Browser, tmp_path: Path) -> None:
    four = step(4)
    async with played(browser, tmp_path) as player:
        await player.ask(four.typed.pop(0))
        await player.become(MIA)
        await press(player, four.has("Approve"))
        await player.agree()
        await four.sees(player)
        await player.become(ADA)
        await press(player, "Approve")
        await player.agree()
        await player.sees(four.has("1 of 2 approvals"))
        await player.page.get_by_test_id("time-toggle").click()
        skip = player.page.get_by_role("button", name=four.has("Skip to the next event"))
        await skip.click()
        await expect(skip).not_to_have_attribute("aria-busy", "true")
        await player.page.keyboard.press("Escape")
        await four.sees(player)
        await player.sees("@oncall")
        await player.become(BEN)
        await press(player, "Approve")
        await player.agree()
        await four.sees(player)
    assert four.typed + four.quoted == []


async def test_an_own_agent(browser: Browser, tmp_path: Path) -> None:
    five = step(5)
    assert "{literalinclude} ../examples/wifi.py\n" in five.text
    (agent,) = re.findall(r"^export COUNTERSIGN_AGENT=(\S+) ", five.text, re.MULTILINE)
    assert five.quoted.pop(0).startswith(f"Countersign is ready, with {agent}. ")
    async with played(browser, tmp_path, agent=agent) as player:
        await player.ask(five.typed.pop(0))
        await five.sees(player)
        await player.ask(five.typed.pop(0))
        await five.sees(player)
        await player.become(ADA)
        await press(player, "Approve")
        await five.sees(player)
    assert five.typed + five.quoted == []


async def test_an_own_policy(browser: Browser, tmp_path: Path) -> None:
    six = step(6)
    (policy,) = re.findall(r"\{literalinclude\} \.\./(examples/\S+)\n", six.text)
    settings = {"agent": "wifi:build", "policy": str(ROOT / policy)}
    async with played(browser, tmp_path, **settings) as player:
        await player.ask(six.typed.pop(0))
        await six.sees(player)
        await player.become(ADA)
        await press(player, "Approve")
        await six.sees(player)
        await player.become(MIA)
        await press(player, "Approve")
        await six.sees(player)
    assert six.typed + six.quoted == []


async def test_the_terminal_shows_what_the_tutorial_says() -> None:
    printed = welcome(f"http://127.0.0.1:{PORT}", policy=POLICY)
    assert [line for line in step(1).quoted if line not in printed] == []
    (shown,) = step(5).quoted[:1]
    assert shown in welcome("http://127.0.0.1:1", agent="wifi:build")
