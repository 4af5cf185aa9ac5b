"""Slack's Block Kit limits: the last value that is taken, and the first that is refused."""

from __future__ import annotations

from typing import Any

import pytest

from slack_sandbox.blockkit.rules import (
    MESSAGE_BLOCKS,
    VIEW_BLOCKS,
    message_errors,
    text_characters,
    view_errors,
)

Made = dict[str, Any]


def plain(text: str = "x", **more: Any) -> Made:
    return {"type": "plain_text", "text": text, **more}


def mrkdwn(text: str = "x") -> Made:
    return {"type": "mrkdwn", "text": text}


def section(**fields: Any) -> Made:
    return {"type": "section", **(fields or {"text": mrkdwn()})}


def button(**fields: Any) -> Made:
    return {"type": "button", "text": plain(), "action_id": "a", **fields}


def option(value: str = "v", **fields: Any) -> Made:
    return {"text": plain(), "value": value, **fields}


def options(count: int) -> list[Made]:
    return [option(str(index)) for index in range(count)]


def field(element: Made, **fields: Any) -> Made:
    return {"type": "input", "label": plain(), "element": element, **fields}


def actions(*elements: Made) -> Made:
    return {"type": "actions", "elements": list(elements)}


def rich(*elements: Made) -> Made:
    return {"type": "rich_text", "elements": list(elements)}


def part(kind: str, *elements: Made, **fields: Any) -> Made:
    return {"type": f"rich_text_{kind}", "elements": list(elements), **fields}


def word(text: str = "x", **fields: Any) -> Made:
    return {"type": "text", "text": text, **fields}


def select(**fields: Any) -> Made:
    return {"type": "static_select", "action_id": "a", **fields}


def table(rows: int = 1, cells: int = 1, text: str = "x", kind: str = "table") -> Made:
    row = [{"type": "raw_text", "text": text}] * cells
    more = {"caption": "x"} if kind == "data_table" else {}
    return {"type": kind, "rows": [row] * rows, **more}


def card(**fields: Any) -> Made:
    return {"type": "card", **fields}


def container(*children: Made, **fields: Any) -> Made:
    return {"type": "container", "child_blocks": list(children), **fields}


def modal(*blocks: Made, **fields: Any) -> Made:
    made = {"type": "modal", "title": plain(), "submit": plain(), "blocks": list(blocks)}
    return {name: value for name, value in {**made, **fields}.items() if value is not None}


def home(*blocks: Made, **fields: Any) -> Made:
    return {"type": "home", "blocks": list(blocks), **fields}


def in_message(*blocks: Made) -> list[str]:
    return message_errors({"text": "x", "blocks": list(blocks)})


DIVIDER = {"type": "divider"}
ALERT = {"type": "alert", "text": mrkdwn()}
IMAGE = {"type": "image", "image_url": "https://a.example/b.png", "alt_text": "b"}
NUMBER = {"type": "number_input", "is_decimal_allowed": True, "action_id": "a"}
TEXT = {"type": "plain_text_input", "action_id": "a"}
TASK = {"type": "task_card", "task_id": "t", "title": "x"}
VIDEO = {
    "type": "video",
    "title": plain(),
    "video_url": "https://v.example",
    "thumbnail_url": "https://v.example/t",
    "alt_text": "x",
}
CONFIRM = {"title": plain(), "text": mrkdwn(), "confirm": plain(), "deny": plain()}

