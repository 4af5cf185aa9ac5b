"""Checks a whole policy file: its entries against each other and the tools.

All faults are reported at once. Checks that need Slack are in `lookups`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from bot.policy.evaluation.context import PolicyWorld, ToolFacts
from bot.policy.evaluation.matching import DIRECT, is_named
from bot.policy.model import PolicyFile
from bot.policy.parser.asks import AskSource, ask_problems, group_names, known_near
from bot.policy.parser.conditions import condition_problems
from bot.policy.parser.lookups import SlackFacts, look_up
from bot.policy.parser.problems import PolicyError, PolicyProblem, nearest
from bot.policy.parser.shadowing import shadowed
from bot.policy.parser.shapes import shape_of
from bot.policy.parser.source import SourceNode, read_source
from bot.policy.parser.structure import read_structure
from bot.records.origin import RequestDoor

DEFAULT = "default"
"""Reserved name of the default, which no rule may have."""
_NOT_OF_TOOLS = {"args", "requester", "channel", "agent", "origin", "program"}
_RISKS = frozenset({"low", "medium", "high", "critical"})
_RESERVED = frozenset({"requesters", "editors"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedPolicy:
    """A policy file without faults.

    Attributes:
        file: Its model.
        root: Its nodes with source positions.
        hash: SHA-256 of its bytes, 64 hexadecimal digits.
    """

    file: PolicyFile
    root: SourceNode
    hash: str


def check(
    data: bytes, world: PolicyWorld, *, demo: bool = False, is_settings: bool = False
) -> CheckedPolicy:
    """Parse and check a policy file, without Slack.

    Args:
        data: Its bytes.
        world: The tools and agents that exist.
        demo: Whether every rule may use `here`.
        is_settings: Whether it was built from the settings, which permit times below a minute.

    Raises:
        PolicyError: The file has faults: all of them, in order of position.
    """
    root, file, problems = _checked(data, world, demo=demo, is_settings=is_settings)
    return _policy(data, root, file, problems)


async def check_all(
    data: bytes,
    world: PolicyWorld,
    slack: SlackFacts,
    *,
    demo: bool = False,
    is_settings: bool = False,
) -> CheckedPolicy:
    """Parse and check a policy file, and look up its ids in Slack.

    Args:
        data: Its bytes.
        world: The tools and agents that exist.
        slack: Looks up ids.
        demo: Whether every rule may use `here`.
        is_settings: Whether it was built from the settings, which permit times below a minute.

    Raises:
        PolicyError: The file has faults, or an id could not be looked up.
    """
    root, file, problems = _checked(data, world, demo=demo, is_settings=is_settings)
    problems += await look_up(root, slack)
    return _policy(data, root, file, problems)


def _checked(
    data: bytes, world: PolicyWorld, *, demo: bool, is_settings: bool
) -> tuple[SourceNode, PolicyFile | None, list[PolicyProblem]]:
    root, problems = read_source(data)
    file, structure = read_structure(root, is_settings=is_settings)
    meant = list(_Checks(root, world, demo=demo).all())
    if file is not None:
        meant += _shadowed(root, file, known={problem.line for problem in meant})
    both = tuple(f"{problem.key}[" for problem in meant if problem.code == "approve_and_stages")
    # One of both keys must be removed, so faults inside of them may be gone then.
    structure = [problem for problem in structure if not problem.key.startswith(both)]
    return root, file, [*problems, *meant, *structure]


def _policy(
    data: bytes, root: SourceNode, file: PolicyFile | None, problems: list[PolicyProblem]
) -> CheckedPolicy:
    if problems or file is None:
        raise PolicyError(problems)
    return CheckedPolicy(file=file, root=root, hash=hashlib.sha256(data).hexdigest())


@dataclass(frozen=True, slots=True)
class _RuleSource:
    """The node of a rule or of the default, with its parts."""

    node: SourceNode
    when: SourceNode | None
    then: SourceNode

    def texts(self, name: str) -> list[tuple[SourceNode, str]]:
        return list(self.when.texts(name)) if self.when is not None else []


class _Checks:
    """The checks of one file. The models report values of a wrong type."""

    def __init__(self, root: SourceNode, world: PolicyWorld, *, demo: bool) -> None:
        self._root = root
        self._world = world
        self._demo = demo
        groups = root.get("groups")
        self._groups = groups.entries or {} if groups is not None else {}
        self._here = {name for name, group in self._groups.items() if group.get("here") is not None}
        self._defaults = root.get("defaults")

    def all(self) -> Iterator[PolicyProblem]:
        rules = [
            _RuleSource(node, node.get("when"), then)
            for node in self._root.each("rules")
            if (then := node.get("then")) is not None
        ]
        default = self._root.get(DEFAULT)
        everything = [*rules, _RuleSource(default, None, default)] if default is not None else rules
        yield from _duplicates(self._root)
        yield from self._names()
        yield from self._zones()
        if self._defaults is not None:
            yield from ask_problems(AskSource(own=self._defaults), is_default=True)
            yield from self._references(self._defaults, is_bound=False)
        if (freeze := self._root.get("freeze")) is not None:
            for node, name in (*freeze.texts("by"), *freeze.texts("lift", "from")):
                yield from self._reference(node, name, is_bound=False)
        for node in self._root.each("rules"):
            yield from self._when(node.get("when"))
        for rule in everything:
            yield from self._then(rule)
        yield from self._gated(everything)
        yield from self._unreachable()

    def _names(self) -> Iterator[PolicyProblem]:
        seen = {DEFAULT: "this is the name of the default"}
        for rule in self._root.each("rules"):
            name = rule.get("name")
            if name is None or not isinstance(name.scalar, str):
                continue
            if name.scalar in seen:
                yield name.problem("duplicate_rule", seen[name.scalar], "choose another name")
            seen.setdefault(name.scalar, f"the rule in line {rule.line} has this name")
        for text, group in self._groups.items():
            if text in _RESERVED:
                fault = f"{text} is reserved: it means all {text} of a call"
                yield group.problem("bad_name", fault, "choose another name")

    def _zones(self) -> Iterator[PolicyProblem]:
        places = [group.get("rotation") for group in self._groups.values()]
        for place in [*places, self._root.get("quiet")]:
            if place is None or place.entries is None:
                continue
            if self._root.get("timezone") is None and place.get("timezone") is None:
                remedy = "add timezone, here or to the whole file, such as Europe/Berlin"
                yield place.problem("needs_zone", "its times have no time zone", remedy)

    def _references(self, ask: SourceNode, *, is_bound: bool) -> Iterator[PolicyProblem]:
        for node, name in group_names(ask):
            yield from self._reference(node, name, is_bound=is_bound)

    def _reference(self, node: SourceNode, name: str, *, is_bound: bool) -> Iterator[PolicyProblem]:
        if name not in self._groups:
            known = {*self._groups, *known_near(node)}
            remedy = nearest(name, known, "use a group defined under groups")
            yield node.problem("unknown_group", f"no group named {name!r}", remedy)
        elif name in self._here and not is_bound and not self._demo:
            yield node.problem(
                "here_needs_channel",
                f"{name} means the members of the channel, and the requester chooses the channel",
                "name the channels in when.channel of the rule, without direct",
            )

    def _when(self, when: SourceNode | None) -> Iterator[PolicyProblem]:
        if when is None:
            return
        if not _is_of_programs(when):  # programs name their tools themselves
            yield from self._known(when)
        for key in ("in", "not_in"):
            for node, name in when.texts("requester", key):
                yield from self._reference(node, name, is_bound=_is_bound(when))
        tools = self._matched(when)
        for arg in when.each("args"):
            yield from condition_problems(arg, tools)

    def _known(self, when: SourceNode) -> Iterator[PolicyProblem]:
        tools = {tool.name for tool in self._world.tools}
        tags = {tag for tool in self._world.tools for tag in tool.tags}
        count = 0
        for node, text in when.texts("tool"):
            if not any(is_named(name, text) for name in tools):
                count += 1
                remedy = nearest(text, tools, _one_of(tools))
                yield node.problem("unknown_tool", f"no tool is named {text!r}", remedy)
        for node, text in when.texts("tags"):
            if text not in tags:
                count += 1
                remedy = nearest(text, tags, _one_of(tags))
                yield node.problem("unknown_tag", f"no tool has the tag {text!r}", remedy)
        for node, text in when.texts("agent"):
            if text not in self._world.agents:
                remedy = nearest(text, self._world.agents, _one_of(self._world.agents))
                yield node.problem("unknown_agent", f"no agent is called {text!r}", remedy)
        is_about = when.get("tool") is not None or when.get("tags") is not None
        if is_about and not count and not self._matched(when):
            remedy = "change tool, tags, risk or gated, or remove the rule"
            yield when.problem("unknown_tool", "no tool matches all of these conditions", remedy)

    def _matched(self, when: SourceNode | None) -> list[ToolFacts]:
        if _is_of_programs(when):
            return []
        return [tool for tool in self._world.tools if _may_match(when, tool)]

    def _then(self, rule: _RuleSource) -> Iterator[PolicyProblem]:
        ask = rule.then.get("ask")
        if ask is None or ask.entries is None:
            return
        tools = self._matched(rule.when)
        asking, risks = AskSource(own=ask, defaults=self._defaults), {tool.risk for tool in tools}
        yield from ask_problems(asking, risks=risks)
        yield from self._references(ask, is_bound=_is_bound(rule.when))
        for node, path in ask.texts("grants", "vary"):
            if tools and all(shape_of(tool.schema, path) is None for tool in tools):
                yield node.problem(
                    "unknown_path", f"no tool has an argument {path!r}", "correct it"
                )

    def _gated(self, rules: Sequence[_RuleSource]) -> Iterator[PolicyProblem]:
        """Check for rules that allow gated tools without approvers in the defaults."""
        names = ("approve", "stages")
        if self._defaults is not None and any(self._defaults.get(name) for name in names):
            return
        left = [tool for tool in self._world.tools if is_gated(tool)]
        for rule in rules:
            met = [tool for tool in self._matched(rule.when) if tool in left]
            if rule.then.scalar == "allow" and met:
                fault = f"the tool {met[0].name!r} needs approval, but no approvers are set"
                remedy = "add approve to defaults, or add a rule with approvers for it"
                yield rule.then.problem("allow_on_gated", fault, remedy)
            if _is_static(rule.when):
                left = [tool for tool in left if tool not in met]

    def _unreachable(self) -> Iterator[PolicyProblem]:
        first: SourceNode | None = None
        for rule in self._root.each("rules"):
            if first is not None and not (
                _is_of_programs(rule.get("when")) and _may_doubt_programs(first)
            ):
                fault = f"never reached: the rule on line {first.line} matches every call"
                yield rule.problem("unreachable", fault, "put this one before it, or remove it")
            elif first is None and rule.entries is not None and _matches_all(rule.get("when")):
                first = rule


def _shadowed(
    root: SourceNode, file: PolicyFile, *, known: Collection[int]
) -> Iterator[PolicyProblem]:
    """Yield the rules that can never match, unless their line has another fault."""
    nodes = root.each("rules")
    for place, before in shadowed(file.rules):
        if nodes[place].line not in known:
            line = nodes[before].line
            fault = f"never matches: the rule on line {line} matches all of its calls first"
            remedy = "put this one before it, or remove it"
            yield nodes[place].problem("unreachable", fault, remedy)


def _is_of_programs(when: SourceNode | None) -> bool:
    """Whether a rule can match only calls of programs."""
    if when is None:
        return False
    origins = {text for _, text in when.texts("origin")}
    return when.get("program") is not None or bool(origins - {RequestDoor.SLACK})


def _may_doubt_programs(rule: SourceNode) -> bool:
    """Whether a rule without `origin` and `program` can be undecided for a program's call."""
    then = rule.get("then")
    return rule.get("when", "risk") is not None or (then is not None and then.scalar == "allow")


