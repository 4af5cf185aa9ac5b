"""Rules as data: what is put around a tool, and what it demands, worked out from the data alone.

`wrapped` makes the product's policies and gates of a `Book`; `says` reads the same book by the
words of the guide, and shares no code with the product. To try other rules, change both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, TypeAlias, TypeVar

from agents import policy_gate
from agents.core.tools import Tool
from agents.gates import approval_gate, review_edit_gate
from agents.policy import (
    Allow,
    Ask,
    Condition,
    Deny,
    Policy,
    Rule,
    RulePolicy,
    Ruling,
    all_of,
    first_of,
)
from tests.property.worlds.bench import CLEO, GROUP
from tests.unit.bot.office import ADA, BEN, ROSA

T = TypeVar("T")
DAN, FAY = "UDAN", "UFAY"
NOBODY = "nobody in particular"
"""No id of anybody."""
AMOUNTS = (10, 200, 600)
NAMES = ("ann", "bob", "ANN")
"""The last one is almost the first: whether it is the same cannot be decided."""


@dataclass(frozen=True)
class Payment:
    """The arguments of a call."""

    amount: int
    to: str


@dataclass(frozen=True)
class Say:
    """What is said of a call; times in minutes."""

    effect: Literal["allow", "deny", "ask"]
    name: str = ""
    kind: Literal["approval", "review"] = "review"
    approvers: tuple[str, ...] = ()
    backups: tuple[str, ...] = ()
    escalate: int | None = None
    expires: int | None = None
    excludes_editors: bool = False


@dataclass(frozen=True)
class Line:
    """A rule: about payments of at least so much, to just this one."""

    then: Say
    at_least: int | None = None
    to: str | None = None


@dataclass(frozen=True)
class Rules:
    """Rules in order."""

    lines: tuple[Line, ...]
    default: Say


@dataclass(frozen=True)
class Both:
    """Several policies as one."""

    how: Literal["all", "first"]
    parts: tuple[Rules, ...]


@dataclass(frozen=True)
class Code:
    """A gate that the tool's author put there: it asks those of the settings."""

    kind: Literal["approval", "review"]


Part: TypeAlias = Rules | Both | Code
Book: TypeAlias = tuple[Part, ...]
"""The gates around a tool, the innermost first."""


# ---- what it demands ----------------------------------------------------------------------------


def says(book: Book, payment: Payment) -> list[Say]:
    """What each gate says of a payment."""
    return [_said(part, payment) for part in book]


def _said(part: Part, payment: Payment) -> Say:
    match part:
        case Code():
            return Say("ask", name="always", kind=part.kind)
        case Rules():
            return _ruled(part, payment)
        case Both():
            sayings = [_ruled(rules, payment) for rules in part.parts]
            if part.how == "all":
                return _joined(sayings)
            return next((say for say in sayings if say.effect != "allow"), sayings[0])


def _ruled(rules: Rules, payment: Payment) -> Say:
    """The first line that fits; what cannot be decided counts, too, if it is stricter."""
    sayings: list[Say] = []
    for line in rules.lines:
        too_small = line.at_least is not None and payment.amount < line.at_least
        is_other = line.to is not None and payment.to.lower() != line.to.lower()
        if too_small or is_other:
            continue
        sayings.append(line.then)
        if line.to is None or payment.to == line.to:
            return _joined(sayings)
    return _joined([*sayings, rules.default])


def _joined(sayings: Sequence[Say]) -> Say:
    """The strictest; of several that ask, only whom all of them name."""
    if any(say.effect == "deny" for say in sayings):
        return Say("deny")
    asks = list(dict.fromkeys(say for say in sayings if say.effect == "ask"))
    if not asks:
        return Say("allow")
    deciders = [set(ask.approvers) for ask in asks if ask.approvers]
    helpers = [set(ask.backups) for ask in asks if ask.backups]
    common, backups = _common(deciders), _common(helpers)
    if (deciders and not common) or (helpers and not backups):
        return Say("deny")
    known = [{*ask.approvers, *ask.backups} for ask in asks if ask.approvers]
    return Say(
        "ask",
        name=" + ".join(ask.name for ask in asks),
        kind="approval" if any(ask.kind == "approval" for ask in asks) else "review",
        approvers=tuple(sorted(common)),
        backups=tuple(
            sorted(backup for backup in backups if all(backup in names for names in known))
        ),
        escalate=min((ask.escalate for ask in asks if ask.escalate), default=None),
        expires=min((ask.expires for ask in asks if ask.expires), default=None),
        excludes_editors=any(ask.excludes_editors for ask in asks),
    )


