"""The few pieces of Slack's mrkdwn that the bot writes itself: escapes, people, dates."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_PERSON = re.compile(r"[UW][A-Z0-9]{1,30}")
_GROUP = re.compile(r"S[A-Z0-9]{1,30}")
_CHANNEL = re.compile(r"[CG][A-Z0-9]{1,30}")
_HALF_A_DAY_MS = 12 * 3_600_000
_LAST_MS = 253_402_300_799_000  # the end of the year 9999


def escape(text: str) -> str:
    """Escape the three characters that Slack reads as control characters.

    Source:
        https://docs.slack.dev/messaging/formatting-message-text (escaping text)
    """
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def unescape(text: str) -> str:
    """A text as somebody typed it, from one that Slack sent: the reverse of `escape`."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def mention(slack_id: str) -> str:
    """Write a user or a user group as a mention; anything else as harmless text."""
    if _PERSON.fullmatch(slack_id):
        return f"<@{slack_id}>"
    if _GROUP.fullmatch(slack_id):
        return f"<!subteam^{slack_id}>"
    return escape(slack_id[:40]) or "somebody"


def is_person(slack_id: str) -> bool:
    """Tell whether an id has the form of a user id."""
    return _PERSON.fullmatch(slack_id) is not None


def utc(at_ms: int) -> str:
    """Write a time for everybody, to the minute."""
    moment = datetime.fromtimestamp(min(max(at_ms, 0), _LAST_MS) // 1_000, tz=UTC)
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def date(at_ms: int) -> str:
    """Write a time that each reader sees in their own time zone, such as “today at 10:00 AM”.

    Source:
        https://docs.slack.dev/messaging/formatting-message-text (date formatting)
    """
    return _token(at_ms, "{date_short_pretty} at {time}")


def clock(at_ms: int) -> str:
    """A time of the day alone, for what is of today."""
    return _token(at_ms, "{time}")


def moment(at_ms: int, *, since_ms: int) -> str:
    """A time of the day, with the day where it is long after something else."""
    return clock(at_ms) if abs(at_ms - since_ms) < _HALF_A_DAY_MS else date(at_ms)


def channel(channel_id: str) -> str:
    """Write a channel as a mention; empty where the id has not that form."""
    return f"<#{channel_id}>" if _CHANNEL.fullmatch(channel_id) else ""


def _token(at_ms: int, form: str) -> str:
    seconds = min(max(at_ms, 0), _LAST_MS) // 1_000
    return f"<!date^{seconds}^{form}|{utc(at_ms)}>"