def _one_of(known: Collection[str]) -> str:
    words = ", ".join(sorted(known))
    return (
        f"write one of {words}"
        if words
        else "remove it: no agent defines any (in a test file, add them under world.tools)"
    )


def _duplicates(node: SourceNode) -> Iterator[PolicyProblem]:
    """Yield values that a list contains twice."""
    seen: set[tuple[type, object]] = set()
    for item in node.items or ():
        if item.items is None and item.entries is None and item.scalar is not None:
            value = (type(item.scalar), item.scalar)
            if value in seen:
                yield item.problem("duplicate_key", "listed twice", "remove one of them")
            seen.add(value)
    for below in (*(node.items or ()), *(node.entries or {}).values()):
        yield from _duplicates(below)


def _may_match(when: SourceNode | None, tool: ToolFacts) -> bool:
    """Whether some call of a tool can match, as far as the tool alone tells."""
    if when is None:
        return True
    if when.get("limit") is not None:
        return False
    names = [text for _, text in when.texts("tool")]
    tags = {text for _, text in when.texts("tags")}
    risks = {text for _, text in when.texts("risk")}
    gated = when.get("gated")
    wanted = {True: True, "yes": True, False: False, "no": False}
    return (
        (not names or any(is_named(tool.name, name) for name in names))
        and tags <= set(tool.tags)
        and (not risks or tool.risk in risks)
        and (gated is None or wanted.get(gated.scalar, is_gated(tool)) is is_gated(tool))
    )


def _is_static(when: SourceNode | None) -> bool:
    """Whether the tool alone decides if it matches."""
    return when is None or not _NOT_OF_TOOLS & set(when.entries or ())


def _matches_all(when: SourceNode | None) -> bool:
    if when is None:
        return True
    if when.entries is None or not set(when.entries) <= {"tool", "risk"}:
        return False
    names = [text for _, text in when.texts("tool")]
    risks = {text for _, text in when.texts("risk")}
    all_names = "tool" not in when.entries or any(name.strip("*") == "" for name in names if name)
    return all_names and ("risk" not in when.entries or risks >= _RISKS)


def _is_bound(when: SourceNode | None) -> bool:
    """Whether a rule names its channels by id."""
    channels = [text for _, text in when.texts("channel")] if when is not None else []
    return bool(channels) and DIRECT not in channels


def is_gated(tool: ToolFacts) -> bool:
    """Whether code puts a gate around a tool."""
    return tool.gate != "none"
