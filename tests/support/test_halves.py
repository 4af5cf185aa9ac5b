"""What `make test` leaves out, `make test-all` runs; nothing is lost between them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.halves import LONG, ROOT, is_long, is_named

SOME_LONG = ROOT / "tests" / "browser" / "test_page.py"


def collected(*options: str) -> set[str]:
    """The ids of tests that pytest would run."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(  # noqa: S603 - our own tests
        [*command, *options], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return {line for line in done.stdout.splitlines() if "::" in line}


@pytest.mark.parametrize("place", LONG)
def test_what_is_named_is_there(place: str) -> None:
    assert (ROOT / place).exists()


def test_no_test_is_lost_between_both_halves() -> None:
    places = ("tests/cost", "tests/chaos", "tests/support")
    names = [f"tests/{name}" for name in ("cost", "chaos", "support")]
    everything = collected("--hypothesis-profile", "thorough", *places)
    first, rest = collected(*places), collected("--rest", *names)
    assert first | rest >= everything
    assert rest - first


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ((), False),
        (("tests", "examples"), False),
        (("tests/unit",), False),
        (("tests/browser",), True),
        (("tests/browser/test_page.py",), True),
        (("tests/browser/test_page.py::test_reject_with_a_reason",), True),
    ],
)
def test_a_long_file_runs_where_it_is_named(args: tuple[str, ...], *, expected: bool) -> None:
    assert is_long(SOME_LONG)
    assert is_named(SOME_LONG, args) == expected
