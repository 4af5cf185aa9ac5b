"""Prepared rules: whether a rule matches a call, and which condition decides."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from bot.policy.evaluation.conditions import ArgCondition, DoubtAnswer, all_hold, any_holds, negated
from bot.policy.evaluation.context import PolicyQuestion, ToolFacts
from bot.policy.model import RequesterEntry, RuleEntry, Then, When

DIRECT = "direct"
"""Name of direct messages in `channel` conditions."""

GroupPeople: TypeAlias = Mapping[str, frozenset[str] | None]
"""Members of groups by name; None after a failed look-up."""


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """A rule prepared for repeated evaluation.

    Attributes:
        name: Name of the rule.
        when: The calls that it matches.
        then: Its decision.
        conditions: Conditions on arguments.
        is_anywhere: Whether it has no condition on channels, agents, origins and programs.
        requester_key: Equal for rules with the same condition on requesters; empty without one.
    """

    name: str
    when: When
    then: Then
    conditions: tuple[ArgCondition, ...]
    is_anywhere: bool
    requester_key: tuple[str, ...]

    @classmethod
    def of(cls, entry: RuleEntry) -> PolicyRule:
        """Prepare a rule of a file.

        Raises:
            PatternError: A regular expression is not supported.
        """
        when, requester = entry.when, entry.when.requester
        return cls(
            name=entry.name,
            when=when,
            then=entry.then,
            conditions=tuple(ArgCondition.of(argument) for argument in when.args),
            is_anywhere=when.channel is None and when.agent is None and not names_programs(when),
            requester_key=(*requester.in_, "", *requester.not_in) if requester else (),
        )

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the groups in its condition on requesters."""
        requester = self.when.requester
        return (*requester.in_, *requester.not_in) if requester is not None else ()

    def misses(self, tool: ToolFacts, *, gated: bool) -> str:
        """Return why the rule cannot match any call of a tool; else empty."""
        when = self.when
        if tool.limit not in (when.limit or ("",)):
            return f"limit: it is about {tool.limit}" if tool.limit else "limit: it is a call"
        if when.tool is not None and not any(is_named(tool.name, pattern) for pattern in when.tool):
            return f"tool: it is {tool.name}"
        if when.tags is not None and not set(when.tags) <= set(tool.tags):
            return f"tags: they are {', '.join(tool.tags) or 'none'}"
        if when.risk is not None and tool.risk not in when.risk:
            return f"risk: it is {tool.risk}"
        if when.gated is not None and when.gated is not gated:
            return f"gated: it is {'yes' if gated else 'no'}"
        return ""

    def truth(self, question: PolicyQuestion) -> DoubtAnswer:
        """Whether the rule matches a call of its tools, apart from its requesters.

        A program's words only make things stricter. A rule that allows, and does not say that it is
        about programs, is undecided for a program's call, and so is one that rests on its claims.
        """
        result = self.is_anywhere or self._placed(question)
        if result is True and self._doubts(question):
            result = None
        if result is False:
            return False
        arguments = question.arguments
        for condition in self.conditions:
            truth = condition.holds(arguments)
            if truth is False:
                return False
            if truth is None:
                result = None
        return result

    def is_requested(self, question: PolicyQuestion, people: GroupPeople) -> DoubtAnswer:
        """Whether the condition on requesters holds; true without a condition."""
        entry = self.when.requester
        return True if entry is None else _requested(entry, question, people)

    def settled_by(self, question: PolicyQuestion, people: GroupPeople) -> str:
        """Return the condition that keeps the rule from matching; empty if it matches."""
        truths = {
            "requester: they are " + (", ".join(question.requesters) or "unknown"): (
                self.is_requested(question, people)
            ),
            f"channel or agent: {question.channel or '?'}, {question.agent or '?'}": (
                _is_placed(self.when, question)
            ),
        }
        if names_programs(self.when):
            name = question.program.name if question.program else "no program"
            truths[f"origin or program: {question.door}, {name}"] = _is_from(self.when, question)
        if why := self._doubts(question):
            truths[why] = None
        for condition in self.conditions:
            truths[f"{condition.text}: {condition.describe(question.arguments)}"] = condition.holds(
                question.arguments
            )
        worst = all_hold(truths.values())
        return "" if worst is True else next(why for why, truth in truths.items() if truth is worst)

    def _placed(self, question: PolicyQuestion) -> DoubtAnswer:
        return all_hold((_is_placed(self.when, question), _is_from(self.when, question)))

    def _doubts(self, question: PolicyQuestion) -> str:
        """Return why the rule is undecided for a program's call; empty if it is not."""
        if question.is_unattended and self.then.allow and self.when.origin is None:
            return "origin: a rule that allows must name it in a thread that no person started"
        program = question.program
        if program is None:
            return ""
        if self.then.allow and not names_programs(self.when):
            return "origin or program: a rule that allows must name one for a program's call"
        if (self.when.tags or self.when.risk) and not program.is_trusted:
            return "tags or risk: the program claims them"
        return ""


def names_programs(when: When) -> bool:
    """Whether a rule says that it is about calls of programs."""
    return when.origin is not None or when.program is not None


def _is_placed(when: When, question: PolicyQuestion) -> DoubtAnswer:
    return all_hold((_in_channel(when, question), _is_one_of(when.agent, question.agent)))


def _is_from(when: When, question: PolicyQuestion) -> bool:
    """Whether the call came through one of the doors, from one of the programs."""
    if when.origin is not None and question.door not in when.origin:
        return False
    if when.program is None:
        return True
    program = question.program
    return program is not None and any(is_named(program.name, name) for name in when.program)


def _in_channel(when: When, question: PolicyQuestion) -> DoubtAnswer:
    if when.channel is not None and DIRECT in when.channel and question.channel.startswith("D"):
        return True
    return _is_one_of(when.channel, question.channel)


def _is_one_of(names: tuple[str, ...] | None, name: str) -> DoubtAnswer:
    """Whether a name is on the list, if there is a list; an unknown name is undecided."""
    if names is None:
        return True
    return name in names if name else None


def _requested(entry: RequesterEntry, question: PolicyQuestion, people: GroupPeople) -> DoubtAnswer:
    """Return true if it holds for all requesters, false if for none, else None.

    It never holds because of a requester that a program alone has named.
    """
    claimed = question.program.claimed if question.program else frozenset()
    truths: set[DoubtAnswer] = set()
    for person in question.requesters:
        is_in = any_holds(_is_member(person, people.get(name)) for name in entry.in_)
        is_in_other = any_holds(_is_member(person, people.get(name)) for name in entry.not_in)
        holds = is_in if entry.in_ else negated(is_in_other)
        truths.add(None if holds and person in claimed else holds)
    return truths.pop() if len(truths) == 1 else None


def _is_member(person: str, members: frozenset[str] | None) -> DoubtAnswer:
    return None if members is None else person in members


def is_named(name: str, pattern: str) -> bool:
    """Whether a name fits a pattern: `*` matches any characters, `?` matches one."""
    return _pattern(pattern).fullmatch(name) is not None


@lru_cache(maxsize=5_000)
def _pattern(text: str) -> re.Pattern[str]:
    parts = {"*": ".*", "?": "."}
    # Collapse repeated stars: they mean the same as one and are slow to match.
    text = re.sub(r"\*+", "*", text)
    return re.compile("".join(parts.get(char, re.escape(char)) for char in text), re.DOTALL)
