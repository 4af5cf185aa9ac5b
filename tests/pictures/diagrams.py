"""Renders each Mermaid fence of docs/ into docs/images/diagrams: `make diagrams`.

The name of a file is a digest of its fence, so that the site shows no diagram that is out of date.
Files whose fence is gone are deleted.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import re
import sys
from pathlib import Path

from playwright.async_api import Page, async_playwright

from tests.pages.site import DOCS, fences, written_pages

FOLDER = DOCS / "images" / "diagrams"
RENDER = """
async (source) => {
  mermaid.initialize({ startOnLoad: false, theme: "neutral", deterministicIds: true,
    deterministicIDSeed: "d", htmlLabels: false, flowchart: { htmlLabels: false } });
  return (await mermaid.render("diagram", source)).svg;
}
"""
_DRAWN_ON = "<svg "
_ON_WHITE = '<svg style="background: white" '
"""A diagram has dark lines: it needs a light ground in a dark page, too."""


def svg_name(source: str) -> str:
    """Return the file name of a diagram; docs/_ext/diagrams.py looks for the same name."""
    return f"{hashlib.sha256(source.strip().encode()).hexdigest()[:16]}.svg"


def diagrams() -> dict[str, str]:
    """Return the source of each diagram by the name of its file."""
    return {
        svg_name(fence.text): fence.text
        for page in written_pages()
        for fence in fences(page)
        if fence.kind == "mermaid"
    }


async def render(mermaid: Path, chromium: str) -> list[Path]:
    """Render what has no file yet, and delete files without a fence. Return the new files."""
    wanted = diagrams()
    FOLDER.mkdir(parents=True, exist_ok=True)
    for file in FOLDER.glob("*.svg"):
        if file.name not in wanted:
            file.unlink()
    missing = {name: source for name, source in wanted.items() if not (FOLDER / name).exists()}
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = await browser.new_page()
        await page.add_script_tag(path=mermaid)
        files = [await draw(page, name, source) for name, source in missing.items()]
        await browser.close()
    return files


async def draw(page: Page, name: str, source: str) -> Path:
    """Render one diagram. Mermaid refuses a source with a fault."""
    text = await page.evaluate(RENDER, source)
    width, height = re.findall(r'viewBox="\S+ \S+ ([\d.]+) ([\d.]+)"', text)[0]
    size = f'width="{float(width):.0f}" height="{float(height):.0f}"'
    text = re.sub(r' style="max-width: [^"]*"', "", text, count=1)
    text = text.replace('width="100%"', size, 1)
    file = FOLDER / name
    file.write_text(text.replace(_DRAWN_ON, _ON_WHITE, 1) + "\n", encoding="utf-8")
    return file


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.pictures.diagrams", description=__doc__)
    parser.add_argument("mermaid", type=Path, help="mermaid.min.js of the npm package")
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    return parser.parse_args()


if __name__ == "__main__":
    given = _arguments()
    for file in asyncio.run(render(given.mermaid, given.chromium)):
        sys.stdout.write(f"{file} {file.stat().st_size}\n")
