"""mutmut's changes of one module, tried with its nearest tests; what came of each goes to a file.

    python -m tests.mutants.narrowed PATH JOBS MOST TESTS...

mutmut makes the changes. It would start pytest for each of them; here pytest starts and collects
once, and each change has a process that is forked from there, and runs the quickest test first.
What a function does while its module is read was done before the fork: where no test noticed a
change of such a function, all of them run again in a new program.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import chdir
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from mutmut import __main__ as program
from mutmut.configuration import config
from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.mutation.trampoline import set_mutant_under_test
from mutmut.state import state
from mutmut.utils.file_utils import copy_also_copy_files, copy_src_dir, setup_source_paths
from mutmut.utils.format_utils import mangled_name_from_mutant_name

from tests.mutants.result import sample

PLACE = Path("mutants")
FOUND = PLACE / "found.json"
"""How many changes there are, and of each that was tried: name, whether it was noticed, diff."""
LONGEST = 600
"""Seconds that a new program may take for all tests."""
CALLS = Path("calls.json")
"""How long each test takes without a change, and which functions of the module it calls."""


@dataclass
class Loop:
    """Runs tests of what pytest has collected, for one change after the other.

    Attributes:
        names: The changes.
        jobs: How many at once.
        words: Of pytest.
        killed: Of each change, whether a test noticed it.
    """

    names: list[str]
    jobs: int
    words: list[str]
    killed: dict[str, bool] = field(default_factory=dict)
    _running: dict[int, str] = field(default_factory=dict)
    _while_read: frozenset[str] = frozenset()

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """In place of pytest's own loop."""
        self._while_read = frozenset(state()._stats)  # by what was collected
        if _end_of(_forked(lambda: _measure(session))) != 0:
            raise SystemExit("the tests fail without any change")
        calls = json.loads(CALLS.read_text())
        gc.freeze()  # or each process would have its own copy of all objects
        for name in self.names:
            if len(self._running) >= self.jobs:
                self._wait()
            self._try(session, name, calls)
        while self._running:
            self._wait()
        return True

    def _try(self, session: pytest.Session, name: str, calls: dict[str, list[object]]) -> None:
        function = mangled_name_from_mutant_name(name)
        seconds = {test: each[0] for test, each in calls.items() if function in each[1:]}
        items = [node for node in session.items if node.nodeid in seconds]
        items.sort(key=lambda node: float(str(seconds[node.nodeid])))
        limit = 20 + int(10 * sum(float(str(spent)) for spent in seconds.values()))

        def run() -> int:
            signal.alarm(limit)  # whatever hangs is noticed, too
            set_mutant_under_test(name)
            code = _run(session, items)
            return self._anew() if code == 0 and function in self._while_read else code

        self._running[_forked(run)] = name

    def _anew(self) -> int:
        """Run all tests in a new program; it finds the change by the environment."""
        signal.alarm(0)
        command = [sys.executable, "-m", "pytest", *self.words]
        try:
            return subprocess.run(command, check=False, timeout=LONGEST).returncode  # noqa: S603
        except subprocess.TimeoutExpired:
            return 1

    def _wait(self) -> None:
        child, status = os.wait()
        name = self._running.pop(child)
        self.killed[name] = status != 0


def _measure(session: pytest.Session) -> int:
    set_mutant_under_test("stats")
    calls: dict[str, list[object]] = {}
    for item in session.items:
        state()._stats.clear()
        start = time.monotonic()
        if _run(session, [item]):
            return 1
        calls[item.nodeid] = [time.monotonic() - start, *state()._stats]
    CALLS.write_text(json.dumps(calls))
    return 0


def _run(session: pytest.Session, items: Sequence[pytest.Item]) -> int:
    for item, following in zip(items, [*items[1:], None], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            return 1
    return 0


def _forked(run: Callable[[], int]) -> int:
    child = os.fork()
    if not child:
        code = 2
        try:
            code = run()
        finally:
            os._exit(code)
    return child


def _end_of(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(path: str, jobs: str, most: str, *tests: str) -> None:
    """Make the changes, try them, and write the file."""
    settings = config()
    settings.only_mutate = [path]
    PLACE.mkdir()
    set_mutant_under_test("mutant_generation")
    copy_src_dir()
    copy_also_copy_files()
    setup_source_paths()
    program.create_mutants(1)
    names = sorted(json.loads(Path(PLACE, f"{path}.meta").read_text())["exit_code_by_key"])
    for name in [module for module in sys.modules if module.partition(".")[0] == "tests"]:
        del sys.modules[name]  # the tests beside the changed modules are a copy
    options = ["-xq", "--rootdir=.", "--tb=no", "--assert=plain", *settings.pytest_add_cli_args]
    loop = Loop(sample(names, int(most)), int(jobs), [*options, *tests])
    set_mutant_under_test("stats")
    with chdir(PLACE):
        code = pytest.main(loop.words, plugins=[loop])
    if len(loop.killed) != len(loop.names):
        raise SystemExit(f"pytest ended with {code}")
    tried = [
        (name, is_killed, "" if is_killed else get_diff_for_mutant(name))
        for name, is_killed in loop.killed.items()
    ]
    FOUND.write_text(json.dumps({"size": len(names), "tried": tried}))


if __name__ == "__main__":
    main(*sys.argv[1:])
