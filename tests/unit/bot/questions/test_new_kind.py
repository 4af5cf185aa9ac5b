"""A kind of question from outside plays through Slack: its card, buttons, form and reply."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from agents import ResumeDataError
from agents.core.codec import Json
from bot.errors import InvalidInputError
from bot.layout.action_ids import ActionId
from bot.ports.threads import CheckedCall
from bot.questions.base import _KINDS, QuestionDraft, answer_from
from bot.questions.drawing import Proposal, drawn_question, register
from bot.questions.form import FORM, AnswerForm, ask_of
from bot.records.approval import Approval, Kind, Status
from bot.slack.cards.card_for import card_for
from slack_sandbox.blockkit.rules import message_errors, view_errors
from tests.scenario.asking import RAN, custom
from tests.support.stores import SqliteStores
from tests.unit.bot.counter_stage import Counter, a_click, a_submission, an_event, typed
from tests.unit.bot.office import ADA, Office
from tests.unit.bot.questions.info_samples import approval_of, decided, forced, is_refused
from tests.unit.bot.questions.rating import BEST, MODAL, OTHER, RatingInfo, RatingQuestion

INFO = RatingInfo("the release")


@pytest.fixture
async def counter(storage: SqliteStores) -> Counter:
    RAN.clear()
    counter = Counter.on(Office(storage, [], make_agent=custom(INFO)))
    await counter.send(an_event(text="<@UBOT> go"))
    return counter


def actions_in(approval: Approval) -> list[str]:
    blocks = card_for(approval, approvers_text="everybody").blocks
    rows = [block["elements"] for block in blocks if block["type"] == "actions"]
    return [button["action_id"] for row in rows for button in row]


@pytest.fixture
def late() -> Iterator[str]:
    """A kind that became known after people were asked, and takes the info for its own."""

    @register
    class LateQuestion(RatingQuestion):
        form = "tests.late"

        @classmethod
        def read(cls, info: object) -> QuestionDraft | None:
            brief = super().read(info)
            return brief and replace(brief, ask=AnswerForm(form=cls.form))

        def answer(self, info: object) -> object:
            return -1

    yield LateQuestion.form
    del _KINDS[LateQuestion.form]


def test_an_answer_is_read_by_the_kind_that_asked(request: pytest.FixtureRequest) -> None:
    done = decided(approval_of(INFO), Status.ANSWERED, answer=5)
    late = str(request.getfixturevalue("late"))
    assert ask_of(approval_of(INFO)).form == late
    assert answer_from(done, INFO) == 5


async def test_its_card_has_its_own_buttons(counter: Counter) -> None:
    approval = await counter.office.the_approval()
    assert (approval.kind, ask_of(approval).form) == (Kind.QUESTION, RatingQuestion.form)
    assert isinstance(drawn_question(approval), RatingQuestion)
    assert actions_in(approval) == [BEST, OTHER, ActionId.MORE]
    card = card_for(approval, approvers_text="everybody")
    assert "How good was the release?" in json.dumps(card.blocks)
    assert message_errors({"text": card.text, "blocks": card.blocks}) == []


async def test_its_button_decides_and_resumes(counter: Counter) -> None:
    pending = await counter.office.the_approval()
    await counter.send(a_click(pending, BEST))
    approval = await counter.office.storage.approvals.get(pending.approval_id)
    assert approval.status is Status.ANSWERED
    assert RAN == [5]
    card = json.dumps(card_for(approval, approvers_text="").blocks)
    assert "Rated" in card
    assert actions_in(approval) == []
    assert "5 stars" in card


async def test_its_form_opens_refuses_and_decides(counter: Counter) -> None:
    approval = await counter.office.the_approval()
    await counter.send(a_click(approval, OTHER))
    (view,) = counter.views.opened
    assert view["callback_id"] == MODAL
    assert view_errors(view) == []
    answer = await counter.send(a_submission(approval, MODAL, typed("stars", "9")))
    assert json.loads(answer.body)["errors"] == {"stars": "Please write a number from 1 to 5."}
    assert RAN == []
    await counter.send(a_submission(approval, MODAL, typed("stars", "3")))
    assert RAN == [3]


@pytest.mark.parametrize("action", [ActionId.APPROVE, ActionId.ACCEPT, "countersign:no_such"])
async def test_buttons_of_other_kinds_do_nothing(counter: Counter, action: str) -> None:
    await counter.send(a_click(await counter.office.the_approval(), action))
    assert "isn't one I made" in counter.private_text(ADA)
    assert RAN == []


@pytest.mark.parametrize("wrong", [6, 0, None, "5", [5], 5.0])
def test_what_it_does_not_take_is_not_recorded(wrong: Json) -> None:
    with pytest.raises(InvalidInputError, match="This answer"):
        decided(approval_of(INFO), Status.ANSWERED, answer=wrong)


def test_a_damaged_answer_resumes_nothing() -> None:
    assert answer_from(decided(approval_of(INFO), Status.ANSWERED, answer=5), INFO) == 5
    with pytest.raises(ResumeDataError):
        answer_from(forced(approval_of(INFO), Status.ANSWERED, answer="x"), INFO)


def test_it_proposes_nothing_about_a_call() -> None:
    question = drawn_question(approval_of(INFO))
    proposal, call = Proposal(arguments={}), CheckedCall(arguments={})
    for do in (
        lambda: question.settle(proposal, call),
        lambda: question.place_errors(ResumeDataError("no")),
        lambda: question.refuse("it is too much"),
        lambda: question.press(ActionId.REJECT),
    ):
        with pytest.raises(InvalidInputError):
            do()


def test_a_form_has_one_kind() -> None:
    with pytest.raises(ValueError, match="already"):
        register(RatingQuestion)


def test_a_form_that_is_not_there_any_more_is_answered_by_nobody() -> None:
    approval = approval_of(INFO).changed(form={FORM: "tests.gone"})
    assert "don't know how to ask people" in ask_of(approval).program
    assert actions_in(approval) == [ActionId.MORE]
    is_refused(approval, Status.ANSWERED, answer=5)