GOOD_BLOCKS = [
    section(text=mrkdwn("x" * 3_000)),
    section(text=mrkdwn("<@U1> &amp; <!date^1^{date}|x>" + "&amp;" * 500)),
    section(fields=[plain()] * 10),
    section(fields=[mrkdwn("x" * 2_000)]),
    section(text=plain(), accessory=button(), expand=True, block_id="b" * 255),
    section(text=plain(), accessory={"type": "multi_users_select", "initial_users": ["U1"]}),
    {"type": "header", "text": plain("x" * 150, emoji=False)},
    DIVIDER,
    {"type": "context", "elements": [plain(), mrkdwn(), IMAGE]},
    actions(*[button(action_id=f"a{index}") for index in range(25)]),
    actions(button(value="x" * 2_000, style="primary", accessibility_label="x" * 75)),
    actions(
        button(url="https://a.example", confirm=CONFIRM),
        select(options=options(100), action_id="b"),
    ),
    actions(select(option_groups=[{"label": plain(), "options": options(2)}])),
    actions(select(options=options(2), initial_option=option("1"))),
    actions({"type": "overflow", "options": [*options(4), option(url="https://a.example")]}),
    actions({"type": "datepicker", "initial_date": "2026-12-01"}),
    actions({"type": "datetimepicker", "initial_date_time": 1_800_000_000}),
    actions({"type": "timepicker", "initial_time": "09:30"}),
    actions({"type": "conversations_select", "filter": {"include": ["im"]}}),
    IMAGE,
    field(TEXT),
    field({**TEXT, "initial_value": "x" * 3_000, "min_length": 0, "max_length": 3_000}),
    field({"type": "checkboxes", "options": [option(str(n), text=mrkdwn()) for n in range(10)]}),
    actions({"type": "workflow_button", "text": plain(), "workflow": {"trigger": {"url": "x"}}}),
    actions({"type": "multi_users_select", "action_id": "m"}),
    actions({"type": "rich_text_input", "action_id": "r"}),
    rich(part("section", word(style={"highlight": True, "bold": True}))),
    rich(part("section", word(style={"bold": True}), {"type": "user", "user_id": "U1"})),
    rich(part("list", part("section", word()), style="ordered", indent=2, offset=1, border=0)),
    rich(part("preformatted", word("<!channel>"), border=0), part("quote", word())),
    rich(part("section", {"type": "link", "url": "https://a.example", "text": "a"})),
    rich(part("section", {"type": "broadcast", "range": "here"}, {"type": "emoji", "name": "a"})),
    {"type": "markdown", "text": "x" * 12_000},
    table(100, 20),
    table(kind="data_table"),
    VIDEO,
    {"type": "file", "external_id": "x", "source": "remote"},
    card(title=mrkdwn(), actions=[button()]),
    {"type": "carousel", "elements": [card(body=plain())] * 10},
    container(section(), title=plain()),
    {
        "type": "context_actions",
        "elements": [{"type": "icon_button", "icon": "trash", "text": plain()}],
    },
    {**TASK, "status": "complete", "details": rich(part("section", word()))},
    {"type": "plan", "title": "x", "tasks": [TASK]},
    {"type": "data_visualization", "title": "x", "chart": {}},
]


@pytest.mark.parametrize("block", GOOD_BLOCKS, ids=lambda block: str(block["type"]))
def test_taken_in_a_message(block: Made) -> None:
    assert in_message(block) == []


