"""The help of the client's commands."""

import pytest

from bot.commands.cli import OF_CLIENT
from countersign_client.cli import main


@pytest.mark.parametrize("command", OF_CLIENT)
def test_help_names_the_program_that_the_client_installs(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    printed = capsys.readouterr().out
    assert printed.startswith(f"usage: countersign-ask {command} ")
    assert f"countersign {command}" not in printed
