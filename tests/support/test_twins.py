"""For each change, one test of those runs that differ in nothing that they look at."""

from pathlib import Path

import pytest

from tests.support.twins import AT_ANY_SIZE, left_out

ROOT = Path(__file__).parents[2]


def test_one_of_each_family_stays() -> None:
    names = [
        f"t.py::test_{name}[{case}{driver}]"
        for name in "abc"
        for case in ("", "x-", "y-")
        for driver in ("motor", "pymongo")
    ]
    stay = [name for name in names if name not in left_out(names)]
    families = {name.replace("pymongo", "motor") for name in stay}
    assert len(stay) == len(families) == 9


def test_both_are_chosen_in_turn() -> None:
    names = [f"t.py::test_{n}[{driver}]" for n in range(40) for driver in ("motor", "pymongo")]
    stay = [name for name in names if name not in left_out(names)]
    assert len(stay) == 40
    assert 5 < sum("pymongo" in name for name in stay) < 35


@pytest.mark.parametrize(
    ("twins", "others"),
    [
        (["a[sqlite-file]", "a[sqlite-memory]"], ["a[mongo-motor]"]),
        (["a[socket]", "a[http]"], ["b[x-http]", "http", "a[https]", "a[a socket]"]),
        ([], ["motor_opens", "pymongo_opens", "a[motorcycle]"]),
        ([], ["a[motor]", "b"]),
    ],
    ids=["databases in this process", "transports", "words of a driver", "no twin in this run"],
)
def test_one_of_twins_stays_and_all_others(twins: list[str], others: list[str]) -> None:
    left = left_out(f"t.py::test_{name}" for name in (*twins, *others))
    assert len(left) == len(twins) // 2
    assert left <= {f"t.py::test_{name}" for name in twins}


def test_of_what_is_the_same_at_any_size_one_runs_and_of_looks_both() -> None:
    file, (first, *_) = next(iter(AT_ANY_SIZE.items()))
    alike = {f"{file}::{first}[{size}]" for size in ("desk", "phone", "phone-dark")}
    looks = {f"{file}::test_how_it_looks[{size}]" for size in ("desk", "phone")}
    left = left_out(alike | looks)
    assert len(alike - left) == 1
    assert not left & looks


def test_both_sizes_are_chosen() -> None:
    names = {
        f"{file}::{test}[{size}]"
        for file, tests in AT_ANY_SIZE.items()
        for test in tests
        for size in ("desk", "phone")
    }
    stay = names - left_out(names)
    assert len(stay) == len(names) / 2
    assert 5 < sum("phone" in name for name in stay) < len(stay) - 5


@pytest.mark.parametrize("file", AT_ANY_SIZE)
def test_what_is_the_same_at_any_size_is_there_and_asks_nothing_about_looks(file: str) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    for name in AT_ANY_SIZE[file]:
        _, begin, rest = text.partition(f"async def {name}(")
        body = rest.partition("\nasync def ")[0]
        assert begin, name
        for word in ("scrollWidth", "bounding_box", "viewport", "getComputedStyle"):
            assert word not in body, name
