"""What went wrong in a call to Slack, in a few words without secrets."""

from __future__ import annotations

import aiohttp
from slack_sdk.errors import SlackApiError


def slack_fault(error: BaseException) -> str:
    """Slack's error code, or the kind of the network fault."""
    if isinstance(error, SlackApiError):
        code = error.response.get("error") if error.response is not None else None
        return str(code or "unknown_error")
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, aiohttp.ClientError | OSError):
        return f"connection failed ({type(error).__name__})"
    return type(error).__name__
