"""Settings: each fault is named with its variable and its remedy, and no secret is told."""

from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from bot.config.settings import Settings, variables
from bot.config.values import Log, is_loopback
from bot.errors import InvalidSettingsError

WHO = {"COUNTERSIGN_APPROVERS": "U0ADALINDQ"}
SOCKET = {"SLACK_BOT_TOKEN": "xoxb-1-2-abc", "SLACK_APP_TOKEN": "xapp-1-A-2-abc", **WHO}
HTTP = {"SLACK_BOT_TOKEN": "xoxb-1-2-abc", "SLACK_SIGNING_SECRET": "0123456789abcdef0123", **WHO}


def faults(**changes: str) -> dict[str, str]:
    """The faults of otherwise good settings, by variable."""
    with pytest.raises(InvalidSettingsError) as caught:
        Settings.load({**SOCKET, **changes})
    return {
        problem.variable: f"{problem.fault}; {problem.remedy}" for problem in caught.value.problems
    }


def test_defaults() -> None:
    settings = Settings.load(SOCKET)
    assert settings.is_socket_mode
    assert settings.slack_api_url == "https://slack.com/api/"
    assert settings.mongodb_uri is None
    assert settings.data_dir == Path(".countersign")
    assert (settings.mongo_driver, settings.agent, settings.model) == (
        "motor",
        "bot.demo:build",
        "demo",
    )
    assert (settings.host, settings.port) == ("127.0.0.1", 3000)
    assert settings.remind_after < settings.expire_after == timedelta(hours=8)
    assert (settings.approvers, settings.channels) == (("U0ADALINDQ",), ())
    assert settings.self_approval is False
    assert (settings.escalate_after, settings.escalate_to) == (None, ())
    assert settings.log == Log(level="INFO", as_json=False)


def test_without_an_app_token_the_bot_speaks_http() -> None:
    assert not Settings.load(HTTP).is_socket_mode


def test_the_process_environment_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COUNTERSIGN_PORT", "9")
    monkeypatch.setenv("PORT", "9")
    monkeypatch.setenv("SLACK_BOT_TOKEN", "xoxb-other")
    settings = Settings.load(SOCKET)
    assert settings.port == 3000
    assert settings.slack_bot_token.get_secret_value() == "xoxb-1-2-abc"


def test_nothing_set_names_all_that_is_missing() -> None:
    with pytest.raises(InvalidSettingsError) as caught:
        Settings.load({})
    first, second, third = str(caught.value).splitlines()
    assert first == (
        "SLACK_BOT_TOKEN: not set; "
        "set it to the Bot User OAuth Token (xoxb-…), from OAuth & Permissions "
        "in your app's settings"
    )
    assert second == (
        "SLACK_SIGNING_SECRET: not set, and neither is SLACK_APP_TOKEN; "
        "set SLACK_APP_TOKEN for Socket Mode, or SLACK_SIGNING_SECRET for HTTP"
    )
    assert third == (
        "COUNTERSIGN_APPROVERS: not set; set COUNTERSIGN_POLICY to a policy file; or list user "
        "IDs (U…) and user group IDs (S…), such as COUNTERSIGN_APPROVERS=U0ADALINDQ,S0ONCALL01; "
        "or use channel together with COUNTERSIGN_CHANNELS"
    )


