"""`countersign manifest`: print the app's manifest, for HTTP or Socket Mode."""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit

from bot.commands.call import Call
from bot.config.manifest import manifest_for
from bot.errors import SettingsError

_EVENTS = "/slack/events"


async def execute(call: Call) -> None:
    """Print it.

    Raises:
        SettingsError: The address is none that Slack could reach.
    """
    url = "" if call.arguments.socket else _address(call.arguments.url)
    call.say(manifest_for(url, has_agent_view=not call.arguments.no_agent_view).rstrip())


def _address(url: str) -> str:
    """The address for events; of a host alone, the path where the bot listens.

    Raises:
        SettingsError: It is none that Slack could reach.
    """
    parts = _read(url.strip())
    if parts is None:
        raise SettingsError("--url", f"{url!r} isn't a public URL", "use https://your-host")
    path = parts.path if parts.path.strip("/") else _EVENTS
    return f"https://{parts.netloc}{path}"


def _read(url: str) -> SplitResult | None:
    """The parts of an address by https without more than a path; None for any other text."""
    try:
        parts = urlsplit(url)
        is_https = parts.scheme == "https" and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return None
    more = parts.username or parts.query or parts.fragment or any(map(str.isspace, url))
    return parts if is_https and not more else None
