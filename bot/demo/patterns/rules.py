"""The common base of the patterns' models: plain rules in place of a language model."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model

from agents.core.codec import Json
from agents.models import AnsweringModel
from bot.demo.commands import PlannedToolCall
from bot.demo.model import DemoModel
from bot.demo.replies import Done

_CONTEXT = "For context:"
_YOUR_TURN = "It is your turn again."
_OTHERS_WORDS = re.compile(r"^For context: \[(?P<who>[^\]]+)\] said: (?P<text>.*)$", re.DOTALL)


@dataclass(slots=True)
class CurrentRequest:
    """The part of a conversation since a model was last asked for something.

    Attributes:
        request: What it was asked for: by people, or by an agent that gave it a task.
        done: The calls that it made since, and what became of them.
        statements: What other agents said since: who, and what.
        made: How many calls it made in all the messages that it sees.
    """

    request: str = ""
    done: list[Done] = field(default_factory=list)
    statements: list[tuple[str, str]] = field(default_factory=list)
    made: int = 0

    def results_of(self, tool: str) -> list[str]:
        """Return the results of its calls to a tool."""
        return [done.result for done in self.done if done.tool == tool]

    def words_of(self, who: str) -> str:
        """Return another agent's last words; empty when it said nothing."""
        return next((text for name, text in reversed(self.statements) if name == who), "")


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's answer.

    Attributes:
        text: What it says.
        calls: What it calls.
    """

    text: str
    calls: tuple[PlannedToolCall, ...] = ()


Rule: TypeAlias = Callable[[CurrentRequest], Reply]
"""Makes an answer of what was said; the same each time for the same messages."""


class RuleModel(AnsweringModel):
    """A model that follows one rule, streaming or not.

    Args:
        rule: What it follows.
    """

    def __init__(self, rule: Rule) -> None:
        super().__init__(self._parts, name="demo")
        self._rule = rule

    def _parts(self, messages: Sequence[ModelMessage]) -> Iterator[ModelResponsePart]:
        current = read(messages)
        reply = self._rule(current)
        if reply.text or not reply.calls:
            yield TextPart(reply.text)
        for number, call in enumerate(reply.calls, start=current.made + 1):
            yield ToolCallPart(call.tool, dict(call.arguments), tool_call_id=f"demo-{number}")


def voice(model: Model, rule: Rule) -> Model:
    """The model of an agent: the given one, or a rule where the demo has to do without any."""
    return RuleModel(rule) if isinstance(model, DemoModel) else model


def read(messages: Sequence[ModelMessage]) -> CurrentRequest:
    """Find out what was asked for last, and what has happened since."""
    current, calls_made, is_fresh = CurrentRequest(), 0, True
    calls: dict[str, ToolCallPart] = {}
    for message in messages:
        if isinstance(message, ModelResponse):
            calls |= {part.tool_call_id: part for part in message.tool_calls}
            calls_made, is_fresh = calls_made + len(message.tool_calls), False
            continue
        prompts = list(_prompts(message))
        requests = [text for text in prompts if not text.startswith((_CONTEXT, _YOUR_TURN))]
        if requests:
            before = [current.request] if is_fresh and current.request else []
            current, is_fresh = CurrentRequest(request="\n".join([*before, *requests])), True
        current.statements += [
            (line["who"], line["text"]) for text in prompts if (line := _OTHERS_WORDS.match(text))
        ]
        current.done += _results(message, calls)
    current.made = calls_made
    return current


def call(tool: str, why: str = "", **arguments: Json) -> PlannedToolCall:
    """A call of a rule, and the reason to tell people if the rule says nothing else."""
    return PlannedToolCall(tool, arguments, why)


def hint(example: str) -> str:
    """Return a model's answer to a message that its rule cannot read."""
    return f'I did not understand that. In this channel, write something like: "{example}".'


def first_group(pattern: str, text: str) -> str:
    """Return the first group of a pattern in a text, in whatever case; empty when nothing fits."""
    match = re.search(pattern, text, re.IGNORECASE)
    return match[1].strip() if match else ""


def _prompts(message: ModelRequest) -> Iterator[str]:
    for part in message.parts:
        if isinstance(part, UserPromptPart):
            content = [part.content] if isinstance(part.content, str) else part.content
            yield "\n".join(piece for piece in content if isinstance(piece, str))


def _results(message: ModelRequest, calls: dict[str, ToolCallPart]) -> Iterator[Done]:
    for part in message.parts:
        if isinstance(part, ToolReturnPart) and part.tool_call_id in calls:
            arguments = calls[part.tool_call_id].args_as_dict()
            yield Done(part.tool_name, arguments, str(part.content))
