"""The keys of a thread's data, and the evidence that stays when the thread is deleted.

The audit of a deleted thread remains: who did what, when, and to which record.
"""

from __future__ import annotations

import re

from storage.thread_ids import channel_of, name_of

_AFTER_ID = "#/:"
"""The characters that follow the thread's id in keys of its turns, its log and their parts."""

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
"""Names of evidence that outlives its thread: ids, configured names, times and digests.

Everything that people, models or tools wrote is deleted: arguments, edits, answers, reasons and
errors.
"""

_DIGEST = re.compile(r"[0-9a-f]{64}")


def key_ranges(thread_id: str) -> list[tuple[str, str]]:
    """Return the key ranges of a thread's data, as pairs of first key and exclusive end."""
    exactly = (thread_id, f"{thread_id}\x00")
    return [
        exactly,
        *((f"{thread_id}{mark}", f"{thread_id}{chr(ord(mark) + 1)}") for mark in _AFTER_ID),
    ]


def place_of(thread_id: str) -> dict[str, str]:
    """Return the fields by which a record of a private answer names its thread."""
    return {"channel_id": channel_of(thread_id), "thread_ts": name_of(thread_id)}


def is_kept(name: str, item: object) -> bool:
    """Return whether a field of the evidence outlives its thread."""
    # A full ruling contains the reasons that its author wrote; its digest does not
    if name == "ruling":
        return isinstance(item, str) and _DIGEST.fullmatch(item) is not None
    return name in KEPT
