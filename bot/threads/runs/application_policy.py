"""Adapter from the runtime's policy port to the current policy.

Each call is judged by the policy file in force at that moment. The runtime keeps the terms of calls
that are already being approved.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Protocol, TypeAlias, assert_never

from agents import AgentError
from agents.core.address import Address
from agents.gates.rulings import Judgement
from agents.policy.base import Allow, Ask, Deny, PolicyCall, Ruling
from bot.audit.acts import Act
from bot.audit.entries import TakesEntries, call_key, note
from bot.errors import DirectoryError
from bot.policy.evaluation.asking import AskingError, defaults_of, terms_of
from bot.policy.evaluation.code_policies import (
    gate_of,
    rulings_in,
    strangers,
    with_code,
    without_gates,
)
from bot.policy.evaluation.context import Members, PolicyQuestion, ProgramFacts, ToolFacts
from bot.policy.evaluation.evaluate import DEFAULT, PolicyEvaluator
from bot.policy.evaluation.merge import Permit, Refusal, Verdict
from bot.policy.model import PolicyFile
from bot.policy.rotation import on_duty
from bot.ports.people import MOST_MEMBERS, Directory
from bot.ports.policy import CurrentPolicy, NoPolicy
from bot.ports.process import Clock
from bot.records.approval import Approval
from bot.records.origin import RequestDoor, RequestOrigin
from bot.records.terms import Group, Terms, TermsError
from bot.redaction.masks import Names
from bot.stores import Stores
from bot.threads.requesters import Requesters
from bot.threads.runs.grant_uses import GrantCheck, NewCall
from bot.threads.thread_pass import ThreadPass
from bot.words import say
from storage.thread_ids import channel_of, thread_of


class InForce(Protocol):
    """The policy in force now."""

    @property
    def rulebook(self) -> PolicyEvaluator:
        """Return the rules."""
        ...

    @property
    def file_hash(self) -> str:
        """Return the hash of the policy file; empty without a file."""
        ...

    @property
    def is_settings(self) -> bool:
        """Whether the policy is derived from the settings; it allows all ungated calls."""
        ...


@dataclass(frozen=True, slots=True)
class GroupMembers:
    """Looks up the members of a group, for conditions on requesters; see `Members`."""

    directory: Directory
    clock: Clock

    async def __call__(self, group: Group) -> frozenset[str] | None:
        """Return the user ids of a group's members; None if unknown.

        Unknown for channels that are too large to decide, and for the thread's channel. Conditions
        on unknown groups are undecided.
        """
        if group.here:
            return None
        try:
            on_duty_now = on_duty(group.rotation, self.clock()) if group.rotation else None
            usergroups, rooms = await asyncio.gather(
                asyncio.gather(*map(self.directory.group_members, group.usergroups)),
                asyncio.gather(*map(self.directory.channel_members, group.channels)),
            )
        except (DirectoryError, TermsError):
            return None
        if any(len(room) > MOST_MEMBERS for room in rooms):
            return None
        duty = [on_duty_now] if on_duty_now else []
        return frozenset((*group.users, *duty)).union(*usergroups, *rooms)


@dataclass(frozen=True, slots=True, kw_only=True)
class BotPolicy:
    """Judges all calls of all agents by the current policy; see `agents.policy.house`.

    Args:
        storage: The database.
        audit: Records what a rule allows or denies.
        clock: The time now.
        members: Looks groups up, for conditions on requesters.
        in_force: Returns the policy in force, without waiting.
        grants: Finds standing grants, if any.
        patience: Waits before a call that is about to start is judged again, if supported.
    """

    storage: Stores
    audit: TakesEntries
    clock: Clock
    members: Members
    in_force: Callable[[], InForce]
    grants: GrantCheck | None = None
    patience: Callable[[Sequence[str], int], Awaitable[bool]] | None = None

    @property
    def allows_ungated(self) -> bool:
        """Whether calls without a gate are allowed."""
        return self.in_force().is_settings

    async def rule(self, call: PolicyCall, code: Ruling | None, *, inside: bool) -> Ruling:
        """Judge a call; see `ApplicationPolicy`."""
        held = self.in_force()
        rulebook = held.rulebook
        tool = ToolFacts(name=call.tool, tags=call.tags, risk=call.risk)
        rulings = rulings_in(code)
        origin = await self.storage.threads.origin_of(thread_of(call.thread))
        needs_requesters = any(rule.when.requester is not None for rule in rulebook.file.rules)
        question = PolicyQuestion(
            tool=tool,
            arguments=call.arguments,
            requesters=await self._all_requesters(call) if needs_requesters else (),
            channel=channel_of(thread_of(call.thread)),
            agent=next(reversed(Address.parse(call.address).agents), ""),
            # Settings demand no approval by themselves: they name approvers for gates in code.
            gated=_asks(rulings) if held.is_settings else call.gated,
            door=origin.door,
            program=_program_of(origin),
            is_unattended=origin.door is not RequestDoor.SLACK,
        )
        if inside or (held.is_settings and _asks(without_gates(rulings))):
            question = replace(question, tool=_as_asked(tool, rulings))
            file_alone = (await rulebook.judge(question, self.members)).ruling
            verdict = _of_code(rulebook, tool, file_alone, rulings)
        else:
            verdict = (await rulebook.judge(question, self.members, code)).ruling
        return _ruling(verdict, rulebook, tool, unknown=strangers(rulings))

    async def wait(self, decisions: Sequence[str], tries: int) -> bool:
        """Wait for a temporary error to pass; see `ApplicationPolicy`."""
        return self.patience is not None and await self.patience(decisions, tries)

    async def grant(self, call: PolicyCall, terms: str) -> Allow | None:
        """Find a standing grant; see `ApplicationPolicy`. `GrantUses` uses it at the start."""
        if self.grants is None:
            return None
        asked = Terms.from_text(terms)
        if asked.grants is None:
            return None
        new = NewCall(
            call=call,
            terms=asked,
            thread_id=thread_of(call.thread),
            requesters=await self._all_requesters(call),
            key=call_key(call.thread, call.address, call.arguments),
        )
        grant = await self.grants.find_grant(new)
        if grant is None:
            return None
        return Allow(rule=asked.rule, terms=terms, grant=grant.grant_id)

    async def note(self, call: PolicyCall, ruling: Allow | Deny) -> None:
        """Record that a rule allows or denies a call. The use of a grant is recorded at the start.

        Raises:
            StorageError: The entry could not be written.
        """
        if isinstance(ruling, Allow) and ruling.grant:
            return
        key = call_key(call.thread, call.address, call.arguments)
        act = Act.ALLOWED if isinstance(ruling, Allow) else Act.DENIED
        await note(
            self.audit,
            act,
            key=key,
            at_ms=self.clock(),
            about=thread_of(call.thread),
            checkpoint=call.thread,
            address=call.address,
            tool=call.tool,
            call=call.call_id,
            masks=Names(secret=call.secret, shown=call.shown),
            arguments=dict(call.arguments),
            rule=ruling.rule,
            reason="" if isinstance(ruling, Allow) else ruling.reason,
            policy=self.in_force().file_hash,
        )

    async def _all_requesters(self, call: PolicyCall) -> tuple[str, ...]:
        thread = await self.storage.threads.get(thread_of(call.thread))
        return await Requesters(self.storage).of(ThreadPass(thread=thread))


def _program_of(origin: RequestOrigin) -> ProgramFacts | None:
    """Return the program that started a thread. Tags and risk of calls are the house's own."""
    if origin.door in {RequestDoor.SLACK, RequestDoor.TRIGGER, RequestDoor.SCHEDULE}:
        return None
    claimed = {origin.requested_for} - {""} if origin.claimed else set()
    return ProgramFacts(name=origin.program_name, is_trusted=True, claimed=frozenset(claimed))


