"""The OpenAPI document, made of the routes and their shapes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, get_args

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from bot.api.problems import CODES
from bot.api.routes import IDEMPOTENCY_KEY, LAST_EVENT, ROUTES, WITHIN, ApiRoute
from bot.api.shapes import (
    ENDPOINT_ID,
    REQUEST_ID,
    THREAD_ID,
    TRIGGER,
    ApiEvent,
    ApiProblemBody,
    EventType,
)

VERSION = "1.0.0"
"""Version of the API, in answers and in the document."""

_AT = "#/components/schemas/"
_HEADERS = {
    IDEMPOTENCY_KEY: {
        "required": True,
        "schema": {
            "type": "string",
            "minLength": 1,
            "maxLength": 200,
            "pattern": r"^[\x21-\x7e]+$",
        },
        "description": "Names the request; bare, or as a quoted string.",
    },
    WITHIN: {
        "required": False,
        "schema": {"type": "string", "maxLength": 300},
        "description": "From a tool of an agent: what `current_checkpoint_id()` returns.",
    },
    LAST_EVENT: {
        "required": False,
        "schema": {"type": "string", "maxLength": 100},
        "description": "Id of the last event: the stream begins a minute before it.",
    },
}
NO_CONTENT = 204
_PATH = {
    "id": {"schema": {"type": "string", "pattern": REQUEST_ID}},
    "code": {"schema": {"type": "string"}},
    "name": {"schema": {"type": "string", "pattern": TRIGGER}},
}
_IDS = {"/v1/threads": THREAD_ID, "/v1/webhooks": ENDPOINT_ID}
_HOOK_ANSWERS = {
    "2XX": {"description": "Taken"},
    "410": {"description": "Send no more: the endpoint is switched off"},
}


def openapi_document(url: str) -> dict[str, Any]:
    """Return the OpenAPI document.

    Args:
        url: Public address of the API.
    """
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.1",
        "info": {
            "title": "Countersign",
            "version": VERSION,
            "summary": "A decision of people in Slack, for any program.",
            "description": "Programs ask; people decide in Slack; nothing here can approve. "
            "Members that a client does not know must be ignored.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "servers": [{"url": url}],
        "security": [{"key": []}],
        "paths": paths,
        "webhooks": {name: {"post": _webhook(name)} for name in get_args(EventType)},
        "components": {
            "securitySchemes": {
                "key": {
                    "type": "http",
                    "scheme": "bearer",
                    "bearerFormat": "csk_<id>_<secret><checksum>",
                }
            },
            "schemas": _schemas(),
            "responses": {f"Problem{status}": _problem(status) for status in _statuses()},
        },
    }


def _webhook(name: str) -> dict[str, Any]:
    content = {"application/json": {"schema": {"$ref": f"{_AT}Event"}}}
    return {
        "operationId": f"on {name}".title().replace(" ", "").replace(".", ""),
        "security": [],
        "requestBody": {"required": True, "content": content},
        "responses": _HOOK_ANSWERS,
    }


def _operation(route: ApiRoute) -> dict[str, Any]:
    scopes = [str(route.scope)] if route.scope is not None else []
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.summary,
        "security": [{"key": scopes}] if route.needs_key else [],
        "parameters": list(_parameters(route)),
        "responses": {
            **{str(status): _answer(route, status, meaning) for status, meaning in route.statuses},
            **{
                str(status): {"$ref": f"#/components/responses/Problem{status}"}
                for status in sorted(route.problems)
            },
        },
    }
    if route.body is not None:
        schema = {"$ref": _AT + _name(route.body.__name__)}
        content = {"application/json": {"schema": schema}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _parameters(route: ApiRoute) -> Iterator[dict[str, Any]]:
    ids = [form for path, form in _IDS.items() if route.path.startswith(path)]
    for name, usual in _PATH.items():
        parameter = usual
        if name == "id" and ids:
            parameter = {"schema": {"type": "string", "pattern": ids[0]}}
        if f"{{{name}}}" in route.path:
            yield {"name": name, "in": "path", "required": True, **parameter}
    for header in route.headers:
        yield {"name": header, "in": "header", **_HEADERS[header]}
    if route.query is not None:
        for name, schema in route.query.model_json_schema()["properties"].items():
            yield {"name": name, "in": "query", "required": False, "schema": _renamed(schema)}


def _answer(route: ApiRoute, status: int, meaning: str) -> dict[str, Any]:
    if status == NO_CONTENT or not route.media:
        return {"description": meaning}
    schema: dict[str, Any] = {"type": "string"}
    if route.answer is not None:
        schema = {"$ref": _AT + _name(route.answer.__name__)}
    elif route.media == "application/json":
        schema = {"type": "object"}
    return {"description": meaning, "content": {route.media: {"schema": schema}}}


def _statuses() -> list[int]:
    return sorted({status for route in ROUTES for status in route.problems})


def _problem(status: int) -> dict[str, Any]:
    codes = [code for code, (its_status, _) in CODES.items() if its_status == status]
    schema = {"$ref": _AT + _name(ApiProblemBody.__name__)}
    return {
        "description": "; ".join(f"`{code}`" for code in codes),
        "content": {"application/problem+json": {"schema": schema}},
    }


def _schemas() -> dict[str, Any]:
    both = [model for route in ROUTES for model in (route.body, route.answer)]
    given = [model for model in both if model is not None]
    models: dict[type[BaseModel], Literal["validation"]]
    models = dict.fromkeys((*given, ApiEvent, ApiProblemBody), "validation")
    wanted: list[tuple[type[BaseModel], Literal["validation", "serialization"]]]
    wanted = [*models.items()]
    _, document = models_json_schema(wanted, ref_template=f"{_AT}{{model}}")
    schemas = {_name(name): _renamed(schema) for name, schema in document["$defs"].items()}
    return dict(sorted(schemas.items()))


def _renamed(schema: Any) -> Any:
    """Return a schema with the published names in its references, and without class names."""
    if isinstance(schema, list):
        return [_renamed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    renamed = {name: _renamed(item) for name, item in schema.items() if not _is_title(name, item)}
    if isinstance(target := renamed.get("$ref"), str):
        renamed["$ref"] = _AT + _name(target.removeprefix(_AT))
    return renamed


def _is_title(name: str, item: object) -> bool:
    """Whether a member is the title that pydantic makes of a name; not the property `title`."""
    return name == "title" and isinstance(item, str)


def _name(model: str) -> str:
    return model.removeprefix("Api").removesuffix("Body")
