"""Benchmark of judging: processor time of one call under a policy of 500 rules.

Run from the checkout:

    python -m benchmarks.bench_policy
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

from bot.policy.evaluation.context import PolicyQuestion, ToolFacts
from bot.policy.evaluation.evaluate import PolicyEvaluator
from bot.policy.model import PolicyFile
from bot.records.terms import Group

RULES = 500
CALLS = 200
ROUNDS = 10
TOOLS = 50
LIMIT_MS = 1.0


async def _nobody(_: Group) -> frozenset[str]:
    return frozenset()


def _file(tool: str, *conditions: dict[str, Any], requester: bool = False) -> PolicyFile:
    """A policy whose rules all are false for the call below, or are about other tools."""
    rules = [
        {
            "name": f"rule-{number}",
            "when": {
                "tool": tool.format(number % TOOLS),
                "args": [{**condition} for condition in conditions],
                **({"requester": {"in": ["sre"]}} if requester else {}),
            },
            "then": {"ask": {"approve": [{"from": ["sre"], "count": 1 + number % 3}]}},
        }
        for number in range(RULES)
    ]
    return PolicyFile.model_validate(
        {
            "version": 1,
            "groups": {"sre": {"usergroups": ["S0SRE"]}},
            "rules": rules,
            "default": {"ask": {"approve": [{"from": ["sre"]}]}},
        }
    )


def _files() -> Iterator[tuple[str, PolicyFile]]:
    amount = {"path": "amount", "op": "gt", "value": 500}
    note = {"path": "note", "op": "matches", "value": r"(?i).*\bdrop\b.*"}
    prices = {"path": "items.*.price", "op": "gt", "value": 900, "each": "any"}
    yield "50 tools, one condition", _file("tool_{}", amount)
    yield "one tool, a number", _file("tool_7", amount)
    yield "one tool, a pattern", _file("tool_7", note)
    yield "one tool, a list of ten", _file("tool_7", prices)
    yield "one tool, all undecided", _file("tool_7", {**amount, "path": "absent"})
    yield "one tool, requesters", _file("tool_7", {**amount, "op": "lt"}, requester=True)


def _question() -> PolicyQuestion:
    return PolicyQuestion(
        tool=ToolFacts(name="tool_7", tags=("money",), risk="medium"),
        arguments={
            "amount": 12.5,
            "note": "a note of some length that says nothing of tables, " * 4,
            "items": [{"price": number} for number in range(10)],
        },
        requesters=("U0ROSA", "U0TOM"),
        channel="C0OPS",
        agent="clerk",
    )


async def _cost_ms(file: PolicyFile) -> float:
    """Processor time of one call, the least of several rounds, in milliseconds."""
    rulebook, question = PolicyEvaluator(file), _question()
    await rulebook.judge(question, _nobody)
    least = float("inf")
    for _ in range(ROUNDS):
        begin = time.process_time()
        for _ in range(CALLS):
            await rulebook.judge(question, _nobody)
        least = min(least, (time.process_time() - begin) / CALLS * 1_000)
    return least


async def _main() -> None:
    print(f"One call under {RULES} rules; a tool call should cost less than {LIMIT_MS:g} ms.")
    for name, file in _files():
        print(f"  {name:<26} {await _cost_ms(file):8.3f} ms")


if __name__ == "__main__":
    asyncio.run(_main())
