"""Deliver payloads to the app, by Socket Mode or HTTP; repeat events."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from slack_sandbox.delivery.faults import Direction, Faults, PlannedFault
from slack_sandbox.delivery.http import AppReply, Kind, Parcel, Transport
from slack_sandbox.delivery.stats import Statistics
from slack_sandbox.workspace.changes import BackgroundTasks
from slack_sandbox.workspace.ids import Triggers
from slack_sandbox.workspace.records import Payload

RETRY_DELAYS: Sequence[float] = (0, 60, 300)
"""Number of seconds before each retry of an event."""

_DIRECTIONS: dict[Kind, Direction] = {
    "events_api": "event",
    "interactive": "interaction",
    "slash_commands": "command",
}


class Dispatcher:
    """Sends payloads by the first open transport, and injects planned faults.

    Args:
        transports: The transports to the app, the preferred one first.
        tasks: Runs background tasks.
        faults: The planned faults.
        stats: Counts deliveries.
        triggers: Trigger ids, which a fault may let expire.
        timer: Returns seconds; measures how long the app takes.
    """

    delays: Sequence[float] = RETRY_DELAYS
    """Number of seconds before each retry of an event."""

    def __init__(
        self,
        transports: Sequence[Transport],
        tasks: BackgroundTasks,
        *,
        faults: Faults,
        stats: Statistics,
        triggers: Triggers,
        timer: Callable[[], float],
    ) -> None:
        self._transports = transports
        self._tasks = tasks
        self._faults = faults
        self._stats = stats
        self._triggers = triggers
        self._timer = timer
        self._held: set[asyncio.Event] = set()
        self.sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
        self.lost: list[Payload] = []
        """Events that were given up after all retries."""

    def use(self, transport: Transport) -> None:
        """Use this transport only."""
        self._transports = (transport,)

    @property
    def is_open(self) -> bool:
        """Whether a transport to the app is open, as far as known."""
        return any(transport.is_open for transport in self._transports)

    async def ask(self, kind: Kind, payload: Payload) -> AppReply:
        """Send an interaction or a command once, because Slack does not repeat them."""
        parcel = Parcel(kind=kind, payload=payload)
        fault = self._fault(parcel)
        if fault is None:
            return await self._send(parcel)
        if fault.effect == "drop":
            self._stats.dropped += 1
            return AppReply(ok=False, reason=fault.reason)
        if fault.effect == "stale":
            self._triggers.expire(str(payload.get("trigger_id", "")))
        elif fault.effect == "delay":
            await self.sleep(fault.delay)
        elif fault.effect == "duplicate":
            for _ in range(fault.count):
                self._tasks.start(self._send(parcel))
        reply = await self._send(parcel)
        return AppReply(ok=False, reason=fault.reason) if fault.effect == "unheard" else reply

    def announce(self, payload: Payload) -> None:
        """Send an event in the background, up to four times."""
        self._tasks.start(self._announce(Parcel(kind="events_api", payload=payload)))

    async def _announce(self, parcel: Parcel) -> None:
        fault = self._fault(parcel)
        effect = "" if fault is None else fault.effect
        parcel = _with_previous(parcel, effect)
        if fault is None or effect == "unheard":
            await self._deliver(parcel, fault)
            return
        if effect == "drop":
            self._stats.dropped += 1
            return
        if effect == "duplicate":
            for _ in range(fault.count):
                self._tasks.start(self._deliver(parcel, None))
        elif effect == "delay":
            await self.sleep(fault.delay)
        elif effect == "reorder":
            await self._hold(fault.delay)
        await self._deliver(parcel, None)

    async def _hold(self, seconds: float) -> None:
        """Wait until the next event was sent, or for a number of seconds."""
        gate = asyncio.Event()
        self._held.add(gate)
        try:
            async with asyncio.timeout(seconds):
                await gate.wait()
        except TimeoutError:
            self._held.discard(
                gate
            )  # remove it first, so that an event at this moment does not wait for it

    async def _deliver(self, parcel: Parcel, unheard: PlannedFault | None) -> None:
        """Send an event until the app accepts it, or it is given up."""
        reply = _heard(await self._send(parcel), 0, unheard)
        held, self._held = self._held, set()
        for gate in held:
            gate.set()
        for attempt, delay in enumerate(self.delays, start=1):
            if reply.ok or reply.is_final:
                return
            await self.sleep(delay)
            again = replace(parcel, attempt=attempt, reason=reply.reason, avoid=reply.via)
            reply = _heard(await self._send(again), attempt, unheard)
        if not reply.ok:
            self.lost.append(parcel.payload)

    async def _send(self, parcel: Parcel) -> AppReply:
        started = self._timer()
        reply = AppReply(ok=False, reason="not_connected")
        for transport in self._transports:
            if transport.is_open:
                reply = await transport.send(parcel)
                break
        self._stats.delivered(parcel, reply, (self._timer() - started) * 1_000)
        return reply

    def _fault(self, parcel: Parcel) -> PlannedFault | None:
        return self._faults.pick(_DIRECTIONS[parcel.kind], parcel.name, parcel.channel)


def _with_previous(parcel: Parcel, effect: str) -> Parcel:
    """Return an event with `previous_message` as a fault leaves it."""
    if effect not in {"no_previous", "empty_previous"}:
        return parcel
    event = {**parcel.payload["event"], "previous_message": {}}
    if effect == "no_previous":
        del event["previous_message"]
    return replace(parcel, payload={**parcel.payload, "event": event})


def _heard(reply: AppReply, attempt: int, unheard: PlannedFault | None) -> AppReply:
    """Return the app's reply, or a failure if a fault lets the reply get lost."""
    if unheard is None or attempt >= unheard.count:
        return reply
    return AppReply(ok=False, reason=unheard.reason, via=reply.via)
