"""The parts of Slack's mrkdwn that the bot writes: escapes, mentions, dates."""

from __future__ import annotations

import re
from collections.abc import Mapping

from bot.words.times import LAST_MS, utc

_PERSON = re.compile(r"[UW][A-Z0-9]{1,30}")
_GROUP = re.compile(r"S[A-Z0-9]{1,30}")
_CHANNEL = re.compile(r"[CG][A-Z0-9]{1,30}")
_TAG = re.compile(r"<(?:@|#|!subteam\^)([A-Z0-9]+)(?:\|[^<>]*)?>")
_DATE = re.compile(r"<!date\^[^<>|]*\|([^<>]*)>")
_CALL = re.compile(r"<!([a-z]+)(?:\|[^<>]*)?>")
_HALF_A_DAY_MS = 12 * 3_600_000


def escape(text: str) -> str:
    """Escape the three characters that Slack reads as control characters.

    Source:
        https://docs.slack.dev/messaging/formatting-message-text (escaping text)
    """
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def unescape(text: str) -> str:
    """Convert a text from Slack to the typed text: the reverse of `escape`."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def mention(slack_id: str) -> str:
    """Format a user or user group as a mention; escape any other text."""
    if _PERSON.fullmatch(slack_id):
        return f"<@{slack_id}>"
    if _GROUP.fullmatch(slack_id):
        return f"<!subteam^{slack_id}>"
    return escape(slack_id[:40]) or "somebody"


def named_in(text: str) -> frozenset[str]:
    """Return the Slack ids of the people, user groups and channels that a text mentions."""
    return frozenset(_TAG.findall(text))


def untagged(text: str, names: Mapping[str, str]) -> str:
    """Return a text without mentions and dates of Slack, for programs and plain fields.

    Args:
        text: The text.
        names: The names of who is mentioned, by id; the id stands for a missing name.
    """
    before = ""
    while before != text:  # what is taken out may join the rest to another one
        before = text
        text = _TAG.sub(lambda match: names.get(match[1], match[1]), text)
        text = _CALL.sub(r"@\1", _DATE.sub(r"\1", text))
    return text


def is_person(slack_id: str) -> bool:
    """Whether an id has the form of a user id."""
    return _PERSON.fullmatch(slack_id) is not None


def date(at_ms: int) -> str:
    """Format a time that Slack shows in each reader's time zone, such as “today at 10:00 AM”.

    Source:
        https://docs.slack.dev/messaging/formatting-message-text (date formatting)
    """
    return _token(at_ms, "{date_short_pretty} at {time}")


def clock(at_ms: int) -> str:
    """Format a time of day without a date, for times of today."""
    return _token(at_ms, "{time}")


def moment(at_ms: int, *, since_ms: int) -> str:
    """Format a time of day, with the date if it is long after another time."""
    return clock(at_ms) if abs(at_ms - since_ms) < _HALF_A_DAY_MS else date(at_ms)


def channel(channel_id: str) -> str:
    """Format a channel as a mention; empty if the id is malformed."""
    return f"<#{channel_id}>" if _CHANNEL.fullmatch(channel_id) else ""


def _token(at_ms: int, form: str) -> str:
    seconds = min(max(at_ms, 0), LAST_MS) // 1_000
    return f"<!date^{seconds}^{form}|{utc(at_ms)}>"
