"""JSON schema of policy files, for editors."""

from __future__ import annotations

import json
from typing import Any

from bot.policy.model import PolicyFile

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def policy_schema() -> dict[str, object]:
    """Return the schema of a policy file, without names, ids and types of arguments."""
    schema = PolicyFile.model_json_schema(by_alias=True)
    definitions = schema["$defs"]
    then = definitions["Then"]["properties"]
    definitions["Then"] = {
        "description": definitions["Then"]["description"],
        "oneOf": [
            {"const": "allow"},
            _only("deny", {"type": "string", "minLength": 1}),
            _only("ask", then["ask"]),
        ],
    }
    for definition in (schema, *definitions.values()):
        _unfold(definition)
        for name, value in definition.get("properties", {}).items():
            if name != "value":  # only `value` may be null, like an argument
                _without_null(value)
            _as_written(value)
            _unfold(value)
    return {"$schema": _DIALECT, **schema, "title": "Policy of Countersign"}


def schema_text() -> str:
    """Return the schema as indented JSON."""
    return json.dumps(policy_schema(), indent=2, ensure_ascii=False)


def _without_null(value: dict[str, Any]) -> None:
    """Remove the null that marks an absent key."""
    some = [variant for variant in value.get("anyOf", ()) if variant != {"type": "null"}]
    if value.get("default", ...) is None:
        del value["default"]
    if len(some) == 1:
        del value["anyOf"]
        value.update(some[0])
    elif some:
        value["anyOf"] = some


def _unfold(value: dict[str, Any]) -> None:
    """Join each paragraph of a description to one line."""
    if "description" in value:
        paragraphs = value["description"].split("\n\n")
        value["description"] = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def _as_written(value: dict[str, Any]) -> None:
    """Show limits and defaults as in the file, not as in the parsed value of pydantic."""
    if isinstance(value.get("default"), dict | list):
        del value["default"]  # the default is an absent key, which no empty value replaces
    if value.get("type") == "array":
        for old, new in (("minLength", "minItems"), ("maxLength", "maxItems")):
            if old in value:
                value[new] = value.pop(old)


def _only(name: str, value: object) -> dict[str, object]:
    return {
        "type": "object",
        "properties": {name: value},
        "required": [name],
        "additionalProperties": False,
    }
