# mypy: ignore-errors
"""An agent of the OpenAI Agents SDK asks people (checks 60 and 12 of the doors).

`test_openai_agents.py` runs these tests in a process of their own, where `agents` is the SDK.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

import agents
from agents.usage import Usage
from countersign_client import StillPending
from countersign_client.adapters.frameworks import AdapterError
from countersign_client.adapters.openai_agents import run
from tests.support.programs.world import VirtualWorld

agents.set_tracing_disabled(disabled=True)


@pytest.fixture
def world() -> Iterator[VirtualWorld]:
    made = VirtualWorld("async")
    yield made
    made.close()


class Model(agents.Model):
    """Calls `refund` for each turn of a script, then says that it is done."""

    def __init__(self, turns: list[list[tuple[str, str]]]) -> None:
        self.turns = turns
        self.read: dict[str, str] = {}

    async def get_response(self, **asked):
        given = asked["input"] if isinstance(asked["input"], list) else []
        outputs = [item for item in given if item.get("type") == "function_call_output"]
        self.read = {item["call_id"]: item["output"] for item in outputs}
        for turn in self.turns:
            if not {id_ for id_, _ in turn} & set(self.read):
                return self._said(
                    ResponseFunctionToolCall(
                        type="function_call", name="refund", call_id=id_, arguments=arguments
                    )
                    for id_, arguments in turn
                )
        text = ResponseOutputText(type="output_text", text="Done.", annotations=[])
        message = ResponseOutputMessage(
            id="m", type="message", role="assistant", status="completed", content=[text]
        )
        return self._said([message])

    def _said(self, output):
        return agents.ModelResponse(output=list(output), usage=Usage(), response_id=None)

    def stream_response(self, *args, **more):
        raise NotImplementedError


class Shop:
    """An agent with a tool, and what it did."""

    def __init__(self, *turns: list[tuple[str, str]], name: str = "shop", on_refund=None) -> None:
        self.ran: list[int] = []
        self.model = Model(list(turns))

        @agents.function_tool(needs_approval=True)
        def refund(order: int) -> str:
            self.ran.append(order)
            if on_refund:
                on_refund()
            return f"refunded {order}"

        self.agent = agents.Agent(name=name, model=self.model, tools=[refund])


class Memory(dict):
    """A store of snapshots."""

    load = dict.get
    save = dict.__setitem__

    def delete(self, key: str) -> None:
        self.pop(key, None)


def call(n: int) -> tuple[str, str]:
    return f"c{n}", json.dumps({"order": n})


async def play(world: VirtualWorld, shop: Shop, **more):
    options = {"client": world.async_client(), "key": "inv-1", **more}
    return await run(shop.agent, "Refund.", **options)


async def test_one_is_approved_and_one_rejected_and_nobody_can_edit(world: VirtualWorld) -> None:
    shop = Shop([call(1), call(2)])
    world.after(60, lambda: world.server.approve(world.record("inv-1/c2")))
    world.after(90, lambda: world.server.reject(world.record("inv-1/c1"), "Friday."))
    assert (await play(world, shop)).final_output == "Done."
    assert shop.ran == [2]
    assert shop.model.read == {"c1": "Rejected by Ada: Friday.", "c2": "refunded 2"}
    assert {record.shown["kind"] for record in world.server.records.values()} == {"approval"}


@pytest.mark.parametrize(
    ("end", "text"),
    [
        ("expire", "Not run: nobody answered within 8 h. This is no rejection."),
        ("cancel", "Not run: the request was withdrawn. This is no rejection."),
        ("fail", "Not run: people could not be asked (nobody-can-decide). This is no rejection."),
    ],
)
async def test_no_other_end_is_told_as_a_rejection(
    world: VirtualWorld, end: str, text: str
) -> None:
    shop = Shop([call(1)])
    world.end(end)
    await play(world, shop)
    assert (shop.ran, shop.model.read) == ([], {"c1": text})


async def test_each_call_of_a_tool_is_asked_anew(world: VirtualWorld) -> None:
    shop = Shop([call(1)], [call(2)])
    world.after(60, lambda: world.server.approve(world.record("inv-1/c1")))
    world.after(120, lambda: world.server.reject(world.record("inv-1/c2")))
    await play(world, shop)
    assert (shop.ran, len(world.server.records)) == ([1], 2)


async def test_a_restarted_program_goes_on_from_the_snapshot_once(world: VirtualWorld) -> None:
    store = Memory()
    with pytest.raises(StillPending):
        await play(world, Shop([call(1), call(2)]), store=store, wait=60)
    assert set(store) == {"inv-1"}
    world.server.approve(world.record("inv-1/c1"))
    world.server.reject(world.record("inv-1/c2"), "Friday.")
    kept: list[bool] = []
    after = Shop([call(1), call(2)], on_refund=lambda: kept.append("inv-1" in store))
    assert (await play(world, after, store=store)).final_output == "Done."
    assert (after.ran, kept, store) == ([1], [False], {})
    assert after.model.read["c2"] == "Rejected by Ada: Friday."


async def test_a_snapshot_of_people_who_decided_nothing_holds_no_approval(
    world: VirtualWorld,
) -> None:
    store = Memory()
    with pytest.raises(StillPending):
        await play(world, Shop([call(1)]), store=store, wait=60)
    assert not json.loads(store["inv-1"])["context"]["approvals"]


@pytest.mark.parametrize("damage", ["version", "agent", "text"])
async def test_a_snapshot_that_does_not_fit_is_refused(world: VirtualWorld, damage: str) -> None:
    store = Memory()
    with pytest.raises(StillPending):
        await play(world, Shop([call(1)]), store=store, wait=60)
    if damage == "text":
        store["inv-1"] = "{}"
    if damage == "version":
        store["inv-1"] = json.dumps({**json.loads(store["inv-1"]), "$schemaVersion": "99.0"})
    world.server.approve(world.request)
    after = Shop([call(1)], name="another" if damage == "agent" else "shop")
    with pytest.raises(AdapterError, match="snapshot"):
        await play(world, after, store=store)
    assert after.ran == []


@pytest.mark.parametrize("arguments", ["{", "[1]", '{"order": 1, "order": 2}'])
async def test_arguments_that_people_cannot_see_are_not_asked(
    world: VirtualWorld, arguments: str
) -> None:
    shop = Shop([("c1", arguments)])
    with pytest.raises(AdapterError, match="refund"):
        await play(world, shop)
    assert (shop.ran, world.server.records) == ([], {})
