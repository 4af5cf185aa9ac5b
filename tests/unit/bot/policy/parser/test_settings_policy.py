"""The settings as a policy: the conformance cases, and that each becomes a policy that holds."""

from __future__ import annotations

import pytest
import yaml

from bot.commands.demo_environment import demo_environment
from bot.commands.policies.cases import deciders_of
from bot.config.settings import Settings
from bot.errors import InvalidSettingsError
from bot.policy.parser.checks import check
from bot.policy.parser.settings import policy_text, settings_policy
from tests.support.policies import CASES, cases_of
from tests.support.policyworld import policy_world

TOKENS = {"SLACK_BOT_TOKEN": "xoxb-1", "SLACK_APP_TOKEN": "xapp-1"}


def load(name: str) -> Settings:
    case = CASES[name]
    if case.get("command") == "demo":
        return Settings.load(
            demo_environment(case["environ"], "http://127.0.0.1/", "xoxb-1", "xapp-1", ["C0OPS"])
        )
    return Settings.load({**TOKENS, **case["environ"]})


@pytest.mark.parametrize("name", cases_of("settings"))
def test_settings_start_or_not_and_are_a_policy(name: str) -> None:
    expect = CASES[name]["expect"]
    if not expect["starts"]:
        with pytest.raises(InvalidSettingsError) as caught:
            load(name)
        assert all(word in str(caught.value) for word in expect["names"])
        return
    settings = load(name)
    if "approvers" in expect:
        assert deciders_of(settings) == expect["approvers"]
    if settings.policy is not None:
        return
    policy = settings_policy(settings)
    if "policy" in expect:
        assert policy == expect["policy"]


MANY = {
    "COUNTERSIGN_APPROVERS": "U0ADA,S0SRE",
    "COUNTERSIGN_REMIND_AFTER": "90m",
    "COUNTERSIGN_EXPIRE_AFTER": "1d",
    "COUNTERSIGN_MAX_AGE": "5m",
    "COUNTERSIGN_ESCALATE_AFTER": "2h",
    "COUNTERSIGN_ESCALATE_TO": "U0LIA",
    "COUNTERSIGN_EXCLUDE_EDITORS": "yes",
}


@pytest.mark.parametrize(
    "given",
    [
        MANY,
        {**MANY, "COUNTERSIGN_SELF_APPROVAL": "yes"},
        {**MANY, "COUNTERSIGN_CHANNELS": "C0OPS"},
        {**MANY, "COUNTERSIGN_CHANNELS": "C0OPS", "COUNTERSIGN_ESCALATE_TO": "channel"},
        {"COUNTERSIGN_APPROVERS": "channel", "COUNTERSIGN_CHANNELS": "C0OPS,C0PAY"},
        {"COUNTERSIGN_APPROVERS": "channel,S0SRE", "COUNTERSIGN_CHANNELS": "C0OPS"},
    ],
)
def test_the_policy_of_any_settings_holds(given: dict[str, str]) -> None:
    data = settings_policy(Settings.load({**TOKENS, **given}))
    text = policy_text(data)
    assert yaml.safe_load(text) == data
    assert check(text.encode(), policy_world()).file.default.allow


def test_who_only_excludes_editors_lets_requesters_approve_if_the_settings_say_so() -> None:
    given = {"COUNTERSIGN_SELF_APPROVAL": "yes", "COUNTERSIGN_EXCLUDE_EDITORS": "yes"}
    settings = Settings.load({**TOKENS, "COUNTERSIGN_APPROVERS": "U0ADA", **given})
    text = policy_text(settings_policy(settings))
    assert check(text.encode(), policy_world()).file.defaults.exclude == ("editors",)


def test_times_of_the_settings_may_be_shorter_than_those_of_a_file() -> None:
    given = {"COUNTERSIGN_REMIND_AFTER": "10s", "COUNTERSIGN_EXPIRE_AFTER": "20s"}
    settings = Settings.load({**TOKENS, "COUNTERSIGN_APPROVERS": "U0ADA", **given})
    text = policy_text(settings_policy(settings))
    assert check(text.encode(), policy_world(), is_settings=True).file.defaults.expires == 20
