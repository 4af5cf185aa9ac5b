"""Prometheus metrics, and the server for them on a separate port."""

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
from bot.records.approval import Kind, Status
from bot.records.approval_queries import count_due, count_pending
from bot.records.switch import SWITCH_ID, Freeze
from bot.redaction.mask import mask_text
from bot.stores import Stores
from storage.errors import RecordNotFoundError, StorageError

logger = logging.getLogger(__name__)

_QUICK = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0)
_SLOW = (1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14400.0, 28800.0, 86400.0)
_GAUGES: Mapping[str, str] = {
    "approvals_pending": "Undecided requests. Act if they are more than people can decide.",
    "queue_depth_threads": "Threads whose work is due. Act if it stays above zero for a minute.",
    "queue_depth_approvals": "Requests whose card or reminder is due. Act if it keeps growing.",
    "records_unreadable": "Unreadable due records. If it is not zero, run `countersign doctor`.",
    "freezes_in_force": "Freezes: in their scopes no call starts. Lift them when it is safe.",
    "freeze_age_seconds": "Age of the oldest freeze; 0 without one. Act if it is forgotten.",
    "threads_parked": "Threads that wait for the lifting of a freeze. Lift it when it is safe.",
    "tasks_running": "Tasks that run in this process. Act if it keeps growing.",
}

_M = TypeVar("_M", Counter, Histogram)

REFUSED = "refused"
"""Audit action of a refused attempt to decide."""

_TOKEN_REFUSED = ("invalid_auth", "token_revoked")
"""Slack's errors that mean that the bot's token is not valid."""

_MOST_SERIES = 1_000
"""Number of series of one metric, up to which their masked labels are cached."""

Levels = Callable[[], Awaitable[Mapping[str, int]]]
"""Reads the gauges; returns their values by name."""


class _Series(Generic[_M]):
    """The series of one metric, by the values of its labels. Values are masked once."""

    def __init__(self, metric: _M) -> None:
        self._metric: _M = metric
        self._known: dict[tuple[str, ...], _M] = {}

    def of(self, *values: str) -> _M:
        metric = self._known.get(values)
        if metric is None:
            masked = [mask_text(value)[:80] for value in values]
            metric = self._metric.labels(*masked) if values else self._metric
            if len(self._known) < _MOST_SERIES:
                self._known[values] = metric
        return metric


_OF_STARTS = "Threads that no person starts, and refusals. Act if `held` or `frozen` grows."


