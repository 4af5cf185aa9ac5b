"""Broken policy files: each says at its end exactly what is said of it, line by line."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.policy.parser.checks import check
from bot.policy.parser.problems import PolicyError
from tests.support.policyworld import policy_world

BROKEN = sorted((Path(__file__).parents[4] / "data" / "policies" / "broken").glob("*.yaml"))
MARK = "# expected: "


def test_there_are_many() -> None:
    assert len(BROKEN) >= 70


@pytest.mark.parametrize("path", BROKEN, ids=lambda path: path.stem)
def test_a_broken_file_is_told_with_its_line(path: Path) -> None:
    data = path.read_bytes()
    lines = data.decode().splitlines()
    expected = [line.removeprefix(MARK) for line in lines if line.startswith(MARK)]
    with pytest.raises(PolicyError) as caught:
        check(data, policy_world())
    assert expected
    assert caught.value.text(path.name).splitlines() == expected


def test_a_file_that_is_too_big_is_not_even_read() -> None:
    with pytest.raises(PolicyError, match="longer than 256 KiB") as caught:
        check(b"\xff" * (256 * 1024 + 1), policy_world())
    assert [one.code for one in caught.value.problems] == ["too_big"]


@pytest.mark.parametrize(
    ("data", "line"),
    [(b"version: 1\nx: \xff\n", 2), (b"version: 1\n\nx: \x01\n", 3), (b"a: \xed\xa0\x80", 1)],
)
def test_what_no_text_is_has_its_line(data: bytes, line: int) -> None:
    with pytest.raises(PolicyError) as caught:
        check(data, policy_world())
    assert [(one.code, one.line) for one in caught.value.problems] == [("not_yaml", line)]
