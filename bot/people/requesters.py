"""Requesters: everyone whose messages the agent of a thread has read.

None of them may approve what the agent requests, because any of them may have caused the request.
`bot.people.thread_pass` stores them, before the agent reads their words.
"""

from __future__ import annotations

from bot.approvals.model import Approval


def requesters_of(approval: Approval) -> tuple[str, ...]:
    """Return the requesters of an approval."""
    return tuple(dict.fromkeys((approval.requester_id, *approval.requesters)))


def is_requester(approval: Approval, user_id: str) -> bool:
    """Whether this person's words contributed to the request."""
    return user_id in requesters_of(approval)
