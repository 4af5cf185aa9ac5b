"""Make an approval from an interrupt; `base.answer_from` goes the other way."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from agents import InterruptContext
from agents.core.asking.infos import CallInfo, InDoubtInfo
from agents.core.codec import Json
from agents.graph import Question
from agents.prebuilt.stages import StageInfo
from bot.approvals.model import APPROVE, Approval, Kind, PriorApproval
from bot.clock import milliseconds
from bot.people.requesters import requesters_of
from bot.people.under_terms import under_terms
from bot.ports.people import EXCLUDED
from bot.questions.base import QuestionDraft, brief_of, kind_at
from bot.questions.form import in_order
from bot.redaction.call import mask_title
from bot.redaction.mask import mask_words
from bot.threads.model import Thread
from bot.words import say
from storage.documents import Part

_MOST_APPROVED = 20
_SUBJECT = 60
"""Characters of a message in front of a title."""
_APPROVER = re.compile(r"channel|[UWS][A-Z0-9]{1,30}")
"""The names that a policy may give; anything else in their place is nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The rules of the settings: who decides, and how long it may take.

    Attributes:
        approvers: User ids, user group ids, or `channel`; never empty.
        channels: Ids of the only channels where approval is asked for, and where `channel` names
            somebody; empty when it is asked for everywhere, and `channel` is nobody.
        self_approval: Whether the requester may decide.
        remind_after: From the request to the first reminder.
        expire_after: From the request to its expiry.
        escalate_after: From the request to its escalation; None for none.
        escalate_to: Who may decide, too, from then on: as `approvers`, and may be empty.
        max_age: How long after a decision its call may start.
        exclude_editors: Whether who edits a call cannot approve it, too, whatever its rule says.
    """

    approvers: tuple[str, ...]
    self_approval: bool
    remind_after: timedelta
    expire_after: timedelta
    escalate_after: timedelta | None = None
    escalate_to: tuple[str, ...] = ()
    max_age: timedelta = timedelta(minutes=15)
    exclude_editors: bool = False
    channels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Askers:
    """Those who asked.

    Attributes:
        requesters: User ids of all whose words led to it, who wrote last first; never empty.
    """

    requesters: tuple[str, ...]

    def deciders(self, rules: Rules, named: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Return who may decide: the people of a policy, or else of the rules; less all who asked.

        Args:
            rules: The settings.
            named: Whom a policy names; names that are no ids let nobody decide.
        """
        approvers = _valid(named)
        if not named:
            approvers = rules.approvers
        if rules.self_approval:
            return approvers
        return (*approvers, *(f"{EXCLUDED}{user}" for user in self.requesters))

    def backups(self, rules: Rules, info: object) -> tuple[str, ...]:
        """Return who may decide, too, once it has escalated; less everybody who asked.

        Where a policy names who decides, the backup people of the settings are strangers: then
        only those whom a policy names are asked.

        Args:
            rules: The settings.
            info: What waits; a policy may name backup people in it.
        """
        names = rules.escalate_to
        if isinstance(info, CallInfo) and (info.backups or info.approvers):
            names = _valid(info.backups)
        if not rules.self_approval:
            names = tuple(name for name in names if name not in self.requesters)
        return tuple(dict.fromkeys(names))


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked(_Askers):
    """The thread and the requesters of what now waits.

    Attributes:
        thread: Where.
        subject: The message that began the turn: what a title of ours is about.
    """

    thread: Thread
    subject: str = ""


def approval_id_of(interrupt_id: str) -> str:
    """The approval's id: one per interrupt, and as hard to guess."""
    return f"apr_{uuid.UUID(interrupt_id).hex}"


