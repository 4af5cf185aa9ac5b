"""Presses buttons of a record and submits its forms, without Slack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bot.layout.action_ids import PICKS, ActionId
from bot.layout.blocks import Block
from bot.layout.modals import Errors, Values
from bot.questions.choice import ChoiceQuestion
from bot.questions.drawing import DecisionDraft, OpenModal, Proposal, drawn_question
from bot.questions.fields import FieldsQuestion
from bot.questions.inputs import InputsQuestion
from bot.questions.yes import Proof, yes
from bot.records.approval import Approval
from bot.redaction.masks import masked_once
from bot.slack.cards.details import pages_of
from bot.slack.cards.modals import agreeing_form
from bot.slack.cards.review import FormReader, count_pages, review_modal, text_page

WHOLE = Proof(is_whole=True)
AGREES = frozenset(
    {
        *PICKS,
        ActionId.ACCEPT,
        ActionId.APPROVE,
        ActionId.APPROVE_ALL,
        ActionId.BATCH_MODAL,
        ActionId.CHOOSE_MODAL,
        ActionId.EDIT_MODAL,
        ActionId.GRANT_MODAL,
        ActionId.OVERRIDE_MODAL,
        ActionId.REVIEW_MODAL,
    }
)
"""Ids of all buttons and forms that agree to something."""


def opened_by(approval: Approval, action: str) -> OpenModal:
    """What a button opens."""
    result = drawn_question(approval).press(action)
    assert isinstance(result, OpenModal)
    return result


def modal_of(approval: Approval, action: str) -> Block:
    """The modal that a button opens, without what else is shown of the call."""
    form = opened_by(approval, action)
    if form.agrees is None or "submit" not in form.view:
        return form.view
    return yes(form.agrees, form.view, WHOLE)


def form_of(approval: Approval, form: OpenModal) -> Block:
    """The modal of a reader who knows the whole call."""
    return agreeing_form(approval, form, WHOLE)


def answer_modal(approval: Approval) -> Block:
    return modal_of(approval, ActionId.ANSWER)


def choose_modal(approval: Approval) -> Block:
    return modal_of(approval, ActionId.CHOOSE)


def edit_modal(approval: Approval) -> Block:
    return modal_of(approval, ActionId.EDIT)


def reject_modal(approval: Approval) -> Block:
    return modal_of(approval, ActionId.REJECT)


def obstacle_of(approval: Approval) -> str:
    """Why the form of a record cannot be made."""
    question = drawn_question(approval)
    assert isinstance(question, InputsQuestion)
    return question.obstacle


def draft_of(approval: Approval, modal_id: str, values: Values) -> DecisionDraft:
    """The decision that a form makes at once."""
    result = drawn_question(approval).submit(modal_id, values)
    assert isinstance(result, DecisionDraft)
    return result


def proposal_of(approval: Approval, modal_id: str, values: Values) -> Proposal:
    """The arguments that a form gives a call."""
    result = drawn_question(approval).submit(modal_id, values)
    assert isinstance(result, Proposal)
    return result


def errors_of(approval: Approval, modal_id: str, values: Values) -> Errors:
    """The errors at a form that decides nothing."""
    result = drawn_question(approval).submit(modal_id, values)
    assert isinstance(result, dict)
    return result


def chosen_digest(approval: Approval, ids: Sequence[str]) -> str:
    question = drawn_question(approval)
    assert isinstance(question, ChoiceQuestion)
    return question.digest_of(ids)


def filled_digest(approval: Approval, values: Mapping[str, object]) -> str:
    question = drawn_question(approval)
    assert isinstance(question, FieldsQuestion)
    return question.digest_of(values)


def review_pages(approval: Approval, reader: FormReader | None = None) -> list[Block]:
    """The pages of the form about a card: of the full text, the first two and the last."""
    count = count_pages(approval)
    texts = [text_page(number) for number in sorted({1, 2, count}) if 0 < number <= count]
    pages = ["request", *texts, "history", "technical"]
    with masked_once():
        return [review_modal(approval, reader or FormReader(), page=page) for page in pages]


def details_of(approval: Approval) -> Block:
    """Everything that somebody reads of an approval, as if it were on one page."""
    first, (texts, _) = review_modal(approval, FormReader()), pages_of(approval)
    return {**first, "blocks": [*first["blocks"], *texts]}
