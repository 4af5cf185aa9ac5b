"""What went wrong in a call to Slack, in a few words without secrets."""

from __future__ import annotations

import aiohttp
from slack_sdk.errors import SlackApiError


def slack_fault(error: BaseException) -> str:
    """Slack's error code, or the kind of the network fault."""
    if isinstance(error, SlackApiError):
        # With an answer that is not JSON the response is not Slack's, and has no fields.
        read = getattr(error.response, "get", None)
        code = read("error") if callable(read) else None
        return str(code or "unknown_error")
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, aiohttp.ClientError | OSError):
        return f"connection failed ({type(error).__name__})"
    return type(error).__name__
