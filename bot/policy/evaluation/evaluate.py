"""Evaluates a call: the first match decides, undecided rules only restrict it.

An undecided rule may or may not match, so its decision is added and the search continues. The
strictest of all added decisions is strict enough in either case.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Literal, TypeAlias

from agents.policy.base import Ruling
from bot.policy.evaluation.asking import AskingError, defaults_of, group_of, terms_of
from bot.policy.evaluation.code_policies import (
    gate_of,
    has_gate,
    rulings_in,
    strangers,
    with_code,
    without_gates,
)
from bot.policy.evaluation.conditions import DoubtAnswer, all_hold
from bot.policy.evaluation.context import Members, PolicyQuestion, ToolFacts
from bot.policy.evaluation.matching import GroupPeople, PolicyRule
from bot.policy.evaluation.merge import Permit, Refusal, Verdict, names_of
from bot.policy.model import PolicyFile, Then
from bot.records.terms import Group, Terms

logger = logging.getLogger(__name__)

DEFAULT = "default"
"""Name of the default decision, as a rule."""
NO_PLACE = -1
"""Index of the default decision among the rules."""
_TOOLS = 1_000
"""The maximum number of tools whose prepared rules are cached."""
_USUAL = 200
"""The maximum number of merged decisions that are cached per tool."""

Effect = Literal["allow", "deny", "ask"]
_Look: TypeAlias = tuple[int, DoubtAnswer]
"""The index of a rule, and whether it matches."""
_EFFECTS: Mapping[type, Effect] = {Permit: "allow", Refusal: "deny", Terms: "ask"}


@dataclass(frozen=True, slots=True)
class Step:
    """A rule that was checked.

    Attributes:
        name: Name of the rule.
        truth: Whether it matches; None is undecided.
        why: The condition that decided it; empty for a matching rule.
    """

    name: str
    truth: DoubtAnswer
    why: str = ""

    @property
    def word(self) -> str:
        """`true`, `false` or `undecided`."""
        return "undecided" if self.truth is None else str(self.truth).lower()


@dataclass(frozen=True)
class Judged:
    """The decision on a call, and how it was reached.

    Attributes:
        ruling: The merged decision of the file and of code.
        undecidable: Why the terms can never be fulfilled; empty if they can.
    """

    ruling: Verdict
    undecidable: str
    _trail: Callable[[], tuple[Step, ...]] = field(repr=False)

    @property
    def effect(self) -> Effect:
        """`allow`, `deny` or `ask`."""
        return _EFFECTS[type(self.ruling)]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the rules that decided. Names of rules in code begin with `code:`."""
        return names_of(self.ruling)

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """All checked rules of the file up to the first match, in order."""
        return self._trail()


@dataclass(frozen=True, slots=True)
class _Bench:
    """The rules of a file that can match one tool.

    Attributes:
        rules: The remaining rules, by index.
        misses: The other rules, and why they cannot match.
        rulings: Decision of each rule for this tool, by index.
        usual: Cache of merged decisions, by the indexes of the rules and whether a gate exists.
    """

    tool: ToolFacts
    rules: dict[int, PolicyRule]
    misses: dict[int, Step]
    rulings: dict[int, Verdict] = field(default_factory=dict)
    usual: dict[tuple[int, ...], Verdict] = field(default_factory=dict)


