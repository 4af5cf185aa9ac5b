"""Models: look-up by name, errors of providers, and scripted models for tests."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from pydantic_ai.direct import model_request
from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelAuthenticationError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelQuotaExceededError,
    ModelRequestRejectedError,
    UnexpectedModelBehavior,
    UserError,
)
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, infer_model
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel
from pydantic_ai.settings import ModelSettings

from agents.core.errors import (
    AgentConfigError,
    ModelAnswerError,
    ModelError,
    ModelFault,
    ModelRefusedError,
)

__all__ = ["AnsweringModel", "ScriptedModel", "call", "model_error", "resolve_model", "say"]

EXTRAS = {
    "openai": "openai",
    "openai-chat": "openai",
    "openai-responses": "openai",
    "azure": "openai",
    "ollama": "openai",
    "anthropic": "anthropic",
    "google": "google",
    "google-cloud": "google",
    "bedrock": "bedrock",
}
"""The pydantic-ai extra of a provider, if its name differs from the provider's."""

Turn = ModelResponsePart | Exception | Sequence[ModelResponsePart | Exception]
"""One answer of a scripted model: one or several parts. Exceptions are raised."""


def resolve_model(name: str) -> Model:
    """Return a model by name, such as `openai:gpt-5` or `ollama:qwen3`.

    The provider's package looks up the API key; nothing is sent yet.

    Raises:
        AgentConfigError: The provider is unknown, its package is missing, or it has no key.
    """
    provider, colon, model = name.partition(":")
    if not (provider and colon and model):
        raise AgentConfigError(
            f"{name!r} is not the name of a model; expected provider:model, "
            "for example openai:gpt-5 or anthropic:claude-sonnet-4-5"
        )
    try:
        return infer_model(name)
    except ImportError as error:
        raise AgentConfigError(_missing_package(name, provider)) from error
    except (UserError, ValueError) as error:
        # The sentences after the first describe other ways to use pydantic-ai.
        fault = str(error).split(". ")[0]
        raise AgentConfigError(f"the model {name!r} cannot be used: {fault}") from error


def _missing_package(name: str, provider: str) -> str:
    extra = EXTRAS.get(provider, provider)
    # Name this Python interpreter, and a package from the public index.
    remedy = f'{shlex.quote(sys.executable)} -m pip install "pydantic-ai-slim[{extra}]"'
    return f"the model {name!r} needs a package that is not installed; run: {remedy}"


async def ask_once(model: Model) -> None:
    """Send a minimal, billed request to check that a model answers.

    Raises:
        ModelError: The model does not answer; `ModelRefusedError` if a retry does not help.
    """
    request = ModelRequest(parts=[UserPromptPart("Answer with the word: ok")])
    try:
        await model_request(model, [request], model_settings=ModelSettings(max_tokens=16))
    except Exception as error:
        raise model_error("the model", error) from error


def model_error(who: str, error: Exception) -> ModelError:
    """Convert an error of a model request to a `ModelError`.

    Args:
        who: Owner of the model, as the beginning of a sentence.
        error: The exception that pydantic-ai raised.
    """
    fault = model_fault(error)
    if fault is None and isinstance(error, _UNREADABLE):
        return ModelAnswerError(f"{who} gave an answer that cannot be read: {error!r}")
    if fault is None:
        waits = [
            leaf.retry_after or 0 for leaf in _leaves(error) if isinstance(leaf, ModelAPIError)
        ]
        return ModelError(f"{who} failed: {error}", retry_after=min(waits, default=0))
    refusal = next((leaf for leaf in _leaves(error) if isinstance(leaf, ModelAPIError)), None)
    return ModelRefusedError(fault, refusal.model_name if refusal is not None else "")


def model_fault(error: Exception) -> ModelFault | None:
    """Return a provider's final refusal; None if a retry of the request may succeed.

    Of fallback models, all must refuse; the first refusal counts.
    """
    faults = [_fault_of(leaf) for leaf in _leaves(error)]
    return faults[0] if faults and None not in faults else None


def _leaves(error: Exception) -> list[Exception]:
    if not isinstance(error, ExceptionGroup):
        return [error]
    return [leaf for inner in error.exceptions for leaf in _leaves(inner)]


_OPENAI = frozenset({"openai", "azure"})
"""Providers for which pydantic-ai reports a broken-off answer as complete."""


def checked_answer(response: ModelResponse, *, is_streamed: bool = False) -> ModelResponse:
    """Refuse an answer that was filtered. A broken-off answer has no `finish_reason`.

    Raises:
        ModelRefusedError: The provider, or the model itself, declines to answer.
    """
    details = response.provider_details or {}
    if response.finish_reason == "content_filter":
        refusal = str(details.get("refusal") or "")
        raise ModelRefusedError("filter", response.model_name or "", said=refusal)
    is_broken = is_streamed and response.provider_name in _OPENAI and "finish_reason" not in details
    return replace(response, finish_reason=None) if is_broken else response


def _fault_of(error: Exception) -> ModelFault | None:
    if isinstance(error, ModelHTTPError) and _code_of(error.body) == "content_filter":
        return "filter"
    for kind, fault in _FAULTS:
        if isinstance(error, kind):
            return fault
    # Subclasses of ModelHTTPError, of custom models, have a more precise meaning than the status.
    return _STATUSES.get(error.status_code) if type(error) is ModelHTTPError else None


