"""Each rule names its planted violation."""

from typing import Any

import pytest

from tests.support.mongo_rules import broken_rules

A = {"name": "a_1", "key": {"a": 1}}

VIOLATIONS: list[tuple[str, dict[str, Any]]] = [
    ("I2", {"createIndexes": "c", "indexes": [A, A]}),
]


@pytest.mark.parametrize(("rule", "command"), VIOLATIONS)
def test_a_violation_is_named(rule: str, command: dict[str, Any]) -> None:
    assert [found.split()[0] for found in broken_rules(command)] == [rule]