def approval_from(
    context: InterruptContext, origin: Asked, rules: Rules, *, position: int, now_ms: int
) -> Approval:
    """Build the approval of an interrupt that waits for people: see `asks_people`.

    Args:
        context: What waits.
        origin: Where it waits, and who asked for it.
        rules: Frozen into the record; a policy may name approvers and backup people, and shorten
            the escalation and the expiry.
        position: Its order in the turn; the first is 0.
        now_ms: The time of the request.
    """
    brief, thread, info = brief_of(context.info), origin.thread, context.info
    remind_ms, expires_ms = _times(info, rules, now_ms)
    kind, masks = kind_at(context, brief), brief.ask.masks
    # The whole channel can answer a question: nobody is left who could be asked, too.
    backups = () if kind is Kind.QUESTION else origin.backups(rules, info)
    approval = Approval(
        approval_id=approval_id_of(context.id),
        kind=kind,
        thread_id=thread.thread_id,
        checkpoint_id=thread.checkpoint_id,
        interrupt_id=context.id,
        position=position,
        team_id=thread.team_id,
        channel_id=thread.channel_id,
        thread_ts=thread.thread_ts,
        requester_id=origin.requesters[0],
        address=str(context.address),
        tool=brief.tool,
        rule=brief.rule,
        # A title like “Rotate {name} with {password}” has values of the arguments in it.
        title=mask_title(_titled(brief, origin.subject), brief.arguments, masks),
        why=mask_words(mask_title(brief.why, brief.arguments, masks), brief.arguments),
        preview=mask_title(brief.preview, brief.arguments, masks),
        arguments_json=in_order(brief.arguments),
        form_json=brief.ask.to_text(),
        digest=brief.digest_at(thread.checkpoint_id, str(context.address)),
        approvers=origin.deciders(rules, _named(info)),
        self_approval=rules.self_approval,
        requesters=origin.requesters,
        created_ms=now_ms,
        expires_ms=expires_ms,
        remind_ms=remind_ms if remind_ms < expires_ms else None,
        backups=backups,
        escalate_ms=_escalation(info, rules, now_ms, expires_ms) if backups else None,
        due_ms=now_ms,
    )
    return _as_asked(approval, info, rules)


def _titled(brief: QuestionDraft, subject: str) -> str:
    """The title of a brief; where that is vague, behind what its turn is about."""
    lines = subject.strip().splitlines()
    if not brief.is_vague or not lines:
        return brief.title
    first = " ".join(lines[0].split())
    about = first if len(first) <= _SUBJECT else f"{first[:_SUBJECT].rstrip()}…"
    about = f"{about[:1].upper()}{about[1:]}"
    return say("card.about", subject=about, title=brief.title)


def _as_asked(approval: Approval, info: object, rules: Rules) -> Approval:
    """An approval under all that its question says of who decides, and how."""
    match info:
        case CallInfo():
            ruled = approval.changed(**_under_ruling(info, rules))
            terms, now_ms = info.terms, approval.created_ms
            return under_terms(ruled, terms, now_ms=now_ms) if terms else ruled
        case Question(asked_again=why) | StageInfo(asked_again=why):
            return approval.changed(asked_again=why)
        case InDoubtInfo(frozen=frozen, asked_again=why):
            asked = deciders_from(approval, frozen, now_ms=approval.created_ms)
            return asked.changed(asked_again=why)
        case _:
            return approval


def rebound(approval: Approval, info: CallInfo, rules: Rules, *, by: str, now_ms: int) -> Approval:
    """The same approval after an edit that brought its call under another ruling.

    Reminders and the escalation begin anew, and people are told at once; the deadline is never
    later than it was.

    Args:
        approval: Pending, as it was shown to who edited.
        info: What people have to be asked now.
        rules: The settings.
        by: Who edited.
        now_ms: The time of the edit.
    """
    brief, askers = brief_of(info), _Askers(requesters=requesters_of(approval))
    _, expires_ms = _times(info, rules, now_ms)
    expires_ms = min(expires_ms, approval.expires_ms)
    backups = askers.backups(rules, info)
    changed = approval.changed(
        rule=brief.rule,
        title=mask_title(brief.title, brief.arguments, brief.ask.masks),
        preview=mask_title(brief.preview, brief.arguments, brief.ask.masks),
        arguments_json=in_order(brief.arguments),
        form_json=brief.ask.to_text(),
        digest=brief.digest,
        approvers=askers.deciders(rules, _named(info)),
        self_approval=rules.self_approval,
        backups=backups,
        expires_ms=expires_ms,
        remind_ms=now_ms,
        escalate_ms=_escalation(info, rules, now_ms, expires_ms) if backups else None,
        **_under_ruling(info, rules),
    )
    original = approval.original_json or approval.arguments_json
    changed = changed.changed(edited_by=by, original_json=original)
    if not info.terms:
        return changed
    changed = under_terms(changed, info.terms, now_ms=now_ms)
    expires_ms = min(changed.expires_ms, approval.expires_ms)
    return changed.changed(expires_ms=expires_ms, remind_ms=now_ms)


