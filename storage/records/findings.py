"""Findings about a database, for people."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """A record that this release cannot read. It is kept as it is, and out of the way of others.

    Attributes:
        kind: What it is, such as `approval`.
        record_id: Its id.
        why: What is wrong with it; for a thread, also what of its records cannot be read.
    """

    kind: str
    record_id: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """A finding about a database when it was tried out.

    Attributes:
        text: How it is.
        remedy: What to do; empty when it works, and is only good to know.
    """

    text: str
    remedy: str = ""
