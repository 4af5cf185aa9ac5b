"""Prometheus metrics, and the small server that shows them on a port of its own."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sized
from contextlib import AbstractContextManager
from typing import TypeAlias, TypeVar

from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from bot.observability.telemetry import Count, Telemetry, Time
from bot.ports.process import Clock
from bot.redaction.mask import mask_text
from storage.base import Storage
from storage.errors import StorageError

logger = logging.getLogger(__name__)

_COUNTERS: Mapping[Count, tuple[str, tuple[str, ...]]] = {
    Count.MESSAGES: ("Messages of people.", ("result",)),
    Count.REQUESTED: ("Approvals that were asked for.", ("kind",)),
    Count.ESCALATED: ("Approvals that went to the backup people, too.", ("kind",)),
    Count.DECIDED: ("Approvals that were decided.", ("outcome",)),
    Count.REFUSED_CLICKS: ("Clicks of people who may not decide.", ()),
    Count.IN_DOUBT: ("Calls of which nobody knew whether they ran.", ()),
    Count.TURNS: ("Turns of agents that are over.", ()),
    Count.TOOL_CALLS: ("Finished tool calls.", ("outcome",)),
    Count.TAKEOVERS: ("Leases that ended without a release.", ("record",)),
    Count.SLACK_CALLS: ("Calls of Slack's Web API.", ("method",)),
    Count.SLACK_ERRORS: ("Calls of Slack's Web API that failed.", ("method", "error")),
    Count.POLICIES: ("Policy files that were read.", ("result",)),
    Count.RETRIES: ("Work that failed and is due again.", ("record",)),
}

_QUICK = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0)
_SLOW = (1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14400.0, 28800.0, 86400.0)
_TIMES: Mapping[Time, tuple[str, tuple[str, ...], tuple[float, ...]]] = {
    Time.DECISION: ("From the request to its decision.", ("kind",), _SLOW),
    Time.ACKNOWLEDGEMENT: ("From the arrival of a click to its acknowledgement.", (), _QUICK),
    Time.REDRAW: ("From a decision to its redrawn card.", (), _QUICK),
    Time.RESUME: ("From a decision to the agent's going on.", (), _QUICK),
    Time.SLACK: ("One call of Slack's Web API.", ("method",), _QUICK),
}

_GAUGES: Mapping[str, str] = {
    "approvals_pending": "Approvals that wait for people, in the whole database.",
    "queue_depth_threads": "Threads whose work is due, in the whole database.",
    "queue_depth_approvals": "Approvals whose card or reminder is due, in the whole database.",
    "records_unreadable": "Due records that this release cannot read, and leaves alone.",
    "tasks_running": "Pieces of work that this process is at.",
}

_M = TypeVar("_M", Counter, Histogram)
_Key: TypeAlias = tuple[str, tuple[tuple[str, str], ...]]

_MOST_SERIES = 1_000
"""Series that are found without a look at their labels."""

Levels = Callable[[], Awaitable[Mapping[str, int]]]
"""Reads the gauges; by name."""


class Metrics(Telemetry):
    """Counts and times of this process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._known_counters: dict[_Key, Counter] = {}
        self._known_times: dict[_Key, Histogram] = {}
        self._counters = {
            name: Counter(f"countersign_{name}", text, labels, registry=self.registry)
            for name, (text, labels) in _COUNTERS.items()
        }
        self._times = {
            name: Histogram(
                f"countersign_{name}_seconds", text, labels, buckets=buckets, registry=self.registry
            )
            for name, (text, labels, buckets) in _TIMES.items()
        }
        self._gauges = {
            name: Gauge(f"countersign_{name}", text, registry=self.registry)
            for name, text in _GAUGES.items()
        }

    def count(self, name: Count, **labels: str) -> None:
        """Count one more; see `Telemetry.count`."""
        _series(self._known_counters, self._counters[name], name, labels).inc()

    def observe(self, name: Time, seconds: float, **labels: str) -> None:
        """Note how long something took; see `Telemetry.observe`."""
        _series(self._known_times, self._times[name], name, labels).observe(max(seconds, 0.0))

    def level(self, name: str, value: int) -> None:
        """Set a gauge.

        Raises:
            KeyError: There is no such gauge.
        """
        self._gauges[name].set(value)

    def text(self) -> bytes:
        """Everything, in Prometheus' text form."""
        return generate_latest(self.registry)


class Both(Telemetry):
    """Tells two what one is told: the metrics get counts and times, the tracer the spans."""

    def __init__(self, metrics: Telemetry, tracer: Telemetry) -> None:
        self._metrics = metrics
        self._tracer = tracer

    def count(self, name: Count, **labels: str) -> None:
        """See `Telemetry.count`."""
        self._metrics.count(name, **labels)

    def observe(self, name: Time, seconds: float, **labels: str) -> None:
        """See `Telemetry.observe`."""
        self._metrics.observe(name, seconds, **labels)

    def span(self, name: str, request: str, **attributes: str) -> AbstractContextManager[None]:
        """See `Telemetry.span`."""
        return self._tracer.span(name, request, **attributes)


class Gauges:
    """Reads what the gauges show.

    Args:
        storage: What waits, and what is due.
        tasks: What this process is at.
        clock: The time now.
    """

    def __init__(self, storage: Storage, tasks: Sized, clock: Clock) -> None:
        self._storage = storage
        self._tasks = tasks
        self._clock = clock

    async def read(self) -> Mapping[str, int]:
        """Read all of them, by name.

        Raises:
            StorageError: The database does not answer.
        """
        now = self._clock()
        return {
            "approvals_pending": await self._storage.approvals.count_pending(),
            "queue_depth_threads": await self._storage.threads.count_due(now_ms=now),
            "queue_depth_approvals": await self._storage.approvals.count_due(now_ms=now),
            "records_unreadable": await self._storage.count_unreadable(now_ms=now),
            "tasks_running": len(self._tasks),
        }


def metrics_app(metrics: Metrics, levels: Levels) -> web.Application:
    """Build the application that serves `/metrics`.

    Args:
        metrics: What is shown.
        levels: Reads the gauges at each request; a failure leaves the last ones.
    """
    app = web.Application()

    async def on_metrics(_: web.Request) -> web.Response:
        try:
            found = await levels()
        except StorageError as error:
            logger.warning(
                "the levels cannot be read: %s", error, extra={"action": "levels_unknown"}
            )
            found = {}
        for name, value in found.items():
            metrics.level(name, value)
        return web.Response(body=metrics.text(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    app.router.add_get("/metrics", on_metrics)
    return app


def _series(known: dict[_Key, _M], metric: _M, name: str, labels: Mapping[str, str]) -> _M:
    """Return the series with these labels; they are few, and masked when one is made."""
    key = name, tuple(labels.items())
    found = known.get(key)
    if found is None:
        found = metric.labels(**_masked(labels)) if labels else metric
        if len(known) < _MOST_SERIES:
            known[key] = found
    return found


def _masked(labels: Mapping[str, str]) -> dict[str, str]:
    return {name: mask_text(value)[:80] for name, value in labels.items()}
