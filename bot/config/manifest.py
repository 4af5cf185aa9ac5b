"""The app's manifest: find it, and compare it with what the bot uses."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from importlib.resources import files
from typing import Any

import yaml

METHOD_SCOPES: Mapping[str, tuple[str, ...]] = {
    "agents.sessions.setStatus": ("chat:write",),
    "assistant.threads.setStatus": ("chat:write",),
    "assistant.threads.setSuggestedPrompts": ("assistant:write",),
    "chat.appendStream": ("chat:write",),
    "chat.delete": ("chat:write",),
    "chat.getPermalink": (),
    "chat.postEphemeral": ("chat:write",),
    "chat.postMessage": ("chat:write",),
    "chat.startStream": ("chat:write",),
    "chat.stopStream": ("chat:write",),
    "chat.update": ("chat:write",),
    "conversations.history": ("channels:history", "groups:history", "im:history", "mpim:history"),
    "conversations.info": ("channels:read", "groups:read", "im:read", "mpim:read"),
    "conversations.members": ("channels:read", "groups:read", "im:read", "mpim:read"),
    "conversations.open": ("im:write",),
    "conversations.replies": ("channels:history", "groups:history", "im:history", "mpim:history"),
    "reactions.add": ("reactions:write",),
    "reactions.remove": ("reactions:write",),
    "usergroups.list": ("usergroups:read",),
    "users.info": ("users:read",),
    "users.list": ("users:read",),
    "views.open": (),
    "views.publish": (),
    "views.push": (),
    "views.update": (),
}
"""The methods that the bot calls, each with the scopes that permit it in different places.

Source:
    https://docs.slack.dev/reference/methods
"""

EVENT_SCOPES: Mapping[str, str] = {
    "agent_session_stopped": "",
    "app_home_opened": "",
    "app_mention": "app_mentions:read",
    "member_joined_channel": "channels:read",
    "member_left_channel": "channels:read",
    "message.channels": "channels:history",
    "message.groups": "groups:history",
    "message.im": "im:history",
    "message.mpim": "mpim:history",
    "subteam_created": "usergroups:read",
    "subteam_members_changed": "usergroups:read",
    "subteam_updated": "usergroups:read",
    "user_change": "users:read",
}
"""The events that the bot subscribes to, each with its required scope; empty if none.

Source:
    https://docs.slack.dev/reference/events
"""

SCOPE_REASONS: Mapping[str, str] = {
    "app_mentions:read": "Start a thread when a person mentions the bot.",
    "assistant:write": "Show Slack's agent view with suggested prompts. Left out by "
    "`countersign manifest --no-agent-view`.",
    "channels:history": "Read the messages of threads in public channels.",
    "channels:read": "Look up members of public channels, who may be approvers.",
    "chat:write": "Post and update cards, answers and reminders.",
    "commands": "Offer `/countersign` and the shortcuts.",
    "groups:history": "Read the messages of threads in private channels.",
    "groups:read": "Look up members of private channels, who may be approvers.",
    "im:history": "Read direct messages to the bot.",
    "im:read": "Recognize direct messages and their members.",
    "im:write": "Send cards by direct message.",
    "mpim:history": "Read the messages of threads in group direct messages.",
    "mpim:read": "Look up members of group direct messages.",
    "reactions:write": "Show the state of a thread as a reaction to its first message.",
    "usergroups:read": "Look up members of user groups, who may be approvers.",
    "users:read": "Tell members from guests, apps, deactivated people and other workspaces.",
}
"""The use of each scope, as the reference page shows it."""

EVENT_REASONS: Mapping[str, str] = {
    "agent_session_stopped": "A person pressed Stop in Slack's agent view.",
    "app_home_opened": "A person opened Home, which is then drawn.",
    "app_mention": "A person mentioned the bot.",
    "member_joined_channel": "A member was added: memberships are looked up again.",
    "member_left_channel": "A member left: memberships are looked up again.",
    "message.channels": "A person wrote in a public channel.",
    "message.groups": "A person wrote in a private channel.",
    "message.im": "A person wrote to the bot directly.",
    "message.mpim": "A person wrote in a group direct message.",
    "subteam_created": "A user group was created: user groups are looked up again.",
    "subteam_members_changed": "Members of a user group changed: they are looked up again.",
    "subteam_updated": "A user group changed: user groups are looked up again.",
    "user_change": "A person changed, for example was deactivated: they are looked up again.",
}
"""The use of each event, as the reference page shows it."""

AGENT_SCOPE = "assistant:write"
AGENT_EVENT = "agent_session_stopped"
"""The scope and the event of `features.agent_view`, Slack's optional surface for agents. A manifest
has all three or none.
"""

COMMANDS = ("/countersign",)
"""The bot's slash commands; they require the scope `commands`."""