class _Deciders(Part):
    """The people who decide about a call, as the note of its start has them."""

    approvers: tuple[str, ...] | None = None
    backups: tuple[str, ...] = ()
    members: Mapping[str, tuple[str, ...]] | None = None
    requesters: tuple[str, ...] = ()
    self_approval: bool = False
    terms: str = ""
    approved: PriorApproval | None = None


def deciders_of(approval: Approval) -> dict[str, Json]:
    """Return the people who decide about a call, for the note of its start."""
    deciders = _Deciders(
        approvers=approval.approvers,
        backups=approval.backups,
        members=approval.members,
        requesters=requesters_of(approval),
        self_approval=approval.self_approval,
        terms=approval.terms_json,
        approved=_approved(approval),
    )
    return deciders.model_dump(mode="json", exclude_defaults=True)


def _approved(approval: Approval) -> PriorApproval | None:
    """The name and time of who let a call start; at first, where it ran again after a doubt."""
    if approval.kind is Kind.DOUBT:
        return approval.prior_approval
    decision = approval.decision
    if decision is None or not decision.by:
        return None
    voters = [one.by for one in approval.votes if one.choice == APPROVE]
    by = [*dict.fromkeys([decision.by, *voters])][:_MOST_APPROVED]
    return PriorApproval(by=tuple(by), at_ms=decision.at_ms)


def deciders_from(approval: Approval, frozen: Mapping[str, Json], *, now_ms: int = 0) -> Approval:
    """The same approval, decided by those who were noted when the call started.

    Where nothing was, or what was noted is damaged, it stays with the people of the settings.
    """
    try:
        noted = _Deciders.model_validate(dict(frozen), strict=False)  # its lists are no tuples
    except ValueError:
        return approval
    # Whoever asked since is no decider, either.
    requesters = tuple(dict.fromkeys((*noted.requesters, *requesters_of(approval))))
    asked = approval.changed(prior_approval=noted.approved)
    if noted.terms:
        asked = under_terms(asked, noted.terms, now_ms=now_ms)
        return asked.changed(members=noted.members, requesters=requesters)
    if noted.approvers is None:
        return asked
    return asked.changed(
        approvers=noted.approvers,
        backups=noted.backups,
        members=noted.members,
        requesters=requesters,
        self_approval=noted.self_approval,
        escalate_ms=approval.escalate_ms if noted.backups else None,
    )


def _times(info: object, rules: Rules, now_ms: int) -> tuple[int, int]:
    """Return the times of reminder and expiry; a policy can only make the wait shorter."""
    remind, expire = rules.remind_after, rules.expire_after
    if isinstance(info, CallInfo):
        remind = info.remind_in if info.remind_in is not None else remind
        expire = min(expire, info.expires_in) if info.expires_in is not None else expire
    nothing = timedelta()
    return (
        now_ms + milliseconds(max(remind, nothing)),
        now_ms + milliseconds(max(expire, nothing)),
    )


def _escalation(info: object, rules: Rules, now_ms: int, expires_ms: int) -> int | None:
    """Return the time to ask the backup people; None for never. A policy can make it sooner."""
    found = [rules.escalate_after, info.escalate_in if isinstance(info, CallInfo) else None]
    waits = [max(wait, timedelta()) for wait in found if wait is not None]
    escalate_ms = now_ms + milliseconds(min(waits)) if waits else expires_ms
    return escalate_ms if escalate_ms < expires_ms else None


def _named(info: object) -> tuple[str, ...]:
    return info.approvers if isinstance(info, CallInfo) else ()


def _under_ruling(info: CallInfo, rules: Rules) -> dict[str, Any]:
    """Return a record's fields for the ruling that people are asked under, and its history."""
    return {
        "ruling_json": info.ruling,
        "terms_json": info.terms,
        "counted": tuple(info.counted),
        "editors_excluded": info.exclude_editors or rules.exclude_editors,
        "edited_by": info.edited_by,
        "editors": tuple(info.editors),
        "original_json": in_order(info.original) if info.original is not None else "",
        "asked_again": info.asked_again,
    }


def unknown_names(info: object) -> list[str]:
    """Return the names in place of approvers in a policy that are no id of anybody."""
    named = info.approvers if isinstance(info, CallInfo) else ()
    return [name for name in named if name not in _valid(named)]


def _valid(names: Sequence[str]) -> tuple[str, ...]:
    """Those of the names that a policy gives that can be somebody."""
    return tuple(name for name in names if _APPROVER.fullmatch(name))
