"""Secrets in files: each is its variable, all are masked, and a fault is told without a value."""

from pathlib import Path

import pytest

from bot.commands.cli import FAILED, WRONG_SETTINGS, main
from bot.config.secretfiles import LARGEST, secret_files
from bot.config.settings import Settings
from bot.errors import BotError, InvalidSettingsError, SettingsError
from tests.unit.bot.commands.test_cli import FakeBot
from tests.unit.bot.config.test_settings import SOCKET


def environ_with(tmp_path: Path, **files: str | bytes) -> dict[str, str]:
    """Variables that name a directory with these files."""
    for name, data in files.items():
        (tmp_path / name).write_bytes(data.encode() if isinstance(data, str) else data)
    return {"COUNTERSIGN_SECRETS_DIR": str(tmp_path)}


def refusal(environ: dict[str, str]) -> SettingsError:
    with pytest.raises(SettingsError) as caught:
        secret_files(environ)
    return caught.value


def test_without_a_directory_there_are_none() -> None:
    assert secret_files({"SLACK_BOT_TOKEN": "xoxb-1"}) == {}


def test_each_file_is_a_variable_without_spaces_around_it(tmp_path: Path) -> None:
    environ = environ_with(tmp_path, SLACK_BOT_TOKEN="xoxb-1\n", SHOP_TOKEN=" s3cret ")
    assert secret_files(environ) == {"SLACK_BOT_TOKEN": "xoxb-1", "SHOP_TOKEN": "s3cret"}


def test_files_with_other_names_are_passed_over(tmp_path: Path) -> None:
    environ = environ_with(tmp_path, SHOP_TOKEN="s3cret")
    (tmp_path / "..data").mkdir()
    (tmp_path / "mongo.pem").write_text("a certificate, named by its path")
    assert list(secret_files(environ)) == ["SHOP_TOKEN"]


def test_a_directory_with_no_variable_is_a_mistake(tmp_path: Path) -> None:
    environ = environ_with(tmp_path, slack_bot_token="xoxb-secret")
    assert "has no file with the name of a variable" in refusal(environ).fault


def test_a_directory_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert "cannot be listed" in refusal(environ_with(tmp_path / "absent")).fault


@pytest.mark.parametrize("data", [b"", b" \n", b"\xff\xfe", b"a\0b", b"x" * (LARGEST + 1)])
def test_what_is_no_secret_is_refused(tmp_path: Path, data: bytes) -> None:
    problem = refusal(environ_with(tmp_path, SHOP_TOKEN=data))
    assert "SHOP_TOKEN is empty, longer than 65536 bytes, or not text" in problem.fault


def test_a_file_that_is_a_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "SHOP_TOKEN").mkdir()
    assert "cannot be read" in refusal(environ_with(tmp_path)).fault


def test_a_variable_with_two_values_is_refused_and_neither_told(tmp_path: Path) -> None:
    environ = {**environ_with(tmp_path, SHOP_TOKEN="one-value"), "SHOP_TOKEN": "other-value"}
    problem = refusal(environ)
    assert (problem.variable, problem.remedy) == ("SHOP_TOKEN", "keep one of the two")
    assert "value-" not in str(problem)
    assert "-value" not in str(problem)


def test_the_bot_starts_with_its_tokens_in_files(tmp_path: Path) -> None:
    bot = FakeBot(error=BotError("seen enough"))
    environ = {
        **environ_with(tmp_path, SLACK_BOT_TOKEN="xoxb-filed", SLACK_APP_TOKEN="xapp-filed"),
        "COUNTERSIGN_APPROVERS": "U0ADALINDQ",
    }
    assert main(["run"], environ=environ, run_bot=bot) == FAILED
    assert bot.settings is not None
    assert bot.settings.slack_bot_token.get_secret_value() == "xoxb-filed"


def test_tools_and_models_find_their_keys_in_the_environment(tmp_path: Path) -> None:
    environ = {**SOCKET, **environ_with(tmp_path, SHOP_TOKEN="s3cret-of-the-shop")}
    bot = FakeBot(error=BotError("seen enough"))
    assert main(["run"], environ=environ, run_bot=bot) == FAILED
    assert environ["SHOP_TOKEN"] == "s3cret-of-the-shop"


def test_a_secret_of_a_tool_is_masked_like_our_own(tmp_path: Path) -> None:
    environ = {**SOCKET, **environ_with(tmp_path, SHOP_TOKEN="s3cret-of-the-shop")}
    settings = Settings.load(environ)
    assert "s3cret-of-the-shop" in settings.secrets()
    assert "s3cret-of-the-shop" not in repr(settings)


def test_a_fault_ends_every_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    environ = environ_with(tmp_path / "absent")
    assert main(["audit", "list"], environ=environ) == WRONG_SETTINGS
    assert capsys.readouterr().err.startswith("COUNTERSIGN_SECRETS_DIR: ")


def test_a_fault_is_among_those_of_the_settings(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettingsError) as caught:
        Settings.load({**SOCKET, **environ_with(tmp_path / "absent")})
    assert [problem.variable for problem in caught.value.problems] == ["COUNTERSIGN_SECRETS_DIR"]
