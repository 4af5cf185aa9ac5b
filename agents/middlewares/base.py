"""The base class of middlewares, and the model call that a middleware may change."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.settings import ModelSettings

from agents.agent import AgentInput
from agents.core.errors import ModelTimeoutError
from agents.core.scope import current_scope
from agents.core.tools import Tool
from agents.models import checked_answer


@dataclass(slots=True)
class TextStream:
    """Streams the text of a model's answer to people.

    Attributes:
        put: Sends one piece of text.
        has_shown: Whether people have seen a piece.
    """

    put: Callable[[str], None]
    has_shown: bool = False

    def show(self, text: str) -> None:
        """Show a piece of text. It cannot be withdrawn."""
        self.has_shown = True
        self.put(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """One request to a model. Change it with `dataclasses.replace`.

    Attributes:
        model: The model.
        messages: The whole conversation.
        parameters: The instruction and the tools.
        settings: For example the temperature. None leaves the settings to the model.
        stream: Shows the answer's text as it arrives. None if the caller does not stream.
    """

    model: Model
    messages: Sequence[ModelMessage]
    parameters: ModelRequestParameters
    settings: ModelSettings | None = None
    stream: TextStream | None = None

    @property
    def has_shown(self) -> bool:
        """Whether people have seen a part of the answer. A retry would then repeat text."""
        return self.stream is not None and self.stream.has_shown


CallNext: TypeAlias = Callable[[ModelCall], Awaitable[ModelResponse]]
"""Calls the next inner middleware, or the model."""


class Middleware:
    """Base class of middlewares: hooks around an agent's model and tools.

    The first middleware of an agent is the outermost: its `before` and `around` hooks run first,
    its `after` hooks run last, and its tool wrapper encloses the wrappers of the others.

    Each hook may interrupt (`interrupt`, `stateful_interrupt`), and each hook of each middleware
    has a state slot of its own. On resume the agent repeats the interrupted step. The hooks of that
    step run again, and each hook that interrupted finds its state and its answer
    (`get_interrupt_state`, `get_resume_context`) until the step is complete: before and around the
    model until the model has answered, before the agent until the agent ends. Several hooks may
    therefore interrupt in one step. What a hook does after its answer may run again with the hook,
    so it must be idempotent. After a crash while a hook acted on a new answer, people are asked
    whether the hook ran, unless the middleware is `idempotent`. Use `run_local_values` and
    `session_values` for values that live longer.
    """

    @property
    def name(self) -> str:
        """Name under which hook states are stored. Never change it while runs are pending."""
        return type(self).__name__

    @property
    def idempotent(self) -> bool:
        """Whether hooks may run again with the same answer after a crash.

        If not, people are asked whether the hook ran.
        """
        return False

    def check_tools(self, names: Collection[str]) -> None:
        """Check the names of the agent's tools when the agent is created.

        Raises:
            AgentConfigError: A tool that this middleware needs is missing.
        """

    def check_tags(self, tags: Collection[str]) -> None:
        """Check the tags of the agent's tools when the agent is created.

        Raises:
            AgentConfigError: No tool has a tag that this middleware needs.
        """

    def wrap_tool(self, tool: Tool) -> Tool:
        """Return the tool in a wrapper, such as a gate. By default the tool is unchanged."""
        return tool

    async def before_agent(self, input: AgentInput) -> AgentInput:  # noqa: A002 - see Agent
        """Change the agent's input. Runs at the start of each run and of each resume.

        Returns:
            The input that the agent works on; always the same for the same input.
        """
        return input

    async def before_model(self, messages: list[ModelMessage]) -> list[ModelMessage]:
        """Change the messages of one model call. The stored messages stay unchanged.

        Args:
            messages: The messages of earlier turns, of this turn, and of this run.
        """
        return messages

    async def around_model(self, call: ModelCall, call_next: CallNext) -> ModelResponse:
        """Call the model once, several times, or not at all; or call another model."""
        return await call_next(call)

    async def after_model(self, response: ModelResponse) -> ModelResponse:
        """Change the model's answer before people and tools see it. The change is stored.

        Streamed text has already been shown.
        """
        return response

    async def after_tools(self, message: ModelRequest) -> ModelRequest:
        """Change the tool results that the model will read. The change is stored."""
        return message

    async def after_agent(self, text: str) -> None:
        """Run once, when the agent has ended.

        Args:
            text: The final answer; may be empty.
        """


async def ask_model(call: ModelCall) -> ModelResponse:
    """Call the model and stream its text."""
    async with _in_time(current_scope("ask_model()").run.model_timeout) as progress:
        if call.stream is None:
            answer = await model_request(
                call.model,
                list(call.messages),
                model_settings=call.settings,
                model_request_parameters=call.parameters,
            )
            return checked_answer(answer)
        begun = False
        async with model_request_stream(
            call.model,
            list(call.messages),
            model_settings=call.settings,
            model_request_parameters=call.parameters,
        ) as stream:
            async for piece in stream:
                progress()
                text = _text(piece, begun=begun)
                if text:
                    begun = True
                    call.stream.show(text)
            return checked_answer(stream.get(), is_streamed=True)


@asynccontextmanager
async def _in_time(limit: timedelta | None) -> AsyncIterator[Callable[[], None]]:
    """Cancel the body if it reports no progress within the limit. None means no limit."""
    if limit is None:
        yield lambda: None
        return
    loop, seconds = asyncio.get_running_loop(), limit.total_seconds()
    timer = asyncio.timeout(seconds)
    try:
        async with timer:
            yield lambda: timer.reschedule(loop.time() + seconds)
    except TimeoutError as error:
        if not timer.expired():
            raise
        raise ModelTimeoutError(seconds) from error


def _text(piece: object, *, begun: bool) -> str:
    match piece:
        case PartStartEvent(part=TextPart(content=text)):
            return f"\n\n{text}" if begun else text
        case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
            return text
        case _:
            return ""


MessagesFunction: TypeAlias = Callable[
    [list[ModelMessage]], list[ModelMessage] | Awaitable[list[ModelMessage]]
]
ResultsFunction: TypeAlias = Callable[[ModelRequest], ModelRequest | Awaitable[ModelRequest]]


class HistoryProcessor(Middleware):
    """Changes what the model reads, by plain functions.

    Args:
        before_model: Receives all messages before each model call and returns those that the model
            reads. The stored messages stay unchanged.
        after_tools: Receives the results of a batch of calls and returns those that the model
            reads. The change is stored.
    """

    def __init__(
        self,
        before_model: MessagesFunction | None = None,
        *,
        after_tools: ResultsFunction | None = None,
    ) -> None:
        self._before_model = before_model
        self._after_tools = after_tools

    async def before_model(self, messages: list[ModelMessage]) -> list[ModelMessage]:
        """See `Middleware.before_model`."""
        if self._before_model is None:
            return messages
        returned = self._before_model(messages)
        return await returned if inspect.isawaitable(returned) else returned

    async def after_tools(self, message: ModelRequest) -> ModelRequest:
        """See `Middleware.after_tools`."""
        if self._after_tools is None:
            return message
        returned = self._after_tools(message)
        return await returned if inspect.isawaitable(returned) else returned
