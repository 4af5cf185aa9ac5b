"""Each diagram of the site has its picture, and readers load no script for it."""

from __future__ import annotations

import hashlib
import re

import pytest

from tests.pages.site import DOCS, Fence, fences, written_pages

FOLDER = DOCS / "images" / "diagrams"
DIAGRAMS = [
    pytest.param(fence, id=f"{page.stem}:{fence.line}")
    for page in written_pages()
    for fence in fences(page)
    if fence.kind == "mermaid"
]
MOST = 12
"""Boxes or messages of a diagram."""


def file_of(fence: Fence) -> str:
    return f"{hashlib.sha256(fence.text.strip().encode()).hexdigest()[:16]}.svg"


@pytest.mark.parametrize("fence", DIAGRAMS)
def test_a_diagram_is_rendered_and_has_a_title(fence: Fence) -> None:
    assert (FOLDER / file_of(fence)).exists(), "run `make diagrams`"
    assert re.search(r"^ *accTitle: .{10,}", fence.text, re.MULTILINE)
    assert len(re.findall(r"->>|--?>|==>", fence.text)) <= MOST


def test_a_picture_is_safe_and_of_a_diagram() -> None:
    named = {file_of(each.values[0]) for each in DIAGRAMS if isinstance(each.values[0], Fence)}
    assert {file.name for file in FOLDER.glob("*.svg")} == named
    for file in FOLDER.glob("*.svg"):
        text = file.read_text("utf-8")
        assert not re.search(r"<script|\son\w+=|(?:href|url)\W+https?:", text)
