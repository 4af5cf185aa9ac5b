"""The page of the sandbox: nothing in its files may run data as markup or reach another machine."""

import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import pytest

import slack_sandbox

PAGE = (Path(slack_sandbox.__file__).parent / "page").resolve()
SCRIPTS = sorted(PAGE.rglob("*.js"))
STYLES = sorted(PAGE.rglob("*.css"))
TYPES = {".html", ".css", ".js", ".svg"}
SVG_NAMESPACE = "http://www.w3.org/2000/svg"

MARKUP = (
    "innerHTML",
    "outerHTML",
    "insertAdjacentHTML",
    "setHTML",
    "document.write",
    "DOMParser",
    "createContextualFragment",
    "srcdoc",
)
CODE_FROM_DATA = (r"\beval\s*\(", r"\bnew\s+Function\b", r"\bset(?:Timeout|Interval)\(\s*[\"'`]")
HANDLER_ATTRIBUTE = re.compile(r"setAttribute\(\s*[\"'`]on|[\s{,]on[a-z]+\s*:\s*[\"'`]")
ADDRESS = re.compile(r"(?:https?:|wss?:)?//[a-z0-9-]+(?:\.[a-z0-9-]+)+", re.IGNORECASE)
IMPORT = re.compile(r"^import\s[^;]*?from\s+\"([^\"]+)\";", re.MULTILINE | re.DOTALL)
TOKEN = re.compile(r"--([a-z-]+):\s*(#[0-9a-f]{6});")
PAIR = re.compile(r"--([a-z-]+):\s*light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);")


class Outline(HTMLParser):
    """What matters of an HTML file: its tags with attributes, ids and text in scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.inline: list[str] = []
        self._open = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._open = tag

    def handle_endtag(self, tag: str) -> None:
        self._open = ""

    def handle_data(self, data: str) -> None:
        if self._open in {"script", "style"} and data.strip():
            self.inline.append(data.strip())


def outline() -> Outline:
    parsed = Outline()
    parsed.feed((PAGE / "index.html").read_text(encoding="utf-8"))
    return parsed


def code_of(path: Path) -> str:
    """The text of a script without its line comments."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines if not line.lstrip().startswith(("//", "*", "/**")))


def test_page_holds_only_files_that_are_served_as_they_are() -> None:
    assert {path.suffix for path in PAGE.rglob("*") if path.is_file()} == TYPES


def test_script_never_makes_markup_from_data() -> None:
    matches = [(path.name, word) for path in SCRIPTS for word in MARKUP if word in code_of(path)]
    assert matches == []


def test_script_never_runs_text_as_code() -> None:
    for path in SCRIPTS:
        text = code_of(path)
        assert not [pattern for pattern in CODE_FROM_DATA if re.search(pattern, text)], path.name
        assert not HANDLER_ATTRIBUTE.search(text), path.name


def test_script_sets_no_style_attribute() -> None:
    """The content policy would refuse it."""
    style = re.compile(r"setAttribute\(\s*[\"']style|[{,]\s*style:\s*[\"'`]|cssText")
    assert [path.name for path in SCRIPTS if style.search(code_of(path))] == []


def test_file_names_no_other_machine() -> None:
    for path in [*SCRIPTS, *STYLES, PAGE / "index.html"]:
        assert ADDRESS.findall(path.read_text(encoding="utf-8")) == [], path.name


def test_style_loads_nothing() -> None:
    for path in STYLES:
        text = path.read_text(encoding="utf-8")
        assert "@import" not in text, path.name
        assert "url(" not in text, path.name


def test_drawing_is_plain() -> None:
    path = PAGE / "icon.svg"
    text = path.read_text(encoding="utf-8")
    assert ADDRESS.findall(text.replace(SVG_NAMESPACE, "")) == []
    tags = {node.tag for node in ET.fromstring(text).iter()}  # noqa: S314 - our own file
    assert tags == {f"{{{SVG_NAMESPACE}}}{name}" for name in ("svg", "rect", "path")}


def test_html_has_no_inline_script_style_or_handler() -> None:
    page = outline()
    assert page.inline == []
    names = {name for _, attributes in page.tags for name in attributes}
    assert not {name for name in names if name.startswith("on")}
    assert "style" not in names


def test_html_references_exist() -> None:
    tags = outline().tags
    references = [a.get("href") for tag, a in tags if tag == "link"]
    references += [a.get("src") for tag, a in tags if tag == "script"]
    assert len(references) == 1 + len(STYLES) + 1
    for reference in references:
        assert reference is not None
        assert reference.startswith("/page/")
        assert (PAGE / reference.removeprefix("/page/")).is_file()


def test_scripts_import_only_each_other_and_all_are_used() -> None:
    used = {PAGE / "app.js"}
    for path in SCRIPTS:
        for target in IMPORT.findall(path.read_text(encoding="utf-8")):
            script = (path.parent / target).resolve()
            assert target.startswith(("./", "../")), f"{path.name} imports {target}"
            assert script in SCRIPTS, f"{path.name} imports {target}"
            used.add(script)
    assert used == set(SCRIPTS)


def test_elements_and_drawings_that_scripts_name_exist() -> None:
    ids = {attributes["id"] for _, attributes in outline().tags if "id" in attributes}
    text = "\n".join(code_of(path) for path in SCRIPTS)
    by_id = set(re.findall(r"(?:byId|getElementById)\(\"([\w-]+)\"\)", text))
    drawings = {f"icon-{name}" for name in re.findall(r"\bicon\(\"([\w-]+)\"\)", text)}
    assert by_id
    assert drawings
    assert by_id | drawings <= ids


def schemes() -> dict[str, dict[str, str]]:
    """The colour tokens of the light and of the dark scheme."""
    text = (PAGE / "styles" / "style.css").read_text(encoding="utf-8")
    both = {name: (colour, colour) for name, colour in TOKEN.findall(text)}
    both |= {name: (light, dark) for name, light, dark in PAIR.findall(text)}
    return {
        scheme: {name: colours[index] for name, colours in both.items()}
        for index, scheme in enumerate(("light", "dark"))
    }


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(color: str, other: str) -> float:
    high, low = sorted((luminance(color), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


READ_TOGETHER = [
    ("text", "bg"),
    ("text", "soft"),
    ("muted", "bg"),
    ("muted", "soft"),
    ("muted", "raised"),
    ("link", "bg"),
    ("link", "soft"),
    ("danger-text", "bg"),
    ("danger-text", "soft"),
    ("warn-text", "warn-bg"),
    ("code", "code-bg"),
    ("mention-text", "mention-bg"),
    ("ping-text", "ping-bg"),
    ("side-text", "side"),
    ("side-current-text", "side-current"),
    *(("white", back) for back in ("primary", "primary-hover", "danger", "danger-hover", "top")),
]
SEEN_TOGETHER = [("focus", "bg"), ("line-strong", "raised")]
"""The focus ring, and the borders of fields."""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_people_see_stands_out_from_what_is_behind_it(scheme: str) -> None:
    tokens = {"white": "#ffffff", **schemes()[scheme]}
    for least, pairs in ((4.5, READ_TOGETHER), (3, SEEN_TOGETHER)):
        for front, back in pairs:
            assert contrast(tokens[front], tokens[back]) >= least, (front, back)