class Metrics:
    """Counters and histograms of this process, updated by its events."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        count, times = self._counter, self._histogram
        self._messages = count("messages", "Messages of people. Act if it stops.", "result")
        self._requested = count("requested", "Requests to people. Act if it stops.", "kind")
        text = "Requests that were escalated. If most are, name other approvers."
        self._escalated = count("escalated", text, "kind")
        self._decided = count(
            "decided",
            "Requests that ended, by outcome. If many are `expired`, remind earlier.",
            "outcome",
        )
        self._refused = count(
            "refused_clicks",
            "Clicks, forms and replies without effect. If there are many, read the audit.",
        )
        self._in_doubt = count(
            "in_doubt", "Calls that may have run. If it grows, make the tools idempotent."
        )
        self._turns = count("turns", "Finished turns of agents. Act if it stops.")
        self._tool_calls = count(
            "tool_calls", "Finished tool calls, by outcome. Act if errors grow.", "outcome"
        )
        text = "Tokens of agents with limits, read and written. If it grows, check the limits."
        self._tokens = count("model_tokens", text, "agent")
        text = "Cost of agents with a limit of cost, in US dollars. If it grows, check the limits."
        self._cost = count("model_cost_usd", text, "agent")
        text = "Turns that stopped at a limit of models. If it grows, check the limits."
        self._limited = count("limits_reached", text, "agent", "limit")
        text = "Leases that expired. If it grows without restarts, a process stalls."
        self._takeovers = count("lease_takeovers", text, "record")
        self._slack_calls = count(
            "slack_calls", "Calls of Slack's Web API. Use it with the errors.", "method"
        )
        text = "Failed calls of Slack's Web API. Act on `token_revoked` and `invalid_auth`."
        self._slack_errors = count("slack_errors", text, "method", "error")
        text = "Answers to calls of programs. Act if `key-invalid` or `internal-error` grows."
        self._programs = count("program_answers", text, "operation", "code")
        text = "Attempts to deliver an event to a program. Act if `given_up` grows."
        self._webhooks = count("webhook_attempts", text, "outcome")
        self._starts = count("thread_starts", _OF_STARTS, "door", "result")
        self._policies = count(
            "policies",
            "Policy files that were read. If one is `refused`, correct the file.",
            "result",
        )
        self._retries = count(
            "retries", "Tasks that failed and are tried again. If it grows, read the log.", "record"
        )
        text = "From a request to its decision. If it grows, name more approvers."
        self._waited = times("time_to_decision", text, "kind", buckets=_SLOW)
        text = "From a click to its acknowledgement. Act if p99 exceeds 1 s: Slack waits 3 s."
        self._answered = times("click_to_ack", text)
        self._redrawn = times(
            "click_to_redraw", "From a decision to the updated card. Act if p99 exceeds 5 s."
        )
        self._gone_on = times(
            "decision_to_resume",
            "From a decision to the agent's next step. Act if p99 exceeds 5 s.",
        )
        self._slack = times(
            "slack_call",
            "Duration of calls of Slack's Web API. If it grows, check Slack's status.",
            "method",
        )
        # An alert would miss the first event of a series that begins with it. These begin at zero.
        for status in Status:
            if status is not Status.PENDING:
                self._decided.of(status)
        for result in ("loaded", "refused"):
            self._policies.of(result)
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
        """Update the metrics for an event."""
        match event:
            case events.RunWritten():
                pass  # used only for traces
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
            case events.ModelUsed() | events.LimitStopped():
                self._count_model(event)
            case events.Escalated(approval):
                self._escalated.of(approval.kind).inc()
            case events.EntriesWritten(entries):
                self._refused.of().inc(sum(entry.action == REFUSED for entry in entries))
            case _:
                self._count_around(event)

    def _count_model(self, event: events.ModelUsed | events.LimitStopped) -> None:
        match event:
            case events.ModelUsed(agent, tokens, cost):
                self._tokens.of(agent).inc(tokens)
                self._cost.of(agent).inc(cost / 1_000_000)
            case events.LimitStopped(agent, limit):
                self._limited.of(agent, limit).inc()

    def _count_around(self, event: events.AroundEvent) -> None:
        match event:
            case events.SlackCalled() | events.SlackAnswered():
                self._count_slack(event)
            case events.ClickAnswered(after_s):
                _note(self._answered.of(), after_s)
            case events.ProgramAnswered() | events.WebhookSent() | events.ThreadStartAsked():
                self._count_programs(event)
            case events.LeaseTakenOver(record):
                self._takeovers.of(record).inc()
            case events.WorkFailed(record):
                self._retries.of(record).inc()
            case events.PolicyRead(is_refused):
                self._policies.of("refused" if is_refused else "loaded").inc()

    def _count_programs(
        self, event: events.ProgramAnswered | events.WebhookSent | events.ThreadStartAsked
    ) -> None:
        match event:
            case events.ProgramAnswered(operation, code):
                self._programs.of(operation, code).inc()
            case events.WebhookSent(outcome):
                self._webhooks.of(outcome).inc()
            case events.ThreadStartAsked(door, result):
                self._starts.of(door, result).inc()

    def _count_slack(self, event: events.SlackCalled | events.SlackAnswered) -> None:
        match event:
            case events.SlackCalled(method):
                self._slack_calls.of(method).inc()
                for error in _TOKEN_REFUSED:
                    self._slack_errors.of(method, error)  # from zero, as in the constructor
            case events.SlackAnswered(method, took_s, error):
                if error:
                    self._slack_errors.of(method, error).inc()
                _note(self._slack.of(method), took_s)

    def level(self, name: str, value: int) -> None:
        """Set a gauge.

        Raises:
            KeyError: The gauge is unknown.
        """
        self._gauges[name].set(value)

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry)


def _note(series: Histogram, seconds: float) -> None:
    series.observe(max(seconds, 0.0))  # a clock can be set back


class Gauges:
    """Reads the values of the gauges.

    Args:
        storage: The database, for pending and due records.
        tasks: The running tasks of this process.
    """

    def __init__(self, storage: Stores, tasks: Sized, clock: Clock) -> None:
        self._storage = storage
        self._tasks = tasks
        self._clock = clock

    async def read(self) -> Mapping[str, int]:
        """Return all values by name.

        Raises:
            StorageError: The database does not respond.
        """
        now = self._clock()
        counts = {
            "approvals_pending": await count_pending(self._storage.approvals),
            "queue_depth_threads": await self._storage.threads.count_due(now_ms=now),
            "queue_depth_approvals": await count_due(self._storage.approvals, now_ms=now),
            "records_unreadable": await self._storage.count_unreadable(),
            "threads_parked": await self._storage.threads.count_parked(),
            "tasks_running": len(self._tasks),
        }
        freezes = await self._freezes()
        since_ms = min((freeze.since_ms for freeze in freezes), default=now)
        age_s = max(now - since_ms, 0) // 1_000
        return {**counts, "freezes_in_force": len(freezes), "freeze_age_seconds": age_s}

    async def _freezes(self) -> tuple[Freeze, ...]:
        try:
            return (await self._storage.switches.get(SWITCH_ID)).freezes
        except RecordNotFoundError:  # nobody has started or frozen anything yet
            return ()


def metrics_app(metrics: Metrics, levels: Levels) -> web.Application:
    """Build the application that serves `/metrics`.

    Args:
        metrics: The metrics to show.
        levels: Reads the gauges at each request. After a failure, the last values are shown.
    """
    app = web.Application()

    async def on_metrics(_: web.Request) -> web.Response:
        try:
            numbers = await levels()
        except StorageError as error:
            logger.warning(
                "the levels cannot be read: %s", error, extra={"action": "levels_unknown"}
            )
            numbers = {}
        for name, value in numbers.items():
            metrics.level(name, value)
        return web.Response(body=metrics.text(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    app.router.add_get("/metrics", on_metrics)
    return app
