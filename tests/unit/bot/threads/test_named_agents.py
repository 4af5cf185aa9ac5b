"""The file of agents: read whole, and each fault told with its line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from agents import ChatModelAgent, ScriptedModel
from bot.config.settings import Settings
from bot.errors import InvalidSettingsError, SettingsError
from bot.policy.parser.problems import PolicyError
from bot.threads.named_agents import load_roster, read_roster

GOOD = """\
version: 1
agents:
  deploy:
    use: countersign_roster:deploy
    channels: [C0DEPLOY, "#releases"]
    description: Brings versions to production.
    prompts:
      - title: Deploy payments
        message: Deploy payments 1.4.2 to production
  helpdesk:
    use: countersign_roster:helpdesk
    channels: ["*"]
  archive:
    use: countersign_roster:archive
"""
BROKEN = sorted((Path(__file__).parents[3] / "data" / "agents" / "broken").glob("*.yaml"))
MARK = "# expected: "
ENVIRON = {
    "SLACK_BOT_TOKEN": "xoxb-1",
    "SLACK_APP_TOKEN": "xapp-1",
    "COUNTERSIGN_APPROVERS": "U0ADALINDQ",
}


@pytest.fixture(autouse=True)
def code(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    module = ModuleType("countersign_roster")

    def maker(name: str) -> object:
        return lambda model: ChatModelAgent(name=name, model=model, description=f"Of {name}.")

    def broken(model: object) -> object:
        raise ValueError("no key")

    parts = {name: maker(name) for name in ("deploy", "helpdesk", "archive")}
    parts |= {"broken": broken, "several": lambda model: {"*": 1}, "number": 7}
    for name, part in parts.items():
        setattr(module, name, part)
    monkeypatch.setitem(sys.modules, "countersign_roster", module)
    return iter(())


def settings_with(path: Path, **more: str) -> Settings:
    return Settings.load({**ENVIRON, "COUNTERSIGN_AGENTS_FILE": str(path), **more})


def test_agents_work_in_their_channels_and_by_their_names(tmp_path: Path) -> None:
    path = tmp_path / "countersign.yaml"
    path.write_text(GOOD, encoding="utf-8")
    roster = load_roster(settings_with(path), ScriptedModel([]))
    assert {place: agent.name for place, agent in roster.agents.items()} == {
        "@deploy": "deploy",
        "@helpdesk": "helpdesk",
        "@archive": "archive",
        "C0DEPLOY": "deploy",
        "#releases": "deploy",
        "*": "helpdesk",
    }
    assert roster.agents["@deploy"] is roster.agents["C0DEPLOY"]
    assert roster.descriptions == {"deploy": "Brings versions to production."}
    (prompt,) = roster.prompts["deploy"]
    assert prompt.message == "Deploy payments 1.4.2 to production"


def test_prompts_of_named_agents_call_them_by_their_name(tmp_path: Path) -> None:
    path = tmp_path / "countersign.yaml"
    own = "    prompts: [{title: Reset, message: reset my password}]\n  archive:"
    path.write_text(GOOD.replace("  archive:", own, 1), encoding="utf-8")
    offered = load_roster(settings_with(path), ScriptedModel([])).offered()
    assert [(one.title, one.message) for one in offered] == [
        ("Reset", "reset my password"),
        ("Deploy payments", "deploy: Deploy payments 1.4.2 to production"),
    ]


def test_without_the_file_the_setting_counts() -> None:
    settings = Settings.load({**ENVIRON, "COUNTERSIGN_AGENT": "countersign_roster:deploy"})
    roster = load_roster(settings, ScriptedModel([]))
    assert [*roster.agents] == ["*"]
    assert (roster.descriptions, roster.prompts, roster.offered()) == ({}, {}, ())


def test_there_are_ten_broken_files() -> None:
    assert len(BROKEN) >= 10


@pytest.mark.parametrize("path", BROKEN, ids=lambda path: path.stem)
def test_a_broken_file_is_told_with_its_lines(path: Path) -> None:
    data = path.read_bytes()
    lines = data.decode().splitlines()
    expected = [line.removeprefix(MARK) for line in lines if line.startswith(MARK)]
    with pytest.raises(PolicyError) as caught:
        read_roster(data, ScriptedModel([]))
    assert expected
    assert caught.value.text(path.name).splitlines() == expected


def test_all_faults_are_told_as_faults_of_the_setting(tmp_path: Path) -> None:
    path = tmp_path / "countersign.yaml"
    wrong = "version: 1\nagents:\n  deploy:\n    use: deploy.py\n    channels:\n      - deploys\n"
    path.write_text(wrong, encoding="utf-8")
    with pytest.raises(InvalidSettingsError) as caught:
        load_roster(settings_with(path), ScriptedModel([]))
    first, second = str(caught.value).splitlines()
    assert first.startswith("COUNTERSIGN_AGENTS_FILE: countersign.yaml:4: agents.deploy.use: ")
    assert "countersign.yaml:6: agents.deploy.channels[0]: " in second
    with pytest.raises(SettingsError, match="cannot be read: No such file"):
        load_roster(settings_with(tmp_path / "nothing.yaml"), ScriptedModel([]))


def test_both_settings_are_refused_with_the_words_for_the_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettingsError) as caught:
        settings_with(tmp_path, COUNTERSIGN_AGENT="helpdesk.agent:build")
    (line,) = str(caught.value).splitlines()
    assert line == (
        "COUNTERSIGN_AGENT: COUNTERSIGN_AGENTS_FILE is set, too, and says which agents work; unset "
        'it, and write in that file: agents: {main: {use: "helpdesk.agent:build", channels: ["*"]}}'
    )
