"""The page of the metrics: every metric that `/metrics` serves."""

from __future__ import annotations

from dataclasses import dataclass

from prometheus_client.metrics import MetricWrapperBase

from bot.observability.metrics import Metrics
from reference_pages import text

PURPOSE = (
    "Every metric of `/metrics`, for operators: type, labels, meaning, and when to act. "
    "`COUNTERSIGN_METRICS_PORT` turns them on."
)
_KINDS = (
    "Gauges show the whole database, except `countersign_tasks_running`. Counters and histograms "
    "count in one process since its start; add the processes. A histogram has the series "
    "`_bucket`, `_sum` and `_count`."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A metric, as Prometheus shows it."""

    name: str
    kind: str
    labels: tuple[str, ...]
    help: str


def build() -> str:
    """Make the page."""
    rows = [
        (
            text.code(metric.name),
            metric.kind,
            ", ".join(map(text.code, metric.labels)) or "none",
            metric.help,
        )
        for metric in metrics()
    ]
    table = text.table(("Metric", "Type", "Labels", "Meaning, and when to act"), rows)
    return text.page("Metrics", PURPOSE, [text.wrap(_KINDS), table])


def metrics() -> list[Metric]:
    """Give all metrics, by name."""
    collected = []
    for collector in Metrics().registry._collector_to_names:  # noqa: SLF001 - no public way
        assert isinstance(collector, MetricWrapperBase)  # noqa: S101 - all of ours are
        kind, name = collector._type, collector._name  # noqa: SLF001
        collected.append(
            Metric(
                name=f"{name}_total" if kind == "counter" else name,
                kind=str(kind),
                labels=tuple(collector._labelnames),  # noqa: SLF001
                help=collector._documentation,  # noqa: SLF001
            )
        )
    return sorted(collected, key=lambda metric: metric.name)
