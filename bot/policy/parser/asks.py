"""Checks of `ask` entries: groups, requirements, escalation, grants.

Fields that an `ask` omits are taken from `defaults`, so each `ask` is checked together with the
defaults.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from bot.policy.grants import NEVER_GRANTED
from bot.policy.parser.problems import Code, PolicyProblem, nearest
from bot.policy.parser.source import SourceNode
from bot.policy.values import seconds
from bot.records.terms import EXPIRES_S

_WHO = ("approve", "stages")
_WORDS: Mapping[str, frozenset[str]] = {
    "exclude": frozenset({"requesters", "editors"}),
    "edit": frozenset({"approvers", "requesters"}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AskSource:
    """An `ask` entry with the defaults that fill it.

    Attributes:
        own: The map of `ask`, or of `defaults` itself.
        defaults: The map of `defaults`; None without one, and for the defaults themselves.
    """

    own: SourceNode
    defaults: SourceNode | None = None

    def field(self, name: str) -> SourceNode | None:
        """Return the node of a field, from `ask` or else from the defaults."""
        if name in _WHO and any(self.own.get(key) is not None for key in _WHO):
            return self.own.get(name)
        node = self.own.get(name)
        return node if node is not None or self.defaults is None else self.defaults.get(name)

    def is_yes(self, name: str) -> bool:
        """Whether a switch is on."""
        node = self.field(name)
        return node is not None and node.scalar in (True, "yes")

    def place(self, node: SourceNode, *others: str) -> SourceNode:
        """Return where to report a fault: here, unless all its nodes are in the defaults."""
        used = [self.own.get(name) for name in others]
        own = node.key.startswith(f"{self.own.key}.") or node is self.own
        return self.own if not own and any(used_node is not None for used_node in used) else node

    def requirements(self) -> list[SourceNode]:
        """All requirements of all stages."""
        stages = self.field("stages")
        if stages is None:
            approve = self.field("approve")
            return list(approve.items or ()) if approve is not None else []
        return [
            requirement for stage in stages.items or () for requirement in stage.each("approve")
        ]


def ask_problems(
    asking: AskSource, *, is_default: bool = False, risks: Collection[str] = ()
) -> Iterator[PolicyProblem]:
    """Check one `ask` entry.

    Args:
        asking: The entry.
        is_default: Whether it is `defaults` itself, which may omit approvers.
        risks: Risks of the tools that the entry is about, as far as they are known.
    """
    stages = asking.own.get("stages")
    if stages is not None and asking.own.get("approve") is not None:
        remedy = "use one: stages run in order, approve asks everyone at once"
        yield stages.problem("approve_and_stages", "approve is there, too", remedy)
        return
    if not is_default and all(asking.field(name) is None for name in _WHO):
        remedy = "add approve here or to defaults: [{from: [group]}]"
        yield asking.own.problem("no_approvers", "no approvers are set", remedy)
    yield from _names(asking)
    yield from _reminder(asking, is_default=is_default)
    yield from _escalation(asking, is_default=is_default)
    yield from _grants(asking)
    yield from _always(asking)
    if not is_default:
        yield from _risk(asking, risks)


def requirement_name(node: SourceNode) -> str:
    """Return the name of a requirement; by default, the groups joined by `+`."""
    name = node.get("name")
    if name is not None and isinstance(name.scalar, str):
        return name.scalar
    return "+".join(text for _, text in node.texts("from"))


def group_names(ask: SourceNode) -> Iterator[tuple[SourceNode, str]]:
    """Yield all names of groups in an `ask` entry."""
    staged = [requirement for stage in ask.each("stages") for requirement in stage.each("approve")]
    for requirement in (*ask.each("approve"), *staged):
        yield from requirement.texts("from")
    for step in ask.each("escalate"):
        yield from step.texts("add")
    yield from ask.texts("break_glass", "by")
    for name, texts in (("exclude", ask.texts("exclude")), ("edit", ask.texts("edit", "by"))):
        yield from (pair for pair in texts if pair[1] not in _WORDS[name])


def known_near(node: SourceNode) -> frozenset[str]:
    """Return the reserved words that are permitted in place of a group's name."""
    if ".exclude" in node.key:
        return _WORDS["exclude"]
    return _WORDS["edit"] if ".edit.by" in node.key else frozenset()


def _names(asking: AskSource) -> Iterator[PolicyProblem]:
    if asking.field("stages") is asking.own.get("stages"):
        yield from _twice(
            "stage", ((stage, _text(stage, "name")) for stage in asking.own.each("stages"))
        )
    own = [node for node in asking.requirements() if node.key.startswith(f"{asking.own.key}.")]
    yield from _twice("requirement", ((node, requirement_name(node)) for node in own))


