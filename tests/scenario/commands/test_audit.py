"""`countersign audit`: what is on record, also while the bot runs; it changes nothing."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from bot.audit.acts import Act
from bot.audit.entries import note, note_decision, note_request
from bot.commands.cli import FAILED, WRONG_SETTINGS, main
from bot.records.approval import Decision, Status
from bot.stores import Stores
from tests.contract.builders import an_approval
from tests.support.stores import SqliteStores

APPROVAL = an_approval()


async def fill(storage: Stores) -> None:
    await storage.open()
    await storage.approvals.insert(APPROVAL)
    await note_request(storage.audit, APPROVAL)
    decision = Decision(status=Status.APPROVED, by="UADA", at_ms=APPROVAL.created_ms + 1000)
    await note_decision(storage.audit, APPROVAL, decision)
    late = {"key": "k", "at_ms": APPROVAL.created_ms + 2000, "about": APPROVAL.thread_id}
    await note(storage.audit, Act.TURN_FAILED, why="badge 4711", **late)  # type: ignore[arg-type]


async def fill_and_close(storage: Stores) -> None:
    await fill(storage)
    await storage.close()


def printed(*argv: str, **environ: str) -> list[str]:
    said: list[str] = []
    assert main(["audit", *argv], environ=dict(environ), say=said.append) == 0
    return said


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    asyncio.run(fill_and_close(SqliteStores(tmp_path / "data")))
    return tmp_path / "data"


def test_of_a_thread(directory: Path) -> None:
    lines = printed("--thread", APPROVAL.thread_id, COUNTERSIGN_DATA_DIR=str(directory))
    assert [line.split("  ")[1] for line in lines] == ["requested", "decided", "turn_failed"]
    assert "by UADA" in lines[1]


def test_of_an_approval(directory: Path) -> None:
    lines = printed("--approval", APPROVAL.approval_id, "--data-dir", str(directory))
    assert [line.split("  ")[1] for line in lines] == ["requested", "decided"]


def test_of_an_approval_whose_thread_is_forgotten(tmp_path: Path) -> None:
    async def note_without_record() -> None:
        storage = SqliteStores(tmp_path)
        await storage.open()
        await note_request(storage.audit, APPROVAL)
        await note_request(storage.audit, APPROVAL.changed(approval_id="apr_other"))
        await storage.close()

    asyncio.run(note_without_record())
    for argv in (["--approval", APPROVAL.approval_id], ["show", APPROVAL.approval_id]):
        (line,) = printed(*argv, "--data-dir", str(tmp_path))
        assert APPROVAL.approval_id in line


def test_as_json(directory: Path) -> None:
    lines = printed("--thread", APPROVAL.thread_id, "--json", "--data-dir", str(directory))
    requested, decided, _ = (json.loads(line) for line in lines)
    assert requested["evidence"]["digest"] == APPROVAL.digest
    assert (decided["by"], decided["evidence"]["status"]) == ("UADA", "approved")


def test_with_the_rules_of_today(directory: Path) -> None:
    rules = {"COUNTERSIGN_REDACT": "badge [0-9]+"}
    lines = printed("--thread", APPROVAL.thread_id, "--data-dir", str(directory), **rules)
    assert "4711" not in lines[2]


async def test_beside_the_bot_that_has_the_database_open(tmp_path: Path) -> None:
    storage = SqliteStores(tmp_path)
    await fill(storage)
    try:
        argv = ("--thread", APPROVAL.thread_id, "--data-dir", str(tmp_path))
        assert len(await asyncio.to_thread(printed, *argv)) == 3
        await note(storage.audit, Act.RESUMED, key="k", at_ms=9, about=APPROVAL.thread_id)
        assert len(await asyncio.to_thread(printed, *argv)) == 4
    finally:
        await storage.close()


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--thread", "T:C:1"], "no audit entries for T:C:1"),
        (["--approval", "apr_x"], "apr_x"),
    ],
)
def test_of_nothing(
    directory: Path, argv: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", *argv, "--data-dir", str(directory)], environ={}) == FAILED
    assert said in capsys.readouterr().err


def test_without_a_database(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["audit", "--thread", "x", "--data-dir", str(tmp_path)]
    assert main(command, environ={}) == FAILED
    assert "there is no database in the data directory" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("COUNTERSIGN_MONGO_DRIVER", "mango", "write motor or pymongo"),
        ("COUNTERSIGN_REDACT", "a(b", "isn't valid: missing )"),
    ],
)
def test_with_wrong_settings(
    directory: Path, name: str, value: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["audit", "--thread", "x", "--data-dir", str(directory)]
    assert main(command, environ={name: value}) == WRONG_SETTINGS
    assert f"{name}: " in (shown := capsys.readouterr().err)
    assert said in shown


@pytest.mark.parametrize("argv", [[], ["--thread", "a", "--approval", "b"]])
def test_one_of_both_is_asked_for(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["audit", *argv], environ={})
    assert "--thread" in capsys.readouterr().err
