"""Broken policy files: `countersign policy check` says exactly what each one expects at its end."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.commands.cli import WRONG_SETTINGS, main

BROKEN = sorted((Path(__file__).parents[1] / "data" / "policies" / "broken").glob("*.yaml"))
MARK = "# expected: "
AGENTS = {"COUNTERSIGN_AGENT": "tests.support.policyagents:build"}


def faults(path: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What the command says of the file, line by line."""
    assert main(["policy", "check", "--offline", str(path)], environ=AGENTS) == WRONG_SETTINGS
    said = "".join(capsys.readouterr()).splitlines()
    folder = f"{path.parent}/"
    return [line.removeprefix(folder) for line in said if line.startswith(folder)]


def test_there_are_many() -> None:
    assert len(BROKEN) >= 70


@pytest.mark.parametrize("path", BROKEN, ids=lambda path: path.stem)
def test_a_broken_file_is_told_with_its_line(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    expected = [line.removeprefix(MARK) for line in lines if line.startswith(MARK)]
    assert expected
    assert faults(path, capsys) == expected


@pytest.mark.parametrize(
    ("data", "line", "code"),
    [
        (b"\xff" * (256 * 1024 + 1), 1, "too_big"),
        (b"version: 1\nx: \xff\n", 2, "not_yaml"),
        (b"version: 1\n\nx: \x01\n", 3, "not_yaml"),
        (b"a: \xed\xa0\x80", 1, "not_yaml"),
    ],
)
def test_what_no_text_is_has_its_line(
    data: bytes, line: int, code: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "policy.yaml"
    path.write_bytes(data)
    (fault,) = faults(path, capsys)
    assert fault.startswith(f"policy.yaml:{line}: ")
    assert fault.endswith(f"[{code}]")
