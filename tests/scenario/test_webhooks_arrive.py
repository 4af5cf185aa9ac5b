"""A running bot calls a real receiver, over the API and the network (checks 41 and 12)."""

from __future__ import annotations

import asyncio
from pathlib import Path

from aiohttp import ClientSession, web

from bot.records.programs import ProgramScope, program_id
from countersign_client import AsyncCountersign, Event, verify_webhook
from storage.documents import update
from tests.scenario.test_programs_ask import CALL, a_door
from tests.support.stage import APPROVE

SCOPES = (ProgramScope.WRITE, ProgramScope.READ, ProgramScope.WEBHOOKS)


async def test_41_a_decision_arrives_signed(tmp_path: Path) -> None:
    events: asyncio.Queue[Event] = asyncio.Queue()
    secrets: list[str] = []

    async def take(request: web.Request) -> web.Response:
        events.put_nowait(verify_webhook(await request.read(), request.headers, secrets))
        return web.Response(status=204)

    app = web.Application()
    app.router.add_post("/hook", take)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    place = f"localhost:{runner.addresses[0][1]}"
    try:
        private = "127.0.0.0/8,::1/128"
        async with (
            a_door(tmp_path, SCOPES, COUNTERSIGN_CALLBACK_PRIVATE=private) as (stage, url, key),
            AsyncCountersign(url, key) as program,
            ClientSession(headers={"Authorization": f"Bearer {key}"}) as http,
        ):
            await update(
                stage.storage.programs.programs,
                program_id("ci"),
                lambda known: known.changed(callback_hosts=(place,)),
            )
            await stage.stop_bot()  # it knows programs for some seconds
            await stage.start_bot()
            body = {"url": f"http://{place}/hook"}
            async with http.post(f"{url}/v1/webhooks", json=body) as answer:
                assert answer.status == 201, await answer.text()
                secrets.append((await answer.json())["secret"])
            made = await program.create("Deploy", key="k", tool="deploy", arguments=CALL)
            await stage.click("Ada", await stage.card(word=APPROVE), APPROVE)
            async with asyncio.timeout(20):
                created, decided = await events.get(), await events.get()
            assert (created.type, decided.type) == ("request.created", "request.decided")
            assert decided.data["request"]["id"] == made.id
            assert decided.data["request"]["status"] == "approved"
    finally:
        await runner.cleanup()
