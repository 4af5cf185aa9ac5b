"""Metrics and traces: what they show, and what they never show."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client import REGISTRY, generate_latest

from bot.core.tasks import Tasks
from bot.errors import SettingsError
from bot.observability.metrics import Both, Gauges, Metrics, metrics_app
from bot.observability.telemetry import NO_TELEMETRY, Count, Time
from bot.observability.tracing import Tracing, otlp_provider
from storage.errors import StoreUnavailableError
from storage.sqlite import SqliteStorage
from tests.contract.builders import a_thread, an_approval

LABELS = {
    Count.MESSAGES: {"result": "kept"},
    Count.REQUESTED: {"kind": "approval"},
    Count.DECIDED: {"outcome": "approved"},
    Count.ESCALATED: {"kind": "approval"},
    Count.REFUSED_CLICKS: {},
    Count.IN_DOUBT: {},
    Count.TURNS: {},
    Count.TOOL_CALLS: {"outcome": "ran"},
    Count.TAKEOVERS: {"record": "thread"},
    Count.SLACK_CALLS: {"method": "chat.update"},
    Count.SLACK_ERRORS: {"method": "chat.update", "error": "ratelimited"},
    Count.POLICIES: {"result": "refused"},
    Count.RETRIES: {"record": "thread"},
}


@pytest.mark.parametrize("name", Count)
def test_each_count_has_its_labels(name: Count) -> None:
    metrics = Metrics()
    metrics.count(name, **LABELS[name])
    shown = metrics.text().decode()
    line = next(one for one in shown.splitlines() if one.startswith(f"countersign_{name}_total"))
    assert line.endswith(" 1.0")
    assert all(f'{key}="{value}"' in line for key, value in LABELS[name].items())


@pytest.mark.parametrize("name", Time)
def test_each_time_is_a_histogram(name: Time) -> None:
    labels = {Time.DECISION: {"kind": "approval"}, Time.SLACK: {"method": "chat.update"}}
    metrics = Metrics()
    metrics.observe(name, 0.02, **labels.get(name, {}))
    metrics.observe(name, -5.0, **labels.get(name, {}))
    shown = metrics.text().decode()
    assert f"countersign_{name}_seconds_count" in shown
    total = next(x for x in shown.splitlines() if x.startswith(f"countersign_{name}_seconds_sum"))
    assert total.endswith(" 0.02")


def test_a_secret_in_a_label_is_masked() -> None:
    metrics = Metrics()
    metrics.count(Count.SLACK_ERRORS, method="chat.update", error="xoxb-1234567890-abcdef")
    assert "xoxb-" not in metrics.text().decode()


async def test_the_page_reads_the_gauges_each_time() -> None:
    metrics, pending = Metrics(), [3]

    async def levels() -> Mapping[str, int]:
        return {"approvals_pending": pending[0]}

    async with TestClient(TestServer(metrics_app(metrics, levels))) as client:
        first = await (await client.get("/metrics")).text()
        pending[0] = 5
        answer = await client.get("/metrics")
        second = await answer.text()
    assert "countersign_approvals_pending 3.0" in first
    assert "countersign_approvals_pending 5.0" in second
    assert answer.headers["Content-Type"].startswith("text/plain")


async def test_a_database_that_is_away_leaves_the_last_levels() -> None:
    metrics, is_away = Metrics(), False

    async def levels() -> Mapping[str, int]:
        if is_away:
            raise StoreUnavailableError("gone")
        return {"approvals_pending": 3}

    async with TestClient(TestServer(metrics_app(metrics, levels))) as client:
        await client.get("/metrics")
        is_away = True
        answer = await client.get("/metrics")
        assert "countersign_approvals_pending 3.0" in await answer.text()


async def test_the_gauges_tell_what_waits() -> None:
    storage = SqliteStorage(None)
    await storage.open()
    approval = an_approval()
    await storage.threads.ensure(a_thread(due_ms=5))
    await storage.approvals.add(approval)
    gauges = Gauges(storage, Tasks(), lambda: 10)
    found = await gauges.read()
    await storage.close()
    assert found == {
        "approvals_pending": 1,
        "queue_depth_threads": 1,
        "queue_depth_approvals": 0,
        "records_unreadable": 0,
        "tasks_running": 0,
    }
    metrics = Metrics()
    for name, value in found.items():
        metrics.level(name, value)


def test_the_exporter_is_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(
        SettingsError, match=r"COUNTERSIGN_TRACES.*-m pip install opentelemetry-sdk"
    ):
        otlp_provider()


async def test_spans_go_where_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    bodies: list[bytes] = []

    async def collect(request: web.Request) -> web.Response:
        bodies.append(await request.read())
        return web.Response()

    app = web.Application()
    app.router.add_post("/v1/traces", collect)
    async with TestServer(app) as server:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", str(server.make_url("")).rstrip("/"))
        provider, stop = otlp_provider()
        with Tracing(provider).span("decide", "x#1"):
            pass
        await stop()
    assert b"decide" in b"".join(bodies)


def _exporter() -> tuple[Tracing, InMemorySpanExporter]:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return Tracing(provider), exporter


def test_steps_in_two_processes_are_one_trace() -> None:
    first, here = _exporter()
    second, there = _exporter()
    with first.span("message", "T1:C1:1.2#1", thread="T1:C1:1.2"):
        pass
    with second.span("decide", "T1:C1:1.2#1"):
        pass
    with second.span("decide", "T1:C1:1.2#2"):
        pass
    (begun,), (decided, other) = here.get_finished_spans(), there.get_finished_spans()
    assert begun.context is not None
    assert decided.context is not None
    assert other.context is not None
    assert begun.context.trace_id == decided.context.trace_id != other.context.trace_id
    assert begun.parent == decided.parent
    assert begun.attributes == {"countersign.thread": "T1:C1:1.2"}


def test_an_error_is_named_and_not_quoted() -> None:
    tracing, exporter = _exporter()
    with (
        pytest.raises(ValueError, match="hunter2"),
        tracing.span("resume", "T1:C1:1.2#1"),
    ):
        raise ValueError("password=hunter2")
    (span,) = exporter.get_finished_spans()
    assert span.status.description == "ValueError"
    assert not span.events
    assert "hunter2" not in span.to_json()


def test_both_are_told() -> None:
    metrics = Metrics()
    tracing, exporter = _exporter()
    both = Both(metrics, tracing)
    both.count(Count.IN_DOUBT)
    both.observe(Time.REDRAW, 1.0)
    with both.span("redraw", "x#1"):
        pass
    shown = metrics.text().decode()
    assert "countersign_in_doubt_total 1.0" in shown
    assert "countersign_click_to_redraw_seconds_sum 1.0" in shown
    assert len(exporter.get_finished_spans()) == 1


def test_nothing_is_told_by_default() -> None:
    before = generate_latest(REGISTRY)
    NO_TELEMETRY.count(Count.IN_DOUBT)
    NO_TELEMETRY.observe(Time.REDRAW, 1.0)
    with NO_TELEMETRY.span("redraw", "x#1"):
        assert not trace.get_current_span().is_recording()
    assert b"countersign" not in before
    assert b"countersign" not in generate_latest(REGISTRY)
