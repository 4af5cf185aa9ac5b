"""From an interrupt to the approval that people see, and from their decision to its answer."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from datetime import timedelta

from agents import (
    ApprovalInfo,
    ApprovalResult,
    Cancelled,
    DoubtInfo,
    DoubtResult,
    Expired,
    FollowUpInfo,
    InterruptContext,
    ResumeDataError,
    ReviewEditInfo,
    ReviewEditResult,
    call_digest,
)
from bot.ports import EXCLUDED
from bot.timing import milliseconds
from storage.records import Approval, Decision, Kind, Status, Thread


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Who decides, and how long it may take.

    Attributes:
        approvers: User ids, user group ids, or `channel`; never empty.
        self_approval: Whether the requester may decide.
        remind_after: From the request to the first reminder.
        expire_after: From the request to its expiry.
    """

    approvers: tuple[str, ...]
    self_approval: bool
    remind_after: timedelta
    expire_after: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Who asked for what now waits.

    Attributes:
        thread: Where.
        requesters: User ids of those whose messages are the input of the turn; never empty.
    """

    thread: Thread
    requesters: tuple[str, ...]

    def deciders(self, rules: Rules) -> list[str]:
        """Who may decide: the rules, less everybody who asked."""
        if rules.self_approval:
            return list(rules.approvers)
        return [*rules.approvers, *(f"{EXCLUDED}{user}" for user in self.requesters)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ask:
    """What differs between the kinds of interrupts."""

    kind: Kind
    tool: str
    title: str
    arguments: dict[str, object]
    why: str = ""
    preview: str = ""
    schema_json: str = ""
    rule: str = ""
    digest: str = ""


def approval_id_of(interrupt_id: str) -> str:
    """The approval's id: one per interrupt, and as hard to guess."""
    return f"apr_{uuid.UUID(interrupt_id).hex}"


def approval_from(
    context: InterruptContext, asked: Asked, rules: Rules, *, position: int, now_ms: int
) -> Approval:
    """Build the approval of an interrupt.

    Args:
        context: What waits.
        asked: Where it waits, and who asked for it.
        rules: Frozen into the record.
        position: Its order in the turn; the first is 0.
        now_ms: The time of the request.
    """
    ask, thread = _ask_of(context.info), asked.thread
    remind_ms = now_ms + milliseconds(rules.remind_after)
    expires_ms = now_ms + milliseconds(rules.expire_after)
    return Approval(
        approval_id=approval_id_of(context.id),
        kind=ask.kind,
        thread_id=thread.thread_id,
        checkpoint_id=thread.checkpoint_id,
        interrupt_id=context.id,
        position=position,
        team_id=thread.team_id,
        channel_id=thread.channel_id,
        thread_ts=thread.thread_ts,
        requester_id=asked.requesters[0],
        address=str(context.address),
        tool=ask.tool,
        rule=ask.rule,
        title=ask.title,
        why=ask.why,
        preview=ask.preview,
        arguments_json=in_order(ask.arguments),
        schema_json=ask.schema_json,
        digest=ask.digest or _own_digest(thread, context, ask),
        approvers_json=json.dumps(asked.deciders(rules)),
        self_approval=rules.self_approval,
        created_ms=now_ms,
        expires_ms=expires_ms,
        remind_ms=remind_ms if remind_ms < expires_ms else None,
        due_ms=now_ms,
    )


def edited_digest(approval: Approval, arguments: dict[str, object]) -> str:
    """The digest of the same call with other arguments: what the executor will compare."""
    return call_digest(
        thread=approval.checkpoint_id,
        address=approval.address,
        tool=approval.tool,
        arguments=arguments,
        rule=approval.rule,
    )


