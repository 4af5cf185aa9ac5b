"""Infos of every kind, and approvals that are made of them."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from agents import Address, Expired, InterruptContext, ResumeDataError, register
from agents.core.asking.infos import CallInfo
from agents.core.digest import call_digest
from agents.gates.human import HumanInterrupt
from agents.gates.questions import CallChoiceInfo, Choice, ChoiceInfo, FeedbackInfo, ParametersInfo
from agents.graph.nodes.questions import Question
from agents.graph.state.shapes import schema_of
from agents.prebuilt.stages import StageInfo
from bot.errors import InvalidInputError
from bot.questions.base import check_decision
from bot.questions.record import Asked, Rules, approval_from
from bot.records.approval import Approval, Decision, Status
from bot.records.thread import Thread

NOW = 1_800_000_000_000
THREAD = Thread(thread_id="T1:C1:1.1", requester_id="UROSA", created_ms=NOW, turn=1)
ADDRESS = Address.parse("agent:A;tool:deploy:c1")
RULES = Rules(
    approvers=("channel",),
    channels=("C1",),
    self_approval=False,
    remind_after=timedelta(minutes=15),
    expire_after=timedelta(hours=8),
)
ARGUMENTS: dict[str, Any] = {"environment": "staging", "replicas": 3}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"environment": {"type": "string"}, "replicas": {"type": "integer"}},
    "required": ["environment", "replicas"],
}
BY = "UADA"


def digest_of(arguments: dict[str, Any], tool: str = "deploy") -> str:
    return call_digest(
        thread=THREAD.checkpoint_id,
        address=str(ADDRESS),
        tool=tool,
        arguments=arguments,
        rule="always",
    )


def call_fields(**changes: Any) -> dict[str, Any]:
    fields = {
        "tool_name": "deploy",
        "arguments": ARGUMENTS,
        "call_id": "c1",
        "title": "Deploy to staging",
        "why": "You asked.",
        "preview": "Restarts three replicas.",
        "schema": SCHEMA,
        "rule": "always",
        "thread": THREAD.checkpoint_id,
        "address": str(ADDRESS),
        **changes,
    }
    return {**fields, "digest": digest_of(fields["arguments"])}


def context_of(info: object, parent: InterruptContext | None = None) -> InterruptContext:
    return InterruptContext(
        id=str(uuid.UUID(int=1)), address=ADDRESS, info=info, is_root_cause=True, parent=parent
    )


def approval_of(
    info: object, rules: Rules = RULES, parent: InterruptContext | None = None
) -> Approval:
    asked = Asked(thread=THREAD, requesters=("UROSA",))
    return approval_from(context_of(info, parent), asked, rules, position=0, now_ms=NOW)


def decided(approval: Approval, status: Status, **changes: Any) -> Approval:
    """The approval after a decision that its record takes."""
    fields = {"digest": approval.digest, "by": BY, **changes}
    decision = Decision(status=status, at_ms=NOW, **fields)
    check_decision(approval, decision)
    return approval.changed(status=status, decision=decision)


def forced(approval: Approval, status: Status, **changes: Any) -> Approval:
    """The approval after a decision that nobody checked."""
    fields = {"digest": approval.digest, "by": BY, **changes}
    return approval.changed(status=status, decision=Decision(status=status, at_ms=NOW, **fields))


def is_refused(approval: Approval, status: Status, **changes: Any) -> None:
    with pytest.raises(InvalidInputError):
        decided(approval, status, **changes)


OPTIONS = (
    Choice(id="s", label="Staging", value="staging"),
    Choice(id="p", label="Production", description="Careful!", value="production"),
    Choice(id="n", label="nowhere"),
)
FEEDBACK = FeedbackInfo(original_content="A poem.")
CHOOSE = ChoiceInfo(question="Where?", options=OPTIONS)
SEVERAL = ChoiceInfo(question="Where?", options=OPTIONS, multiple=True)
CALL_CHOICE = CallChoiceInfo(
    **call_fields(), question="Where?", options=OPTIONS, parameter="environment"
)
MISSING = ParametersInfo(
    **call_fields(arguments={"environment": "staging"}), missing={"replicas": {"type": "integer"}}
)
HUMAN = HumanInterrupt(
    **call_fields(), allowed=("accept", "ignore", "response", "edit"), description="Please look."
)
STAGE = StageInfo(
    agent_name="A",
    stage="tools",
    when="before",
    calls=({"id": "c1", "name": "deploy", "args": ARGUMENTS},),
    said="I will deploy.",
    digest="ab" * 32,
)
STATE: dict[str, object] = {"amount": 5, "place": "Rome", "trail": ("a",), "note": None}
BREAK = Question(
    kind="before",
    node="pay",
    value="pay",
    state=STATE,
    state_schema={"place": {"enum": ["Rome", "Oslo"], "type": "string"}},
)


def node(value: object, kind: object = None, **changes: Any) -> Question:
    schema = None if kind is None else schema_of(kind)
    return Question(kind="node", node="ask", value=value, schema=schema, **changes)


@register("tests.mapping.strict/1")
@dataclass(frozen=True, slots=True)
class Strict:
    """Takes a number, and nothing that a person writes."""

    def __str__(self) -> str:
        return "Measure!"

    def check_answer(self, answer: object) -> None:
        if not isinstance(answer, int | Expired):
            raise ResumeDataError("expected a number")


class Broken:
    """Whose code fails."""

    def __str__(self) -> str:
        raise RuntimeError("no words")

    def check_answer(self, answer: object) -> None:
        raise KeyError(answer)


class OwnGateInfo(CallInfo):
    """Of a gate that somebody else wrote."""