class PolicyEvaluator:
    """A policy file prepared for evaluation."""

    def __init__(self, file: PolicyFile) -> None:
        """Prepare all rules.

        Raises:
            PatternError: A regular expression is not supported.
        """
        self.file = file
        self._rules = tuple(PolicyRule.of(entry) for entry in file.rules)
        self._benches: dict[tuple[ToolFacts, bool], _Bench] = {}

    @cached_property
    def groups(self) -> Mapping[str, Group]:
        """The definitions of the file's groups.

        Raises:
            AskingError: A rotation has no time zone.
        """
        return {name: group_of(entry, self.file) for name, entry in self.file.groups.items()}

    async def judge(
        self, question: PolicyQuestion, members: Members, combined: Ruling | None = None
    ) -> Judged:
        """Evaluate a call.

        Args:
            question: The call.
            members: Looks up groups; called only for conditions on requesters that matter.
            combined: The decision of code on the call, of several policies by `strictest`. A gate
                is an `Ask` named `GATE_RULE` without approvers, or the gate of the tool's facts.
        """
        code = rulings_in(combined)
        tool = replace(question.tool, gate=gate_of(question.tool, code))
        bench = self._bench(tool, gated=question.gated)
        looked = _first_look(bench, question)
        people = await self._people(bench, looked, members)
        final = _second_look(bench, looked, question, people)
        # Undecided rules count as matching; the merge below is as strict as any outcome.
        places = [place for place, truth in final if truth is not False]
        # No rule matched for certain, so the default may apply, too.
        is_certain = bool(final) and final[-1][1] is True
        if not is_certain:
            places.append(NO_PLACE)
        rest = without_gates(code)
        gated = has_gate(question.tool, code)
        is_of_program = question.program is not None and not question.is_unattended
        if rest and not is_of_program:
            ruling = self._combined(bench, places, rest, gated=gated)
        else:
            ruling = self._usual(bench, places, gated=gated and not is_of_program)
        if (is_of_program or question.is_unattended) and not is_certain:
            ruling = self._without_a_person(bench, ruling)
        wrong = strangers(code)
        undecidable = f"no one has the ID {', '.join(wrong)}" if wrong else ""
        return Judged(ruling, undecidable, partial(_trail, bench, final, question, people))

    def _without_a_person(self, bench: _Bench, verdict: Verdict) -> Verdict:
        """Return the decision on a call that no person caused: the defaults, or stricter.

        Only a rule that is certain to match, so that names the origin, allows such a call alone.
        """
        if not isinstance(verdict, Permit):
            return verdict
        try:
            terms = defaults_of(self.file, bench.tool)
        except AskingError as error:
            return Refusal((DEFAULT,), (f"no one can be asked: {error}",))
        if not terms.stages:
            return Refusal((DEFAULT,), ("the policy's defaults name no approvers",))
        return terms.model_copy(update={"rules": (DEFAULT,)})

    def _usual(self, bench: _Bench, places: Sequence[int], *, gated: bool) -> Verdict:
        """Return the merged decision of several rules, cached: most calls are alike."""
        key = (gated, *places)
        ruling = bench.usual.get(key)
        if ruling is None:
            if len(bench.usual) >= _USUAL:
                bench.usual.clear()
            ruling = bench.usual[key] = self._combined(bench, places, (), gated=gated)
        return ruling

    def _combined(
        self, bench: _Bench, places: Sequence[int], code: Sequence[Ruling], *, gated: bool
    ) -> Verdict:
        added = [self._ruling(bench, place) for place in places]
        try:
            return with_code(
                added, code, gated=gated, defaults=lambda: defaults_of(self.file, bench.tool)
            )
        except AskingError as error:
            names = tuple(name for verdict in added for name in names_of(verdict))
            return Refusal(names, (f"no one can be asked: {error}",))

    def _bench(self, tool: ToolFacts, *, gated: bool) -> _Bench:
        key = (tool, gated)
        bench = self._benches.get(key)
        if bench is not None:
            return bench
        if len(self._benches) >= _TOOLS:
            self._benches.clear()
        bench = self._benches[key] = _Bench(tool, {}, {})
        for place, rule in enumerate(self._rules):
            if why := rule.misses(tool, gated=gated):
                bench.misses[place] = Step(rule.name, truth=False, why=why)
            else:
                bench.rules[place] = rule
        return bench

    def _ruling(self, bench: _Bench, place: int) -> Verdict:
        ruling = bench.rulings.get(place)
        if ruling is None:
            name = DEFAULT if place == NO_PLACE else self._rules[place].name
            then = self.file.default if place == NO_PLACE else self._rules[place].then
            ruling = bench.rulings[place] = self._made_ruling(then, name, bench.tool)
        return ruling

    def _made_ruling(self, then: Then, name: str, tool: ToolFacts) -> Verdict:
        if then.deny is not None:
            return Refusal((name,), (then.deny,))
        if then.ask is None:
            return Permit((name,))
        try:
            return terms_of(self.file, then.ask, name, tool)
        except AskingError as error:
            return Refusal((name,), (f"no one can be asked: {error}",))

    async def _people(
        self, bench: _Bench, looked: Iterable[_Look], members: Members
    ) -> GroupPeople:
        """Look up, in parallel, the groups in conditions on requesters."""
        # Rules that cannot match need no look-up.
        wanted = dict.fromkeys(
            name
            for place, truth in looked
            if truth is not False
            for name in bench.rules[place].groups
            if name in self.file.groups
        )
        if not wanted:
            return {}
        people = await asyncio.gather(*(self._look_up(name, members) for name in wanted))
        return dict(zip(wanted, people, strict=True))

    async def _look_up(self, name: str, members: Members) -> frozenset[str] | None:
        try:
            return await members(group_of(self.file.groups[name], self.file))
        except Exception as error:  # noqa: BLE001 - whatever it is, the condition is undecided
            logger.warning(
                "the group %s could not be looked up: %s",
                name,
                type(error).__name__,
                extra={"action": "group_unknown"},
            )
            return None


def _first_look(bench: _Bench, question: PolicyQuestion) -> list[_Look]:
    """Check the rules without look-ups, up to the first certain match."""
    looked: list[_Look] = []
    for place, rule in bench.rules.items():
        truth = rule.truth(question)
        looked.append((place, truth))
        if truth is True and rule.when.requester is None:
            break
    return looked


def _second_look(
    bench: _Bench, looked: Iterable[_Look], question: PolicyQuestion, people: GroupPeople
) -> list[_Look]:
    """Check the conditions on requesters, too, up to the first match."""
    final: list[_Look] = []
    known: dict[tuple[str, ...], DoubtAnswer] = {}
    for place, first in looked:
        truth, rule = first, bench.rules[place]
        if first is not False and rule.requester_key:
            if rule.requester_key not in known:
                known[rule.requester_key] = rule.is_requested(question, people)
            truth = all_hold((first, known[rule.requester_key]))
        final.append((place, truth))
        if truth is True:
            break
    return final


def _trail(
    bench: _Bench, final: Sequence[_Look], question: PolicyQuestion, people: GroupPeople
) -> tuple[Step, ...]:
    last = final[-1][0] if final and final[-1][1] is True else None
    steps = {place: step for place, step in bench.misses.items() if last is None or place < last}
    for place, truth in final:
        rule = bench.rules[place]
        steps[place] = Step(rule.name, truth, rule.settled_by(question, people))
    return tuple(steps[place] for place in sorted(steps))
