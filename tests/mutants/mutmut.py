"""Changes that mutmut makes, and what it found."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.mutants.nearest import nearest, store_of
from tests.mutants.result import Measured, Result

PLACE = Path("mutants")
"""Where mutmut works."""
FOUND = PLACE / "found.json"
"""See `tests.mutants.narrowed`."""


def run_mutmut(only: str, jobs: int, most: int) -> Iterator[Measured]:
    """Run one module after the other, each with its nearest tests.

    Args:
        only: A file or a folder; empty means all.
        jobs: How many at once.
        most: How many changes of a module are tried; 0 means all.
    """
    for path, tests in nearest(only).items():
        if store_of(path):
            continue
        shutil.rmtree(PLACE, ignore_errors=True)  # of another module
        _call(path, str(jobs), str(most), *tests)
        saved = json.loads(FOUND.read_text())
        yield Measured(path, [_result(path, *row) for row in saved["tried"]], saved["size"])


def _result(path: str, name: str, is_killed: bool, diff: str) -> Result:
    return Result(path, _place(name), _changed_lines(diff), is_killed)


def _place(name: str) -> str:
    function = name.rpartition(".")[2].rpartition("__mutmut_")[0]
    return re.sub("^x_", "", function).removeprefix("xǁ").replace("ǁ", ".")


def _changed_lines(diff: str) -> str:
    return "\n".join(
        f"{line[0]} {line[1:].strip()}"
        for line in diff.splitlines()
        if re.match(r"[-+](?![-+]{2} )", line)
    )


def _call(*words: str) -> None:
    """mutmut draws a wheel that turns: too much for a log."""
    done = subprocess.run(  # noqa: S603 - our own words
        [sys.executable, "-m", "tests.mutants.narrowed", *words],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        lines = [line for line in re.split("[\r\n]", done.stdout + done.stderr) if line.strip()]
        raise SystemExit("\n".join([f"mutmut failed for {words[0]}:", *lines[-30:]]))
