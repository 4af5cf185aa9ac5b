"""The pictures: each that a page shows is one that `make pictures` makes, and none is left over."""

from __future__ import annotations

import re
from pathlib import Path

from tests.pages.site import fences, written_pages
from tests.pictures.scenes import FOLDER, SCENES, VIEWERS

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
MADE = {viewer.file_of(scene) for scene in SCENES for viewer in VIEWERS}


def test_the_pictures_are_those_that_are_made() -> None:
    assert {file.name for file in FOLDER.iterdir() if file.is_file()} == MADE


def test_the_readme_shows_what_is_made_in_light_and_in_dark() -> None:
    (part,) = re.findall(r"<picture>\n(.*?)</picture>", README.read_text("utf-8"), re.DOTALL)
    (dark,) = re.findall(r'scheme: dark\)" srcset="[\w/]*images/([\w.-]+)"', part)
    (light,) = re.findall(r'<img src="[\w/]*images/([\w.-]+)"', part)
    assert light.replace("-light.", "-dark.") == dark
    assert {light, dark} <= MADE
    (words,) = re.findall(r'alt="([^"]+)"', part)
    assert len(words) > 40


def test_the_site_shows_what_is_made_in_light_and_in_dark_with_its_words() -> None:
    shown: dict[tuple[Path, str], dict[str, str]] = {}
    for page in written_pages():
        for fence in fences(page):
            if fence.kind == "{image}":
                name = Path(fence.argument).name
                assert name in MADE
                options = dict(re.findall(r"^:(\w+): (.+)$", fence.text, re.MULTILINE))
                assert len(options["alt"]) > 40, name
                for theme in ("light", "dark"):
                    if name.endswith(f"-{theme}.png"):
                        assert options["class"] == f"only-{theme}"
                        pair = (page, name.removesuffix(f"-{theme}.png"))
                        shown.setdefault(pair, {})[theme] = options["alt"]
    assert len(shown) >= 2
    assert all(len(texts) == 2 and len({*texts.values()}) == 1 for texts in shown.values())
