"""The world that policies are checked in, as a deployment's agents declare it."""

from __future__ import annotations

import pytest

from bot.policy.evaluation.context import gate_of


@pytest.mark.parametrize(
    ("gates", "gate"),
    [
        ((), "none"),
        (("choice", "complete"), "none"),
        (("approval",), "approval"),
        (("policy",), "approval"),
        (("approval", "review"), "review"),
    ],
)
def test_gates_are_what_rules_know(gates: tuple[str, ...], gate: str) -> None:
    assert gate_of(gates) == gate
