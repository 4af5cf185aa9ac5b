"""The application's policy: makes the final decision about every call of a run.

A policy in code belongs to a gate and its tools. The application's policy evaluates all calls of a
run, together with the ruling of code. The runtime binds decisions to its ruling and never reads the
terms. A failure, a timeout or any other result denies the call.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from agents.core.component.exits import contained
from agents.core.errors import AgentConfigError
from agents.core.pending import InterruptSignal
from agents.core.scope import current_scope
from agents.core.tools import Tool
from agents.policy.base import (
    TIME_LIMIT,
    Allow,
    Deny,
    PolicyCall,
    Ruling,
    in_time,
)

logger = logging.getLogger(__name__)

HOUSE_SLOT = "gate.house"
"""Slot of the interrupt of the application's policy. Stored: never change it."""


class ApplicationPolicy(Protocol):
    """Evaluates every call of every tool of a run.

    A subclass inherits `grant` and `wait`, which do nothing.
    """

    @property
    def allows_ungated(self) -> bool:
        """Whether all calls of tools without a gate in code are allowed.

        The policy is then neither evaluated for these calls nor notified of them.
        """
        ...

    async def rule(self, call: PolicyCall, code: Ruling | None, *, inside: bool) -> Ruling:
        """Return the ruling for a call. Runs, asks and records nothing.

        Called for a new call, for edited arguments, and again before an approved call starts. An
        error, a timeout or any other result denies the call.

        Args:
            call: The call.
            code: The ruling of a gate in code; None without a gate. A denial is final, unless it
                has `asks`. A gate that always asks uses its rule's name, or `GATE_RULE`, and names
                no approvers.
            inside: Whether an outer gate already has approval under this policy. Then only the
                ruling of code counts, with the policy's approvers if code names none.
        """
        ...

    async def note(self, call: PolicyCall, ruling: Allow | Deny) -> None:
        """Record that a call starts or is denied without anyone's decision.

        Called before anything runs, and again with the same call after a crash. An error stops the
        run: a call that is not recorded does not start.
        """
        ...

    async def grant(
        self,
        call: PolicyCall,  # noqa: ARG002 - for policies with grants
        terms: str,  # noqa: ARG002 - for policies with grants
    ) -> Allow | None:
        """Find a standing grant for a new call, instead of requesting approval. Uses nothing.

        Called right before approval would be requested, and again before a call that was parked
        starts. The start names the grant in `StartingCall.grant`, and uses it; the same call may
        start again after a crash, which must not use the grant again. After an error, a timeout or
        any other result, approval is requested. By default there are no grants.

        Args:
            call: The call.
            terms: Terms of the ruling that asks.

        Returns:
            The permission with the name of the grant, or None to request approval.
        """
        return None

    async def wait(
        self,
        decisions: Sequence[str],  # noqa: ARG002 - for policies that wait
        tries: int,  # noqa: ARG002 - for policies that wait
    ) -> bool:
        """Wait before a failed evaluation of an approved call is retried.

        By default the call is denied at once.

        Args:
            decisions: Ids of the interrupts whose answers approved the call.
            tries: Number of earlier waits.

        Returns:
            Whether to retry. False denies the call.
        """
        return False


_METHODS = ("rule", "note", "grant", "wait")


class Guard(Protocol):
    """Adds the gate by which the policy evaluates each call."""

    def __call__(self, tool: Tool, *, in_code: bool = False) -> Tool:
        """Return the tool with that gate; the tool itself if it needs none.

        Args:
            tool: The tool.
            in_code: Whether the tool has gates in code, none of which had to ask.
        """
        ...


@dataclass(frozen=True, slots=True)
class House:
    """The application's policy as part of a run.

    Attributes:
        policy: The policy.
        guard: Adds the policy's own gate to tools.
        time_limit: Maximum time of an evaluation, in seconds.
    """

    policy: ApplicationPolicy
    guard: Guard
    time_limit: float = TIME_LIMIT

    def __post_init__(self) -> None:
        # A missing method would only be noticed when a call needs it.
        missing = [name for name in _METHODS if not callable(getattr(self.policy, name, None))]
        if missing:
            raise AgentConfigError(
                f"the policy {type(self.policy).__name__} has no {', '.join(missing)}; "
                "inherit from ApplicationPolicy"
            )

    async def ruling(self, call: PolicyCall, code: Ruling | None, *, inside: bool) -> Ruling:
        """Evaluate the policy. Any failure denies the call; a denial of code is final."""
        ruling = await in_time(
            lambda: self.policy.rule(call, code, inside=inside),
            call.tool,
            time_limit=self.time_limit,
        )
        # The policy's own denial takes precedence over that of code, unless it is a failure.
        is_lost = isinstance(ruling, Deny) and not ruling.failed
        is_final = isinstance(code, Deny) and not code.asks
        return code if isinstance(code, Deny) and is_final and not is_lost else ruling

    async def last_word(
        self, call: PolicyCall, code: Ruling | None, decisions: Sequence[str]
    ) -> Ruling:
        """Evaluate the policy right before an approved call starts; retry while it fails."""
        tries = 0
        while True:
            ruling = await self.ruling(call, code, inside=False)
            is_unknown = isinstance(ruling, Deny) and ruling.failed
            if not (is_unknown and await self._waits(decisions, tries)):
                return ruling
            tries += 1

    async def _waits(self, decisions: Sequence[str], tries: int) -> bool:
        # Only approved calls wait; a new call is denied at once.
        if not decisions:
            return False
        journal = current_scope("a house").run.journal
        return await journal.depend_on(self.policy.wait(decisions, tries))

    async def granted(self, call: PolicyCall, terms: str) -> Allow | None:
        """Find a standing grant for a call that would need approval; the start uses it.

        Returns None if no grant applies or the policy fails. Approval is then requested.
        """
        if not terms:
            return None
        try:
            async with asyncio.timeout(self.time_limit):
                with contained():
                    ruling = await self.policy.grant(call, terms)
        except (InterruptSignal, Exception) as error:  # noqa: BLE001 - after any failure, people decide
            kind = type(error).__name__
            logger.warning(
                "standing permission lookup failed for %r: %s; asking approvers", call.tool, kind
            )
            return None
        return ruling if isinstance(ruling, Allow) and ruling.grant else None

    async def note(self, call: PolicyCall, ruling: Allow | Deny) -> None:
        """Let the policy record what happens to a call."""
        journal = current_scope("a house").run.journal
        await journal.depend_on(self.policy.note(call, ruling))


def current_house() -> House | None:
    """Return the application's policy of the current run, or None."""
    return house_of(current_scope("current_house()").run.house)


def house_of(carried: object) -> House | None:
    """Return the policy that is part of a run, or None."""
    if carried is None or isinstance(carried, House):
        return carried
    raise AgentConfigError(f"a run's house is {carried!r}; give a policy: `Runner(policy=…)`")
