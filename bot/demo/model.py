"""The demo model: plain rules instead of a language model, so that no key is needed."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field

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
from pydantic_ai.models.function import AgentInfo, DeltaToolCalls, FunctionModel
from pydantic_ai.tools import ToolDefinition

from agents.chat.explaining import is_explaining
from agents.gates.followup import FOLLOW_UP_NAME
from agents.models import stream_pieces
from bot.demo.commands import (
    Deploy,
    Hint,
    PlannedToolCall,
    PlannedToolCalls,
    calls,
    gives_up,
    joined,
    questions,
    read_command,
    with_answer,
)
from bot.demo.replies import Done, brief_report, is_answer, report

HELP = """\
This demo follows fixed rules. It understands these messages:
- status of payments
- deploy payments 1.4.2 to production
- deploy payments 1.4.2 and search 2.0.1 to production
- deploy payments
- roll back payments in production
- refund order 1234 120.50
- refund orders 1234 20.00, 1240 12.50, 1251 99.50, 1262 9.90, 1270 31.00
- restart cache on 2026-12-01
- announce to status and support: payments is back"""
_TOOLS = frozenset({"deploy", "roll_back", "refund_order", "announce"})
"""Tools of the demo's agent; the rules are for an agent that has all of them."""
_ROUNDS = 2
"""The most times that the same thing is asked before the model gives up."""


class DemoModel(FunctionModel):
    """A model that follows rules. The same messages always give the same answer."""

    def __init__(self) -> None:
        super().__init__(_whole, stream_function=_stream, model_name="demo")


