"""The manifest: valid, minimal, and the same as what the code calls and listens to."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from bot.config.manifest import (
    COMMANDS,
    EVENT_SCOPES,
    METHOD_SCOPES,
    SHORTCUTS,
    bot_events,
    bot_scopes,
    check_manifest,
    manifest_for,
    manifest_text,
    needed_scopes,
    read_manifest,
)
from bot.slack.listeners import EVENTS, commands, shortcuts

ROOT = Path(__file__).parents[4]
SCHEMA = ROOT / "tests" / "data" / "slack-manifest.schema.2.0.0.json"

Change = Callable[[dict[str, Any]], object]


def changed(change: Change) -> str:
    """The text of the manifest after a change."""
    manifest = yaml.safe_load(manifest_text())
    change(manifest)
    return yaml.safe_dump(manifest)


def test_the_package_carries_the_file_at_the_top() -> None:
    assert manifest_text() == (ROOT / "manifest.yml").read_text(encoding="utf-8")


def test_it_fits_the_schema_of_slack() -> None:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    validator = jsonschema.Draft7Validator(schema)
    assert [error.message for error in validator.iter_errors(read_manifest(manifest_text()))] == []


def test_it_fits_our_own_rules() -> None:
    assert check_manifest(manifest_text()) == []


def test_its_scopes_are_the_needed_ones() -> None:
    assert set(bot_scopes(read_manifest(manifest_text()))) == needed_scopes()


def test_its_events_are_the_ones_with_listeners() -> None:
    events = bot_events(read_manifest(manifest_text()))
    assert {event.partition(".")[0] for event in events} == set(EVENTS)


def test_its_shortcuts_are_the_ones_with_listeners() -> None:
    assert dict(SHORTCUTS) == dict(shortcuts.CALLBACKS)


def test_its_commands_are_the_ones_with_listeners() -> None:
    assert list(COMMANDS) == [commands.COMMAND]


def test_the_listed_methods_are_the_ones_that_the_bot_calls() -> None:
    families = "agents|assistant|chat|conversations|files|reactions|team|usergroups|users|views"
    literal = re.compile(rf'"((?:{families})\.[a-z][A-Za-z.]*)"')
    sources = [
        path
        for path in (ROOT / "bot").rglob("*.py")
        if "sandbox" not in path.parts and path.name != "manifest.py"
    ]
    own_name = re.compile(rf"\bclient\.((?:{families})_[A-Za-z]+)\b")
    texts = [path.read_text("utf-8") for path in sources]
    called = {name for text in texts for name in literal.findall(text)}
    called |= {name.replace("_", ".", 1) for text in texts for name in own_name.findall(text)}
    assert called == set(METHOD_SCOPES)


def test_each_event_has_its_scope_among_the_needed_ones() -> None:
    assert set(EVENT_SCOPES.values()) - {""} <= needed_scopes()


def remove_scope(name: str) -> Change:
    return lambda manifest: manifest["oauth_config"]["scopes"]["bot"].remove(name)


def add_scope(name: str) -> Change:
    return lambda manifest: manifest["oauth_config"]["scopes"]["bot"].append(name)


def put(value: object, *path: str) -> Change:
    def change(manifest: dict[str, Any]) -> None:
        *parents, last = path
        for key in parents:
            manifest = manifest[key]
        manifest[last] = value

    return change


def without_agent_view(manifest: dict[str, Any]) -> None:
    """The manifest of an app where Slack's surface for agents is not to be had."""
    del manifest["features"]["agent_view"]
    manifest["oauth_config"]["scopes"]["bot"].remove("assistant:write")
    manifest["settings"]["event_subscriptions"]["bot_events"].remove("agent_session_stopped")


def test_the_agent_view_can_be_done_without() -> None:
    assert check_manifest(changed(without_agent_view)) == []


