"""The claimed answers at the beginning of a component, so that it can run again."""

from __future__ import annotations

from dataclasses import dataclass

from agents.core.address import Address
from agents.core.scope import RunContext, Scope


@dataclass(frozen=True, slots=True)
class Beginning:
    """The answers that were claimed when a component began.

    For internal parts of the runtime that run a component a second time.
    """

    address: Address
    claimed: frozenset[str]
    entered: frozenset[Address]

    @classmethod
    def of(cls, scope: Scope) -> Beginning:
        """Record the current state."""
        run = scope.run
        return cls(scope.address, frozenset(run.claimed), frozenset(run.entered))

    def restore(self, run: RunContext) -> None:
        """Undo the claims that were made since, at this address and below."""
        top = run.topmost(self.address)
        for point in top.walk() if top else ():
            if point.id not in self.claimed:
                run.claimed.discard(point.id)
        # Other calls run concurrently: their claims must not change.
        again = {one for one in run.entered - self.entered if self.address.is_prefix_of(one)}
        run.entered -= again
