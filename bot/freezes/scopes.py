"""Read the scope of a freeze: a name that nothing has is refused with the nearest one (11.2)."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from re import fullmatch

from bot.errors import UnknownScopeError
from bot.freezes.rules import ALL
from bot.policy.evaluation.context import PolicyWorld
from bot.records.switch import FreezeScope, ScopeKind

Names = Mapping[ScopeKind, frozenset[str]]
"""The names that exist, by the kind of scope."""

_CHANNEL = r"[CDG][A-Z0-9]+"


def names_of(world: PolicyWorld) -> Names:
    """Return the names that a freeze can have in a deployment. Channels are known to Slack only."""
    return {
        ScopeKind.AGENT: world.agents,
        ScopeKind.TOOL: frozenset(tool.name for tool in world.tools),
        ScopeKind.TAG: frozenset(tag for tool in world.tools for tag in tool.tags),
    }


def scope_of(kind: ScopeKind, name: str, names: Names) -> FreezeScope:
    """Return the scope that a person named.

    Args:
        kind: The kind of scope.
        name: The name; for a channel, its Slack id.
        names: The known names. The names of a kind that is absent are not checked.

    Raises:
        UnknownScopeError: Nothing has this name.
    """
    if kind is ScopeKind.ALL:
        return ALL
    if kind is ScopeKind.CHANNEL:
        is_known, guesses = fullmatch(_CHANNEL, name) is not None, list[str]()
    else:
        known = names.get(kind)
        is_known = bool(name) and (known is None or name in known)
        guesses = get_close_matches(name, sorted(known or ()), n=1)
    if not is_known:
        raise UnknownScopeError(str(kind), name, guess="".join(guesses))
    return FreezeScope(kind=kind, name=name)
