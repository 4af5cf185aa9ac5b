"""Calls: the typed answer that a decision gives, and what the record refuses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest

from agents import (
    Address,
    ApprovalInfo,
    ApprovalResult,
    Cancelled,
    InterruptContext,
    ResumeDataError,
    ReviewEditInfo,
    ReviewEditResult,
)
from agents.core.codec import Json
from agents.gates.human import HumanResponse
from agents.gates.questions import ChoiceResult
from bot.questions.base import answer_from, question_of, read_reply
from bot.questions.form import ask_of, edited_digest
from bot.records.approval import Approval, Kind, Status
from tests.unit.bot.asked import chosen_digest, filled_digest
from tests.unit.bot.questions.info_samples import (
    ARGUMENTS,
    BY,
    CALL_CHOICE,
    HUMAN,
    MISSING,
    SCHEMA,
    OwnGateInfo,
    approval_of,
    call_fields,
    context_of,
    decided,
    digest_of,
    forced,
    is_refused,
)


def test_approval() -> None:
    info = ApprovalInfo(**call_fields())
    approval = approval_of(info)
    assert approval.form is None
    yes = ApprovalResult(approved=True, digest=info.digest, by=BY)
    assert answer_from(decided(approval, Status.APPROVED), info) == yes
    no = ApprovalResult(approved=False, reason="late", digest=info.digest, by=BY)
    assert answer_from(decided(approval, Status.REJECTED, reason="late"), info) == no
    edited = {"arguments": {"environment": "production"}}
    is_refused(approval, Status.APPROVED, **edited)
    is_refused(approval, Status.APPROVED, digest="0" * 64)
    is_refused(approval, Status.ANSWERED, answer=["yes"])
    is_refused(approval, Status.REJECTED, answer=["yes"])


def test_decision_about_something_else_is_refused() -> None:
    approval = decided(approval_of(ApprovalInfo(**call_fields())), Status.APPROVED)
    other = ApprovalInfo(**call_fields(arguments={"environment": "production", "replicas": 3}))
    with pytest.raises(ResumeDataError, match="something other"):
        answer_from(approval, other)


def test_review() -> None:
    info = ReviewEditInfo(**call_fields())
    approval = approval_of(info)
    assert approval.form == SCHEMA
    as_shown = ReviewEditResult(no_need_to_edit=True, digest=info.digest, by=BY)
    assert answer_from(decided(approval, Status.APPROVED), info) == as_shown
    new = {**ARGUMENTS, "replicas": 5}
    digest = edited_digest(approval, new)
    done = decided(approval, Status.APPROVED, arguments=new, digest=digest)
    assert answer_from(done, info) == ReviewEditResult(edited_arguments=new, digest=digest, by=BY)
    is_refused(approval, Status.APPROVED, arguments=new)
    answer = answer_from(decided(approval, Status.REJECTED, reason="no"), info)
    assert answer == ReviewEditResult(disapproved=True, disapprove_reason="no", by=BY)


def test_a_tool_that_changes_its_arguments_changes_no_record() -> None:
    info = ReviewEditInfo(**call_fields(arguments={"names": ["a"]}))
    approval = approval_of(info)
    new: dict[str, Any] = {"names": ["b"]}
    digest = edited_digest(approval, new)
    done = decided(approval, Status.APPROVED, arguments=new, digest=digest)
    answer = answer_from(done, info)
    assert isinstance(answer, ReviewEditResult)
    assert answer.edited_arguments is not None
    cast("list[Json]", answer.edited_arguments["names"]).append("c")
    assert done.decision is not None
    assert done.decision.arguments == {"names": ["b"]}


def test_human_takes_what_is_allowed() -> None:
    approval = approval_of(HUMAN)
    assert approval.preview == "Please look.\n\nRestarts three replicas."
    done = decided(approval, Status.APPROVED)
    accepted = HumanResponse(type="accept", digest=HUMAN.digest, by=BY)
    assert answer_from(done, HUMAN) == accepted
    new = {**ARGUMENTS, "replicas": 5}
    digest = edited_digest(approval, new)
    done = decided(approval, Status.APPROVED, arguments=new, digest=digest)
    assert answer_from(done, HUMAN) == HUMAN.edit(new, by=BY)
    done = decided(approval, Status.ANSWERED, answer=["Use the other one."])
    assert answer_from(done, HUMAN) == HUMAN.respond("Use the other one.", by=BY)
    assert answer_from(decided(approval, Status.REJECTED), HUMAN) == HUMAN.ignore(by=BY)
    is_refused(approval, Status.ANSWERED, answer=[" "])
    is_refused(approval, Status.ANSWERED, answer=["a", "b"])


ALLOWED: dict[str, Callable[[Approval], dict[str, Any]]] = {
    "accept": lambda _: {"status": Status.APPROVED},
    "ignore": lambda _: {"status": Status.REJECTED},
    "response": lambda _: {"status": Status.ANSWERED, "answer": ["no"]},
    "edit": lambda approval: {
        "status": Status.APPROVED,
        "arguments": {**ARGUMENTS, "replicas": 9},
        "digest": edited_digest(approval, {**ARGUMENTS, "replicas": 9}),
    },
}


@pytest.mark.parametrize("given", sorted(ALLOWED))
@pytest.mark.parametrize("allowed", sorted(ALLOWED))
def test_human_refuses_what_is_not_allowed(allowed: Any, given: str) -> None:
    info = replace(HUMAN, allowed=(allowed,))
    approval = approval_of(info)
    fields = ALLOWED[given](approval)
    if given == allowed:
        answer = answer_from(decided(approval, **fields), info)
        assert isinstance(answer, HumanResponse)
        assert answer.type == given
        return
    is_refused(approval, **fields)
    # Also when another release had let it pass.
    with pytest.raises(ResumeDataError, match="not allowed"):
        answer_from(forced(approval, **fields), info)


def test_human_without_words_of_its_author_shows_the_preview_alone() -> None:
    described = "Tool execution requires approval\n\nTool: deploy\nArgs: {}"
    assert approval_of(replace(HUMAN, description=described)).preview == "Restarts three replicas."


def test_call_choice_runs_what_was_chosen() -> None:
    approval = approval_of(CALL_CHOICE)
    assert ask_of(approval).parameter == "environment"
    chosen = {**ARGUMENTS, "environment": "production"}
    digest = chosen_digest(approval, ["p"])
    assert digest == digest_of(chosen)
    done = decided(approval, Status.APPROVED, answer={"selected": ["p"]}, digest=digest)
    assert answer_from(done, CALL_CHOICE) == CALL_CHOICE.choose("p", by=BY)
    answer = answer_from(decided(approval, Status.REJECTED, reason="no"), CALL_CHOICE)
    assert answer == ChoiceResult(declined=True, reason="no", by=BY)
    is_refused(approval, Status.APPROVED, answer={"selected": ["p"]})
    is_refused(approval, Status.APPROVED, answer={"selected": ["s"]}, digest=digest)
    is_refused(approval, Status.ANSWERED, answer={"selected": ["p"]}, digest=digest)
    is_refused(approval, Status.APPROVED)
    assert question_of(approval).yes_status is Status.APPROVED


def test_parameters() -> None:
    approval = approval_of(MISSING)
    assert ask_of(approval).names == ("replicas",)
    values = {"replicas": 4}
    digest = filled_digest(approval, values)
    fields = {"answer": {"values": values}, "digest": digest}
    done = decided(approval, Status.ANSWERED, **fields)
    assert answer_from(done, MISSING) == MISSING.complete({"replicas": 4}, by=BY)
    is_refused(approval, Status.ANSWERED, answer={"values": values})
    for wrong in ({}, {"replicas": "4"}, {"replicas": 4, "environment": "production"}):
        bad = {"answer": {"values": wrong}, "digest": filled_digest(approval, wrong)}
        is_refused(approval, Status.ANSWERED, **bad)
    assert question_of(approval).no_status() is Status.CANCELLED
    done = decided(approval, Status.CANCELLED, reason="I do not know.")
    assert answer_from(done, MISSING) == Cancelled(by=BY, reason="I do not know.")
    assert read_reply(approval, "4") is None
    assert "buttons" in question_of(approval).reply_hint()


def test_parameters_of_an_approved_call_are_the_approvers() -> None:
    outer = context_of(ApprovalInfo(**call_fields(arguments={"environment": "staging"})))
    approval = approval_of(MISSING, parent=outer)
    assert approval.kind is Kind.APPROVAL
    fields = {
        "answer": {"values": {"replicas": 4}},
        "digest": filled_digest(approval, {"replicas": 4}),
    }
    done = decided(approval, Status.APPROVED, **fields)
    assert answer_from(done, MISSING) == MISSING.complete({"replicas": 4}, by=BY)
    is_refused(approval, Status.ANSWERED, **fields)


def test_parameters_below_another_call_are_not() -> None:
    agent = InterruptContext(
        id="x",
        address=Address.parse("agent:A"),
        info=ApprovalInfo(**call_fields()),
        is_root_cause=False,
    )
    same_gate = context_of(MISSING, parent=agent)
    assert approval_of(MISSING, parent=same_gate).kind is Kind.QUESTION
    assert approval_of("What?", parent=same_gate).kind is Kind.QUESTION


def test_gate_of_somebody_else_is_answered_by_nobody() -> None:
    info = OwnGateInfo(**call_fields())
    approval = approval_of(info)
    assert "OwnGateInfo" in ask_of(approval).program
    for status in (Status.APPROVED, Status.REJECTED, Status.ANSWERED):
        is_refused(approval, status)
    with pytest.raises(ResumeDataError, match="people can't answer"):
        answer_from(forced(approval, Status.APPROVED), info)
