"""Models by name, and the model that follows a script."""

from __future__ import annotations

import shlex
import sys

import pytest
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from agents.core.errors import AgentConfigError
from agents.models import ScriptedModel, call, resolve_model, say

HELLO: list[ModelMessage] = [ModelRequest(parts=[UserPromptPart("hello")])]
TOOLS = ModelRequestParameters(function_tools=[ToolDefinition(name="pay")])


async def streamed(model: ScriptedModel) -> tuple[list[str], ModelResponse]:
    async with model_request_stream(model, HELLO) as stream:
        events = [type(event).__name__ async for event in stream]
        return events, stream.get()


async def test_script_is_followed_turn_by_turn() -> None:
    model = ScriptedModel([say("one"), [say("two"), call("pay", {"euros": 5}, id="c1")]])
    assert (await model_request(model, HELLO)).text == "one"
    second = await model_request(model, HELLO, model_request_parameters=TOOLS)
    assert second.text == "two"
    (made,) = second.tool_calls
    assert (made.tool_name, made.args_as_dict(), made.tool_call_id) == ("pay", {"euros": 5}, "c1")
    assert model.calls == 2
    assert model.inputs == [HELLO, HELLO]
    assert model.tools == [(), ("pay",)]


async def test_stream_gives_the_same_in_pieces() -> None:
    turn: list[TextPart | ToolCallPart] = [
        say("one two\nthree"),
        say("four five"),
        call("pay", {"euros": 5}, id="c1"),
        call("pay", '{"euros": }', id="c2"),
    ]
    events, response = await streamed(ScriptedModel([turn]))
    assert response.text == "one two\nthreefour five"
    first, second = response.tool_calls
    assert first.args_as_dict() == {"euros": 5}
    assert (second.args, second.tool_call_id) == ('{"euros": }', "c2")
    assert events.count("PartDeltaEvent") >= 5


async def test_script_that_is_over_says_so() -> None:
    model = ScriptedModel([])
    with pytest.raises(AgentConfigError, match="0 turns, and the model was asked once more"):
        await model_request(model, HELLO)


async def test_part_that_is_neither_text_nor_call_is_not_streamed() -> None:
    _, response = await streamed(ScriptedModel([[ThinkingPart("hm"), say("x")]]))
    assert response.text == "x"


@pytest.mark.parametrize("name", ["", "gpt-5", ":gpt-5", "openai:", "test", "demo"])
def test_name_without_a_provider(name: str) -> None:
    with pytest.raises(AgentConfigError, match="expected provider:model"):
        resolve_model(name)


def test_unknown_provider() -> None:
    with pytest.raises(AgentConfigError, match="'nope:x' cannot be used"):
        resolve_model("nope:x")


def test_missing_key_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(AgentConfigError, match="Set the `OPENAI_API_KEY` environment variable"):
        resolve_model("openai:gpt-5")


@pytest.mark.parametrize(
    ("name", "extra"),
    [("anthropic:claude-sonnet-4-5", "anthropic"), ("groq:llama-3.3-70b-versatile", "groq")],
)
def test_the_remedy_for_a_missing_package_works_with_this_python(name: str, extra: str) -> None:
    # Never by the name of our own distribution: who asks an index for it may get somebody else's.
    with pytest.raises(AgentConfigError) as raised:
        resolve_model(name)
    remedy = f'run: {shlex.quote(sys.executable)} -m pip install "pydantic-ai-slim[{extra}]"'
    assert str(raised.value).endswith(remedy)


def test_model_with_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    model = resolve_model("openai-chat:gpt-5")
    assert (model.system, model.model_name) == ("openai", "gpt-5")
