"""The card of a question: what only people know."""

from __future__ import annotations

from dataclasses import replace

from bot.core.unseen import guesses
from bot.layout.arguments import Budget, Listed, list_arguments, read_object
from bot.layout.blocks import Block, Card, header, line, literal, quote, rich, section
from bot.layout.parts import (
    REASON,
    TEXT,
    WHY,
    Body,
    agreed,
    body,
    deciders,
    final_print,
    notes,
    outcome,
    said,
    small_print,
    spoken,
    spoken_outcome,
    spoken_title,
    title_hidden,
    title_of,
)
from bot.layout.text import clip_mrkdwn, more, show
from bot.mrkdwn import mention, utc
from bot.questions.form import Ask, Form, ask_of, is_yes_or_no
from bot.questions.validate import spoken_type
from bot.redaction.call import mask_call, written
from bot.redaction.mask import mask_text
from bot.slack.cards.buttons import choices
from bot.slack.cards.outcomes import (
    answered,
    answers_of,
    content_of,
    option_words,
    options_of,
    outcome_words,
    questions_of,
)
from storage.records import Approval, Status

MOST_QUESTIONS = 10
"""More are in Details; the agent's own tool allows fewer."""
QUESTION = 4_000
ANSWER = 2_000
CONTENT = 3_000
SHOWN = Budget(whole=2_400, value=700)
_BUTTONS_ONLY = "Choose a button below."
_FORM_ONLY = "Choose *Answer…* for a short form."
_HINTS = {
    Form.CALL: _BUTTONS_ONLY,
    Form.HUMAN: _BUTTONS_ONLY,
    Form.STEP: _BUTTONS_ONLY,
    Form.TEXTS: "Reply in this thread, or choose *Answer…*",
    Form.FEEDBACK: "Reply in this thread with what should be different, or choose a button.",
    Form.CHOICE: "Choose below, or reply in this thread with one number or label.",
    Form.FIELDS: _FORM_ONLY,
    Form.PROGRAM: "This cannot be answered here.",
}


def question_card(approval: Approval, *, approvers_text: str) -> Card:
    """Draw the card of a question as the record stands.

    Args:
        approval: The record, of kind question.
        approvers_text: Who may answer, in our own words.

    Returns:
        The card: with a button while it is pending, without any afterwards.
    """
    ask, about = ask_of(approval), describe_question(approval)
    title = header(title_of(approval))
    if approval.status is Status.PENDING:
        hint = section(_hint(approval, ask))
        small = small_print(approval, deciders(approval, approvers_text))
        blocks = [title, *about.blocks, hint, small, *notes(about, can_open=True)]
        blocks += choices(approval, hidden=bool(about.hidden))
        return Card(text=_pending_text(approval, ask), blocks=blocks)
    words = outcome_words(approval)
    told = answered(approval)
    blocks = [title, *outcome(approval, approval.decision, words)]
    blocks += [rich(*told.elements)] if told.elements else []
    blocks += about.blocks
    return Card(
        text=spoken(f"{spoken_title(approval)}:", spoken_outcome(approval, words)),
        blocks=[*blocks, final_print(approval), *notes(about, can_open=False)],
    )


def describe_question(approval: Approval) -> Body:
    """Show why it is asked, and what."""
    made = body(
        (
            Listed(hidden=title_hidden(approval)),
            said("Why, in the agent's own words", approval.why, WHY),
            *_asked(approval, ask_of(approval)),
        )
    )
    return replace(made, guessed=bool(guesses(approval)))


def _hint(approval: Approval, ask: Ask) -> str:
    if is_yes_or_no(ask):
        return _BUTTONS_ONLY
    match spoken_type(approval):
        case "string":
            return _HINTS[Form.TEXTS]
        case "integer" | "number":
            return "Reply in this thread with a whole number, or choose *Answer…*"
        case _:
            return _HINTS[ask.form]


def _asked(approval: Approval, ask: Ask) -> tuple[Listed, ...]:
    match ask.form:
        case Form.CHOICE:
            return (_below(approval), options_of(ask))
        case Form.FEEDBACK:
            return (agreed("The text", content_of(approval), CONTENT),)
        case Form.PROGRAM:
            why = said("Only a program can answer this", ask.program, REASON)
            return (_exchange(approval), _below(approval), why)
        case _:
            return (_exchange(approval), _below(approval))


def _below(approval: Approval) -> Listed:
    """What a question shows below it."""
    found = (read_object(approval.arguments_json) or {}).get("shown")
    return list_arguments(found.items(), SHOWN) if isinstance(found, dict) else Listed()


def _exchange(approval: Approval) -> Listed:
    questions = questions_of(approval)
    shown_questions = questions[:MOST_QUESTIONS]
    answers = _placed(approval, len(shown_questions))
    most = QUESTION // len(shown_questions)
    elements: list[Block] = []
    hidden = sum(map(len, questions[MOST_QUESTIONS:]))
    masked = altered = False
    for index, question in enumerate(shown_questions):
        clean = mask_text(question)
        shown = show(clean, most - 40, lines=20)
        label = [] if len(questions) == 1 else [literal(f"{index + 1}. ", "bold")]
        elements.append(line(*label, literal(shown.text or "…"), *_rest(shown.hidden)))
        hidden += shown.hidden
        masked, altered = masked or clean != question, altered or shown.altered
        if (given := answers.get(index)) is not None:
            answer = show(mask_text(given), ANSWER // len(shown_questions) - 40, lines=20)
            elements.append(quote(literal(answer.text or "…"), *_rest(answer.hidden)))
            hidden += answer.hidden
    return Listed(elements=tuple(elements), hidden=hidden, masked=masked, altered=altered)


def _placed(approval: Approval, questions: int) -> dict[int, str]:
    """The answers, by their question; a single one, such as a reply, is below the last."""
    answers = answers_of(approval) if ask_of(approval).form is Form.TEXTS else []
    if len(answers) == 1:
        return {questions - 1: answers[0]}
    return dict(enumerate(answers))


def _rest(hidden: int) -> list[Block]:
    return [literal(f" {more(hidden)}", "italic")] if hidden else []


def _pending_text(approval: Approval, ask: Ask) -> str:
    match ask.form:
        case Form.CHOICE:
            options = ask.options[:MOST_QUESTIONS]
            asked = [written(mask_call(one)) for one in (ask.question, *map(option_words, options))]
        case Form.FEEDBACK:
            asked = [written(mask_call(content_of(approval)))]
        case _:
            asked = [mask_text(one) for one in questions_of(approval)]
    return spoken(
        f"Question: {spoken_title(approval)}.",
        f"Asked in the thread of {mention(approval.requester_id)}.",
        f"Expires {utc(approval.expires_ms)}.",
        clip_mrkdwn(" ".join(asked), TEXT),
    )
