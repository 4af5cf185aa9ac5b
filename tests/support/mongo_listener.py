"""Judges every command that a test sends to any MongoDB server; see `mongo_rules`."""

from __future__ import annotations

from pymongo import monitoring

from tests.support.mongo_rules import broken_rules


class StrictListener(monitoring.CommandListener):
    """Collects violations, because PyMongo swallows what a listener raises."""

    def __init__(self) -> None:
        self._violations: list[str] = []

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        self._violations += [f"{rule}: {event.command}" for rule in broken_rules(event.command)]

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None:
        pass

    def failed(self, event: monitoring.CommandFailedEvent) -> None:
        pass

    def check(self) -> None:
        """Fail if there was a violation since the last check."""
        violations, self._violations = self._violations, []
        assert not violations, "MongoDB would refuse:\n" + "\n".join(violations)


LISTENER = StrictListener()
monitoring.register(LISTENER)
