"""The pictures: each that a page shows is one that `make pictures` makes, and none is left over."""

from __future__ import annotations

import re
from pathlib import Path

from tests.pictures.scenes import FOLDER, SCENES, VIEWERS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
MADE = {viewer.file_of(scene) for scene in SCENES for viewer in VIEWERS}


def test_the_pictures_are_those_that_are_made() -> None:
    assert {file.name for file in FOLDER.iterdir() if file.is_file()} == MADE


def test_a_page_shows_what_is_made_in_light_and_in_dark() -> None:
    found = {}
    for page in PAGES:
        for part in re.findall(r"<picture>\n(.*?)</picture>", page.read_text("utf-8"), re.DOTALL):
            (dark,) = re.findall(r'scheme: dark\)" srcset="[\w/]*images/([\w.-]+)"', part)
            (light,) = re.findall(r'<img src="[\w/]*images/([\w.-]+)"', part)
            assert light.replace("-light.", "-dark.") == dark
            found[light] = dark
    assert len(found) >= 2
    assert {*found, *found.values()} <= MADE


def test_each_picture_says_in_words_what_it_shows() -> None:
    texts = [re.findall(r"<img [^>]*>", page.read_text("utf-8")) for page in PAGES]
    for image in [one for found in texts for one in found]:
        (words,) = re.findall(r'alt="([^"]+)"', image)
        assert len(words) > 40, image
