"""How an approval ended, and what people answered: in words, by the form of its answer."""

from __future__ import annotations

import json

from bot.layout.arguments import Budget, Listed, list_arguments, read_object, text_width
from bot.layout.blocks import Block, line, literal
from bot.layout.parts import REASON, said, worded
from bot.layout.text import clip, more, show
from bot.questions.form import Ask, Form, Option, ask_of, is_yes_or_no
from bot.redaction.call import has_guess, length, mask_call, mask_value, masks_in, written
from storage.records import Approval, Kind, Status

FILLED = Budget(whole=1_600, value=500)
OPTIONS = 2_400
"""Characters of all options together."""
OPTION = 400
MOST_SHOWN = 20
"""More options are in Details."""
MOST_OPTIONS = 100
"""More do not fit a menu."""

_WORDS = {
    Status.PENDING: "Waiting for a decision",
    Status.APPROVED: "Approved",
    Status.REJECTED: "Rejected",
    Status.ANSWERED: "Answered",
    Status.EXPIRED: "Expired",
    Status.CANCELLED: "Cancelled",
    Status.WITHDRAWN: "Withdrawn",
    Status.UNDECIDABLE: "Nobody can decide this",
}
_QUESTION_WORDS = {
    Status.PENDING: "Waiting for an answer",
    Status.APPROVED: "Answered",
    Status.REJECTED: "Not answered",
}
_FORM_WORDS = {
    (Form.HUMAN, Status.ANSWERED): "Answered in place of a run",
    (Form.HUMAN, Status.REJECTED): "Ignored",
    (Form.STEP, Status.APPROVED): "Continued",
    (Form.STEP, Status.REJECTED): "Stopped",
    (Form.CHOICE, Status.APPROVED): "Chosen",
    (Form.CHOICE, Status.ANSWERED): "Chosen",
    (Form.CHOICE, Status.REJECTED): "None chosen",
    (Form.FIELDS, Status.APPROVED): "Filled in",
    (Form.FEEDBACK, Status.ANSWERED): "Feedback given",
}


def outcome_words(approval: Approval) -> str:
    """Name the status for people, as what it means for this form."""
    form, status = ask_of(approval).form, approval.status
    decision = approval.decision
    if status is Status.APPROVED and decision is not None and decision.arguments_json:
        return "Edited and continued" if form is Form.STEP else "Edited and approved"
    if form is Form.FEEDBACK and _told(approval).get("accepted") is True:
        return "Accepted as it is"
    if form is Form.FIELDS and status is Status.ANSWERED and approval.tool:
        return "Filled in"
    found = _FORM_WORDS.get((form, status))
    if found is None and approval.kind is Kind.QUESTION:
        found = _QUESTION_WORDS.get(status)
    return found or _WORDS[status]


def no_words(ask: Ask, *, tool: str) -> str:
    """Name the refusal, for a button and its modal."""
    match ask.form:
        case Form.STEP:
            return "Stop"
        case Form.FIELDS:
            return "Cancel"
        case Form.CHOICE if not tool:
            return "None of these"
        case _:
            return "Reject"


def answered(approval: Approval) -> Listed:
    """Show what people answered; nothing where the outcome says it all."""
    ask = ask_of(approval)
    if approval.decision is None or not approval.decision.answer_json:
        return Listed()
    match ask.form:
        case Form.CHOICE:
            chosen = "\n".join(option.label for option in chosen_of(approval, ask))
            return said("Choice", chosen, REASON)
        case Form.FIELDS:
            return _filled(approval, ask)
        case Form.FEEDBACK:
            feedback = _told(approval).get("feedback")
            return said("Feedback", feedback if isinstance(feedback, str) else "", 4 * REASON)
        case Form.HUMAN:
            return said("What the agent is told", "\n".join(answers_of(approval)), REASON)
        case _:
            return Listed()


def questions_of(approval: Approval) -> list[str]:
    """Read the questions of a record, in order; one line when it cannot be read."""
    found = (read_object(approval.arguments_json) or {}).get("questions")
    if not isinstance(found, list) or not found:
        return [approval.title or "?"]
    return [item if isinstance(item, str) and item.strip() else json.dumps(item) for item in found]


