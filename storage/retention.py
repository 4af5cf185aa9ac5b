"""The keys of all that belongs to a thread, and the evidence that is kept.

What is kept of a thread is its audit, and of that who did what, when, and to which record.
"""

from __future__ import annotations

import re

_AFTER_ID = "#/:"
"""The characters behind the thread's id in the keys of its turns, its log and their parts."""

KEPT = frozenset(
    {
        "address",
        "backups",
        "call",
        "checkpoint",
        "choice",
        "count",
        "decided_by",
        "deciders",
        "digest",
        "escalates_ms",
        "expires_ms",
        "file",
        "for",
        "grant",
        "groups",
        "groups_read_ms",
        "how",
        "kind",
        "message",
        "method",
        "number",
        "outcome",
        "payload",
        "post",
        "revision",
        "rule",
        "shown",
        "stage",
        "status",
        "step",
        "to_ms",
        "tool",
        "until_ms",
        "upto_hash",
        "upto_seq",
        "uses",
        "was",
    }
)
"""Evidence that outlives its thread: ids, names from code and settings, times, digests.

Not kept is whatever people, models or tools wrote: arguments, edits, answers, reasons, errors.
"""

_DIGEST = re.compile(r"[0-9a-f]{64}")


def key_ranges(thread_id: str) -> list[tuple[str, str]]:
    """Between which keys all lie that begin with the thread's id: the first, and the end."""
    exactly = (thread_id, f"{thread_id}\x00")
    return [
        exactly,
        *((f"{thread_id}{mark}", f"{thread_id}{chr(ord(mark) + 1)}") for mark in _AFTER_ID),
    ]


def place_of(thread_id: str) -> dict[str, str]:
    """The fields by which private answers name a thread."""
    _, _, place = thread_id.partition(":")
    channel_id, _, thread_ts = place.partition(":")
    return {"channel_id": channel_id, "thread_ts": thread_ts}


def is_kept(name: str, item: object) -> bool:
    """Whether a part of the evidence outlives its thread."""
    if name == "ruling":  # whole, it has the reasons that its author wrote; its digest is none
        return isinstance(item, str) and _DIGEST.fullmatch(item) is not None
    return name in KEPT
