"""Runs the tests of each module of `changes`, once for each change, in a copy of the program."""

from __future__ import annotations

import importlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager
from pathlib import Path

import pytest

from tests.mutants.changes import Change, Store, changes
from tests.mutants.nearest import nearest, store_of
from tests.mutants.result import Measured, Result, sample

PLACE = Path("mutants-own")
"""Where the copy is."""
OURS = ("agents", "bot", "countersign_client", "slack_sandbox", "storage", "tests")
HEAVY = ("pytest_asyncio", "hypothesis", "pydantic_ai", "pymongo", "motor.motor_asyncio")
"""What tests need that is not ours: it is imported once."""
HOT = frozenset(
    f"storage/{database}/{name}.py"
    for database in ("sqlite", "mongo")
    for name in ("approvals", "checkpoints", "threads", "whispers")
)
"""Of these, others know only the classes: they are changed in a process that has read all else."""
PATIENCE = 1800
"""Seconds that tests may take without any change: the machine may have other work."""
LEAST = 120
"""Seconds that tests of one change may take at least: whatever hangs is noticed, too."""


def run_own(only: str, most: int) -> Iterator[Measured]:
    """Make each change, and run the tests.

    Args:
        only: A file or a folder; empty means all.
        most: How many changes of a module are tried; 0 means all.
    """
    tests_by_path = nearest(only)
    if not tests_by_path:
        return
    _copy()
    for name in HEAVY:
        importlib.import_module(name)
    with _mongo_server(is_needed=any("/mongo/" in path for path in tests_by_path)), chdir(PLACE):
        _forget_ours()
        sys.path.insert(0, str(Path.cwd()))
        sys.dont_write_bytecode = True  # two changes within one second would look the same
        for path, tests in tests_by_path.items():
            start = time.monotonic()
            if not _passes(tests, PATIENCE):
                raise SystemExit(
                    f"the tests of {path} fail without any change, or take more than {PATIENCE} "
                    f"seconds; see {PLACE}/output"
                )
            limit = LEAST + int(3 * (time.monotonic() - start))
            every = list(_changes(path))
            results = [_tried(path, change, tests, limit) for change in sample(every, most)]
            yield Measured(path, results, len(every))


def _changes(path: str) -> Iterator[Change]:
    stores: dict[str, Store] = {"sqlite": "sql", "mongo": "mongo"}
    yield from changes(Path(path).read_text(), store=stores.get(store_of(path), ""))


def _tried(path: str, change: Change, tests: tuple[str, ...], limit: int) -> Result:
    right = Path(path).read_text()
    if path in HOT and _module(path) not in sys.modules:
        _quiet(lambda: _pytest("--collect-only", *tests))
    try:
        if path in HOT:
            is_killed = _forked(lambda: _swapped(path, change.source, tests), limit) != 0
        else:
            Path(path).write_text(change.source)
            is_killed = not _passes(tests, limit)
    finally:
        Path(path).write_text(right)
    print("." if is_killed else "s", end="", flush=True)
    return Result(path, change.place, change.what, is_killed)


def _swapped(path: str, source: str, tests: tuple[str, ...]) -> int:
    """Run tests with another source of a module that is loaded, and used by its classes alone."""
    module = sys.modules[_module(path)]
    before = dict(vars(module))
    exec(compile(source, path, "exec"), vars(module))  # noqa: S102 - made of our own source
    for name, kind in before.items():
        if isinstance(kind, type) and kind.__module__ == module.__name__:
            for member, value in vars(vars(module)[name]).items():
                if callable(value):
                    setattr(kind, member, value)
            setattr(module, name, kind)
    return _pytest(*tests)


def _module(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".")


def _passes(tests: tuple[str, ...], limit: int) -> bool:
    """Run tests in a process of their own, which reads all of ours anew."""

    def run() -> int:
        _forget_ours()
        return _pytest(*tests)

    return _forked(run, limit) == 0


def _forked(run: Callable[[], int], limit: int) -> int:
    child = os.fork()
    if not child:
        signal.alarm(limit)
        code = 2
        try:
            code = _quiet(run)
        finally:  # whatever was raised must not run what is the parent's to do
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def _quiet(run: Callable[[], int]) -> int:
    """Run with all output in a file."""
    sys.stdout.flush()
    kept = [os.dup(1), os.dup(2)]
    output = os.open("output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    code = run()
    sys.stdout.flush()
    os.dup2(kept[0], 1)
    os.dup2(kept[1], 2)
    return code


def _pytest(*words: str) -> int:
    # A driver may let go of a socket only when all is over: that is no answer to a change.
    quiet = ("-W", "ignore::pytest.PytestUnraisableExceptionWarning")
    return int(pytest.main(["-xq", "--assert=plain", "-p", "no:cacheprovider", *quiet, *words]))


def _forget_ours() -> None:
    for name in [module for module in sys.modules if module.partition(".")[0] in OURS]:
        del sys.modules[name]


def _copy() -> None:
    shutil.rmtree(PLACE, ignore_errors=True)
    PLACE.mkdir()
    for name in (*OURS, "docs", "deploy"):
        shutil.copytree(name, PLACE / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "manifest.yml", "CHANGELOG.md", "Makefile"):
        shutil.copy(name, PLACE)


@contextmanager
def _mongo_server(*, is_needed: bool) -> Iterator[None]:
    """One server for all, in place of one for each change."""
    variable = "COUNTERSIGN_TEST_MONGODB_URI"
    if not is_needed or variable in os.environ:
        yield
        return
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.mutants.server"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    os.environ[variable] = server.stdout.readline().strip()
    try:
        yield
    finally:
        del os.environ[variable]
        server.stdin.close()
        server.wait()