@pytest.mark.parametrize(
    ("left", "words"),
    [
        (
            lambda manifest: manifest["features"].pop("agent_view"),
            "assistant:write, which the bot doesn't",
        ),
        (
            lambda manifest: manifest["features"].pop("agent_view"),
            "agent_session_stopped, which the bot",
        ),
        (remove_scope("assistant:write"), "scopes.bot lacks assistant:write"),
        (put({}, "features", "assistant_view"), "agent_view takes its place"),
    ],
)
def test_the_agent_view_is_there_with_scope_and_event_or_not_at_all(
    left: Change, words: str
) -> None:
    assert words in " ".join(check_manifest(changed(left)))


SETTINGS = ("settings",)
HOME = ("features", "app_home")
EVENTS_PATH = ("settings", "event_subscriptions")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (remove_scope("chat:write"), "oauth_config.scopes.bot lacks chat:write"),
        (remove_scope("im:history"), "the event message.im needs the scope im:history"),
        (add_scope("admin"), "includes admin, which the bot doesn't use"),
        (add_scope("chat:write"), "names something twice"),
        (put(None, "oauth_config"), "lacks app_mentions:read, "),
        (put("chat:write", "oauth_config", "scopes", "bot"), "lacks app_mentions:read, "),
        (put(["chat:write"], "oauth_config", "scopes", "user"), "never acts as a person"),
        (
            put([], *EVENTS_PATH, "bot_events"),
            "lacks agent_session_stopped, app_home_opened, app_mention",
        ),
        (put(["message.im"], *EVENTS_PATH, "user_events"), "user_events must be empty"),
        (
            lambda manifest: manifest["settings"]["event_subscriptions"]["bot_events"].append("x"),
            "includes x, which the bot doesn't use",
        ),
        (put("yes", *SETTINGS, "interactivity", "is_enabled"), "cards have buttons"),
        (put(True, *SETTINGS, "token_rotation_enabled"), "must be false"),
        (put(False, *SETTINGS, "socket_mode_enabled"), "interactivity.request_url must be"),
        (put("", "display_information", "name"), "1 to 35 characters"),
        (put("#12", "display_information", "background_color"), "must look like"),
        (put(None, "features", "bot_user"), "no one could mention the bot"),
        (put(False, *HOME, "messages_tab_enabled"), "messages_tab_enabled must be true"),
        (put(False, *HOME, "home_tab_enabled"), "home_tab_enabled must be true"),
        (put(True, *HOME, "messages_tab_read_only_enabled"), "read_only_enabled must be false"),
        (put(None, "features", "shortcuts"), "shortcuts lacks countersign:ask_about"),
        (
            lambda manifest: manifest["features"]["shortcuts"][0].update(type="message"),
            "the type of countersign:my_approvals must be global",
        ),
        (put(None, "features", "slash_commands"), "slash_commands lacks /countersign"),
        (
            lambda manifest: manifest["features"]["slash_commands"][0].pop("should_escape"),
            "should_escape must be true",
        ),
        (put(False, *SETTINGS, "socket_mode_enabled"), "url must be an https address"),
    ],
)
def test_a_broken_manifest_is_refused(change: Change, words: str) -> None:
    assert words in "; ".join(check_manifest(changed(change)))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [", "not valid YAML (line 1)"),
        ("a: \x07", "not valid YAML"),
        ("- a", "not a mapping"),
        ("", "not a mapping"),
    ],
)
def test_a_file_that_is_no_manifest_is_refused(text: str, words: str) -> None:
    (fault,) = check_manifest(text)
    assert words in fault


def test_the_one_for_http_fits_the_schema_and_our_rules() -> None:
    text = manifest_for("https://bot.example/slack/events")
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    validator = jsonschema.Draft7Validator(schema)
    assert [error.message for error in validator.iter_errors(read_manifest(text))] == []
    assert check_manifest(text) == []
    assert text.count("https://bot.example/slack/events") == 2 + len(COMMANDS)
    assert bot_scopes(read_manifest(text)) == bot_scopes(read_manifest(manifest_text()))


def test_no_colour_is_accepted() -> None:
    assert check_manifest(changed(lambda m: m["display_information"].pop("background_color"))) == []
