"""Words about freezes: what is frozen."""

from __future__ import annotations

from bot.records.switch import FreezeScope, ScopeKind
from bot.words import say
from bot.words.mrkdwn import escape

_SCOPES = {
    ScopeKind.ALL: "command.scope_all",
    ScopeKind.AGENT: "command.scope_agent",
    ScopeKind.TOOL: "command.scope_tool",
    ScopeKind.TAG: "command.scope_tag",
}


def scope_text(scope: FreezeScope) -> str:
    """Return the scope of a freeze in mrkdwn."""
    if scope.kind is ScopeKind.CHANNEL:
        return f"<#{scope.name}>"
    key = _SCOPES[scope.kind]
    return say(key, name=escape(scope.name)) if scope.name else say(key)
