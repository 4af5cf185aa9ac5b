"""OpenTelemetry traces: one per request, from its message to the updated card.

The steps of a request happen in different processes, hours apart. No trace context is passed
between them: the trace id is computed from the request's id, so that every process knows it.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import shlex
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    TracerProvider,
)

from bot.errors import SettingsError
from bot.observability import events
from bot.records.approval import Approval
from storage.thread_ids import turn_of

STOP_S = 1.0
"""Timeout for sending the last spans, in seconds."""


def otlp_provider() -> tuple[TracerProvider, Callable[[], Awaitable[None]]]:
    """Create a provider that sends spans by OTLP over HTTP, configured by the `OTEL_…` variables.

    Returns:
        The provider, and a function that sends the remaining spans and stops it, within `STOP_S`.

    Raises:
        SettingsError: The packages of the extra `otel` are not installed.
    """
    try:
        # Imported only if traces are enabled: the packages are an optional extra.
        exporter = importlib.import_module("opentelemetry.exporter.otlp.proto.http.trace_exporter")
        sdk = importlib.import_module("opentelemetry.sdk.trace")
        export = importlib.import_module("opentelemetry.sdk.trace.export")
        resources = importlib.import_module("opentelemetry.sdk.resources")
    except ImportError as error:
        raise SettingsError(
            "COUNTERSIGN_TRACES",
            f"it needs packages that are not installed ({error.name})",
            f"run: {shlex.quote(sys.executable)} -m pip install opentelemetry-sdk "
            "opentelemetry-exporter-otlp-proto-http",
        ) from error
    resource = resources.Resource.create({"service.name": "countersign"})
    provider = sdk.TracerProvider(resource=resource)
    provider.add_span_processor(export.BatchSpanProcessor(exporter.OTLPSpanExporter()))

    async def stop() -> None:
        # A daemon thread, joined for a limited time: an unreachable collector must not delay the
        # shutdown.
        sender = threading.Thread(target=provider.shutdown, daemon=True)
        sender.start()
        await asyncio.to_thread(sender.join, STOP_S)

    return provider, stop


class Tracing:
    """Converts events to spans.

    Args:
        provider: Receives the spans. The program that starts the bot chooses it.
    """

    def __init__(self, provider: TracerProvider) -> None:
        self._tracer = provider.get_tracer("countersign")

    def __call__(self, event: events.BotEvent) -> None:
        """Create a span for an event of a request. A failed write gets an error status."""
        match event:
            case events.MessageWritten(message, write):
                about = {"message": message.message_id}
                self._span("message", message.thread_id, about, write)
            case events.RunWritten(step, checkpoint_id, write):
                thread_id, turn = turn_of(checkpoint_id)
                self._span(step, thread_id, {"turn": str(turn)}, write)
            case events.RequestsWritten(approvals=approvals, write=write):
                for approval in approvals:
                    self._step("ask", approval, write)
            case events.Escalated(approval):
                self._step("escalate", approval)
            case events.Decided(approval):
                self._step("decide", approval)
            case events.Redrawn(approval):
                self._step("redraw", approval)
            case _:
                pass  # used only for metrics

    def _step(
        self, name: str, approval: Approval, write: events.TimedWrite[object] | None = None
    ) -> None:
        about = {
            "approval": approval.approval_id,
            "interrupt": approval.interrupt_id,
            "turn": str(approval.turn),
        }
        self._span(name, approval.thread_id, about, write)

    def _span(
        self,
        name: str,
        request: str,
        about: Mapping[str, str],
        write: events.TimedWrite[object] | None,
    ) -> None:
        """Create an ended span: with the duration of a write, or without a duration."""
        span = self._tracer.start_span(
            name,
            context=trace_context(request),
            kind=SpanKind.INTERNAL,
            attributes={f"countersign.{key}": value for key, value in about.items()},
            start_time=write.began_ns if write else None,
        )
        if write and write.fault:  # only the class name: the text may quote people or tools
            span.set_status(Status(StatusCode.ERROR, write.fault))
        span.end(write.ended_ns if write else None)


def trace_context(request: str) -> Context:
    """Return the parent context of all spans of a request.

    Args:
        request: Id of the thread.
    """
    digest = hashlib.sha256(request.encode("utf-8", "surrogatepass")).digest()
    parent = SpanContext(
        trace_id=int.from_bytes(digest[:16]) or 1,
        span_id=int.from_bytes(digest[16:24]) or 1,
        is_remote=True,
        trace_flags=TraceFlags(TraceFlags.SAMPLED),
    )
    return trace.set_span_in_context(NonRecordingSpan(parent), Context())
