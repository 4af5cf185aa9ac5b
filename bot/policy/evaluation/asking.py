"""Builds the terms of a rule that asks, with all omitted keys filled in.

An omitted key is taken from `defaults` of the file. If it is omitted there, too, it has the default
that `bot.policy.model.AskEntry` documents.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

from bot.policy.entries import EditEntry
from bot.policy.evaluation.context import Gate, ToolFacts
from bot.policy.evaluation.merge import APPROVERS, plain_name, slots_of, with_own_names
from bot.policy.model import (
    ApproveEntry,
    AskEntry,
    GroupEntry,
    PolicyFile,
)
from bot.records.terms import (
    ANY,
    EXPIRES_S,
    MAX_AGE_S,
    REMIND_S,
    BreakGlass,
    Escalation,
    GrantTerms,
    Group,
    Override,
    QuietHours,
    Requirement,
    Risk,
    Rotation,
    Stage,
    Terms,
)

REMIND_TIMES = 3
"""Default maximum number of reminders."""
_CONFIRMED: frozenset[Risk] = frozenset({"high", "critical"})
_Editing: TypeAlias = tuple[Literal["no", "yes", "by"], tuple[str, ...]]


class AskingError(ValueError):
    """Terms that cannot be built. The text is a clause with the reason."""


def terms_of(file: PolicyFile, entry: AskEntry, name: str, tool: ToolFacts) -> Terms:
    """Build the terms of an `ask` entry.

    Raises:
        AskingError: The entry names no approvers, or an unknown group.
    """
    ask = entry.over(file.defaults)
    stages = _stages(ask)
    if not stages:
        raise AskingError(f"the rule {name} names no approvers, nor do the defaults")
    return _terms(file, ask, stages, name, tool)


def group_of(entry: GroupEntry, file: PolicyFile) -> Group:
    """Return the complete definition of a group.

    Raises:
        AskingError: Its rotation has no time zone.
    """
    return Group(
        users=entry.users,
        usergroups=entry.usergroups,
        channels=entry.channels,
        rotation=_rotation(entry, file),
        here=entry.here,
        title=entry.title or "",
    )


def _rotation(entry: GroupEntry, file: PolicyFile) -> Rotation | None:
    rotation = entry.rotation
    if rotation is None:
        return None
    overrides = tuple(
        Override(start=override.from_, until=override.until, user=override.user)
        for override in rotation.overrides
    )
    return Rotation(
        start=rotation.start,
        every=rotation.every,
        people=rotation.people,
        overrides=overrides,
        timezone=_zone(rotation.timezone, file),
    )


def _quiet(file: PolicyFile) -> QuietHours | None:
    quiet = file.quiet
    if quiet is None:
        return None
    return QuietHours(
        start=quiet.from_ or "",
        until=quiet.until or "",
        days=quiet.days,
        timezone=_zone(quiet.timezone, file),
    )


def _zone(own: str | None, file: PolicyFile) -> str:
    zone = own or file.timezone
    if not zone:
        raise AskingError("a rotation, or quiet hours, have no zone")
    return zone


def _stages(ask: AskEntry) -> tuple[Stage, ...]:
    if ask.stages is not None:
        return with_own_names(
            [Stage(name=stage.name, approve=_requirements(stage.approve)) for stage in ask.stages]
        )
    return with_own_names([Stage(approve=_requirements(ask.approve))]) if ask.approve else ()


def _requirements(entries: Iterable[ApproveEntry]) -> tuple[Requirement, ...]:
    return tuple(
        Requirement(name=entry.title, groups=entry.from_, count=entry.count) for entry in entries
    )


def defaults_of(file: PolicyFile, tool: ToolFacts) -> Terms:
    """Return the terms of the defaults alone, without the name of a rule.

    The terms have no stages if the defaults name no approvers.
    """
    ask = file.defaults
    return _terms(file, ask, _stages(ask), "", tool)


def _terms(
    file: PolicyFile, ask: AskEntry, stages: tuple[Stage, ...], name: str, tool: ToolFacts
) -> Terms:
    edit, editors = _editing(ask.edit, tool.gate)
    risk = ask.risk or tool.risk
    always_ask, override = bool(ask.always_ask), ask.break_glass
    if always_ask or override is None or not override.by:
        break_glass = None
    else:
        break_glass = BreakGlass(groups=override.by, alert=override.alert)
    terms = Terms(
        rules=(name,) if name else (),
        stages=stages,
        groups={},
        exclude=("requesters",) if ask.exclude is None else ask.exclude,
        edit=edit,
        editors=editors,
        reject=ask.reject.count if ask.reject else ANY,
        max_age_s=ask.max_age or MAX_AGE_S,
        risk=risk,
        confirm=risk in _CONFIRMED if ask.confirm is None else ask.confirm,
        approve_reason=bool(ask.reason and ask.reason.approve == "required"),
        reject_reason=bool(ask.reason and ask.reason.reject == "required"),
        reasons=ask.reasons or (),
        grants=None if always_ask or slots_of(stages) != 1 else _grants(ask),
        break_glass=break_glass,
        delegation=ask.delegation is not False,
        always_ask=always_ask,
    )
    terms = terms.model_copy(update=_in_time(file, ask, stages))
    return terms.model_copy(update={"groups": _groups(file, terms)})


def _in_time(file: PolicyFile, ask: AskEntry, stages: tuple[Stage, ...]) -> dict[str, object]:
    """Return the fields for when, where and how people are asked."""
    remind = ask.remind
    return {
        "expires_s": ask.expires or EXPIRES_S,
        "on_expiry": ask.on_expiry or "expired",
        "on_delete": ask.on_delete or "keep",
        "remind_s": remind.after if remind else REMIND_S,
        "remind_times": remind.times if remind else REMIND_TIMES,
        "escalate": _escalation(ask, stages),
        "route": ask.route.channel if ask.route else "thread",
        "mention": ask.mention is not False,
        "clock": ask.clock or "wall",
        "urgent": bool(ask.urgent),
        "quiet": _quiet(file),
    }


def _editing(entry: EditEntry | None, gate: Gate) -> _Editing:
    """Return the editors, if the gate in code permits edits; by default the gate's."""
    if gate == "approval" or (entry is None and gate != "review"):
        return "no", ()
    if entry is None or entry.by is None:
        return "yes", ()
    return ("by", entry.by) if entry.by else ("no", ())


