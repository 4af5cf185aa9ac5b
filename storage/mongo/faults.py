"""Translate errors of the drivers: passing faults, and refusals that need an operator."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from bson.errors import BSONError
from pymongo.errors import (
    BulkWriteError,
    ConfigurationError,
    DocumentTooLarge,
    OperationFailure,
    PyMongoError,
)

from storage.errors import (
    Fault,
    RecordRefusedError,
    StorageError,
    StoreBrokenError,
    StoreUnavailableError,
)

TRANSLATED = (PyMongoError, BSONError, UnicodeError, OverflowError)
"""All exceptions that the drivers raise from an operation."""

PASSING = frozenset(
    {6, 7, 24, 43, 50, 64, 89, 91, 112, 133, 134, 189, 262}
    | {9001, 10107, 11600, 11601, 11602, 13435, 13436, 16500}
)
"""Codes of faults that pass: elections, shutdowns, time limits, locks, rate limits. The server
refuses with every other code, and would refuse again.
"""

_PASSING_LABELS = ("RetryableWriteError", "TransientTransactionError")

_TOO_LARGE = frozenset({10334, 17280, 17419, 17420})
"""MongoDB's error codes for a document or a key that is too large."""

_FAULTS: Mapping[int, Fault] = {
    11: Fault.REFUSED,  # UserNotFound
    13: Fault.REFUSED,  # Unauthorized
    18: Fault.REFUSED,  # AuthenticationFailed
    31: Fault.REFUSED,  # RoleNotFound
    8000: Fault.REFUSED,  # AtlasError
    14031: Fault.FULL,  # OutOfDiskSpace
}
"""Refusals with a cause of their own. Every other one is `Fault.UNSUITED`."""

_NO_RETRIES = (
    "make the server a replica set (one member is enough); for a service without retryable "
    "writes, add retryWrites=false to the address"
)
_OTHER_INDEX = "drop that index; the bot creates its own at its next start"
_REMEDIES: Mapping[int, str] = {
    20: _NO_RETRIES,  # IllegalOperation: transaction numbers on a standalone server
    301: _NO_RETRIES,  # Amazon DocumentDB
    68: "report this as a bug, with the server's name and version",
    85: _OTHER_INDEX,  # IndexOptionsConflict
    86: _OTHER_INDEX,  # IndexKeySpecsConflict
}

_QUOTA = "space quota"
"""Part of the message of Atlas if the quota is used up. The error code is the code of a failed
login, so only the text distinguishes them.
"""

_DUMP = re.compile(r", Timeout: [0-9.]+s, Topology Description: .*\Z", re.DOTALL)
_LIMITS = re.compile(r" \(configured timeouts: [^)]*\)")


def store_error(error: Exception, clean: Callable[[str], str]) -> StorageError:
    """Convert an error of a driver to a storage error.

    Args:
        error: One of `TRANSLATED`.
        clean: Removes credentials from a text.
    """
    detail = clean(plain(str(error)))
    answer = _answer_of(error)
    code = answer.get("code")
    if isinstance(error, DocumentTooLarge) or code in _TOO_LARGE:
        return RecordRefusedError(detail)
    if not isinstance(error, PyMongoError):
        return RecordRefusedError(detail)
    if isinstance(error, ConfigurationError):
        return StoreBrokenError(detail, Fault.UNSUITED)
    is_passing = code in PASSING or any(map(error.has_error_label, _PASSING_LABELS))
    if not answer or is_passing:
        return StoreUnavailableError(detail)
    text = str(answer.get("errmsg") or error)
    name = f" ({answer['codeName']})" if answer.get("codeName") else ""
    if not isinstance(code, int):
        return StoreBrokenError(clean(f"the server refuses this: {text}"), Fault.UNSUITED)
    detail = clean(f"the server refuses this with code {code}{name}: {text}")
    fault = Fault.FULL if _QUOTA in text else _FAULTS.get(code, Fault.UNSUITED)
    return StoreBrokenError(detail, fault, remedy=_REMEDIES.get(code, ""))


def is_timeout(error: StoreUnavailableError) -> bool:
    """Whether an operation ended because it took too long."""
    cause = error.__cause__
    return isinstance(cause, TimeoutError) or (isinstance(cause, PyMongoError) and cause.timeout)


def plain(text: str) -> str:
    """Return the host and the reason, without the driver's view of all servers and its limits."""
    return _LIMITS.sub("", _DUMP.sub("", text))


def _answer_of(error: Exception) -> Mapping[str, Any]:
    """Return what the server said about its refusal; empty if the error is none."""
    if not isinstance(error, OperationFailure):
        return {}
    details = error.details or {}
    if isinstance(error, BulkWriteError):
        faults = details.get("writeErrors") or details.get("writeConcernErrors") or []
        return dict(faults[0]) if faults else {}
    return {"code": error.code, "errmsg": error.args[0] if error.args else "", **details}
