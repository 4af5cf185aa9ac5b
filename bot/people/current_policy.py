"""The policy in force now, as far as it concerns what already waits: it only takes rights away."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from bot.policy.terms import Group
from storage.records import Approval


class CurrentPolicy(Protocol):
    """The policy that is in force at this moment."""

    @property
    def file_hash(self) -> str:
        """Hash of its file; empty where there is none."""
        ...

    @property
    def timezone(self) -> str:
        """Name of its zone; empty where it names none."""
        ...

    def groups(self) -> Mapping[str, Group] | None:
        """The definitions of its groups; None where there is no policy: what was frozen holds."""
        ...

    def defaults(self, channel_id: str) -> str:
        """The terms of what no rule speaks of, such as a step of a graph, in a channel, as text.

        Empty where there is no policy, or its defaults name nobody.
        """
        ...

    async def denied(self, approval: Approval) -> str:
        """Say why the call of an approval is denied by now; empty when it is not.

        The call is judged as it stands on the card. A policy that fails denies nothing that people
        were asked about, and lets nobody approve it: it goes on waiting.

        Raises:
            DirectoryError: A policy failed, or something could not be looked up.
        """
        ...


class NoPolicy:
    """No policy is in force: only what was frozen counts."""

    file_hash = ""
    timezone = ""

    def groups(self) -> None:
        """There are none."""
        return

    def defaults(self, channel_id: str) -> str:  # noqa: ARG002 - a port
        """There are none."""
        return ""

    async def denied(self, approval: Approval) -> str:  # noqa: ARG002 - a port
        """Nothing is."""
        return ""
