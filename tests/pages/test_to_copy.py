"""What pages give to copy: settings, defaults, policies, a file of agents, and metrics to watch."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from agents import ChatModelAgent, ScriptedModel
from bot.commands.cli import main
from bot.config.settings import Settings, variables
from bot.observability.metrics import Metrics
from bot.threads.named_agents import read_roster

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")])
FENCE = re.compile(r"^```(sh|yaml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BASE = {
    "SLACK_BOT_TOKEN": "xoxb-1-2-abc",
    "SLACK_APP_TOKEN": "xapp-1-A-2-abc",
    "COUNTERSIGN_APPROVERS": "U0ADALINDQ",
}


def blocks(kind: str) -> Iterator[tuple[str, str]]:
    """Each block of a kind, with a name for it."""
    for page in PAGES:
        text = page.read_text("utf-8")
        for match in FENCE.finditer(text):
            if match[1] == kind:
                yield f"{page.stem}-{text.count(chr(10), 0, match.start()) + 1}", match[2]


def assignments(block: str) -> dict[str, str]:
    """The settings of ours that a block sets, in a line or before a command."""
    words = shlex.split(block.replace("\\\n", " "), comments=True)
    pairs = [word.partition("=") for word in words]
    return {name: value for name, sign, value in pairs if sign and name in variables()}


SET = {name: assigned for name, block in blocks("sh") if (assigned := assignments(block))}
POLICIES = {name: block for name, block in blocks("yaml") if "\nrules:\n" in block}
ROSTERS = {name: block for name, block in blocks("yaml") if "\nagents:\n" in f"\n{block}"}


@pytest.mark.parametrize("assigned", SET.values(), ids=SET)
def test_settings_to_copy_are_taken(assigned: dict[str, str]) -> None:
    given = {name: value for name, value in assigned.items() if "…" not in value}
    given.pop("COUNTERSIGN_LANGUAGE", "")  # of a translation that the reader writes
    both = {**BASE, **given}
    if "COUNTERSIGN_POLICY" in both:  # takes the place of approvers
        del both["COUNTERSIGN_APPROVERS"]
    assert Settings.load(both).slack_bot_token.get_secret_value()


def test_a_default_that_is_told_is_the_default() -> None:
    page = (ROOT / "docs" / "reference" / "settings.md").read_text("utf-8")
    rows = dict(
        re.findall(r"^### `([A-Z_]+)`\n\n\|.*\n\|.*\n\| Default \| `(.*?)` \|", page, re.MULTILINE)
    )
    assert len(rows) > 10
    plain = Settings.load(BASE)
    for name, value in rows.items():
        assert Settings.load({**BASE, name: value}) == plain, name


@pytest.mark.parametrize("text", POLICIES.values(), ids=POLICIES)
def test_a_policy_to_copy_has_no_faults(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(text, encoding="utf-8")
    main(["policy", "check", str(path), "--offline"], environ={}, say=str)
    codes = re.findall(r"\[(\w+)\]$", capsys.readouterr().err, re.MULTILINE)
    assert {*codes} <= {
        "unknown_tool",
        "unknown_path",
        "unknown_tag",
    }  # it is checked against the demo's tools


@pytest.mark.parametrize("text", ROSTERS.values(), ids=ROSTERS)
def test_a_file_of_agents_to_copy_has_no_faults(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = ScriptedModel([]).__class__
    for path in re.findall(r"use: ([\w.]+):build", text):
        module = ModuleType(path)
        module.build = lambda _, name=path: ChatModelAgent(name=name, model=model([]))  # type: ignore[attr-defined]
        for part in (path.partition(".")[0], path):
            monkeypatch.setitem(sys.modules, part, module)
    roster = read_roster(text.encode(), model([]))
    assert len(roster.agents) >= len(re.findall("use:", text))


def test_metrics_to_watch_are_there() -> None:
    there = set(re.findall(r"^# TYPE (\w+)", Metrics().text().decode(), re.MULTILINE))
    named = {
        name
        for page in PAGES
        for name in re.findall(r"`(countersign_\w+)`", page.read_text("utf-8"))
    }
    assert len(named) > 10
    assert named <= there


def test_metrics_of_alerts_are_there() -> None:
    samples = set(re.findall(r"^(countersign_\w+)", Metrics().text().decode(), re.MULTILINE))
    samples |= set(re.findall(r"^# TYPE (\w+)", Metrics().text().decode(), re.MULTILINE))
    samples |= {f"{name}_bucket" for name in samples}
    used = {name for _, block in blocks("yaml") for name in re.findall(r"countersign_\w+", block)}
    assert len(used) > 5
    assert used <= samples


def test_they_are_found() -> None:
    assert len(SET) >= 5
    assert POLICIES
    assert ROSTERS
