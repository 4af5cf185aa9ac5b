"""A house for tests: it says what a script says, and remembers what it was asked and told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from agents.core.pending import InterruptContext
from agents.core.tools import Tool
from agents.models import Turn, call, say
from agents.policy import Allow, ApplicationPolicy, Ask, Deny, PolicyCall, Ruling
from tests.unit.agents.support import World, contexts

Rules = Callable[[PolicyCall], Ruling]

FILE = Ask(rule="file")
PAY: list[Turn] = [call("pay", {"x": 5}, id="c1"), say("done")]


class Says:
    """A policy that always says the same, whatever that is, and remembers what it was asked."""

    def __init__(self, answer: object) -> None:
        self.answer = answer
        self.calls: list[PolicyCall] = []

    async def evaluate(self, call: PolicyCall) -> Ruling:
        self.calls.append(call)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer  # type: ignore[return-value]


@dataclass
class ByAmount:
    """A policy in code: what it says of a call depends on `x`."""

    rulings: Mapping[int, Ruling]

    async def evaluate(self, call: PolicyCall) -> Ruling:
        return self.rulings[call.arguments["x"]]  # type: ignore[index]


@dataclass
class TestHouse(ApplicationPolicy):
    """Combines what a script says of a call with what code says, as an application would.

    Attributes:
        rules: What its file says.
        allows_ungated: See `ApplicationPolicy`.
        judged: Tool, arguments, code and `inside` of all that it was asked.
        noted: What it was told to put on record.
    """

    __test__ = False
    rules: Rules
    allows_ungated: bool = False
    judged: list[tuple[str, dict[str, object], Ruling | None, bool]] = field(default_factory=list)
    noted: list[tuple[str, dict[str, object], Ruling]] = field(default_factory=list)
    calls: list[PolicyCall] = field(default_factory=list)

    async def rule(self, call: PolicyCall, code: Ruling | None, *, inside: bool) -> Ruling:
        self.judged.append((call.tool, dict(call.arguments), code, inside))
        self.calls.append(call)
        if inside:
            return combined(Allow(), code)
        return combined(self.rules(call), code)

    async def note(self, call: PolicyCall, ruling: Allow | Deny) -> None:
        self.noted.append((call.tool, dict(call.arguments), ruling))

    @property
    def acts(self) -> list[str]:
        """What was noted, in short."""
        return [
            f"{type(ruling).__name__.lower()} {tool} {ruling.rule}"
            for tool, _, ruling in self.noted
        ]


def combined(said: Ruling, code: Ruling | None) -> Ruling:
    """The strictest of both; an Ask is bound to the names of both."""
    if isinstance(said, Deny) or isinstance(code, Deny):
        return said if isinstance(said, Deny) else code  # type: ignore[return-value]
    asks = [ruling for ruling in (said, code) if isinstance(ruling, Ask)]
    if not asks:
        return said
    names = " + ".join(ask.rule for ask in asks)
    is_review = all(ask.kind == "review" for ask in asks)
    return Ask(
        kind="review" if is_review else "approval",
        rule=names,
        terms=f"terms of {names}",
        bound=f"bound to {names}",
    )


def by_amount(x: int, *, below: Ruling, above: Ruling) -> Rules:
    """A script that looks at the argument `x`."""

    def rules(call: PolicyCall) -> Ruling:
        amount = call.arguments.get("x")
        return below if isinstance(amount, int) and amount < x else above

    return rules


def always(ruling: Ruling) -> Rules:
    """A script that says the same of all calls."""
    return lambda _: ruling


def world(tool: Tool, house: TestHouse | None, script: list[Turn] | None = None) -> World:
    """A world where a house judges, with one call unless told otherwise."""
    return World(list(script or PAY), [tool], policy=house, durability="step")


async def asked(
    tool: Tool, house: TestHouse | None, script: list[Turn] | None = None
) -> tuple[World, InterruptContext]:
    """The world of one call, and what people are asked about it."""
    made = world(tool, house, script)
    return made, contexts(await made.run())["c1"]
