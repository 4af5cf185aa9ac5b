"""The log: text or JSON, with masked secrets, and one line for each record.

Every record of the bot has an `action` (see docs/reference/log-actions.md) and, if known, the ids
of its subject (see `context.py`). Texts of people and models are not logged. An error that quotes
its input is logged without the input.
"""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, TextIO

from cachetools import LRUCache
from pydantic import ValidationError

from agents.core.codec import well_formed
from agents.core.errors import ModelError, ToolError
from bot.config.values import Log
from bot.observability.events import BotEvent, EntriesWritten, context
from bot.redaction.mask import mask, mask_text, mask_values
from bot.redaction.rules import NO_RULES, MaskRules, with_secrets

logger = logging.getLogger(__name__)

OUR_PACKAGES = ("agents", "bot", "storage")
"""The packages that may log below INFO: debug records of libraries contain whole messages and
tokens.
"""

_QUIET = ("apscheduler", "asyncio", "httpx", "httpx2", "aiohttp.access")
"""Libraries that log at every tick or call."""

_ADVICE = "As you gave `client` as well, `token` will be unused."

_NO_CONNECTION = "Failed to connect (error: "

_LONGEST_ERROR = 300
"""Length to which the text of an error is cut, in characters, because it may repeat input."""

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {
    "message",
    "asctime",
    "taskName",
    "secret_values",
}


def configure(log: Log, *, secrets: Sequence[str] = (), stream: TextIO | None = None) -> None:
    """Configure logging for this process; replaces an earlier configuration.

    Args:
        log: Level and format.
        secrets: Values that are masked everywhere.
        stream: The output; None for standard error.
    """
    handler = logging.StreamHandler(stream)
    masker = _Masker(with_secrets(NO_RULES, secrets))
    handler.setFormatter(_JsonFormatter(masker) if log.as_json else _TextFormatter(masker))
    handler.addFilter(_without_bodies)
    handler.addFilter(_without_advice)
    handler.addFilter(_without_known_traces)
    handler.addFilter(_with_action_and_ids)
    level = logging.getLevelNamesMapping()[log.level]
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(max(level, logging.INFO))
    for name in OUR_PACKAGES:
        logging.getLogger(name).setLevel(level)
    # Bolt and its SDK take their level from their own loggers and ignore the level of the root.
    for name in ("slack_bolt", "slack_sdk"):
        logging.getLogger(name).setLevel(max(level, logging.INFO))
    for name in _QUIET:
        logging.getLogger(name).setLevel(max(level, logging.WARNING))


_REMEMBERED = 1_000
"""Number of logged steps that a process remembers."""

_STEPS = frozenset(
    {"requested", "decided", "expired", "cancelled", "withdrawn", "denied", "superseded"}
    | {"undecidable", "allowed", "grant_used", "started", "executed"}
)
"""Acts of the audit with a line in the log: request, decision, start and end of a call."""


class StepLog:
    """Logs each step of a call by its ids, once, when the audit has it."""

    def __init__(self) -> None:
        self._logged: LRUCache[str, bool] = LRUCache(_REMEMBERED)

    def __call__(self, event: BotEvent) -> None:
        """Receive an event; see `TellEvent`."""
        for entry in event.entries if isinstance(event, EntriesWritten) else ():
            # Entries are appended again wherever a crash could have prevented them.
            if entry.action in _STEPS and entry.entry_id not in self._logged:
                self._logged[entry.entry_id] = True
                ids = {"thread_id": entry.thread_id, "approval_id": entry.approval_id}
                ids |= {name: str(entry.detail.get(name, "")) for name in ("address", "outcome")}
                known = {name: value for name, value in ids.items() if value}
                logger.info("%s", entry.action, extra={"action": "step", **known})


class _Masker:
    """Masks configured secrets and texts that look like secrets.

    It has its own rules, because the log is written after the process's rules are gone.
    """

    def __init__(self, rules: MaskRules) -> None:
        self._rules = rules

    def text(self, text: str, *, values: Sequence[str] = ()) -> str:
        rules = with_secrets(self._rules, values) if values else self._rules
        return mask_text(mask_values(well_formed(text), rules))

    def value(self, key: str, value: object) -> object:
        known = value if isinstance(value, bool | int | float | None) else self.text(str(value))
        return mask(key, known)


def _without_bodies(record: logging.LogRecord) -> bool:
    """Replace the text of records that quote unauthenticated input. Returns True."""
    if record.name.startswith("slack_bolt.") and "RequestVerification" in record.name:
        record.msg, record.args = "a request with a wrong signature or time was refused", None
    return True


