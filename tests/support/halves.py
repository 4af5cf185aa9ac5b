"""Which tests `make test` runs, and which it leaves to `make test-all`.

`make test` is what people run for each change, in four minutes on two processors. It leaves out
files that wait for browsers, for processes, or for large worlds (`LONG`), rows of a table that say
the same as others with more numbers (`later`), and all but one of tests that differ in nothing that
they look at (`twins`). `make test-all` runs exactly these.

A file of `LONG` that is named, or its folder, runs in any case.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

LONG = {
    "tests/browser": "drives a browser",
    "tests/chaos/test_chaos.py": "kills bots",
    "tests/contract/faults/test_outages.py": "stops servers, and lets them hang",
    "tests/contract/faults/test_statements.py": "fails at each statement of each store",
    "tests/contract/faults/test_unreadable_ones.py": "damages each field of each record",
    "tests/model/test_freezing.py": "walks through each order of steps",
    "tests/model/test_voting.py": "walks through each order of moves",
    "tests/pages/test_fences.py": "runs the code of each page",
    "tests/pages/test_library_page.py": "runs a page in two processes",
    "tests/property/test_killed_people.py": "kills processes",
    "tests/property/test_killed_relay.py": "kills processes",
    "tests/property/test_whole_call.py": "draws each surface of many calls",
    "tests/scenario/calls/test_answered_once.py": "kills processes",
    "tests/scenario/calls/test_rates.py": "waits for rate limits",
    "tests/scenario/commands/test_audit_chain.py": "plays the audit commands on a real audit",
    "tests/scenario/commands/test_freeze_held.py": "starts bots as processes",
    "tests/scenario/commands/test_freeze_told.py": "starts bots as processes",
    "tests/scenario/demo/test_patterns.py": "plays each pattern, with a restart",
    "tests/scenario/programs/adapters": "imports frameworks of other people",
    "tests/scenario/programs/test_examples.py": "starts each example as a process",
    "tests/scenario/programs/test_gate_processes.py": "starts processes, and signals them",
    "tests/scenario/programs/test_claude_code.py": "starts Claude Code, if it is there",
    "tests/scenario/programs/test_restarts.py": "starts bots as processes, and kills them",
    "tests/scenario/programs/test_mcp_proxy.py": "starts processes, and kills them",
    "tests/scenario/programs/test_mcp_proxy_http.py": "starts processes, and kills them",
    "tests/scenario/programs/test_mcp_server.py": "starts servers, and waits for clients",
    "tests/scenario/storage/test_poison.py": "damages each kind of record of a running bot",
    "tests/scenario/storage/test_restarts.py": "starts bots as processes, and kills them",
    "tests/scenario/test_bolt_traps.py": "waits for time-outs of clients",
    "tests/scenario/test_dying_tools.py": "kills processes",
    "tests/scenario/test_races_processes.py": "starts several bots",
    "tests/support/test_halves.py": "collects tests in three processes",
    "tests/test_benchmarks.py": "runs each benchmark",
    "tests/test_packages.py": "builds the packages",
    "tests/unit/bot/commands/test_cli.py": "starts the command line as a process",
    "tests/unit/bot/commands/test_imports.py": "starts the command line as a process",
    "tests/unit/bot/demo/test_your_own.py": "starts the demo with other agents",
}
"""Files and folders that `make test` leaves out, each with the reason."""


later = pytest.mark.later
"""Marks a test, or a row of a table, that `make test` leaves out."""


def first(count: int, rows: Iterable[object]) -> list[object]:
    """Rows of a table, of which `make test` runs the first ones.

    Args:
        count: So many.
        rows: All of them; `make test-all` runs the others.
    """
    return [row if n < count else pytest.param(row, marks=later) for n, row in enumerate(rows)]


def first_rows(count: int, rows: Iterable[tuple[object, ...]]) -> list[object]:
    """As `first`, where a row has several values."""
    return [row if n < count else pytest.param(*row, marks=later) for n, row in enumerate(rows)]


def is_long(file: Path) -> bool:
    """Whether `make test` leaves this file out.

    Args:
        file: An absolute path.
    """
    name = file.relative_to(ROOT).as_posix() if file.is_relative_to(ROOT) else ""
    return any(name == place or name.startswith(f"{place}/") for place in LONG)


def is_named(file: Path, args: Sequence[str]) -> bool:
    """Whether somebody asked for this file, its folder, or a part of `LONG` around it.

    Args:
        file: An absolute path.
        args: What pytest was given: files, folders, and ids of tests.
    """
    asked = [Path(arg.partition("::")[0]).resolve() for arg in args]
    return any(
        path == file or (file.is_relative_to(path) and path not in {ROOT, ROOT / "tests"})
        for path in asked
    )
