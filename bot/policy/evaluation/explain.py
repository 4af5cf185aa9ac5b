"""Explains an evaluation as text and as data, for authors of policies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta

from bot.config.durations import format_duration
from bot.policy.eligibility import PeopleSnapshot
from bot.policy.evaluation.evaluate import Judged
from bot.policy.evaluation.merge import Refusal, plain_name
from bot.policy.grants import limits_of
from bot.policy.missing_approvers import feasibility_of
from bot.policy.tally import Ballot
from bot.records.terms import Group, Requirement, Terms

_VERBS = {"allow": "allowed", "deny": "blocked", "ask": "needs approval"}


def explained(judged: Judged, shortage: str) -> dict[str, object]:
    """Return an evaluation as plain data."""
    data: dict[str, object] = {
        "effect": judged.effect,
        "rule": " + ".join(judged.names),
        "names": list(judged.names),
        "rules": [{"name": step.name, "is": step.word, "why": step.why} for step in judged.steps],
    }
    if isinstance(judged.ruling, Refusal):
        data["reason"] = judged.ruling.reason
    if isinstance(judged.ruling, Terms):
        terms = judged.ruling
        slots = [requirement for stage in terms.stages for requirement in stage.approve]
        data |= {
            "requirements": [
                {"name": plain_name(slot.name), "count": slot.count} for slot in slots
            ],
            "undecidable": shortage,
            "digest": terms.digest,
            "terms": terms.model_dump(mode="json"),
        }
    return data


def in_words(judged: Judged, shortage: str) -> str:
    """Return an evaluation as a text of some lines; see `explained`."""
    width = max((len(step.name) for step in judged.steps), default=0)
    lines = [f"{step.name:<{width}}  {step.word:<9}  {step.why}".rstrip() for step in judged.steps]
    lines += ["", f"{_VERBS[judged.effect]} by {' + '.join(judged.names)}"]
    if isinstance(judged.ruling, Refusal):
        lines.append(f"  because    {judged.ruling.reason}")
    if isinstance(judged.ruling, Terms):
        lines += [f"  {name:<10} {text}" for name, text in _parts(judged.ruling) if text]
    if shortage:
        lines.append(f"  blocked    no one can approve it: {shortage}")
    undecided = [step.name for step in judged.steps if step.word == "undecided"]
    if undecided and len(judged.names) > 1:
        lines.append(f"  {'hint':<10} {_HINT.format(rules=' and '.join(undecided))}")
    return "\n".join(lines).lstrip("\n")


_HINT = (
    "it is not certain whether {rules} applies, so the requirements of all rules above add up; "
    "write a condition that is true or false for this call, such as `matches`"
)


def shortage_of(
    judged: Judged, requesters: Iterable[str], members: Mapping[str, frozenset[str]]
) -> str:
    """Return why the terms can never be fulfilled; empty if they can, or if unknown."""
    if judged.undecidable or not isinstance(judged.ruling, Terms):
        return judged.undecidable
    snapshot = PeopleSnapshot(people={}, members=members, requesters=frozenset(requesters))
    feasibility = feasibility_of(Ballot(terms=judged.ruling, digest=""), snapshot)
    return str(feasibility.shortage) if feasibility.is_never else ""


def _parts(terms: Terms) -> list[tuple[str, str]]:
    """Return the labels and texts of the card that would be posted."""
    confirmed = ", confirmed" if terms.confirm else ""
    on_expiry = ", which ends the run" if terms.on_expiry == "cancel_run" else ""
    return [
        ("because", terms.reason),
        *(("needs", _stage(stage.name, stage.approve)) for stage in terms.stages),
        *((f"  {name}", _group(group)) for name, group in terms.groups.items()),
        ("not by", ", ".join(terms.exclude)),
        ("edited by", _editors(terms)),
        ("rejected", "by one" if terms.reject == 1 else f"by {terms.reject}"),
        ("expires", f"{_time(terms.expires_s)} after the request{on_expiry}"),
        ("deleted", "withdrawn with its message" if terms.on_delete == "withdraw" else ""),
        ("starts", f"within {_time(terms.max_age_s)} of the decision"),
        ("reminders", ", ".join(map(_time, terms.reminders_s)) if terms.remind_s else "never"),
        *(
            (
                "later",
                f"after {_time(step.after_s)}, {_and(step.add)} for {_and(step.requirements)}",
            )
            for step in terms.escalate
        ),
        ("where", terms.route),
        ("risk", f"{terms.risk}{confirmed}"),
        ("reasons", _and(name for name, holds in _reasons(terms) if holds)),
        ("grants", _grants(terms)),
        ("override", f"by {_and(terms.break_glass.groups)}" if terms.break_glass else ""),
        (
            "always",
            "asks: no standing permissions, overrides or batches" if terms.always_ask else "",
        ),
        ("digest", terms.digest),
    ]


def _stage(name: str, approve: Iterable[Requirement]) -> str:
    text = _and(f"{requirement.count} of {requirement.name}" for requirement in approve)
    return f"{text} (stage {name})" if name else text


def _group(group: Group) -> str:
    rotation = group.rotation
    sources = [
        *group.users,
        *group.usergroups,
        *(f"members of {channel}" for channel in group.channels),
    ]
    if rotation:
        sources.append(f"on call: {', '.join(rotation.people)}, in shifts of {rotation.every}")
    if group.here:
        sources.append("members of the thread's channel")
    return ", ".join(sources) or "nobody"


def _editors(terms: Terms) -> str:
    if terms.edit == "by":
        return _and(terms.editors)
    return "anyone who can approve now" if terms.edit == "yes" else "no one"


def _reasons(terms: Terms) -> list[tuple[str, bool]]:
    return [("to approve", terms.approve_reason), ("to reject", terms.reject_reason)]


def _grants(terms: Terms) -> str:
    limits = limits_of(terms)
    if limits is None:
        return ""
    vary = f", {_and(limits.vary)} can vary" if limits.vary else ""
    times = "time" if limits.max_uses == 1 else "times"
    return f"for {_time(limits.max_time_s)}, {limits.max_uses} {times}{vary}"


def _time(seconds: int) -> str:
    return format_duration(timedelta(seconds=seconds))


def _and(names: Iterable[str]) -> str:
    return " and ".join(names)
