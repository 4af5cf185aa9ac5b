"""Fixtures shared by all tests."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path

import pydantic_ai.models
import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers
from pymongo import monitoring

from bot.slack import modals
from tests.support.halves import is_long, is_named, later
from tests.support.mongo import collected, mongo_server
from tests.support.mongo_listener import LISTENER
from tests.support.spread import spread, turned
from tests.support.stores import SqliteStores
from tests.support.twins import left_out

__all__ = ["collected", "mongo_server"]

_GARBAGE = (20_000, 10, 10)
"""How many things are made before garbage is looked for; Python's own 700 is a few times a test."""

monitoring.register(LISTENER)

pydantic_ai.models.ALLOW_MODEL_REQUESTS = False

modals.PATIENCE_S = 60.0
"""A busy machine would show a loading view before a form; one test shows that on purpose."""

# For each change: the same examples each time, so that what fails is what was changed. To look
# for what nobody has thought of: `make test PROFILE=thorough`, random and longer.
settings.register_profile("quick", max_examples=10, deadline=None, derandomize=True)
settings.register_profile("thorough", max_examples=300, deadline=None)
settings.load_profile("quick")


def _keep_examples() -> None:
    """Let hypothesis leave the constants of our code out of its examples.

    It would read each module for them, in each worker; and a change of any constant would change
    the examples of all tests.
    """
    providers._get_local_constants = lambda: providers._local_constants


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--rest`."""
    parser.addoption("--rest", action="store_true", help="run only what `make test` leaves out")


@pytest.hookimpl(trylast=True)  # after the profile of hypothesis is loaded
def pytest_configure(config: pytest.Config) -> None:
    """Prepare the chosen profile; have each of several workers begin at another file."""
    # A shell ignores interrupts for what it starts in the background; programs of tests need them.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if not _is_thorough():
        _keep_examples()
    worker = getattr(config, "workerinput", None)
    if worker is not None:
        number = int(worker["workerid"].removeprefix("gw"))
        files = turned(config.args, number, worker["workercount"])
        config.args = [file for file in files if not _is_for_later(Path(file), config)]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out what `make test-all` runs; a worker does so before, see `pytest_configure`."""
    return _is_for_later(collection_path, config) or None


def _is_for_later(file: Path, config: pytest.Config) -> bool:
    if _runs_everything(config) or config.option.rest:
        return False
    return is_long(file) and not is_named(file, config.args)


def _is_marked(item: pytest.Item) -> bool:
    return item.get_closest_marker(later.name) is not None


def _is_later(item: pytest.Item) -> bool:
    return is_long(item.path) or _is_marked(item)


def _runs_everything(config: pytest.Config) -> bool:
    """Whether twins and long tests run, too: in the thorough profile, and those with a marker."""
    return _is_thorough() or bool(config.option.markexpr)


def _is_thorough() -> bool:
    return settings().max_examples > settings.get_profile("quick").max_examples


MAY_SKIP_IN_CI = {
    # Each flow has a test of its own in tests/conformance; a thorough run repeats all of them.
    "tests/scenario/commands/test_policy_test.py",
    # Claude Code has 400 MB and a licence of its own; COUNTERSIGN_TEST_CLAUDE names it.
    "tests/scenario/programs/test_claude_code.py",
}
"""Files whose tests may skip in CI."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test that skips in CI: what is missing there would pass unnoticed."""
    report = yield
    is_skip = report.skipped and not hasattr(report, "wasxfail")
    if is_skip and os.environ.get("CI") and item.nodeid.split("::")[0] not in MAY_SKIP_IN_CI:
        report.outcome = "failed"
        report.longrepr = f"Skipped in CI, where nothing may be missing: {report.longrepr}"
    return report


def _interrupt(_: int, __: object) -> None:
    raise KeyboardInterrupt


def pytest_sessionstart() -> None:
    """Let Ctrl-C end the tests by a handler of our own.

    With Python's own, each run of an event loop puts another one in its place and takes it back,
    which takes longer than a small test does.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for garbage among what tests make, and not in all that is imported for them.

    Thousands of tests and their modules stay until the end: to walk through them takes half a
    second each time.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(*_GARBAGE)
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Choose the half that runs, see `tests.support.halves`, and order its tests."""
    if not _runs_everything(config):
        twins = left_out(item.nodeid for item in items)
        if config.option.rest:
            left = [item for item in items if item.nodeid not in twins and not _is_later(item)]
        else:
            left = [item for item in items if item.nodeid in twins or _is_marked(item)]
        config.hook.pytest_deselected(items=left)
        names = {item.nodeid for item in left}
        items[:] = [item for item in items if item.nodeid not in names]
    items.sort(key=lambda item: item.path)  # workers have read them in several orders
    items[:] = spread(items, getattr(config, "workerinput", {}).get("workercount", 1))


@pytest.fixture(autouse=True)
def strict_mongo() -> Iterator[None]:
    """Fail the test if MongoDB would refuse a command that it sent."""
    yield
    LISTENER.check()


@pytest.fixture
async def storage() -> AsyncIterator[SqliteStores]:
    """The embedded database, in memory."""
    opened = SqliteStores(None)
    await opened.open()
    yield opened
    await opened.close()
