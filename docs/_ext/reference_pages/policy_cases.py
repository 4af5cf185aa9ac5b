"""The page of the cases file: every key that `countersign policy test` reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from bot.rehearsal import case_schema
from reference_pages import entries, text

PURPOSE = (
    "Every key of a file of policy cases, for policy authors who run `countersign policy test`: "
    "type, default and meaning."
)
_ABOUT = (
    "A case is of the kind `check`, `explain` or `flow`. The keys of `world` describe the "
    "workspace; no Slack is asked. Only the keys that a case expects are compared. With "
    "`strict: true`, everything that happens must be named. An unknown key is an error."
)
_DEFAULTS = (
    "Unless a case says otherwise, `U0ROSA` asks in `C0OPS` on Monday 2026-11-23 at 10:00 in "
    "Berlin, and the first agent makes the call. Times are since the start, such as `+1h30m`."
)
_EXAMPLES = "[Test a policy](../how-to/test-a-policy.md) has files to start from."
ROOTS: tuple[type[BaseModel], ...] = (
    case_schema.FileEntry,
    case_schema.CaseEntry,
    case_schema.CheckEntry,
    case_schema.ExplainEntry,
    case_schema.FlowEntry,
)
"""The file, and the kinds of cases that authors write."""


def build() -> str:
    """Make the page."""
    parts = [text.wrap(_ABOUT), text.wrap(_DEFAULTS), text.wrap(_EXAMPLES)]
    for model in all_models():
        parts += _section(model)
    return text.page("Policy cases", PURPOSE, parts)


def all_models() -> list[type[BaseModel]]:
    """Give all models of the file, in its order."""
    models = [model for root in ROOTS for model in entries.models_below(root)]
    return list(dict.fromkeys(models))


def title_of(model: type[BaseModel]) -> str:
    """Give the title of a section, in words."""
    return text.spaced(model.__name__)


def _section(model: type[BaseModel]) -> Iterator[str]:
    yield text.section(2, title_of(model), text.anchor("case", title_of(model)))
    about = text.words(model.__doc__)
    common: set[str] = set()
    if case_schema.CaseEntry in model.__bases__:
        about += f" It has the keys of {_link(case_schema.CaseEntry)}, and these:"
        common = set(case_schema.CaseEntry.model_fields)
    yield text.wrap(about)
    rows = [
        (text.code(key.name), _type(key.shape), _default(key), key.meaning)
        for key in entries.keys_of(model)
        if key.name not in common
    ]
    if rows:
        yield text.table(("Key", "Type", "Default", "Meaning"), rows)


def _link(model: type[BaseModel]) -> str:
    title = title_of(model)
    return f"[every {title.lower()}](#{text.anchor('case', title)})"


def _default(key: entries.Key) -> str:
    """Give the default; the command fills in the policy before a case is read."""
    return "`FILE` of the command" if key.name == "policy" else key.default


def _type(shape: dict[str, Any]) -> str:
    options = [
        option
        for option in shape.get("anyOf", shape.get("oneOf", [shape]))
        if option.get("type") != "null"
    ]
    return " or ".join(dict.fromkeys(_type_name(option) for option in options))


def _type_name(shape: dict[str, Any]) -> str:
    if "$ref" in shape:
        name = text.spaced(shape["$ref"].rpartition("/")[2])
        return f"[{name.lower()}](#{text.anchor('case', name)})"
    if "anyOf" in shape or "oneOf" in shape:
        return _type(shape)
    if "enum" in shape or "const" in shape:
        values = shape.get("enum", [shape.get("const")])
        return ", ".join(
            text.code(value if isinstance(value, str) else json.dumps(value)) for value in values
        )
    match shape.get("type"):
        case "array":
            items = shape.get("items", {})
            return f"list of {_type_name(items)}" if items else "list"
        case "object" if isinstance(shape.get("additionalProperties"), dict):
            return f"map to {_type(shape['additionalProperties'])}"
        case kind:
            return _NAMES.get(str(kind), "any")


_NAMES = {"string": "text", "boolean": "`true` or `false`", "integer": "integer", "object": "map"}
