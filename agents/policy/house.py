"""The application's policy: it has the last word on each call of each tool, gated or not.

A policy in code stands in a gate and knows what that gate is about. The house judges all calls of a
run, together with what code says of them. The runtime binds decisions to what it says, and reads
nothing of it; what fails, is late or is no ruling denies.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar, cast, runtime_checkable

from agents.core.component.exits import contained
from agents.core.errors import AgentConfigError
from agents.core.pending import InterruptSignal
from agents.core.scope import current_scope
from agents.policy.base import (
    TIME_LIMIT,
    Allow,
    Deny,
    PolicyCall,
    Ruling,
    in_time,
)

logger = logging.getLogger(__name__)

T = TypeVar("T")
HOUSE_SLOT = "gate.house"
"""The slot of the house's own question about a call. Stored: never change it."""


class ApplicationPolicy(Protocol):
    """Judges every call of every tool of a run."""

    @property
    def allows_ungated(self) -> bool:
        """Whether it allows all calls of tools without a gate in code, whatever they are.

        It is not asked about these then, they are not noted, and they cost nothing.
        """
        ...

    async def rule(self, call: PolicyCall, code: Ruling | None, *, inside: bool) -> Ruling:
        """Judge a call; runs nothing, asks nobody, and puts nothing on record.

        It is called when a call is new, when people edit it, and once more before a call starts
        that people had to agree to. An error, a time-out, or anything but a ruling denies.

        Args:
            call: The call.
            code: The ruling of a gate in code; None where there is no gate. A denial stands,
                whatever is said here. A gate that always asks says so under its rule's name, or
                `GATE_RULE`, and names nobody.
            inside: Whether a gate around this one has had people agree to the house's ruling on
                the call. Then only what code says counts, by people of the house where code names
                nobody.
        """
        ...

    async def note(self, call: PolicyCall, ruling: Allow | Deny) -> None:
        """Put on record that a call starts, or does not run, because of a ruling alone.

        It is called before anything runs, and again with the same call after a crash. An error
        stops the run: what is not on record does not start.
        """
        ...


@runtime_checkable
class GrantingPolicy(Protocol):
    """A house policy that knows standing grants: what people have allowed for a while."""

    async def grant(self, call: PolicyCall, terms: str) -> Allow | None:
        """Use a standing grant for a new call, in place of asking people about it.

        It is called right before people would be asked, and again with the same call after a
        crash, which uses nothing more. An error, a time-out, or anything but `Allow` has them
        asked.

        Args:
            call: The call.
            terms: Of the ruling that asks.

        Returns:
            The permission, with the name of the grant; None when people have to be asked.
        """
        ...


@runtime_checkable
class PatientPolicy(Protocol):
    """A house policy that has calls wait that people let run, while it fails to judge them."""

    async def wait(self, decisions: Sequence[str], tries: int) -> bool:
        """Wait a while, before a call that is about to start is judged once more.

        Args:
            decisions: The interrupts whose answers let it run.
            tries: How often it has waited so far.

        Returns:
            Whether it is judged once more; else it is denied.
        """
        ...


@dataclass(frozen=True, slots=True)
class House:
    """The application's policy, as a run carries it.

    Attributes:
        policy: The policy.
        guard: Puts the house's own gate around a tool without one; gives the tool back where none
            is needed. Takes the tool, and whether gates in code stand around it.
        time_limit: How long a ruling may take, in seconds.
    """

    policy: ApplicationPolicy
    guard: Callable[[object, bool], object]
    time_limit: float = TIME_LIMIT

    def guarded(self, tool: T, *, in_code: bool = False) -> T:
        """The tool, with a gate by which the house judges each of its calls.

        Args:
            tool: A tool.
            in_code: Whether gates in code stand around it, none of which had to ask.
        """
        return cast("T", self.guard(tool, in_code))

    async def ruling(self, call: PolicyCall, code: Ruling | None, *, inside: bool) -> Ruling:
        """Ask it about a call; whatever goes wrong denies, and what code denies stays denied."""
        ruling = await in_time(
            lambda: self.policy.rule(call, code, inside=inside),
            call.tool,
            time_limit=self.time_limit,
        )
        is_lost = isinstance(ruling, Deny) and not ruling.failed
        return code if isinstance(code, Deny) and not is_lost else ruling

    async def last_word(
        self, call: PolicyCall, code: Ruling | None, decisions: Sequence[str]
    ) -> Ruling:
        """Ask it about a call that is about to start; while it fails, what people decided waits.

        Args:
            call: The call.
            code: The ruling of code.
            decisions: The interrupts whose answers let it run.
        """
        tries = 0
        while True:
            ruling = await self.ruling(call, code, inside=False)
            is_unknown = isinstance(ruling, Deny) and ruling.failed
            if not (is_unknown and await self._waits(decisions, tries)):
                return ruling
            tries += 1

    async def _waits(self, decisions: Sequence[str], tries: int) -> bool:
        if not decisions or not isinstance(self.policy, PatientPolicy):
            return False
        journal = current_scope("a house").run.journal
        return await journal.depend_on(self.policy.wait(decisions, tries))

    async def granted(self, call: PolicyCall, terms: str) -> Allow | None:
        """Use a standing grant for a call about which people would be asked.

        Returns:
            None when there is none, or whatever goes wrong: people are asked then.
        """
        if not terms or not isinstance(self.policy, GrantingPolicy):
            return None
        try:
            async with asyncio.timeout(self.time_limit):
                with contained():
                    found = await self.policy.grant(call, terms)
        except (InterruptSignal, Exception) as error:  # noqa: BLE001 - whatever it is, people decide
            kind = type(error).__name__
            logger.warning(
                "standing permission lookup failed for %r: %s; asking approvers", call.tool, kind
            )
            return None
        return found if isinstance(found, Allow) and found.grant else None

    async def note(self, call: PolicyCall, ruling: Allow | Deny) -> None:
        """Have it put on record what becomes of a call.

        Raises:
            Exception: It could not be; the run goes no further.
        """
        journal = current_scope("a house").run.journal
        await journal.depend_on(self.policy.note(call, ruling))


def current_house() -> House | None:
    """The application's policy in the run that goes on here; None when it has none.

    Raises:
        AgentConfigError: The run carries something else in its place.
    """
    return house_of(current_scope("current_house()").run.house)


def house_of(carried: object) -> House | None:
    """Read what a run carries as its house.

    Raises:
        AgentConfigError: It is none.
    """
    if carried is None or isinstance(carried, House):
        return carried
    raise AgentConfigError(f"a run's house is {carried!r}; give a policy: `Runner(policy=…)`")
