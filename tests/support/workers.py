"""Runs tests in several processes that are forked from one that has found them all: `--workers`.

To load the tests and the product, and to prepare them for the measuring of coverage, takes half a
minute of one processor. pytest-xdist would have each of its workers do it again.

Workers take tests from one list, some of one file at a time. Tests that wait for a browser or for
other processes stand at its front. Every other worker takes from there, and the rest take from the
end what needs a processor: so no processor is idle while a worker waits.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from itertools import groupby
from multiprocessing import connection, get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

_WAITING = ("chaos", "browser", "scenario")
"""Folders whose tests wait, those that wait longest first."""
_MOST = 20
"""So many tests of a file a worker takes at a time; of those that wait a quarter."""
_HERE = Path(__file__).parents[1]
_FORK = get_context("fork")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option `--workers`."""
    help_ = "run tests in so many processes; 0: in this one"
    parser.addoption("--workers", type=int, default=0, help=help_)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Have workers run the tests, when some were asked for."""
    option = session.config.option
    if not option.workers or option.collectonly or session.testsfailed:
        return None
    pool = _Pool(session, option.workers)
    try:
        for report in pool.reports():
            session.config.hook.pytest_runtest_logreport(report=report)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
    finally:
        pool.stop()
    return True


def shares(items: Sequence[pytest.Item]) -> list[list[pytest.Item]]:
    """Divide tests into what a worker takes at a time.

    Args:
        items: All tests, neighbors being of one file.

    Returns:
        The same tests, neighbors of one file, and what waits before all else.
    """
    found = []
    for _, group in groupby(items, lambda item: item.path):
        file = list(group)
        most = _MOST // 4 if _rank(file[0].path) < len(_WAITING) else _MOST
        found += [file[start : start + most] for start in range(0, len(file), most)]
    return sorted(found, key=lambda share: _rank(share[0].path))


def _rank(path: Path) -> int:
    folder = path.relative_to(_HERE).parts[0] if path.is_relative_to(_HERE) else ""
    return _WAITING.index(folder) if folder in _WAITING else len(_WAITING)


class _Shares:
    """The list that all workers take from."""

    def __init__(self, items: Sequence[pytest.Item]) -> None:
        self._shares = shares(items)
        self._bounds = _FORK.Array("i", [0, len(self._shares)])

    def taken(self, *, from_front: bool) -> Iterator[pytest.Item]:
        """Take tests until none is left."""
        while (at := self._take(from_front=from_front)) is not None:
            yield from self._shares[at]

    def drop(self) -> None:
        """Let workers end with what they have."""
        self._bounds[0] = self._bounds[1]

    def _take(self, *, from_front: bool) -> int | None:
        with self._bounds.get_lock():
            bounds: list[int] = self._bounds[:]
            front, end = bounds
            if front >= end:
                return None
            if from_front:
                self._bounds[0] = front + 1
                return front
            self._bounds[1] = end - 1
            return end - 1


class _Pool:
    """The workers, and what they tell."""

    def __init__(self, session: pytest.Session, count: int) -> None:
        self._session = session
        self._shares = _Shares(session.items)
        self._workers: dict[Connection[Any, Any], BaseProcess] = {}
        self._running: dict[Connection[Any, Any], pytest.Item] = {}
        reporter: Any = session.config.pluginmanager.get_plugin("terminalreporter")
        reporter.showfspath = False  # workers are at several files at once
        session.config.get_terminal_writer().flush()
        # Folders of tests are made below one that must be there.
        session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        for number in range(count):
            mine, its = _FORK.Pipe()
            worker = _FORK.Process(target=self._be, args=(number, its), name=f"worker {number}")
            worker.start()
            its.close()
            self._workers[mine] = worker

    def reports(self) -> Iterator[pytest.TestReport]:
        """Hear from all workers until they have ended."""
        config = self._session.config
        while self._workers:
            for each in connection.wait(list(self._workers)):
                assert isinstance(each, Connection)
                try:
                    told = each.recv()
                except EOFError:
                    worker = self._workers.pop(each)
                    worker.join()
                    if (item := self._running.pop(each, None)) is not None:
                        yield _died(item, worker)
                    continue
                if isinstance(told, int):
                    self._running[each] = self._session.items[told]
                elif told is None:
                    del self._running[each]
                else:
                    yield config.hook.pytest_report_from_serializable(config=config, data=told)

    def stop(self) -> None:
        """End workers that are still there."""
        self._shares.drop()
        for worker in self._workers.values():
            worker.terminate()
            worker.join()

    def _be(self, number: int, parent: Connection[Any, Any]) -> None:
        """Be a worker, in a process of its own."""
        signal.signal(signal.SIGTERM, lambda *_: os._exit(1))
        config = self._session.config
        config.pluginmanager.register(_Teller(config, parent))
        reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
        capture: Any = config.pluginmanager.get_plugin("capturemanager")
        capture.stop_global_capturing()
        capture.start_global_capturing()
        with Path(os.devnull).open("w", encoding="utf-8") as nothing:
            reporter._tw._file = nothing
            places = {item: at for at, item in enumerate(self._session.items)}
            items = self._shares.taken(from_front=number % 2 == 0)
            item = next(items, None)
            while item is not None:
                following = next(items, None)
                parent.send(places[item])
                config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                parent.send(None)
                item = following
        capture.stop_global_capturing()


class _Teller:
    """Sends a worker's reports to the process that shows them."""

    def __init__(self, config: pytest.Config, parent: Connection[Any, Any]) -> None:
        self._config = config
        self._parent = parent

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        hook = self._config.hook.pytest_report_to_serializable
        self._parent.send(hook(config=self._config, report=report))


def _died(item: pytest.Item, worker: BaseProcess) -> pytest.TestReport:
    return pytest.TestReport(
        nodeid=item.nodeid,
        location=item.location,
        keywords={},
        outcome="failed",
        longrepr=f"{worker.name} ended in this test, with exit code {worker.exitcode}; "
        f"up to {_MOST} tests after it were not run",
        when="call",
    )
