"""The pages of the Python API: each public name of the package is on one page, with a text."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from types import ModuleType

import agents
from tests.pages.site import DOCS

PAGES = [
    page for page in sorted((DOCS / "reference/python-api").glob("*.md")) if page.stem != "index"
]
MOST_NAMES = 60
MOST_WORDS = 150
ENTRY = re.compile(r"^\.\. auto\w+:: ([\w.]+)\.(\w+)$", re.MULTILINE)
HEADING = re.compile(r"^## (agents[\w.]*)$", re.MULTILINE)


def entries() -> list[tuple[str, str]]:
    return [entry for page in PAGES for entry in ENTRY.findall(page.read_text("utf-8"))]


def modules() -> list[ModuleType]:
    """The modules that the pages have a heading for."""
    names = {name for page in PAGES for name in HEADING.findall(page.read_text("utf-8"))}
    return [agents, *(import_module(name) for name in sorted(names))]


def test_each_public_name_is_on_one_page() -> None:
    named = [name for _, name in entries()]
    assert len(named) == len(set(named)) > 300
    assert {name for module in modules() for name in module.__all__} == set(named)


def test_a_page_has_few_names_and_a_short_introduction() -> None:
    assert len(PAGES) == 6
    for page in PAGES:
        text = page.read_text("utf-8")
        assert 0 < len(ENTRY.findall(text)) <= MOST_NAMES
        assert len(text.partition("\n## ")[0].split()) <= MOST_WORDS


def test_each_class_and_function_has_a_text() -> None:
    silent = []
    for module, name in entries():
        value = getattr(import_module(module), name)
        is_named = inspect.isclass(value) or inspect.isfunction(value)
        text = inspect.getdoc(value) or ""
        # A dataclass without a docstring gets its signature as one.
        if is_named and (not text or text.startswith(f"{name}(")):
            silent.append(name)
    assert silent == []
