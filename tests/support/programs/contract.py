"""openapi.yaml as a judge: each request and each answer has to fit it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import ValidationError
from referencing import Registry
from referencing.jsonschema import DRAFT202012

FILE = Path(__file__).parents[2] / "data" / "api" / "openapi.yaml"


class _Loader(yaml.CSafeLoader):
    """Leaves times as text, as JSON does."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, form) for tag, form in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


class BrokenContractError(AssertionError):
    """The client sent, or the server answered, what openapi.yaml does not have."""


@dataclass(frozen=True)
class Operation:
    """An operation of openapi.yaml, with what its path has in braces."""

    name: str
    spec: Mapping[str, Any]
    path: Mapping[str, str]

    @property
    def scopes(self) -> list[str]:
        """The scopes that a key needs."""
        return [scope for need in self.spec.get("security", ()) for scope in need["key"]]


@cache
def document() -> dict[str, Any]:
    """The file."""
    loaded: dict[str, Any] = yaml.load(FILE.read_text("utf-8"), _Loader)  # noqa: S506 - it is safe
    return loaded


def operation(method: str, path: str) -> Operation:
    """Find the operation of a request line."""
    for template, item in document()["paths"].items():
        form = re.sub(r"\\?\{(\w+)\\?\}", r"(?P<\1>[^/]+)", re.escape(template))
        match = re.fullmatch(form, path)
        if match and method.lower() in item:
            spec = item[method.lower()]
            return Operation(spec["operationId"], spec, match.groupdict())
    raise BrokenContractError(f"there is no {method} {path}")


def faults(value: Any, schema: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What is wrong in a value, as pointers and sentences."""
    errors = validator(json.dumps(schema)).iter_errors(value)
    return [(_pointer(error), error.message) for error in errors]


@cache
def validator(schema: str) -> Draft202012Validator:
    """A validator that knows the schemas of the file."""
    resource = DRAFT202012.create_resource(document())
    rooted = json.loads(schema.replace('"#/components', '"urn:api#/components'))
    registry: Registry[Any] = Registry().with_resource("urn:api", resource)
    return Draft202012Validator(rooted, registry=registry, format_checker=FormatChecker())


def parameters(operation: Operation, query: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Check the parameters of a query, and give them as what their schemas say.

    Raises:
        BrokenContractError: One is unknown, stands twice, or does not fit.
    """
    known = {
        each["name"]: each for each in operation.spec.get("parameters", ()) if each["in"] == "query"
    }
    values: dict[str, Any] = {}
    for name, text in query:
        if name not in known:
            raise BrokenContractError(f"{operation.name} has no parameter {name}")
        kind = known[name]["schema"]["type"]
        if kind == "array":
            values.setdefault(name, []).append(text)
        elif name in values:
            raise BrokenContractError(f"{name} stands twice")
        else:
            values[name] = int(text) if kind == "integer" else text
    for name, value in values.items():
        wrong = faults(value, known[name]["schema"])
        if wrong:
            raise BrokenContractError(f"{name}: {wrong}")
    path = {
        each["name"]: each for each in operation.spec.get("parameters", ()) if each["in"] == "path"
    }
    for name, text in operation.path.items():
        if faults(text, path[name]["schema"]):
            raise BrokenContractError(f"{name}: {text}")
    return values


def check_answer(operation: Operation, status: int, value: Any) -> None:
    """Check an answer of the server itself.

    Raises:
        BrokenContractError: The status, the code of a problem, or the body is not in the file.
    """
    answers = operation.spec["responses"]
    if str(status) not in answers:
        raise BrokenContractError(f"{operation.name} has no answer {status}: {value}")
    answer = answers[str(status)]
    if "$ref" in answer:
        answer = document()["components"]["responses"][answer["$ref"].rpartition("/")[2]]
        codes = re.findall(r"`([\w-]+)`", answer["description"])
        if value["code"] not in codes:
            raise BrokenContractError(f"{status} has no code {value['code']}")
    (content,) = answer["content"].values()
    wrong = faults(value, content["schema"])
    if wrong:
        raise BrokenContractError(f"{operation.name} {status}: {wrong}")


def strict_json(text: bytes) -> Any:
    """Parse JSON as the server does.

    Raises:
        ValueError: It is no JSON; `duplicate-member` if a member stands twice.
    """

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({name for name, _ in pairs}) < len(pairs):
            raise ValueError("duplicate-member")
        return dict(pairs)

    def refuse(name: str) -> Any:
        raise ValueError(f"malformed-json: {name}")

    value = json.loads(text.decode(), object_pairs_hook=members, parse_constant=refuse)
    json.dumps(value, ensure_ascii=False).encode()  # a lone surrogate is none
    return value


def _pointer(error: ValidationError) -> str:
    return "".join(f"/{part}" for part in error.absolute_path)