BAD_BLOCKS: list[tuple[Any, str]] = [
    ("text", "must be an object"),
    (section(text="x"), "must be an object"),
    (section(text=plain(), block_id=5), "must be a string"),
    ({}, "unsupported type: None"),
    ({"type": "data"}, "unsupported type: data"),
    ({"type": ["section"]}, "unsupported type"),
    (section(block_id="x"), "needs text or fields"),
    (section(text=mrkdwn("")), "more than 0 characters"),
    (section(text=mrkdwn("x" * 3_001)), "less than 3001 characters"),
    (section(text=mrkdwn("x" * 2_996 + "&")), "less than 3001 characters"),
    (section(text=plain("x" * 2_997 + "<")), "less than 3001 characters"),
    (section(text={"type": "mrkdwn", "text": 5}), "must be a string"),
    (section(text={"type": "markdown", "text": "x"}), "unsupported type: markdown"),
    (section(text=plain(verbatim=True)), "additional property: verbatim"),
    (section(fields=[plain()] * 11), "no more than 10 items"),
    (section(fields=[]), "no fewer than 1 items"),
    (section(fields=[mrkdwn("x" * 2_001)]), "less than 2001"),
    (section(text=plain(), accessory=TEXT), "unsupported type: plain_text_input"),
    (section(text=plain(), block_id="b" * 256), "less than 256"),
    (section(text=plain(), color="red"), "invalid additional property: color"),
    ({"type": "header", "text": mrkdwn()}, "unsupported type: mrkdwn"),
    ({"type": "header", "text": plain("x" * 151)}, "less than 151"),
    ({"type": "context", "elements": [plain()] * 11}, "no more than 10"),
    ({"type": "context", "elements": [button()]}, "unsupported type: button"),
    (actions(), "no fewer than 1"),
    (actions(*[button(action_id=f"a{index}") for index in range(26)]), "no more than 25"),
    (actions(button(), button()), "action_id a already exists"),
    (actions(TEXT), "unsupported type: plain_text_input"),
    (actions(button(text=mrkdwn())), "unsupported type: mrkdwn"),
    (actions(button(text=plain("x" * 76))), "less than 76"),
    (actions(button(value="x" * 2_001)), "less than 2001"),
    (actions(button(style="default")), "must be one of: primary, danger"),
    (actions(button(accessibility_label="x" * 76)), "less than 76"),
    (actions(button(action_id="a" * 256)), "less than 256"),
    (actions(button(url="x" * 3_001)), "less than 3001"),
    (actions(button(confirm={**CONFIRM, "title": plain("x" * 101)})), "less than 101"),
    (actions(button(confirm={**CONFIRM, "style": "loud"})), "must be one of: primary, danger"),
    (actions(select(options=[])), "no fewer than 1"),
    (actions(select(options=options(101))), "no more than 100"),
    (actions(select(options=[option("v" * 151)])), "less than 151"),
    (actions(select(options=[option(text=plain("x" * 76))])), "less than 76"),
    (actions(select(options=[option(text=mrkdwn())])), "unsupported type: mrkdwn"),
    (actions(select(options=[option(url="https://a.example")])), "additional property: url"),
    (actions(select()), "needs either options or option_groups"),
    (actions(select(options=options(1), option_groups=[])), "no fewer than 1"),
    (
        actions(
            select(options=options(1), option_groups=[{"label": plain(), "options": options(1)}])
        ),
        "needs either options or option_groups",
    ),
    (actions(select(options=options(2), initial_option=option("9"))), "was not found"),
    (actions({"type": "overflow", "options": options(6)}), "no more than 5"),
    (actions({"type": "checkboxes", "options": options(11)}), "no more than 10"),
    (actions({"type": "radio_buttons", "options": []}), "no fewer than 1"),
    (actions({"type": "datepicker", "initial_date": "1.12.2026"}), "invalid format"),
    (actions({"type": "datetimepicker", "initial_date_time": 5}), "must be between"),
    (actions({"type": "datetimepicker", "initial_date_time": "5"}), "must be an integer"),
    (field(NUMBER), "unsupported type: number_input"),
    (field(button()), "unsupported type: button"),
    (field(TEXT, label=mrkdwn()), "unsupported type: mrkdwn"),
    (field(TEXT, label=plain("x" * 2_001)), "less than 2001"),
    (field(TEXT, hint=plain("x" * 2_001)), "less than 2001"),
    (field(TEXT, optional="yes"), "must be a boolean"),
    (field({**TEXT, "initial_value": "x" * 3_001}), "less than 3001"),
    (field({**TEXT, "max_length": 3_001}), "must be between 1 and 3000"),
    (field({**TEXT, "min_length": 5, "max_length": 4}), "min_length is above max_length"),
    (field({**TEXT, "placeholder": plain("x" * 151)}), "less than 151"),
    (
        field(
            {"type": "multi_static_select", "options": options(2), "initial_options": [option("9")]}
        ),
        "was not found",
    ),
    ({"type": "image", "alt_text": "x"}, "either image_url or slack_file"),
    ({**IMAGE, "slack_file": {"id": "F1"}}, "either image_url or slack_file"),
    ({**IMAGE, "alt_text": "x" * 2_001}, "less than 2001"),
    (section(text=plain(), accessory={"type": "image", "alt_text": "x"}), "either image_url"),
    (rich(), "no fewer than 1"),
    (rich(part("section", word(""))), "more than 0 characters"),
    (rich(part("section", word("x" * 13_001))), "less than 13001"),
    (rich(part("section", word("\x07"))), "no control characters"),
    (section(text=mrkdwn("a\x00b")), "no control characters"),
    (actions(button(url="javascript:alert(1)")), "invalid format"),
    (actions(button(url="")), "at least 1 characters"),
    ({"type": "image", "alt_text": "x", "image_url": "cat.png"}, "invalid format"),
    (field({"type": "timepicker", "initial_time": "29:59"}), "invalid format"),
    (field({"type": "datepicker", "initial_date": "2026-02-31"}), "no day of the calendar"),
    (actions(select(options=[option(), option()])), "option values must be different"),
    ({"type": "table", "rows": [table()["rows"][0], table(cells=2)["rows"][0]]}, "same number"),
    (rich(part("section", {"type": "mrkdwn", "text": "x"})), "unsupported type: mrkdwn"),
    (rich(part("preformatted", {"type": "user", "user_id": "U1"})), "unsupported type: user"),
    (rich(part("list", part("section", word()), style="dots")), "must be one of"),
    (rich(part("section", {"type": "user", "user_id": "rosa"})), "invalid format"),
    (rich(word()), "unsupported type: text"),
    (table(101), "no more than 100"),
    (table(1, 21), "no more than 20"),
    (table(2, 1, "x" * 5_001), "more than 10000 characters"),
    ({"type": "table", "rows": []}, "no fewer than 1"),
    (
        {"type": "data_table", "caption": "x", "rows": [[{"type": "raw_number", "value": True}]]},
        "must be a number",
    ),
    (card(), "card needs"),
    (card(body=plain("x" * 201)), "less than 201"),
    ({"type": "carousel", "elements": []}, "no fewer than 1"),
    (container(container(section())), "unsupported type: container"),
    (container(*[section()] * 11), "no more than 10"),
    (ALERT, "unsupported type: alert"),
    ({**TASK, "status": "done"}, "must be one of"),
    ({"type": "markdown", "text": "x" * 12_001}, "less than 12001"),
    ({"type": "context_actions", "elements": [button()]}, "unsupported type: button"),
]


