"""Programs start approved calls, and tell what came of them."""

from __future__ import annotations

import hashlib
import hmac
import string
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from agents.core.asking.infos import InDoubtInfo
from bot.api.callers import ApiCaller
from bot.api.canonical import call_digest as wire_digest
from bot.api.problems import ApiProblemError
from bot.api.requests import ProgramRequests
from bot.api.shapes import (
    ApiIntrospection,
    ApiProgram,
    ApiResult,
    ApiStart,
    ApiStarted,
    instant,
)
from bot.api.states import decided_arguments, digest_of, execution_id_of
from bot.approvals.changes import closed
from bot.approvals.execution import StartFacts, has_yes, why_not
from bot.approvals.program_runs import (
    NewRun,
    begun,
    consumed,
    decided_ms,
    delivered,
    doubt_id,
    due_ms_of_run,
    in_doubt,
    is_begun,
    is_of_another_start,
    is_replayed,
    lapsed,
    not_run,
    numbered,
    prolonged,
    reported,
    settled,
)
from bot.audit.acts import Act
from bot.audit.entries import decision_entries, note, request_entry
from bot.audit.invalidated import lapse_entry
from bot.clock import milliseconds
from bot.freezes.starts import Frozen, StartSwitch, scope_of_approval
from bot.ports.process import Clock, Spawn
from bot.questions.base import brief_of
from bot.questions.form import ask_of
from bot.questions.record import (
    NewRequest,
    Rules,
    deciders_from,
    kept_at_start,
    new_approval,
)
from bot.records.approval import Approval, ExecutionState, Kind
from bot.records.origin import ProgramCall
from bot.records.programs import ProgramRecord
from bot.redaction.mask import mask_text
from bot.stores import Stores
from bot.threads.runs.calls import FRESH
from bot.words import say
from storage.documents import update, update_or_none
from storage.errors import RecordNotFoundError

LONGEST_SUMMARY = 600
"""Most characters of a summary that are stored."""
_BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
_OUTCOMES = {
    "ran": ExecutionState.ENDED,
    "failed": ExecutionState.FAILED,
    "not_run": ExecutionState.FAILED,
}
_OTHER_START = "It is of another start, or lacks the token: the call was started more than once."
_OTHER_RESULT = "Another result is on record, and it stays."


