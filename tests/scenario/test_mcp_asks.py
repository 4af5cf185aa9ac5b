"""The proxy for MCP asks the real bot; people decide in the stand-in for Slack."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from countersign_client import AsyncCountersign
from countersign_client.mcp.calls import Options
from countersign_client.mcp.files import Definitions, Spool
from countersign_client.mcp.proxy import Proxy
from tests.scenario.test_programs_ask import a_door
from tests.support.programs.stage import CALL, DEPLOY
from tests.support.stage import APPROVE


class Wires:
    """A client and a server of tools that answers each call at once."""

    def __init__(self, people: AsyncCountersign, folder: Path) -> None:
        self.client: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.calls: list[dict[str, Any]] = []
        files = Definitions(folder / "tools.json"), Spool(folder)
        self.proxy = Proxy(people, Options("ops", "s"), files, self._to_client, self._to_server)

    async def ask(self, message_id: int, method: str, **params: Any) -> None:
        message = {"jsonrpc": "2.0", "id": message_id, "method": method, "params": params}
        await self.proxy.from_client(json.dumps(message).encode())

    async def _to_client(self, line: bytes) -> None:
        self.client.put_nowait(json.loads(line))

    async def _to_server(self, line: bytes) -> None:
        message = json.loads(line)
        result: dict[str, Any] = {"tools": [DEPLOY]}
        if message["method"] == "tools/call":
            self.calls.append(message["params"]["arguments"])
            result = {"content": [{"type": "text", "text": "deployed"}]}
        answer = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
        await self.proxy.from_server(answer + b"\n")


async def test_a_held_call_runs_when_people_approve_and_asks_anew_afterwards(
    tmp_path: Path,
) -> None:
    """Check 67, with the bot itself."""
    async with a_door(tmp_path) as (stage, url, key), AsyncCountersign(url, key) as people:
        wires = Wires(people, tmp_path / "state")
        await wires.ask(1, "tools/list")
        await wires.client.get()
        await wires.ask(2, "tools/call", name="deploy", arguments=CALL)
        card = await stage.card(word=APPROVE)
        assert "ops.deploy" in json.dumps(card)
        assert wires.calls == []
        await stage.click("Ada", card, APPROVE)
        answer = await wires.client.get()
        assert answer["result"]["content"][0]["text"] == "deployed"
        request = await people.get(answer["result"]["_meta"]["countersign/request"])
        assert request.execution.state == "ran"
        await wires.proxy.close()  # the result is handed over
        await wires.ask(3, "tools/call", name="deploy", arguments=CALL)
        await stage.until(lambda: len(stage.cards()) == 2)
        assert wires.calls == [CALL]
        await wires.proxy.close()
