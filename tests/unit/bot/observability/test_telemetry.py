"""Metrics and traces: what they show, and what they never show."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import partial

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client import REGISTRY, generate_latest

from bot.errors import SettingsError
from bot.freezes.service import Freezes
from bot.observability import events
from bot.observability.metrics import Gauges, Metrics, metrics_app
from bot.observability.tracing import Tracing, otlp_provider
from bot.records.approval import Kind, Status
from bot.records.switch import FreezeScope, ScopeKind
from bot.slack.app import answering
from bot.tasks import Tasks
from storage.errors import StoreUnavailableError
from tests.contract.builders import (
    APPROVAL_ID,
    a_decision,
    a_message,
    a_thread,
    an_approval,
)
from tests.support.named import asked_at
from tests.support.stores import SqliteStores

WENT_WELL = events.TimedWrite(1_000, 2_000, result=True)
DOUBT = an_approval().changed(kind=Kind.DOUBT)
REJECTED = an_approval().changed(status=Status.REJECTED, decision=a_decision())

COUNTED: Mapping[str, events.BotEvent] = {  # beside what one afternoon has
    'requested_total{kind="doubt"}': events.RequestsWritten([DOUBT], [DOUBT], WENT_WELL),
    "in_doubt_total": events.RequestsWritten([DOUBT], [DOUBT], WENT_WELL),
    'escalated_total{kind="approval"}': events.Escalated(an_approval()),
    'lease_takeovers_total{record="thread"}': events.LeaseTakenOver("thread"),
    'program_answers_total{code="key-invalid",operation="getMe"}': events.ProgramAnswered(
        "getMe", "key-invalid"
    ),
    'webhook_attempts_total{outcome="given_up"}': events.WebhookSent("given_up"),
    'thread_starts_total{door="trigger",result="held"}': events.ThreadStartAsked("trigger", "held"),
    'policies_total{result="refused"}': events.PolicyRead(is_refused=True),
}
TIMED: Mapping[str, Callable[[float], events.BotEvent]] = {
    "click_to_ack": events.ClickAnswered,
    "click_to_redraw": partial(events.Redrawn, REJECTED),
    "decision_to_resume": events.GoneOn,
    "slack_call": partial(events.SlackAnswered, "chat.update"),
}


@pytest.mark.parametrize("sample", COUNTED)
def test_each_count_has_its_labels(sample: str) -> None:
    metrics = Metrics()
    metrics(COUNTED[sample])
    assert f"countersign_{sample} 1.0\n" in metrics.text().decode()


@pytest.mark.parametrize("name", TIMED)
def test_each_time_is_a_histogram(name: str) -> None:
    metrics = Metrics()
    metrics(TIMED[name](0.02))
    metrics(TIMED[name](-5.0))
    shown = metrics.text().decode()
    assert f"countersign_{name}_seconds_count" in shown
    total = next(x for x in shown.splitlines() if x.startswith(f"countersign_{name}_seconds_sum"))
    assert total.endswith(" 0.02")


def test_what_was_not_kept_is_not_counted() -> None:
    metrics = Metrics()
    failed: events.TimedWrite[bool] = events.TimedWrite(1_000, 2_000, fault="StoreUnavailableError")
    metrics(events.MessageWritten(a_message(), failed))
    metrics(events.RequestsWritten([DOUBT], [], failed))
    shown = metrics.text().decode()
    assert "countersign_messages_total{" not in shown
    assert "countersign_requested_total{" not in shown
    assert "countersign_in_doubt_total 0.0" in shown


def test_a_secret_in_a_label_is_masked() -> None:
    metrics = Metrics()
    metrics(events.SlackAnswered("chat.update", 0.1, error="xoxb-1234567890-abcdef"))
    assert "xoxb-" not in metrics.text().decode()


async def test_the_page_reads_the_gauges_each_time_and_leaves_them_without_a_database() -> None:
    metrics, pending = Metrics(), [3, 5]

    async def levels() -> Mapping[str, int]:
        if not pending:
            raise StoreUnavailableError("gone")
        return {"approvals_pending": pending.pop(0)}

    async with TestClient(TestServer(metrics_app(metrics, levels))) as client:
        answers = [await client.get("/metrics") for _ in range(3)]
        texts = [await answer.text() for answer in answers]
    for text, level in zip(texts, (3, 5, 5), strict=True):
        assert f"countersign_approvals_pending {level}.0" in text
    assert answers[0].headers["Content-Type"].startswith("text/plain")


async def test_the_gauges_tell_what_waits() -> None:
    storage = SqliteStores(None)
    await storage.open()
    approval = an_approval()
    await storage.threads.ensure(a_thread(due_ms=5))
    await storage.approvals.insert(approval)
    gauges = Gauges(storage, Tasks(), lambda: 10)
    readings = await gauges.read()
    await storage.threads.ensure(a_thread(thread_id="T1:C1:2", parked_by="f1", parked_ms=6))
    for number in range(2):
        freezes = Freezes(switches=storage.switches, audit=storage.audit, clock=lambda: 3_000)
        scope = FreezeScope(kind=ScopeKind.TOOL, name=f"sql{number}")
        await freezes.freeze(scope, by="cli:root@db1", why="wild")
    frozen = await Gauges(storage, Tasks(), lambda: 65_000).read()
    await storage.close()
    assert readings == {
        "approvals_pending": 1,
        "queue_depth_threads": 1,
        "queue_depth_approvals": 0,
        "records_unreadable": 0,
        "freezes_in_force": 0,
        "freeze_age_seconds": 0,
        "threads_parked": 0,
        "tasks_running": 0,
    }
    assert frozen["freezes_in_force"] == 2
    assert frozen["freeze_age_seconds"] == 62
    assert frozen["threads_parked"] == 1
    metrics = Metrics()
    for name, value in readings.items():
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
        Tracing(provider)(events.Decided(REJECTED, a_decision()))
        await stop()
    assert b"decide" in b"".join(bodies)


def _exporter() -> tuple[Tracing, InMemorySpanExporter]:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return Tracing(provider), exporter


def test_steps_in_two_processes_are_one_trace() -> None:
    first, here = _exporter()
    second, there = _exporter()
    first(events.MessageWritten(a_message(), WENT_WELL))
    second(events.Decided(REJECTED, a_decision()))
    second(events.Decided(asked_at(REJECTED, thread_id="T1:C1:2.2"), a_decision()))
    (begun,), (decided, other) = here.get_finished_spans(), there.get_finished_spans()
    assert begun.context is not None
    assert decided.context is not None
    assert other.context is not None
    assert begun.context.trace_id == decided.context.trace_id != other.context.trace_id
    assert begun.parent == decided.parent
    assert begun.attributes == {"countersign.message": a_message().message_id}


def test_a_span_is_as_long_as_its_write() -> None:
    tracing, exporter = _exporter()
    tracing(events.RunWritten("resume", "T1:C1:1.2#7", WENT_WELL))
    (span,) = exporter.get_finished_spans()
    assert (span.name, span.start_time, span.end_time) == ("resume", 1_000, 2_000)
    assert span.attributes == {"countersign.turn": "7"}
    assert span.status.is_unset


def test_each_of_those_who_are_asked_together_has_a_span() -> None:
    tracing, exporter = _exporter()
    asked = [an_approval(), an_approval(approval_id="b")]
    tracing(events.RequestsWritten(asked, [], WENT_WELL))
    spans = exporter.get_finished_spans()
    assert [span.name for span in spans] == ["ask", "ask"]
    assert [(span.attributes or {})["countersign.approval"] for span in spans] == [APPROVAL_ID, "b"]


def test_of_two_the_one_that_listens_is_told_by_itself() -> None:
    metrics = Metrics()
    assert events.both(metrics, events.nobody) is metrics
    assert events.both(events.nobody, metrics) is metrics
    assert events.both(events.nobody, events.nobody) is events.nobody


async def test_an_answer_that_cannot_leave_any_more_has_its_time_too() -> None:
    metrics = Metrics()
    with pytest.raises(ConnectionResetError), answering(Tasks(), metrics):
        raise ConnectionResetError
    assert "countersign_click_to_ack_seconds_count 1.0" in metrics.text().decode()


def test_nothing_is_told_by_default() -> None:
    before = generate_latest(REGISTRY)
    events.nobody(events.Redrawn(REJECTED, 1.0))
    assert not trace.get_current_span().is_recording()
    assert b"countersign" not in before
    assert b"countersign" not in generate_latest(REGISTRY)
