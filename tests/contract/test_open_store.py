"""`open_store`: a run that was stored is there when the address is opened again."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents import ChatModelAgent, Runner, ScriptedModel, tool
from agents.models import call, say
from storage.opening import open_store
from tests.support.mongo import MongoServer
from tests.unit.agents.support import brief, collect, contexts


@tool(gate="approval")
def refund(amount: int) -> str:
    """Refund an amount."""
    return f"refunded {amount}"


async def _ask_and_go_on(address: str) -> None:
    def agent(turn: object) -> ChatModelAgent:
        return ChatModelAgent(name="A", model=ScriptedModel([turn]), tools=[refund])  # type: ignore[list-item]

    async with open_store(address) as store:
        asking = agent(call("refund", {"amount": 5}, id="c1"))
        runner = Runner(asking, checkpoint_store=store.checkpoints, message_log=store.log)
        (asked,) = contexts(await collect(runner.query("go", checkpoint_id="1"))).values()
    async with open_store(address) as store:
        runner = Runner(agent(say("done")), checkpoint_store=store.checkpoints)
        events = await collect(runner.resume("1", {asked.id: asked.info.approve(by="ada")}))  # type: ignore[attr-defined]

    assert brief(events) == ["tool refund#c1 ran: refunded 5", "says done"]


async def test_a_directory(tmp_path: Path) -> None:
    await _ask_and_go_on(str(tmp_path / "runs"))


@pytest.mark.mongo
async def test_an_address_of_mongodb(mongo_server: MongoServer) -> None:
    await _ask_and_go_on(mongo_server.new_uri())
