"""Values for questions: as people read them, and as a form returns them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from agents import ApprovalResult
from agents.core.codec import Json, encode
from agents.graph.nodes.questions import Question
from agents.graph.state.shapes import schema_of
from bot.approvals.model import Kind
from bot.layout.argument_fields import humanised
from bot.questions.base import QuestionDraft
from bot.questions.form import AnswerForm, Form
from bot.words import say

VERDICT = schema_of(ApprovalResult)
"""A node that wants this answer asks for approval, and not for something to know."""


def typed_answer(info: object) -> dict[str, Json] | None:
    """JSON schema of the answer that a node wants to know; None when there is none."""
    if not isinstance(info, Question) or info.kind != "node" or info.schema == VERDICT:
        return None
    return info.schema


def step_of(question: Question) -> str:
    """The step that a question of a graph is about, of how many; empty where it is not certain."""
    line = question.line
    if question.node not in line or len(line) < 2:
        return ""
    place = line.index(question.node) + 1
    if place == len(line):
        return say("line.step_last", n=place, of=place)
    return say("line.step", n=place, of=len(line), next=humanised(line[place]))


def title_of_questions(questions: Sequence[str], *, about: str = "") -> str:
    """The title of a card: the question itself, or how many there are, and about what."""
    if len(questions) > 1:
        count = len(questions)
        return (
            say("card.questions_about", n=count, about=about)
            if about.strip()
            else say("card.questions", n=count)
        )
    return "".join(questions).strip().split("\n")[0].strip() or say("card.question")


def text_brief(questions: list[str], *, about: str = "") -> QuestionDraft:
    """Questions that a text answers, each."""
    return QuestionDraft(
        kind=Kind.QUESTION,
        title=title_of_questions(questions, about=about),
        arguments={"questions": [*questions]},
        ask=AnswerForm(form=Form.TEXTS),
        is_vague=len(questions) > 1 and not about.strip(),
    )


def value_brief(value: object) -> QuestionDraft:
    """A question that is any storable value: a text as it is, the rest laid out below."""
    if isinstance(value, str) and value.strip():
        return text_brief([value])
    data = readable(encode(value))
    if not isinstance(data, dict):
        return text_brief([json.dumps(data, ensure_ascii=False)])
    text = data.get("question")
    has_question = isinstance(text, str) and text.strip()
    question = cast("str", text) if has_question else say("card.answer_this")
    rest = {name: item for name, item in data.items() if not has_question or name != "question"}
    brief = text_brief([question])
    shown = {**brief.arguments, "shown": rest} if rest else brief.arguments
    return replace(brief, arguments=shown, is_vague=not has_question)


def questions_in(brief: QuestionDraft) -> list[str]:
    """The questions of a value."""
    return cast("list[str]", brief.arguments["questions"])


def few_values(schema: Mapping[str, Json]) -> list[Json]:
    """The values of an answer that has only a few; empty when it has many."""
    if schema.get("type") == "boolean" and "enum" not in schema and "const" not in schema:
        return [True, False]
    values = schema.get("enum")
    if not isinstance(values, list) or not all(isinstance(value, str | int) for value in values):
        return []
    return values if len({str(value) for value in values}) == len(values) else []


def object_schema(fields: Mapping[str, Json]) -> dict[str, Json]:
    """JSON schema of an object that needs all these fields."""
    return {
        "type": "object",
        "properties": dict(fields),
        "required": list(fields),
        "additionalProperties": False,
    }


def readable(data: Json) -> Json:
    """Stored data as people read it: without the names of types."""
    if isinstance(data, list):
        return [readable(item) for item in data]
    if not isinstance(data, dict):
        return data
    if set(data) == {"$type", "value"}:
        return readable(data["value"])
    return {name: readable(item) for name, item in data.items()}