async def _whole(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    return ModelResponse(parts=_answer(messages, info))


async def _stream(
    messages: list[ModelMessage], info: AgentInfo
) -> AsyncIterator[str | DeltaToolCalls]:
    for at, part in enumerate(_answer(messages, info)):
        for piece in stream_pieces(at, part):
            yield piece


def _answer(messages: Sequence[ModelMessage], info: AgentInfo) -> list[ModelResponsePart]:
    """Answer by the demo's rules; with an agent of one's own, call the tools that people name."""
    names = {tool.name for tool in info.function_tools}
    is_own = bool(names) and not names >= _TOOLS and not is_explaining(messages)
    return answer(messages, info.function_tools) if is_own else _parts(messages)


@dataclass(slots=True)
class _Draft:
    """An answer in the making."""

    texts: list[str] = field(default_factory=list)
    calls: list[PlannedToolCall] = field(default_factory=list)

    @property
    def asks(self) -> bool:
        """Whether it asks people something."""
        return any(call.tool == FOLLOW_UP_NAME for call in self.calls)


@dataclass(slots=True)
class _Turn:
    """The conversation as the model sees it now.

    Attributes:
        made: How many calls it made in this thread.
        prompts: What people wrote since its last answer.
        results: What became of the calls of its last answer.
        asked: The deployment that it asked about last, with what was answered so far.
        rounds: How often it asked about that.
    """

    made: int = 0
    prompts: list[str] = field(default_factory=list)
    results: list[Done] = field(default_factory=list)
    asked: Deploy = field(default_factory=lambda: Deploy(()))
    rounds: int = 0

    @property
    def reply(self) -> str:
        """People's answer to a question; empty when there is none."""
        answers = [done.result for done in self.results if done.tool == FOLLOW_UP_NAME]
        return answers[0] if answers and is_answer(answers[0]) else ""

    @property
    def asks_again(self) -> bool:
        """Whether the answer left something open that can be asked once more."""
        is_open = bool(questions(self.asked)) and not gives_up(self.reply)
        return bool(self.reply) and is_open and self.rounds < _ROUNDS


def _parts(messages: Sequence[ModelMessage]) -> list[ModelResponsePart]:
    if is_explaining(messages):
        return [TextPart(content=_explanation(messages[-1]))]
    turn = _read(messages)
    draft = _Draft()
    _react(turn, draft)
    for prompt in turn.prompts:
        _obey(prompt, draft)
    text = joined(draft.texts) or HELP
    parts: list[ModelResponsePart] = [TextPart(content=text)]
    for at, call in enumerate(draft.calls):
        number = turn.made + at + 1
        parts.append(ToolCallPart(call.tool, dict(call.arguments), tool_call_id=f"demo-{number}"))
    return parts


def _explanation(request: ModelMessage) -> str:
    """Say what a call that waits would do, as far as it is described."""
    prompts = [part.content for part in request.parts if isinstance(part, UserPromptPart)]
    lines = "\n".join(str(prompt) for prompt in prompts).splitlines()
    fields = {name: text for name, _, text in (line.partition(": ") for line in reversed(lines))}
    title, preview = fields.get("Title", "").rstrip("."), fields.get("Preview", "")
    if not title:
        return "I know no more about it than the card says."
    return f"The call would do this: {title}. {preview}".strip()


def _read(messages: Sequence[ModelMessage]) -> _Turn:
    turn = _Turn()
    pending: dict[str, ToolCallPart] = {}
    for message in messages:
        if isinstance(message, ModelResponse):
            pending = {part.tool_call_id: part for part in message.tool_calls}
            if any(part.tool_name == FOLLOW_UP_NAME for part in message.tool_calls):
                _note_question(turn)
            turn.made += len(pending)
            turn.prompts, turn.results = [], []
        else:
            _read_request(message, pending, turn)
    return turn


def _note_question(turn: _Turn) -> None:
    """Find out what was asked about: what had been in front of the model tells."""
    if turn.asks_again:
        turn.rounds += 1
        return
    commands = [read_command(prompt) for prompt in turn.prompts]
    deploys = (
        command for command in commands if isinstance(command, Deploy) and questions(command)
    )
    turn.asked, turn.rounds = next(deploys, Deploy(())), 1


def _read_request(message: ModelRequest, pending: dict[str, ToolCallPart], turn: _Turn) -> None:
    for part in message.parts:
        if isinstance(part, UserPromptPart):
            content = [part.content] if isinstance(part.content, str) else part.content
            turn.prompts.append("\n".join(piece for piece in content if isinstance(piece, str)))
        elif isinstance(part, ToolReturnPart) and part.tool_call_id in pending:
            arguments = pending[part.tool_call_id].args_as_dict()
            turn.results.append(Done(part.tool_name, arguments, str(part.content)))
    turn.asked = with_answer(turn.asked, turn.reply)


def _react(turn: _Turn, draft: _Draft) -> None:
    """Go on after the results of calls."""
    results = [done for done in turn.results if done.tool != FOLLOW_UP_NAME]
    if results:
        draft.texts.append(brief_report(results))
    for done in turn.results:
        if done.tool == FOLLOW_UP_NAME:
            _go_on(done, turn, draft)


def _go_on(done: Done, turn: _Turn, draft: _Draft) -> None:
    """Go on after people were asked something."""
    if not turn.reply:
        draft.texts.append(report([done]))
    elif gives_up(turn.reply):
        draft.texts.append("All right, I deploy nothing.")
    elif turn.asks_again:
        _ask(turn.asked, draft, "I could not read all of that, so I ask once more.")
    elif questions(turn.asked):
        draft.texts.append(
            "I still could not read a version such as 1.4.2 and an environment, "
            "so I deploy nothing. "
            'Please write it in one line: "deploy payments 1.4.2 to production".'
        )
    else:
        _make(calls(turn.asked), draft)


def _obey(prompt: str, draft: _Draft) -> None:
    """Do what a message says."""
    command = read_command(prompt)
    match command:
        case Deploy() if questions(command) and draft.asks:
            names = " and ".join(target.service for target in command.targets)
            draft.texts.append(f"One thing at a time: please tell me about {names} again later.")
        case Deploy() if questions(command):
            _ask(
                command,
                draft,
                "A wrong version or environment does harm, so I ask before I deploy.",
            )
        case Deploy():
            _make(calls(command), draft)
        case PlannedToolCall():
            _make([command], draft)
        case PlannedToolCalls(calls=several):
            draft.texts.append(
                f"{len(several)} customers wait for their money, and all of these orders are paid."
            )
            draft.calls.extend(several)
        case Hint():
            draft.texts.append(command.text)
        case None:
            # Nothing is added to what people said while something waited.
            draft.texts = draft.texts or [HELP]


def _ask(deploy: Deploy, draft: _Draft, why: str) -> None:
    asked = questions(deploy)
    draft.texts.append(why)
    draft.calls.append(PlannedToolCall(FOLLOW_UP_NAME, {"questions": [*asked]}, why))


def _make(made: list[PlannedToolCall], draft: _Draft) -> None:
    draft.texts.extend(call.why for call in made)
    draft.calls.extend(made)


LEAD = """\
I am a rule-based demo, not a language model, so no key is needed. I call the tools that you type:
"""
ASK_A_MODEL = """
To let a language model choose them, set COUNTERSIGN_MODEL and its key."""
_ARGUMENT = re.compile(r"(\w+)=(\"[^\"]*\"|\S+)")
_EXAMPLES = {"string": '"…"', "integer": "1", "number": "1.5", "boolean": "true"}


def answer(
    messages: Sequence[ModelMessage], tools: Sequence[ToolDefinition]
) -> list[ModelResponsePart]:
    """Call the tool that the last message names; else say how one is called."""
    newest = messages[-1]
    parts = newest.parts if isinstance(newest, ModelRequest) else ()
    results = [str(part.content) for part in parts if isinstance(part, ToolReturnPart)]
    if results:
        return [TextPart(content="\n".join(results))]
    typed = [part.content for part in parts if isinstance(part, UserPromptPart)]
    number = (
        sum(len(message.tool_calls) for message in messages if isinstance(message, ModelResponse))
        + 1
    )
    for text in (content for content in reversed(typed) if isinstance(content, str)):
        for tool in tools:
            if text.split()[:1] == [tool.name]:
                return [_call(tool, text, number)]
    return [TextPart(content=help_text(tools))]


def help_text(tools: Sequence[ToolDefinition]) -> str:
    """Say how each tool is called."""
    return LEAD + "\n".join(f"- {_example(tool)}" for tool in tools) + ASK_A_MODEL


def _call(tool: ToolDefinition, text: str, number: int) -> ToolCallPart:
    fields = _fields(tool)
    given = {
        name: _value(value.strip('"'), fields.get(name, {}))
        for name, value in _ARGUMENT.findall(text)
    }
    return ToolCallPart(tool.name, given, tool_call_id=f"demo-{number}")


def _value(text: str, field: Mapping[str, object]) -> object:
    """The value of an argument: a text where the schema says so, else JSON where it is some."""
    if field.get("type") == "string":
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _example(tool: ToolDefinition) -> str:
    fields, schema = _fields(tool), tool.parameters_json_schema
    words = [
        f"{name}={_EXAMPLES.get(str(fields[name].get('type')), '…')}"
        for name in schema.get("required", fields)
        if name in fields
    ]
    return " ".join([tool.name, *words])


def _fields(tool: ToolDefinition) -> Mapping[str, Mapping[str, object]]:
    properties = tool.parameters_json_schema.get("properties")
    return properties if isinstance(properties, dict) else {}
