"""Claims of a pending approval. Pure."""

from __future__ import annotations

from storage.documents import Part

CLAIM_MS = 30 * 60_000
"""Longest time for which a person can claim a request, in milliseconds."""


class CardClaim(Part):
    """A claim (5.9). Stored: version 1, must stay readable."""

    by: str = ""
    """Slack user id of the claimant; empty without a claim."""
    since_ms: int = 0
    """Start of the claim; 0 for never."""
    until_ms: int = 0
    """End of the claim."""
    past: tuple[str, ...] = ()
    """Slack user ids of all claimants so far. Each person can claim once."""

    def holds(self, at_ms: int) -> bool:
        """Whether the claim is valid at a time."""
        return bool(self.by) and self.since_ms <= at_ms < self.until_ms

    def ended(self, at_ms: int) -> CardClaim:
        """Return the claim, ended: by a vote, an edit, or a release."""
        return self.changed(by="", until_ms=min(self.until_ms, at_ms))

    def taken(self, user_id: str, at_ms: int) -> CardClaim:
        """Return a new claim of this person."""
        past = (*self.past, user_id)
        return CardClaim(by=user_id, since_ms=at_ms, until_ms=at_ms + CLAIM_MS, past=past)