def _without_advice(record: logging.LogRecord) -> bool:
    """Drop Bolt's record that it ignores the token in the environment: the client has the same."""
    return not (record.name.startswith("slack_bolt") and record.msg == _ADVICE)


def _without_known_traces(record: logging.LogRecord) -> bool:
    """Remove the traceback of failed connections in Slack's library.

    The text has the reason. The record repeats every few seconds while Slack is unreachable or
    refuses the token.
    """
    if record.name.startswith("slack_bolt") and str(record.msg).startswith(_NO_CONNECTION):
        record.exc_info = None
    return True


def _with_action_and_ids(record: logging.LogRecord) -> bool:
    """Add a missing action, and the ids of the context, to a record. Returns True."""
    package = record.name.partition(".")[0]
    if package in OUR_PACKAGES and "action" not in vars(record):
        record.action = package  # records of the runtime and the stores have no action
    for name, value in context().items():
        vars(record).setdefault(name, value)
    return True


def error_text(error: BaseException) -> str:
    """Return the text of an error, shortened, and without input that it may quote.

    Args:
        error: Any error. An error of pydantic is described by locations and types only, an error of
            a model or tool by the class of its cause.
    """
    if isinstance(error, ValidationError):
        places = (
            f"{'.'.join(map(str, details['loc'])) or 'all'}: {details['type']}"
            for details in error.errors(
                include_url=False, include_context=False, include_input=False
            )
        )
        text = f"{error.title}: {'; '.join(places)}"
    elif isinstance(error, ModelError | ToolError) and error.__cause__ is not None:
        # The text of a provider or a tool may repeat the conversation.
        status = getattr(error.__cause__, "status_code", "")
        text = f"{type(error).__name__}: {type(error.__cause__).__name__} {status}".rstrip()
    else:
        text = str(error)
    return text if len(text) <= _LONGEST_ERROR else f"{text[:_LONGEST_ERROR]}…"


def _message(record: logging.LogRecord) -> str:
    if not isinstance(record.args, tuple):
        return record.getMessage()
    arguments = (
        error_text(argument) if isinstance(argument, BaseException) else argument
        for argument in record.args
    )
    return str(record.msg) % tuple(arguments) if record.args else str(record.msg)


def _extras(record: logging.LogRecord) -> dict[str, Any]:
    return {key: value for key, value in vars(record).items() if key not in _STANDARD}


def _at(record: logging.LogRecord) -> str:
    at = datetime.fromtimestamp(record.created, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _trace(record: logging.LogRecord) -> str:
    error = record.exc_info[1] if record.exc_info else None
    parts = "".join(_traceback_lines(error)).rstrip() if error is not None else ""
    return "\n".join(part for part in (parts, record.stack_info) if part)


def _secret_values(record: logging.LogRecord) -> Sequence[str]:
    """Return the values that the author of a failed tool declared secret."""
    values: Sequence[str] = getattr(record, "secret_values", ())
    return values


def _traceback_lines(error: BaseException) -> Iterator[str]:
    """Yield the location and text of an error, after those of its cause."""
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None:
        yield from _traceback_lines(cause)
        yield "which led to:\n"
    yield from traceback.format_tb(error.__traceback__)
    yield f"{type(error).__qualname__}: {error_text(error)}\n"
    if isinstance(error, BaseExceptionGroup):
        for part in error.exceptions:
            yield from _traceback_lines(part)


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
            self._masker.text(_message(record)),
            *pairs,
        )
        line = _one_line(" ".join(word for word in words if word))
        trace = self._masker.text(_trace(record), values=_secret_values(record))
        return "\n".join([line, *(f"  {_one_line(part)}" for part in trace.splitlines())])


class _JsonFormatter(logging.Formatter):
    """One JSON object per record: at, level, logger, message, then the extras."""

    def __init__(self, masker: _Masker) -> None:
        super().__init__()
        self._masker = masker

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, object] = {
            "at": _at(record),
            "level": record.levelname,
            "logger": record.name,
            "message": self._masker.text(_message(record)),
        }
        for key, value in _extras(record).items():
            fields.setdefault(key, self._masker.value(key, value))
        if trace := _trace(record):
            fields["trace"] = self._masker.text(trace, values=_secret_values(record))
        return json.dumps(fields, ensure_ascii=True)


def _one_line(text: str) -> str:
    """Escape line ends and control characters, so that no text can forge a record."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in text
    )
