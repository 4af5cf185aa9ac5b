"""Requesters: who asked. Everyone whose words may have caused a request.

None of the requesters may approve what the agent requests, because any of them may have caused the
request: the agent has read their messages. `bot.threads.requesters` stores the requesters before
the agent reads a message.
"""

from __future__ import annotations

from bot.records.approval import Approval


def requesters_of(approval: Approval) -> tuple[str, ...]:
    """Return the requesters of an approval."""
    return tuple(dict.fromkeys((approval.requester_id, *approval.requesters)))


def is_requester(approval: Approval, user_id: str) -> bool:
    """Whether this person's words contributed to the request."""
    return user_id in requesters_of(approval)
