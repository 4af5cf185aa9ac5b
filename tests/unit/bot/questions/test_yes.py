"""I2: one function lets buttons and forms agree, and it wants proof of the whole call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from bot.errors import InvalidInputError
from bot.layout.action_ids import ActionId
from bot.layout.blocks import Block
from bot.questions.drawing import OpenModal, drawn_question
from bot.questions.yes import Proof, yes
from bot.records.approval import Approval
from bot.slack.cards.break_glass import override_modal
from bot.slack.cards.grants import grant_modal
from bot.slack.cards.modals import agreeing_form
from tests.unit.bot.asked import AGREES
from tests.unit.bot.slack.cards.samples import (
    CRITICAL,
    GLASS,
    GRANTS,
    a_call_choice,
    a_choice,
    a_feedback,
    a_form,
    a_human,
    a_step,
    an_approval,
    under,
)

NOTHING = Proof(is_whole=False)
BUTTON: Block = {"type": "button", "action_id": "countersign:details", "text": "Approve"}
REVIEW: Block = {"type": "button", "action_id": "countersign:details", "text": "Review"}
FORM: Block = {
    "type": "modal",
    "callback_id": "countersign:details_modal",
    "submit": "Approve",
    "blocks": [{"type": "section"}, {"type": "input"}],
}


def test_with_proof_it_agrees() -> None:
    proof = Proof(is_whole=True)
    button = yes(ActionId.APPROVE, BUTTON, proof, REVIEW)
    assert button == {**BUTTON, "action_id": "countersign:approve"}
    form = yes(ActionId.GRANT_MODAL, FORM, proof)
    assert form == {**FORM, "callback_id": "countersign:grant_modal"}


def test_without_proof_it_only_shows() -> None:
    assert yes(ActionId.APPROVE, BUTTON, NOTHING, REVIEW) == REVIEW
    form = yes(ActionId.GRANT_MODAL, FORM, NOTHING)
    assert form == {
        "type": "modal",
        "callback_id": "countersign:details_modal",
        "blocks": [{"type": "section"}],
    }


def test_a_click_that_is_checked_is_labeled_as_the_review() -> None:
    made = yes(ActionId.APPROVE, BUTTON, Proof(is_whole=False, is_checked=True), REVIEW)
    assert made == {**REVIEW, "action_id": "countersign:approve"}


def forms_of(approval: Approval) -> Iterator[OpenModal]:
    for action in ActionId:
        with suppress(InvalidInputError):
            result = drawn_question(approval).press(action)
            if isinstance(result, OpenModal):
                yield result
    yield grant_modal(approval, GRANTS.grants)
    yield override_modal(approval, GLASS)


@pytest.mark.parametrize(
    "make",
    [
        *(an_approval, a_call_choice, a_choice, a_feedback, a_form, a_step),
        lambda: under(CRITICAL),
        lambda: a_human("accept", "edit", "response", "ignore"),
    ],
)
def test_nothing_that_is_built_agrees_before_there_is_proof(make: Callable[[], Approval]) -> None:
    approval = make()
    question = drawn_question(approval)
    buttons = [*question.yes(), *question.no(), *question.last(), *question.agree(NOTHING)]
    assert not {button["action_id"] for button in buttons} & AGREES
    agreeing = {button["action_id"] for button in question.agree(Proof(is_whole=True))}
    assert agreeing <= AGREES
    for form in forms_of(approval):
        assert form.view["callback_id"] not in AGREES
        assert form.agrees in {None, ActionId.ANSWER_MODAL} or form.agrees in AGREES
        shown = agreeing_form(approval, form, NOTHING)
        assert shown["callback_id"] not in AGREES
        assert form.agrees is None or "submit" not in shown
