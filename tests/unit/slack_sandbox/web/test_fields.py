"""Fields of cards and modals: state, options, what Slack sends for each kind."""

from __future__ import annotations

from typing import Any

import pytest

from slack_sandbox import ADA, OPS, RefusedError, Sandbox
from slack_sandbox.people.interactions import field_values
from slack_sandbox.workspace.blocks import (
    chosen,
    find_element,
    missing_inputs,
    named_blocks,
    state_of,
)
from tests.unit.slack_sandbox.conftest import Slack, a_modal, an_input


def an_option(value: str) -> dict[str, Any]:
    return {"text": {"type": "plain_text", "text": value.title()}, "value": value}


OPTIONS = [an_option("one"), an_option("two")]
SELECT = {"type": "static_select", "action_id": "pick", "options": OPTIONS}
BOXES = {"type": "checkboxes", "action_id": "pick", "options": OPTIONS}
DATE = {"type": "datepicker", "action_id": "pick"}
PERSON = {"type": "users_select", "action_id": "pick"}
MOMENT = {"type": "datetimepicker", "action_id": "pick"}


@pytest.mark.parametrize(
    ("element", "wanted", "sent"),
    [
        (SELECT, "two", OPTIONS[1]),
        (SELECT, OPTIONS[0], OPTIONS[0]),
        (SELECT, None, None),
        (BOXES, ["one", "two"], OPTIONS),
        (BOXES, None, []),
        (DATE, "2026-12-01", "2026-12-01"),
        (PERSON, ADA, ADA),
        (MOMENT, 1_800_000_000, 1_800_000_000),
    ],
)
def test_choice_as_slack_sends_it(element: dict[str, Any], wanted: object, sent: object) -> None:
    assert chosen(element, wanted) == sent


@pytest.mark.parametrize(("element", "wanted"), [(SELECT, "three"), (BOXES, ["one", "three"])])
def test_choice_must_be_among_the_options(element: dict[str, Any], wanted: object) -> None:
    with pytest.raises(RefusedError, match="invalid_option"):
        chosen(element, wanted)


def test_options_in_groups() -> None:
    group = {"label": {"type": "plain_text", "text": "Group"}, "options": OPTIONS}
    element = {"type": "static_select", "action_id": "pick", "option_groups": [group]}
    assert chosen(element, "one") == OPTIONS[0]


@pytest.mark.parametrize(
    ("element", "value"),
    [
        ({**SELECT, "initial_option": OPTIONS[1]}, {"selected_option": OPTIONS[1]}),
        (SELECT, {"selected_option": None}),
        ({**BOXES, "initial_options": OPTIONS[:1]}, {"selected_options": OPTIONS[:1]}),
        (BOXES, {"selected_options": []}),
        (DATE, {"selected_date": None}),
    ],
)
def test_state_starts_with_first_values(element: dict[str, Any], value: dict[str, Any]) -> None:
    block = {"type": "input", "block_id": "b", "element": element}
    assert state_of([block], {}) == {"b": {"pick": {"type": element["type"], **value}}}


def test_empty_text_is_null_and_missing_where_required() -> None:
    blocks = [an_input("version"), an_input("note", optional=True)]
    given = {"version": {"input": {"type": "plain_text_input", "value": ""}}}
    state = state_of(blocks, given)
    assert state["version"]["input"]["value"] is None
    assert missing_inputs(blocks, state) == ["version"]


def test_short_forms_and_full_shape_are_the_same() -> None:
    blocks = [an_input("version")]
    full = {"version": {"input": {"type": "plain_text_input", "value": "1"}}}
    assert field_values(blocks, {"version": "1"}) == full
    assert field_values(blocks, full) == full
    with pytest.raises(RefusedError, match="no_such_field"):
        field_values(blocks, {"wonder": "1"})


def test_what_has_no_id_gets_one() -> None:
    count = iter(range(9))
    button = {"type": "button", "text": {"type": "plain_text", "text": "Go"}}
    given: list[dict[str, Any]] = [
        {"type": "actions", "elements": [button]},
        {"type": "section", "accessory": dict(button)},
    ]
    blocks = named_blocks(given, lambda prefix: f"{prefix}{next(count)}")
    assert [block["block_id"] for block in blocks] == ["b0", "b2"]
    assert find_element(blocks, "a3") == ("b2", {**button, "action_id": "a3"})
    assert "action_id" not in button


async def test_select_in_a_modal_is_kept(slack: Slack, sandbox: Sandbox) -> None:
    actions = {"type": "actions", "block_id": "choice", "elements": [SELECT]}
    trigger_id = sandbox.workspace.triggers.issue(ADA)
    blocks = [actions, an_input("version")]
    view = (await slack.ok("views.open", trigger_id=trigger_id, view=a_modal(blocks=blocks)))[
        "view"
    ]
    with pytest.raises(RefusedError, match="app_not_connected"):
        await sandbox.click_in_view(ADA, view, "pick", selected_option="two")
    (shown,) = sandbox.open_views(ADA)
    assert shown["state"]["values"]["choice"]["pick"]["selected_option"] == OPTIONS[1]


async def test_select_on_a_card_reports_its_option(slack: Slack, sandbox: Sandbox) -> None:
    overflow = {"type": "overflow", "action_id": "more", "options": OPTIONS}
    text = {"type": "mrkdwn", "text": "x"}
    blocks = [{"type": "section", "text": text, "accessory": overflow}]
    ts = (await slack.ok("chat.postMessage", channel=OPS, text="x", blocks=blocks))["ts"]
    payload = sandbox.payload_of_click(ADA, OPS, ts, "more", selected_option="one")
    assert payload["actions"][0]["selected_option"] == OPTIONS[0]
    assert payload["state"]["values"] == {}


def test_text_field_has_names_of_emoji() -> None:
    element = {"type": "plain_text_input", "action_id": "say", "initial_value": "launch 🚀"}
    blocks = [{"type": "input", "block_id": "b", "element": element}]
    assert state_of(blocks, {})["b"]["say"]["value"] == "launch :rocket:"
    assert chosen(element, "👋🏽 to bob@acme.example <b>") == (
        ":wave::skin-tone-4: to bob@acme.example <b>"
    )
