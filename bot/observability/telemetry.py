"""The use cases' own figures: counts, times, and the way of a request.

Everything here may be left out: the base class drops what it is told. Names and labels come from
the program alone, never from a model or a person, so that nothing private can be in them.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from enum import StrEnum


class Count(StrEnum):
    """A thing to count."""

    MESSAGES = "messages"  # people's messages; result: kept, known
    REQUESTED = "requested"  # approvals asked for; kind
    ESCALATED = "escalated"  # approvals that went to the backup people, too; kind
    DECIDED = "decided"  # outcome
    REFUSED_CLICKS = "refused_clicks"  # clicks of people who may not decide
    IN_DOUBT = "in_doubt"  # calls of which nobody knows whether they ran
    TURNS = "turns"  # turns of agents that are over
    TOOL_CALLS = "tool_calls"  # outcome
    TAKEOVERS = "lease_takeovers"  # leases that ended unreleased; record: thread, approval
    SLACK_CALLS = "slack_calls"  # method
    SLACK_ERRORS = "slack_errors"  # method, error
    POLICIES = "policies"  # policy files that were read; result: loaded, refused
    RETRIES = "retries"  # work that failed and is due again; record: thread, approval


class Time(StrEnum):
    """A span to time, in seconds."""

    DECISION = "time_to_decision"  # from the request to the decision
    ACKNOWLEDGEMENT = "click_to_ack"  # from the arrival of a click to its acknowledgement
    REDRAW = "click_to_redraw"  # from the decision to the redrawn card
    RESUME = "decision_to_resume"  # from the decision to the agent's going on
    SLACK = "slack_call"  # one call of Slack's Web API; method


class Telemetry:
    """Takes what the program tells; this one drops it."""

    def count(self, name: Count, **labels: str) -> None:
        """Count one more.

        Args:
            name: What.
            labels: As the comment beside the name says; a few fixed words each.
        """

    def observe(self, name: Time, seconds: float, **labels: str) -> None:
        """Note how long something took.

        Args:
            name: What.
            seconds: How long; less than zero counts as zero.
            labels: As the comment beside the name says.
        """

    def span(self, name: str, request: str, **attributes: str) -> AbstractContextManager[None]:
        """Mark a step in the way of a request.

        Args:
            name: The step, such as `decide`.
            request: Which request: the id of its thread. All steps with one id belong to one trace,
                in whatever process they happen.
            attributes: Ids; nothing that a person or a model wrote.
        """
        del name, request, attributes
        return nullcontext()


NO_TELEMETRY = Telemetry()
