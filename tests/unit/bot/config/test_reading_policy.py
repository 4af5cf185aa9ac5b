"""The policy file that the settings name is read at start, or the bot does not start (I1)."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.errors import SettingsError
from bot.main import read_policy


def test_without_a_file_no_policy_is_in_force() -> None:
    assert read_policy(None) is None


def test_a_file_that_is_named_is_in_force(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("version: 1\nrules: []\ndefault: {deny: Never.}\n")
    force = read_policy(file)
    assert force is not None
    assert (force().is_settings, len(force().file_hash)) == (False, 64)
    assert force().rulebook.file.default.deny == "Never."


def test_a_file_that_is_not_there_refuses_the_start(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        read_policy(tmp_path / "none.yaml")


def test_a_faulty_file_refuses_the_start_and_names_the_line(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("version: 1\nrules: []\ndefault: allow\ncolour: red\n")
    with pytest.raises(SettingsError, match=r"policy\.yaml:4: colour"):
        read_policy(file)
