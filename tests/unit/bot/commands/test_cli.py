"""The command line: plain sentences, exit codes, and nothing left behind."""

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from urllib.request import Request, urlopen

import aiohttp
import pytest

from bot import main as composition
from bot.clock import MovableClock
from bot.commands.cli import FAILED, WRONG_SETTINGS, main
from bot.config.manifest import needed_scopes
from bot.config.settings import Settings
from bot.demo import POLICY
from bot.errors import BotError
from bot.ports.people import CHANNEL
from storage.errors import StoreBusyError
from tests.support.stores import SqliteStores

NOBODY = "mongodb://u:secret@127.0.0.1:1/x"
"""The address of a database that is not there."""
GOOD = {
    "SLACK_BOT_TOKEN": "xoxb-1",
    "SLACK_APP_TOKEN": "xapp-1",
    "COUNTERSIGN_APPROVERS": "U0ADALINDQ",
}


class FakeBot:
    """Stands in for `bot.main.run`.

    Attributes:
        settings: What it was started with.
        demo: The clock of the demo that it was started for.
        error: Raised instead of running.
        then: Called once it is ready.
    """

    def __init__(
        self, *, error: BaseException | None = None, then: Callable[[], object] | None = None
    ) -> None:
        self.settings: Settings | None = None
        self.demo: MovableClock | None = None
        self.error = error
        self.then = then

    async def __call__(
        self,
        settings: Settings,
        *,
        stop: asyncio.Event,
        ready: asyncio.Event | None = None,
        demo: MovableClock | None = None,
    ) -> None:
        self.settings = settings
        self.demo = demo
        if self.error is not None:
            raise self.error
        if ready is not None:
            ready.set()
        if self.then is not None:
            asyncio.get_running_loop().call_later(0.05, self.then)
        await stop.wait()


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def terminate() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def is_empty(directory: Path) -> bool:
    return not list(directory.iterdir())


def test_help_names_each_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--help"], environ={})
    assert caught.value.code == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in ("run", "sandbox", "demo", "doctor"))


def test_help_of_run_names_each_variable(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["run", "--help"], environ={})
    shown = capsys.readouterr().out
    assert "SLACK_BOT_TOKEN" in shown
    assert "COUNTERSIGN_SELF_APPROVAL" in shown


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"], environ={})
    assert re.fullmatch(r"countersign \d+\.\d+\.\d+\S*\n", capsys.readouterr().out)


