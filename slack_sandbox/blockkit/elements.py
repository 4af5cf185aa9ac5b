"""Tables of Block Kit elements, composition objects and rich text.

The tables also say which element each place (`SECTION`, `ACTIONS`, `INPUT`, `CONTEXT`) and each
surface accepts, because Slack refuses other elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from slack_sandbox.blockkit.checks import (
    Check,
    any_object,
    choice,
    date,
    fault,
    flag,
    integer,
    items,
    number,
    shape,
    string,
    text,
    typed,
    words,
)

NAME = string(255)
KIND = string(60)
URL = string(3_000, pattern=r"(?i:https?://|mailto:|tel:|slack://)\S+")
IMAGE_URL = string(3_000, pattern=r"(?i:https?://)[^\s/]+\S*")
CONFIRM = shape(
    {
        "title": text(100),
        "text": text(300, mrkdwn=True),
        "confirm": text(30),
        "deny": text(30),
    },
    {"style": choice("primary", "danger")},
)
DISPATCH = shape(
    {},
    {"trigger_actions_on": items(choice("on_enter_pressed", "on_character_entered"), most=2)},
)


def _option(*, mrkdwn: bool = False, url: bool = False) -> Check:
    return shape(
        {"text": text(75, mrkdwn=mrkdwn), "value": string(150)},
        {"description": text(75, mrkdwn=mrkdwn), **({"url": URL} if url else {})},
    )


OPTION = _option()
MARKED_OPTION = _option(mrkdwn=True)
LINK_OPTION = _option(url=True)


def _all_options(element: dict[str, Any]) -> list[Any]:
    if "options" in element:
        return list(element["options"])
    return [option for group in element["option_groups"] for option in group["options"]]


def _different_values(element: dict[str, Any], path: str) -> Iterator[str]:
    if ("options" in element) == ("option_groups" in element):
        return
    values = [option["value"] for option in _all_options(element)]
    if len(values) > len(set(values)):
        yield fault("option values must be different", path)


def _one_source(element: dict[str, Any], path: str) -> Iterator[str]:
    if ("options" in element) == ("option_groups" in element):
        yield fault("needs either options or option_groups", path)


def _initial_known(element: dict[str, Any], path: str) -> Iterator[str]:
    if ("options" in element) == ("option_groups" in element):
        return
    wanted = list(element.get("initial_options", []))
    if "initial_option" in element:
        wanted.append(element["initial_option"])
    known = _all_options(element)
    if any(option not in known for option in wanted):
        yield fault("initial option was not found in the options", path)


def _min_below_max(low: str, high: str) -> Callable[[dict[str, Any], str], Iterator[str]]:
    def rule(element: dict[str, Any], path: str) -> Iterator[str]:
        if low in element and high in element and float(element[low]) > float(element[high]):
            yield fault(f"{low} is above {high}", path)

    return rule


def _element(required: Mapping[str, Check], optional: Mapping[str, Check], *rules: Any) -> Check:
    return shape({"type": KIND, **required}, {"action_id": NAME, **optional}, *rules)


FIELD = {"placeholder": text(150), "focus_on_load": flag}
GROUPS = items(shape({"label": text(75), "options": items(OPTION, most=100)}), most=100)
SOURCE = {"options": items(OPTION, most=100), "option_groups": GROUPS}
SUGGESTED = {"options": items(OPTION, least=0, most=100), "option_groups": GROUPS}
"""The answer to `block_suggestion`, which may have no options."""
SELECT = {**FIELD, "confirm": CONFIRM}
MULTI = {**SELECT, "max_selected_items": integer(1, 100)}
USER = string(30, pattern=r"[UW][A-Z0-9]+")
CONVERSATION = string(30, pattern=r"[CDG][A-Z0-9]+")
FILTER = shape(
    {},
    {
        "include": items(choice("im", "mpim", "private", "public")),
        "exclude_external_shared_channels": flag,
        "exclude_bot_users": flag,
    },
)
CONVERSATIONS = {"default_to_current_conversation": flag, "filter": FILTER}
ANSWERING = {"response_url_enabled": flag}
TEXT_INPUT = {**FIELD, "dispatch_action_config": DISPATCH}
NUMBER = string(40, pattern=r"-?\d+(\.\d+)?")

BUTTON = _element(
    {"text": text(75)},
    {
        "value": string(2_000),
        "url": URL,
        "style": choice("primary", "danger"),
        "confirm": CONFIRM,
        "accessibility_label": string(75),
    },
)
IMAGE_SOURCE = {"image_url": IMAGE_URL, "slack_file": any_object}


def has_image(element: dict[str, Any], path: str) -> Iterator[str]:
    """Refuse an image without a source, or with two sources."""
    if ("image_url" in element) == ("slack_file" in element):
        yield fault("needs either image_url or slack_file", path)


IMAGE = shape({"type": KIND, "alt_text": string(2_000)}, IMAGE_SOURCE, has_image)

ELEMENTS: dict[str, Check] = {
    "button": BUTTON,
    "workflow_button": _element(
        {"text": text(75), "workflow": shape({"trigger": any_object})},
        {"style": choice("primary", "danger"), "accessibility_label": string(75)},
    ),
    "image": IMAGE,
    "checkboxes": _element(
        {"options": items(MARKED_OPTION, most=10)},
        {
            "initial_options": items(MARKED_OPTION, most=10),
            "confirm": CONFIRM,
            "focus_on_load": flag,
        },
        _initial_known,
        _different_values,
    ),
    "radio_buttons": _element(
        {"options": items(MARKED_OPTION, most=10)},
        {"initial_option": MARKED_OPTION, "confirm": CONFIRM, "focus_on_load": flag},
        _initial_known,
        _different_values,
    ),
    "overflow": _element(
        {"options": items(LINK_OPTION, most=5)}, {"confirm": CONFIRM}, _different_values
    ),
    "datepicker": _element({}, {**SELECT, "initial_date": date}),
    "timepicker": _element(
        {},
        {**SELECT, "initial_time": string(5, pattern=r"([01]\d|2[0-3]):[0-5]\d"), "timezone": KIND},
    ),
    "datetimepicker": _element(
        {},
        {
            "initial_date_time": integer(1_000_000_000, 9_999_999_999),
            "confirm": CONFIRM,
            "focus_on_load": flag,
        },
    ),
    "static_select": _element(
        {},
        {**SELECT, **SOURCE, "initial_option": OPTION},
        _one_source,
        _initial_known,
        _different_values,
    ),
    "multi_static_select": _element(
        {},
        {**MULTI, **SOURCE, "initial_options": items(OPTION)},
        _one_source,
        _initial_known,
        _different_values,
    ),
    "external_select": _element(
        {}, {**SELECT, "initial_option": OPTION, "min_query_length": integer(0, 1_000)}
    ),
    "multi_external_select": _element(
        {}, {**MULTI, "initial_options": items(OPTION), "min_query_length": integer(0, 1_000)}
    ),
    "users_select": _element({}, {**SELECT, "initial_user": USER}),
    "multi_users_select": _element({}, {**MULTI, "initial_users": items(USER)}),
    "conversations_select": _element(
        {}, {**SELECT, **CONVERSATIONS, **ANSWERING, "initial_conversation": CONVERSATION}
    ),
    "multi_conversations_select": _element(
        {}, {**MULTI, **CONVERSATIONS, "initial_conversations": items(CONVERSATION)}
    ),
    "channels_select": _element({}, {**SELECT, **ANSWERING, "initial_channel": CONVERSATION}),
    "multi_channels_select": _element({}, {**MULTI, "initial_channels": items(CONVERSATION)}),
    "plain_text_input": _element(
        {},
        {
            **TEXT_INPUT,
            "initial_value": string(3_000, least=0),
            "multiline": flag,
            "min_length": integer(0, 3_000),
            "max_length": integer(1, 3_000),
        },
        _min_below_max("min_length", "max_length"),
    ),
    "number_input": _element(
        {"is_decimal_allowed": flag},
        {**TEXT_INPUT, "initial_value": NUMBER, "min_value": NUMBER, "max_value": NUMBER},
        _min_below_max("min_value", "max_value"),
    ),
    "email_text_input": _element({}, {**TEXT_INPUT, "initial_value": string(3_000)}),
    "url_text_input": _element({}, {**TEXT_INPUT, "initial_value": string(3_000)}),
    "file_input": _element({}, {"filetypes": items(KIND), "max_files": integer(1, 10)}),
    "icon_button": _element(
        {"icon": choice("trash"), "text": text(75)},
        {
            "value": string(2_000),
            "confirm": CONFIRM,
            "accessibility_label": string(75),
            "visible_to_user_ids": items(USER),
        },
    ),
    "feedback_buttons": _element(
        dict.fromkeys(
            ("positive_button", "negative_button"),
            shape({"text": text(75), "value": string(2_000)}, {"accessibility_label": string(75)}),
        ),
        {},
    ),
}

_SINGLE = ("static", "external", "users", "conversations", "channels")
_SELECTS = {f"{source}_select" for source in _SINGLE}
_MULTI_SELECTS = {f"multi_{name}" for name in _SELECTS}
_PICKERS = {"checkboxes", "radio_buttons", "datepicker", "timepicker"}

_BUTTONS = {"button", "workflow_button", "overflow"}

SECTION = {"image"} | _BUTTONS | _PICKERS | _SELECTS | _MULTI_SELECTS
ACTIONS = {"datetimepicker", "rich_text_input"} | _BUTTONS | _PICKERS | _SELECTS | _MULTI_SELECTS
INPUT = (
    {
        "plain_text_input",
        "number_input",
        "email_text_input",
        "url_text_input",
        "file_input",
        "datetimepicker",
    }
    | _PICKERS
    | _SELECTS
    | _MULTI_SELECTS
)
CONTEXT_ACTIONS = {"feedback_buttons", "icon_button"}
MODAL_ONLY = {"number_input", "email_text_input", "url_text_input", "file_input"}


def elements(allowed: set[str], surface: str) -> Check:
    """Return the checks of the elements that one place of one surface accepts."""
    names = allowed if surface == "modal" else allowed - MODAL_ONLY
    return typed({name: ELEMENTS[name] for name in sorted(names)})


CONTEXT_ELEMENT = typed(
    {
        "image": IMAGE,
        "plain_text": text(3_000),
        "mrkdwn": text(3_000, mrkdwn=True),
    }
)

_STYLES = (
    *("bold", "italic", "strike", "code", "underline"),
    *("highlight", "client_highlight", "unlink"),
)
_STYLE = shape({}, dict.fromkeys(_STYLES, flag))
_LONGEST_PART = 13_000
"""Maximum length of a part of rich text. Not documented; a message has no more in all."""
_part = partial(lambda required, **optional: shape({"type": KIND, **required}, optional))
_STYLED = {"style": _STYLE}
_RICH_TEXT = _part({"text": words(_LONGEST_PART)}, **_STYLED)
_RICH_LINK = _part({"url": URL}, text=words(_LONGEST_PART), unsafe=flag, **_STYLED)
_RICH_PART = typed(
    {
        "text": _RICH_TEXT,
        "link": _RICH_LINK,
        "emoji": _part({"name": NAME}, unicode=KIND, skin_tone=integer(1, 6), **_STYLED),
        "user": _part({"user_id": USER}, **_STYLED),
        "usergroup": _part({"usergroup_id": string(30, pattern=r"S[A-Z0-9]+")}, **_STYLED),
        "channel": _part({"channel_id": CONVERSATION}, **_STYLED),
        "broadcast": _part({"range": choice("here", "channel", "everyone")}, **_STYLED),
        "color": _part({"value": string(7, pattern="#[0-9a-fA-F]{6}")}, **_STYLED),
        "date": _part(
            {"timestamp": number, "format": string(100)}, url=URL, fallback=NAME, **_STYLED
        ),
    }
)
_SECTION = _part({"elements": items(_RICH_PART, least=0)})
_LITERAL = typed({"text": _RICH_TEXT, "link": _RICH_LINK})
RICH_ELEMENT = typed(
    {
        "rich_text_section": _SECTION,
        "rich_text_list": _part(
            {
                "style": choice("bullet", "ordered"),
                "elements": items(typed({"rich_text_section": _SECTION})),
            },
            indent=integer(0, 8),
            offset=integer(0, 10_000),
            border=integer(0, 1),
        ),
        "rich_text_preformatted": _part(
            {"elements": items(_LITERAL)}, border=integer(0, 1), language=KIND
        ),
        "rich_text_quote": _part({"elements": items(_RICH_PART)}, border=integer(0, 1)),
    }
)
RICH_TEXT = shape({"type": KIND, "elements": items(RICH_ELEMENT)}, {"block_id": NAME})
ELEMENTS["rich_text_input"] = _element(
    {}, {**TEXT_INPUT, "initial_value": RICH_TEXT, "multiline": flag}
)
INPUT.add("rich_text_input")
