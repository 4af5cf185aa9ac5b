"""The follow-up tool: the model asks, people answer."""

from __future__ import annotations

import pytest

from agents.core.asking.answers import ApprovalResult, Cancelled, Expired
from agents.core.asking.infos import FollowUpInfo
from agents.core.calls import ToolReturn
from agents.core.codec import Json
from agents.core.errors import InvalidArgumentsError, ResumeDataError
from agents.core.observers import ToolOutcome
from agents.gates.followup import follow_up_tool
from tests.unit.agents.stage import Stage

QUESTIONS: dict[str, Json] = {"questions": ["Which version?", "Where to?"]}


async def asked() -> tuple[Stage, FollowUpInfo]:
    stage = Stage(follow_up_tool(), dict(QUESTIONS))
    assert await stage.run() is None
    return stage, stage.question(FollowUpInfo)


async def test_questions_are_shown() -> None:
    _, info = await asked()
    assert info.questions == ("Which version?", "Where to?")
    assert str(info) == "The agent needs to know:\n1. Which version?\n2. Where to?"


async def test_a_text_or_the_info_with_one_is_an_answer() -> None:
    for is_text in (True, False):
        stage, info = await asked()
        answer = "1.4.2, production" if is_text else info.answer("1.4.2, production")
        assert await stage.answer(answer) == ToolReturn("1.4.2, production", ToolOutcome.ANSWERED)


@pytest.mark.parametrize(
    "answer",
    [None, "", "  ", 5, FollowUpInfo(questions=("a",)), ApprovalResult(approved=True)],
)
async def test_empty_or_wrong_answer_is_refused_and_asked_on(answer: object) -> None:
    stage, _ = await asked()
    assert isinstance(await stage.refused(answer), ResumeDataError)


@pytest.mark.parametrize(
    ("answer", "outcome", "fact", "end"),
    [
        (Expired(waited="8 hours"), ToolOutcome.EXPIRED, "Nobody answered in time (8 hours)", ""),
        (Expired(), ToolOutcome.EXPIRED, "Nobody answered in time", ""),
        (Cancelled(), ToolOutcome.CANCELLED, "The request was cancelled", ""),
        (
            Cancelled(reason="late"),
            ToolOutcome.CANCELLED,
            "The request was cancelled",
            " Reason: late",
        ),
    ],
)
async def test_nobody_answered(answer: object, outcome: ToolOutcome, fact: str, end: str) -> None:
    stage, _ = await asked()
    text = f"{fact}; the questions are open. This is not a rejection.{end}"
    assert await stage.answer(answer) == ToolReturn(text, outcome)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"questions": []},
        {"questions": "Which?"},
        {"questions": [""]},
        {"questions": ["  "]},
        {"questions": ["a"] * 6},
        {"questions": ["a" * 301]},
        {"questions": ["a"], "more": 1},
    ],
)
def test_questions_must_be_few_and_short(arguments: dict[str, Json]) -> None:
    with pytest.raises(InvalidArgumentsError):
        follow_up_tool().validate(arguments)


def test_title_counts_questions() -> None:
    made = follow_up_tool("ask", "Ask.")
    assert made.definition.name == "ask"
    assert made.definition.description == "Ask."
    assert made.describe(QUESTIONS).title == "Answer 2 questions"
    assert made.describe({"questions": ["a"]}).title == "Answer 1 question"
