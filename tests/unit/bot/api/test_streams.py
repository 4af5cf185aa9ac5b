"""Streams of events over cut connections, and one that nobody reads (check 15)."""

from __future__ import annotations

import asyncio
import json
import socket
import tracemalloc
from dataclasses import dataclass, field

import aiohttp

from bot.records.approval import Status
from tests.support.halves import later
from tests.unit.bot.api.program_office import a_request, programs_of
from tests.unit.bot.api.programs import Doorstep, doorstep
from tests.unit.bot.office import Office

REQUESTS = 200
CUTS = 10
MEBIBYTE = 1024 * 1024


@dataclass
class Reader:
    """Reads events, and goes on after the last one that it has."""

    step: Doorstep
    key: str
    last: str = f"0-apr_{'0' * 32}"
    states: dict[str, tuple[int, str]] = field(default_factory=dict)

    async def read(self, *, until: int) -> None:
        """Read over one connection until so many requests are decided, and cut it."""
        headers = {"Authorization": f"Bearer {self.key}", "Last-Event-ID": self.last}
        url = f"http://127.0.0.1:{self.step.port}/v1/events"
        async with aiohttp.ClientSession() as http, http.get(url, headers=headers) as stream:
            assert stream.status == 200
            async for line in stream.content:
                self._take(line.decode().strip())
                if sum(status != "pending" for _, status in self.states.values()) >= until:
                    return

    def _take(self, line: str) -> None:
        if line.startswith("id: "):
            self.last = line.removeprefix("id: ")
        elif line.startswith("data: "):
            request = json.loads(line.removeprefix("data: "))
            self.states[request["id"]] = (request["revision"], request["status"])


@later
async def test_15_the_last_state_of_each_request_arrives_over_ten_cuts(office: Office) -> None:
    programs = programs_of(office)
    names: list[str] = []
    async with doorstep(storage=office.storage, clock=office.clock, programs=programs) as step:
        reader = Reader(step, await step.key("ci", id="prg_1"))

        async def decide() -> None:
            for number in range(REQUESTS):
                office.clock.forward(seconds=10)  # all cuts last longer than what is sent again
                names.append((await a_request(office, key=str(number))).id)
                await asyncio.sleep(0)
                status = Status.REJECTED if number % 3 else Status.APPROVED
                await office.decide(await office.storage.approvals.get(names[-1]), status)
                await asyncio.sleep(0)

        async with asyncio.timeout(120):
            deciding = asyncio.create_task(decide())
            for cut in range(CUTS):
                await reader.read(until=(cut + 1) * REQUESTS // (CUTS + 1))
            await deciding
            await reader.read(until=REQUESTS)
    for name in names:
        record = await office.storage.approvals.get(name)
        assert reader.states[name] == (record.shown_revision, str(record.status))


async def test_15_a_reader_that_stops_costs_less_than_a_mebibyte() -> None:
    async with doorstep() as step:
        key = await step.key()
        await step.ask(arguments={"text": "x" * 40_000})
        (request,) = step.use.requests.values()
        with socket.create_connection(("127.0.0.1", step.port)) as stopped:
            stopped.setblocking(False)
            head = f"GET /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n\r\n"
            await asyncio.get_running_loop().sock_sendall(stopped, head.encode())
            await step.use.fed.wait()
            (feed,) = step.use.feeds
            for _ in range(1_000):
                feed.changed.put_nowait(request)
            tracemalloc.start()
            try:
                left = -1
                while left != feed.changed.qsize():
                    left = feed.changed.qsize()
                    for _ in range(200):
                        await asyncio.sleep(0)
                cost, _ = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
            assert left > 0  # it does not read on for a reader that stops
            assert cost < MEBIBYTE
