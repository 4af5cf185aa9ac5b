"""One function per kind of Slack payload: read it, call a use case, answer. No business here."""

from __future__ import annotations

from slack_bolt.async_app import AsyncApp

from bot.slack.listeners import (
    actions,
    admins,
    batches,
    commands,
    editing,
    emergencies,
    errors,
    events,
    grants,
    home,
    means,
    reviews,
    shortcuts,
    stops,
    views,
)
from bot.slack.listeners.context import CheckCall, Judge, ListenerContext, Press, Submit

EVENTS = ("agent_session_stopped", "app_home_opened", "app_mention", "message")
"""The events that the app subscribes to; manifest.yml names the same (`message.*` by place)."""

__all__ = ["EVENTS", "CheckCall", "Judge", "ListenerContext", "Press", "Submit", "register"]


def register(app: AsyncApp, desk: ListenerContext) -> None:
    """Bind all listeners.

    They are few and dispatch by themselves: with many, Bolt asks each one at every payload.
    """
    home.register(app, desk)
    editing.register(app, desk)
    events.register(app, desk)
    stops.register(app, desk)
    clicks: dict[str, Press] = {}
    forms: dict[str, Submit] = {}
    for one in (reviews, grants, emergencies, means, admins, batches):
        clicks |= one.CLICKS
        forms |= one.FORMS
    actions.register(app, desk, clicks)
    views.register(app, desk, forms)
    commands.register(app, desk)
    shortcuts.register(app, desk)
    errors.register(app, desk)
