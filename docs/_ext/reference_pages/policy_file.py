"""The page of the policy file: every model and key, in the order of the file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from bot.policy import values
from bot.policy.model import PolicyFile
from bot.policy.parser import source
from bot.policy.parser.schema import policy_schema
from reference_pages import entries, text

PURPOSE = (
    "Every key of the policy file, for policy authors: type, default, meaning, example, and the "
    "error codes of `countersign policy check`."
)
_RULES = (
    f"A policy file is YAML. It has at most {source.MAX_BYTES // 1024} KiB and "
    f"{source.MAX_DEPTH} nested levels, and no anchors, tags or duplicate keys. Every key can have "
    "the errors `unknown_key`, `missing_key` and `wrong_type`. A key without a value is an error. "
    "[Errors](errors.md#policy-errors) explains the codes."
)
_OUTLINE = """
version: 1            # required
timezone: UTC         # for rotations and quiet hours
groups: {}            # named sets of people
defaults: {}          # an `ask` without `when`; applies where a rule is silent
rules: []             # required; tried from the top, the first match applies
default: {ask: {}}    # required; applies when no rule matches
"""
_TITLES: Mapping[str, str] = {
    "PolicyFile": "File",
    "ApproveEntry": "Requirement",
    "ArgEntry": "Condition",
    "BreakGlassEntry": "Break-glass",
    "EscalateEntry": "Escalation step",
    "QuietEntry": "Quiet hours",
    "RequesterEntry": "Requesters",
}
"""Titles of sections whose models have another name."""
_KEYS = ("AskEntry", "When", "Then")
"""Models whose sections have the name of their key."""
_PATTERNS: Mapping[str, str] = {
    values.DURATION: "[duration](#policy-durations)",
    f"^(?:{values.NAME})$": "[name](#policy-names)",
    f"^(?:{values.REQUIREMENT_NAME})$": "[name](#policy-names), also with `+`",
    f"^(?:{values.PERSON})$": "user id (`U…`, `W…`)",
    f"^(?:{values.USERGROUP})$": "user group id (`S…`)",
    f"^(?:{values.CHANNEL})$": "channel id (`C…`, `G…`)",
    f"^(?:{values.CHANNEL}|direct)$": "channel id or `direct`",
    values.TURN: "number with `h`, `d` or `w`",
    values.LOCAL_TIME: "local time such as `2026-11-02T09:00`",
    values.CLOCK_TIME: 'time of the day such as `"20:00"`',
    values.ZONE: "time zone such as `Europe/Berlin`",
}
_TYPES = {"boolean": "`true`", "integer": "integer", "number": "number", "string": "text"}
_DURATIONS = (
    "A whole number with a unit, the largest unit first: `45s`, `15m`, `8h`, `1h30m`, `2d`, `1w`. "
    f"The longest duration is {values.LONGEST_S // values.DAY_S} days."
)
_NAMES = (
    "Names of rules, groups and stages begin with a lower-case letter. Up to 39 lower-case "
    "letters, digits and hyphens follow."
)


def build() -> str:
    """Make the page."""
    models = entries.models_below(PolicyFile)
    places = entries.used_in(models)
    parts = [text.wrap(_RULES), text.fence("yaml", _OUTLINE)]
    for model in models:
        parts += _section(model, places[model])
    parts += [text.section(2, "Durations", "policy-durations"), text.wrap(_DURATIONS)]
    parts += [text.section(2, "Names", "policy-names"), text.wrap(_NAMES)]
    return text.page("Policy file", PURPOSE, parts)


def anchor_of(model: str, key: str = "") -> str:
    """Give the anchor of a section, such as `policy-ask`, or of a key, `policy-ask-approve`."""
    title = _TITLES.get(model, model.removesuffix("Entry"))
    return text.anchor(
        "policy", *([title] if model != "PolicyFile" else ["file"]), *filter(None, [key])
    )


def title_of(model: str) -> str:
    """Give the title of a section."""
    plain = _TITLES.get(model, model.removesuffix("Entry"))
    return text.code(plain.lower()) if model in _KEYS else plain


def _section(model: type[BaseModel], places: list[tuple[str, str]]) -> Iterator[str]:
    name = model.__name__
    yield text.section(2, title_of(name), anchor_of(name))
    for paragraph in (model.__doc__ or "").split("\n\n"):
        yield text.wrap(text.words(paragraph))
    if places:
        links = [f"[`{key}`](#{anchor_of(owner, key)})" for owner, key in places]
        yield text.wrap(f"Used in: {', '.join(links)}.")
    shapes = _shapes(name)
    for key in entries.keys_of(model):
        yield text.section(3, text.code(key.name), anchor_of(name, key.name))
        yield text.properties(
            [("Type", type_of(shapes.get(key.name, key.shape))), ("Default", key.default)]
        )
        yield text.wrap(key.meaning)
        yield text.fence("yaml", key.example)
        yield text.wrap(f"Errors: {', '.join(map(text.code, key.errors))}.")


def _shapes(model: str) -> Mapping[str, dict[str, Any]]:
    schema: Any = policy_schema()
    definition = schema if model == "PolicyFile" else schema["$defs"][model]
    shapes: Mapping[str, dict[str, Any]] = definition.get("properties", {})
    return shapes


def type_of(shape: Mapping[str, Any]) -> str:
    """Say in words which values a JSON schema takes."""
    if "$ref" in shape:
        name = shape["$ref"].rpartition("/")[2]
        return f"[{title_of(name).lower()}](#{anchor_of(name)})"
    if "anyOf" in shape:
        return _either(shape["anyOf"])
    if "const" in shape:
        return text.code(shape["const"])
    if "enum" in shape:
        return _or([text.code(value) for value in shape["enum"]])
    return _plain(shape)


def _either(shapes: list[dict[str, Any]]) -> str:
    known = [shape for shape in shapes if shape != {"type": "null"}]
    if {"type": "boolean"} in known and {"enum": ["yes", "no"], "type": "string"} in known:
        known = [shape for shape in known if shape != {"type": "boolean"}]
    if {"type": "boolean"} in known and {"const": "no", "type": "string"} in known:
        known = [shape for shape in known if shape != {"type": "boolean"}]
    if {"type": "integer"} in known and {"type": "number"} in known:
        known = [shape for shape in known if shape != {"type": "integer"}]
    return _or([type_of(shape) for shape in known])


def _plain(shape: Mapping[str, Any]) -> str:
    if shape.get("pattern") in _PATTERNS:
        return _PATTERNS[shape["pattern"]]
    if shape.get("type") == "array":
        return _list(shape)
    if "patternProperties" in shape:
        (inner,) = shape["patternProperties"].values()
        return f"map of names to {type_of(inner)}"
    if "maxLength" in shape:
        return f"text of at most {shape['maxLength']} characters"
    if "minimum" in shape:
        return f"integer, {shape['minimum']} to {shape['maximum']}"
    return _TYPES[shape["type"]]


def _many(shape: Mapping[str, Any]) -> str:
    type_name = type_of(shape)
    if "$ref" in shape:
        return type_name.replace("](", "s](", 1)
    return re.sub(r"^(user id|user group id|channel id|text)\b", r"\1s", type_name)


def _list(shape: Mapping[str, Any]) -> str:
    least, items = shape.get("minItems", 0), _many(shape["items"])
    if "maxItems" in shape:
        return f"list of {least} to {shape['maxItems']} {items}"
    return f"list of {items}; not empty" if least else f"list of {items}"


def _or(words: list[str]) -> str:
    words = list(dict.fromkeys(words))
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
