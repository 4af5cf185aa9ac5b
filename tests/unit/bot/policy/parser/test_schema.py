"""The JSON schema of policy files: it takes what is right, and refuses what an editor can see."""

from __future__ import annotations

import json

import jsonschema
import pytest
import yaml

from bot.policy.parser.schema import policy_schema, schema_text
from tests.support.policies import CASES, POLICIES, cases_of

VALIDATOR = jsonschema.Draft202012Validator(policy_schema())
SEEN = {"unknown_key", "missing_key", "bad_name", "bad_then", "bad_id", "bad_version"}


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_the_named_policies_fit(name: str) -> None:
    assert list(VALIDATOR.iter_errors(POLICIES[name])) == []


@pytest.mark.parametrize("name", cases_of("check"))
def test_it_refuses_only_what_is_wrong_and_all_that_shows_in_one_place(name: str) -> None:
    codes = {error["code"] for error in CASES[name]["expect"]["errors"]}
    if not codes & {"not_yaml"}:
        is_refused = not VALIDATOR.is_valid(yaml.safe_load(CASES[name]["text"]))
        assert not (is_refused and not codes)
        assert is_refused or not codes & SEEN


def test_no_key_may_be_empty() -> None:
    assert not VALIDATOR.is_valid({**POLICIES["base"], "timezone": None})


def test_the_text_of_the_schema_is_json() -> None:
    assert json.loads(schema_text()) == policy_schema()
    assert json.loads(schema_text())["$schema"].startswith("https://json-schema.org/")
