"""The patterns: what people and agents can do together, one small agent for each.

They are those of Eino's examples and of gographgo's guide to graphs. Their tools only pretend.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pydantic_ai.models import Model

from agents.agent import Agent
from bot.demo.agent import build as build_oncall
from bot.demo.patterns import (
    deep,
    feedback,
    follow_up,
    graphs,
    programs,
    project,
    react,
    reading,
    supervised,
    tickets,
    travel,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoPattern:
    """One pattern, in a channel of its own.

    Attributes:
        channel: Name of the channel, with `#`.
        example: What to write there.
        build: Makes its agent, with a model.
    """

    channel: str
    example: str
    build: Callable[[Model], Agent]


PATTERNS = (
    DemoPattern(channel="#approval", example=tickets.EXAMPLE, build=tickets.build_booker),
    DemoPattern(channel="#review-edit", example=tickets.EXAMPLE, build=tickets.build_reviewer),
    DemoPattern(channel="#feedback", example=feedback.EXAMPLE, build=feedback.build),
    DemoPattern(channel="#follow-up", example=follow_up.EXAMPLE, build=follow_up.build),
    DemoPattern(channel="#supervisor", example=supervised.EXAMPLE, build=supervised.build),
    DemoPattern(channel="#plan", example=travel.EXAMPLE, build=travel.build),
    DemoPattern(channel="#deep", example=deep.EXAMPLE, build=deep.build),
    DemoPattern(channel="#project", example=project.EXAMPLE, build=project.build),
    DemoPattern(channel="#graph", example=graphs.EXAMPLE, build=graphs.build),
    DemoPattern(channel="#react", example=react.EXAMPLE, build=react.build),
    DemoPattern(channel="#limit", example=reading.EXAMPLE, build=reading.build),
    DemoPattern(channel="#programs", example=programs.EXAMPLE, build=programs.build),
)

LIMITS: Mapping[str, str] = {reading.NAME: reading.LIMIT}
"""The limit of tokens of an agent, by its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoRule:
    """An example of one rule of the demo's policy, in a channel where the on-call agent works.

    Attributes:
        channel: Name of the channel, with `#`.
        example: What to write there.
        then: Commands to type next there.
    """

    channel: str
    example: str
    then: tuple[str, ...] = ()


RULES = (
    DemoRule(
        channel="#batches",
        example="refund orders 1234 20.00, 1240 12.50, 1251 99.50, 1262 9.90, 1270 31.00",
    ),
    DemoRule(channel="#grants", example="refund order 1234 20.00"),
    DemoRule(channel="#stages", example="deploy payments 1.4.2 to production"),
    DemoRule(channel="#routing", example="deploy search 2.0.1 to production"),
    DemoRule(channel="#rotation", example="deploy payments 1.4.2 to staging"),
    DemoRule(channel="#override", example="roll back payments in production"),
    DemoRule(
        channel="#freeze",
        example="restart cache on 2026-12-01",
        then=("/countersign freeze #freeze wild", "/countersign unfreeze mended"),
    ),
)


def channels(model: Model) -> Mapping[str, Agent]:
    """Make the agents of `make demo`: each pattern in its channel, the on-call agent elsewhere.

    Args:
        model: Who speaks; with the demo's own model, each pattern has a rule of its own.
    """
    return {
        "*": build_oncall(model),
        **{pattern.channel: pattern.build(model) for pattern in PATTERNS},
    }