@pytest.mark.parametrize(
    "given",
    [
        {"COUNTERSIGN_APPROVERS": "channel"},
        {"COUNTERSIGN_APPROVERS": "U0ADALINDQ, channel"},
        {"COUNTERSIGN_ESCALATE_AFTER": "1h", "COUNTERSIGN_ESCALATE_TO": "channel"},
    ],
)
def test_i13_a_channel_decides_only_where_the_operator_says(given: dict[str, str]) -> None:
    by_variable = faults(**given)
    assert list(by_variable) == ["COUNTERSIGN_CHANNELS"]
    assert "the requester could choose the approvers" in by_variable["COUNTERSIGN_CHANNELS"]
    settings = Settings.load({**SOCKET, **given, "COUNTERSIGN_CHANNELS": "C0OPSOPS01 G0OLDGROUP"})
    assert settings.channels == ("C0OPSOPS01", "G0OLDGROUP")


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("COUNTERSIGN_CHANNELS", "C0OPSOPS01", "when: {channel: [C…]}"),
        ("COUNTERSIGN_SELF_APPROVAL", "yes", "exclude: []"),
        ("COUNTERSIGN_EXCLUDE_EDITORS", "yes", "exclude: [requesters, editors]"),
        ("COUNTERSIGN_REMIND_AFTER", "10m", "remind: {after: 15m, times: 6}"),
        ("COUNTERSIGN_EXPIRE_AFTER", "1h", "expires: 8h"),
        ("COUNTERSIGN_MAX_AGE", "10m", "max_age: 15m"),
    ],
)
def test_what_a_policy_file_says_is_said_there_alone(variable: str, value: str, words: str) -> None:
    by_variable = faults(**{"COUNTERSIGN_POLICY": "policy.yaml", variable: value})
    assert set(by_variable) == {"COUNTERSIGN_APPROVERS", variable}
    assert words in by_variable[variable]
    assert "approve: [{from: [approvers]}]" in by_variable["COUNTERSIGN_APPROVERS"]


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("SLACK_BOT_TOKEN", "xoxp-1", "doesn't start with xoxb-"),
        ("SLACK_BOT_TOKEN", "xoxb-a b", "characters that aren't valid in a token"),
        ("SLACK_APP_TOKEN", "xoxb-1", "doesn't start with xapp-"),
        ("SLACK_SIGNING_SECRET", "short", "too short"),
        ("SLACK_SIGNING_SECRET", "0123456789 abcdef0123", "too short, or contains characters"),
        ("SLACK_API_URL", "slack.com/api", "not an address"),
        ("SLACK_API_URL", "https://slack.com:x/api", "not an address"),
        ("SLACK_API_URL", "https://slack.com\\@evil", "not an address"),
        ("SLACK_API_URL", "http://slack.com/api/", "without encryption"),
        ("SLACK_API_URL", "http://127.0.0.1.evil.example/", "without encryption"),
        ("SLACK_API_URL", "ftp://localhost/", "without encryption"),
        ("SLACK_API_URL", "https://u:p@slack.com/api/", "a login, a query or a fragment"),
        ("SLACK_API_URL", "https://slack.com/api/?x=1", "a login, a query or a fragment"),
        ("COUNTERSIGN_API_URL", "http://countersign.example.com", "without encryption"),
        ("COUNTERSIGN_API_URL", "https://u:p@countersign.example.com", "a login, a query"),
        ("COUNTERSIGN_API_HOST", "a b", "an address or a host name"),
        ("COUNTERSIGN_API_PORT", "70000", "isn't a valid port"),
        ("COUNTERSIGN_API_PROXIES", "10.0.0.1/8", "no network"),
        ("COUNTERSIGN_API_PROXIES", "proxy", "networks such as 10.0.0.0/8"),
        ("COUNTERSIGN_CALLBACK_PROXY", "proxy:3128", "not the address of a proxy"),
        ("COUNTERSIGN_CALLBACK_PROXY", "socks5://proxy:1080", "not the address of a proxy"),
        ("COUNTERSIGN_CALLBACK_PROXY", "http://u:p@proxy:3128", "has a login"),
        ("MONGODB_URI", "postgres://h/d", "doesn't start with mongodb://"),
        ("MONGODB_URI", "mongodb://", "names no host"),
        ("MONGODB_URI", "mongodb://u:p@ss@h/d", "written as %40"),
        ("COUNTERSIGN_DATA_DIR", "~/countersign", "whole path"),
        ("COUNTERSIGN_MONGO_DRIVER", "mongoengine", "write motor or pymongo"),
        ("COUNTERSIGN_AGENT", "helpdesk.agent", "write module:attribute"),
        ("COUNTERSIGN_AGENT", "helpdesk:agent.build", "write module:attribute"),
        ("COUNTERSIGN_AGENT", "os;x:y", "write module:attribute"),
        ("COUNTERSIGN_MODEL", "gpt-5", "provider:model"),
        ("COUNTERSIGN_HOST", "http://x", "write an address or a host name"),
        ("COUNTERSIGN_PORT", "65536", "from 1 to 65535"),
        ("COUNTERSIGN_PORT", "-1", "from 1 to 65535"),
        ("COUNTERSIGN_PORT", "٣", "from 1 to 65535"),
        ("COUNTERSIGN_REMIND_AFTER", "15", "not a duration"),
        ("COUNTERSIGN_EXPIRE_AFTER", "0m", "zero"),
        ("COUNTERSIGN_EXPIRE_AFTER", "31d", "longer than 30 days"),
        ("COUNTERSIGN_EXPIRE_AFTER", "15m", "longer than COUNTERSIGN_REMIND_AFTER"),
        ("COUNTERSIGN_ESCALATE_AFTER", "0m", "zero"),
        ("COUNTERSIGN_RETENTION", "90", "not a duration"),
        ("COUNTERSIGN_RETENTION", "90s", "less than a day"),
        ("COUNTERSIGN_RETENTION", "4000d", "longer than 3650 days"),
        ("COUNTERSIGN_ESCALATE_AFTER", "8h", "shorter than COUNTERSIGN_EXPIRE_AFTER"),
        ("COUNTERSIGN_ESCALATE_TO", ",", "doesn't list anyone"),
        ("COUNTERSIGN_ESCALATE_TO", "@ben", "'@ben' isn't a user ID"),
        ("COUNTERSIGN_ESCALATE_TO", "U0ADALINDQ", "COUNTERSIGN_ESCALATE_AFTER isn't set"),
        ("COUNTERSIGN_SELF_APPROVAL", "maybe", "write yes or no"),
        ("COUNTERSIGN_LANGUAGE", "tlh", "write one of these: en"),
        ("COUNTERSIGN_LANGUAGE", "../en", "write one of these: en"),
        ("COUNTERSIGN_LOG", "loud", "write a level"),
        ("COUNTERSIGN_LOG", "info,debug", "write a level"),
        ("COUNTERSIGN_APPROVERS", ",", "doesn't list anyone"),
        ("COUNTERSIGN_CHANNELS", "#ops", "not the id of a channel"),
        ("COUNTERSIGN_CHANNELS", "D0DIRECT01", "not the id of a channel"),
        ("COUNTERSIGN_APPROVERS", "everyone", "isn't a user ID"),
        ("COUNTERSIGN_APPROVERS", "*", "isn't a user ID"),
        ("COUNTERSIGN_APPROVERS", "U0ADALINDQ, @ben", "'@ben' isn't a user ID"),
        ("COUNTERSIGN_APPROVERS", "C0OPSOPS01", "isn't a user ID"),
        ("COUNTERSIGN_APPROVERS", "u0adalindq", "isn't a user ID"),
    ],
)
def test_a_wrong_value_is_refused(variable: str, value: str, words: str) -> None:
    by_variable = faults(**{variable: value})
    assert list(by_variable) == [variable]
    assert words in by_variable[variable]


