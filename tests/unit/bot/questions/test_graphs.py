"""Graphs: questions of nodes, and breakpoints."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any, Literal

import pytest
from pydantic import TypeAdapter

from agents import ApprovalResult, ResumeDataError
from agents.graph.commands import Send, StateUpdate
from bot.questions.base import answer_from, read_reply
from bot.questions.form import Form, ask_of, edited_digest
from bot.records.approval import Status
from tests.unit.bot.questions.info_samples import (
    BREAK,
    BY,
    approval_of,
    decided,
    forced,
    is_refused,
    node,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trip:
    """An answer with fields."""

    place: str
    days: int
    direct: bool = True


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (int, 5),
        (float, 2.5),
        (str, "x"),
        (list[str], ["a", "b"]),
        (int | None, None),
        (dict[str, int], {"a": 1}),
        (Trip, {"place": "Rome", "days": 2}),
    ],
)
def test_typed_answer_of_a_node(kind: Any, value: object) -> None:
    info = node("What?", kind)
    approval = approval_of(info)
    ask = ask_of(approval)
    values = {"answer": value} if ask.is_wrapped else value
    assert isinstance(values, dict)
    done = decided(approval, Status.ANSWERED, answer={"values": values})
    answer = answer_from(done, info)
    assert answer == value
    assert type(answer) is type(value)
    TypeAdapter(kind).validate_json(json.dumps(answer), strict=True)


def test_typed_answer_that_does_not_fit() -> None:
    approval = approval_of(node("How many?", int))
    for wrong in ({"answer": "5"}, {"answer": 5.5}, {}, {"other": 5}):
        is_refused(approval, Status.ANSWERED, answer={"values": wrong})
    is_refused(approval, Status.ANSWERED, answer=["5"])
    with pytest.raises(ResumeDataError):
        answer_from(
            forced(approval, Status.ANSWERED, answer={"values": {"answer": "5"}}),
            node("How many?", int),
        )


def test_type_with_parts_keeps_its_definitions() -> None:
    ask = ask_of(approval_of(node("Which?", list[Trip])))
    assert ask.is_wrapped
    assert ask.schema is not None
    assert "$defs" in ask.schema


def test_few_values_of_a_node() -> None:
    info = node("Size?", Literal["S", "M", 3])
    approval = approval_of(info)
    done = decided(approval, Status.ANSWERED, answer={"selected": ["3"]})
    assert answer_from(done, info) == 3
    two = node("Size?", Literal["3", 3])
    assert ask_of(approval_of(two)).form is Form.FIELDS


@pytest.mark.parametrize(
    ("kind", "words", "value"),
    [
        (int, "5", 5),
        (int, " -5 ", -5),
        (int, "five", None),
        (float, "7", 7),
        (str, "a b", "a b"),
        (bool, "true", None),
        (list[str], "a", None),
        (Trip, "Rome", None),
    ],
)
def test_reply_to_a_typed_question(kind: Any, words: str, value: object) -> None:
    wanted = None if value is None else {"values": {"answer": value}}
    assert read_reply(approval_of(node("What?", kind)), words) == wanted


def test_untyped_answer_of_a_node_is_a_text() -> None:
    info = node({"question": "Name?", "draft": "x", "trail": ("a", b"b")})
    approval = approval_of(info)
    assert approval.arguments == {
        "questions": ["Name?"],
        "shown": {"draft": "x", "trail": ["a", "Yg=="]},
    }
    done = decided(approval, Status.ANSWERED, answer=["Fox"])
    assert answer_from(done, info) == "Fox"


@pytest.mark.parametrize(
    ("value", "arguments"),
    [
        ({"question": "Name?"}, {"questions": ["Name?"]}),
        ({"draft": 1}, {"questions": ["What's your answer?"], "shown": {"draft": 1}}),
        (["a", 1], {"questions": ['["a", 1]']}),
        ("", {"questions": ['""']}),
        (5, {"questions": ["5"]}),
    ],
)
def test_question_that_is_any_value(value: object, arguments: dict[str, object]) -> None:
    assert approval_of(node(value)).arguments == arguments


def test_verdict_of_a_node_is_an_approval() -> None:
    info = node("May it?", ApprovalResult)
    approval = approval_of(info)
    done = answer_from(decided(approval, Status.APPROVED), info)
    assert done == ApprovalResult(approved=True, digest=approval.digest, by=BY)
    done = answer_from(decided(approval, Status.REJECTED, reason="no"), info)
    assert done == ApprovalResult(approved=False, reason="no", digest=approval.digest, by=BY)
    with pytest.raises(ResumeDataError, match="something other"):
        answer_from(decided(approval, Status.APPROVED), node("Other?", ApprovalResult))


def test_breakpoint() -> None:
    approval = approval_of(BREAK)
    assert approval.arguments == {"amount": 5, "place": "Rome", "trail": ["a"], "note": None}
    ask = ask_of(approval)
    assert ask.names == ("amount", "place", "note")
    go = answer_from(decided(approval, Status.APPROVED), BREAK)
    assert go == ApprovalResult(approved=True, digest=approval.digest, by=BY)
    stop = answer_from(decided(approval, Status.REJECTED, reason="no"), BREAK)
    assert stop == ApprovalResult(approved=False, reason="no", digest=approval.digest, by=BY)


LINE = ("draft_text", "pay", "archive_the_draft")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (LINE, "Step 2 of 3. Next: Archive the draft."),
        (LINE[:2], "Last step (2 of 2)."),
        (LINE[1:], "Step 1 of 2. Next: Archive the draft."),
        (("pay",), ""),
        (("other", "another"), ""),
        ((), ""),
    ],
)
def test_a_step_says_which_it_is_of_how_many_where_that_is_certain(
    line: tuple[str, ...], words: str
) -> None:
    assert approval_of(replace(BREAK, line=line)).preview == words
    verdict = replace(node("Pay?", ApprovalResult), node="pay", line=line)
    assert approval_of(verdict).preview == words
    assert approval_of(replace(BREAK, line=line)).digest == approval_of(BREAK).digest


def test_breakpoint_with_an_edit() -> None:
    approval = approval_of(BREAK)
    new = {**approval.arguments, "amount": 7}
    fields = {"arguments": new, "digest": edited_digest(approval, new)}
    assert answer_from(decided(approval, Status.APPROVED, **fields), BREAK) == StateUpdate(
        {"amount": 7}
    )
    wrongs: tuple[dict[str, object], ...] = (
        {**new, "trail": ["b"]},
        {**new, "more": 1},
        {"amount": 7},
    )
    for wrong in wrongs:
        fields = {"arguments": wrong, "digest": edited_digest(approval, wrong)}
        is_refused(approval, Status.APPROVED, **fields)
    with pytest.raises(ResumeDataError, match="something other"):
        answer_from(decided(approval, Status.APPROVED), replace(BREAK, state={"amount": 6}))


def test_breakpoint_before_sends_shows_and_binds_their_arguments() -> None:
    sends = (Send("pay", {"to": "Rosa"}), Send("pay", {"to": ("Eve",)}))
    info = replace(BREAK, sends=sends)
    approval = approval_of(info)
    shown = approval.arguments
    assert shown["“pay” gets, unless edited (1 of 2)"] == {"to": "Rosa"}
    assert shown["“pay” gets, unless edited (2 of 2)"] == {"to": ["Eve"]}
    assert ask_of(approval).names == ("amount", "place", "note")
    for other in (sends[:1], (sends[0], Send("pay", {"to": "Bob"})), (sends[0], sends[0]), ()):
        with pytest.raises(ResumeDataError, match="something other"):
            answer_from(decided(approval, Status.APPROVED), replace(info, sends=other))


def test_breakpoint_before_sends_can_be_edited() -> None:
    info = replace(BREAK, sends=(Send("pay", {"to": "Rosa"}),))
    approval = approval_of(info)
    new = {**approval.arguments, "amount": 7}
    fields = {"arguments": new, "digest": edited_digest(approval, new)}
    done = answer_from(decided(approval, Status.APPROVED, **fields), info)
    assert done == StateUpdate({"amount": 7})
    forged = {**new, "“pay” gets, unless edited": {"to": "Mallory"}}
    fields = {"arguments": forged, "digest": edited_digest(approval, forged)}
    is_refused(approval, Status.APPROVED, **fields)


def test_a_key_of_the_state_never_hides_what_a_send_gets() -> None:
    state: dict[str, object] = {"“pay” gets, unless edited": "nothing"}
    info = replace(BREAK, state=state, sends=(Send("pay", {"to": "Rosa"}),))
    assert list(approval_of(info).arguments.values()) == ["nothing", {"to": "Rosa"}]


def test_breakpoint_without_anything_to_edit() -> None:
    info = replace(BREAK, state={"trail": ("a",)}, kind="after")
    approval = approval_of(info)
    assert approval.title == "Continue after “pay”?"
    assert ask_of(approval).schema is None
    new: dict[str, object] = {"trail": ["b"]}
    fields = {"arguments": new, "digest": edited_digest(approval, new)}
    is_refused(approval, Status.APPROVED, **fields)
    assert approval_of(replace(BREAK, state=None)).arguments == {}


def test_kinds_of_values_that_are_there_are_kept() -> None:
    state = {"a": True, "b": 1.5, "c": ["x"], "d": [], "e": {"k": 1}, "f": {"$type": "x"}}
    schema = ask_of(approval_of(replace(BREAK, state=state, state_schema=None))).schema
    assert schema is not None
    assert schema["properties"] == {
        "a": {"type": "boolean"},
        "b": {"type": "number"},
        "c": {"type": "array", "items": {"type": "string"}},
        "d": {"type": "array"},
        "e": {"type": "object"},
    }
