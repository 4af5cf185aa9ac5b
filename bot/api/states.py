"""The state of a request as programs read it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Literal

from agents.core.codec import Json
from bot.api.bodies import pointer_of
from bot.api.canonical import call_digest
from bot.api.shapes import (
    ApiChange,
    ApiDecision,
    ApiExecution,
    ApiFailure,
    ApiOption,
    ApiPerson,
    ApiPlace,
    ApiProgram,
    ApiProgress,
    ApiRequest,
    ApiRequirement,
    ApiSource,
    ApiThread,
    RequestStatus,
    RunMode,
    RunState,
    instant,
)
from bot.approvals.program_runs import decided_ms
from bot.layout.forms.schema import as_sent
from bot.policy.progress import progress_of
from bot.questions.form import Form, ask_of
from bot.records.approval import (
    Approval,
    Decision,
    ExecutionMode,
    ExecutionState,
    Kind,
    ProgramEvent,
    ProgramEventType,
    Status,
)
from bot.records.origin import ProgramCall
from bot.records.webhooks import QueuedEvent
from bot.redaction.call import mask_data
from bot.words.mrkdwn import named_in, untagged

NameOf = Callable[[str], Awaitable[str]]
"""Returns the name of a person, as Slack shows it."""

_STATUSES: Mapping[Status, RequestStatus] = {
    Status.PENDING: "pending",
    Status.APPROVED: "approved",
    Status.REJECTED: "rejected",
    Status.DENIED: "rejected",
    Status.ANSWERED: "answered",
    Status.EXPIRED: "expired",
    Status.CANCELLED: "cancelled",
    Status.WITHDRAWN: "cancelled",
    Status.SUPERSEDED: "cancelled",
    Status.UNDECIDABLE: "failed",
}
_RUNS: Mapping[ExecutionState, RunState] = {
    ExecutionState.READY: "ready",
    ExecutionState.STARTED: "started",
    ExecutionState.ENDED: "ran",
    ExecutionState.FAILED: "failed",
    ExecutionState.DOUBT: "unknown",
    ExecutionState.LAPSED: "lapsed",
}
_MODES: Mapping[ExecutionMode, RunMode] = {
    ExecutionMode.ONCE: "once",
    ExecutionMode.IDEMPOTENT: "idempotent",
    ExecutionMode.NONE: "none",
}
_OUTCOMES = frozenset({Status.APPROVED, Status.REJECTED, Status.DENIED, Status.ANSWERED})


_THIN = (
    "id",
    "status",
    "revision",
    "kind",
    "tool",
    "metadata",
    "state",
    "url",
    "decision",
    "execution",
    "failure",
)
_OF_THREAD = (
    "id",
    "status",
    "revision",
    "url",
    "agent",
    "metadata",
    "failure",
    "last_text",
)
_NOT_THIN = ("arguments", "reason", "changes", "answer", "usable")
"""Members that a thin decision lacks: texts and data of the call, and facts of a read."""
MOST_OF_EVENT = 20_000
"""Maximum size of the body of an event, in bytes."""


async def event_body(
    approval: Approval, event: ProgramEvent, *, is_full: bool, url: str, name_of: NameOf
) -> str:
    """Return the body of an event, with the request as the event left it.

    Args:
        approval: The request.
        event: One of its events.
        is_full: Whether to give the whole request, masked as on its card, if it is small enough.
        url: Public address of the API.
        name_of: Returns names of people.
    """
    then = approval.changed(
        status=event.status,
        decision=approval.decision if event.status is not Status.PENDING else None,
        execution=event.execution,
        shown_revision=event.sequence,
    )
    request = await state_of(then, url=url, now_ms=event.at_ms, is_usable=False, name_of=name_of)
    whole = request.model_dump(mode="json", by_alias=True)
    thin = {name: whole[name] for name in _THIN}
    whole["decision"] = {**(whole["decision"] or {})} or None
    for member in (whole, whole["decision"] or {}):
        member.pop("usable", None)
        member.pop("changes", None)  # both sides of it are in the arguments
        if member.get("arguments") is not None:
            member["arguments"] = mask_data(member["arguments"], ask_of(approval).masks)
    if thin["decision"] is not None:
        kept = {**thin["decision"]}
        thin["decision"] = {name: kept[name] for name in kept if name not in _NOT_THIN}
    for shown in (whole, thin) if is_full else (thin,):
        body = _event_of(event, shown)
        if len(body.encode()) <= MOST_OF_EVENT:
            return body
    return _event_of(event, {**thin, "metadata": {}, "state": None})


def end_event(thread: ApiThread, *, sequence: int, at_ms: int) -> QueuedEvent:
    """Return the event that tells of the end of a turn of a program's thread.

    Args:
        thread: Its state.
        sequence: Number of the turn.
        at_ms: Time of the end.
    """
    event = QueuedEvent(type=ProgramEventType.THREAD_ENDED, sequence=sequence, at_ms=at_ms, body="")
    whole = thread.model_dump(mode="json")
    shown = {name: whole[name] for name in _OF_THREAD}
    body = ""
    cuts: tuple[dict[str, object], ...] = (
        {},
        {"metadata": {}},
        {"metadata": {}, "last_text": None},
    )
    for cut in cuts:
        body = _event_of(event, {**shown, **cut}, about="thread")
        if len(body.encode()) <= MOST_OF_EVENT:
            break
    return event.changed(body=body)


def _event_of(
    event: ProgramEvent | QueuedEvent, shown: Mapping[str, object], *, about: str = "request"
) -> str:
    data = {"sequence": event.sequence, about: shown}
    whole_event = {"type": event.type, "timestamp": instant(event.at_ms), "data": data}
    return json.dumps(whole_event, ensure_ascii=False, separators=(",", ":"))


def status_of(approval: Approval) -> RequestStatus:
    """Return the status in the words of the API. One that is not `pending` never changes."""
    return _STATUSES[approval.status]


def is_over(approval: Approval) -> bool:
    """Whether the status never changes again."""
    return approval.status is not Status.PENDING


def decided_arguments(approval: Approval) -> dict[str, Json]:
    """Return the arguments that run, if people or a rule approved them."""
    decision = approval.decision
    edited = decision.arguments if decision is not None else None
    return dict(approval.arguments if edited is None else edited)


def digest_of(approval: Approval) -> str:
    """Return the digest that the program must make of what it is about to run."""
    return call_digest(approval.approval_id, approval.tool, decided_arguments(approval))


def usable_until_ms(approval: Approval) -> int:
    """Return the time until which an approved call may start; 0 without a decision."""
    decided = decided_ms(approval)
    return decided + approval.terms.max_age_s * 1_000 if decided else 0


def run_of(approval: Approval, now_ms: int) -> RunState:
    """Return the state of the execution in the words of the API."""
    execution = approval.execution
    if approval.status is not Status.APPROVED or execution.mode is ExecutionMode.NONE:
        return "waiting"
    if execution.state is ExecutionState.READY and now_ms > usable_until_ms(approval):
        return "lapsed"
    if execution.state is ExecutionState.FAILED and execution.program.is_not_run:
        return "not_run"
    return _RUNS[execution.state]


def execution_id_of(approval: Approval) -> str:
    """Return the id of the execution, which stays the same over repeated starts."""
    return f"exe_{approval.approval_id.removeprefix('apr_')}"


async def state_of(
    approval: Approval, *, url: str, now_ms: int, is_usable: bool, name_of: NameOf
) -> ApiRequest:
    """Return the state of a program's request.

    Args:
        approval: The approval.
        url: Public address of the API.
        now_ms: The time now.
        is_usable: Whether its decision may be acted on at this moment.
        name_of: Returns names of people.

    Raises:
        TypeError: The approval is not a program's.
    """
    asker, origin = approval.asker, approval.origin
    if not isinstance(asker, ProgramCall):
        raise TypeError(f"{approval.approval_id} was not requested by a program")
    ask = ask_of(approval)
    is_call = approval.kind is Kind.APPROVAL
    decision = approval.decision
    original = approval.edits.original
    return ApiRequest(
        id=approval.approval_id,
        kind=asker.wants,
        status=status_of(approval),
        revision=approval.shown_revision,
        url=f"{url}/r/{approval.approval_id}",
        title=approval.title,
        why=approval.why or None,
        tool=approval.tool or None,
        arguments=dict(original or approval.arguments) if is_call else None,
        schema=as_sent(ask.schema) if ask.schema is not None else None,
        options=tuple(
            ApiOption(value=option.id, label=option.label, description=option.description or None)
            for option in ask.options
        )
        or None,
        program=ApiProgram(id=origin.program, name=origin.program_name),
        requested_for=origin.requested_for or None,
        requesters=approval.requesters,
        place=ApiPlace(channel=approval.channel_id, thread_ts=approval.thread_ts or None),
        risk=approval.terms.risk if is_call else None,
        rules=approval.terms.rules if is_call else (),
        created_at=approval.created_ms,
        updated_at=approval.shown_ms or approval.created_ms,
        expires_at=approval.expires_ms,
        decided_at=decision.at_ms if decision is not None else None,
        progress=_progress(approval) if not is_over(approval) and is_call else None,
        decision=await _decision(approval, decision, is_usable=is_usable, name_of=name_of),
        execution=await _execution(approval, now_ms, name_of),
        failure=await _failure(approval, name_of),
        generation=asker.generation + 1,
        state=asker.state or None,
        metadata=dict(asker.metadata),
        source=ApiSource(
            **{name: text for name, text in origin.source.model_dump().items() if text}
        )
        if origin.source is not None
        else None,
    )


def _progress(approval: Approval) -> ApiProgress:
    tallies = progress_of(approval).tallies
    return ApiProgress(
        stage=approval.stage + 1,
        stages=len(approval.terms.stages),
        requirements=tuple(
            ApiRequirement(name=tally.name, have=tally.have, need=tally.need) for tally in tallies
        ),
        escalated=approval.escalation.steps > 0,
        reminders=approval.escalation.reminders,
    )


async def _decision(
    approval: Approval, decision: Decision | None, *, is_usable: bool, name_of: NameOf
) -> ApiDecision | None:
    if decision is None or decision.status not in _OUTCOMES:
        return None
    is_yes = decision.status is Status.APPROVED
    is_call = approval.kind is Kind.APPROVAL
    runs = is_yes and is_call
    votes = [vote for vote in approval.votes if vote.is_stop is not is_yes]
    people = [vote.by for vote in votes] if is_call else []
    by = [*dict.fromkeys([*people, *([decision.by] if decision.by else [])])]
    return ApiDecision(
        outcome="approved"
        if is_yes
        else "answered"
        if not is_call and decision.status is Status.ANSWERED
        else "rejected",
        source=_source(decision, by),
        by=tuple([ApiPerson(id=name, name=await name_of(name)) for name in by]),
        at=decision.at_ms,
        rule=decision.rule or approval.rule or None,
        reason=await _plain(decision.reason, name_of) or None,
        tool=approval.tool if runs else None,
        arguments=decided_arguments(approval) if runs else None,
        edited=runs and bool(_changes(approval)),
        changes=_changes(approval) if runs else (),
        answer=_answer(approval, decision),
        digest=digest_of(approval) if runs else None,
        usable_until=usable_until_ms(approval) if runs else None,
        usable=is_usable,
    )


def _source(
    decision: Decision, by: Sequence[str]
) -> Literal["people", "policy", "grant", "break_glass"]:
    if decision.emergency:
        return "break_glass"
    return "grant" if decision.grant else "people" if by else "policy"


def _changes(approval: Approval) -> tuple[ApiChange, ...]:
    before = approval.edits.original or approval.arguments
    after = decided_arguments(approval)
    return tuple(
        ApiChange(path=pointer_of((name,)), before=before.get(name), after=after.get(name))
        for name in dict.fromkeys((*before, *after))
        if before.get(name) != after.get(name) or (name in before) is not (name in after)
    )


def _answer(approval: Approval, decision: Decision) -> Json:
    """Return the answer in the words of the API: a text, a value or a list, or an object."""
    if decision.status is not Status.ANSWERED:
        return None
    ask, given = ask_of(approval), decision.answer
    if ask.form == Form.CHOICE and isinstance(given, dict):
        selected = given.get("selected")
        values = list(selected) if isinstance(selected, list) else []
        return values if ask.multiple else next(iter(values), None)
    if ask.form == Form.FIELDS and isinstance(given, dict):
        return given.get("values")
    if isinstance(given, list) and len(given) == 1:
        return given[0]
    return given


async def _plain(text: str, name_of: NameOf) -> str:
    """Return a text with names in place of Slack's mentions."""
    names = {slack_id: await name_of(slack_id) for slack_id in sorted(named_in(text))}
    return untagged(text, names)


async def _execution(approval: Approval, now_ms: int, name_of: NameOf) -> ApiExecution:
    execution, run = approval.execution, approval.execution.program
    is_begun = run.generation > 0
    state = run_of(approval, now_ms)
    is_ended = state in {"ran", "failed", "not_run"}
    return ApiExecution(
        mode="none" if approval.kind is not Kind.APPROVAL else _MODES[execution.mode],
        state=state,
        execution_id=execution_id_of(approval) if is_begun else None,
        generation=run.generation,
        runner=execution.runner or None,
        started_at=execution.started_ms or None,
        deadline=run.deadline_ms or None,
        ended_at=execution.at_ms if is_ended else None,
        summary=await _plain(execution.text, name_of) or None,
        asked=run.asked or None,
    )


async def _failure(approval: Approval, name_of: NameOf) -> ApiFailure | None:
    if approval.status is not Status.UNDECIDABLE:
        return None
    reason = approval.decision.reason if approval.decision is not None else ""
    return ApiFailure(code="nobody-can-decide", detail=await _plain(reason, name_of))
