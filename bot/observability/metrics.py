"""Prometheus metrics, and the small server that shows them on a port of its own."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sized
from typing import Generic, TypeVar

from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from agents import ToolEvent
from bot.observability import events
from bot.ports.process import Clock
from bot.redaction.mask import mask_text
from storage.base import Storage
from storage.errors import StorageError
from storage.records import Kind, Status

logger = logging.getLogger(__name__)

_QUICK = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0)
_SLOW = (1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14400.0, 28800.0, 86400.0)
_GAUGES: Mapping[str, str] = {
    "approvals_pending": "Approvals that wait for people, in the whole database.",
    "queue_depth_threads": "Threads whose work is due, in the whole database.",
    "queue_depth_approvals": "Approvals whose card or reminder is due, in the whole database.",
    "records_unreadable": "Due records that this release cannot read, and leaves alone.",
    "tasks_running": "Pieces of work that this process is at.",
}

_M = TypeVar("_M", Counter, Histogram)

REFUSED = "refused"
"""The action of an entry of the audit: somebody who may not decide has tried to."""

_MOST_SERIES = 1_000
"""Series of one metric that are found without a look at their labels."""

Levels = Callable[[], Awaitable[Mapping[str, int]]]
"""Reads the gauges; by name."""


class _Series(Generic[_M]):
    """The series of one metric, by the values of its labels: few, and masked when one is made."""

    def __init__(self, metric: _M) -> None:
        self._metric: _M = metric
        self._known: dict[tuple[str, ...], _M] = {}

    def of(self, *values: str) -> _M:
        found = self._known.get(values)
        if found is None:
            masked = [mask_text(value)[:80] for value in values]
            found = self._metric.labels(*masked) if values else self._metric
            if len(self._known) < _MOST_SERIES:
                self._known[values] = found
        return found


class Metrics:
    """Counts and times of this process, made of its events."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        count, times = self._counter, self._histogram
        self._messages = count("messages", "Messages of people.", "result")
        self._requested = count("requested", "Approvals that were asked for.", "kind")
        text = "Approvals that went to the backup people, too."
        self._escalated = count("escalated", text, "kind")
        self._decided = count("decided", "Approvals that were decided.", "outcome")
        self._refused = count("refused_clicks", "Clicks of people who may not decide.")
        self._in_doubt = count("in_doubt", "Calls of which nobody knew whether they ran.")
        self._turns = count("turns", "Turns of agents that are over.")
        self._tool_calls = count("tool_calls", "Finished tool calls.", "outcome")
        text = "Leases that ended without a release."
        self._takeovers = count("lease_takeovers", text, "record")
        self._slack_calls = count("slack_calls", "Calls of Slack's Web API.", "method")
        text = "Calls of Slack's Web API that failed."
        self._slack_errors = count("slack_errors", text, "method", "error")
        self._policies = count("policies", "Policy files that were read.", "result")
        self._retries = count("retries", "Work that failed and is due again.", "record")
        text = "From the request to its decision."
        self._waited = times("time_to_decision", text, "kind", buckets=_SLOW)
        text = "From the arrival of a click to its acknowledgement."
        self._answered = times("click_to_ack", text)
        self._redrawn = times("click_to_redraw", "From a decision to its redrawn card.")
        self._gone_on = times("decision_to_resume", "From a decision to the agent's going on.")
        self._slack = times("slack_call", "One call of Slack's Web API.", "method")
        self._gauges = {
            name: Gauge(f"countersign_{name}", text, registry=self.registry)
            for name, text in _GAUGES.items()
        }

    def _counter(self, name: str, text: str, *labels: str) -> _Series[Counter]:
        return _Series(Counter(f"countersign_{name}", text, labels, registry=self.registry))

    def _histogram(
        self, name: str, text: str, *labels: str, buckets: tuple[float, ...] = _QUICK
    ) -> _Series[Histogram]:
        name = f"countersign_{name}_seconds"
        return _Series(Histogram(name, text, labels, buckets=buckets, registry=self.registry))

    def __call__(self, event: events.BotEvent) -> None:
        """Count and time what happened."""
        match event:
            case events.RunWritten():
                pass  # a span alone
            case events.MessageWritten(_, write):
                if write.result is not None:
                    self._messages.of("kept" if write.result else "known").inc()
            case events.RequestsWritten(_, new):
                for approval in new:
                    self._requested.of(approval.kind).inc()
                    if approval.kind is Kind.DOUBT:
                        self._in_doubt.of().inc()
            case events.Decided():
                self._count_decision(event)
            case _:
                self._count_later(event)

    def _count_decision(self, event: events.Decided) -> None:
        approval = event.approval
        self._decided.of(approval.status).inc()
        if approval.status is not Status.EXPIRED:
            waited_s = (event.decision.at_ms - approval.created_ms) / 1000
            _note(self._waited.of(approval.kind), waited_s)

    def _count_later(self, event: events.RequestEvent | events.AroundEvent) -> None:
        match event:
            case events.Redrawn(_, after_s):
                _note(self._redrawn.of(), after_s)
            case events.GoneOn(after_s):
                _note(self._gone_on.of(), after_s)
            case events.TurnEnded():
                self._turns.of().inc()
            case ToolEvent():
                self._tool_calls.of(event.outcome).inc()
            case events.Escalated(approval):
                self._escalated.of(approval.kind).inc()
            case events.EntriesWritten(entries):
                self._refused.of().inc(sum(one.action == REFUSED for one in entries))
            case _:
                self._count_around(event)

    def _count_around(self, event: events.AroundEvent) -> None:
        match event:
            case events.SlackCalled(method):
                self._slack_calls.of(method).inc()
            case events.SlackAnswered(method, took_s, error):
                if error:
                    self._slack_errors.of(method, error).inc()
                _note(self._slack.of(method), took_s)
            case events.ClickAnswered(after_s):
                _note(self._answered.of(), after_s)
            case events.LeaseTakenOver(record):
                self._takeovers.of(record).inc()
            case events.WorkFailed(record):
                self._retries.of(record).inc()
            case events.PolicyRead(is_refused):
                self._policies.of("refused" if is_refused else "loaded").inc()

    def level(self, name: str, value: int) -> None:
        """Set a gauge.

        Raises:
            KeyError: There is no such gauge.
        """
        self._gauges[name].set(value)

    def text(self) -> bytes:
        """Everything, in Prometheus' text form."""
        return generate_latest(self.registry)


def _note(series: Histogram, seconds: float) -> None:
    series.observe(max(seconds, 0.0))  # a clock may have been set back


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
