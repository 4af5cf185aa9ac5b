"""The current policy, as applied to pending approvals: it can only remove rights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from bot.records.approval import Approval
from bot.records.terms import Group, Terms


class CurrentPolicy(Protocol):
    """The policy in force now."""

    @property
    def file_hash(self) -> str:
        """Return the hash of the policy file; empty without a file."""
        ...

    @property
    def timezone(self) -> str:
        """Return the name of the policy's time zone; empty without one."""
        ...

    def groups(self) -> Mapping[str, Group] | None:
        """Return the group definitions; None without a policy: the frozen ones apply."""
        ...

    def defaults(self, channel_id: str) -> Terms | None:
        """Return a channel's default terms, for requests that no rule covers.

        None without a policy, or if its defaults name no approvers.
        """
        ...

    async def denied(self, approval: Approval) -> str:
        """Return why the policy now denies the approval's call; empty if it does not.

        The call is judged with its current arguments. If the evaluation fails, the approval stays
        pending and cannot be approved.

        Raises:
            DirectoryError: The evaluation or a look-up failed.
        """
        ...


class NoPolicy:
    """No policy: only frozen terms apply."""

    file_hash = ""
    timezone = ""

    def groups(self) -> None:
        """Return None."""
        return

    def defaults(self, channel_id: str) -> None:  # noqa: ARG002 - a port
        """Return None."""
        return

    async def denied(self, approval: Approval) -> str:  # noqa: ARG002 - a port
        """Return an empty text."""
        return ""
