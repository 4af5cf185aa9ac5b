"""Slack's Block Kit rules: find each fault that Slack would refuse.

This module works on plain dicts, and does not depend on the bot. A limit that Slack does not
publish (the sum of text in a message) is a constant; the caller compares it with `text_characters`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from slack_sandbox.blockkit.checks import (
    Check,
    any_object,
    choice,
    fault,
    flag,
    integer,
    items,
    literal_length,
    mrkdwn_length,
    number,
    shape,
    string,
    text,
    typed,
)
from slack_sandbox.blockkit.elements import (
    ACTIONS,
    BUTTON,
    CONTEXT_ACTIONS,
    CONTEXT_ELEMENT,
    IMAGE,
    IMAGE_SOURCE,
    IMAGE_URL,
    INPUT,
    KIND,
    NAME,
    RICH_TEXT,
    SECTION,
    SUGGESTED,
    URL,
    elements,
    has_image,
)

MESSAGE_TEXT = 40_000
"""Maximum length of `text` in chat.postMessage, which cuts longer texts."""
UPDATE_TEXT = 4_000
"""Maximum length of `text` in chat.update; a longer text is msg_too_long."""
BLOCKS_TEXT = 13_000
"""Maximum length of the text in all blocks of a message; more is msg_blocks_too_long.