def _text(node: SourceNode, name: str) -> str:
    value = node.get(name)
    return value.scalar if value is not None and isinstance(value.scalar, str) else ""


def _twice(what: str, named: Iterable[tuple[SourceNode, str]]) -> Iterator[PolicyProblem]:
    seen: set[str] = set()
    for node, name in named:
        if name and name in seen:
            place = node.get("name") or node
            yield place.problem(
                "bad_name", f"there's already a {what} named {name}", "choose another name"
            )
        seen.add(name)


def _reminder(asking: AskSource, *, is_default: bool) -> Iterator[PolicyProblem]:
    """Check for a reminder that the deadline always precedes."""
    remind = asking.field("remind")
    node = remind.get("after") if remind is not None and remind.entries is not None else remind
    expires = _seconds(asking.field("expires"), 0 if is_default else EXPIRES_S)
    if node is not None and expires and _seconds(node, 0) >= expires:
        remedy = "make remind shorter than expires, or write remind: never"
        place = asking.place(node, "expires")
        yield place.problem("bad_order", "no reminder before the expiry", remedy)


def _escalation(asking: AskSource, *, is_default: bool) -> Iterator[PolicyProblem]:
    escalate = asking.field("escalate")
    if escalate is None or escalate.items is None:
        return
    is_own = escalate is asking.own.get("escalate")
    expires = _seconds(asking.field("expires"), 0 if is_default else EXPIRES_S)
    before = 0
    for step in escalate.items:
        node = step.get("after")
        after = _seconds(node, 0)
        if node is not None and after:
            if is_own and after <= before:
                yield node.problem("bad_order", "not after the step before", "sort the steps")
            elif expires and after >= expires:
                place = asking.place(node, "expires")
                yield place.problem(
                    "bad_order", "not before the expiry", "make after shorter than expires"
                )
            before = max(before, after)
        yield from _step(asking, step)


def _step(asking: AskSource, step: SourceNode) -> Iterator[PolicyProblem]:
    requirements = asking.requirements()
    if not requirements:
        return
    place = asking.place(step, *_WHO)
    names = [requirement_name(requirement) for requirement in requirements]
    if step.get("for") is None and len(names) > 1:
        fault = "an escalation step doesn't say which of the requirements it's for"
        yield place.problem("for_required", fault, f"add for: with some of {', '.join(names)}")
    for node, text in step.texts("for"):
        if text not in names:
            yield asking.place(node, *_WHO).problem(
                "unknown_requirement",
                f"there is no requirement {text!r}",
                nearest(text, names, f"write one of {', '.join(names)}"),
            )


def _seconds(node: SourceNode | None, otherwise: int) -> int:
    """Return a duration; 0 for an invalid one, which is reported elsewhere."""
    if node is None:
        return otherwise
    try:
        return seconds(node.scalar) if isinstance(node.scalar, str) else 0
    except ValueError:
        return 0


def _grants(asking: AskSource) -> Iterator[PolicyProblem]:
    grants = asking.field("grants")
    requirements = asking.requirements()
    counts = [requirement.get("count") for requirement in requirements]
    slots = sum(
        count.scalar if count is not None and isinstance(count.scalar, int) else 1
        for count in counts
    )
    if grants is not None and grants.entries is not None and slots > 1:
        fault = f"this needs {slots} people, but one person gives a standing permission"
        remedy = "ask for one person, or write grants: never"
        yield asking.place(grants, *_WHO).problem("grants_slots", fault, remedy)


def _risk(asking: AskSource, risks: Collection[str]) -> Iterator[PolicyProblem]:
    """Check for own grants that no card offers, because the risk is too high."""
    grants, written = asking.own.get("grants"), asking.field("risk")
    levels = {written.scalar} if written is not None else {*risks}
    if grants is not None and grants.entries is not None and levels and levels <= NEVER_GRANTED:
        fault = "a call of a high or critical risk is asked about each time"
        yield grants.problem("grants_risk", fault, "lower risk, or remove grants")


def _always(asking: AskSource) -> Iterator[PolicyProblem]:
    if not asking.is_yes("always_ask"):
        return
    code: Code = "always_ask_conflict"
    for name in ("grants", "break_glass"):
        node = asking.own.get(name)
        if node is not None and node.entries is not None:
            fault = "always_ask switches it off"
            yield node.problem(code, fault, f"remove always_ask, or {name}")
