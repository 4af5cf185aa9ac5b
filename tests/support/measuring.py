"""Coverage for `make test`, as a plugin of pytest: PYTEST_PLUGINS=tests.support.measuring.

To follow a test makes it take twice as long. So coverage follows the import of what is measured
(pyproject.toml says what), and then only the tests that are near it, and of a test with many cases
only the first and the last. pytest-cov cannot: with pytest-xdist, it follows everything in each
worker, whatever a mark of a test says.
"""

import importlib
import pkgutil
import re
from collections.abc import Generator
from pathlib import Path

import coverage
import pytest

NEAR = re.compile(r"contract/|unit/(agents|storage|bot/(core|people|questions|slack))/")
"""Tests whose business are the modules that have a bar of coverage."""
HERE = Path(__file__).parents[1]

measured = coverage.Coverage()
followed = pytest.StashKey[bool]()


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    """Begin before anything of ours is imported."""
    measured.start()


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Import all that is measured, and stop following until a test is near."""
    if runs_tests(session):
        import_all(measured.get_option("run:source_pkgs"))
    measured.stop()


def runs_tests(session: pytest.Session) -> bool:
    """Whether tests run here, and not in workers of pytest-xdist."""
    return not session.config.pluginmanager.hasplugin("dsession")


def import_all(names: object) -> None:
    """Import modules, and all that is in packages."""
    assert isinstance(names, list)
    for name in names:
        path = getattr(importlib.import_module(name), "__path__", ())
        for inner in pkgutil.walk_packages(path, f"{name}."):
            importlib.import_module(inner.name)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Choose the tests to follow; each worker chooses the same."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        is_here = item.path.is_relative_to(HERE)  # those of examples are elsewhere
        if is_here and NEAR.match(item.path.relative_to(HERE).as_posix()):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for several in cases.values():
        for item in (several[0], several[-1]):
            item.stash[followed] = True


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Follow a test that was chosen, with its fixtures."""
    if not item.stash.get(followed, False):
        return (yield)
    measured.start()
    try:
        return (yield)
    finally:
        measured.stop()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Keep what was seen for `coverage report`."""
    if runs_tests(session):
        measured.save()