class ChecksVotes(Protocol):
    """Checks a decision again, right before its call starts. It decides nothing."""

    async def gone_since(self, approval: Approval) -> bool:
        """Whether a counted voter has since lost the right; raises `DirectoryError`."""
        ...

    async def why_denied(self, approval: Approval) -> str:
        """Return why the policy now denies the call; empty if it does not."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramExecutions:
    """Starts the calls of programs, and records their ends.

    Args:
        storage: The database.
        requests: Reads requests of programs.
        votes: Checks the counted voters again.
        switch: Gives each start its number, unless a freeze covers the call.
        rules: The settings' rules.
        clock: The time now.
        spawn: Runs the update of a card in the background.
        changed: Called with each approval that was written here.
    """

    storage: Stores
    requests: ProgramRequests
    votes: Callable[[], ChecksVotes]
    switch: StartSwitch
    rules: Rules
    clock: Clock
    spawn: Spawn
    changed: Callable[[Approval], None]

    async def is_usable(self, approval: Approval) -> bool:
        """Whether the decision may be acted on at this moment."""
        if approval.kind is not Kind.APPROVAL or is_begun(approval):
            return False
        facts = StartFacts(now_ms=self.clock(), decided_ms=decided_ms(approval))
        if not has_yes(approval) or why_not(approval, facts):
            return False
        if await self.switch.covering(scope_of_approval(approval, _tags_of(approval))) is not None:
            return False
        if await self._is_stopped(approval) or await self._is_gone(approval):
            return False
        return not await self.votes().why_denied(approval)

    async def start(self, caller: ApiCaller, approval_id: str, asked: ApiStart) -> ApiStarted:
        """Let a program begin an approved call: the last write before the program acts.

        Raises:
            ApiProblemError: Why the call may not start. Nothing has started.
            DirectoryError: A look-up failed. Nothing has started.
            StorageError: Nobody knows. The same attempt gets the same answer.
        """
        approval = await self.requests.get(caller, approval_id)
        attempt = hashlib.sha256(asked.attempt.encode()).hexdigest()
        if not is_replayed(approval, attempt):
            approval = await self._begin(caller, approval, asked, attempt)
            is_replay = False
        else:
            is_replay = True
        if not approval.execution.number:
            approval = await self._number(approval, attempt)
        if not is_replayed(approval, attempt):  # overtaken before its number: it began nothing
            return await self.start(caller, approval_id, asked)
        run = approval.execution.program
        return ApiStarted(
            token=token_of(caller.program, approval_id, run.generation, asked.attempt),
            execution_id=execution_id_of(approval),
            generation=run.generation,
            deadline=run.deadline_ms,
            replayed=is_replay,
            arguments=decided_arguments(approval),
        )

    async def report(self, caller: ApiCaller, approval_id: str, result: ApiResult) -> Approval:
        """Record the result of a started call, or that it still runs; repeating changes nothing.

        Raises:
            ApiProblemError: The call was not started, or another result is on record.
        """
        approval = await self.requests.get(caller, approval_id)
        if result.outcome is not None:
            approval = await self._report(caller, approval, result)
        if result.delivered:
            changed = await update(self.storage.approvals, approval_id, delivered)
            approval = changed or await self.requests.get(caller, approval_id)
        return approval

    async def use_up(self, caller: ApiCaller, approval_id: str) -> bool:
        """Use a request up, so that the same call asks anew; False if it was used up before.

        Raises:
            ApiProblemError: It is another program's.
        """
        await self.requests.get(caller, approval_id)
        return await update(self.storage.approvals, approval_id, delivered) is not None

    async def introspect(
        self, caller: ApiCaller, *, token: str, digest: str, consume: bool
    ) -> ApiIntrospection:
        """Return whether a token proves a start of this call, and use it up if `consume`."""
        hashed = hashlib.sha256(token.encode()).hexdigest()
        page = await self.storage.approvals.find({"execution.program.token": hashed}, limit=1)
        approval = next(iter(page.documents), None)
        nothing = ApiIntrospection(active=False)
        if approval is None or approval.origin.program != caller.program.id:
            return nothing
        execution = approval.execution
        is_active = (
            execution.state is ExecutionState.STARTED
            and bool(execution.number)
            and self.clock() < execution.program.deadline_ms
            and hmac.compare_digest(digest_of(approval), digest)
        )
        if not is_active:
            return nothing
        if consume:
            write = partial(consumed, token=hashed)
            if await update(self.storage.approvals, approval.approval_id, write) is None:
                return nothing
        return ApiIntrospection(
            active=True,
            request=approval.approval_id,
            program=ApiProgram(id=approval.origin.program, name=approval.origin.program_name),
            execution_id=execution_id_of(approval),
            deadline=execution.program.deadline_ms,
            consumed=consume or execution.program.is_consumed,
        )

    # What the worker of approvals asks; see `bot.ports.programs`.

    async def close_request(self, approval: Approval) -> None:
        """Take a decision whose audit is written: settle a doubt, and close the request."""
        if approval.kind is Kind.DOUBT:
            await self._settle(approval)
        await update_or_none(self.storage.approvals, approval.approval_id, closed)
        self.changed(approval)

    def due_ms(self, approval: Approval) -> int | None:
        """Return when the call ends by itself; None if it waits for nothing."""
        return due_ms_of_run(approval)

    async def overdue(self, approval: Approval) -> Approval:
        """End the call of a program that was not started, or not reported, in time."""
        now, due_ms = self.clock(), due_ms_of_run(approval)
        if due_ms is not None and now >= due_ms:
            if approval.execution.state is ExecutionState.STARTED:
                return await self._doubt(approval)
            write = partial(lapsed, text=say("reason.program_late"), now_ms=now)
            name, store = approval.approval_id, self.storage.approvals
            changed = await update(store, name, write, writes_due=True)
            if changed is not None:
                self.changed(changed)
            approval = changed or approval
        execution, is_from_program = approval.execution, isinstance(approval.asker, ProgramCall)
        if is_from_program and execution.state is ExecutionState.LAPSED:  # who wrote it may be dead
            at_ms, why = execution.at_ms, execution.text
            await self.storage.audit.append(lapse_entry(approval, at_ms, why=why))
        return approval

    # Inside.

    async def _begin(
        self, caller: ApiCaller, approval: Approval, asked: ApiStart, attempt: str
    ) -> Approval:
        name = approval.approval_id
        await self._check(approval, asked)
        facts = StartFacts(
            now_ms=self.clock(),
            decided_ms=decided_ms(approval),
            runner=asked.runner,
            mode=approval.execution.mode,
            repeats=approval.execution.state is not ExecutionState.READY,
        )
        generation = approval.execution.program.generation + 1
        token = token_of(caller.program, name, generation, asked.attempt)
        asker = approval.asker
        longest_s = asker.run_timeout_s if isinstance(asker, ProgramCall) else 0
        new = NewRun(
            attempt=attempt,
            token=hashlib.sha256(token.encode()).hexdigest(),
            run_timeout_ms=(asked.run_timeout or longest_s) * 1_000,
        )
        write = partial(begun, facts=facts, new=new)
        changed = await update(self.storage.approvals, name, write)
        if changed is None:
            newest = await self.requests.get(caller, name)
            if is_replayed(newest, attempt):
                return newest
            await self._check(newest, asked)
            raise _already(newest)
        if changed.execution.program.generation != generation:  # another start came in between
            return await self._begin(caller, changed, asked, attempt)
        return changed

    async def _check(self, approval: Approval, asked: ApiStart) -> None:
        """Refuse a start, in the order in which the specification names the reasons."""
        name = approval.approval_id
        if approval.kind is not Kind.APPROVAL or not has_yes(approval):
            detail = f"The request is {approval.status}. Nothing may start."
            raise ApiProblemError("not-approved", detail, request=name)
        if approval.execution.mode == "none":
            detail = "Its execution is none: look at decision.usable instead."
            raise ApiProblemError("not-approved", detail, request=name)
        wanted = wire_digest(name, approval.tool, decided_arguments(approval))
        if not hmac.compare_digest(wanted, asked.digest):
            detail = "Run the arguments of the decision, and make the digest of those."
            raise ApiProblemError("digest-mismatch", detail, request=name)
        if is_begun(approval):
            raise _already(approval)
        await self._check_now(approval)

    async def _check_now(self, approval: Approval) -> None:
        """Refuse a start that a freeze, the time, the people or the policy forbid by now."""
        name = approval.approval_id
        frozen = await self.switch.covering(scope_of_approval(approval, _tags_of(approval)))
        if frozen is not None:
            raise _frozen(approval, frozen)
        repeats = approval.execution.state is not ExecutionState.READY
        now, decided = self.clock(), decided_ms(approval)
        if why := why_not(approval, StartFacts(now_ms=now, decided_ms=decided, repeats=repeats)):
            raise ApiProblemError("decision-lapsed", why, request=name)
        if not repeats and await self._is_stopped(approval):
            raise ApiProblemError("decision-lapsed", say("reason.grant_stopped"), request=name)
        if not repeats and await self._is_gone(approval):
            detail = "A person who approved it has lost the right since."
            raise ApiProblemError("decider-not-entitled", detail, request=name)
        if why := await self.votes().why_denied(approval):
            raise ApiProblemError("decision-lapsed", why, request=name)

    async def _is_stopped(self, approval: Approval) -> bool:
        """Whether the standing grant that allows the call was stopped, or deleted, since."""
        grant = approval.decision.grant if approval.decision is not None else ""
        try:
            return bool(grant) and (await self.storage.grants.get(grant)).ended_ms is not None
        except RecordNotFoundError:
            return True

    async def _is_gone(self, approval: Approval) -> bool:
        """Whether a person who let the call run, or run again, has lost the right."""
        decision, rerun_by = approval.decision, approval.execution.program.rerun_by
        age_ms = abs(self.clock() - decided_ms(approval))
        if decision is None or age_ms <= milliseconds(FRESH):
            return False
        if decision.grant:
            grant = await self.storage.grants.get(decision.grant)
            approval = await self.storage.approvals.get(grant.approval_id)
        asked = [approval, *([await self.storage.approvals.get(rerun_by)] if rerun_by else [])]
        for voted in asked:
            if (voted.votes or voted.kind is Kind.DOUBT) and await self.votes().gone_since(voted):
                return True
        return False

    async def _number(self, approval: Approval, attempt: str) -> Approval:
        """Take the start number; without it, nothing has started."""
        name = approval.approval_id
        number = await self.switch.take_number(scope_of_approval(approval, _tags_of(approval)))
        if isinstance(number, Frozen):
            await update(self.storage.approvals, name, partial(not_run, attempt=attempt))
            raise _frozen(approval, number)
        now = self.clock()
        is_first = approval.execution.program.generation == 1
        if approval.decision is not None and is_first:  # the process of the last vote may have died
            entries = decision_entries(approval, approval.decision)
            await self.storage.audit.append(*entries)
        await note(
            self.storage.audit,
            Act.STARTED,
            key=f"{name}:{approval.execution.program.generation}",
            at_ms=now,
            about=approval,
            number=number,
            runner=approval.execution.runner,
            program=approval.origin.program_name,
            masks=ask_of(approval).masks,
            arguments=decided_arguments(approval),
        )
        write = partial(numbered, number=number, attempt=attempt, now_ms=now)
        changed = await update(self.storage.approvals, name, write, writes_due=True)
        if changed is None:  # the same attempt at the same moment, or it was overtaken
            changed = await self.storage.approvals.get(name)
        self._show(changed)
        return changed

    async def _report(self, caller: ApiCaller, approval: Approval, result: ApiResult) -> Approval:
        name, token = approval.approval_id, result.token
        if not approval.execution.program.generation:
            detail = "Call start first; nothing has started."
            raise ApiProblemError("not-started", detail, request=name)
        proof = hashlib.sha256(token.encode()).hexdigest() if token is not None else None
        # `unknown` ends nothing, so a program that lost its token in a crash has people asked.
        is_bare = result.outcome == "unknown" and token is None
        if not is_bare and is_of_another_start(approval, proof):
            raise await self._refused(approval, result, _OTHER_START)
        if result.outcome == "unknown":
            return await self._not_known(approval, result)
        write = self._change_of(approval, result)

        def write_if_current(now: Approval) -> Approval | None:
            return None if is_of_another_start(now, proof) else write(now)

        changed = await update(self.storage.approvals, name, write_if_current, writes_due=True)
        if changed is not None:
            if result.outcome != "running":
                await self._note_end(changed, result)
            self._show(changed)
            return changed
        newest = await self.requests.get(caller, name)
        if _is_as_told(newest, result):
            await self._note_end(newest, result)  # who wrote it may be dead
            return newest
        is_other = is_of_another_start(newest, proof)
        raise await self._refused(newest, result, _OTHER_START if is_other else _OTHER_RESULT)

    def _change_of(
        self, approval: Approval, result: ApiResult
    ) -> Callable[[Approval], Approval | None]:
        """Return the change that a result makes."""
        text, now, asker = _summary(approval, result), self.clock(), approval.asker
        if result.outcome == "running":
            timeout_s = asker.run_timeout_s if isinstance(asker, ProgramCall) else 0
            return partial(prolonged, text=text, now_ms=now, run_timeout_ms=timeout_s * 1_000)
        return partial(
            reported,
            state=_OUTCOMES[result.outcome or ""],
            text=text,
            now_ms=now,
            is_not_run=result.outcome == "not_run",
        )

    async def _refused(self, approval: Approval, result: ApiResult, why: str) -> ApiProblemError:
        """Record a result that changes nothing, once for each outcome, and return the refusal."""
        name, generation = approval.approval_id, approval.execution.program.generation
        await note(
            self.storage.audit,
            Act.PROGRAM_REPORTED,
            key=f"{name}:{generation}:{result.outcome}",
            at_ms=self.clock(),
            about=approval,
            outcome=result.outcome,
            summary=_summary(approval, result),
            program=approval.origin.program_name,
            why=why,
        )
        return ApiProblemError("result-known", why, request=name)

    async def _note_end(self, approval: Approval, result: ApiResult) -> None:
        await note(
            self.storage.audit,
            Act.PROGRAM_REPORTED,
            key=f"{approval.approval_id}:{approval.execution.program.generation}",
            at_ms=self.clock(),
            about=approval,
            outcome=result.outcome,
            summary=approval.execution.text,
            proven=result.token is not None,
            program=approval.origin.program_name,
        )

    async def _not_known(self, approval: Approval, result: ApiResult) -> Approval:
        """Ask people about a call whose program does not know the outcome, unless it is known."""
        match approval.execution.state:
            case ExecutionState.STARTED:
                return await self._doubt(approval)
            case ExecutionState.DOUBT:
                return approval
            case _:
                raise await self._refused(approval, result, _OTHER_RESULT)

    async def _doubt(self, approval: Approval) -> Approval:
        """Ask people what happened to a call that was started."""
        name, now = approval.approval_id, self.clock()
        generation = approval.execution.program.generation
        question = self._question(approval, doubt_id(approval), now)
        leased = self.requests.attendance().leased_here(question)
        if await self.storage.approvals.insert(leased):
            await self.storage.audit.append(request_entry(leased))
            self.spawn(self.requests.attendance().request([leased]))
        asked = question.approval_id
        write = partial(in_doubt, now_ms=now, asked=asked, generation=generation)
        changed = await update(self.storage.approvals, name, write, writes_due=True)
        if changed is not None:
            self._show(changed)
        return changed or await self.storage.approvals.get(name)

    def _question(self, approval: Approval, name: str, now_ms: int) -> Approval:
        """Build the question about the outcome, for the people who decided the call."""
        info = InDoubtInfo(
            tool_name=approval.tool,
            arguments=decided_arguments(approval),
            title=approval.title,
            call_id=approval.address,
            secret=ask_of(approval).secret,
        )
        brief = brief_of(info)
        new = NewRequest(
            approval_id=name,
            asker=_about(approval),
            thread_id=approval.thread_id,
            place=approval.place.changed(thread_ts=approval.thread_ts),
            requesters=approval.requesters,
            title=brief.title,
            origin=approval.origin,
        )
        digest = brief.digest_at(approval.checkpoint_id, name)
        brief = replace(brief, digest=digest)
        asked = new_approval(brief, info, new, self.rules, now_ms=now_ms)
        return deciders_from(asked, kept_at_start(approval), now_ms=now_ms)

    async def _settle(self, doubt: Approval) -> None:
        """Record what people say about the outcome of a call."""
        name = doubt.asker.about if isinstance(doubt.asker, ProgramCall) else ""
        text = str(doubt.answered("result") or "") or say("reason.told_by_people")
        write = partial(settled, doubt=doubt, text=text, now_ms=self.clock())
        changed = await update_or_none(self.storage.approvals, name, write, writes_due=True)
        if changed is not None:
            self._show(changed)

    def _show(self, approval: Approval) -> None:
        self.changed(approval)
        self.spawn(self.requests.attendance().attend(approval.approval_id))


def token_of(program: ProgramRecord, approval_id: str, generation: int, attempt: str) -> str:
    """Return the token that proves a start: the same for the same attempt, and never stored."""
    text = f"{approval_id} {generation} {attempt}"
    made = hmac.new(bytes.fromhex(program.salt), text.encode(), hashlib.sha256).digest()
    number, digits = int.from_bytes(made[:24], "big"), ""
    for _ in range(32):
        number, rest = divmod(number, len(_BASE62))
        digits += _BASE62[rest]
    return f"cst_{digits}"


def _already(approval: Approval) -> ApiProblemError:
    execution = approval.execution
    runner, at = execution.runner or "Another process", instant(execution.started_ms)
    detail = f"{runner} started it at {at}. It never starts twice."
    return ApiProblemError("already-started", detail, request=approval.approval_id)


def _frozen(approval: Approval, frozen: Frozen) -> ApiProblemError:
    detail = "Nothing starts until people lift the freeze. Try again later."
    detail = f"{detail} Why: {frozen.freeze.why}"
    return ApiProblemError("frozen", detail, request=approval.approval_id)


def _tags_of(approval: Approval) -> Collection[str]:
    return approval.asker.tags if isinstance(approval.asker, ProgramCall) else ()


def _about(approval: Approval) -> ProgramCall:
    asker = approval.asker
    if not isinstance(asker, ProgramCall):
        raise TypeError(f"{approval.approval_id} was not requested by a program")
    return asker.changed(about=approval.approval_id)


def _summary(approval: Approval, result: ApiResult) -> str:
    """Return what the card says about a result: masked, short, and marked if it came late."""
    text = mask_text(" ".join(part for part in (result.summary, result.url) if part))
    if len(text) > LONGEST_SUMMARY:
        text = f"{text[:LONGEST_SUMMARY]}…"
    is_late = result.token is None and approval.execution.state is ExecutionState.STARTED
    if is_late and result.outcome != "running":
        return say("reason.told_later", text=text).strip()
    return text


def _is_as_told(approval: Approval, result: ApiResult) -> bool:
    """Whether a result is on record already."""
    execution = approval.execution
    state = _OUTCOMES.get(result.outcome or "")
    is_not_run = execution.program.is_not_run
    return execution.state is state and is_not_run is (result.outcome == "not_run")