@pytest.mark.parametrize(("block", "fault"), BAD_BLOCKS, ids=lambda item: str(item)[:60])
def test_refused_in_a_message(block: Any, fault: str) -> None:
    [error] = in_message(block)
    assert fault in error
    assert "[json-pointer:/blocks/0" in error


@pytest.mark.parametrize(
    ("payload", "fault"),
    [
        ({}, "no_text [json-pointer:/text]"),
        ({"text": "", "blocks": []}, "no_text"),
        ({"text": 5}, "must be a string"),
        ({"text": "x", "blocks": [DIVIDER] * (MESSAGE_BLOCKS + 1)}, "no more than 50 items"),
        ({"text": "x", "blocks": {"type": "divider"}}, "must be an array"),
        ({"text": "x", "metadata": {"event_type": "x"}}, "missing required field: event_payload"),
        ({"text": "x", "metadata": "x"}, "must be an object"),
        ({"blocks": [section(text=plain(), block_id="b")] * 2}, "block_id b already exists"),
        ({"blocks": [table(), table(kind="data_table")]}, "only_one_table_allowed"),
        ({"blocks": [table(), container(table())]}, "only_one_table_allowed"),
        ({"blocks": [{"type": "markdown", "text": "x" * 6_001}] * 2}, "more than 12000"),
        (
            {"blocks": [{"type": "data_visualization", "title": "x", "chart": {}}] * 3},
            "no more than 2",
        ),
    ],
)
def test_refused_as_a_whole(payload: Made, fault: str) -> None:
    [error] = message_errors(payload)
    assert fault in error


