"""Questions: the typed answer that a decision gives, and what a reply may say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agents import FollowUpInfo, ResumeDataError
from agents.core.codec import Json
from agents.gates.questions import Choice, ChoiceInfo, ChoiceResult
from bot.errors import InvalidInputError
from bot.questions.base import answer_from, question_of, read_reply
from bot.records.approval import Status
from tests.unit.bot.questions.info_samples import (
    BY,
    CALL_CHOICE,
    CHOOSE,
    FEEDBACK,
    approval_of,
    decided,
    forced,
    is_refused,
)


@pytest.mark.parametrize(("texts", "words"), [(["one"], "one"), (["one", "two"], "a\none\nb\ntwo")])
def test_follow_up(texts: list[str], words: str) -> None:
    info = FollowUpInfo(questions=("a", "b"))
    approval = approval_of(info)
    assert approval.title == "2 questions"
    assert approval_of(replace(info, about="the deploy")).title == "2 questions about the deploy"
    done = decided(approval, Status.ANSWERED, answer=texts)
    assert answer_from(done, info) == info.answer(words)
    unfit: list[Json] = [[], [" "], {}, "x", None]
    for wrong in unfit:
        is_refused(approval, Status.ANSWERED, answer=wrong)
    is_refused(approval, Status.APPROVED)
    with pytest.raises(TypeError, match="no list"):
        question_of(forced(approval, Status.ANSWERED, answer={})).answer_text()


def test_feedback() -> None:
    approval = approval_of(FEEDBACK)
    assert approval.arguments == {"content": "A poem."}
    good = decided(approval, Status.ANSWERED, answer={"accepted": True})
    assert answer_from(good, FEEDBACK) == FEEDBACK.accept()
    done = decided(approval, Status.ANSWERED, answer={"feedback": "Shorter."})
    assert answer_from(done, FEEDBACK) == FEEDBACK.give("Shorter.")
    unfit: list[Json] = [{"feedback": " "}, {"accepted": 1}, {}, [], {"feedback": "a", "b": 1}]
    for wrong in unfit:
        is_refused(approval, Status.ANSWERED, answer=wrong)
    with pytest.raises(InvalidInputError):
        question_of(approval).no_status()


@pytest.mark.parametrize("words", ["no need to edit", "No need to edit.", " NO NEED TO EDIT! "])
def test_reply_that_all_is_good(words: str) -> None:
    assert read_reply(approval_of(FEEDBACK), words) == {"accepted": True}


def test_choice() -> None:
    approval = approval_of(CHOOSE)
    done = decided(approval, Status.ANSWERED, answer={"selected": ["p"]})
    assert answer_from(done, CHOOSE) == ChoiceResult(selected=("p",), digest=approval.digest, by=BY)
    none = answer_from(decided(approval, Status.REJECTED, reason="neither"), CHOOSE)
    assert none == ChoiceResult(declined=True, reason="neither", by=BY)
    for wrong in (["p", "s"], ["x"], [], ["p", "p"]):
        is_refused(approval, Status.ANSWERED, answer={"selected": wrong})
    both = forced(approval, Status.ANSWERED, answer={"selected": ["p", "s"]})
    with pytest.raises(ResumeDataError):
        answer_from(both, CHOOSE)
    with pytest.raises(ResumeDataError, match="no list"):
        answer_from(forced(approval, Status.ANSWERED, answer={"selected": "p"}), CHOOSE)


@pytest.mark.parametrize(
    ("words", "chosen"),
    [
        ("2", "p"),
        (" production ", "p"),
        ("Production.", "p"),
        ("nowhere", "n"),
        ("4", ""),
        ("0", ""),
        ("Staging and Production", ""),
        ("prod", ""),
        ("", ""),
    ],
)
def test_reply_that_names_an_option(words: str, chosen: str) -> None:
    wanted = {"selected": [chosen]} if chosen else None
    assert read_reply(approval_of(CHOOSE), words) == wanted
    assert "number or label" in question_of(approval_of(CHOOSE)).reply_hint()


def test_reply_that_names_two_options_names_none() -> None:
    options = (Choice(id="a", label="2"), Choice(id="b", label="x"), Choice(id="c", label="X!"))
    approval = approval_of(ChoiceInfo(question="?", options=options))
    assert read_reply(approval, "2") is None
    assert read_reply(approval, "x") is None
    assert read_reply(approval, "1") == {"selected": ["a"]}


def test_reply_never_chooses_what_runs() -> None:
    assert read_reply(approval_of(CALL_CHOICE), "Production") is None