@pytest.mark.parametrize("variable", list(variables()))
def test_an_empty_value_is_refused(variable: str) -> None:
    assert faults(**{variable: "  "})[variable] == "set, but empty; give it a value, or unset it"


def test_an_escalation_needs_somebody() -> None:
    assert faults(COUNTERSIGN_ESCALATE_AFTER="1h") == {
        "COUNTERSIGN_ESCALATE_TO": "not set, but COUNTERSIGN_ESCALATE_AFTER is, so there's no "
        "backup to ask; name the backup people as in COUNTERSIGN_APPROVERS, or unset "
        "COUNTERSIGN_ESCALATE_AFTER"
    }


@pytest.mark.parametrize(
    ("variable", "after"),
    [("COUNTERSIGN_ESCALATE_AFTER", "soon"), ("COUNTERSIGN_EXPIRE_AFTER", "9h")],
)
def test_a_fault_of_an_escalation_is_told_once(variable: str, after: str) -> None:
    given = {"COUNTERSIGN_ESCALATE_AFTER": after, "COUNTERSIGN_ESCALATE_TO": "U0ADALINDQ"}
    assert list(faults(**{**given, variable: "soon"})) == [variable]


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("COUNTERSIGN_APPROVER", "did you mean COUNTERSIGN_APPROVERS?"),
        ("COUNTERSIGN_SELF_APROVAL", "did you mean COUNTERSIGN_SELF_APPROVAL?"),
        ("countersign_port", "did you mean COUNTERSIGN_PORT?"),
        ("COUNTERSIGN_SANDBOX_DIRECTORY", "unset it"),
        ("COUNTERSIGN_QQQQQQQQQQQQQQQQQQQQQQ", "unset it"),
    ],
)
def test_a_mistyped_name_is_refused(name: str, remedy: str) -> None:
    assert faults(**{name: "1"}) == {name: f"unknown setting; {remedy}"}


def test_variables_of_others_are_passed_over() -> None:
    others = {"COUNTERSIGN_TEST_MONGODB_URI": "x", "SLACK_CHANNEL": "x", "HOME": "/"}
    others |= {"COUNTERSIGN_URL": "x", "COUNTERSIGN_KEY": "x", "COUNTERSIGN_KEY_FILE": "x"}
    assert Settings.load({**SOCKET, **others}) == Settings.load(SOCKET)