SHORTCUTS: Mapping[str, str] = {
    "countersign:my_approvals": "global",
    "countersign:ask_about": "message",
}
"""The bot's shortcuts: by callback id, the type in the manifest."""

Manifest = Mapping[str, object]


def manifest_text() -> str:
    """Return the manifest of this release: `manifest.yml`, which the package contains."""
    return files("bot.config").joinpath("manifest.yml").read_text(encoding="utf-8")


def manifest_for(url: str = "", *, has_agent_view: bool = True) -> str:
    """Return the manifest of an app.

    Args:
        url: Base URL for events, clicks and commands by HTTP; empty for Socket Mode.
        has_agent_view: Whether the app uses Slack's surface for agents, which some plans lack.

    Returns:
        YAML in the order of the file; the text of the file if nothing differs.
    """
    if not url and has_agent_view:
        return manifest_text()
    manifest = yaml.safe_load(manifest_text())
    if url:
        _reach_by_http(manifest, url)
    if not has_agent_view:
        del manifest["features"]["agent_view"]
        manifest["oauth_config"]["scopes"]["bot"].remove(AGENT_SCOPE)
        manifest["settings"]["event_subscriptions"]["bot_events"].remove(AGENT_EVENT)
    text: str = yaml.safe_dump(manifest, sort_keys=False, allow_unicode=True, width=100)
    return text


def _reach_by_http(manifest: dict[str, Any], url: str) -> None:
    for command in manifest["features"]["slash_commands"]:
        command["url"] = url
    settings = manifest["settings"]
    settings["socket_mode_enabled"] = False
    for part in ("event_subscriptions", "interactivity"):
        settings[part] = {"request_url": url, **settings[part]}


def needed_scopes() -> frozenset[str]:
    """Return the scopes of all methods, events and commands of the bot."""
    of_methods = (scope for scopes in METHOD_SCOPES.values() for scope in scopes)
    of_events = (scope for scope in EVENT_SCOPES.values() if scope)
    return frozenset(of_methods) | frozenset(of_events) | {"commands"}


def read_manifest(text: str) -> Manifest:
    """Parse a manifest.

    Raises:
        ValueError: The text is not YAML, or not a mapping. The message is a clause.
    """
    try:
        manifest = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f" (line {mark.line + 1})" if mark is not None else ""
        raise ValueError(f"not valid YAML{place}") from error
    if not isinstance(manifest, dict):
        raise ValueError("not a mapping")  # noqa: TRY004 - a file's content, no argument
    return manifest


def bot_scopes(manifest: Manifest) -> tuple[str, ...]:
    """Return the scopes of the bot token."""
    return _texts(manifest, "oauth_config", "scopes", "bot")


def bot_events(manifest: Manifest) -> tuple[str, ...]:
    """Return the events that Slack sends to the bot."""
    return _texts(manifest, "settings", "event_subscriptions", "bot_events")


def check_manifest(text: str) -> list[str]:
    """Return the faults of a manifest: missing parts, and permissions that the bot does not need.

    Slack's schema checks the types only, not the rules between scopes, events and settings.

    Returns:
        Clauses with the faults; empty without faults.
    """
    try:
        manifest = read_manifest(text)
    except ValueError as error:
        return [str(error)]
    return [
        *_check_looks(manifest),
        *_check_scopes(manifest),
        *_check_events(manifest),
        *_check_commands(manifest),
        *_check_shortcuts(manifest),
        *_check_settings(manifest),
    ]


def _check_looks(manifest: Manifest) -> Iterator[str]:
    name = _at(manifest, "display_information", "name")
    if not isinstance(name, str) or not 1 <= len(name) <= 35:
        yield "display_information.name must have 1 to 35 characters"
    color = _at(manifest, "display_information", "background_color")
    if color is not None and not re.fullmatch(r"#(?:[0-9a-fA-F]{3}){1,2}", str(color)):
        yield "display_information.background_color must look like #2d3748"
    if not _at(manifest, "features", "bot_user", "display_name"):
        yield "features.bot_user.display_name is missing, so no one could mention the bot"
    yield from _check_home(manifest)
    if _at(manifest, "features", "assistant_view") is not None:
        yield "features.assistant_view is not used: agent_view takes its place"