def _asks(code: Sequence[Ruling]) -> bool:
    return any(isinstance(ruling, Ask) for ruling in code)


def _as_asked(tool: ToolFacts, code: Sequence[Ruling]) -> ToolFacts:
    """Return the tool, gated by the decisions of code that name no approvers."""
    silent = [ruling for ruling in code if isinstance(ruling, Ask) and not ruling.approvers]
    return replace(tool, gate=gate_of(tool, silent)) if silent else tool


def _of_code(
    rulebook: PolicyEvaluator, tool: ToolFacts, file_alone: Verdict, code: Sequence[Ruling]
) -> Verdict:
    """Return the code's own decision, with the file's approvers if it names none.

    Used if an outer gate has approved the file's decision, or the file only serves code. Denials
    always apply.
    """
    if isinstance(file_alone, Refusal) or not code:
        return file_alone
    tool = replace(tool, gate=gate_of(tool, code))
    base = defaults_of(rulebook.file, tool)
    if not base.stages and isinstance(file_alone, Terms):
        base = file_alone.model_copy(update={"rules": (), "edit": base.edit})
    rules = without_gates(code)
    gated = len(rules) < len(code)
    try:
        return with_code([Permit(())], rules, gated=gated, defaults=lambda: base)
    except AskingError as error:
        return Refusal((), (say("reason.nobody_asked", why=error),))


