"""What people do in a browser, before the demo with a policy that has all means."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, Page, ViewportSize, expect

from bot import main
from bot.clock import MovableClock
from bot.commands.demo import try_out
from slack_sandbox import ADA, BEN, MIA, OPS, ROSA
from tests.browser.shots import shot
from tests.support.pace import brisk, brisk_seconds

POLICY = Path(__file__).with_name("means.yaml")
NAMES = {ROSA: "Rosa", ADA: "Ada", BEN: "Ben", MIA: "Mia"}
DESK = ViewportSize(width=1280, height=800)
PATIENCE_MS = 60_000
"""So long a step may take where the machine has other things to do, too."""
PHONE = ViewportSize(width=390, height=844)


@asynccontextmanager
async def a_demo(folder: Path, **settings: str) -> AsyncIterator[str]:
    """Start the demo; yield the address of its page.

    Args:
        folder: Where it keeps its data.
        settings: Its other settings, without `COUNTERSIGN_` and in small letters.
    """
    stop = asyncio.Event()
    url: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    running = asyncio.create_task(
        try_out(
            {
                "COUNTERSIGN_DATA_DIR": str(folder),
                **{f"COUNTERSIGN_{name.upper()}": value for name, value in settings.items()},
            },
            port=0,
            clock=MovableClock(),
            run_bot=partial(main.run, outside=brisk()),
            pace=brisk_seconds,
            stop=stop,
            say=lambda words: url.set_result(words.split("page:")[1].split()[0]),
        )
    )
    running.add_done_callback(lambda _: url.cancel())  # when it does not come so far
    try:
        yield await url
    finally:
        stop.set()
        await running


async def turn_to(page: Page, url: str) -> None:
    """Show an address as somebody: where the page is open as somebody else, as Back would.

    To load it again takes a third of a second of a processor.
    """
    here, there = (urlsplit(address) for address in (page.url, url))
    was, shall_be = (parse_qs(place.query).get("as") for place in (here, there))
    if here.netloc != there.netloc or was in (None, shall_be):
        await page.goto(url)
        return
    await page.evaluate(
        "url => { history.pushState(null, '', url); dispatchEvent(new PopStateEvent('popstate')) }",
        url,
    )


@dataclass
class Player:
    """One window in which the four people of the demo take turns.

    Attributes:
        page: The window.
        url: Address of the demo's page.
        thread: Root of the thread that is played.
        scene: Name of the pictures.
    """

    page: Page
    url: str
    scene: str
    thread: str = ""
    _shots: int = 0
    _pressed: Locator | None = None

    @property
    def pane(self) -> Locator:
        """The open thread."""
        return self.page.get_by_test_id("thread-pane")

    @property
    def form(self) -> Locator:
        """The open form."""
        return self.page.get_by_test_id("modal")

    @property
    def private(self) -> Locator:
        """What only the reader sees, newest last."""
        return self.page.get_by_test_id("ephemeral")

    async def become(self, user: str, *, channel: str = OPS, thread: str | None = None) -> None:
        """Open the page as somebody, with the thread that is played."""
        thread = self.thread if thread is None else thread
        more = f"&thread={thread}" if thread else ""
        await turn_to(self.page, f"{self.url}?as={user}&channel={channel}{more}")
        await expect(self.page.get_by_test_id("person-switch")).to_contain_text(NAMES[user])

    async def talk_to_bot(self, user: str, *, tab: str = "") -> None:
        """Open somebody's own conversation with the bot."""
        more = f"&tab={tab}" if tab else ""
        await turn_to(self.page, f"{self.url}?as={user}&channel=D{user[1:]}{more}")
        await expect(self.page.get_by_test_id("person-switch")).to_contain_text(NAMES[user])

    async def write(self, text: str) -> None:
        """Write in the channel."""
        composer = self.page.get_by_test_id("composer")
        await composer.fill(text)
        await composer.press("Enter")
        await expect(composer).to_have_value("")

    async def ask(self, text: str, *, shows: str = "", user: str = ROSA) -> None:
        """Ask the bot in #ops, open the thread, and wait for something in it."""
        await self.become(user, thread="")
        words = f"@countersign {text}"  # a card in the channel may have the same title
        await self.write(words)
        asked = self.page.get_by_test_id("messages").locator("article", has_text=words).last
        opener = asked.locator('[data-testid^="thread-open-"]')
        name = str(await opener.get_attribute("data-testid"))
        self.thread = name.removeprefix("thread-open-")
        await opener.click()
        if shows:
            await self.sees(shows)

    async def reply(self, text: str) -> None:
        """Write in the open thread."""
        composer = self.page.get_by_test_id("thread-composer")
        await composer.fill(text)
        await composer.press("Enter")

    async def open_last(self) -> None:
        """Open the newest thread of the list of messages."""
        await self.page.locator('[data-testid^="thread-open-"]').last.click()

    async def press(self, action: str, *, within: Locator | None = None) -> None:
        """Press a button of a card."""
        buttons = (within or self.pane).locator(f'[data-action-id="countersign:{action}"]')
        self._pressed = buttons.last
        await self._pressed.click()

    async def agree(self) -> None:
        """Say it once more, in the dialog of what is dangerous.

        A card that was drawn anew meanwhile has other buttons: then the button is pressed again.
        """
        while True:
            async with self.page.expect_response("**/sandbox/action") as sent:
                await self.page.get_by_test_id("confirm-accept").click()
            answer = await (await sent.value).json()
            if answer.get("error") != "action_not_found":
                return
            assert self._pressed is not None
            await self._pressed.click()

    async def pick(self, label: str, *, within: Locator | None = None) -> None:
        """Choose something of the card's menu."""
        await self.press("more", within=within)
        await self.page.get_by_role("menuitem", name=label).click()

    async def submit(self) -> None:
        """Send the open form."""
        await self.page.get_by_test_id("modal-submit").click()

    async def look(self, name: str) -> None:
        """Take a picture on a desk and on a phone; nothing is wider than the window."""
        self._shots += 1
        for which, size in (("desk", DESK), ("phone", PHONE)):
            await self.page.set_viewport_size(size)
            await self.page.evaluate(
                "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
            )
            picture = f"means-{self.scene}-{self._shots:02}-{name}-{which}"
            await shot(self.page, picture)
            wide = await self.page.evaluate(
                "document.documentElement.scrollWidth > window.innerWidth"
            )
            assert not wide, picture
        await self.page.set_viewport_size(DESK)

    async def skip(self, which: str) -> None:
        """Let time pass, by the panel at the top."""
        await self.page.get_by_test_id("time-toggle").click()
        button = self.page.get_by_test_id(f"time-{which}")
        await button.click()
        await expect(button).not_to_have_attribute("aria-busy", "true")
        await self.page.keyboard.press("Escape")

    async def sees(self, text: str | re.Pattern[str]) -> None:
        """Wait for words in the thread."""
        await expect(self.pane).to_contain_text(text, timeout=PATIENCE_MS)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def demo(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    folder = tmp_path_factory.mktemp("means")
    async with a_demo(folder, policy=str(POLICY)) as url:
        yield url


@pytest_asyncio.fixture(loop_scope="session")
async def player(
    request: pytest.FixtureRequest, browser: Browser, demo: str
) -> AsyncIterator[Player]:
    async with await browser.new_context(viewport=DESK, reduced_motion="reduce") as profile:
        page = await profile.new_page()
        page.set_default_timeout(PATIENCE_MS)
        faults: list[str] = []
        page.on("pageerror", lambda error: faults.append(str(error)))
        yield Player(page, demo, request.node.name.removeprefix("test_")[:40])
        assert faults == []
