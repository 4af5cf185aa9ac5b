"""The blocks of the site's pages: commands print what the page shows, and files hold no fault."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.pages.site import DOCS, ROOT, Fence, fences, written_pages

PAGES = written_pages()
KINDS = {"", "console", "ini", "json", "mermaid", "python", "sh", "sql", "text", "toml", "yaml"}
BEFORE = "\x1e"
"""Printed by the shell between the outputs of two commands."""


def name_of(page: Path) -> str:
    return page.relative_to(DOCS).as_posix()


CONSOLES = [page for page in PAGES if any(fence.kind == "console" for fence in fences(page))]
ON_A_DATABASE = re.compile(
    r"^\$ countersign (audit|backup|forget|freeze|pending|prune|restore)\b", re.MULTILINE
)
OPERATING = [page for page in CONSOLES if ON_A_DATABASE.search(page.read_text("utf-8"))]
"""Pages that begin with a data directory."""


@pytest.mark.parametrize("page", CONSOLES, ids=name_of)
def test_commands_print_what_the_page_shows(
    page: Path, tmp_path: Path, programs: Path, request: pytest.FixtureRequest
) -> None:
    if page in OPERATING:
        shutil.copytree(request.getfixturevalue("data_directory"), tmp_path / ".countersign")
    script: list[str] = []
    expected: list[tuple[str, str]] = []
    for fence in fences(page):
        save(fence, page, tmp_path, script)
        if fence.kind == "sh":
            script += [
                line
                for line in fence.text.splitlines()
                if re.match(r"(cd|export|mkdir|touch) ", line)
            ]
        if fence.kind == "console":
            for command, output in commands(fence.text):
                script.append(f"printf '{BEFORE}'\n{command}")
                expected.append((command, output))
    printed = run("\n".join(script), tmp_path, programs).split(BEFORE)[1:]
    shown = dict(enumerate(printed))
    for number, (command, output) in enumerate(expected):
        assert matches(output, shown.get(number, "")), (
            f"{command}\nthe page shows:\n{output}\nit printed:\n{shown.get(number)}"
        )


POLICIES = [page for page in PAGES if any(fence.name == "policy.yaml" for fence in fences(page))]


@pytest.mark.parametrize("page", POLICIES, ids=name_of)
def test_a_policy_of_a_guide_is_checked_and_its_cases_are_run(page: Path) -> None:
    fenced = list(fences(page))
    blocks = [commands(fence.text) for fence in fenced if fence.kind == "console"]
    typed = [command for block in blocks for command, _ in block]
    assert any(
        re.search(r"countersign policy (check|test) policy.yaml", typed_line)
        for typed_line in typed
    )
    has_cases = any(fence.name == "cases.yaml" for fence in fenced)
    assert has_cases == any(
        "policy test policy.yaml cases.yaml" in typed_line for typed_line in typed
    )


def test_there_are_guides_with_policies() -> None:
    assert len(POLICIES) >= 12


def save(fence: Fence, page: Path, folder: Path, script: list[str]) -> None:
    """Add the commands that write a file which the page gives to the script."""
    if fence.kind == "{literalinclude}":
        source = (page.parent / fence.argument).resolve()
        script.append(f"cp {source} {fence.name or source.name}")
        return
    if fence.name and fence.kind not in {"console", "sh", "text"}:
        given = folder / f"{fence.line}.block"
        given.write_text(fence.text, "utf-8")
        script.append(f"mkdir -p $(dirname {fence.name}) && cp {given} {fence.name}")


def commands(text: str) -> list[tuple[str, str]]:
    """Split a block into commands and their outputs."""
    parts = re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]
    pairs = []
    for part in parts:
        lines = part.splitlines()
        end = next(at for at, line in enumerate(lines) if not line.endswith("\\")) + 1
        pairs.append(("\n".join(lines[:end]), "\n".join(lines[end:])))
    return pairs


def run(script: str, folder: Path, programs: Path) -> str:
    path = f"{programs}:{Path(sys.executable).parent}:/usr/bin:/bin"
    keep = {name: os.environ[name] for name in ("LANG", "LC_ALL") if name in os.environ}
    environ = {"PATH": path, "HOME": str(folder), "PYTHONPATH": "", **keep}
    script = script.replace("../.venv/bin/", "").replace(".venv/bin/", "")
    done = subprocess.run(  # noqa: S603
        ["/bin/sh", "-c", script],
        cwd=folder,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=300,
        check=False,
    )
    return done.stdout.decode()


def matches(shown: str, printed: str) -> bool:
    """Whether an output is what the page shows; "…" is any text, alone on a line any lines."""
    pattern = re.escape(shown.strip()).replace("\\…", "…").replace("…", ".*")
    return re.fullmatch(pattern, printed.strip(), re.DOTALL) is not None


def test_another_output_is_noticed() -> None:
    assert matches("a\n…\nz", "a\nb\nc\nz\n")
    assert not matches("a\nz", "a\nb\nz")
    assert commands("$ one \\\n  two\nout\n$ three\n") == [("one \\\n  two", "out"), ("three", "")]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_blocks_are_of_a_kind_that_is_tested(page: Path) -> None:
    for fence in fences(page):
        where = f"{name_of(page)}:{fence.line}"
        assert fence.kind.startswith("{") or fence.kind in KINDS - {""}, where
        if fence.kind == "json":
            json.loads(fence.text)
        elif fence.kind == "yaml":
            list(yaml.safe_load_all(fence.text))
        elif fence.kind == "sh":
            text = fence.text.encode()
            parsed = subprocess.run(["/bin/sh", "-n"], input=text, capture_output=True, check=False)
            assert parsed.returncode == 0, f"{where}: {parsed.stderr.decode()}"
        assert not re.search(r"<[a-z_-]+>", fence.text) or fence.kind == "text", where


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_included_files_are_there(page: Path) -> None:
    for fence in fences(page):
        if fence.kind in {"{literalinclude}", "{image}", "{figure}"}:
            target = page.parent / fence.argument
            if fence.argument.startswith("/"):
                target = DOCS / fence.argument[1:]
            assert target.exists(), f"{name_of(page)}: {fence.argument}"
            assert target.resolve().is_relative_to(ROOT)
