"""The OpenAPI document: it has each route and no other, and each example fits it (check 8)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from bot.api.openapi import openapi_document
from bot.api.problems import CODES
from tests.unit.bot.api.programs import URL, doorstep

DATA = json.loads((Path(__file__).parents[3] / "data" / "api_examples.json").read_text("utf-8"))
DOCUMENT = openapi_document(URL)
AT = "urn:openapi"
REGISTRY: Registry[Any] = Registry().with_resource(AT, DRAFT202012.create_resource(DOCUMENT))


def faults_of(schema: dict[str, Any], value: object) -> list[str]:
    """The faults of a value, by a schema that points into the document."""
    pointed = json.loads(json.dumps(schema).replace('"#/', f'"{AT}#/'))
    validator = jsonschema.Draft202012Validator(pointed, registry=REGISTRY)
    return [error.message for error in validator.iter_errors(value)]


def schema_of(example: dict[str, Any]) -> dict[str, Any]:
    operation = DOCUMENT["paths"][example["path"]][example["method"]]
    status = example["status"]
    place = operation["requestBody"] if status is None else operation["responses"][str(status)]
    schema: dict[str, Any] = place["content"]["application/json"]["schema"]
    return schema


@pytest.mark.parametrize(
    "example", DATA["examples"], ids=lambda example: f"{example['path']} {example['name']}"
)
def test_each_example_fits_the_document(example: dict[str, Any]) -> None:
    assert faults_of(schema_of(example), example["value"]) == []


@pytest.mark.parametrize("problem", DATA["problems"], ids=lambda problem: problem["code"])
def test_each_problem_fits_the_document(problem: dict[str, Any]) -> None:
    assert faults_of({"$ref": "#/components/schemas/Problem"}, problem) == []
    response = DOCUMENT["components"]["responses"][f"Problem{problem['status']}"]
    assert f"`{problem['code']}`" in response["description"]


def test_a_wrong_body_does_not_fit_the_document() -> None:
    schema = {"$ref": "#/components/schemas/CreateRequest"}
    for body in ({}, {"title": ""}, {"title": "x", "decision": 1}, {"title": "x", "kind": "y"}):
        assert faults_of(schema, body)
    assert (
        faults_of({"$ref": "#/components/schemas/Person"}, {"id": "U1", "name": "A", "x": 1}) == []
    )


def test_every_reference_leads_somewhere() -> None:
    for target in references(DOCUMENT):
        node: Any = DOCUMENT
        for part in target.removeprefix("#/").split("/"):
            node = node[part]
        assert node is not None


def references(node: object) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for item in node.values():
            yield from references(item)
    elif isinstance(node, list):
        for item in node:
            yield from references(item)


def test_no_name_of_a_class_of_ours_is_published() -> None:
    names = DOCUMENT["components"]["schemas"]
    assert not [name for name in names if name.startswith(("Api", "_"))]
    assert {"CreateRequest", "Request", "Problem", "Me", "Started", "Introspection"} <= set(names)


def test_codes_that_no_operation_gives_are_few() -> None:
    given = {
        status
        for path in DOCUMENT["paths"].values()
        for op in path.values()
        for status in op["responses"]
    }
    unlisted = {status for status, _ in CODES.values() if str(status) not in given}
    assert unlisted == {405, 500}


async def test_the_server_has_each_route_of_the_document_and_no_other() -> None:
    async with doorstep() as step:
        served = {
            (route.method.lower(), route.resource.canonical)
            for route in step.door.app().router.routes()
            if route.resource is not None and route.method != "HEAD"
        }
        document = (await step.call("GET", "/v1/openapi.json", key="")).body
    links = {("get", "/r/{id}"), ("get", "/t/{id}")}
    probes = {("get", "/healthz"), ("get", "/readyz"), *links}  # for no program
    listed = {(method, path) for path, item in document["paths"].items() for method in item}
    assert served - probes == listed
    assert document == DOCUMENT
