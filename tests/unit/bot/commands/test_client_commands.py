"""The commands for programs in a shell are those of the client, if it is installed."""

from __future__ import annotations

import sys

import pytest

from bot.commands.cli import OF_CLIENT, main

ID = "apr_" + "0" * 32


def test_a_command_of_the_client_is_carried_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("COUNTERSIGN_URL", raising=False)
    assert main(["get", ID]) == 2
    assert "COUNTERSIGN_URL is not set" in capsys.readouterr().err


@pytest.mark.parametrize("command", OF_CLIENT)
def test_without_the_client_it_says_what_to_install(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "countersign_client.cli", None)
    assert main([command]) == 2
    assert "pip install ./countersign_client" in capsys.readouterr().err