@pytest.mark.parametrize(
    ("variable", "value", "field", "read"),
    [
        (
            "SLACK_API_URL",
            "https://slack.example/api",
            "slack_api_url",
            "https://slack.example/api/",
        ),
        ("SLACK_API_URL", "http://localhost:8900", "slack_api_url", "http://localhost:8900/"),
        ("SLACK_API_URL", "http://[::1]:1/api//", "slack_api_url", "http://[::1]:1/api/"),
        ("COUNTERSIGN_DATA_DIR", "/srv/data", "data_dir", Path("/srv/data")),
        ("COUNTERSIGN_MONGO_DRIVER", "pymongo", "mongo_driver", "pymongo"),
        ("COUNTERSIGN_AGENT", "help_desk.agent:build", "agent", "help_desk.agent:build"),
        ("COUNTERSIGN_MODEL", "ollama:qwen3:8b", "model", "ollama:qwen3:8b"),
        ("COUNTERSIGN_HOST", "::1", "host", "::1"),
        ("COUNTERSIGN_PORT", "0", "port", 0),
        ("COUNTERSIGN_REMIND_AFTER", "1h30m", "remind_after", timedelta(minutes=90)),
        ("COUNTERSIGN_SELF_APPROVAL", "YES", "self_approval", True),
        ("COUNTERSIGN_SELF_APPROVAL", "off", "self_approval", False),
        ("COUNTERSIGN_LANGUAGE", " EN ", "language", "en"),
        ("COUNTERSIGN_LOG", "debug", "log", Log(level="DEBUG")),
        ("COUNTERSIGN_LOG", "json", "log", Log(as_json=True)),
        ("COUNTERSIGN_LOG", "JSON, warning", "log", Log(level="WARNING", as_json=True)),
        ("COUNTERSIGN_CHANNELS", "C0OPSOPS01,C0OPSOPS01", "channels", ("C0OPSOPS01",)),
        (
            "COUNTERSIGN_APPROVERS",
            "U0ADALINDQ, W0BENOKAFO S0ONCALL01,U0ADALINDQ",
            "approvers",
            ("U0ADALINDQ", "W0BENOKAFO", "S0ONCALL01"),
        ),
    ],
)
def test_a_good_value_is_read(variable: str, value: str, field: str, read: object) -> None:
    assert getattr(Settings.load({**SOCKET, variable: value}), field) == read


@given(st.text(max_size=40))
def test_no_text_makes_approvers_of_everyone(text: str) -> None:
    try:
        settings = Settings.load({**SOCKET, "COUNTERSIGN_APPROVERS": text})
    except InvalidSettingsError:
        return
    assert settings.approvers
    assert all(name == "channel" or name[0] in "UWS" for name in settings.approvers)


SECRETS = {
    "SLACK_BOT_TOKEN": "xoxb-hushhush",
    "SLACK_APP_TOKEN": "xapp-hushhush",
    "SLACK_SIGNING_SECRET": "hushhushhushhush",
    "MONGODB_URI": "mongodb://ann:hush%40hush@db1,db2/countersign",
}


def test_secrets_are_not_shown() -> None:
    settings = Settings.load({**SECRETS, **WHO})
    assert "hush" not in repr(settings) + str(settings) + repr(settings.model_dump())


def test_secrets_are_listed_for_masking() -> None:
    assert Settings.load({**SECRETS, **WHO}).secrets() == (
        *SECRETS.values(),
        "hush%40hush",
        "hush@hush",
    )
    assert Settings.load(HTTP).secrets() == tuple(HTTP[name] for name in HTTP if name not in WHO)
    without_login = Settings.load({**SOCKET, "MONGODB_URI": "mongodb://db1/x"}).secrets()
    assert without_login[-1] == "mongodb://db1/x"


@pytest.mark.parametrize("variable", list(SECRETS))
def test_a_wrong_secret_is_not_repeated(variable: str) -> None:
    with pytest.raises(InvalidSettingsError) as caught:
        Settings.load({**SECRETS, variable: "hush hush://hush@"})
    error = caught.value
    assert error.__cause__ is None
    assert error.__context__ is None
    assert "hush" not in str(error) + repr(error)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.8.8.8", "::1"])
def test_loopback_hosts(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["192.168.0.1", "10.0.0.1", "localhost.example", "1", ""])
def test_other_hosts(host: str) -> None:
    assert not is_loopback(host)
