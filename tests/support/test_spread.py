"""The order of tests: all are there, and what waits begins some workers' parts."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.spread import spread, turned

TESTS = Path(__file__).parents[1]
FILES = {
    "browser/test_a.py": 4,
    "browser/test_b.py": 3,
    "contract/test_c.py": 30,
    "scenario/test_d.py": 8,
    "scenario/test_e.py": 2,
    "unit/test_f.py": 53,
}


def all_items() -> list[Any]:
    """Items in the order of their files, as pytest finds them."""
    return [
        SimpleNamespace(path=TESTS / name, nodeid=f"{name}::{number}")
        for name, count in FILES.items()
        for number in range(count)
    ]


def names(items: list[Any]) -> list[str]:
    return [item.path.relative_to(TESTS).parts[0] for item in items]


@pytest.mark.parametrize("workers", range(1, 9))
def test_no_test_is_lost_or_comes_twice(workers: int) -> None:
    items = all_items()
    ordered = spread(items, workers)
    assert sorted(test.nodeid for test in ordered) == sorted(test.nodeid for test in items)


@pytest.mark.parametrize("workers", [1, 2])
def test_few_workers_keep_the_order(workers: int) -> None:
    assert spread(all_items(), workers) == all_items()


def test_what_waits_begins_the_parts_of_all_workers_but_two() -> None:
    ordered = names(spread(all_items(), 4))
    parts = [ordered[start : start + 25] for start in range(0, 100, 25)]
    assert [part[0] in {"browser", "scenario"} for part in parts] == [True, True, False, False]
    waiting = [sum(folder in {"browser", "scenario"} for folder in part) for part in parts]
    assert waiting[2:] == [0, 0]
    assert sum(waiting) == 17


def test_the_tests_of_a_file_stay_together_and_in_order() -> None:
    ordered = spread(all_items(), 5)
    for name, count in FILES.items():
        places = [at for at, test in enumerate(ordered) if test.path == TESTS / name]
        assert [ordered[at].nodeid for at in places] == [f"{name}::{n}" for n in range(count)]
        if "browser" in name or "scenario" in name:
            assert places == list(range(places[0], places[0] + count))


def test_each_worker_begins_at_another_file_and_reads_all() -> None:
    args = [str(TESTS / "unit" / "storage"), str(TESTS / "support"), "examples", "x.py::test_y"]
    orders = [turned(args, number, 3) for number in range(3)]
    files = [
        *(TESTS / "unit" / "storage").rglob("test_*.py"),
        *Path(__file__).parent.glob("test_*"),
    ]
    assert all(sorted(order[:-2]) == sorted(map(str, files)) for order in orders)
    assert all(order[-2:] == ["examples", "x.py::test_y"] for order in orders)
    assert len({order[0] for order in orders}) == 3
