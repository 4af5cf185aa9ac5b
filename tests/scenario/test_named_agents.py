"""The file of agents: where each works, how people name one, and its faults at the start."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.commands.cli import WRONG_SETTINGS, main
from bot.words import say
from tests.support.stage import Stage, a_stage

FILE = """\
version: 1
agents:
  deploy:
    use: tests.scenario.named_agents:deploy
    channels: ["#releases"]
    description: Brings versions to production.
    prompts: [{title: Deploy payments, message: Deploy payments 1.4.2}]
  helpdesk:
    use: tests.scenario.named_agents:helpdesk
    channels: ["*"]
    prompts: [{title: Reset, message: reset my password}]
  archive:
    use: tests.scenario.named_agents:archive
"""
BROKEN = sorted((Path(__file__).parents[1] / "data" / "agents" / "broken").glob("*.yaml"))
MARK = "# expected: "


async def test_people_name_the_agent_of_a_thread(tmp_path: Path) -> None:
    path = tmp_path / "countersign.yaml"
    path.write_text(FILE, encoding="utf-8")
    async with a_stage(tmp_path, "socket", COUNTERSIGN_AGENTS_FILE=str(path)) as stage:
        root = await stage.say("Rosa", "@countersign Deploy: payments 1.4.2")
        await stage.said("I am deploy")
        await stage.say("Rosa", "and search, too", thread_ts=root)
        await stage.until(lambda: stage.texts() == ["I am deploy."] * 2)

        await stage.say("Ada", "helpdesk: is what people say to each other", thread_ts=root)
        await stage.say("Rosa", "@countersign helpdesk: payments", thread_ts=root)
        await stage.whispered("Rosa", say("refuse.agent_of_thread", name="helpdesk"))
        assert stage.sandbox.ephemerals(stage.user("Ada")) == []

        await stage.say("Rosa", "@countersign note: this names nobody")
        await stage.said("I am helpdesk")
        assert (await offered(stage))[:2] == [
            ("Reset", "reset my password"),
            ("Deploy payments", "deploy: Deploy payments 1.4.2"),
        ]


async def offered(stage: Stage) -> list[tuple[str, str]]:
    """Open the conversation with the bot; return the prompts that are shown."""
    sandbox, rosa = stage.sandbox, stage.user("Rosa")
    sandbox.open_home(rosa, "messages")
    direct, prompts = sandbox.dm_id(rosa), sandbox.workspace.agent_view.prompts
    await sandbox.until(lambda: direct in prompts)
    return [(prompt["title"], prompt["message"]) for prompt in prompts[direct]["prompts"]]


def test_there_are_ten_broken_files() -> None:
    assert len(BROKEN) >= 10


def refused(path: Path, capsys: pytest.CaptureFixture[str], **more: str) -> list[str]:
    """What a command says that needs the agents."""
    environ = {"COUNTERSIGN_AGENTS_FILE": str(path), **more}
    assert main(["policy", "check", "policy.yaml"], environ=environ) == WRONG_SETTINGS
    return capsys.readouterr().err.splitlines()


@pytest.mark.parametrize("path", BROKEN, ids=lambda path: path.stem)
def test_a_broken_file_is_told_with_its_lines(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    expected = [line.removeprefix(MARK) for line in lines if line.startswith(MARK)]
    assert expected
    assert refused(path, capsys) == [
        f"COUNTERSIGN_AGENTS_FILE: {line.rpartition(' [')[0]}" for line in expected
    ]


def test_a_file_that_is_not_there_or_one_of_two_settings_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (line,) = refused(tmp_path / "nothing.yaml", capsys)
    assert "cannot be read: No such file" in line
    (line,) = refused(tmp_path, capsys, COUNTERSIGN_AGENT="helpdesk.agent:build")
    assert line == (
        "COUNTERSIGN_AGENT: COUNTERSIGN_AGENTS_FILE is set, too, and says which agents work; unset "
        'it, and write in that file: agents: {main: {use: "helpdesk.agent:build", channels: ["*"]}}'
    )
