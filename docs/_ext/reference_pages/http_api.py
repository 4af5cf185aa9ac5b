"""The page of the API for programs, from its routes, shapes and problems."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bot.api.openapi import openapi_document
from bot.api.problems import CODES
from bot.api.routes import ROUTES

_SHAPES = (
    "CreateRequest",
    "Where",
    "Preview",
    "Option",
    "Source",
    "Request",
    "Decision",
    "Execution",
    "Start",
    "Started",
    "Result",
    "Event",
    "Endpoint",
    "EndpointOut",
    "Delivery",
)
_HEAD = """# HTTP API

The routes, members and problems of the API for programs.

This page is generated from the code. [openapi.json](openapi.json) is the same as OpenAPI 3.1; a
running bot serves it at `/v1/openapi.json`. [Ask from a program](../how-to/ask-from-a-program.md)
shows the first request.

Every call has `Authorization: Bearer csk_…`. Bodies are JSON. Times are RFC 3339. Ignore members
and values that you do not know; an unknown status means: not approved.
"""


def build() -> str:
    """Make the page."""
    return "\n".join([_HEAD, *_routes(), *_members(), *_problems()]).rstrip() + "\n"


def _routes() -> Iterator[str]:
    yield "## Routes\n"
    yield "| Call | Right | Use |"
    yield "|---|---|---|"
    for route in ROUTES:
        right = f"`{route.scope}`" if route.scope is not None else "any"
        yield f"| `{route.method} {route.path}` | {right} | {route.summary} |"
    yield ""


def _members() -> Iterator[str]:
    schemas: dict[str, Any] = openapi_document("")["components"]["schemas"]
    for name in _SHAPES:
        schema = schemas[name]
        yield f"## {name}\n"
        yield f"{schema.get('description', '').strip()}\n"
        yield "| Member | Type | Default | Meaning |"
        yield "|---|---|---|---|"
        needed, plain = schema.get("required", []), []
        for member, field in schema["properties"].items():
            default = "required" if member in needed else _default(field)
            if text := _cell(field):
                yield f"| `{member}` | {_type(field)} | {default} | {text} |"
            else:
                plain.append(f"`{member}` ({_type(field)}; {default})")
        yield f"\nThe others: {', '.join(plain)}.\n" if plain else ""


def _problems() -> Iterator[str]:
    yield "## Problems\n"
    yield "A problem is `application/problem+json`. Switch on `code`; `detail` says what to do.\n"
    yield "| Code | Status | Meaning |"
    yield "|---|---|---|"
    for code, (status, title) in CODES.items():
        yield f"| `{code}` | {status} | {title} |"


def _default(field: dict[str, Any]) -> str:
    value = field.get("default")
    if value in (None, [], ()) or isinstance(value, dict):
        return "none"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _type(field: dict[str, Any]) -> str:
    for union in ("anyOf", "oneOf"):
        if union in field:
            names = [_type(option) for option in field[union] if option.get("type") != "null"]
            return " or ".join(dict.fromkeys(names))
    if "$ref" in field:
        return str(field["$ref"]).rpartition("/")[2]
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if field.get("type") == "array":
        return f"list of {_type(field.get('items', {}))}"
    return str(field.get("type", "any"))


_LIMITS = {
    "minimum": "At least {:,}.",
    "maximum": "At most {:,}.",
    "maxLength": "At most {:,} characters.",
    "maxItems": "At most {:,} items.",
}


def _cell(field: dict[str, Any]) -> str:
    """Say what a member means, as far as its name does not, and its limits."""
    parts = [field, *field.get("anyOf", ()), *field.get("oneOf", ())]
    limits = [
        words.format(part[name])
        for part in parts
        for name, words in _LIMITS.items()
        if name in part
    ]
    text = " ".join([str(field.get("description", "")), *limits]).strip()
    return text.replace("|", "\\|").replace("\n", " ")
