"""The state of a run where a component begins, for parts that run something a second time."""

from __future__ import annotations

from dataclasses import dataclass

from agents.core.address import Address
from agents.core.scope import RunContext, Scope


@dataclass(frozen=True, slots=True)
class Beginning:
    """The answers that a component had found when it began, so that it finds the rest again.

    For parts of the runtime that run something a second time.
    """

    address: Address
    claimed: frozenset[str]
    entered: frozenset[Address]

    @classmethod
    def of(cls, scope: Scope) -> Beginning:
        """Remember how things stand where something begins."""
        run = scope.run
        return cls(scope.address, frozenset(run.claimed), frozenset(run.entered))

    def restore(self, run: RunContext) -> None:
        """Forget what was found since, at this address and below."""
        top = run.topmost(self.address)
        for point in top.walk() if top else ():
            if point.id not in self.claimed:
                run.claimed.discard(point.id)
        # Calls beside this one go on meanwhile: theirs stay as they are.
        again = {one for one in run.entered - self.entered if self.address.is_prefix_of(one)}
        run.entered -= again
