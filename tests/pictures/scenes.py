"""The scenes of the pictures, and who looks at them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from playwright.async_api import Page, expect

from slack_sandbox import ADA, OPS, ROSA

FOLDER = Path(__file__).parents[2] / "docs" / "images"
SETTLED_MS = 1_000
"""After that a page has shown all that is there."""
PANE = '[data-testid="thread-pane"]'
FORM = '[role="dialog"][aria-modal="true"]'


@dataclass(frozen=True, slots=True)
class Viewer:
    """A screen."""

    width: int
    height: int
    scheme: Literal["light", "dark"]

    def file_of(self, scene: Scene) -> str:
        return f"{scene.name}-{self.width}-{self.scheme}.png"


VIEWERS = (
    Viewer(1280, 800, "light"),
    Viewer(1280, 800, "dark"),
    Viewer(390, 844, "light"),
    Viewer(390, 844, "dark"),
)


async def nothing(page: Page) -> None:
    """Open nothing more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What a picture shows.

    Attributes:
        name: The beginning of its files.
        play: Brings the demo there; gives back the thread.
        ends_with: A text of the thread, which is there when all is.
        looks: Who looks at it.
        open: What they open before the picture is taken.
        widths: Widths of the screens that pages show.
        is_first_screen: Whether it shows the page as it opens, with the guide.
    """

    name: str
    play: Callable[[Page, str], Awaitable[str]]
    ends_with: str
    looks: str = ADA
    open: Callable[[Page], Awaitable[None]] = nothing
    widths: tuple[int, ...] = (390,)
    is_first_screen: bool = False

    @property
    def viewers(self) -> list[Viewer]:
        """The screens of which a picture is taken."""
        return [viewer for viewer in VIEWERS if viewer.width in self.widths]

    def address(self, url: str, thread: str) -> str:
        if self.is_first_screen:
            return url
        return f"{url}?as={self.looks}&channel={OPS}&thread={thread}"


async def ask(page: Page, url: str, text: str) -> str:
    """Write as Rosa in #ops, and wait for the card; return the thread."""
    await page.goto(f"{url}?as={ROSA}&channel={OPS}")
    composer = page.get_by_test_id("composer")
    await composer.fill(f"@countersign {text}")
    await composer.press("Enter")
    asked = page.get_by_test_id("messages").locator("article", has_text=f"@countersign {text}")
    opener = asked.locator('[data-testid^="thread-open-"]')
    thread = str(await opener.get_attribute("data-testid")).removeprefix("thread-open-")
    await page.goto(f"{url}?as={ROSA}&channel={OPS}&thread={thread}")
    await expect(page.locator(f'{PANE} [data-action-id="countersign:approve"]')).to_be_visible()
    return thread


async def waiting(page: Page, url: str) -> str:
    """The card that waits for Ada when the page opens."""
    await page.goto(url)
    await page.locator('[data-testid^="thread-open-"]').first.click()
    await expect(page.locator(f'{PANE} [data-action-id="countersign:approve"]')).to_be_visible()
    return page.url.rpartition("thread=")[2]


async def decided(page: Page, url: str) -> str:
    """The same card after she has approved it, with what came of it."""
    thread = await waiting(page, url)
    await page.goto(f"{url}?as={ADA}&channel={OPS}&thread={thread}")
    await page.locator(f'{PANE} [data-action-id="countersign:approve"]').click()
    await expect(page.locator(PANE)).to_contain_text("payments 1.4.2 is live")
    return thread


async def review(page: Page) -> None:
    """Open *Details*, unless another window of Ada's has opened it."""
    form = page.locator(FORM)
    await page.wait_for_timeout(SETTLED_MS)
    if not await form.is_visible():
        await page.locator(f'{PANE} [data-action-id="countersign:more"]').click()
        await page.get_by_role("menuitem", name="Details").click()
    await expect(form).to_be_visible()


async def home(page: Page) -> None:
    """Open Ada's Home tab."""
    url = page.url.partition("?")[0]
    await page.goto(f"{url}?as={ADA}&channel=D{ADA[1:]}&tab=home")
    await expect(page.get_by_text("1 waiting for you")).to_be_visible()
    await expect(page.get_by_text("Your settings")).to_be_visible()


SCENES = (
    Scene(
        name="card",
        play=waiting,
        ends_with="payments",
        widths=(1280, 390),
        is_first_screen=True,
    ),
    Scene(name="decided", play=decided, ends_with="payments 1.4.2 is live"),
    Scene(name="home", play=waiting, ends_with="payments", open=home),
    Scene(name="review", play=waiting, ends_with="payments", open=review),
)