def _grants(ask: AskEntry) -> GrantTerms | None:
    limits = ask.grants
    if limits is None or not limits.max_uses:
        return None
    return GrantTerms(max_time_s=limits.max_time, max_uses=limits.max_uses, vary=limits.vary)


def _escalation(ask: AskEntry, stages: tuple[Stage, ...]) -> tuple[Escalation, ...]:
    """Return the escalation steps. By default a step applies to the only requirement."""
    names = [requirement.name for stage in stages for requirement in stage.approve]
    steps = []
    for step in ask.escalate or ():
        wanted = [name for name in names if plain_name(name) in step.for_]
        if not step.for_ and len(names) == 1:
            wanted = names
        if wanted:
            steps.append(Escalation(after_s=step.after, add=step.add, requirements=tuple(wanted)))
    return tuple(sorted(steps, key=lambda escalation: escalation.after_s))


def _groups(file: PolicyFile, terms: Terms) -> dict[str, Group]:
    """Return the definitions of all groups that the terms name."""
    asked = [name for requirement in terms.requirements.values() for name in requirement.groups]
    added = [name for step in terms.escalate for name in step.add]
    names = dict.fromkeys((*asked, *added, *groups_beside(terms)))
    missing = [name for name in names if name not in file.groups]
    if missing:
        raise AskingError(f"no group named {missing[0]!r}")
    return {name: group_of(file.groups[name], file) for name in names}


def groups_beside(terms: Terms) -> tuple[str, ...]:
    """Return names of groups that the terms use outside of the requirements."""
    words = {"requesters", "editors", APPROVERS}
    groups = terms.break_glass.groups if terms.break_glass else ()
    return tuple(name for name in (*terms.exclude, *terms.editors, *groups) if name not in words)
