"""Pieces of Markdown that the pages are made of."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterable, Sequence

GENERATED = "This page is generated from the code."
"""Marks a page that `make reference` writes; tests of written pages leave such pages out."""


def page(title: str, purpose: str, parts: Iterable[str]) -> str:
    """Join the parts of a page.

    Args:
        title: The heading.
        purpose: The first paragraph: for whom the page is, and for what.
        parts: The paragraphs and sections.
    """
    whole = [f"# {title}", wrap(purpose), GENERATED, *parts]
    return "\n\n".join(part.strip("\n") for part in whole) + "\n"


def section(level: int, title: str, anchor: str = "") -> str:
    """Make a heading, with an anchor that does not change when the title does."""
    heading = f"{'#' * level} {title}"
    return f"({anchor})=\n{heading}" if anchor else heading


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Make a table; `|` in a cell is escaped."""
    lines = [f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"]
    lines += [f"| {' | '.join(_cell(cell) for cell in row)} |" for row in rows]
    return "\n".join(lines)


def properties(rows: Iterable[tuple[str, str]]) -> str:
    """Make a table of properties; empty ones are left out."""
    return table(("", ""), [row for row in rows if row[1]])


def fence(kind: str, text: str) -> str:
    """Make a block of code."""
    return f"```{kind}\n{text.strip()}\n```"


def code(text: object) -> str:
    """Write a text as code."""
    return f"`{text}`"


def wrap(text: str) -> str:
    """Break a paragraph into lines."""
    return "\n".join(textwrap.wrap(text, width=110, break_long_words=False, break_on_hyphens=False))


def words(docstring: str | None) -> str:
    """Read a docstring as one paragraph of Markdown, without its sections.

    Raises:
        ValueError: It is empty.
    """
    text = inspect.cleandoc(docstring or "")
    body = re.split(r"\n\n(?:Args|Attributes|Raises|Returns|Source|Sources):", text)[0]
    if not body:
        raise ValueError("a text is missing")
    return " ".join(body.split())


def anchor(*names: str) -> str:
    """Make an anchor out of names, such as `policy-ask-approve`."""
    return "-".join(re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") for name in names)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def spaced(name: str) -> str:
    """Write the name of a class in words: `BreakGlassEvent` becomes `Break glass event`."""
    parts = re.findall(r"[A-Z][a-z]*", name.removesuffix("Entry"))
    return " ".join([parts[0], *(part.lower() for part in parts[1:])])
