"""The generated pages of the reference: up to date, complete, and with a text for each thing."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import get_args

import pytest
import yaml
from pydantic import BaseModel

from agents import AgentError, graph
from agents.core import errors as core_errors
from agents.core.component import legacy
from bot.audit.acts import Act
from bot.audit.entries import request_entry
from bot.commands.parser import build_parser
from bot.config.manifest import (
    EVENT_REASONS,
    SCOPE_REASONS,
    bot_events,
    bot_scopes,
    manifest_text,
    read_manifest,
)
from bot.config.settings import GROUPS, Settings, variables
from bot.errors import BotError, InvalidSettingsError
from bot.observability.actions import ACTIONS
from bot.observability.metrics import Metrics
from bot.policy.evaluation.context import PolicyWorld, ToolFacts
from bot.policy.model import PolicyFile
from bot.policy.parser.checks import check
from bot.policy.parser.problems import CODES, Code, PolicyError
from bot.policy.refusals import RefusalCode
from bot.rehearsal import case_schema
from bot.slack.slash_commands.words import WORDS
from reference_pages import (
    FILES,
    PAGES,
    audit_entries,
    command_line,
    entries,
    errors,
    http,
    limits,
    log_actions,
    metrics,
    policy_cases,
    policy_codes,
    policy_file,
    settings,
    slack_commands,
    sources,
    write_pages,
)
from storage.errors import StorageError
from storage.ledger import segment_row
from tests.contract.builders import an_approval
from tests.support.halves import later

FOLDER = Path(__file__).parents[2] / "docs" / "reference"
BASE = {
    "SLACK_BOT_TOKEN": "xoxb-1-2-abc",
    "SLACK_APP_TOKEN": "xapp-1-A-2-abc",
    "COUNTERSIGN_APPROVERS": "U0ADALINDQ",
}
LONG = {"COUNTERSIGN_REMIND_AFTER": "1s", "COUNTERSIGN_EXPIRE_AFTER": "30d"}


@cache
def page_of(name: str) -> str:
    """Make a page, once for all tests: each reads all modules."""
    return PAGES[name]()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_the_code_gives(name: str) -> None:
    assert (FOLDER / f"{name}.md").read_text("utf-8") == page_of(name), "type: make reference"


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_what_the_code_gives(name: str) -> None:
    assert (FOLDER / name).read_text("utf-8") == FILES[name](), "type: make reference"


@later
def test_pages_are_written_where_they_differ(tmp_path: Path) -> None:
    for name in PAGES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "settings.md").write_text("old", "utf-8")
    write_pages(tmp_path)
    assert (tmp_path / "settings.md").read_text("utf-8") == page_of("settings")
    at = (tmp_path / "settings.md").stat().st_mtime_ns
    write_pages(tmp_path)
    assert (tmp_path / "settings.md").stat().st_mtime_ns == at


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_no_empty_text(name: str) -> None:
    page = page_of(name)
    assert re.findall(r"^\|(?:[^|]*\|)*\s*\|$", page.replace("|  |  |", ""), re.MULTILINE) == []
    assert "``" not in page.replace("```", "")
    assert "None" not in page


# ---- settings ------------------------------------------------------------------------------------


def test_every_setting_is_in_one_group_and_on_the_page() -> None:
    grouped = [name for names in GROUPS.values() for name in names]
    assert sorted(grouped) == sorted(variables())
    page = page_of("settings")
    assert re.findall(r"^### `(\w+)`$", page, re.MULTILINE) == grouped
    assert f"(countersign-policy)={chr(10)}### `COUNTERSIGN_POLICY`" in page


@pytest.mark.parametrize("name", variables())
def test_a_setting_has_a_text_and_an_example_that_is_accepted(name: str, tmp_path: Path) -> None:
    field = settings.fields()[name]
    assert field.description
    assert settings.values_of(field)
    example = str((field.examples or [])[0])
    if name == "COUNTERSIGN_SECRETS_DIR":  # a directory of this machine
        (tmp_path / "SHOP_TOKEN").write_text("secret", "utf-8")
        example = str(tmp_path)
    needed: dict[str, str] = {}
    if name.startswith("COUNTERSIGN_ESCALATE"):
        needed = {"COUNTERSIGN_ESCALATE_AFTER": "1h", "COUNTERSIGN_ESCALATE_TO": "U0BENBENBE"}
    if name == "COUNTERSIGN_PERSONAL_KEYS":
        needed = {"COUNTERSIGN_API_PORT": "8443"}
    base = {
        key: said for key, said in BASE.items() if name != "COUNTERSIGN_POLICY" or key[0] == "S"
    }
    Settings.load({**base, **needed, name: example})  # raises if it is refused


RANGES = {
    name: match.groups()
    for name, field in settings.fields().items()
    if (match := re.fullmatch(r"`(\w+)` to `(\w+)`", settings.values_of(field)))
}


LIMITED = {
    "COUNTERSIGN_REMIND_AFTER": ("30d", "29d"),  # less than the expiry
    "COUNTERSIGN_EXPIRE_AFTER": ("1s", "2s"),  # more than the reminder
    "COUNTERSIGN_ESCALATE_AFTER": ("30d", "29d"),  # less than the expiry
}
"""Settings with an end that another setting limits: that end, and what is accepted beside it."""


def _around(name: str) -> dict[str, str]:
    """What the other settings have to be, so that the range of one is as wide as can be."""
    backup = {"COUNTERSIGN_ESCALATE_TO": "U0BENBENBE"} if "ESCALATE" in name else {}
    return {**BASE, **LONG, **backup}


@pytest.mark.parametrize("name", RANGES)
def test_the_range_of_a_setting_has_both_ends(name: str) -> None:
    limited, nearest = LIMITED.get(name, ("", ""))
    for value in RANGES[name]:
        accepted = nearest if value == limited else value
        Settings.load({**_around(name), name: accepted})  # raises if it is refused


@pytest.mark.parametrize("name", LIMITED)
def test_the_end_of_a_range_that_another_setting_limits_is_refused(name: str) -> None:
    limited, _ = LIMITED[name]
    assert limited in RANGES[name]
    with pytest.raises(InvalidSettingsError, match="COUNTERSIGN_EXPIRE_AFTER"):
        Settings.load({**_around(name), name: limited})


def _outside(value: str) -> list[str]:
    """A value, one smaller and one greater, in the unit of the page."""
    number, unit = re.fullmatch(r"(\d+)(\w?)", value).groups()  # type: ignore[union-attr]
    return [f"{int(number) - 1}{unit}", f"{int(number) + 1}{unit}"]


@pytest.mark.parametrize("name", RANGES)
def test_a_setting_refuses_what_is_outside_of_its_range(name: str) -> None:
    least, most = RANGES[name]
    for value in (_outside(least)[0], _outside(most)[1]):
        with pytest.raises(InvalidSettingsError, match=name):
            Settings.load({**_around(name), name: value})


def test_a_default_on_the_page_is_the_default() -> None:
    plain = Settings.load(BASE)
    for name, field in settings.fields().items():
        if default := settings.default_of(field):
            assert Settings.load({**BASE, name: default}) == plain, name


# ---- command line --------------------------------------------------------------------------------


def test_every_command_and_argument_is_on_the_page_and_has_a_text() -> None:
    page = page_of("command-line")
    commands = command_line.commands()
    assert len(commands) > 20
    for name, parser in commands:
        assert f"## `{name}`" in page
        assert command_line.summary_of(name), name
        for argument in command_line.arguments(parser):
            assert command_line.help_of(argument), (name, argument.dest)
            last = (argument.option_strings or [str(argument.metavar)])[-1]
            assert f"| `{last}" in page, (name, last)


def test_help_prints_the_texts_of_the_page() -> None:
    assert "check the settings, the database and Slack" in " ".join(
        build_parser().format_help().split()
    )
    assert "Check the settings, the database and Slack" in page_of("command-line")


# ---- policy file ---------------------------------------------------------------------------------

MODELS = entries.models_below(PolicyFile)


def test_every_key_of_the_policy_file_is_on_the_page() -> None:
    page = page_of("policy-file")
    assert len(MODELS) > 15
    for model in MODELS:
        for key in entries.keys_of(model):
            assert f"({policy_file.anchor_of(model.__name__, key.name)})=\n" in page
    anchors = re.findall(r"^\((.+)\)=$", page, re.MULTILINE)
    assert len(anchors) == len(set(anchors))
    assert {"policy-ask-approve", "policy-requirement"} <= set(anchors)
    assert set(re.findall(r"\]\(#([\w-]+)\)", page)) <= set(anchors)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_a_key_has_a_meaning_an_example_and_codes(model: type[BaseModel]) -> None:
    for key in entries.keys_of(model):
        assert 1 <= len(re.findall(r"[.!?…](?:\s|$)", key.meaning)) <= 3, key
        assert key.example, key
        assert key.errors, key
        assert set(key.errors) <= CODES, key


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_an_example_of_a_key_is_read(model: type[BaseModel]) -> None:
    if model.__name__ == "Then":
        return  # each of its keys is alone
    keys = list(entries.keys_of(model))
    required = {
        name: value
        for key in keys
        if key.default == "required"
        for name, value in yaml.safe_load(key.example).items()
    }
    for key in keys:
        example = yaml.safe_load(key.example)
        assert key.name in example
        alone = example if len(example) > 1 else {**required, **example}
        model.model_validate({**required, **alone})


# ---- log, audit, metrics -------------------------------------------------------------------------


def test_every_log_action_is_on_the_page_with_its_levels() -> None:
    page = page_of("log-actions")
    levels = log_actions.levels_of()
    assert set(ACTIONS) == set(levels)
    for name, action in ACTIONS.items():
        assert f"## `{name}`\n" in page
        assert is_sentence(action.meaning), name
        assert is_sentence(action.remedy), name
    assert levels["card_failed"] == ["debug", "warning"]


def test_every_act_of_the_audit_is_on_the_page_with_its_fields() -> None:
    page = page_of("audit-entries")
    texts, fields = sources.member_texts(Act), audit_entries.fields_of()
    for act in Act:
        assert f"## `{act}`\n" in page
        assert is_sentence(texts[act.name]), act
    assert audit_entries.unread() == []
    assert {act for act, names in fields.items() if not names} == {Act.HANDED_OVER, Act.ALERT_SEEN}
    assert segment_row("T1", behind=1, at_ms=1)["detail"] == '{"upto_seq":1}'
    assert fields[Act.BROKE_GLASS] == ["digest", "rule", "policy", "reasons"]


async def test_entries_have_the_fields_of_the_page() -> None:
    """The fields are read from the code; here is an entry that was really made."""
    made = request_entry(an_approval())
    assert set(made.detail) <= set(audit_entries.fields_of()[Act.REQUESTED])


def test_every_metric_is_on_the_page_and_says_when_to_act() -> None:
    page = page_of("metrics")
    shown = set(re.findall(r"^# TYPE (\w+) ", Metrics().text().decode(), re.MULTILINE))
    by_name = {declared.name: declared for declared in metrics.metrics()}
    assert {name for name in shown if not name.endswith("_created")} == set(by_name)
    for name, metric in by_name.items():
        assert f"| `{name}` | {metric.kind} |" in page
        assert len(re.findall(r"[.](?:\s|$)", metric.help)) == 2, name


def is_sentence(text: str) -> bool:
    return text[:1].isupper() | (text[:1] in "`*") and text.endswith((".", "`."))


# ---- errors --------------------------------------------------------------------------------------


def test_every_policy_code_is_on_the_page() -> None:
    page = page_of("errors")
    assert list(policy_codes.CODES) == list(get_args(Code))
    for code, about in policy_codes.CODES.items():
        assert f"(policy-error-{code.replace('_', '-')})=\n### `{code}`\n" in page
        assert is_sentence(about.meaning), code


@pytest.mark.parametrize("code", policy_codes.CODES)
def test_the_example_of_a_code_has_this_error(code: Code) -> None:
    example = policy_codes.CODES[code].example
    if code == "not_yaml":
        text = example
    elif code == "too_big":
        text = " " * 300_000
    else:
        text = policy_codes.BASE
        for part in example.splitlines():
            name = part.partition(":")[0]
            text = re.sub(rf"^{name}:.*$", "", text, flags=re.MULTILINE) + part + "\n"
    world = PolicyWorld(tools=(DEPLOY,), agents=frozenset({"clerk"}))
    if code in policy_codes.BY_SLACK:
        check(text.encode(), world)  # raises if there is an error
        return
    with pytest.raises(PolicyError) as caught:
        check(text.encode(), world)
    assert {problem.code for problem in caught.value.problems} == {code}


DEPLOY = ToolFacts(
    name="deploy",
    tags=("change",),
    risk="high",
    gate="approval",
    schema={
        "type": "object",
        "properties": {
            "environment": {"type": "string"},
            "items": {"type": "array", "items": {"type": "string"}},
        },
    },
)


def test_every_refusal_and_error_class_is_on_the_page() -> None:
    page = page_of("errors")
    for refusal in RefusalCode:
        assert f"| `{refusal}` | *{refusal.words}* |" in page
    for base in (AgentError, BotError, StorageError):
        for error in errors.classes(base):
            assert f"| `{error.__name__}` |" in page
            assert is_sentence(errors.meaning_of(error)), error
    offered = {*core_errors.__all__, *graph.__all__, *legacy.__all__}
    names = {name for name in offered if name.endswith("Error")}
    listed = {kind.__name__ for kind in errors.classes(AgentError)}
    assert names - listed == {"ArgumentError", "InterruptAndRerunError", "ProcessExitError"}


# ---- limits, HTTP, Slack, cases ------------------------------------------------------------------


def test_every_limit_is_on_the_page_with_its_value() -> None:
    page = page_of("limits")
    every_limit = list(limits.limits())
    assert len(every_limit) > 40
    assert limits.grouped() == len(every_limit)
    for limit in every_limit:
        assert f"| {limit.meaning} | {limit.value} |" in page
        assert is_sentence(limit.meaning), limit
    values = {limit.place: limit.value for limit in every_limit}
    assert values["bot.leases.LEASE"] == "15 seconds"
    assert values["bot.policy.parser.source.MAX_BYTES"] == "262,144 bytes"
    assert values["bot.records.approval.CLAIM_MS"] == "`30m`"


def test_every_route_is_on_the_page() -> None:
    page = page_of("http")
    assert set(http.routes()) == set(http.TEXTS)
    for route in http.routes():
        assert f"## `{route}`" in page


def test_every_word_of_the_command_is_on_the_page() -> None:
    page = page_of("slack-commands")
    for word, work in WORDS.items():
        usage = slack_commands.usage_of(work)
        assert f"`{word}" in usage, word
        assert f"| {usage} | {slack_commands.meaning_of(work)} |" in page
        assert is_sentence(slack_commands.meaning_of(work)), word


def test_every_scope_and_event_has_a_reason_and_a_user() -> None:
    page = page_of("slack-scopes")
    manifest = read_manifest(manifest_text())
    assert set(SCOPE_REASONS) == set(bot_scopes(manifest))
    assert set(EVENT_REASONS) == set(bot_events(manifest))
    for name, reason in {**SCOPE_REASONS, **EVENT_REASONS}.items():
        assert f"| `{name}` | {reason} |" in page
        assert is_sentence(reason), name


def test_every_key_of_a_case_is_on_the_page() -> None:
    page = page_of("policy-cases")
    case_models = policy_cases.all_models()
    assert case_schema.EventEntry in case_models
    for model in case_models:
        for key in entries.keys_of(model):
            assert is_sentence(key.meaning), (model, key.name)
            assert f"| `{key.name}` |" in page
    anchors = re.findall(r"^\((.+)\)=$", page, re.MULTILINE)
    assert set(re.findall(r"\]\(#([\w-]+)\)", page)) <= set(anchors)
