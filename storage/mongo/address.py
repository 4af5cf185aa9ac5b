"""The address of the servers: its secrets, and the options that are allowed or refused.

What an operator writes there is done or refused by name, never overruled without a word.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, unquote_plus

from storage.errors import Fault, StoreBrokenError

OPEN_FACTOR = 4
"""The first connection may take so many times the time of an operation: names are looked up, TLS
is set up, and a login takes some round trips."""

LONGEST_MS = 10_000
"""Maximum value of `timeoutMS` in `MONGODB_URI`, in milliseconds: shorter than a lease."""

_SHORTEST_NAME = 4
"""A user name of fewer letters is no secret, and would be cut out of every other word."""

_ONLY: Mapping[str, tuple[str, str]] = {
    "w": ("majority", "a decision must be on most servers before anybody acts on it"),
    "journal": ("true", "a decision must be on the disk before anybody acts on it"),
    "j": ("true", "a decision must be on the disk before anybody acts on it"),
    "readconcernlevel": ("majority", "what is read must not be undone by a failover"),
    "readpreference": ("primary", "what is read must not be older than what was written"),
}
"""Options that have one right value here, and why."""

_WHY_NEVER = "a write would not be known to be kept, or an old record be read"
_NEVER = frozenset({"wtimeoutms", "wtimeout", "fsync", "readpreferencetags", "maxstalenessseconds"})

_FILES = ("tlscafile", "tlscertificatekeyfile", "tlscrlfile", "ssl_ca_certs", "ssl_certfile")


class ServerAddress:
    """The server that a `MONGODB_URI` names, and its options.

    Args:
        uri: As the operator wrote it.
        timeout_ms: How long an operation may take, unless the address says so.

    Attributes:
        timeout_ms: How long an operation may take.
        open_ms: How long the first connection may take.
        secrets: What must never be shown, the longest first.
    """

    def __init__(self, uri: str, *, timeout_ms: int) -> None:
        self._uri = uri
        options = parse_qsl(uri.partition("?")[2], keep_blank_values=True)
        self._given = {name.lower(): value for name, value in options}
        self._spelled = {name.lower(): name for name, _ in options}
        self.timeout_ms = self._milliseconds("timeoutms") or timeout_ms
        self.open_ms = (
            self._milliseconds("serverselectiontimeoutms") or self.timeout_ms * OPEN_FACTOR
        )
        self.secrets = secrets_of(uri)

    def check(self) -> None:
        """Refuse options that take away what we rely on, and files that are not there.

        Raises:
            StoreBrokenError: Names the option, what is wrong with it, and what would be right.
        """
        for name, value in self._given.items():
            spelled = self._spelled[name]
            right, why = _ONLY.get(name, ("", ""))
            if right and value.lower() != right:
                raise _refused(f"the option {spelled}={value} is refused: {why}; leave it out")
            if name in _NEVER:
                raise _refused(f"the option {spelled} is refused: {_WHY_NEVER}; leave it out")
            if name in _FILES:
                _check_file(spelled, Path(value))
        if "timeoutms" in self._given and not 0 < self._milliseconds("timeoutms") <= LONGEST_MS:
            raise _refused(f"timeoutMS must be from 1 to {LONGEST_MS} (milliseconds)")

    def options(self) -> dict[str, Any]:
        """Our own options, without those that the address gives."""
        ours: dict[str, Any] = {
            "appname": "countersign",
            "timeoutMS": self.timeout_ms,
            "serverSelectionTimeoutMS": self.open_ms,
            "connectTimeoutMS": self.timeout_ms,
            "retryWrites": True,
            "retryReads": True,
        }
        return {name: value for name, value in ours.items() if name.lower() not in self._given}

    def clean(self, text: str) -> str:
        """Cut credentials out of a text."""
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return text

    def _milliseconds(self, name: str) -> int:
        text = self._given.get(name, "")
        return int(text) if text.isascii() and text.isdigit() else 0


def secrets_of(uri: str) -> list[str]:
    """The parts of an address that must never be shown, the longest first."""
    found = re.match(r"[^:/]+://(.*)@", uri)
    if found is None:
        return []
    user, _, password = found[1].partition(":")
    parts = (found[1], password, user if len(user) >= _SHORTEST_NAME else "")
    spellings = {form(part) for part in parts for form in (str, unquote, unquote_plus)}
    return sorted(spellings - {""}, key=len, reverse=True)


def _check_file(name: str, path: Path) -> None:
    try:
        path.open("rb").close()
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise _refused(f"{name} names {path}, which cannot be read ({why})") from None


def _refused(detail: str) -> StoreBrokenError:
    return StoreBrokenError(f"its address cannot be used: {detail}", Fault.ADDRESS)
