"""The log: text or lines of JSON, secrets masked, one line for each record whatever it contains."""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, TextIO

from bot.redaction import REDACTED, mask, mask_text
from bot.values import Log

OUR_PACKAGES = ("agents", "bot", "storage")
"""Only these log below INFO: libraries put whole messages, and tokens, into their debug records."""

_QUIET = ("apscheduler", "asyncio", "httpx", "httpx2", "aiohttp.access")
"""Libraries that have something to say at every tick or call."""

_SHORTEST_SECRET = 6
"""A shorter value would be masked inside ordinary words; patterns still find it in its place."""

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def configure(log: Log, *, secrets: Sequence[str] = (), stream: TextIO | None = None) -> None:
    """Set up logging for this process; what was set up before is replaced.

    Args:
        log: Level and form.
        secrets: Values to be masked wherever they turn up.
        stream: Where the log goes; standard error when None.
    """
    handler = logging.StreamHandler(stream)
    masker = _Masker(secrets)
    handler.setFormatter(_JsonFormatter(masker) if log.as_json else _TextFormatter(masker))
    handler.addFilter(_without_bodies)
    level = logging.getLevelNamesMapping()[log.level]
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(max(level, logging.INFO))
    for name in OUR_PACKAGES:
        logging.getLogger(name).setLevel(level)
    # Bolt and its SDK copy the level of this logger when they start, and ignore the root's.
    for name in ("slack_bolt", "slack_sdk"):
        logging.getLogger(name).setLevel(max(level, logging.INFO))
    for name in _QUIET:
        logging.getLogger(name).setLevel(max(level, logging.WARNING))


class _Masker:
    """Masks the given secrets, and whatever looks like one."""

    def __init__(self, secrets: Sequence[str]) -> None:
        long = {secret for secret in secrets if len(secret) >= _SHORTEST_SECRET}
        self._secrets = sorted(long, key=len, reverse=True)

    def text(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, REDACTED)
        return mask_text(text)

    def value(self, key: str, value: object) -> object:
        known = value if isinstance(value, bool | int | float | None) else self.text(str(value))
        return mask(key, known)


def _without_bodies(record: logging.LogRecord) -> bool:
    """Replace the text of records that quote what a stranger has sent; let all records pass."""
    if record.name.startswith("slack_bolt.") and "RequestVerification" in record.name:
        record.msg, record.args = "a request with a wrong signature or time was refused", None
    return True


def _extras(record: logging.LogRecord) -> dict[str, Any]:
    return {key: value for key, value in vars(record).items() if key not in _STANDARD}


def _at(record: logging.LogRecord) -> str:
    at = datetime.fromtimestamp(record.created, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _trace(record: logging.LogRecord) -> str:
    error = record.exc_info[1] if record.exc_info else None
    parts = "".join(traceback.format_exception(error)).rstrip() if error is not None else ""
    return "\n".join(part for part in (parts, record.stack_info) if part)


class _TextFormatter(logging.Formatter):
    """`time LEVEL logger [action] message key=value`; further lines are indented."""

    def __init__(self, masker: _Masker) -> None:
        super().__init__()
        self._masker = masker

    def format(self, record: logging.LogRecord) -> str:
        extras = _extras(record)
        action = extras.pop("action", None)
        pairs = (f"{key}={self._masker.value(key, value)}" for key, value in extras.items())
        words = (
            _at(record),
            record.levelname,
            record.name,
            f"[{action}]" if action else "",
            self._masker.text(record.getMessage()),
            *pairs,
        )
        line = _one_line(" ".join(word for word in words if word))
        trace = self._masker.text(_trace(record))
        return "\n".join([line, *(f"  {_one_line(part)}" for part in trace.splitlines())])


class _JsonFormatter(logging.Formatter):
    """One object for each record: at, level, logger, message, then the extras."""

    def __init__(self, masker: _Masker) -> None:
        super().__init__()
        self._masker = masker

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, object] = {
            "at": _at(record),
            "level": record.levelname,
            "logger": record.name,
            "message": self._masker.text(record.getMessage()),
        }
        for key, value in _extras(record).items():
            fields.setdefault(key, self._masker.value(key, value))
        if trace := _trace(record):
            fields["trace"] = self._masker.text(trace)
        return json.dumps(fields, ensure_ascii=True)


def _one_line(text: str) -> str:
    """Make line ends and control characters visible, so that no text can forge a record."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in text
    )
