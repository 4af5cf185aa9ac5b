"""The pages: each file, test and method of ours that they name is there."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = "agents|benchmarks|bot|deploy|docs|examples|storage|tests"
PAGES = [
    page
    for page in sorted(
        [
            *ROOT.glob("*.md"),
            *ROOT.glob("docs/**/*.md"),
            *ROOT.glob("docs/explanation/*.md"),
            *ROOT.glob("docs/contributing/*.md"),
            *ROOT.glob("examples/**/*.md"),
        ]
    )
    if page.name != "CHANGELOG.md"  # tells how it was
]
PATH = re.compile(rf"`((?:{FOLDERS})/[\w./*-]+|test_\w+\.py)(?:::(\w+))?`")
METHOD = re.compile(r"`([A-Z]\w+)\.(?!json|yaml)([a-z]\w+)(?:\([^`]*\))?`")


def files_of(name: str) -> list[Path]:
    """The files that a page means; a test may be named without its folder."""
    return list(ROOT.glob(name.rstrip("/"))) if "/" in name else paths_by_name().get(name, [])


@cache
def paths_by_name() -> dict[str, list[Path]]:
    """All files of tests, looked for once."""
    by_name: dict[str, list[Path]] = {}
    for path in (ROOT / "tests").rglob("*.*"):
        by_name.setdefault(path.name, []).append(path)
    return by_name


def names_in(path: Path) -> set[str]:
    nodes = ast.walk(ast.parse(path.read_text("utf-8")))
    return {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def methods() -> dict[str, set[str]]:
    """What each class of ours has, and its bases: methods, properties and fields."""
    by_class: dict[str, set[str]] = {}
    bases: dict[str, set[str]] = {}
    for folder in ("agents", "bot", "countersign_client", "slack_sandbox", "storage"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.ClassDef):
                    by_class.setdefault(node.name, set()).update(members(node))
                    names = {base.id for base in node.bases if isinstance(base, ast.Name)}
                    bases.setdefault(node.name, set()).update(names)
    for name, above in bases.items():
        by_class[name] = by_class[name].union(*(by_class.get(base, set()) for base in above))
    return by_class


def members(node: ast.ClassDef) -> set[str]:
    named = {
        each.name for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    fields = {each.target for each in node.body if isinstance(each, ast.AnnAssign)}
    return named | {each.id for each in fields if isinstance(each, ast.Name)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_begins_with_its_title_alone(page: Path) -> None:
    first, second, *_ = page.read_text("utf-8").splitlines()
    assert re.fullmatch(r"# \S.{0,78}", first)
    assert second == ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_files_and_tests_that_a_page_names_are_there(page: Path) -> None:
    text = page.read_text("utf-8")
    named = [(name, test) for name, test in PATH.findall(text) if f"Save as `{name}`" not in text]
    assert [name for name, _ in named if not files_of(name)] == []
    tests = [(name, test) for name, test in named if test]
    assert [each for each in tests if each[1] not in names_in(files_of(each[0])[0])] == []


def test_the_methods_that_pages_name_are_there() -> None:
    ours = methods()
    named = {
        each
        for page in PAGES
        if page.name != "migrate-from-langgraph.md"  # of other frameworks, too
        for each in METHOD.findall(page.read_text("utf-8"))
    }
    assert ("Approvals", "decide") in named
    assert [each for each in sorted(named) if each[1] not in ours.get(each[0], set())] == []


def test_what_is_looked_for_in_pages_is_found() -> None:
    text = "`bot/main.py`, `tests/pages/test_pages.py::test_x` `test_way.py` `bot/slack/cards/`"
    paths = [name for name, _ in PATH.findall(text)]
    assert paths == ["bot/main.py", "tests/pages/test_pages.py", "test_way.py", "bot/slack/cards/"]
    assert METHOD.findall("`Turns.step` and `Turns.step(work)`") == [("Turns", "step")] * 2
    assert files_of("bot/nothing.py") == files_of("test_nothing.py") == []


def test_each_page_of_the_site_stands_once_in_its_contents() -> None:
    docs = ROOT / "docs"
    written = (docs / "index.md").read_text("utf-8")
    contents = [
        name
        for toctree in re.findall(r"^```\{toctree\}\n(.*?)^```$", written, re.MULTILINE | re.DOTALL)
        for name in toctree.splitlines()
        if not name.startswith(":")
    ]
    below = {
        "index",
        *(f"reference/python-api/{page.stem}" for page in docs.glob("reference/python-api/*.md")),
    }
    pages = {
        page.relative_to(docs).with_suffix("").as_posix()
        for page in docs.rglob("*.md")
        if "_build" not in page.parts
    }
    assert sorted(contents) == sorted(pages - below | {"reference/python-api/index"})


def test_the_glossary_has_each_word_once_in_order_with_one_sentence() -> None:
    rows = re.findall(
        r"^\| \*\*([\w ]+)\*\* \| (.+) \|$",
        (ROOT / "docs" / "reference" / "glossary.md").read_text("utf-8"),
        re.MULTILINE,
    )
    words = [word for word, _ in rows]
    assert 40 < len(words) <= 60
    assert words == sorted(set(words))
    assert [word for word, text in rows if not re.fullmatch(r"[A-Z][^.]*\.", text)] == []
