"""The shapes of the API: examples of the specification fit, other bodies do not (check 8)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from bot.api.problems import CODES
from bot.api.shapes import (
    ApiCancel,
    ApiCreateRequest,
    ApiCreateThread,
    ApiIntrospect,
    ApiIntrospection,
    ApiMe,
    ApiProblemBody,
    ApiRequest,
    ApiRequestList,
    ApiResult,
    ApiStart,
    ApiStarted,
    ApiThread,
    instant,
)

DATA = json.loads((Path(__file__).parents[3] / "data" / "api_examples.json").read_text("utf-8"))

ASKED: dict[str, type[BaseModel]] = {
    "/v1/requests": ApiCreateRequest,
    "/v1/requests/{id}/cancel": ApiCancel,
    "/v1/requests/{id}/start": ApiStart,
    "/v1/requests/{id}/result": ApiResult,
    "/v1/executions/introspect": ApiIntrospect,
    "/v1/threads": ApiCreateThread,
}
ANSWERED: dict[tuple[str, str], type[BaseModel]] = {
    ("/v1/requests", "post"): ApiRequest,
    ("/v1/requests", "get"): ApiRequestList,
    ("/v1/requests/{id}", "get"): ApiRequest,
    ("/v1/requests/{id}/cancel", "post"): ApiRequest,
    ("/v1/requests/{id}/start", "post"): ApiStarted,
    ("/v1/requests/{id}/result", "post"): ApiRequest,
    ("/v1/executions/introspect", "post"): ApiIntrospection,
    ("/v1/threads", "post"): ApiThread,
    ("/v1/threads/{id}", "get"): ApiThread,
    ("/v1/me", "get"): ApiMe,
}
CALL: dict[str, Any] = {"title": "Deploy", "tool": "deploy", "arguments": {"env": "production"}}


@pytest.mark.parametrize(
    "example", DATA["examples"], ids=lambda example: f"{example['path']} {example['name']}"
)
def test_each_example_fits_and_comes_out_as_it_went_in(example: dict[str, Any]) -> None:
    path, method, value = example["path"], example["method"], example["value"]
    model = ASKED[path] if example["status"] is None else ANSWERED[path, method]
    parsed = model.model_validate(value)
    out = parsed.model_dump(mode="json", by_alias=True)
    assert _part_of(value, out)


def _part_of(value: Any, out: Any) -> bool:
    """Whether all members of an example are in what we write; times may have more digits."""
    if isinstance(value, dict):
        return all(name in out and _part_of(item, out[name]) for name, item in value.items())
    if isinstance(value, list):
        return len(value) == len(out) and all(map(_part_of, value, out))
    return bool(value == out or (isinstance(out, str) and value == out.replace(".000Z", "Z")))


@pytest.mark.parametrize("problem", DATA["problems"], ids=lambda problem: problem["code"])
def test_each_problem_of_the_specification_has_its_code_and_status(problem: dict[str, Any]) -> None:
    assert ApiProblemBody.model_validate(problem).status == CODES[problem["code"]][0]


def test_a_time_has_milliseconds_and_the_zone() -> None:
    assert instant(1_763_892_000_007) == "2025-11-23T10:00:00.007Z"


@pytest.mark.parametrize(
    "changes",
    [
        {"decision": "approved"},  # 9, row 1: no body decides
        {"executoin": "idempotent"},
        {"title": ""},
        {"title": "two\nlines"},
        {"title": "a bell\x07"},
        {"title": "x" * 151},
        {"tool": None},
        {"arguments": None},
        {"tool": "-rf"},
        {"kind": "question"},
        {"kind": "choice", "tool": None, "arguments": None},
        {"kind": "form", "tool": None, "arguments": None},
        {"options": [{"value": "a", "label": "A"}, {"value": "b", "label": "B"}]},
        {"multiple": True},
        {"schema": {"type": "object"}},
        {"tags": ["Prod"]},
        {"risk": "none"},
        {"execution": "twice"},
        {"run_timeout": 9},
        {"run_timeout": 60.0},
        {"run_timeout": "60"},
        {"run_timeout": True},
        {"expires_in": 59},
        {"people": ["ada"]},
        {"requested_for": "S0SRE"},
        {"where": {"channel": "#ops"}},
        {"callback_url": "http://example.com"},
        {"metadata": {"a b": "c"}},
        {"metadata": {"a": 1}},
        {"metadata": {str(number): "" for number in range(17)}},
        {"source": {"url": "javascript:alert(1)"}},
        {"preview": {"format": "table", "text": "no"}},
        {"preview": {"format": "table", "columns": ["a"], "rows": [["1", "2"]]}},
        {"preview": {"text": "yes", "columns": ["a"]}},
    ],
    ids=str,
)
def test_a_body_that_does_not_fit_is_refused(changes: dict[str, Any]) -> None:
    ApiCreateRequest.model_validate(CALL)
    with pytest.raises(ValidationError):
        ApiCreateRequest.model_validate({**CALL, **changes})


def test_a_question_runs_nothing() -> None:
    question = {"kind": "question", "title": "Which customer?"}
    assert ApiCreateRequest.model_validate(question).execution == "none"
    with pytest.raises(ValidationError, match="`none`"):
        ApiCreateRequest.model_validate({**question, "execution": "once"})


def test_a_choice_has_each_value_once() -> None:
    options = [{"value": "eu", "label": "Europe"}, {"value": "eu", "label": "Europe again"}]
    with pytest.raises(ValidationError, match="once"):
        ApiCreateRequest.model_validate({"kind": "choice", "title": "Where?", "options": options})


def test_a_result_says_something() -> None:
    assert ApiResult.model_validate({"delivered": True}).outcome is None
    for empty in ({}, {"delivered": False}, {"summary": "done"}):
        with pytest.raises(ValidationError):
            ApiResult.model_validate(empty)


def test_a_preview_of_a_table_has_its_cells() -> None:
    table = {"format": "table", "columns": ["name", "size"], "rows": [["b1", "2 GB"]]}
    asked = ApiCreateRequest.model_validate({**CALL, "preview": table})
    assert asked.preview is not None
    assert asked.preview.rows == (("b1", "2 GB"),)