Slack does not publish it.
"""
MESSAGE_BLOCKS = 50
VIEW_BLOCKS = 100
VIEW_BYTES = 250_000
MARKDOWN_TEXT = 12_000


def _some_text(block: dict[str, Any], path: str) -> Iterator[str]:
    if "text" not in block and "fields" not in block:
        yield fault("needs text or fields", path)


def _unique_actions(block: dict[str, Any], path: str) -> Iterator[str]:
    seen: set[str] = set()
    for index, element in enumerate(block["elements"]):
        action_id = element.get("action_id")
        if action_id is not None and action_id in seen:
            yield fault(f"action_id {action_id} already exists", f"{path}/elements/{index}")
        seen.add(action_id)


def _plain_label_only(block: dict[str, Any], path: str) -> Iterator[str]:
    element = block["element"]
    if element["type"] == "file_input" and block.get("dispatch_action"):
        yield fault("file_input cannot dispatch actions", path)


def _small_table(block: dict[str, Any], path: str) -> Iterator[str]:
    if _text_in(block["rows"]) > 10_000:
        yield fault("table has more than 10000 characters", path)


def _even_rows(block: dict[str, Any], path: str) -> Iterator[str]:
    if len({len(row) for row in block["rows"]}) > 1:
        yield fault("all rows must have the same number of cells", path)


def _card_content(block: dict[str, Any], path: str) -> Iterator[str]:
    if not {"hero_image", "title", "actions", "body"} & block.keys():
        yield fault("card needs a hero_image, a title, a body or actions", path)


def _block(
    required: Mapping[str, Check], optional: Mapping[str, Check] | None = None, *rules: Any
) -> Check:
    return shape({"type": KIND, **required}, {"block_id": NAME, **(optional or {})}, *rules)


_CELL = typed(
    {
        "raw_text": shape({"type": KIND, "text": string(10_000, least=0)}),
        "raw_number": shape({"type": KIND, "value": number}, {"text": string(100)}),
        "rich_text": RICH_TEXT,
    }
)
_ROWS = items(items(_CELL, most=20), most=100)
_COLUMN = shape({}, {"align": choice("left", "center", "right"), "is_wrapped": flag})
_CARD = _block(
    {},
    {
        "hero_image": IMAGE,
        "icon": IMAGE,
        "title": text(150, mrkdwn=True),
        "subtitle": text(150, mrkdwn=True),
        "body": text(200, mrkdwn=True),
        "subtext": text(200, mrkdwn=True),
        "actions": items(typed({"button": BUTTON}), most=3),
    },
    _card_content,
)
_TASK = _block(
    {"task_id": NAME, "title": string(1_000)},
    {
        "status": choice("pending", "in_progress", "complete", "error"),
        "details": RICH_TEXT,
        "output": RICH_TEXT,
        "sources": items(any_object, least=0),
    },
)


def _everywhere(surface: str) -> dict[str, Check]:
    return {
        "section": _block(
            {},
            {
                "text": text(3_000, mrkdwn=True),
                "fields": items(text(2_000, mrkdwn=True), most=10),
                "accessory": elements(SECTION, surface),
                "expand": flag,
            },
            _some_text,
        ),
        "header": _block({"text": text(150)}, {"level": integer(1, 4)}),
        "divider": _block({}),
        "context": _block({"elements": items(CONTEXT_ELEMENT, most=10)}),
        "actions": _block(
            {"elements": items(elements(ACTIONS, surface), most=25)}, {}, _unique_actions
        ),
        "image": _block(
            {"alt_text": string(2_000)}, {**IMAGE_SOURCE, "title": text(2_000)}, has_image
        ),
        "input": _block(
            {"label": text(2_000), "element": elements(INPUT, surface)},
            {"hint": text(2_000), "optional": flag, "dispatch_action": flag},
            _plain_label_only,
        ),
        "rich_text": RICH_TEXT,
        "video": _block(
            {
                "title": text(200),
                "video_url": URL,
                "thumbnail_url": IMAGE_URL,
                "alt_text": string(2_000),
            },
            {
                "title_url": URL,
                "author_name": string(50),
                "description": text(200),
                "provider_icon_url": IMAGE_URL,
                "provider_name": NAME,
            },
        ),
    }


_LARGE = {
    "data_table": _block(
        {"caption": string(1_000), "rows": items(items(_CELL, most=20), most=200)},
        {"page_size": integer(1, 100), "row_header_column_index": integer(0, 19)},
        _even_rows,
    ),
}
_MESSAGE = {
    **_everywhere("message"),
    **_LARGE,
    "file": _block({"external_id": NAME, "source": choice("remote")}),
    "markdown": _block({"text": string(MARKDOWN_TEXT)}),
    "table": _block(
        {"rows": _ROWS}, {"column_settings": items(_COLUMN, most=20)}, _small_table, _even_rows
    ),
    "data_visualization": _block({"title": string(50), "chart": any_object}),
    "card": _CARD,
    "carousel": _block({"elements": items(typed({"card": _CARD}), most=10)}),
    "context_actions": _block(
        {"elements": items(elements(CONTEXT_ACTIONS, "message"), most=5)}, {}, _unique_actions
    ),
    "task_card": _TASK,
    "plan": _block({"title": string(1_000)}, {"tasks": items(_TASK, least=0)}),
}
_MODAL = {
    **_everywhere("modal"),
    "alert": _block(
        {"text": text(200, mrkdwn=True)},
        {"level": choice("default", "info", "warning", "error", "success")},
    ),
}
_HOME = {**_everywhere("home"), **_LARGE}


def _with_container(table: dict[str, Check]) -> Check:
    container = _block(
        {"child_blocks": items(typed(table), most=10)},
        {
            "title": text(150, mrkdwn=True),
            "subtitle": text(150, mrkdwn=True),
            "icon": IMAGE,
            "width": choice("narrow", "standard", "wide", "full"),
            "is_collapsible": flag,
            "default_collapsed": flag,
        },
    )
    return typed({**table, "container": container})


_BLOCKS = {
    "message": _with_container(_MESSAGE),
    "modal": typed(_MODAL),
    "home": _with_container(_HOME),
}
_PAYLOAD = shape(
    {"event_type": string(255), "event_payload": any_object}, {"entities": items(any_object)}
)
_VIEW_FIELDS = {
    "type": choice("modal", "home"),
    "blocks": items(any_object, least=0, most=VIEW_BLOCKS),
}
_VIEW_OPTIONS = {
    "callback_id": string(255, least=0),
    "external_id": string(255, least=0),
    "private_metadata": string(3_000, least=0),
}
_VIEWS = {
    "modal": shape(
        {**_VIEW_FIELDS, "title": text(24)},
        {
            **_VIEW_OPTIONS,
            "submit": text(24),
            "close": text(24),
            "clear_on_close": flag,
            "notify_on_close": flag,
            "submit_disabled": flag,
        },
    ),
    "home": shape(_VIEW_FIELDS, _VIEW_OPTIONS),
}


def message_errors(payload: Mapping[str, Any]) -> list[str]:
    """Return all faults of a message's `text`, `blocks` and `metadata`.

    Other keys are ignored. The caller checks the length of `text`, because it depends on the
    method.

    Args:
        payload: Arguments of chat.postMessage, chat.update or a response_url.

    Returns:
        One sentence for each fault; empty if Slack would accept the message.

    Source:
        https://docs.slack.dev/reference/block-kit
    """
    faults: list[str] = []
    words, blocks = payload.get("text"), payload.get("blocks")
    if words is not None and not isinstance(words, str):
        faults.append(fault("must be a string", "/text"))
    if not words and not blocks:
        faults.append(fault("no_text", "/text"))
    if payload.get("metadata"):
        faults.extend(_PAYLOAD(payload["metadata"], "/metadata"))
    if blocks is not None:
        faults.extend(items(_BLOCKS["message"], least=0, most=MESSAGE_BLOCKS)(blocks, "/blocks"))
    return faults or list(_across_message(blocks or []))


def view_errors(view: Mapping[str, Any]) -> list[str]:
    """Return all faults of a view, a modal or a Home tab.

    Args:
        view: The view as given to views.open, views.push, views.update or views.publish.

    Returns:
        One sentence for each fault; empty if Slack would accept the view.

    Source:
        https://docs.slack.dev/reference/views
    """
    kind = view.get("type")
    if kind not in _VIEWS:
        return [fault(f"unsupported type: {kind}", "/type")]
    faults = list(_VIEWS[kind](dict(view), ""))
    if faults:
        return faults
    faults = list(items(_BLOCKS[kind], least=0)(view["blocks"], "/blocks"))
    return faults or list(_across_view(view))


def option_errors(answer: object) -> list[str]:
    """Return all faults of an answer to `block_suggestion`: options, or groups of them.

    Source:
        https://docs.slack.dev/reference/block-kit/block-elements/select-menu-element
    """
    faults = list(shape({}, SUGGESTED)(answer, ""))
    if isinstance(answer, dict) and len(answer) != 1:
        faults.append(fault("needs options or option_groups", ""))
    return faults


def text_characters(payload: Mapping[str, Any]) -> int:
    """Count the characters of text in all blocks of a message or view, after escaping."""
    return _text_in(payload.get("blocks") or [])


def _text_in(value: object) -> int:
    if isinstance(value, list):
        return sum(_text_in(item) for item in value)
    if not isinstance(value, dict):
        return 0
    count = sum(_text_in(item) for name, item in value.items() if name != "text")
    words = value.get("text")
    if not isinstance(words, str):
        return count + _text_in(words)
    marked = value.get("type") in {"mrkdwn", "markdown"}
    return count + (mrkdwn_length(words) if marked else literal_length(words))


def _across_message(blocks: list[dict[str, Any]]) -> Iterator[str]:
    yield from _across(blocks)
    flat = list(_with_children(blocks))
    tables = [block for block in flat if block["type"] in {"table", "data_table"}]
    if len(tables) > 1:
        yield fault("only_one_table_allowed", "/blocks")
    if sum(block["type"] == "data_visualization" for block in flat) > 2:
        yield fault("no more than 2 data_visualization blocks allowed", "/blocks")
    if sum(len(block["text"]) for block in flat if block["type"] == "markdown") > MARKDOWN_TEXT:
        yield fault(f"markdown blocks have more than {MARKDOWN_TEXT} characters", "/blocks")


def _across_view(view: Mapping[str, Any]) -> Iterator[str]:
    blocks = view["blocks"]
    yield from _across(blocks)
    has_input = any(block["type"] == "input" for block in blocks)
    if view["type"] == "modal" and has_input and "submit" not in view:
        yield fault("missing required field: submit", "")
    if len(json.dumps(view, ensure_ascii=False).encode(errors="surrogatepass")) > VIEW_BYTES:
        yield fault("view_too_large", "")


def _across(blocks: list[dict[str, Any]]) -> Iterator[str]:
    seen: set[str] = set()
    focused = 0
    for index, block in enumerate(_with_children(blocks)):
        block_id = block.get("block_id")
        if block_id is not None and block_id in seen:
            yield fault(f"block_id {block_id} already exists", f"/blocks/{index}")
        seen.add(block_id or "")
        focused += bool(block.get("element", {}).get("focus_on_load"))
    if focused > 1:
        yield fault("only one element can have focus_on_load", "/blocks")


def _with_children(blocks: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for block in blocks:
        yield block
        yield from block.get("child_blocks", [])
