"""Infos and answers: which belong together, and that they can be stored."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from agents.core.asking.answers import (
    ApprovalResult,
    Cancelled,
    Expired,
    InDoubtResult,
    ReviewEditResult,
)
from agents.core.asking.infos import ApprovalInfo, FollowUpInfo, InDoubtInfo, ReviewEditInfo
from agents.core.codec import Json, decode, encode
from agents.core.errors import CheckpointDecodeError, ResumeDataError
from agents.core.pending import Answerable

FIELDS: dict[str, Any] = {
    "tool_name": "pay",
    "arguments": {"euros": 5, "$type": "tuple"},
    "call_id": "c1",
    "title": "Pay 5",
    "why": "",
    "preview": "",
    "schema": {"type": "object"},
    "digest": "",
    "rule": "always",
    "thread": "t1",
    "address": "agent:A;tool:pay:c1",
}
_BARE = ApprovalInfo(**FIELDS)
DIGEST = _BARE.digest_of(_BARE.arguments)
APPROVAL = replace(_BARE, digest=DIGEST)
REVIEW = ReviewEditInfo(**{**FIELDS, "digest": DIGEST})
FOLLOW_UP = FollowUpInfo(questions=("Why?",))
DOUBT = InDoubtInfo(tool_name="pay", arguments={"euros": 5}, title="Pay 5", call_id="c1")
ENDS = [Expired(), Expired(waited="1 h"), Cancelled(), Cancelled(by="U1", reason="no need")]
FITS: dict[Any, list[object]] = {
    "approval": [APPROVAL.approve(), APPROVAL.reject(), APPROVAL.reject("no", by="U1")],
    "review": [REVIEW.accept(by="U1"), REVIEW.edit({"euros": 4}), REVIEW.reject("no")],
    "follow-up": ["because", FOLLOW_UP.answer("because")],
    "doubt": [InDoubtResult(choice="ran", result="ok"), InDoubtResult(choice="give_up", by="U1")],
}
INFOS = {"approval": APPROVAL, "review": REVIEW, "follow-up": FOLLOW_UP, "doubt": DOUBT}


@pytest.mark.parametrize("kind", INFOS)
def test_each_info_takes_its_own_answers_and_no_others(kind: str) -> None:
    info = cast("Answerable", INFOS[kind])
    for other, answers in FITS.items():
        for answer in answers:
            if other == kind:
                info.check_answer(answer)
            else:
                with pytest.raises(ResumeDataError):
                    info.check_answer(answer)


@pytest.mark.parametrize("kind", INFOS)
@pytest.mark.parametrize("answer", [None, True, 5, {}, object(), b"yes"])
def test_no_info_takes_anything_else(kind: str, answer: object) -> None:
    with pytest.raises(ResumeDataError):
        cast("Answerable", INFOS[kind]).check_answer(answer)


@pytest.mark.parametrize("info", INFOS.values())
def test_infos_say_what_they_ask(info: object) -> None:
    assert isinstance(info, Answerable)
    assert "?" in str(info)


def test_rejection_needs_no_digest() -> None:
    APPROVAL.check_answer(ApprovalResult(approved=False))
    REVIEW.check_answer(ReviewEditResult(disapproved=True))


def test_edit_is_bound_to_what_was_edited() -> None:
    edit = REVIEW.edit({"euros": 4})
    assert edit.digest != REVIEW.digest
    with pytest.raises(ResumeDataError, match="not bound"):
        REVIEW.check_answer(replace(edit, edited_arguments={"euros": 400}))


def test_info_without_a_digest_can_not_be_approved() -> None:
    with pytest.raises(ResumeDataError, match="not bound"):
        _BARE.check_answer(ApprovalResult(approved=True, digest=""))


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (ApprovalResult, {"approved": "no"}),
        (ApprovalResult, {"approved": 1}),
        (ApprovalResult, {"approved": True, "digest": 5}),
        (ReviewEditResult, {"no_need_to_edit": "no"}),
        (ReviewEditResult, {"edited_arguments": "{}"}),
        (ReviewEditResult, {"disapproved": None}),
        (Expired, {"waited": None}),
        (Cancelled, {"by": 5}),
        (InDoubtResult, {"choice": "ran", "result": 5}),
    ],
)
def test_answers_of_wrong_types_cannot_be_made(kind: Any, fields: dict[str, object]) -> None:
    with pytest.raises(TypeError, match="must be"):
        kind(**fields)


def test_doubt_has_three_choices() -> None:
    with pytest.raises(ValueError, match="no such choice"):
        InDoubtResult(choice=cast("Any", "maybe"))


def test_tampered_store_gives_no_answer() -> None:
    data = cast("dict[str, Json]", encode(ApprovalResult(approved=False)))
    cast("dict[str, Json]", data["value"])["approved"] = "yes"
    with pytest.raises(CheckpointDecodeError):
        decode(data)
