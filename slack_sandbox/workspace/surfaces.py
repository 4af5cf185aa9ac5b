"""Commands, shortcuts and the Home tab of the app."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from slack_sandbox.errors import RefusedError


@dataclass(frozen=True, slots=True, kw_only=True)
class SlashCommand:
    """A command as the manifest announces it."""

    name: str
    """With its slash."""
    description: str = ""
    usage_hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortcut:
    """An entry of the composer's menu (`global`), or of a message's menu."""

    name: str
    callback_id: str
    type: Literal["global", "message"]
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surfaces:
    """All of them."""

    commands: tuple[SlashCommand, ...] = ()
    shortcuts: tuple[Shortcut, ...] = ()
    has_home: bool = True
    """Whether the app has a Home tab."""

    def shortcut(self, callback_id: str, kind: Literal["global", "message"]) -> Shortcut:
        """Return a shortcut.

        Raises:
            RefusedError: There is none of that kind.
        """
        for one in self.shortcuts:
            if (one.callback_id, one.type) == (callback_id, kind):
                return one
        raise RefusedError("no_such_shortcut")


FIRST_SURFACES: Final = Surfaces(
    commands=(SlashCommand(name="/countersign", description="Talk to the app"),)
)
"""The surfaces where no manifest says more."""


def surfaces_of(manifest: Mapping[str, object]) -> Surfaces:
    """Read them from an app's manifest.

    Source:
        https://docs.slack.dev/reference/app-manifest
    """
    features = _table(manifest.get("features"))
    commands = tuple(
        SlashCommand(
            name=str(one.get("command", "")),
            description=str(one.get("description", "")),
            usage_hint=str(one.get("usage_hint", "")),
        )
        for one in _tables(features.get("slash_commands"))
    )
    shortcuts = tuple(
        Shortcut(
            name=str(one.get("name", "")),
            callback_id=str(one.get("callback_id", "")),
            type="message" if one.get("type") == "message" else "global",
            description=str(one.get("description", "")),
        )
        for one in _tables(features.get("shortcuts"))
    )
    has_home = _table(features.get("app_home")).get("home_tab_enabled") is True
    return Surfaces(commands=commands, shortcuts=shortcuts, has_home=has_home)


def _table(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _tables(value: object) -> Iterator[Mapping[str, object]]:
    for one in value if isinstance(value, list) else []:
        yield _table(one)