def _common(sets: Sequence[set[str]]) -> set[str]:
    return set.intersection(*sets) if sets else set()


# ---- the product's ------------------------------------------------------------------------------


def wrapped(tool: Tool, book: Book) -> Tool:
    """A tool with all these gates around it."""
    for part in book:
        match part:
            case Code(kind="review"):
                tool = review_edit_gate(tool)
            case Code():
                tool = approval_gate(tool)
            case Rules():
                tool = policy_gate(tool, _policy(part))
            case Both():
                join = all_of if part.how == "all" else first_of
                tool = policy_gate(tool, join(*(_policy(rules) for rules in part.parts)))
    return tool


def _policy(rules: Rules) -> Policy:
    return RulePolicy(
        rules=tuple(
            Rule(tool="pay", when=_when(line), then=_ruling(line.then)) for line in rules.lines
        ),
        default=_ruling(rules.default),
    )


def _when(line: Line) -> tuple[Condition, ...]:
    conditions = []
    if line.at_least is not None:
        conditions.append(Condition("amount", ">=", line.at_least))
    if line.to is not None:
        conditions.append(Condition("to", "equals", line.to))
    return tuple(conditions)


def _ruling(say: Say) -> Ruling:
    match say.effect:
        case "allow":
            return Allow()
        case "deny":
            return Deny("the book says no")
        case "ask":
            return Ask(
                kind=say.kind,
                rule=say.name,
                approvers=say.approvers,
                backups=say.backups,
                escalate_in=_minutes(say.escalate),
                expires_in=_minutes(say.expires),
                exclude_editors=say.excludes_editors,
            )


def _minutes(number: int | None) -> timedelta | None:
    return timedelta(minutes=number) if number is not None else None


# ---- any ----------------------------------------------------------------------------------------

Pick: TypeAlias = Callable[[Sequence[T]], T]
"""Chooses one of several."""
_PEOPLE = (
    (),
    (),
    (),
    (BEN, ADA),
    (DAN, FAY),
    (BEN,),
    (ADA, BEN),
    (GROUP,),
    (GROUP, ADA),
    ("channel", CLEO),
    (ROSA, NOBODY),
)
_BACKUPS = ((), (), (CLEO,), (GROUP, BEN))
_EFFECTS: Sequence[Literal["allow", "deny", "ask"]] = (*("ask",) * 7, "allow", "deny")
_KINDS: Sequence[Literal["approval", "review"]] = ("review", "review", "review", "approval")
_SHAPES = ((1,), (1,), (1,), (2,), (1, 1), (1, 1), (0, 1), (1, 1, 1))
"""How many policies each gate has, the innermost first; none stands for a gate in code."""


def any_book(pick: Pick[object]) -> Book:
    """Some book.

    Args:
        pick: Chooses.
    """
    return _Maker(pick).book()


class _Maker:
    """Makes a book, in which no two rules have one name."""

    def __init__(self, pick: Pick[object]) -> None:
        self._any = pick
        self._count = 0

    def _pick(self, choices: Sequence[T]) -> T:
        return self._any(choices)  # type: ignore[return-value]

    def book(self) -> Book:
        """See `any_book`."""
        return tuple(self._part(number) for number in self._pick(_SHAPES))

    def _part(self, policies: int) -> Part:
        if not policies:
            return Code(self._pick(_KINDS))
        parts = tuple(self._rules() for _ in range(policies))
        if policies == 1:
            return parts[0]
        return Both("all" if self._pick((True, True, False)) else "first", parts)

    def _rules(self) -> Rules:
        lines = [self._line() for _ in range(self._pick((0, 1, 2, 2)))]
        return Rules(tuple(lines), self._say())

    def _line(self) -> Line:
        at_least = self._pick((100, 500, None))
        to = self._pick((None, None, "ann", "bob"))
        return Line(self._say(), at_least=at_least, to=to)

    def _say(self) -> Say:
        effect = self._pick(_EFFECTS)
        if effect != "ask":
            return Say(effect)
        self._count += 1
        return Say(
            "ask",
            name=f"rule-{self._count}",
            kind=self._pick(_KINDS),
            approvers=self._pick(_PEOPLE),
            backups=self._pick(_BACKUPS),
            escalate=self._pick((None, None, 5, 20)),
            expires=self._pick((None, None, None, 45)),
            excludes_editors=self._pick((False, False, True)),
        )
