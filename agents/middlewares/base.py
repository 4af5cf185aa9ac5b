"""The base of a middleware, and the call of a model that it may change."""

from __future__ import annotations

import asyncio
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
from agents.models import checked_answer
from agents.tools.base import Tool


@dataclass(slots=True)
class TextStream:
    """Shows text to people while a model speaks.

    Attributes:
        put: Takes a piece.
        has_shown: Whether people have seen any.
    """

    put: Callable[[str], None]
    has_shown: bool = False

    def show(self, text: str) -> None:
        """Show a piece; it cannot be taken back."""
        self.has_shown = True
        self.put(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """A question to a model; change it with `dataclasses.replace`.

    Attributes:
        model: Which.
        messages: Everything that was said.
        parameters: Its instruction and its tools.
        settings: Such as its temperature; None leaves them to the model.
        stream: Shows the text while it comes; None when nobody wants that.
    """

    model: Model
    messages: Sequence[ModelMessage]
    parameters: ModelRequestParameters
    settings: ModelSettings | None = None
    stream: TextStream | None = None

    @property
    def has_shown(self) -> bool:
        """Whether people have seen a part of an answer: then it must not be asked for again."""
        return self.stream is not None and self.stream.has_shown


CallNext: TypeAlias = Callable[[ModelCall], Awaitable[ModelResponse]]
"""Asks what is inside: the next middleware, or the model."""


class Middleware:
    """Something around an agent's model and tools. Override what you need.

    The first middleware of an agent is the outermost: it comes first with what is `before` and
    `around` something and wraps the tools last, and it comes last with what is `after`.

    Each hook may interrupt (`interrupt`, `stateful_interrupt`): each hook of each middleware has a
    state slot of its own. After the answer the agent is at the same place again; the hooks of that
    place run once more, and each that has asked there finds its state and its answer
    (`get_interrupt_state`, `get_resume_context`), as often as it runs until the place is passed:
    before and around the model until it has answered, before the agent until that ends. So several
    hooks may ask at one place. What a hook does after its answer may run again with it: do there
    what may happen twice. After a crash while it had just got its answer, people are asked whether
    it ran, unless it is `idempotent`. For values that live longer there are `run_local_values` and
    `session_values`.
    """

    @property
    def name(self) -> str:
        """Part of where its states are kept: never change it while runs are pending."""
        return type(self).__name__

    @property
    def idempotent(self) -> bool:
        """Whether its hooks may run again with an answer after a crash; else people are asked."""
        return False

    def check_tools(self, names: Collection[str]) -> None:
        """Look at the names of the agent's tools, when the agent is made.

        Raises:
            AgentConfigError: One that this middleware needs is not there.
        """

    def check_tags(self, tags: Collection[str]) -> None:
        """Look at the tags that the agent's tools have, when the agent is made.

        Raises:
            AgentConfigError: No tool has one that this middleware needs.
        """

    def wrap_tool(self, tool: Tool) -> Tool:
        """Put something around a tool, such as a gate; the tool itself leaves it as it is."""
        return tool

    async def before_agent(self, input: AgentInput) -> AgentInput:  # noqa: A002 - see Agent
        """Begin: with each run, and again with each resume.

        Returns:
            What the agent works on; the same for the same input.
        """
        return input

    async def before_model(self, messages: list[ModelMessage]) -> list[ModelMessage]:
        """Change what the model reads this time; what is kept stays as it is.

        Args:
            messages: All of them: of earlier turns, of this turn, and of this run.
        """
        return messages

    async def around_model(self, call: ModelCall, call_next: CallNext) -> ModelResponse:
        """Ask the model: not at all, once, or several times, or another one."""
        return await call_next(call)

    async def after_model(self, response: ModelResponse) -> ModelResponse:
        """Change what the model said, before people and tools see it; this is kept.

        Text that was streamed has been seen already.
        """
        return response

    async def after_tools(self, message: ModelRequest) -> ModelRequest:
        """Change what the model will read of a batch of finished calls; this is kept."""
        return message

    async def after_agent(self, text: str) -> None:
        """End: once, when the agent has really come to its end.

        Args:
            text: The final answer; may be empty.
        """


async def ask_model(call: ModelCall) -> ModelResponse:
    """Ask the model itself; its text is shown while it comes.

    Raises:
        ModelTimeoutError: Nothing came for as long as the run waits.
        ModelRefusedError: It declines to answer.
    """
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
    """Give up what makes no progress for a time; None waits for ever."""
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
    """The text in a piece of a stream; together they are what `text_of` gives."""
    match piece:
        case PartStartEvent(part=TextPart(content=text)):
            return f"\n\n{text}" if begun else text
        case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
            return text
        case _:
            return ""
