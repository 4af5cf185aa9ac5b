"""The freeze file: what counts as a file that exists (11.22)."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.freezes.starts import FreezeFile
from tests.support.fakes import FakeClock


def is_frozen(path: Path | None) -> bool:
    return FreezeFile(path=path, clock=FakeClock()).freeze() is not None


def test_without_a_setting_there_is_no_file() -> None:
    assert not is_frozen(None)


def test_a_file_that_is_not_there_stops_nothing(tmp_path: Path) -> None:
    assert not is_frozen(tmp_path / "stop")


def test_a_file_or_a_directory_stops_everything(tmp_path: Path) -> None:
    (tmp_path / "stop").touch()
    (tmp_path / "folder").mkdir()
    assert is_frozen(tmp_path / "stop")
    assert is_frozen(tmp_path / "folder")


def test_a_link_to_nowhere_counts_as_a_file(tmp_path: Path) -> None:
    (tmp_path / "stop").symlink_to(tmp_path / "nowhere")
    assert is_frozen(tmp_path / "stop")


@pytest.mark.parametrize("name", ["missing/stop", "file/stop", "x" * 300, "stop\0"])
def test_a_place_that_cannot_be_read_counts_as_a_file(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    freeze = FreezeFile(path=tmp_path / name, clock=FakeClock()).freeze()
    assert freeze is not None
    assert "can't be read" in freeze.why