def answer_from(approval: Approval, info: object) -> object:
    """Build the answer that resumes an interrupt from the decision on record.

    Args:
        approval: A decided approval.
        info: The interrupt's info, as the checkpoint has it.

    Raises:
        ResumeDataError: The record does not say what was decided.
    """
    decision = approval.decision
    if decision is None:
        raise ResumeDataError(f"approval {approval.approval_id} is not decided")
    if decision.status is Status.EXPIRED:
        return Expired(waited=_in_words(approval.expires_ms - approval.created_ms))
    if decision.status is Status.CANCELLED:
        return Cancelled(by=decision.by, reason=decision.reason)
    try:
        return _answer_of_people(approval, decision, info)
    except (ValueError, KeyError, TypeError) as error:
        raise ResumeDataError(
            f"the decision of approval {approval.approval_id} cannot be read: {error}"
        ) from error


def _answer_of_people(approval: Approval, decision: Decision, info: object) -> object:
    match info:
        case ReviewEditInfo():
            return _review_result(decision)
        case ApprovalInfo():
            return ApprovalResult(
                approved=decision.status is Status.APPROVED,
                reason=decision.reason or None,
                digest=decision.digest,
                by=decision.by,
            )
        case DoubtInfo():
            return _doubt_result(decision)
        case FollowUpInfo():
            return info.answer(answer_text(approval))
        case _:
            return answer_text(approval)


def answer_text(approval: Approval) -> str:
    """A question's answer as one text: alone, or each under its question."""
    answers = json.loads(approval.decision.answer_json) if approval.decision else []
    questions = json.loads(approval.arguments_json).get("questions", [])
    if len(answers) == 1 or len(answers) != len(questions):
        return "\n".join(answers)
    return "\n".join(f"{q}\n{a}" for q, a in zip(questions, answers, strict=True))


def canonical(data: object) -> str:
    """JSON text with sorted keys and no spare spaces."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def in_order(data: object) -> str:
    """JSON text with the keys in their order: the one in which the tool's author wrote them."""
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False)


def _ask_of(info: object) -> _Ask:
    match info:
        case ReviewEditInfo() | ApprovalInfo():
            editable = isinstance(info, ReviewEditInfo)
            return _Ask(
                kind=Kind.APPROVAL,
                tool=info.tool_name,
                title=info.title or f"Run {info.tool_name}",
                arguments=dict(info.arguments),
                why=info.why or "",
                preview=info.preview or "",
                schema_json=in_order(info.schema) if editable else "",
                rule=info.rule,
                digest=info.digest,
            )
        case DoubtInfo():
            return _Ask(
                kind=Kind.DOUBT,
                tool=info.tool_name,
                title=info.title or f"Did {info.tool_name} run?",
                arguments=dict(info.arguments),
            )
        case FollowUpInfo():
            return _questions([str(question) for question in info.questions])
        case _:
            return _questions([str(info)])


def _questions(questions: list[str]) -> _Ask:
    one = len(questions) == 1
    return _Ask(
        kind=Kind.QUESTION,
        tool="",
        title="A question for you" if one else "Some questions for you",
        arguments={"questions": questions},
    )


def _own_digest(thread: Thread, context: InterruptContext, ask: _Ask) -> str:
    return call_digest(
        thread=thread.checkpoint_id,
        address=str(context.address),
        tool=ask.tool,
        arguments=ask.arguments,
        rule=ask.rule,
    )


def _review_result(decision: Decision) -> ReviewEditResult:
    if decision.status is not Status.APPROVED:
        return ReviewEditResult(
            disapproved=True, disapprove_reason=decision.reason or None, by=decision.by
        )
    if decision.arguments_json:
        return ReviewEditResult(
            edited_arguments=json.loads(decision.arguments_json),
            digest=decision.digest,
            by=decision.by,
        )
    return ReviewEditResult(no_need_to_edit=True, digest=decision.digest, by=decision.by)


def _doubt_result(decision: Decision) -> DoubtResult:
    answer = json.loads(decision.answer_json)
    return DoubtResult(choice=answer["choice"], result=answer.get("result"), by=decision.by)


def _in_words(duration_ms: int) -> str:
    minutes = max(1, round(duration_ms / 60_000))
    if minutes < 120:
        return f"{minutes} minutes" if minutes > 1 else "one minute"
    return f"{round(minutes / 60)} hours"