def _ruling(
    verdict: Verdict, rulebook: PolicyEvaluator, tool: ToolFacts, *, unknown: tuple[str, ...]
) -> Ruling:
    match verdict:
        case Permit(names=names):
            return Allow(rule=" + ".join(names), terms=_doubt_terms(rulebook, tool, names))
        case Refusal(names=names):
            return Deny(verdict.reason, rule=" + ".join(names), failed=verdict.failed)
        case Terms():
            return Ask(
                kind="approval" if verdict.edit == "no" else "review",
                rule=verdict.rule or "policy",
                reason=verdict.reason,
                approvers=unknown,  # unknown ids: the request then ends as undecidable
                expires_in=timedelta(seconds=verdict.expires_s),
                remind_in=timedelta(seconds=verdict.remind_s) if verdict.remind_s else None,
                exclude_editors="editors" in verdict.exclude,
                terms=verdict.text,
                bound=verdict.digest,
            )
        case _:
            assert_never(verdict)


def _doubt_terms(rulebook: PolicyEvaluator, tool: ToolFacts, names: tuple[str, ...]) -> str:
    """Return the terms of an allowed call in doubt; empty without default approvers."""
    try:
        terms = defaults_of(rulebook.file, tool)
    except AskingError:
        return ""
    return terms.model_copy(update={"rules": names}).text if terms.stages else ""


JudgeAnew: TypeAlias = Callable[[Approval, dict[str, Any]], Awaitable[Judgement | None]]
"""Judges a pending call by the current policy; returns None if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyOfCards:
    """Returns what the policy now denies to pending approvals; see `CurrentPolicy`.

    Args:
        in_force: Returns the policy in force, without waiting.
        judge: Judges calls.
    """

    in_force: Callable[[], InForce]
    judge: JudgeAnew

    @property
    def file_hash(self) -> str:
        """Return the file's hash; see `CurrentPolicy`."""
        return self.in_force().file_hash

    @property
    def timezone(self) -> str:
        """Return the time zone; see `CurrentPolicy`."""
        return self.in_force().rulebook.file.timezone or ""

    def groups(self) -> Mapping[str, Group]:
        """Return the group definitions of the file."""
        return self.in_force().rulebook.groups

    def defaults(self, channel_id: str) -> Terms | None:
        """Return default terms; see `CurrentPolicy`. People may edit if a form permits it."""
        policy, thing = self.in_force(), ToolFacts(name="", gate="review")
        file = policy.rulebook.file
        try:
            if policy.is_settings:  # the single rule of the settings names approvers and channels
                return next(iter(_asked(file, thing, channel_id)), None)
            terms = defaults_of(file, thing)
        except AskingError:
            return None
        return terms.model_copy(update={"rules": (DEFAULT,)}) if terms.stages else None

    async def denied(self, approval: Approval) -> str:
        """Judge the call again if the policy has changed since the request.

        Without a call, people decide; the call is judged again before it starts.
        """
        if not approval.tool or approval.policy_file == self.in_force().file_hash:
            return ""
        try:
            judgement = await self.judge(approval, approval.arguments)
        except (AgentError, ValueError):
            return ""
        if judgement is not None and judgement.failed:
            raise DirectoryError("a policy failed")
        return judgement.denied if judgement is not None else ""


def _asked(file: PolicyFile, thing: ToolFacts, channel_id: str) -> Iterator[Terms]:
    """Yield the terms of the rules that require approval in a channel, in order."""
    for rule in file.rules:
        places, ask = rule.when.channel, rule.then.ask
        if ask is not None and (not places or channel_id in places):
            yield terms_of(file, ask, rule.name, thing)


def policy_of_cards(in_force: Callable[[], InForce] | None, judge: JudgeAnew) -> CurrentPolicy:
    """Wrap the policy in force; return no policy if only gates in code ask."""
    return NoPolicy() if in_force is None else PolicyOfCards(in_force=in_force, judge=judge)
