"""Makes the pictures of the README and of docs/ from the demo: `make pictures`.

Each scene is played once; then each viewer takes a picture: on a desk or on a phone, in light and
in dark. `make pictures ONLY=card` takes one scene alone.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.async_api import Browser, Page, async_playwright, expect

from bot import main
from bot.clock import MovableClock
from bot.commands.demo import try_out
from tests.pictures.scenes import FOLDER, SCENES, Scene

IN_THE_WAY = 'button[aria-label="Close the guide"], button.jump:not([hidden])'
"""Buttons that close the guide, and go to the newest messages; where there are any."""


async def take(only: str, chromium: str) -> list[Path]:
    """Take all pictures, or those of one scene; give back their files."""
    scenes = [scene for scene in SCENES if only in ("", scene.name)]
    FOLDER.mkdir(exist_ok=True)
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        files = [file for scene in scenes for file in await photograph(scene, browser)]
        await browser.close()
    return files


async def photograph(scene: Scene, browser: Browser) -> list[Path]:
    """Play a scene in a demo of its own, and take its pictures."""
    files = []
    async with a_demo() as url:
        thread = await scene.play(await browser.new_page(), url)
        for viewer in scene.viewers:
            async with await browser.new_context(
                viewport={"width": viewer.width, "height": viewer.height},
                color_scheme=viewer.scheme,
                reduced_motion="reduce",
            ) as profile:
                file = FOLDER / viewer.file_of(scene)
                address = scene.address(url, thread)
                await show(await profile.new_page(), scene, address)
                await profile.pages[0].screenshot(path=file, animations="disabled")
                files.append(file)
    return files


async def show(page: Page, scene: Scene, address: str) -> None:
    """Open the page as the person who looks, with what the scene ends with."""
    await page.goto(address)
    if scene.is_first_screen:
        await expect(page.get_by_test_id("guide-arrow")).to_be_visible()
        await page.evaluate("document.fonts.ready")
        return
    await expect(page.get_by_test_id("thread-pane")).to_contain_text(scene.ends_with)
    for button in await page.locator(IN_THE_WAY).all():
        # By its own method, as the thread or a form may lie over it.
        await button.evaluate("button => button.click()")
    await scene.open(page)
    await page.evaluate("document.fonts.ready")


@asynccontextmanager
async def a_demo() -> AsyncIterator[str]:
    """A demo, as `make demo` starts it; the address of its page."""
    stop = asyncio.Event()
    url: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    with TemporaryDirectory() as directory:
        running = asyncio.create_task(
            try_out(
                {"COUNTERSIGN_DATA_DIR": directory},
                port=0,
                clock=MovableClock(),
                run_bot=main.run,
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


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.pictures", description=__doc__)
    parser.add_argument("--only", default="", choices=["", *(scene.name for scene in SCENES)])
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    return parser.parse_args()


if __name__ == "__main__":
    given = _arguments()
    for file in asyncio.run(take(given.only, given.chromium)):
        sys.stdout.write(f"{file} {file.stat().st_size}\n")
