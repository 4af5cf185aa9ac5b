"""Reads models whose fields have docstrings: meaning, default, example, and codes of errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import BaseModel

from reference_pages import text

_LAST = re.compile(r"(?:^|\s)Default: (?P<default>.+)\.$", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key that a file can have, as a page shows it.

    Attributes:
        name: As written in the file.
        shape: The JSON schema of its value.
        default: What holds without the key.
        meaning: One to three sentences.
        example: YAML; may be empty.
        errors: Codes of errors.
    """

    name: str
    shape: dict[str, Any]
    default: str
    meaning: str
    example: str
    errors: tuple[str, ...]


def models_below(model: type[BaseModel]) -> list[type[BaseModel]]:
    """Give a model and all models in its fields, in the order of the file."""
    models: dict[type[BaseModel], None] = {}

    def walk(current: type[BaseModel]) -> None:
        if current not in models:
            models[current] = None
            for field in current.model_fields.values():
                for inner in _models_in(field.annotation):
                    walk(inner)

    walk(model)
    return list(models)


def keys_of(model: type[BaseModel]) -> Iterator[Key]:
    """Give the keys of a model, in the order of the code."""
    shapes = model.model_json_schema(by_alias=True).get("properties", {})
    for name, field in model.model_fields.items():
        key = field.alias or name
        paragraphs = [
            " ".join(paragraph.split()) for paragraph in (field.description or "").split("\n\n")
        ]
        default = "required" if field.is_required() else _written(field.default)
        if match := _LAST.search(paragraphs[0]):
            default = match["default"]
        yield Key(
            name=key,
            shape=shapes.get(key, {}),
            default=default,
            meaning=_LAST.sub("", paragraphs[0]),
            example=_after("Example: ", paragraphs).strip("`"),
            errors=tuple(re.findall(r"`(\w+)`", _after("Errors: ", paragraphs))),
        )


def used_in(models: list[type[BaseModel]]) -> dict[type[BaseModel], list[tuple[str, str]]]:
    """Give the places of each model: the models and keys that it is the value of."""
    places: dict[type[BaseModel], list[tuple[str, str]]] = {model: [] for model in models}
    for model in models:
        for name, field in model.model_fields.items():
            for inner in dict.fromkeys(_models_in(field.annotation)):
                places[inner].append((model.__name__, field.alias or name))
    return places


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models_in(inner)


def _after(word: str, paragraphs: list[str]) -> str:
    return next(
        (paragraph.removeprefix(word) for paragraph in paragraphs if paragraph.startswith(word)), ""
    )


def _written(default: object) -> str:
    match default:
        case bool():
            return text.code("true" if default else "false")
        case str() if default:
            return text.code(default)
        case int():
            return text.code(default)
        case _:
            return ""
