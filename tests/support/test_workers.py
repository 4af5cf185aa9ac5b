"""Tests in several processes: all are run once, and what goes wrong in a worker is told."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.workers import shares

ROOT = Path(__file__).parents[2]
FILES = {
    "unit/test_a.py": 53,
    "scenario/test_b.py": 8,
    "chaos/test_c.py": 3,
    "contract/test_d.py": 20,
}
TESTS = """\
import os

import pytest


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    yield tmp_path_factory.mktemp("made")
    print("the module's end")


@pytest.mark.parametrize("number", range(40))
def test_passes(made, number):
    print(f"printed by {os.getpid()}")
    assert made.is_dir()


def test_fails():
    print("said before")
    assert 1 == 2


@pytest.fixture
def broken():
    raise ValueError("no fixture")


def test_cannot_begin(broken):
    pass


@pytest.mark.skip(reason="not today")
def test_is_skipped():
    pass


def test_ends_its_process():
    os._exit(3)
"""


def run(folder: Path, *options: str) -> tuple[int, str]:
    (folder / "test_made.py").write_text(TESTS, "utf-8")
    command = [sys.executable, "-m", "pytest", "-rA", "-p", "tests.support.workers"]
    command += ["-p", "no:cacheprovider", "-c", os.devnull, f"--rootdir={folder}", *options]
    done = subprocess.run(  # noqa: S603 - our own words
        [*command, str(folder)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def test_each_test_has_its_outcome_though_a_worker_dies(tmp_path: Path) -> None:
    code, said = run(tmp_path, "--workers", "3")

    assert code == pytest.ExitCode.TESTS_FAILED
    assert "2 failed, 40 passed, 1 skipped, 1 error in" in said
    assert "ended in this test, with exit code 3" in said
    assert "said before" in said
    passed = [line for line in said.splitlines() if line.startswith("PASSED ")]
    assert len(passed) == len(set(passed)) == 40
    processes = Counter(line for line in said.splitlines() if line.startswith("printed by "))
    assert sum(processes.values()) == 40
    assert len(processes) > 1


def test_workers_end_at_the_first_failure_that_is_enough(tmp_path: Path) -> None:
    code, said = run(tmp_path, "--workers", "2", "-x", "-k", "fails or begin")

    assert code == pytest.ExitCode.TESTS_FAILED
    assert "stopping after 1 failures" in said


def test_a_share_is_of_one_file_and_what_waits_comes_first() -> None:
    items: list[Any] = [
        SimpleNamespace(path=ROOT / "tests" / name, number=number)
        for name, count in FILES.items()
        for number in range(count)
    ]
    found = shares(items)

    assert sorted(map(id, (one for share in found for one in share))) == sorted(map(id, items))
    names = [{one.path.parent.name for one in share} for share in found]
    assert names == [{"chaos"}, *[{"scenario"}] * 2, *[{"unit"}] * 3, {"contract"}]
    assert [len(share) for share in found] == [3, 5, 3, 20, 20, 13, 20]
