"""OpenTelemetry traces: one per request, from its message to the redrawn card.

The steps of a request happen in different processes, hours apart. Nothing is handed on between
them: the id of the trace is computed from the id of the request, so that every process knows it.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import shlex
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

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
from bot.observability.telemetry import Telemetry

STOP_S = 2.0
"""Seconds that sending the last spans may take."""


def otlp_provider() -> tuple[TracerProvider, Callable[[], Awaitable[None]]]:
    """Make a provider that sends spans by OTLP over HTTP, as the usual `OTEL_…` variables say.

    Returns:
        The provider, and what sends the rest and stops it, within `STOP_S`.

    Raises:
        SettingsError: The packages of the extra `otel` are not installed.
    """
    try:
        # Loaded when they are asked for: most bots run without them.
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
        # A thread that nobody waits for: a collector that is away must not hold up the stop.
        sender = threading.Thread(target=provider.shutdown, daemon=True)
        sender.start()
        await asyncio.to_thread(sender.join, STOP_S)

    return provider, stop


class Tracing(Telemetry):
    """Makes spans.

    Args:
        provider: Where they go. The program that starts the bot chooses it.
    """

    def __init__(self, provider: TracerProvider) -> None:
        self._tracer = provider.get_tracer("countersign")

    def span(self, name: str, request: str, **attributes: str) -> AbstractContextManager[None]:
        """Mark a step; see `Telemetry.span`. An error that passes through marks it as failed."""
        return self._span(name, request, attributes)

    @contextmanager
    def _span(self, name: str, request: str, attributes: dict[str, str]) -> Iterator[None]:
        with self._tracer.start_as_current_span(
            name,
            context=trace_context(request),
            kind=SpanKind.INTERNAL,
            attributes={f"countersign.{key}": value for key, value in attributes.items()},
            record_exception=False,  # its text may hold what people or tools wrote
            set_status_on_exception=False,
        ) as span:
            try:
                yield
            except Exception as error:
                span.set_status(Status(StatusCode.ERROR, type(error).__name__))
                raise


def trace_context(request: str) -> Context:
    """The context that all spans of a request have as their parent.

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
