"""The demo agent with a real provider's protocol: same tools, same gates, over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic_ai.models import override_allow_model_requests

from agents.core.asking.infos import ReviewEditInfo
from agents.core.errors import ModelError, ModelRefusedError
from bot.demo.agent import INSTRUCTION
from tests.unit.bot.demo.openai_server import KEY, Call, Reply, openai_server
from tests.unit.bot.talk import Talk

ARGUMENTS = '{"service": "payments", "version": "1.4.2", "environment": "production"}'
DEPLOY = Call("deploy", ARGUMENTS, "call_1")
LIVE = "payments 1.4.2 is live in production with 3 replicas"


@pytest.fixture(autouse=True)
def loopback_model() -> Iterator[None]:
    with override_allow_model_requests(allow_model_requests=True):
        yield


@pytest.fixture(params=[False, True], ids=["whole", "streamed"])
def streaming(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def sent(request: dict[str, Any], role: str) -> list[dict[str, Any]]:
    return [message for message in request["messages"] if message["role"] == role]


async def test_tool_call_in_pieces_is_asked_approved_and_told(streaming: bool) -> None:
    replies = [Reply("I will deploy it.", [DEPLOY]), Reply("It is live.")]
    async with openai_server(*replies) as (server, model):
        talk = Talk(model, streaming=streaming)
        await talk.say("Deploy payments 1.4.2 to production, please.")
        info = talk.question(ReviewEditInfo)
        assert info.arguments == {**json.loads(ARGUMENTS), "replicas": 3}
        assert info.call_id == "call_1"
        assert info.why.replace(" ", "") == "Iwilldeployit."
        assert talk.effects == []
        said = await talk.decide(info.accept())
    assert talk.done == [LIVE]
    assert said.replace(" ", "") == "Itislive."
    assert server.keys == [f"Bearer {KEY}"] * 2
    assert [bool(request.get("stream")) for request in server.requests] == [streaming] * 2


async def test_provider_is_told_instruction_tools_and_results() -> None:
    async with openai_server(Reply("", [DEPLOY]), Reply("Done.")) as (server, model):
        talk = Talk(model)
        await talk.say("deploy it")
        await talk.decide(talk.question(ReviewEditInfo).reject("freeze"))
    first, second = server.requests
    assert INSTRUCTION.strip() in sent(first, "system")[0]["content"]
    offered = {tool["function"]["name"]: tool["function"] for tool in first["tools"]}
    assert set(offered) == {
        "get_status",
        "deploy",
        "roll_back",
        "refund_order",
        "restart",
        "announce",
        "ask_people",
    }
    parameters = offered["deploy"]["parameters"]
    assert parameters["properties"]["environment"]["enum"] == ["staging", "production"]
    (made,) = sent(second, "assistant")
    assert made["tool_calls"][0]["id"] == "call_1"
    (result,) = sent(second, "tool")
    assert result["tool_call_id"] == "call_1"
    assert "Rejected by a person" in result["content"]
    assert "freeze" in result["content"]


@pytest.mark.parametrize("status", [401, 400])
async def test_provider_that_refuses_is_a_model_error_without_the_key(
    streaming: bool, status: int
) -> None:
    async with openai_server(Reply(status=status)) as (_, model):
        talk = Talk(model, streaming=streaming)
        with pytest.raises(ModelError) as caught:
            await talk.say("go")
    assert KEY not in str(caught.value)
    assert isinstance(caught.value, ModelRefusedError)
    assert caught.value.fault == {401: "key", 400: "request"}[status]
