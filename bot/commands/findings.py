"""Findings of the doctor, as lines for a terminal."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A finding about one subject.

    Attributes:
        subject: What was looked at.
        text: How it is.
        remedy: What to do; empty when all is well.
    """

    subject: str
    text: str
    remedy: str = ""

    @property
    def is_ok(self) -> bool:
        """Whether nothing has to be done."""
        return not self.remedy

    def __str__(self) -> str:
        if self.is_ok:
            return f"ok  {self.subject}: {self.text}"
        return f"!!  {self.subject}: {self.text} → {self.remedy}"
