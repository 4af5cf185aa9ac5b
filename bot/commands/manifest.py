"""`countersign manifest`: print the app's manifest, for HTTP or Socket Mode."""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit

from bot.commands.call import Call
from bot.config.manifest import manifest_for
from bot.errors import SettingsError

_EVENTS = "/slack/events"


async def execute(call: Call) -> None:
    """Run the command.

    Raises:
        SettingsError: Slack cannot reach the URL.
    """
    url = "" if call.arguments.socket else _address(call.arguments.url)
    call.say(manifest_for(url, has_agent_view=not call.arguments.no_agent_view).rstrip())


def _address(url: str) -> str:
    """Return the URL for events. For a URL without a path, add the bot's path.

    Raises:
        SettingsError: Slack cannot reach the URL.
    """
    parts = _read(url.strip())
    if parts is None:
        raise SettingsError("--url", f"{url!r} isn't a public URL", "use https://your-host")
    path = parts.path if parts.path.strip("/") else _EVENTS
    return f"https://{parts.netloc}{path}"


def _read(url: str) -> SplitResult | None:
    """Parse an https URL without query, fragment or login; None for any other text."""
    try:
        parts = urlsplit(url)
        is_https = parts.scheme == "https" and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return None
    more = parts.username or parts.query or parts.fragment or any(map(str.isspace, url))
    return parts if is_https and not more else None
