"""A policy file and the bot that runs by it: the start, the signal, and what is on record."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from bot.config.settings import Settings
from bot.errors import FaultyPolicyError, InvalidSettingsError, SettingsError
from bot.main import listen_to_hangups, start
from bot.policy.current import LoadedPolicy
from bot.slack.connect import reach_slack
from slack_sandbox.workspace.people import ADA
from tests.support.stage import UNREACHABLE, Stage, a_stage, write_policy

GOOD = f"""\
version: 1
groups:
  ops: {{users: [{ADA}]}}
defaults: {{approve: [{{from: [ops]}}]}}
rules: []
default: {{ask: {{}}}}
"""
BAD = GOOD.replace("from: [ops]", "from: [oops]")
GONE = GOOD.replace(ADA, "U0NOBODY99")


async def acts(stage: Stage) -> list[str]:
    """The actions that are on record without a thread."""
    entries = await stage.storage.audit.of_thread("", limit=100)
    return [entry.action for entry in entries if entry.action.startswith("policy_")]


async def until(ready: Callable[[], bool]) -> None:
    """Let the loop turn until something is so: nothing in Slack shows it."""
    async with asyncio.timeout(60):
        while not ready():  # noqa: ASYNC110 - nothing sets an event when it is so
            await asyncio.sleep(0)


def policy_of(stage: Stage) -> LoadedPolicy:
    assert stage.bot is not None
    assert stage.bot.policy is not None
    return stage.bot.policy


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (BAD, "policy.yaml:4: defaults.approve[0].from[0]: no group named 'oops'"),
        (GONE, "policy.yaml:3: groups.ops.users[0]: U0NOBODY99 is not known in this workspace"),
    ],
)
async def test_a_bot_with_a_faulty_policy_does_not_start(
    text: str, words: str, tmp_path: Path
) -> None:
    path = write_policy(tmp_path, text)
    with pytest.raises(FaultyPolicyError) as caught:
        async with a_stage(tmp_path, "http", COUNTERSIGN_POLICY=path):
            pass
    assert words in str(caught.value)


async def test_faults_of_the_policy_are_told_before_the_network_is_used(tmp_path: Path) -> None:
    path, data = write_policy(tmp_path, BAD), str(tmp_path / "data")
    environ = {"COUNTERSIGN_POLICY": path, "COUNTERSIGN_DATA_DIR": data}
    settings = Settings.load({**UNREACHABLE, **environ})
    async with AsyncExitStack() as stack:
        with pytest.raises(FaultyPolicyError, match="no group named 'oops'"):
            await start(settings, stack)
    assert not (tmp_path / "data").exists()


async def test_an_id_of_the_settings_is_told_by_its_variable(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettingsError) as caught:
        async with a_stage(
            tmp_path,
            "http",
            COUNTERSIGN_ESCALATE_AFTER="1h",
            COUNTERSIGN_ESCALATE_TO="S0NOBODY99",
        ):
            pass
    (line,) = str(caught.value).splitlines()
    assert line.startswith("COUNTERSIGN_ESCALATE_TO: Slack doesn't recognize S0NOBODY99; ")


@pytest.mark.parametrize("is_set", [True, False])
async def test_a_network_that_is_down_is_no_fault_of_a_setting_that_nobody_set(
    is_set: bool,
) -> None:
    settings = Settings.load({**UNREACHABLE, "COUNTERSIGN_APPROVERS": ADA})
    if not is_set:  # as if the default address were this one
        given = settings.model_fields_set - {"slack_api_url"}
        settings = Settings.model_construct(given, **dict(settings))
    with pytest.raises(SettingsError) as caught:
        await reach_slack(settings)
    assert caught.value.variable == ("SLACK_API_URL" if is_set else "Slack")
    assert ("address" in caught.value.remedy) is is_set


async def test_a_bot_whose_policy_is_not_there_does_not_start(tmp_path: Path) -> None:
    missing = str(tmp_path / "none.yaml")
    with pytest.raises(FaultyPolicyError, match="can't read the file: No such file"):
        async with a_stage(tmp_path, "http", COUNTERSIGN_POLICY=missing):
            pass


async def test_a_signal_reads_the_file_again_and_a_faulty_one_is_refused(tmp_path: Path) -> None:
    path = write_policy(tmp_path, GOOD)
    async with a_stage(tmp_path, "http", COUNTERSIGN_POLICY=path) as stage:
        policy, first = policy_of(stage), policy_of(stage).hash
        assert await acts(stage) == ["policy_loaded"]
        async with AsyncExitStack() as stack:
            assert stage.bot is not None
            listen_to_hangups(stage.bot, stack)
            stage.clock.forward(seconds=1)
            write_policy(tmp_path, BAD)
            os.kill(os.getpid(), signal.SIGHUP)
            await until(lambda: "oops" in policy.faults)
            assert policy.hash == first
            stage.clock.forward(seconds=1)
            write_policy(tmp_path, GOOD.replace("rules", "# new\nrules"))
            os.kill(os.getpid(), signal.SIGHUP)
            await until(lambda: policy.hash != first)
        assert policy.faults == ""
        assert await acts(stage) == ["policy_loaded", "policy_refused", "policy_loaded"]


async def test_settings_leave_the_signal_alone(tmp_path: Path) -> None:
    async with a_stage(tmp_path, "http") as stage, AsyncExitStack() as stack:
        assert stage.bot is not None
        before = signal.getsignal(signal.SIGHUP)
        listen_to_hangups(stage.bot, stack)
        assert signal.getsignal(signal.SIGHUP) is before
        assert policy_of(stage).name == "settings"
        assert await acts(stage) == []
