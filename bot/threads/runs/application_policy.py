"""The policy in force, as the runtime asks it: judges each call, and notes what it settles.

What it says of a call is worked out anew each time, from the file in force at that moment; that a
card keeps the terms that it was asked under is the runtime's business.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Protocol, assert_never

from agents.policy.base import GATE_RULE, Allow, Ask, Deny, PolicyCall, Ruling
from bot.approvals.grants import agent_at
from bot.audit.acts import Act
from bot.audit.entries import TakesEntries, call_key, note
from bot.errors import DirectoryError
from bot.people.requesters import Requesters
from bot.people.thread_pass import ThreadPass
from bot.policy.evaluation.asking import AskingError, defaults_of
from bot.policy.evaluation.code_policies import gate_of, strangers, with_code
from bot.policy.evaluation.context import Members, PolicyQuestion, ToolFacts
from bot.policy.evaluation.evaluate import PolicyEvaluator
from bot.policy.evaluation.merge import Permit, Refusal, Verdict
from bot.policy.rotation import on_duty
from bot.policy.terms import Group, Terms, TermsError
from bot.ports.people import MOST_MEMBERS, Directory
from bot.ports.process import Clock
from bot.redaction.masks import Names
from bot.threads.runs.grant_uses import GrantCheck, NewCall, UseLines
from bot.words import say
from storage.base import Storage


class InForce(Protocol):
    """The policy that is in force now."""

    @property
    def rulebook(self) -> PolicyEvaluator:
        """Its rules."""
        ...

    @property
    def file_hash(self) -> str:
        """Hash of its file; empty where there is none."""
        ...

    @property
    def is_settings(self) -> bool:
        """Whether it is made of the settings: then it allows all calls of tools without a gate."""
        ...


@dataclass(frozen=True, slots=True)
class GroupMembers:
    """Looks up the members of a group, for conditions on requesters; see `Members`."""

    directory: Directory
    clock: Clock

    async def __call__(self, group: Group) -> frozenset[str] | None:
        """The user ids of all its members; None when that is not known.

        Of a channel with more members than decide anywhere nobody says who is in the group, and of
        the channel of a thread not either: what depends on that is undecided.
        """
        if group.here:
            return None
        try:
            on_duty_now = on_duty(group.rotation, self.clock()) if group.rotation else None
            found, rooms = await asyncio.gather(
                asyncio.gather(*map(self.directory.group_members, group.usergroups)),
                asyncio.gather(*map(self.directory.channel_members, group.channels)),
            )
        except (DirectoryError, TermsError):
            return None
        if any(len(room) > MOST_MEMBERS for room in rooms):
            return None
        duty = [on_duty_now] if on_duty_now else []
        return frozenset((*group.users, *duty)).union(*found, *rooms)


@dataclass(frozen=True, slots=True, kw_only=True)
class BotPolicy:
    """Judges all calls of all agents by the policy in force; see `agents.policy.house`.

    Args:
        storage: Where records are kept.
        audit: Where it is noted what a rule lets run, or does not.
        clock: The time now.
        members: Looks groups up, for conditions on requesters.
        in_force: Gives the policy in force, without waiting.
        grants: Uses standing grants; None where there are none.
        uses: Says in the thread what a standing grant lets run; None where there are none.
        patience: Waits before a call is judged once more that is about to start; None where none
            does. See `PatientPolicy`.
    """

    storage: Storage
    audit: TakesEntries
    clock: Clock
    members: Members
    in_force: Callable[[], InForce]
    grants: GrantCheck | None = None
    uses: UseLines | None = None
    patience: Callable[[Sequence[str], int], Awaitable[bool]] | None = None

    @property
    def allows_ungated(self) -> bool:
        """See `BotPolicy`."""
        return self.in_force().is_settings

    async def rule(self, call: PolicyCall, code: Ruling | None, *, inside: bool) -> Ruling:
        """Judge a call; see `ApplicationPolicy`."""
        held = self.in_force()
        rulebook = held.rulebook
        tool = ToolFacts(name=call.tool, tags=call.tags, risk=call.risk)
        rulings = () if code is None else (code,)
        question = PolicyQuestion(
            tool=tool,
            arguments=call.arguments,
            requesters=await self._requesters(rulebook, call),
            channel=_channel_of(call),
            agent=agent_at(call.address),
            # The settings ask nothing by themselves: they name people for code that asks.
            gated=isinstance(code, Ask) if held.is_settings else call.gated,
        )
        if inside or (held.is_settings and _is_rule(code)):
            question = replace(question, tool=_as_asked(tool, code))
            file_alone = (await rulebook.judge(question, self.members)).ruling
            verdict = _of_code(rulebook, tool, file_alone, code)
        else:
            verdict = (await rulebook.judge(question, self.members, rulings)).ruling
        return _ruling(verdict, rulebook, tool, unknown=strangers(rulings))

    async def wait(self, decisions: Sequence[str], tries: int) -> bool:
        """Wait, where a passing fault may be over then; see `PatientPolicy`."""
        return self.patience is not None and await self.patience(decisions, tries)

    async def grant(self, call: PolicyCall, terms: str) -> Allow | None:
        """Use a standing grant; see `GrantingPolicy`."""
        if self.grants is None:
            return None
        asked = Terms.from_text(terms)
        if asked.grants is None:
            return None
        new = NewCall(
            call=call,
            terms=asked,
            thread_id=_thread_of(call),
            requesters=await self._all_requesters(call),
            key=call_key(call.thread, call.address, call.arguments),
        )
        grant = await self.grants.use(new)
        if grant is None:
            return None
        return Allow(rule=asked.rule, terms=terms, grant=grant.grant_id)

    async def note(self, call: PolicyCall, ruling: Allow | Deny) -> None:
        """Put on record that a call starts, or does not run, because of a rule.

        Raises:
            StorageError: It could not be written.
        """
        grant = ruling.grant if isinstance(ruling, Allow) else ""
        key = call_key(call.thread, call.address, call.arguments)
        act = Act.ALLOWED if isinstance(ruling, Allow) else Act.DENIED
        await note(
            self.audit,
            Act.GRANT_USED if grant else act,
            key=key,
            at_ms=self.clock(),
            about=_thread_of(call),
            checkpoint=call.thread,
            address=call.address,
            tool=call.tool,
            call=call.call_id,
            masks=Names(secret=call.secret, shown=call.shown),
            arguments=dict(call.arguments),
            rule=ruling.rule,
            grant=grant,
            reason="" if isinstance(ruling, Allow) else ruling.reason,
            policy=self.in_force().file_hash,
        )
        if grant and self.uses is not None:
            await self.uses.tell(grant, call, key)

    async def _requesters(self, rulebook: PolicyEvaluator, call: PolicyCall) -> tuple[str, ...]:
        """Everybody whose words led to the call; looked up only where a rule wants to know."""
        if all(entry.when.requester is None for entry in rulebook.file.rules):
            return ()
        return await self._all_requesters(call)

    async def _all_requesters(self, call: PolicyCall) -> tuple[str, ...]:
        thread = await self.storage.threads.get(_thread_of(call))
        return await Requesters(self.storage).of(ThreadPass(thread=thread))


def _is_rule(code: Ruling | None) -> bool:
    """Whether code asks by a rule of its own, and not as a gate that always asks."""
    return isinstance(code, Ask) and not (code.rule == GATE_RULE and not code.approvers)


def _as_asked(tool: ToolFacts, code: Ruling | None) -> ToolFacts:
    """The tool with the gate that code makes of its ruling, where it names nobody itself."""
    is_silent = isinstance(code, Ask) and not code.approvers
    return replace(tool, gate=gate_of(tool, (code,))) if code and is_silent else tool


def _of_code(
    rulebook: PolicyEvaluator, tool: ToolFacts, file_alone: Verdict, code: Ruling | None
) -> Verdict:
    """The verdict of code alone, by people of the file where it names nobody.

    People have agreed to the file's own ruling in a gate around, or it only serves code; a denial
    stands in any case.
    """
    if isinstance(file_alone, Refusal) or code is None:
        return file_alone
    tool = replace(tool, gate=gate_of(tool, (code,)))
    base = defaults_of(rulebook.file, tool)
    if not base.stages and isinstance(file_alone, Terms):
        base = file_alone.model_copy(update={"rules": (), "edit": base.edit})
    is_gate = isinstance(code, Ask) and not _is_rule(code)
    rulings = () if is_gate else (code,)
    try:
        return with_code([Permit(())], rulings, gated=is_gate, defaults=lambda: base)
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
                approvers=unknown,  # nobody has these ids: who asks says so, and asks nobody
                expires_in=timedelta(seconds=verdict.expires_s),
                remind_in=timedelta(seconds=verdict.remind_s) if verdict.remind_s else None,
                exclude_editors="editors" in verdict.exclude,
                terms=verdict.to_text(),
                bound=verdict.digest,
            )
        case _:
            assert_never(verdict)


def _doubt_terms(rulebook: PolicyEvaluator, tool: ToolFacts, names: tuple[str, ...]) -> str:
    """The terms of a doubt about a call that rules allow; empty where no default names anybody."""
    try:
        terms = defaults_of(rulebook.file, tool)
    except AskingError:
        return ""
    return terms.model_copy(update={"rules": names}).to_text() if terms.stages else ""


def _thread_of(call: PolicyCall) -> str:
    return call.thread.rpartition("#")[0]


def _channel_of(call: PolicyCall) -> str:
    """The channel of the thread: its id is `team:channel:thread_ts`."""
    parts = _thread_of(call).split(":")
    return parts[1] if len(parts) > 1 else ""
