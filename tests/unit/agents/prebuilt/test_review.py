"""The feedback loop: people say what should be different, until nothing should."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from agents.agent import ActionEvent, Agent, MessageEvent
from agents.core.asking.answers import Cancelled, Expired
from agents.core.calls import BreakLoop, Exit
from agents.core.errors import AgentConfigError, CheckpointDecodeError, ResumeDataError
from agents.gates.questions import FeedbackInfo
from agents.prebuilt.review import ReviewAgent
from agents.workflows.sequential import LoopAgent
from tests.unit.agents.support import Solo, collect, contexts


@dataclass
class Desk(Solo):
    """A reviewer with a text to review."""

    agent: Agent = field(default_factory=ReviewAgent)
    values: dict[str, object] = field(default_factory=lambda: {"content_to_review": "A poem."})

    async def begin(self) -> tuple[str, FeedbackInfo]:
        events = self.runner.query("hi", checkpoint_id="1", session_values=self.values)
        (context,) = contexts(await collect(events)).values()
        assert isinstance(context.info, FeedbackInfo)
        return context.id, context.info


@pytest.mark.parametrize("is_plain", [True, False])
async def test_feedback_is_said(is_plain: bool) -> None:
    review = Desk()
    key, info = await review.begin()
    (event,) = await review.answer({key: "shorter" if is_plain else info.give("shorter")})
    assert isinstance(event, MessageEvent)
    assert event.text == "shorter"


async def test_next_round_names_the_version_before_and_what_was_wanted() -> None:
    review = Desk(LoopAgent("Loop", [ReviewAgent()], max_iterations=9))
    key, info = await review.begin()
    assert info == FeedbackInfo(original_content="A poem.")
    for version, wish in ((2, "shorter"), (3, "in blue")):
        (context,) = contexts(await review.answer({key: info.give(wish)})).values()
        assert context.info == FeedbackInfo(
            original_content="A poem.", version=version, previous="A poem.", wanted=wish
        )
        key, info = context.id, context.info


@pytest.mark.parametrize("action", [Exit(), BreakLoop()])
async def test_accepted_text_ends_the_loop(action: Exit | BreakLoop) -> None:
    review = Desk(ReviewAgent(when_done=action))
    key, info = await review.begin()
    (event,) = await review.answer({key: info.accept()})
    assert isinstance(event, ActionEvent)
    assert event.action == action


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (Expired(), "Nobody gave feedback in time. Nobody has agreed to the text, either."),
        (Cancelled(), "The request was cancelled. Nobody has agreed to the text."),
    ],
)
async def test_silence_is_not_consent(answer: object, text: str) -> None:
    review = Desk()
    key, _ = await review.begin()
    said, action = await review.answer({key: answer})
    assert isinstance(said, MessageEvent)
    assert said.text == text
    assert isinstance(action, ActionEvent)


@pytest.mark.parametrize(
    "answer",
    [
        "",
        " ",
        5,
        True,
        FeedbackInfo(original_content="A poem."),
        FeedbackInfo(original_content="A poem.", feedback="  "),
        FeedbackInfo(original_content="Another poem.", no_need_to_edit=True),
    ],
)
async def test_answer_that_says_nothing_is_refused(answer: object) -> None:
    review = Desk()
    key, info = await review.begin()
    with pytest.raises(ResumeDataError):
        await review.answer({key: answer})
    assert await review.answer({key: info.accept()})


async def test_e213_reviewer_asks_again_with_its_text_as_often_as_needed() -> None:
    review = Desk()
    key, info = await review.begin()
    for _ in range(2):
        events = await collect(review.runner.resume("1"))
        (context,) = contexts(events).values()
        assert context.info == info
        assert context.id != key
        key = context.id
    assert await review.answer({key: info.accept()})


async def test_accepting_wins_over_feedback() -> None:
    review = Desk()
    key, _ = await review.begin()
    both = FeedbackInfo(original_content="A poem.", feedback="longer", no_need_to_edit=True)
    (event,) = await review.answer({key: both})
    assert isinstance(event, ActionEvent)


@pytest.mark.parametrize("values", [{}, {"content_to_review": ""}, {"content_to_review": 5}])
async def test_text_that_is_not_there_is_a_mistake(values: dict[str, object]) -> None:
    with pytest.raises(AgentConfigError, match="output_key='content_to_review'"):
        await Desk(values=values).begin()


async def test_key_can_be_chosen() -> None:
    review = Desk(ReviewAgent(content_key="draft"), values={"draft": "B"})
    _, info = await review.begin()
    assert info.original_content == "B"


async def test_lost_text_is_an_error() -> None:
    review = Desk()
    key, info = await review.begin()
    stored = await review.store.load("1")
    assert stored is not None
    assert stored.data.count('"$type":"countersign.feedback_info/1"') == 2
    text = stored.data.replace(
        '"state":{"$type":"countersign.feedback_info/1","value"', '"state":{"x"'
    )
    await review.store.save("1", text, status=stored.status, expected_version=stored.version)
    with pytest.raises(CheckpointDecodeError, match="lost"):
        await review.answer({key: info.accept()})


@pytest.mark.parametrize(
    "fields", [{"original_content": 5}, {"feedback": 5}, {"no_need_to_edit": "no"}]
)
def test_stored_feedback_is_checked(fields: dict[str, object]) -> None:
    with pytest.raises(TypeError):
        FeedbackInfo(**{"original_content": "x", **fields})  # type: ignore[arg-type]
