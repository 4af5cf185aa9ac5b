"""The commands that pages tell people to type: they are there, with these options."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from importlib.util import find_spec
from pathlib import Path

import pytest

from bot.commands.parser import parse
from bot.config.settings import FOR_TESTS, OF_PROGRAMS, variables

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")])
FENCE = re.compile(r"^\s*```sh\n(.*?)^\s*```$", re.MULTILINE | re.DOTALL)


def typed(page: Path) -> list[list[str]]:
    """The calls of `countersign` in the blocks of a page, each as its arguments."""
    calls = []
    for block in FENCE.findall(page.read_text("utf-8")):
        for line in re.sub(r"\$\(.*?\)", "now", block.replace("\\\n", " ")).splitlines():
            words = shlex.split(line, comments=True)
            at = next((at for at, word in enumerate(words) if is_ours(word)), None)
            if at is not None:
                calls.append([*until_the_shell(words[at + 1 :])])
    return calls


def is_ours(word: str) -> bool:
    return word == "countersign" or word.endswith(".venv/bin/countersign")


def until_the_shell(words: list[str]) -> list[str]:
    end = next((at for at, word in enumerate(words) if word in {"|", ">", "&&", ";"}), len(words))
    return words[:end]


CALLS = [
    pytest.param(call, id=f"{page.stem}: {' '.join(call)}")
    for page in PAGES
    for call in typed(page)
    if call and call[0] not in {"&&", "cd"}
]


@pytest.mark.parametrize("call", CALLS)
def test_a_command_of_a_page_is_one(call: list[str]) -> None:
    assert fault_of(call) == ""


@pytest.mark.parametrize(
    "call", [["no-such"], ["doctor", "--no-such"], ["backup"], ["audit", "--thread"]]
)
def test_a_command_that_is_none_is_noticed(call: list[str]) -> None:
    assert "error: " in fault_of(call)


def fault_of(call: list[str]) -> str:
    """What the command line says against a call; nothing where a module of ours does it."""
    out = io.StringIO()
    try:
        with contextlib.redirect_stderr(out), contextlib.redirect_stdout(io.StringIO()):
            name = parse(call).command
    except SystemExit as end:  # of --help, too
        return out.getvalue() if end.code else ""
    return "" if find_spec(f"bot.commands.{name}") else f"error: there is no module {name}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_settings_of_a_page_are_ours(page: Path) -> None:
    text = page.read_text("utf-8")
    named = set(re.findall(r"\b(?:COUNTERSIGN|SLACK|MONGODB)_[A-Z_]*[A-Z]\b", text))
    ours = {*variables(), *OF_PROGRAMS}
    assert {name for name in named if not name.startswith(FOR_TESTS)} <= ours


def test_they_are_found() -> None:
    assert len(CALLS) > 20
    assert ["doctor"] in typed(ROOT / "docs" / "how-to" / "connect-slack.md")


def test_the_targets_of_make_are_there() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    named = {
        target
        for page in PAGES
        for block in FENCE.findall(page.read_text("utf-8"))
        for target in re.findall(r"^make ([\w./-]+)", block, re.MULTILINE)
    }
    there = set(re.findall(r"^([\w-]+):", makefile, re.MULTILINE))
    assert {name for name in named if not name.startswith(".venv/")} <= there
    assert {name for name in named if name.startswith(".venv/")} <= {".venv/.run", ".venv/.dev"}
