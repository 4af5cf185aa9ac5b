"""`countersign policy`: the cases of the command line, and what else people may type."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import jsonschema
import pytest
import yaml

from bot.commands.cli import WRONG_SETTINGS, main
from bot.commands.policy import OFFLINE, check_file, look_at_policy
from bot.errors import FaultyPolicyError
from bot.policy.parser.lookups import SlackFacts
from bot.policy.parser.schema import policy_schema
from tests.support.policies import CASES
from tests.support.policyworld import BOT, WorldDirectory, policy_world

AGENTS = {"COUNTERSIGN_AGENT": "tests.support.policyagents:build"}
TEXTS = {
    "good.yaml": CASES["K001"]["text"],
    "K069.yaml": CASES["K069"]["text"],
    "K042.yaml": CASES["K042"]["text"],
}


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in TEXTS.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)


def run(
    arguments: Sequence[str], capsys: pytest.CaptureFixture[str], **environ: str
) -> tuple[int, str]:
    """Run the command; its exit code, and all that it says."""
    code = main(["policy", *arguments], environ={**AGENTS, **environ})
    return code, "".join(capsys.readouterr())


async def checked(name: str) -> tuple[int, str]:
    """As `policy check` does, with the world's answers for Slack's."""
    lines: list[str] = []
    slack = SlackFacts(lookups=WorldDirectory(), bot_user_id=BOT)
    try:
        await check_file(Path(name), policy_world(), slack, lines.append)
    except FaultyPolicyError as error:
        return WRONG_SETTINGS, str(error)
    return 0, "\n".join(lines)


@pytest.mark.parametrize("name", ["C001", "C002"])
async def test_a_file_is_checked(name: str) -> None:
    case = CASES[name]
    code, text = await checked(case["args"][-1])
    assert code == case["expect"]["exit"]
    assert all(word in text for word in case["expect"].get("says", ()))


@pytest.mark.parametrize("name", ["C003", "C007"])
def test_what_needs_no_slack(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    case = CASES[name]
    code, text = run(case["args"][1:], capsys)
    assert code == case["expect"]["exit"]
    assert all(word in text for word in case["expect"].get("says", ()))


def test_all_faults_are_said_at_once_each_with_its_place(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, text = run(["check", "--offline", "K069.yaml"], capsys)
    assert code == WRONG_SETTINGS
    assert OFFLINE in text
    assert [line.split(": ")[:2] for line in text.splitlines() if line.startswith("K069")] == [
        ["K069.yaml:9", "rules[0].when.tool"],
        ["K069.yaml:10", "rules[1].when.tags[0]"],
        ["K069.yaml:10", "rules[1].then.deny"],
    ]


def test_a_look_at_slack_needs_a_token(capsys: pytest.CaptureFixture[str]) -> None:
    code, text = run(["check", "good.yaml"], capsys)
    assert code == WRONG_SETTINGS
    assert "--offline" in text


@pytest.mark.parametrize("action", ["check", "show"])
def test_a_file_that_is_not_there(action: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["check", "--offline", "none.yaml"] if action == "check" else ["show"]
    code, text = run(arguments, capsys, COUNTERSIGN_POLICY="none.yaml")
    assert code == WRONG_SETTINGS
    assert "can't read none.yaml: No such file or directory" in text


def test_the_settings_are_shown_as_a_policy(capsys: pytest.CaptureFixture[str]) -> None:
    given = dict(CASES["S005"]["environ"])
    code, text = run(["show"], capsys, **given)
    assert code == 0
    assert yaml.safe_load(text) == CASES["S005"]["expect"]["policy"]
    jsonschema.validate(yaml.safe_load(text), policy_schema())


def test_a_policy_file_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    code, text = run(["show"], capsys, COUNTERSIGN_POLICY="good.yaml")
    assert (code, text) == (0, TEXTS["good.yaml"])


LARGE = """\
version: 1
groups: {many: {channels: [C0OPS]}}
rules: [{name: all, when: {gated: true}, then: {ask: {approve: [{from: [many]}]}}}]
default: allow
"""


async def test_the_doctor_names_a_channel_that_is_too_large(tmp_path: Path) -> None:
    class Crowded(WorldDirectory):
        async def channel_members(self, channel_id: str) -> frozenset[str]:
            members = await super().channel_members(channel_id)
            return members | {f"U{number}" for number in range(600)}

    path = tmp_path / "large.yaml"
    path.write_text(LARGE)
    slack = SlackFacts(lookups=Crowded(), bot_user_id=BOT)
    finding = await look_at_policy(path, policy_world(), slack)
    assert not finding.is_ok
    assert "C0OPS has 60" in finding.text


async def test_the_doctor_names_the_faults_of_a_policy() -> None:
    slack = SlackFacts(lookups=WorldDirectory(), bot_user_id=BOT)
    good = await look_at_policy(Path("good.yaml"), policy_world(), slack)
    bad = await look_at_policy(Path("K042.yaml"), policy_world(), slack)
    assert good.is_ok
    assert "ok, 1 rule, SHA-256" in good.text
    assert "groups.typo.users[0]: U0NOBODY is not known" in bad.text


def test_a_check_says_that_it_knows_the_tools_of_the_demo_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = "checked against the demo's tools, because COUNTERSIGN_AGENT isn't set"
    main(["policy", "check", "--offline", "good.yaml"], environ={})
    assert text in capsys.readouterr().out
    assert text not in run(["check", "--offline", "good.yaml"], capsys)[1]
