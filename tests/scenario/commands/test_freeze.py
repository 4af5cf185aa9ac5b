"""`countersign freeze`, `unfreeze`, `freezes`: beside the bot, on each database (11.21)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bot.clock import system_clock
from bot.commands import parser
from bot.commands.cli import WRONG_SETTINGS, main
from bot.freezes.rules import CallScope
from bot.freezes.service import Freezes
from bot.freezes.starts import FreezeFile, Frozen, StartSwitch
from bot.records.switch import MAX_WHY
from bot.stores import Stores
from tests.contract.builders import an_approval
from tests.scenario.commands.test_upkeep import Place, place
from tests.support.stores import SqliteStores

__all__ = ["place"]

CALL = CallScope(agents=frozenset({"demo"}), tool="refund", channel="C0OPS")
AGENTS = """
from agents import ChatModelAgent, tool

@tool(tags=["money"])
async def refund(order_id: str) -> str:
    '''Refund an order.'''
    return order_id

def build(model):
    return ChatModelAgent(name="clerk", model=model, tools=[refund])
"""


def starts(storage: Stores) -> StartSwitch:
    """The start switch of the bot that has the database open."""
    freezes = Freezes(switches=storage.switches, audit=storage.audit, clock=system_clock, team="T1")
    return StartSwitch(freezes, FreezeFile(path=None, clock=system_clock), owner="host:1")


def test_cl01_a_freeze_holds_in_the_running_bot_and_is_lifted(place: Place) -> None:
    async def work(storage: Stores) -> None:
        switch = starts(storage)
        assert await switch.take_number(CALL) == 1
        lines = await place.type("freeze", "an agent runs wild")
        assert lines[0].startswith("f1: frozen: all.")
        assert lines[1] == "To lift it: countersign unfreeze f1 WHY"
        answer = await switch.take_number(CALL)
        assert isinstance(answer, Frozen)
        assert answer.freeze.by.startswith("cli:")
        assert "@" in answer.freeze.by

        (line,) = await place.type("freezes")
        assert line.startswith("f1  all  since ")
        assert line.endswith('"an agent runs wild"')
        (line,) = await place.type("freezes", "--json")
        assert json.loads(line)["scope"] == "all"

        assert await place.type("unfreeze", "mended") == ["f1: all: lifted."]
        assert await switch.take_number(CALL) == 2
        assert await place.type("freezes") == ["Nothing is frozen."]
        assert await place.type("freezes", "--json") == []

    place.do(work)


def test_a_second_freeze_of_one_scope_names_the_first(place: Place) -> None:
    async def work(_: Stores) -> None:
        await place.type("freeze", "wild", "--channel", "C0OPS")
        lines = await place.type("freeze", "wild, too", "--channel", "C0OPS", "--turns")
        assert lines[0].startswith("f1: channel C0OPS, and turns is frozen since ")
        lines = await place.type("freeze", "wild")
        assert lines[0].startswith("f2: frozen: all.")
        await place.type("unfreeze", "mended", fails=True)
        assert await place.type("unfreeze", "f1", "mended") == [
            "f1: channel C0OPS, and turns: lifted.",
            "Still in force: f2.",
        ]

    place.do(work)


def test_i12_freezes_are_in_the_audit_of_the_workspace(place: Place) -> None:
    async def work(storage: Stores) -> None:
        await storage.approvals.insert(an_approval())
        await place.type("freeze", "wild")
        await place.type("unfreeze", "mended")
        entries = await storage.audit.of_thread("", limit=9)
        assert [(entry.action, entry.team_id, entry.detail["why"]) for entry in entries] == [
            ("frozen", "T1", "wild"),
            ("unfrozen", "T1", "mended"),
        ]

    place.do(work)


# ---- names ---------------------------------------------------------------------------------------


@pytest.fixture
def data(tmp_path: Path) -> dict[str, str]:
    """The environment of a command on an embedded database; no bot runs."""
    directory = tmp_path / "data"

    async def nothing(_: Stores) -> None:
        pass

    Place(lambda: SqliteStores(directory)).do(nothing)
    return {"COUNTERSIGN_DATA_DIR": str(directory)}


def typed(environ: dict[str, str], *argv: str) -> tuple[int, list[str]]:
    said: list[str] = []
    return main(argv, environ=dict(environ), say=said.append), said


@pytest.fixture
def known(data: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The same, with agents that can be loaded."""
    (tmp_path / "frozen_shop.py").write_text(AGENTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    return {**data, "COUNTERSIGN_AGENT": "frozen_shop:build"}


@pytest.mark.parametrize(
    ("option", "name", "guess"),
    [("--agent", "clrek", "clerk"), ("--tool", "refnd", "refund"), ("--tag", "mony", "money")],
)
def test_cl02_an_unknown_name_is_refused_with_the_nearest(
    option: str, name: str, guess: str, known: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    code, _ = typed(known, "freeze", "x", option, name)
    assert code == WRONG_SETTINGS
    assert f"Did you mean {guess}? Or freeze all." in capsys.readouterr().err
    assert typed(known, "freezes") == (0, ["Nothing is frozen."])
    code, said = typed(known, "freeze", "x", option, guess)
    assert (code, said[0].startswith(f"f1: frozen: {option[2:]} {guess}.")) == (0, True)


def test_nothing_near_is_refused_too(
    known: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert typed(known, "freeze", "x", "--tool", "zzz")[0] == WRONG_SETTINGS
    assert typed(known, "freeze", "x", "--channel", "#ops")[0] == WRONG_SETTINGS
    said = capsys.readouterr().err
    assert "I know no tool “zzz”. Or freeze all." in said
    assert "“#ops” is no channel ID" in said


@pytest.mark.parametrize("agent", ["", "nowhere:build", "exits:build"])
def test_a_name_that_cannot_be_checked_is_frozen_and_said(
    agent: str, data: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopping must not fail because the application cannot be loaded."""
    (tmp_path / "exits.py").write_text("import sys\nsys.exit(3)")
    monkeypatch.syspath_prepend(str(tmp_path))
    code, said = typed(
        {**data, **({"COUNTERSIGN_AGENT": agent} if agent else {})}, "freeze", "x", "--tool", "sql"
    )
    assert code == 0
    assert "The name wasn't checked" in said[0]
    assert said[1].startswith("f1: frozen: tool sql.")


# ---- arguments -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "argv",
    [
        ["freeze"],
        ["freeze", "  "],
        ["freeze", "x" * 301],
        ["freeze", "x", "--tool", "a", "--agent", "b"],
        ["unfreeze", "f1"],
        ["unfreeze"],
    ],
)
def test_cl03_a_reason_and_at_most_one_scope_are_required(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        parser.parse(argv)
    assert caught.value.code == WRONG_SETTINGS
    assert argv[0] in capsys.readouterr().err


def test_a_reason_is_as_long_as_the_record_takes() -> None:
    assert parser.MAX_WHY == MAX_WHY
    assert len(parser.parse(["freeze", "x" * MAX_WHY]).why) == MAX_WHY


def test_without_a_database_nothing_is_frozen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = typed({"COUNTERSIGN_DATA_DIR": str(tmp_path / "none")}, "freeze", "x")
    assert (code, said) == (1, [])
    assert "can't use the database" in capsys.readouterr().err


def test_the_freeze_file_is_listed_and_stays_after_a_lifting(
    data: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "stop"
    environ = {**data, "COUNTERSIGN_FREEZE_FILE": str(file)}
    typed(environ, "freeze", "x")
    file.touch()
    _, lines = typed(environ, "freezes")
    assert lines[1].startswith("file  all, and turns  since ")
    _, lines = typed(environ, "unfreeze", "mended")
    assert lines[-1] == "The freeze file still exists: remove it, too."


def test_as_many_people_lift_as_the_policy_file_says(
    data: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("{version: 1, freeze: {lift: {count: 2}}, rules: [], default: {deny: x}}")
    environ = {**data, "COUNTERSIGN_POLICY": str(policy)}
    typed(environ, "freeze", "x")
    code, lines = typed(environ, "unfreeze", "mended")
    assert (code, lines) == (0, ["f1: all: confirmed. Still frozen: 1 more must confirm."])
    assert "lifting confirmed by cli:" in typed(environ, "freezes")[1][0]
    assert typed(environ, "unfreeze", "mended")[0] == 1
    assert "1 more person must confirm" in capsys.readouterr().err
    policy.write_text("version: 2")
    assert typed(environ, "unfreeze", "mended")[0] == 1
    assert "how many people must lift" in capsys.readouterr().err