def content_of(approval: Approval) -> str:
    """Read the text that people shall give feedback on."""
    found = (read_object(approval.arguments_json) or {}).get("content")
    return found if isinstance(found, str) and found.strip() else "(nothing)"


def answers_of(approval: Approval) -> list[str]:
    """Read the answers of a decided question, in order; empty when there are none."""
    if approval.decision is None:
        return []
    try:
        found = json.loads(approval.decision.answer_json or "[]")
    except (ValueError, RecursionError):
        return []
    if not isinstance(found, list):
        found = [found]
    return [item if isinstance(item, str) else json.dumps(item) for item in found]


def chosen_of(approval: Approval, ask: Ask) -> list[Option]:
    """The options that people chose, in order."""
    ids = _told(approval).get("selected")
    return [option for option in ask.options if isinstance(ids, list) and option.id in ids]


def options_of(ask: Ask) -> Listed:
    """Show what there is to choose, with its numbers."""
    words = mask_call(ask.question)
    question = show(words, OPTIONS, lines=20)
    elements: list[Block] = [line(literal(question.text or "…", "bold"), *_rest(question.hidden))]
    hidden, shown = question.hidden, [question]
    masks = [*masks_in(words)]
    room = OPTIONS
    listed = () if is_yes_or_no(ask) else ask.options  # the buttons say it all
    for number, option in enumerate(listed, 1):
        words = mask_call(option_words(option))
        masks += masks_in(words)
        if number > MOST_SHOWN or room < OPTION:
            hidden += length(words)
            continue
        shown.append(show(words, OPTION, lines=5))
        elements.append(line(literal(f"{number}. ", "bold"), literal(shown[-1].text or "…")))
        elements[-1]["elements"].extend(_rest(shown[-1].hidden))
        room -= text_width(elements[-1:])
        hidden += shown[-1].hidden
    return Listed(
        elements=tuple(elements),
        hidden=hidden,
        masked=bool(masks),
        guessed=has_guess(masks),
        altered=any(one.altered for one in shown),
        turned=any(one.turned for one in shown),
    )


def option_words(option: Option) -> str:
    """An option as one text, unmasked."""
    return f"{option.label}: {option.description}" if option.description else option.label


def option_label(option: Option, number: int, most: int) -> str:
    """An option as a label, behind its number: what a model wrote never stands alone."""
    if isinstance(option.value, bool) and option.label.strip():
        return clip(mask_call(option.label), most)
    return f"{number}. {clip(mask_call(option.label), most - 5)}"


def missing_of(ask: Ask) -> Listed:
    """Show which fields people are asked for."""
    fields = (ask.schema or {}).get("properties")
    told = {
        name: str(field.get("description") or "") if isinstance(field, dict) else ""
        for name, field in (fields.items() if isinstance(fields, dict) else ())
    }
    lines = [f"{name}: {words}" if words else name for name, words in told.items()]
    return said("What is missing", "\n".join(lines), 2 * REASON)


def _filled(approval: Approval, ask: Ask) -> Listed:
    found = _told(approval).get("values")
    values = found if isinstance(found, dict) else {}
    if ask.is_wrapped and set(values) == {"answer"}:  # our own name of the field says nothing
        return worded("Answer", written(mask_value("answer", values["answer"])), 4 * REASON)
    return _labelled("Answer", list_arguments(values.items(), FILLED, ask.masks))


def _labelled(label: str, listed: Listed) -> Listed:
    if not listed.elements:
        return Listed()
    return Listed(
        elements=(line(literal(label, "bold")), *listed.elements),
        hidden=listed.hidden,
        masked=listed.masked,
        guessed=listed.guessed,
        altered=listed.altered,
        turned=listed.turned,
    )


def _told(approval: Approval) -> dict[str, object]:
    return read_object(approval.decision.answer_json if approval.decision else "") or {}


def _rest(hidden: int) -> list[Block]:
    return [literal(f" {more(hidden)}", "italic")] if hidden else []
