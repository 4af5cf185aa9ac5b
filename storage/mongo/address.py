"""The address of the servers: its secrets, and its permitted and refused options.

An option of the operator is used or refused by name. The bot never overrides it silently.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, unquote_plus

from storage.errors import Fault, StoreBrokenError

OPEN_FACTOR = 4
"""Timeout of the first connection, as a multiple of the operation timeout: it includes DNS, the TLS
handshake and the login.
"""

LONGEST_MS = 10_000
"""Maximum value of `timeoutMS` in `MONGODB_URI`, in milliseconds: shorter than a lease."""

_SHORTEST_NAME = 4
"""Minimum length of a user name that is removed from texts, in characters. A shorter name would be
removed from ordinary words, too.
"""

_ONLY: Mapping[str, tuple[str, str]] = {
    "w": ("majority", "a decision must be on most servers before anybody acts on it"),
    "journal": ("true", "a decision must be on the disk before anybody acts on it"),
    "j": ("true", "a decision must be on the disk before anybody acts on it"),
    "readconcernlevel": ("majority", "what is read must not be undone by a failover"),
    "directconnection": ("false", "after an election, this server would refuse every write"),
    "readpreference": ("primary", "what is read must not be older than what was written"),
}
"""Options with a single permitted value, and the reason."""

_WHY_NEVER = "a write would not be known to be kept, or an old record be read"
_NEVER = frozenset({"wtimeoutms", "wtimeout", "fsync", "readpreferencetags", "maxstalenessseconds"})

_FILES = ("tlscafile", "tlscertificatekeyfile", "tlscrlfile", "ssl_ca_certs", "ssl_certfile")


class ServerAddress:
    """The server that a `MONGODB_URI` names, and its options.

    Args:
        uri: The operator's `MONGODB_URI`.
        timeout_ms: Maximum duration of an operation in milliseconds, unless `uri` has `timeoutMS`.

    Attributes:
        timeout_ms: Maximum duration of an operation, in milliseconds.
        open_ms: Maximum duration of the first connection, in milliseconds.
        retries_writes: Whether the driver sends a write again after a lost reply.
        secrets: Texts that must never be shown, the longest first.
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
        self.retries_writes = self._given.get("retrywrites", "true").lower() == "true"
        self.secrets = secrets_of(uri)

    def check(self) -> None:
        """Refuse options that would weaken durability or consistency, and unreadable files.

        Raises:
            StoreBrokenError: Names the option, the fault and the remedy.
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
        """Return the default options, except options that the address sets."""
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
        """Replace credentials in a text with asterisks."""
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return text

    def _milliseconds(self, name: str) -> int:
        text = self._given.get(name, "")
        return int(text) if text.isascii() and text.isdigit() else 0


def secrets_of(uri: str) -> list[str]:
    """Return the parts of an address that must never be shown, the longest first."""
    match = re.match(r"[^:/]+://(.*)@", uri)
    if match is None:
        return []
    user, _, password = match[1].partition(":")
    parts = (match[1], password, user if len(user) >= _SHORTEST_NAME else "")
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