def test_message_of_fifty_blocks_or_of_text_alone_is_taken() -> None:
    assert message_errors({"blocks": [DIVIDER] * MESSAGE_BLOCKS}) == []
    metadata = {"event_type": "x", "event_payload": {"id": "y"}}
    assert message_errors({"text": "x", "metadata": metadata}) == []
    assert message_errors({"text": "x", "metadata": {}}) == []


GOOD_VIEWS = [
    modal(),
    modal(field(NUMBER), ALERT, section()),
    modal(field({**NUMBER, "min_value": "-1", "max_value": "2.5", "initial_value": "1"})),
    modal(field({"type": "file_input", "max_files": 1})),
    modal(section(), submit=None, close=plain("x" * 24), private_metadata="x" * 3_000),
    modal(
        field(TEXT), actions(button()), callback_id="c" * 255, external_id="", notify_on_close=True
    ),
    modal(field({"type": "rich_text_input", "action_id": "a"})),
    modal(*[DIVIDER] * VIEW_BLOCKS),
    modal(field({**TEXT, "focus_on_load": True})),
    home(),
    home(field(TEXT), container(section()), private_metadata="x"),
]


@pytest.mark.parametrize("view", GOOD_VIEWS)
def test_taken_as_a_view(view: Made) -> None:
    assert view_errors(view) == []


@pytest.mark.parametrize(
    ("view", "fault"),
    [
        ({"blocks": []}, "unsupported type: None"),
        (modal(type="message"), "unsupported type: message"),
        (modal(title=None), "missing required field: title"),
        (modal(title=mrkdwn()), "unsupported type: mrkdwn"),
        (modal(title=plain("x" * 25)), "less than 25"),
        (modal(submit=plain("x" * 25)), "less than 25"),
        (modal(close=plain("x" * 25)), "less than 25"),
        (modal(private_metadata="x" * 3_001), "less than 3001"),
        (modal(callback_id="c" * 256), "less than 256"),
        (modal(blocks=None), "missing required field: blocks"),
        (modal(*[DIVIDER] * (VIEW_BLOCKS + 1)), "no more than 100"),
        (modal(field(TEXT), submit=None), "missing required field: submit"),
        (modal(section(text=plain(), block_id="b"), field(TEXT, block_id="b")), "already exists"),
        (modal(*[field({**TEXT, "focus_on_load": True})] * 2), "only one element can have focus"),
        (modal({"type": "markdown", "text": "x"}), "unsupported type: markdown"),
        (modal(table()), "unsupported type: table"),
        (modal(container(section())), "unsupported type: container"),
        (modal({**ALERT, "text": plain("x" * 201)}), "less than 201"),
        (modal({**ALERT, "level": "loud"}), "must be one of"),
        (modal(field({**NUMBER, "initial_value": 5})), "must be a string"),
        (modal(field({**NUMBER, "initial_value": "1e5"})), "invalid format"),
        (modal(field({**NUMBER, "min_value": "3", "max_value": "2"})), "min_value is above"),
        (modal(field({"type": "number_input"})), "missing required field: is_decimal_allowed"),
        (modal(field({"type": "file_input"}, dispatch_action=True)), "cannot dispatch"),
        (modal(*[rich(part("preformatted", word("é" * 2_900)))] * 50), "view_too_large"),
        (home(submit=plain()), "invalid additional property: submit"),
        (home(title=plain()), "invalid additional property: title"),
        (home(field(NUMBER)), "unsupported type: number_input"),
        (home(table()), "unsupported type: table"),
    ],
)
def test_refused_as_a_view(view: Made, fault: str) -> None:
    [error] = view_errors(view)
    assert fault in error


def test_text_is_counted_after_escaping() -> None:
    blocks = [
        section(text=mrkdwn("a&b &amp; <@U1>")),
        section(fields=[plain("<&>")]),
        actions(button(text=plain("four"))),
        rich(part("preformatted", word("&lt;"))),
        {"type": "markdown", "text": "*x*"},
        table(1, 2, "abc"),
    ]
    assert text_characters({"blocks": blocks}) == 19 + 13 + 4 + 8 + 3 + 6
    assert text_characters({"text": "abc"}) == 0
