"""The page of the HTTP server: every path that the bot answers."""

from __future__ import annotations

from aiohttp import web
from slack_bolt.async_app import AsyncApp

from bot.observability.metrics import Metrics, metrics_app
from bot.observability.readiness import FAULTS, FRESH_MS, PATIENCE, STANDING_STILL
from bot.slack.intake.http import SLACK_PATH, web_app
from reference_pages import text

PURPOSE = (
    "Every HTTP path that the bot answers, for operators who set up probes, proxies and Prometheus."
)
_ABOUT = (
    "`COUNTERSIGN_HOST` and `COUNTERSIGN_PORT` set the address of the first three paths; "
    "`COUNTERSIGN_METRICS_PORT` sets the port of `/metrics`. The server speaks HTTP. Put a proxy "
    "with TLS before `/slack/events` and let only this path through. The proxy must not change "
    "bodies, because Slack signs them."
)
TEXTS = {
    f"POST {SLACK_PATH}": (
        "Takes Slack's events, clicks and commands. Exists only without `SLACK_APP_TOKEN`.",
        "200; 401 if signature or time stamp are missing, wrong or old; 400 if it is unreadable.",
    ),
    "GET /healthz": (
        "Tells whether the process lives. Use it for liveness probes.",
        '200 and `{"ok": true}`.',
    ),
    "GET /readyz": (
        "Tells whether the database works and, with Socket Mode, Slack is connected.",
        '200 and `{"ok": true, "missing": ""}`; 503 with the reason in `missing`.',
    ),
    "GET /metrics": (
        "Serves the [metrics](metrics.md) in the text format of Prometheus.",
        "200. If the database does not answer, gauges keep their last values.",
    ),
}
"""Meaning and answers of each method and path."""


def build() -> str:
    """Make the page."""
    parts = [text.wrap(_ABOUT)]
    for route in routes():
        meaning, answers = TEXTS[route]
        parts += [
            text.section(2, text.code(route)),
            text.wrap(meaning),
            text.wrap(f"Answers: {answers}"),
        ]
    parts += [
        text.section(2, "Reasons of `/readyz`"),
        text.wrap(
            f"A result is kept for {FRESH_MS / 1000:g} second. The database must answer within "
            f"{PATIENCE.total_seconds():g} seconds. Reasons:"
        ),
        "\n".join(
            f"- {reason}"
            for reason in sorted({*FAULTS.values(), STANDING_STILL, "the database does not answer"})
        ),
    ]
    return text.page("HTTP", PURPOSE, parts)


def routes() -> list[str]:
    """Give every method and path of the two servers."""

    async def ready() -> str:
        return ""

    async def levels() -> dict[str, int]:
        return {}

    bolt = AsyncApp(token="xoxb-1-2-abc", signing_secret="0" * 32)  # noqa: S106 - no secret
    apps = [web_app(bolt, ready), metrics_app(Metrics(), levels)]
    return sorted(
        {_named(route) for app in apps for route in app.router.routes() if route.method != "HEAD"},
        key=list(TEXTS).index,
    )


def _named(route: web.AbstractRoute) -> str:
    return f"{route.method} {route.resource.canonical if route.resource is not None else ''}"
