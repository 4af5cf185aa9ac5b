"""The pages of the site that people write, and the fences on them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
OTHERS = ("This page is generated from the code.", "This page is not written yet.")
_FENCE = re.compile(r"^(`{3,})(\{?[\w-]*\}?)([^\n]*)\n(.*?)^\1$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"`([\w./-]+\.\w+)`")


@dataclass(frozen=True)
class Fence:
    """A fenced block.

    Attributes:
        kind: The language, or a directive in braces.
        argument: The rest of the first line.
        text: The lines between the fences.
        line: Number of the first line of `text`.
        name: File that the paragraph above names, if it ends with a colon; else empty.
    """

    kind: str
    argument: str
    text: str
    line: int
    name: str


def written_pages() -> list[Path]:
    """Pages of the site that are not made from the code."""
    pages = [DOCS / "index.md", DOCS / "tutorial.md"]
    for folder in ("how-to", "reference", "explanation", "contributing"):
        pages += sorted((DOCS / folder).rglob("*.md"))
    return [page for page in pages if not any(other in page.read_text("utf-8") for other in OTHERS)]


def fences(page: Path) -> Iterator[Fence]:
    """Give the fenced blocks of a page, in order."""
    text = page.read_text("utf-8")
    end = 0
    for match in _FENCE.finditer(text):
        above = text[end : match.start()].strip().rpartition("\n\n")[2]
        names = _FILE.findall(above) if above.endswith(":") else []
        yield Fence(
            kind=match[2],
            argument=match[3].strip(),
            text=match[4],
            line=text.count("\n", 0, match.start(4)) + 1,
            name=names[0] if names else "",
        )
        end = match.end()


def prose(page: Path) -> str:
    """Give the text of a page without its fenced blocks."""
    return _FENCE.sub("", page.read_text("utf-8"))
