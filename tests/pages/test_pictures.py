"""The pictures: each that a page shows is one that `make pictures` makes, and none is left over."""

from __future__ import annotations

import re
from pathlib import Path

from tests.pages.site import ROOT, fences, prose, written_pages
from tests.pictures.scenes import FOLDER, SCENES

README = ROOT / "README.md"
MADE = {viewer.file_of(scene) for scene in SCENES for viewer in scene.viewers}
MOST_WORDS = 30

Shown = dict[tuple[Path, str], str]
"""The text that replaces a picture, by the page and the name of the file."""


def readme_pictures() -> Shown:
    """Return the pictures of the README."""
    (part,) = re.findall(r"<picture>\n(.*?)</picture>", README.read_text("utf-8"), re.DOTALL)
    (dark,) = re.findall(r'scheme: dark\)" srcset="docs/images/([\w.-]+)"', part)
    (light,) = re.findall(r'<img src="docs/images/([\w.-]+)"', part)
    (text,) = re.findall(r'alt="([^"]+)"', part)
    return {(README, light): text, (README, dark): text}


def site_pictures() -> Shown:
    """Return the pictures of the site."""
    texts: Shown = {}
    for page in written_pages():
        for fence in fences(page):
            if fence.kind == "{image}":
                name = Path(fence.argument).name
                options = dict(re.findall(r"^:(\w+): (.+)$", fence.text, re.MULTILINE))
                assert options["class"] == f"only-{name.removesuffix('.png').rpartition('-')[2]}"
                texts[page, name] = options["alt"]
        assert "![" not in prose(page), page
    return texts


SHOWN = {**readme_pictures(), **site_pictures()}


def test_the_pictures_are_those_that_are_made_and_shown() -> None:
    assert {file.name for file in FOLDER.iterdir() if file.is_file()} == MADE
    assert {name for _, name in SHOWN} == MADE


def test_each_picture_is_there_in_light_and_in_dark_with_the_same_text() -> None:
    for (page, name), text in SHOWN.items():
        both = (re.sub(r"(light|dark)\.png", f"{theme}.png", name) for theme in ("light", "dark"))
        assert [SHOWN[page, picture] for picture in both] == [text, text]


def test_each_picture_says_in_words_what_it_shows() -> None:
    for (_, name), text in SHOWN.items():
        assert len(text) > 40, name
        assert len(text.split()) <= MOST_WORDS, name
