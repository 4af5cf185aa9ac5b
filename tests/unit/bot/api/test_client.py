"""The client for programs at the real door, with the real use cases behind it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from agents.core.codec import Json
from bot.api.canonical import call_digest
from bot.api.door import ApiDoor
from bot.records.approval import Status
from bot.records.programs import key_digest, key_id, new_key
from bot.records.switch import FreezeScope
from countersign_client import (
    AlreadyStarted,
    AsyncCountersign,
    Countersign,
    DigestMismatch,
    Frozen,
    InvalidRequest,
    KeyRefused,
    Rejected,
    digest,
    gate,
)
from countersign_client.hooks.agents import AGENTS, Printed
from countersign_client.hooks.running import answer
from countersign_client.hooks.trying import RECORDED
from tests.contract.builders import a_program_key
from tests.support.keyring import a_ring
from tests.support.stores import SqliteStores
from tests.unit.bot.api.program_office import URL, a_caller, an_office, programs_of
from tests.unit.bot.office import BEN, Office

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

    async def pending(self) -> list[str]:
        return [request.id async for request in self.client.list(status=["pending"])]

    async def asked(self, asking: asyncio.Future[Any]) -> str:
        """Wait until somebody has asked; the store has no limit of requests, as the door has."""
        while not (page := await self.office.storage.approvals.find({})).documents:
            assert not asking.done(), asking.result()
        return page.documents[0].key


@pytest.fixture
async def play() -> AsyncIterator[Play]:
    async with AsyncExitStack() as stack:
        storage = SqliteStores(None)
        await storage.open()
        stack.push_async_callback(storage.close)
        office = an_office(storage)
        key = new_key()
        await storage.programs.add(a_caller().program)
        await storage.programs.add_key(
            a_program_key(
                key_id(key) or "",
                program_id="prg_1",
                digest=key_digest(key),
                expires_ms=office.clock() + 86_400_000,
            )
        )

        async def is_ready() -> str:
            return ""

        programs = programs_of(office)
        door = ApiDoor(
            use=programs,
            executions=programs.executions,
            threads=programs.threads,
            endpoints=programs.endpoints,
            keys=a_ring(storage, office.clock, directory=office.directory),
            url=URL,
            is_ready=is_ready,
            clock=office.clock,
        )
        port = await door.listen(host="127.0.0.1", port=0, stack=stack)
        url = f"http://127.0.0.1:{port}"
        client = await stack.enter_async_context(AsyncCountersign(url, key, patience=5))
        yield Play(office, client)


async def created(play: Play, **more: Any) -> Any:
    options = {"key": "build-7", "tool": "deploy", "arguments": CALL, **more}
    return await play.client.create("Deploy payments", **options)


async def test_an_approved_call_runs_once_and_its_end_is_on_record(play: Play) -> None:
    made = await created(play)
    await play.decided(made.id, Status.APPROVED)
    done = await play.client.wait(made)
    done.check("deploy", CALL)
    async with play.client.execute(done) as run:
        assert run.arguments == CALL
        run.summary = "3 pods"
    ended = await play.client.get(made.id)
    assert (ended.execution.state, ended.execution.summary) == ("ran", "3 pods")
    with pytest.raises(AlreadyStarted, match="It never starts twice; see http"):
        await play.client.start(done, tool="deploy", arguments=CALL)


async def test_a_wait_ends_with_the_decision(play: Play) -> None:
    made = await created(play)
    waiting = asyncio.create_task(play.client.wait(made))
    await play.decided(made.id, Status.REJECTED)
    done = await waiting
    with pytest.raises(Rejected):
        done.approved()


async def test_the_same_key_is_the_same_request(play: Play) -> None:
    made = await created(play)
    assert (await created(play, why="Worded anew.")).id == made.id
    with pytest.raises(InvalidRequest) as raised:
        await created(play, arguments={"env": "staging"})
    assert raised.value.code == "idempotency-key-reused"
    found = await play.client.find("build-7")
    assert found is not None
    assert found.id == made.id
    assert await play.pending() == [made.id]


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


async def test_only_what_was_decided_starts_and_nothing_in_a_freeze(play: Play) -> None:
    made = await created(play)
    await play.decided(made.id, Status.APPROVED)
    with pytest.raises(DigestMismatch):
        await play.client.start(made, tool="deploy", arguments={**CALL, "replicas": 4})
    await play.office.freezes.freeze(FreezeScope(), by=BEN, why="Incident.")
    with pytest.raises(Frozen):
        await play.client.start(made, tool="deploy", arguments=CALL)


async def test_a_gated_function_asks_and_runs(play: Play) -> None:
    ran: list[tuple[str, int]] = []

    @gate(client=play.client, edit=True, key="deploy-{env}")
    async def deploy(env: str, replicas: int = 1) -> None:
        ran.append((env, replicas))

    calling = asyncio.create_task(deploy("production", replicas=3))
    await play.decided(await play.asked(calling), Status.APPROVED)
    await calling
    assert ran == [("production", 3)]


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


async def test_a_request_is_withdrawn(play: Play) -> None:
    made = await created(play)
    assert (await play.client.cancel(made, "A newer build.")).status == "cancelled"
    assert (await play.client.cancel(made)).status == "cancelled"


async def test_an_unknown_key_is_refused(play: Play) -> None:
    other = AsyncCountersign(play.client._target.url, new_key(), patience=0)
    async with other:
        with pytest.raises(KeyRefused):
            await other.find("build-7")


@pytest.mark.parametrize(
    "value", [0.1, 1e21, -0.0, 5e-324, "ü\U0001f600", [1, {"b": None, "a": True}]]
)
def test_both_sides_make_the_same_digest(value: Any) -> None:
    identity = "apr_" + "0" * 32
    assert digest(identity, "t", {"a": value}) == call_digest(identity, "t", {"a": value})
