"""A receiver of webhooks that fails, loses answers and is away; and what must have arrived."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from random import Random

from aiohttp import web

from bot.records.approval import Approval, ExecutionState, ProgramEventType
from countersign_client import verify_webhook
from tests.support.ports import free_port

_ENDS = {ExecutionState.ENDED, ExecutionState.FAILED, ExecutionState.LAPSED}


@dataclass(frozen=True, slots=True)
class Arrival:
    """An event that the receiver took, once.

    Attributes:
        type: Such as `request.decided`.
        sequence: Rises with each event of a request.
        status: Of the request, as the event tells it.
    """

    type: str
    sequence: int
    status: str = ""


@dataclass
class WildReceiver:
    """Takes the events of all programs, on one port.

    Attributes:
        secrets: The secret of each endpoint, by its id, which is the last part of its path.
        random: Decides what becomes of an attempt.
        is_wild: Whether it fails at all.
        arrived: What it took, by the id of the request.
        faults: How many attempts it failed.
    """

    random: Random
    secrets: dict[str, str] = field(default_factory=dict)
    is_wild: bool = True
    arrived: dict[str, list[Arrival]] = field(default_factory=lambda: defaultdict(list))
    faults: int = 0
    port: int = field(default_factory=free_port)
    _runner: web.AppRunner | None = None
    _away: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def host(self) -> str:
        """The host that a program must be allowed to call."""
        return f"localhost:{self.port}"

    def url_of(self, endpoint: str) -> str:
        """Return the address of an endpoint."""
        return f"http://{self.host}/{endpoint}"

    async def start(self) -> None:
        """Listen."""
        app = web.Application()
        app.router.add_post("/{endpoint}", self._take)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True)
        await site.start()

    async def stop(self) -> None:
        """Stop listening, for good."""
        self.is_wild = False
        await asyncio.gather(*self._away)
        if self._runner is not None:
            await self._runner.cleanup()

    async def _take(self, request: web.Request) -> web.Response:
        fate = self.random.random() if self.is_wild else 1.0
        body = await request.read()
        if fate < 0.1:
            self.faults += 1
            return web.Response(status=500)
        if fate < 0.15:
            self.faults += 1
            return _cut(request)
        event = verify_webhook(body, request.headers, self.secrets[request.match_info["endpoint"]])
        request = event.data["request"]
        arrival = Arrival(event.type, event.data["sequence"], request["status"])
        self.arrived[request["id"]].append(arrival)
        if fate < 0.25:  # it has the event, and the bot does not hear so
            self.faults += 1
            return _cut(request)
        if fate < 0.28 and not self._away:
            task = asyncio.create_task(self._go_away())
            self._away.add(task)
            task.add_done_callback(self._away.discard)
        return web.Response(status=204)

    async def _go_away(self) -> None:
        """Die, with all connections, and come back after a moment."""
        assert self._runner is not None
        for site in list(self._runner.sites):
            await site.stop()
        await asyncio.sleep(self.random.uniform(0.2, 1.5))  # the time in which nobody listens
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True)
        await site.start()


def _cut(request: web.Request) -> web.Response:
    """End the connection without an answer."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=500)


def faults_of(
    arrived: Sequence[Arrival], approval: Approval, *, ends: Collection[str], starts: int
) -> list[str]:
    """Return what is wrong with the events of a request that is over.

    Args:
        arrived: What arrived, in this order.
        approval: The request.
        ends: How it ended, as its program read it.
        starts: How many of its starts a program has seen the token.
    """
    faults: list[str] = []
    firsts = list(dict.fromkeys(event.sequence for event in arrived))
    if firsts != sorted(firsts):
        faults.append(f"its events came first in the order {firsts}")
    types = Counter(kind for kind, _ in {(event.type, event.sequence) for event in arrived})
    wanted = {
        ProgramEventType.CREATED: 1,
        ProgramEventType.DECIDED: 1,
        ProgramEventType.ENDED: int(approval.execution.state in _ENDS),
    }
    for event_type, count in wanted.items():
        if types[event_type] != count:
            faults.append(f"{types[event_type]} events {event_type} arrived, not {count}")
    if types[ProgramEventType.STARTED] < starts:
        faults.append(f"{types[ProgramEventType.STARTED]} starts arrived, not {starts}")
    statuses = {event.status for event in arrived if event.type == ProgramEventType.DECIDED}
    if statuses - set(ends):
        faults.append(f"its events told {sorted(statuses)}, and its program read {sorted(ends)}")
    return faults
