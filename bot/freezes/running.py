"""Approved calls in the scope of a freeze that run, or may have run (11.17)."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from bot.freezes.rules import covers
from bot.freezes.starts import scope_of_approval
from bot.records.approval import Approval, ExecutionState, Kind, Status
from bot.records.approval_queries import ApprovalCollection
from bot.records.switch import FreezeScope

MOST_READ = 500
"""Maximum number of open approvals to read."""


async def running_in(
    approvals: ApprovalCollection, scope: FreezeScope, tags: Mapping[str, Collection[str]]
) -> list[Approval]:
    """Return the approvals of calls that run, and the pending approvals of calls in doubt.

    Calls that a rule allows have no approval, so they are not listed.

    Args:
        approvals: Stored approvals.
        scope: The scope.
        tags: The tags of all tools, by the names of the tools.
    """
    page = await approvals.find({"open": True}, limit=MOST_READ)
    return [
        approval
        for approval in page.documents
        if (approval.execution.state is ExecutionState.STARTED or is_doubt(approval))
        and covers(scope, scope_of_approval(approval, tags.get(approval.tool, ())))
    ]


def is_doubt(approval: Approval) -> bool:
    """Whether the approval asks people about a call in doubt."""
    return approval.kind is Kind.DOUBT and approval.status is Status.PENDING
