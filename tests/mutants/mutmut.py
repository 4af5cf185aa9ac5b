"""Changes that mutmut makes, and what it found."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from tests.mutants.result import Result

PLACE = Path("mutants")
"""Where mutmut works, and keeps what it found."""
_SURVIVED = {0, 5, 33}
"""No test failed, or none runs the function at all."""


def run_mutmut(only: str, jobs: int, *, is_new: bool) -> list[Result]:
    """Run what is to be run (`is_new`), and read the results.

    Args:
        only: A file or a folder; empty means all.
        jobs: How many at once.
        is_new: Whether to run anything.
    """
    if not any(path.startswith(only.rstrip("/*")) for path in _changed()):
        return []
    if is_new:
        shutil.rmtree(PLACE, ignore_errors=True)  # what was found before may not be so any more
        names = [f"{only.removesuffix('.py').rstrip('/').replace('/', '.')}*"] if only else []
        _call("run", "--max-children", str(jobs), *names)
    return [one for path in sorted(PLACE.rglob("*.py.meta")) for one in _read(path, only)]


def _changed() -> list[str]:
    settings = tomllib.loads(Path("pyproject.toml").read_text())["tool"]["mutmut"]
    return [str(path) for pattern in settings["only_mutate"] for path in Path().glob(pattern)]


def _read(meta: Path, only: str) -> Iterator[Result]:
    path = meta.relative_to(PLACE).as_posix().removesuffix(".meta")
    if not path.startswith(only.rstrip("/")):
        return
    for name, code in json.loads(meta.read_text())["exit_code_by_key"].items():
        if code is None:
            raise SystemExit(f"{name} was not tried; run it again")
        is_killed = code not in _SURVIVED
        diff = "" if is_killed else _diff(name)
        yield Result(path, _place(name), diff, is_killed)


def _place(name: str) -> str:
    found = name.rpartition(".")[2].rpartition("__mutmut_")[0]
    return re.sub("^x_", "", found).removeprefix("xǁ").replace("ǁ", ".")


def _diff(name: str) -> str:
    shown = subprocess.run(  # noqa: S603 - our own words
        [_program(), "show", name], capture_output=True, text=True, check=True
    ).stdout
    return "\n".join(
        f"{line[0]} {line[1:].strip()}"
        for line in shown.splitlines()
        if re.match(r"[-+](?![-+]{2} )", line)
    )


def _call(*words: str) -> None:
    """mutmut draws a wheel that turns: too much for a log."""
    done = subprocess.run(  # noqa: S603 - our own words
        [_program(), *words], capture_output=True, text=True, check=False
    )
    if done.returncode:
        lines = [line for line in re.split("[\r\n]", done.stdout + done.stderr) if line.strip()]
        raise SystemExit("\n".join(["mutmut failed:", *lines[-30:]]))


def _program() -> str:
    return str(Path(sys.executable).with_name("mutmut"))
