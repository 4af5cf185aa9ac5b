"""Combines decisions of code with decisions of a policy file: both must permit a call."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import timedelta

from agents.policy.base import GATE_RULE, Allow, Ask, Deny, Ruling
from bot.policy.evaluation.asking import REMIND_TIMES, groups_beside
from bot.policy.evaluation.context import Gate, ToolFacts
from bot.policy.evaluation.merge import Refusal, Verdict, merge
from bot.policy.values import PERSON, USERGROUP
from bot.records.terms import CODE, Escalation, Group, Requirement, Stage, Terms

BACKUPS = ":backups"
"""Suffix of a rule's name, for the group of its backup approvers."""
_KNOWN = re.compile(f"{PERSON}|{USERGROUP}")


def rulings_in(code: Ruling | None) -> tuple[Ruling, ...]:
    """Return the decisions that a decision of code combines; see `strictest`."""
    if isinstance(code, Ask | Deny) and code.asks:
        return code.asks
    return () if code is None else (code,)


def gate_of(tool: ToolFacts, code: Sequence[Ruling]) -> Gate:
    """Return whether code permits edits: by a gate, or if all policies review.

    A decision that names no approvers acts like a gate: the file's approvers are asked. A decision
    that names approvers adds them, and does not affect editing.
    """
    asks = [ruling for ruling in code if isinstance(ruling, Ask)]
    gates = {tool.gate, *(ask.kind for ask in asks if not ask.approvers)}
    if "approval" in gates:
        return "approval"
    is_review = asks and all(ask.kind == "review" for ask in asks)
    return "review" if "review" in gates or is_review else "none"


def has_gate(tool: ToolFacts, code: Sequence[Ruling]) -> bool:
    """Whether a gate in code asks about each call."""
    return tool.gate in {"approval", "review"} or any(
        isinstance(ruling, Ask) and _is_gate(ruling) for ruling in code
    )


def without_gates(code: Sequence[Ruling]) -> tuple[Ruling, ...]:
    """Return the decisions of code except those of a plain gate."""
    return tuple(ruling for ruling in code if not (isinstance(ruling, Ask) and _is_gate(ruling)))


def with_code(
    added: Sequence[Verdict],
    code: Sequence[Ruling],
    *,
    gated: bool,
    defaults: Callable[[], Terms],
) -> Verdict:
    """Merge the decisions of the file and of code.

    Args:
        added: Decisions of the file, in order, at least one: each of them may apply.
        code: Decisions of code, in order, without the decisions of gates.
        gated: Whether a gate in code asks, too.
        defaults: Builds the terms that apply if no rule of the file asks.
    """
    refusals = [refusal for refusal in map(_refusal, code) if refusal is not None]
    asks = [ruling for ruling in code if isinstance(ruling, Ask)]
    if refusals or any(isinstance(verdict, Refusal) for verdict in added) or not (asks or gated):
        return merge([*added, *refusals])
    silent = [ask for ask in asks if not ask.approvers]
    terms = [verdict for verdict in added if isinstance(verdict, Terms)]
    if len(terms) < len(added):
        # If no rule of the file asks, code takes the remaining terms from the defaults.
        own = _of_defaults(defaults(), gated=gated, is_silent=bool(silent))
        if isinstance(own, Refusal):
            return own
        terms += [] if any(_is_alike(own, other) for other in terms) else [own]
    base = merge(terms)
    if isinstance(base, Terms):
        named = [code_terms(ask, base) for ask in asks if ask.approvers]
        for ask in silent:
            base = _with_words(ask, base)
        # The defaults alone do not ask.
        return merge([base, *named] if base.stages else named)
    return base


def _of_defaults(own: Terms, *, gated: bool, is_silent: bool) -> Terms | Refusal:
    """Return the terms of code if no rule asks; without stages if code names people."""
    if not gated and not is_silent:
        return own.model_copy(update={"stages": (), "escalate": ()})
    name = code_name(GATE_RULE)
    if not own.stages:
        return Refusal((name,), ("the policy's defaults name no approvers",))
    return own.model_copy(update={"rules": (name,)}) if gated else own