def _check_home(manifest: Manifest) -> Iterator[str]:
    home = ("features", "app_home")
    if _at(manifest, *home, "messages_tab_enabled") is not True:
        yield "features.app_home.messages_tab_enabled must be true for direct messages"
    if _at(manifest, *home, "messages_tab_read_only_enabled") is not False:
        yield "features.app_home.messages_tab_read_only_enabled must be false for direct messages"
    if _at(manifest, *home, "home_tab_enabled") is not True:
        yield (
            "features.app_home.home_tab_enabled must be true: the Home tab holds each person's list"
        )


def _check_scopes(manifest: Manifest) -> Iterator[str]:
    needed = needed_scopes() if _has_agent_view(manifest) else needed_scopes() - {AGENT_SCOPE}
    yield from _compare("oauth_config.scopes.bot", bot_scopes(manifest), needed)
    if _at(manifest, "oauth_config", "scopes", "user"):
        yield "oauth_config.scopes.user must be empty: the bot never acts as a person"


def _check_events(manifest: Manifest) -> Iterator[str]:
    events = bot_events(manifest)
    needed = set(EVENT_SCOPES) if _has_agent_view(manifest) else set(EVENT_SCOPES) - {AGENT_EVENT}
    yield from _compare("settings.event_subscriptions.bot_events", events, needed)
    if _at(manifest, "settings", "event_subscriptions", "user_events"):
        yield "settings.event_subscriptions.user_events must be empty"
    granted = bot_scopes(manifest)
    for event in events:
        scope = EVENT_SCOPES.get(event, "")
        if scope and scope not in granted:
            yield f"the event {event} needs the scope {scope}"


def _has_agent_view(manifest: Manifest) -> bool:
    return _at(manifest, "features", "agent_view") is not None


def _check_commands(manifest: Manifest) -> Iterator[str]:
    place = "features.slash_commands"
    entries = _at(manifest, *place.split("."))
    commands = (
        [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    )
    yield from _compare(place, [str(command.get("command")) for command in commands], COMMANDS)
    is_socket = _at(manifest, "settings", "socket_mode_enabled") is True
    for command in commands:
        if command.get("should_escape") is not True:
            yield f"{place}: should_escape must be true: people are named by their ids"
        if not is_socket and not str(command.get("url")).startswith("https://"):
            yield f"{place}: url must be an https address without Socket Mode"


def _check_shortcuts(manifest: Manifest) -> Iterator[str]:
    place = "features.shortcuts"
    entries = _at(manifest, *place.split("."))
    shortcuts = (
        [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    )
    yield from _compare(
        place, [str(shortcut.get("callback_id")) for shortcut in shortcuts], SHORTCUTS
    )
    for shortcut in shortcuts:
        kind = SHORTCUTS.get(str(shortcut.get("callback_id")))
        if kind is not None and shortcut.get("type") != kind:
            yield f"{place}: the type of {shortcut.get('callback_id')} must be {kind}"


def _check_settings(manifest: Manifest) -> Iterator[str]:
    if _at(manifest, "settings", "interactivity", "is_enabled") is not True:
        yield "settings.interactivity.is_enabled must be true: cards have buttons"
    if _at(manifest, "settings", "token_rotation_enabled"):
        yield "settings.token_rotation_enabled must be false: the bot token is a setting"
    if _at(manifest, "settings", "socket_mode_enabled") is True:
        return
    for part in ("event_subscriptions", "interactivity"):
        if not str(_at(manifest, "settings", part, "request_url")).startswith("https://"):
            yield f"settings.{part}.request_url must be an https address without Socket Mode"


def _compare(place: str, present: Collection[str], wanted: Collection[str]) -> Iterator[str]:
    if missing := sorted(set(wanted) - set(present)):
        yield f"{place} lacks {', '.join(missing)}"
    if surplus := sorted(set(present) - set(wanted)):
        yield f"{place} includes {', '.join(surplus)}, which the bot doesn't use"
    if len(set(present)) < len(present):
        yield f"{place} names something twice"


def _at(manifest: Manifest, *path: str) -> object:
    value: object = manifest
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _texts(manifest: Manifest, *path: str) -> tuple[str, ...]:
    value = _at(manifest, *path)
    return tuple(str(item) for item in value) if isinstance(value, list) else ()
