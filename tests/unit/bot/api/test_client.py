"""The client for programs at the real door, with the real use cases behind it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from agents.core.codec import Json
from bot.records.approval import Status
from countersign_client import AsyncCountersign, Countersign
from countersign_client.hooks.agents import AGENTS, Printed
from countersign_client.hooks.running import answer
from countersign_client.hooks.trying import RECORDED
from tests.unit.bot.api.program_office import OLGA, programs_of
from tests.unit.bot.api.programs import doorstep
from tests.unit.bot.office import CHANNEL, Office

CALL: dict[str, Any] = {"env": "production", "replicas": 3}


class Play:
    """An office, and a client at its door."""

    def __init__(self, office: Office, client: AsyncCountersign) -> None:
        self.office = office
        self.client = client

    async def decided(self, request_id: str, status: Status) -> None:
        """Post the card, and decide."""
        await self.office.queue.run()
        approval = await self.office.storage.approvals.get(request_id)
        answers: Json = ["eu"] if status is Status.ANSWERED else None
        await self.office.decide(approval, status, answers=answers)

    async def asked(self, asking: asyncio.Future[Any]) -> str:
        """Wait until somebody has asked; the store has no limit of requests, as the door has."""
        while not (page := await self.office.storage.approvals.find({})).documents:
            assert not asking.done(), asking.result()
        return page.documents[0].key


@pytest.fixture
async def play(office: Office) -> AsyncIterator[Play]:
    programs = programs_of(office)
    async with doorstep(storage=office.storage, clock=office.clock, programs=programs) as step:
        step.directory.add(OLGA)
        rights = {"tools": ("*",), "channels": (CHANNEL,)}
        key = await step.key("ci", id="prg_1", owner_id=OLGA, **rights)
        url = f"http://127.0.0.1:{step.port}"
        async with AsyncCountersign(url, key, patience=5) as client:
            yield Play(office, client)


async def created(play: Play, **more: Any) -> Any:
    options = {"key": "build-7", "tool": "deploy", "arguments": CALL, **more}
    return await play.client.create("Deploy payments", **options)


@pytest.mark.parametrize(
    ("end", "asked"),
    [
        (Status.APPROVED, {"execution": "none"}),
        (Status.ANSWERED, {"kind": "question", "tool": None, "arguments": None}),
    ],
    ids=str,
)
async def test_an_end_that_was_read_once_has_no_second_use(
    play: Play, end: Status, asked: dict[str, Any]
) -> None:
    """Nothing is started here, so that reading is the use; only a key that may repeat asks anew."""
    made = await created(play, repeat="after_use", **asked)
    assert (await created(play, repeat="after_use", **asked)).id == made.id
    await play.decided(made.id, end)
    assert (await play.client.wait(made)).status == end
    assert (await play.client.get(made.id)).status == end
    again = await created(play, repeat="after_use", **asked)
    assert (again.status, again.id != made.id) == ("pending", True)
    same = await created(play, key="build-8", **asked)
    await play.decided(same.id, end)
    assert (await created(play, key="build-8", **asked)).status == end
    assert (await created(play, key="build-8", **asked)).id == same.id


@pytest.mark.parametrize("mode", ["once", "idempotent", "none"])
async def test_an_approval_that_lapsed_unused_is_asked_anew(play: Play, mode: str) -> None:
    made = await created(play, repeat="after_use", execution=mode)
    await play.decided(made.id, Status.APPROVED)
    assert mode == "none" or (await created(play, repeat="after_use", execution=mode)).id == made.id
    play.office.clock.forward(minutes=16)
    again = await created(play, repeat="after_use", execution=mode)
    assert (again.status, again.id != made.id) == ("pending", True)


HOOKS = [(name, record) for name, records in RECORDED.items() for record in records]


@pytest.mark.parametrize(("name", "record"), HOOKS)
@pytest.mark.parametrize("status", [Status.APPROVED, Status.REJECTED])
async def test_a_hook_of_a_coding_agent_gets_its_decision(
    play: Play, name: str, record: dict[str, Any], status: Status
) -> None:
    target = play.client._target
    key = target.headers["Authorization"].removeprefix("Bearer ")

    def hook() -> Printed:
        content = json.dumps(record).encode()
        return answer(AGENTS[name], lambda: content, lambda: Countersign(target.url, key), 30)

    asking = asyncio.create_task(asyncio.to_thread(hook))
    await play.decided(await play.asked(asking), status)
    printed = await asking
    is_refused = printed.code == 2 or '"deny"' in printed.stdout
    assert is_refused == (status is Status.REJECTED)
    assert "could not" not in printed.stderr
