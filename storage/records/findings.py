"""Findings about a database, for people."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """A finding about a database when it was tried out.

    Attributes:
        text: How it is.
        remedy: What to do; empty when it works, and is only good to know.
    """

    text: str
    remedy: str = ""
