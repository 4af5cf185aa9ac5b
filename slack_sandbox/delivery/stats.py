"""Statistics for tests: calls, posts, deliveries, retries, acknowledgement times."""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from slack_sandbox.delivery.http import AppReply, Kind, Parcel
from slack_sandbox.workspace.records import Change, Payload, SlackMessage

KEPT = 20_000
"""Maximum number of remembered envelopes and acknowledgements."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ack:
    """The answer to one delivery, and its time.

    Attributes:
        kind: The kind of envelope.
        name: The event, interaction or command.
        user: Id of the person who clicked or typed; empty for events.
        ms: Milliseconds until the answer or the timeout.
        ok: Whether the answer was valid.
        attempt: Number of the retry; 0 for the first attempt.
    """

    kind: Kind
    name: str
    user: str
    ms: float
    ok: bool
    attempt: int


class Statistics:
    """Counts from the start, or from the last `reset`."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Reset all counts."""
        self.calls: Counter[str] = Counter()
        """Number of Web API calls by method, including failed calls."""
        self.errors: Counter[tuple[str, str]] = Counter()
        """Refused calls by method and error."""
        self.posts: Counter[str] = Counter()
        """Number of messages posted with the same metadata, by that metadata as JSON."""
        self.deliveries: Counter[str] = Counter()
        """Number of attempts for each of the newest envelopes, by event id or trigger id."""
        self.retries = 0
        """Number of retries of events."""
        self.dropped = 0
        """Number of payloads that a fault dropped."""
        self.acks: deque[Ack] = deque(maxlen=KEPT)
        """The newest answers, oldest first."""

    def called(self, method: str, error: str | None) -> None:
        """Count a call."""
        self.calls[method] += 1
        if error is not None:
            self.errors[method, error] += 1

    def delivered(self, parcel: Parcel, reply: AppReply, ms: float) -> None:
        """Count a delivery and its result."""
        self.retries += parcel.attempt > 0
        if parcel.key:
            self.deliveries[parcel.key] += 1
            if len(self.deliveries) > KEPT:
                del self.deliveries[next(iter(self.deliveries))]
        ack = Ack(
            kind=parcel.kind,
            name=parcel.name,
            user=parcel.user,
            ms=ms,
            ok=reply.ok,
            attempt=parcel.attempt,
        )
        self.acks.append(ack)

    def changed(self, change: Change) -> None:
        """Count a message once it has metadata: at its post, or at the end of a stream."""
        message, previous = change.message, change.previous
        is_new = previous is None or previous.metadata != message.metadata
        if change.kind != "deleted" and message.metadata and is_new:
            self.posts[metadata_key(message)] += 1

    def ack_ms(self, kind: Kind = "interactive") -> list[float]:
        """Return the milliseconds until each valid answer, oldest first; by default for clicks."""
        return [ack.ms for ack in self.acks if ack.ok and ack.kind == kind]

    def shown(self) -> Payload:
        """Return all counts as JSON."""
        errors: dict[str, dict[str, int]] = {}
        for (method, error), count in self.errors.items():
            errors.setdefault(method, {})[error] = count
        return {
            "calls": dict(self.calls),
            "errors": errors,
            "posts": dict(self.posts),
            "deliveries": dict(self.deliveries),
            "retries": self.retries,
            "dropped": self.dropped,
            "acks": [asdict(ack) for ack in self.acks],
        }


def metadata_key(message: SlackMessage) -> str:
    """Return a message's metadata as one text."""
    return json.dumps(message.metadata, sort_keys=True)


def doubles(messages: Iterable[SlackMessage]) -> dict[str, int]:
    """Return metadata that several of these messages have, with their number."""
    counts = Counter(
        metadata_key(message) for message in messages if message.metadata and not message.is_deleted
    )
    return {key: count for key, count in counts.items() if count > 1}