@pytest.mark.parametrize(
    "argv", [[], ["fly"], ["demo", "--port", "x"], ["demo", "--port", "70000"]]
)
def test_a_wrong_command_line(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(argv, environ={})
    assert caught.value.code == WRONG_SETTINGS
    assert "usage: countersign" in capsys.readouterr().err


@pytest.mark.parametrize("stop", [interrupt, terminate])
def test_run_ends_at_a_signal(stop: Callable[[], None]) -> None:
    bot = FakeBot(then=stop)
    assert main(["run"], environ=dict(GOOD), run_bot=bot) == 0
    assert bot.settings is not None
    assert bot.settings.is_socket_mode


@pytest.mark.parametrize(
    ("changes", "status", "words"),
    [
        ({"COUNTERSIGN_REMIND_AFTER": "soon"}, WRONG_SETTINGS, "COUNTERSIGN_REMIND_AFTER"),
        ({"COUNTERSIGN_EXPIRES": "1h"}, WRONG_SETTINGS, "COUNTERSIGN_EXPIRE_AFTER"),
        ({"MONGODB_URI": NOBODY}, FAILED, "can't use the database"),
        ({"COUNTERSIGN_AGENT": "no.such:agent"}, WRONG_SETTINGS, "there is no module 'no'"),
        ({"COUNTERSIGN_MODEL": "nobody:gpt"}, WRONG_SETTINGS, "COUNTERSIGN_MODEL"),
    ],
)
def test_a_wrong_start_of_the_real_bot_says_what_to_do(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    changes: dict[str, str],
    status: int,
    words: str,
) -> None:
    environ = {**GOOD, "COUNTERSIGN_DATA_DIR": str(tmp_path / "data"), **changes}
    assert main(["run"], environ=environ, run_bot=composition.run) == status
    output = capsys.readouterr()
    assert words in output.err
    assert "secret" not in output.err
    assert output.out == ""


@pytest.mark.parametrize("error", [BotError("it failed"), StoreBusyError("/data", "7")])
def test_a_fault_at_run_time(error: Exception, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run"], environ=dict(GOOD), run_bot=FakeBot(error=error)) == FAILED
    assert capsys.readouterr().err == f"{error}\n"


def test_an_early_interrupt_is_no_fault() -> None:
    bot = FakeBot(error=KeyboardInterrupt())
    assert main(["run"], environ=dict(GOOD), run_bot=bot) == 0


def test_who_stops_reading_gets_no_traceback() -> None:
    command = [sys.executable, "-m", "bot", "doctor"]
    with subprocess.Popen(  # noqa: S603 - our own
        command, env={"SLACK_BOT_TOKEN": "xoxb-1"}, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.close()
        assert child.stderr is not None
        assert child.stderr.read() == b""
    assert child.returncode == FAILED


def test_doctor_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    environ = {"SLACK_BOT_TOKEN": "xoxb-1", "COUNTERSIGN_APPROVERS": "U0ADALINDQ"}
    assert main(["doctor"], environ=environ) == FAILED
    shown = capsys.readouterr()
    assert shown.out.startswith("ok  manifest.yml: ")
    assert "!!  SLACK_SIGNING_SECRET: " in shown.out
    assert shown.err == "1 problem to fix\n"


def test_demo_runs_the_bot_against_the_stand_in(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    environ = {
        "COUNTERSIGN_DATA_DIR": str(tmp_path),
        "COUNTERSIGN_REMIND_AFTER": "5m",
        "COUNTERSIGN_PORT": "80",
        "COUNTERSIGN_HOST": "192.0.2.1",
        "SLACK_BOT_TOKEN": "xoxb-real",
        "SLACK_CLIENT_ID": "1.2",
        "MONGODB_URI": "mongodb://real",
    }
    bot = FakeBot(then=interrupt)
    assert main(["demo", "--port", "0"], environ=environ, run_bot=bot) == 0
    settings = bot.settings
    assert settings is not None
    assert settings.slack_api_url.startswith("http://127.0.0.1:")
    assert settings.slack_bot_token.get_secret_value() != "xoxb-real"
    assert settings.mongodb_uri is None
    assert (settings.host, settings.port) == ("127.0.0.1", 0)
    assert settings.remind_after.total_seconds() == 300
    assert settings.data_dir.parent == tmp_path
    assert is_empty(tmp_path)
    assert not [name for name in environ if name.startswith("SLACK_")]
    assert re.search(r"Open this page:\n\n    http://127\.0\.0\.1:\d+\n", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("environ", "policy", "approvers"),
    [
        ({}, POLICY, ()),
        ({"COUNTERSIGN_AGENT": "bot.demo:channels"}, POLICY, ()),
        ({"COUNTERSIGN_AGENT": "bot.demo:build"}, None, (CHANNEL,)),
        ({"COUNTERSIGN_REMIND_AFTER": "5m"}, None, (CHANNEL,)),
        ({"COUNTERSIGN_APPROVERS": "U0ADALINDQ"}, None, ("U0ADALINDQ",)),
        ({"COUNTERSIGN_POLICY": "mine.yaml"}, Path("mine.yaml"), ()),
    ],
)
def test_demo_has_a_policy_unless_the_environment_says_who_decides(
    tmp_path: Path, environ: dict[str, str], policy: Path | None, approvers: tuple[str, ...]
) -> None:
    bot = FakeBot(then=interrupt)
    environ = {"COUNTERSIGN_DATA_DIR": str(tmp_path), **environ}
    assert main(["demo", "--port", "0"], environ=environ, run_bot=bot) == 0
    assert bot.settings is not None
    assert (bot.settings.policy, bot.settings.approvers) == (policy, approvers)
    assert bot.demo is not None


def test_demo_takes_a_free_port_when_its_own_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        monkeypatch.setattr("bot.commands.demo.PORT", port)
        environ = {"COUNTERSIGN_DATA_DIR": str(tmp_path)}
        assert main(["demo"], environ=environ, run_bot=FakeBot(then=interrupt)) == 0
    match = re.search(r"http://127\.0\.0\.1:(\d+)", capsys.readouterr().out)
    assert match is not None
    assert int(match[1]) not in {0, port}


@pytest.mark.parametrize("command", ["demo", "sandbox"])
def test_a_taken_port_that_was_asked_for(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    environ = {"COUNTERSIGN_DATA_DIR": str(tmp_path)}
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert main([command, "--port", port], environ=environ, run_bot=FakeBot()) == FAILED
    assert port in capsys.readouterr().err


def test_demo_when_the_bot_does_not_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    environ = {"COUNTERSIGN_DATA_DIR": str(tmp_path)}
    bot = FakeBot(error=BotError("it failed"))
    assert main(["demo", "--port", "0"], environ=environ, run_bot=bot) == FAILED
    shown = capsys.readouterr()
    assert shown.err == "it failed\n"
    assert shown.out == ""
    assert is_empty(tmp_path)


def test_demo_with_a_wrong_variable(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo"], environ={"COUNTERSIGN_DATADIR": str(tmp_path)}) == WRONG_SETTINGS
    assert "did you mean COUNTERSIGN_DATA_DIR?" in capsys.readouterr().err


def test_demo_without_a_place_for_its_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.write_text("")
    assert main(["demo"], environ={"COUNTERSIGN_DATA_DIR": str(file)}) == FAILED
    assert "set COUNTERSIGN_DATA_DIR to another one" in capsys.readouterr().err


def test_sandbox_refuses_other_machines(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sandbox", "--host", "192.0.2.1"], environ={}) == WRONG_SETTINGS
    assert "loopback" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "names"),
    [
        ([], {"SLACK_API_URL", "SLACK_BOT_TOKEN", "SLACK_APP_TOKEN"}),
        (
            ["--events-url", "http://127.0.0.1:9/slack/events"],
            {"SLACK_API_URL", "SLACK_BOT_TOKEN", "SLACK_SIGNING_SECRET"},
        ),
    ],
)
def test_sandbox_says_how_to_connect(argv: list[str], names: set[str]) -> None:
    shown: list[str] = []

    def say(text: str) -> None:
        shown.append(text)
        interrupt()

    assert main(["sandbox", "--port", "0", *argv], environ={}, say=say) == 0
    environ = dict(re.findall(r"^    export ([A-Z_]+)=(\S+)$", shown[0], re.MULTILINE))
    assert set(environ) == names | {"COUNTERSIGN_APPROVERS", "COUNTERSIGN_CHANNELS"}
    Settings.load(environ)


class Program:
    """The real program in a process of its own."""

    def __init__(self, directory: Path, *argv: str) -> None:
        environ = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("SLACK_", "COUNTERSIGN_"))
        }
        self.process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-m", "bot", *argv],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**environ, "COUNTERSIGN_DATA_DIR": str(directory), "PYTHONWARNINGS": "error"},
        )
        self.shown = ""

    def read_until(self, mark: str) -> str:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.shown += line
            if mark in line:
                return self.shown
        raise AssertionError(f"{self.shown}\n{self.process.communicate()[1]}")

    def end(self, number: int) -> tuple[int, str]:
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=20)
        return self.process.returncode, errors


async def test_the_real_demo_starts_serves_and_ends(tmp_path: Path) -> None:
    program = Program(tmp_path, "demo", "--port", "0")
    shown = await asyncio.to_thread(program.read_until, "Ctrl-C")
    match = re.search(r"http://127\.0\.0\.1:\d+", shown)
    assert match is not None
    async with aiohttp.ClientSession() as session, session.get(match[0]) as answer:
        assert answer.status == 200
    assert await asyncio.to_thread(program.end, signal.SIGTERM) == (0, "")
    assert is_empty(tmp_path)


def test_backup_of_the_embedded_database(tmp_path: Path) -> None:
    said: list[str] = []
    storage = SqliteStores(tmp_path / "data")
    asyncio.run(_open_and_close(storage))
    environ = {"COUNTERSIGN_DATA_DIR": str(tmp_path / "data")}
    copy = tmp_path / "copy.db"
    assert main(["backup", str(copy)], environ=environ, say=said.append) == 0
    assert copy.exists()
    assert said == [
        (
            f"Backed up to {copy} ({copy.stat().st_size:,} bytes, verified). "
            "Protect it like the original."
        )
    ]


def test_backup_without_a_database(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["backup", str(tmp_path / "copy.db"), "--data-dir", str(tmp_path)]
    assert main(arguments, environ={}) == FAILED
    assert "there is no database in the data directory" in capsys.readouterr().err


def test_backup_is_for_the_embedded_database(capsys: pytest.CaptureFixture[str]) -> None:
    environ = {"MONGODB_URI": "mongodb://db.example/x"}
    assert main(["backup", "copy.db"], environ=environ) == FAILED
    assert "mongodump" in capsys.readouterr().err


async def _open_and_close(storage: SqliteStores) -> None:
    await storage.open()
    await storage.close()


def test_sandbox_grants_what_the_manifest_asks_for() -> None:
    assert scopes_of_sandbox() == needed_scopes()


def test_sandbox_grants_what_another_app_asks_for(tmp_path: Path) -> None:
    path = tmp_path / "app.yml"
    path.write_text("oauth_config: {scopes: {bot: [chat:write, users:read]}}", encoding="utf-8")
    assert scopes_of_sandbox("--manifest", str(path)) == {"chat:write", "users:read"}


@pytest.mark.parametrize(("text", "fault"), [(None, "No such file"), ("[", "not valid YAML")])
def test_sandbox_refuses_an_unreadable_manifest(
    text: str | None, fault: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "app.yml"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    assert main(["sandbox", "--manifest", str(path)], environ={}) == WRONG_SETTINGS
    shown = capsys.readouterr().err
    assert fault in shown
    assert "--manifest" in shown


def scopes_of_sandbox(*argv: str) -> set[str]:
    """Start the sandbox, and ask which scopes its bot token has."""
    granted: list[str] = []

    def look(words: str) -> None:
        url, token = (re.findall(rf"{name}=(\S+)", words)[0] for name in ("API_URL", "BOT_TOKEN"))
        request = Request(  # noqa: S310 - the sandbox's own address
            f"{url}auth.test", method="POST", headers={"Authorization": f"Bearer {token}"}
        )
        with urlopen(request) as answer:  # noqa: S310 - as above
            granted.extend(answer.headers["x-oauth-scopes"].split(","))
        interrupt()

    def say(words: str) -> None:
        Thread(target=look, args=(words,)).start()

    assert main(["sandbox", "--port", "0", *argv], environ={}, say=say) == 0
    return set(granted)
