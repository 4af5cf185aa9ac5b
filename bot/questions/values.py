"""Values of questions: format them for people, and read them from forms."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from agents import ApprovalResult
from agents.core.codec import Json, encode
from agents.graph.nodes.questions import Question
from agents.graph.state.shapes import schema_of
from bot.layout.argument_fields import humanised
from bot.questions.base import QuestionDraft
from bot.questions.form import AnswerForm, Form
from bot.records.approval import Kind
from bot.words import say

VERDICT = schema_of(ApprovalResult)
"""Schema of an answer yes or no: a node with this schema asks for approval."""


def typed_answer(info: object) -> dict[str, Json] | None:
    """Return the JSON schema of a node's answer; None without a schema."""
    if not isinstance(info, Question) or info.kind != "node" or info.schema == VERDICT:
        return None
    return info.schema


def step_of(question: Question) -> str:
    """Return the step of a graph's question, and the number of steps; empty if uncertain."""
    line = question.line
    if question.node not in line or len(line) < 2:
        return ""
    place = line.index(question.node) + 1
    if place == len(line):
        return say("line.step_last", n=place, of=place)
    return say("line.step", n=place, of=len(line), next=humanised(line[place]))


def title_of_questions(questions: Sequence[str], *, about: str = "") -> str:
    """Return the title of a card: the question, or the number of questions and their subject."""
    if len(questions) > 1:
        count = len(questions)
        return (
            say("card.questions_about", n=count, about=about)
            if about.strip()
            else say("card.questions", n=count)
        )
    return "".join(questions).strip().split("\n")[0].strip() or say("card.question")


def text_brief(questions: list[str], *, about: str = "") -> QuestionDraft:
    """Return the draft of questions that people answer with a text each."""
    return QuestionDraft(
        kind=Kind.QUESTION,
        title=title_of_questions(questions, about=about),
        arguments={"questions": [*questions]},
        ask=AnswerForm(form=Form.TEXTS),
        is_vague=len(questions) > 1 and not about.strip(),
    )


def value_brief(value: object) -> QuestionDraft:
    """Return the draft of a question that is a value; a value that is no text is shown below."""
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
    """Return the questions of a draft."""
    return cast("list[str]", brief.arguments["questions"])


def few_values(schema: Mapping[str, Json]) -> list[Json]:
    """Return the possible values of an answer if there are only a few; else an empty list."""
    if schema.get("type") == "boolean" and "enum" not in schema and "const" not in schema:
        return [True, False]
    values = schema.get("enum")
    if not isinstance(values, list) or not all(isinstance(value, str | int) for value in values):
        return []
    return values if len({str(value) for value in values}) == len(values) else []


def object_schema(fields: Mapping[str, Json]) -> dict[str, Json]:
    """Return the JSON schema of an object that requires all these fields."""
    return {
        "type": "object",
        "properties": dict(fields),
        "required": list(fields),
        "additionalProperties": False,
    }


def readable(data: Json) -> Json:
    """Return stored data for people, without type names."""
    if isinstance(data, list):
        return [readable(item) for item in data]
    if not isinstance(data, dict):
        return data
    if set(data) == {"$type", "value"}:
        return readable(data["value"])
    return {name: readable(item) for name, item in data.items()}
