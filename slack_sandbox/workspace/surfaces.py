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
        for shortcut in self.shortcuts:
            if (shortcut.callback_id, shortcut.type) == (callback_id, kind):
                return shortcut
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
            name=str(command.get("command", "")),
            description=str(command.get("description", "")),
            usage_hint=str(command.get("usage_hint", "")),
        )
        for command in _tables(features.get("slash_commands"))
    )
    shortcuts = tuple(
        Shortcut(
            name=str(shortcut.get("name", "")),
            callback_id=str(shortcut.get("callback_id", "")),
            type="message" if shortcut.get("type") == "message" else "global",
            description=str(shortcut.get("description", "")),
        )
        for shortcut in _tables(features.get("shortcuts"))
    )
    has_home = _table(features.get("app_home")).get("home_tab_enabled") is True
    return Surfaces(commands=commands, shortcuts=shortcuts, has_home=has_home)


def _table(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _tables(value: object) -> Iterator[Mapping[str, object]]:
    for entry in value if isinstance(value, list) else []:
        yield _table(entry)
