"""The page of the Slack app's rights: scopes and events of the manifest."""

from __future__ import annotations

from collections.abc import Iterable

from bot.config.manifest import (
    EVENT_REASONS,
    EVENT_SCOPES,
    METHOD_SCOPES,
    SCOPE_REASONS,
    bot_events,
    bot_scopes,
    manifest_text,
    read_manifest,
)
from reference_pages import text

PURPOSE = (
    "Every scope and event of the Slack app, for operators and security reviewers: why the bot "
    "needs it, and which methods and events use it."
)


def build() -> str:
    """Make the page."""
    manifest = read_manifest(manifest_text())
    scopes, events = bot_scopes(manifest), bot_events(manifest)
    about = (
        f"`manifest.yml` asks for {len(scopes)} scopes of the bot token and {len(events)} events. "
        "It asks for no user scope: the bot never acts as a person. `countersign doctor` compares "
        "the installed app with the manifest."
    )
    rows = [(text.code(scope), SCOPE_REASONS[scope], _users(scope)) for scope in scopes]
    heard = [
        (text.code(event), EVENT_REASONS[event], _code(EVENT_SCOPES[event])) for event in events
    ]
    return text.page(
        "Slack scopes",
        PURPOSE,
        [
            text.wrap(about),
            text.section(2, "Scopes"),
            text.table(("Scope", "Use", "Methods and events"), rows),
            text.section(2, "Events"),
            text.table(("Event", "Meaning", "Scope"), heard),
        ],
    )


def _users(scope: str) -> str:
    methods = [name for name, scopes in METHOD_SCOPES.items() if scope in scopes]
    return _codes(
        [*methods, *(name for name, event_scope in EVENT_SCOPES.items() if event_scope == scope)]
    )


def _codes(names: Iterable[str]) -> str:
    return ", ".join(map(text.code, names)) or "slash command, shortcuts"


def _code(scope: str) -> str:
    return text.code(scope) if scope else "none"
