"""The demo model: plain rules instead of a language model, so that no key is needed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
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

from agents.models import stream_pieces
from agents.tools.followup import FOLLOW_UP_NAME
from bot.demo.commands import (
    Call,
    Deploy,
    Hint,
    calls,
    gives_up,
    joined,
    questions,
    read_command,
    with_answer,
)
from bot.demo.replies import Done, is_answer, report

INTRODUCTION = "I am a rule-based demo, not a language model."
HELP = """\
I understand these messages:
- status of payments
- deploy payments 1.4.2 to production
- deploy payments 1.4.2 and search 2.0.1 to production
- deploy payments
- roll back payments in production
- refund order 1234 120.50
- restart cache on 2026-12-01
- announce to status and support: payments is back"""
_ROUNDS = 2
"""How often the same thing is asked before the model gives up."""


class DemoModel(FunctionModel):
    """A model that follows rules. The same messages always give the same answer."""

    def __init__(self) -> None:
        super().__init__(_answer, stream_function=_stream, model_name="demo")


@dataclass(slots=True)
class _Draft:
    """An answer in the making."""

    texts: list[str] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)


@dataclass(slots=True)
class _Turn:
    """What the model has in front of it.

    Attributes:
        first: Whether the model says its first words in this thread.
        made: How many calls it made in this thread.
        prompts: What people wrote since its last answer.
        results: What became of the calls of its last answer.
        asked: The deployment that it asked about, if any.
        answers: What people answered to that, oldest first.
    """

    first: bool = True
    made: int = 0
    prompts: list[str] = field(default_factory=list)
    results: list[Done] = field(default_factory=list)
    asked: Deploy | None = None
    answers: list[str] = field(default_factory=list)


async def _answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    return ModelResponse(parts=_parts(messages))


async def _stream(
    messages: list[ModelMessage], info: AgentInfo
) -> AsyncIterator[str | DeltaToolCalls]:
    for at, part in enumerate(_parts(messages)):
        for piece in stream_pieces(at, part):
            yield piece


def _parts(messages: Sequence[ModelMessage]) -> list[ModelResponsePart]:
    turn = _read(messages)
    draft = _Draft([INTRODUCTION] if turn.first else [])
    _react(turn, draft)
    for prompt in turn.prompts:
        _obey(prompt, draft)
    text = joined(draft.texts) or HELP
    parts: list[ModelResponsePart] = [TextPart(content=text)]
    for at, call in enumerate(draft.calls):
        number = turn.made + at + 1
        parts.append(
            ToolCallPart(call.tool, dict(call.arguments), tool_call_id=f"demo-{number}")
        )
    return parts


def _read(messages: Sequence[ModelMessage]) -> _Turn:
    turn = _Turn()
    pending: dict[str, ToolCallPart] = {}
    for message in messages:
        if isinstance(message, ModelResponse):
            turn.first = False
            turn.prompts, turn.results = [], []
            pending = {part.tool_call_id: part for part in message.tool_calls}
            turn.made += len(pending)
        else:
            _read_request(message, pending, turn)
    return turn


def _read_request(message: ModelRequest, pending: dict[str, ToolCallPart], turn: _Turn) -> None:
    for part in message.parts:
        if isinstance(part, UserPromptPart):
            _read_prompt(part, turn)
        elif isinstance(part, ToolReturnPart) and part.tool_call_id in pending:
            called = pending[part.tool_call_id]
            done = Done(part.tool_name, called.args_as_dict(), part.model_response_str())
            turn.results.append(done)
            if part.tool_name == FOLLOW_UP_NAME and is_answer(done.result):
                turn.answers.append(done.result)


def _read_prompt(part: UserPromptPart, turn: _Turn) -> None:
    content = [part.content] if isinstance(part.content, str) else part.content
    prompt = "\n".join(piece for piece in content if isinstance(piece, str))
    turn.prompts.append(prompt)
    command = read_command(prompt)
    if isinstance(command, Deploy) and questions(command):
        turn.asked, turn.answers = command, []


def _react(turn: _Turn, draft: _Draft) -> None:
    """Go on after the results of calls."""
    told = [done for done in turn.results if done.tool != FOLLOW_UP_NAME]
    if told:
        draft.texts.append(report(told))
    for done in turn.results:
        if done.tool == FOLLOW_UP_NAME:
            _go_on(done, turn, draft)


def _go_on(done: Done, turn: _Turn, draft: _Draft) -> None:
    """Go on after people were asked something."""
    if not is_answer(done.result) or turn.asked is None:
        draft.texts.append(report([done]))
        return
    if gives_up(done.result):
        draft.texts.append("All right, I deploy nothing.")
        return
    deploy = turn.asked
    for answer in turn.answers:
        deploy = with_answer(deploy, answer)
    if not questions(deploy):
        _make(calls(deploy), draft)
    elif len(turn.answers) < _ROUNDS:
        _ask(deploy, draft, "I could not read all of that, so I ask once more.")
    else:
        draft.texts.append(
            "I still could not read a version such as 1.4.2 and an environment, "
            "so I deploy nothing. "
            'Please write it in one line: "deploy payments 1.4.2 to production".'
        )


def _obey(prompt: str, draft: _Draft) -> None:
    """Do what a message says."""
    command = read_command(prompt)
    match command:
        case Deploy() if questions(command):
            _ask(command, draft, "I need to know a little more before I can deploy.")
        case Deploy():
            _make(calls(command), draft)
        case Call():
            _make([command], draft)
        case Hint():
            draft.texts.append(command.text)
        case None:
            draft.texts.append(HELP)


def _ask(deploy: Deploy, draft: _Draft, why: str) -> None:
    asked = questions(deploy)
    draft.texts.append(why)
    draft.calls.append(Call(FOLLOW_UP_NAME, {"questions": [*asked]}, why))


def _make(made: list[Call], draft: _Draft) -> None:
    draft.texts.extend(call.why for call in made)
    draft.calls.extend(made)