def _is_alike(terms: Terms, other: Terms) -> bool:
    """Whether two terms ask the same people in the same way, so asking once is enough."""
    return terms.model_copy(update={"rules": other.rules}) == other


def code_terms(ask: Ask, base: Terms) -> Terms:
    """Build the terms of a rule in code that names people: one of them must approve.

    Its backup approvers count for that requirement only.
    """
    name = code_name(ask.rule)
    groups = {group: base.groups[group] for group in groups_beside(base) if group in base.groups}
    groups[name] = _group(ask.approvers)
    steps: tuple[Escalation, ...] = ()
    if ask.backups:
        after_s = _seconds(ask.escalate_in) or _first_step_s(base)
        steps = (Escalation(after_s=after_s, add=(name + BACKUPS,), requirements=(name,)),)
        groups[name + BACKUPS] = _group(ask.backups)
    own = {
        "rules": (),
        "reason": "",
        "stages": (Stage(approve=(Requirement(name=name, groups=(name,)),)),),
        "escalate": steps,
        "groups": groups,
    }
    return _with_words(ask, base.model_copy(update=own))


def strangers(code: Sequence[Ruling]) -> tuple[str, ...]:
    """Return the ids in code that cannot be Slack user ids."""
    ids = [
        approver_id
        for ask in code
        if isinstance(ask, Ask)
        for approver_id in (*ask.approvers, *ask.backups)
    ]
    return tuple(
        dict.fromkeys(approver_id for approver_id in ids if not _KNOWN.fullmatch(approver_id))
    )


def code_name(rule: str) -> str:
    """Return the name of a rule in code, for people."""
    return " + ".join(f"{CODE}{part}" for part in rule.split(" + "))


def _refusal(ruling: object) -> Refusal | None:
    """Return the refusal in a decision of code. Invalid decisions also refuse."""
    if isinstance(ruling, Allow | Ask):
        return None
    if not isinstance(ruling, Deny):
        why = f"a policy answered with {type(ruling).__name__}, which is no ruling"
        return Refusal((CODE.rstrip(":"),), (why,), failed=True)
    name = code_name(ruling.rule) if ruling.rule else CODE.rstrip(":")
    return Refusal((name,), (ruling.reason,), failed=ruling.failed)


def _is_gate(ask: Ask) -> bool:
    return ask.rule == GATE_RULE and not ask.approvers


def _with_words(ask: Ask, base: Terms) -> Terms:
    """Add a rule's name, reason and shorter times, but no people.

    Backup approvers are left out, because they would count for other requirements.
    """
    remind_s = _seconds(ask.remind_in)
    if remind_s and base.remind_s:
        remind_s = min(remind_s, base.remind_s)
    exclude = (*base.exclude, "editors") if ask.exclude_editors else base.exclude
    return base.model_copy(
        update={
            "rules": (*base.rules, code_name(ask.rule)),
            "reason": "; ".join(
                dict.fromkeys(reason for reason in (base.reason, ask.reason) if reason)
            ),
            "exclude": tuple(dict.fromkeys(exclude)),
            "expires_s": min(_seconds(ask.expires_in) or base.expires_s, base.expires_s),
            "remind_s": remind_s or base.remind_s,
            "remind_times": base.remind_times or (REMIND_TIMES if remind_s else 0),
        }
    )


def _group(ids: tuple[str, ...]) -> Group:
    return Group(
        users=tuple(approver_id for approver_id in ids if re.fullmatch(PERSON, approver_id)),
        usergroups=tuple(
            approver_id for approver_id in ids if re.fullmatch(USERGROUP, approver_id)
        ),
    )


def _first_step_s(base: Terms) -> int:
    """Return when backup approvers count by default: at the file's first step."""
    return base.escalate[0].after_s if base.escalate else base.expires_s // 2


def _seconds(time: timedelta | None) -> int:
    return max(1, int(time.total_seconds())) if time is not None else 0