def _code_of(body: object) -> object:
    """Return the code in the body of an error, which some providers nest once more."""
    if not isinstance(body, Mapping):
        return None
    inner = body.get("error")
    return inner.get("code") if isinstance(inner, Mapping) else body.get("code")


_UNREADABLE = (UnexpectedModelBehavior, LookupError, TypeError, AttributeError)
"""Exceptions of a provider's package for an answer of an unexpected form."""
_FAULTS: Sequence[tuple[type[Exception], ModelFault]] = (
    (ModelAuthenticationError, "key"),
    (ModelNotFoundError, "model"),
    (ModelQuotaExceededError, "quota"),
    (ModelContextWindowExceededError, "length"),
    (ModelRequestRejectedError, "request"),
)
_STATUSES: Mapping[int, ModelFault] = {
    400: "request",
    401: "key",
    402: "quota",
    403: "key",
    404: "model",
    422: "request",
}


def say(text: str) -> TextPart:
    """Return a text part for a script."""
    return TextPart(content=text)


def call(
    name: str,
    arguments: Mapping[str, object] | str | None = None,
    *,
    id: str = "",  # noqa: A002 - as in ToolCall
) -> ToolCallPart:
    """Return a tool call for a script.

    Args:
        name: Name of the tool.
        arguments: Its arguments. A text is sent unchanged, so it may be malformed.
        id: Id of the call; pydantic-ai creates an id if it is empty.
    """
    args = arguments if isinstance(arguments, str) else json.dumps(dict(arguments or {}))
    return ToolCallPart(name, args, tool_call_id=id) if id else ToolCallPart(name, args)


class AnsweringModel(FunctionModel):
    """A model whose answers a Python function computes. Needs no key.

    Args:
        answer: Returns the parts of an answer.
        name: Name of the model.
    """

    def __init__(
        self, answer: Callable[[list[ModelMessage]], Iterable[ModelResponsePart]], *, name: str
    ) -> None:
        super().__init__(self._whole, stream_function=self._stream, model_name=name)
        self._answer = answer

    async def _whole(self, messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        return ModelResponse(parts=list(self._answer(messages)))

    async def _stream(
        self, messages: list[ModelMessage], _: AgentInfo
    ) -> AsyncIterator[str | DeltaToolCalls]:
        for at, part in enumerate(self._answer(messages)):
            for piece in stream_pieces(at, part):
                yield piece


class ScriptedModel(FunctionModel):
    """A model that answers from a script, one turn per request, streaming or not.

    Attributes:
        inputs: The messages of each request so far.
        tools: The names of the tools that each request offered.
    """

    inputs: list[list[ModelMessage]]
    tools: list[tuple[str, ...]]

    def __init__(self, turns: Sequence[Turn]) -> None:
        super().__init__(self._answer, stream_function=self._stream, model_name="scripted")
        self._turns = [turn if isinstance(turn, Sequence) else [turn] for turn in turns]
        self.inputs = []
        self.tools = []

    @property
    def calls(self) -> int:
        """Number of requests to the model."""
        return len(self.inputs)

    def _next(
        self, messages: list[ModelMessage], info: AgentInfo
    ) -> Sequence[ModelResponsePart | Exception]:
        self.inputs.append(list(messages))
        self.tools.append(tuple(tool.name for tool in info.function_tools))
        if self.calls > len(self._turns):
            raise AgentConfigError(
                f"the script has {len(self._turns)} turns, and the model was asked once more; "
                "add a turn, or find out why the run did not end"
            )
        return self._turns[self.calls - 1]

    async def _answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        parts: list[ModelResponsePart] = []
        for part in self._next(messages, info):
            if isinstance(part, Exception):
                raise part
            parts.append(part)
        return ModelResponse(parts=parts)

    async def _stream(
        self, messages: list[ModelMessage], info: AgentInfo
    ) -> AsyncIterator[str | DeltaToolCalls]:
        for at, part in enumerate(self._next(messages, info)):
            if isinstance(part, Exception):
                raise part
            for piece in stream_pieces(at, part):
                yield piece


def stream_pieces(at: int, part: ModelResponsePart) -> list[str | DeltaToolCalls]:
    """Split a part of an answer into pieces as a provider would send them.

    A text is split after each word, the arguments of a tool call into two halves. Other parts are
    not streamed.
    """
    if isinstance(part, TextPart):
        return [*part.content.splitlines(keepends=True)] if "\n" in part.content else _words(part)
    if not isinstance(part, ToolCallPart):
        return []
    args = part.args_as_json_str() if not isinstance(part.args, str) else part.args
    half = len(args) // 2
    head = DeltaToolCall(name=part.tool_name, json_args=args[:half], tool_call_id=part.tool_call_id)
    tail = DeltaToolCall(json_args=args[half:], tool_call_id=part.tool_call_id)
    return [{at: head}, {at: tail}]


def _words(part: TextPart) -> list[str | DeltaToolCalls]:
    *words, last = part.content.split(" ")
    return [*(f"{word} " for word in words), last]
