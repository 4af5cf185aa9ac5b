"""The guide to the runtime (docs/runtime.md): its code runs as printed, and its names exist.

Each section begins with the helpers of the first one and nothing else, unless it says that it is
continued: then it goes on with what the section before it has. A `text` block below a code block is
what the code prints; code without one prints nothing.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import ModuleType

import pytest

import agents
from agents import AgentError
from tests.pages.blocks import Block, Section, chapters, read_sections

PAGE = Path(__file__).parents[2] / "docs" / "runtime.md"
LONGEST = 25
"""How many lines a block may have: more than that, nobody follows."""

SECTIONS = read_sections(PAGE)
HELPERS = SECTIONS[0]


@pytest.mark.parametrize("chapter", chapters(SECTIONS[1:]), ids=lambda sections: sections[0].title)
async def test_the_code_runs_and_prints_what_the_guide_says(
    chapter: list[Section], module: ModuleType
) -> None:
    for section in [HELPERS, *chapter]:
        for block in section.blocks:
            printed = await block.run(module)
            assert printed == (block.printed or ""), f"{section.title}, line {block.line}"


def test_blocks_are_short_and_end_with_what_they_print() -> None:
    blocks = [block for section in SECTIONS for block in section.blocks]
    assert len(blocks) > 50
    too_long = [block.line for block in blocks if len(block.code.splitlines()) > LONGEST]
    too_wide = [
        block.line for block in blocks if max(map(len, block.code.splitlines()), default=0) > 100
    ]
    assert (too_long, too_wide) == ([], [])


async def test_another_output_would_be_noticed(module: ModuleType) -> None:
    block = Block(
        PAGE, line=3, code="import asyncio\nawait asyncio.sleep(0)\nprint(1)\n", printed="2\n"
    )
    assert await block.run(module) == "1\n"
    with pytest.raises(NameError) as caught:
        await Block(PAGE, line=7, code="x = 1\nunknown\n", printed=None).run(module)
    assert caught.traceback[-1].lineno == 7  # counted from 0: line 8 of the page


def test_every_error_of_the_runtime_is_explained() -> None:
    (section,) = (one for one in SECTIONS if one.title == "Errors")
    told = set(re.findall(r"^\| `(\w+)` \|", section.text, re.MULTILINE))
    bases = {"AgentError", "CheckpointError", "ResumeError"}
    assert told == {error.__name__ for error in all_errors(AgentError)} - bases


def all_errors(base: type[AgentError]) -> set[type[AgentError]]:
    known_names()  # all modules are loaded: errors may be anywhere
    found = {base}
    for one in base.__subclasses__():
        if one.__module__.startswith("agents."):
            found |= all_errors(one)
    return found


def imported() -> dict[str, object]:
    """What the guide imports from the runtime, by name."""
    found: dict[str, object] = {}
    for section in SECTIONS:
        for block in section.blocks:
            for node in ast.walk(ast.parse(block.code)):
                if isinstance(node, ast.ImportFrom) and str(node.module).startswith("agents"):
                    owner = importlib.import_module(str(node.module))
                    found |= {name.name: getattr(owner, name.name) for name in node.names}
    return found


def is_own(value: object) -> bool:
    return (inspect.isclass(value) or inspect.isfunction(value)) and str(
        value.__module__
    ).startswith("agents")


def test_everything_that_the_guide_uses_says_what_it_does() -> None:
    undocumented = []
    for name, value in imported().items():
        if not is_own(value):
            continue
        text = inspect.getdoc(value) or ""
        # A dataclass without a docstring gets its signature as one.
        if not text or text.startswith(f"{name}("):
            undocumented.append(name)
            continue
        if inspect.isfunction(value):
            given = set(inspect.signature(value).parameters)
            # One line can say what a short function takes; with more arguments it cannot.
            if len(given) > 2 and "Args:" not in text:
                undocumented.append(name)
    assert undocumented == []


def known_names() -> dict[str, list[object]]:
    """Every name of every module of the runtime, with what it may mean."""
    found: dict[str, list[object]] = {"agents": [agents]}
    for info in pkgutil.walk_packages(agents.__path__, "agents."):
        owner = importlib.import_module(info.name)
        for name, value in vars(owner).items():
            if not name.startswith("_"):
                found.setdefault(name, []).append(value)
    return found


def has(value: object, name: str) -> bool:
    """Whether a class has a member or a field of this name."""
    if (
        inspect.isclass(value)
        and is_dataclass(value)
        and name in {one.name for one in fields(value)}
    ):
        return True
    return hasattr(value, name) or name in getattr(value, "__annotations__", {})


def table_rows() -> list[list[str]]:
    """Rows of the tables of names; their second cell is ours."""
    sections = [one for one in SECTIONS if one.title.startswith("Names: ")]
    assert len(sections) >= 5
    lines = [line for one in sections for line in one.text.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return [row for row in rows if not set("".join(row)) <= set("-: ")]


def test_names_of_ours_in_the_tables_exist() -> None:
    names = known_names()
    unknown, checked = [], 0
    for row in table_rows():
        for name in re.findall(r"`([A-Za-z_][\w.]*)(?:\(…?\))?`", row[1]):
            first, *rest = name.split(".")
            checked += 1
            if not any(_leads(value, rest) for value in names.get(first, [])):
                unknown.append(name)
    assert unknown == []
    assert checked > 100


def _leads(value: object, path: list[str]) -> bool:
    for at, name in enumerate(path):
        if not has(value, name):
            return False
        if at < len(path) - 1:
            value = getattr(value, name)
    return True
