"""An agent of Pydantic AI asks people (checks 59 and 12 of the doors)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import TypeAdapter
from pydantic_ai import (
    Agent,
    CallDeferred,
    DeferredToolRequests,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    TextPart,
    ToolCallPart,
)
from pydantic_ai.capabilities import HandleDeferredToolCalls
from pydantic_ai.messages import ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from countersign_client.adapters.frameworks import AdapterError
from countersign_client.adapters.pydantic_ai import CountersignApprovals, RunPending, run
from tests.support.programs.world import VirtualWorld

Script = Callable[[dict[str, Any]], list[ToolCallPart | TextPart]]


class Shop:
    """An agent with tools, and what they did; the model calls `calls`, then tells what it read."""

    def __init__(self, *calls: ToolCallPart, **options: Any) -> None:
        self.ran: list[Any] = []
        self.calls = calls
        self.read: dict[str, Any] = {}
        options.setdefault("output_type", [str, DeferredToolRequests])
        self.agent: Any = Agent(FunctionModel(self._model), **options)
        self.agent.tool_plain(self.look)
        self.agent.tool_plain(self.ask)
        self.agent.tool_plain(self.ship)
        self.agent.tool_plain(requires_approval=True)(self.refund)

    def _model(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        for message in messages:
            for part in message.parts:
                if isinstance(part, ToolReturnPart):
                    self.read[part.tool_call_id] = part.content
        if self.read:
            return ModelResponse(parts=[TextPart("Done.")])
        return ModelResponse(parts=list(self.calls))

    def look(self) -> str:
        self.ran.append("look")
        return "seen"

    def ask(self, question: str, options: list[str] | None = None) -> str:
        raise CallDeferred(kind="question")

    def ship(self) -> str:
        raise CallDeferred

    def refund(self, order: int, amount: float = 10.0) -> str:
        self.ran.append(("refund", order, amount))
        return f"refunded {amount}"


def refund(id_: str, arguments: Any) -> ToolCallPart:
    return ToolCallPart("refund", arguments, tool_call_id=id_)


async def test_approval_edit_refusal_and_question_in_one_turn(async_world: VirtualWorld) -> None:
    world = async_world
    shop = Shop(
        ToolCallPart("look", {}, tool_call_id="c0"),
        refund("c1", {"order": 1}),
        refund("c2", '{"order": 2, "amount": 50.0}'),
        refund("c3", {"order": 3}),
        ToolCallPart("ask", {"question": "Which?", "options": ["eu", "us"]}, tool_call_id="c4"),
    )
    server = world.server
    world.after(60, lambda: server.reply(world.record("chat-7/c4"), "eu"))
    world.after(61, lambda: server.reject(world.record("chat-7/c3"), "Friday."))
    world.after(62, lambda: server.approve(world.record("chat-7/c2"), {"order": 2, "amount": 5.0}))
    world.after(63, lambda: server.approve(world.record("chat-7/c1")))
    result = await run(shop.agent, "Refund.", client=world.async_client(), key="chat-7")
    assert result.output == "Done."
    assert shop.ran[0] == "look"
    assert sorted(shop.ran[1:]) == [("refund", 1, 10.0), ("refund", 2, 5.0)]  # they run at once
    assert (shop.read["c2"], shop.read["c4"]) == ("refunded 5.0", "eu")
    assert shop.read["c3"] == "Rejected by Ada: Friday."
    kinds = [record.shown["kind"] for record in server.records.values()]
    assert sorted(kinds) == ["choice", "edit", "edit", "edit"]


async def test_a_run_goes_on_after_a_restart_and_json(async_world: VirtualWorld) -> None:
    world = async_world
    calls = (
        ToolCallPart("look", {}, tool_call_id="c0"),
        refund("c1", {"order": 1}),
        refund("c2", {"order": 2}),
    )
    before = Shop(*calls)
    world.after(10, lambda: world.server.approve(world.record("chat-7/c1")))
    with pytest.raises(RunPending) as stopped:
        await run(before.agent, "Refund.", client=world.async_client(), key="chat-7", wait=60)
    assert before.ran == ["look"]  # and nothing of the half that is decided
    history = ModelMessagesTypeAdapter.dump_json(stopped.value.history)
    pending = TypeAdapter(DeferredToolRequests).dump_json(stopped.value.pending)

    world.server.approve(world.record("chat-7/c2"), {"order": 2, "amount": 1.0})
    after = Shop(*calls)
    result = await run(
        after.agent,
        client=world.async_client(),
        key="chat-7",
        message_history=ModelMessagesTypeAdapter.validate_json(history),
        pending=TypeAdapter(DeferredToolRequests).validate_json(pending),
    )
    assert (result.output, len(world.server.records)) == ("Done.", 2)
    assert sorted(after.ran) == [("refund", 1, 10.0), ("refund", 2, 1.0)]


@pytest.mark.parametrize(
    ("end", "text"),
    [
        ("expire", "Not run: nobody answered within 8 h. This is no rejection."),
        ("cancel", "Not run: the request was withdrawn. This is no rejection."),
        ("fail", "Not run: people could not be asked (nobody-can-decide). This is no rejection."),
        ("deny", "Rejected by the rule production of the policy. Do not try it in another way."),
    ],
)
async def test_each_end_has_words_of_its_own(
    async_world: VirtualWorld, end: str, text: str
) -> None:
    world = async_world
    shop = Shop(refund("c1", {"order": 1}))
    world.end(end)
    await run(shop.agent, "Refund.", client=world.async_client(), key="chat-7")
    assert (shop.ran, shop.read["c1"]) == ([], text)


async def test_a_question_that_nobody_answers_is_told_so(async_world: VirtualWorld) -> None:
    shop = Shop(ToolCallPart("ask", {"question": "Which?"}, tool_call_id="c1"))
    await run(shop.agent, "Refund.", client=async_world.async_client(), key="chat-7")
    assert shop.read["c1"] == "Not run: nobody answered within 8 h. This is no rejection."


async def test_a_decision_that_lapsed_while_others_were_open_is_not_used(
    async_world: VirtualWorld,
) -> None:
    world = async_world
    shop = Shop(refund("c1", {"order": 1}), refund("c2", {"order": 2}))
    world.after(60, lambda: world.server.approve(world.record("chat-7/c1")))
    world.after(1200, lambda: world.server.approve(world.record("chat-7/c2")))
    await run(shop.agent, "Refund.", client=world.async_client(), key="chat-7")
    assert shop.ran == [("refund", 2, 10.0)]
    assert shop.read["c1"].startswith("Not run: it was approved, but too long ago")


async def test_edited_arguments_that_do_not_fit_never_reach_the_tool(
    async_world: VirtualWorld,
) -> None:
    world = async_world
    shop = Shop(refund("c1", {"order": 1}))
    world.after(60, lambda: world.server.approve(world.request, {"order": "one"}))
    await run(shop.agent, "Refund.", client=world.async_client(), key="chat-7")
    assert shop.ran == []
    assert "valid integer" in str(shop.read["c1"])


@pytest.mark.parametrize("output", [str, [str], str | int])
async def test_an_agent_that_cannot_stop_is_refused_before_its_tools_run(
    async_world: VirtualWorld, output: Any
) -> None:
    shop = Shop(ToolCallPart("look", {}, tool_call_id="c0"), output_type=output)
    client = async_world.async_client()
    with pytest.raises(AdapterError, match="DeferredToolRequests"):
        await run(shop.agent, "Look.", client=client, key="chat-7")
    assert shop.ran == []
    more = [output, DeferredToolRequests]
    assert (await run(shop.agent, "Look.", client=client, key="k", output_type=more)).output


async def test_a_call_for_another_system_is_not_asked(async_world: VirtualWorld) -> None:
    shop = Shop(refund("c1", {"order": 1}), ToolCallPart("ship", {}, tool_call_id="c2"))
    with pytest.raises(AdapterError, match="ship: deferred for another system"):
        await run(shop.agent, "Ship.", client=async_world.async_client(), key="chat-7")
    assert (async_world.server.records, shop.ran) == ({}, [])


@pytest.mark.parametrize("given", [{"prompt": "Again."}, {"message_history": None}, {"pending": 7}])
async def test_a_stored_round_is_given_whole(
    async_world: VirtualWorld, given: dict[str, Any]
) -> None:
    shop = Shop(refund("c1", {"order": 1}))
    whole = {"message_history": [ModelResponse(parts=[])], "pending": DeferredToolRequests()}
    with pytest.raises(AdapterError, match="pending"):
        await run(shop.agent, client=async_world.async_client(), key="chat-7", **{**whole, **given})


async def test_ids_of_calls_with_any_characters_name_requests(async_world: VirtualWorld) -> None:
    async_world.server.policy = "allow"
    shop = Shop(refund("ä /" + "x" * 300, {"order": 1}), refund("a/b", {"order": 2}))
    await run(shop.agent, "Refund.", client=async_world.async_client(), key="chat-7")
    assert len(shop.ran) == 2
    assert "chat-7/a%2Fb" in [record.key for record in async_world.server.records.values()]


async def test_a_handler_asks_and_waits_within_the_run(async_world: VirtualWorld) -> None:
    world = async_world
    handler = CountersignApprovals(world.async_client(), key="chat-7")
    shop = Shop(refund("c1", {"order": 1}), capabilities=[HandleDeferredToolCalls(handler=handler)])
    world.after(60, lambda: world.server.approve(world.request))
    assert (await shop.agent.run("Refund.")).output == "Done."
    assert shop.ran == [("refund", 1, 10.0)]


async def test_a_handler_leaves_what_people_did_not_decide(async_world: VirtualWorld) -> None:
    world = async_world
    handler = CountersignApprovals(world.async_client(), key="chat-7", wait=60)
    handled = [HandleDeferredToolCalls(handler=handler)]
    shop = Shop(refund("c1", {"order": 1}), capabilities=handled)
    left = (await shop.agent.run("Refund.")).output
    assert ([call.tool_call_id for call in left.approvals], shop.ran) == (["c1"], [])
    shop = Shop(ToolCallPart("ship", {}, tool_call_id="c2"), capabilities=handled)
    assert (await shop.agent.run("Ship.")).output.calls[0].tool_call_id == "c2"
