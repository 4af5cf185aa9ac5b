"""Translate errors of the drivers: temporary ones, and those that need an operator."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

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

_TOO_LARGE = frozenset({10334, 17280, 17419, 17420})
"""MongoDB's error codes for a document or a key that is too large."""

_FAULTS: Mapping[int, Fault] = {
    11: Fault.REFUSED,  # UserNotFound
    13: Fault.REFUSED,  # Unauthorized
    18: Fault.REFUSED,  # AuthenticationFailed
    31: Fault.REFUSED,  # RoleNotFound
    8000: Fault.REFUSED,  # AtlasError
    14031: Fault.FULL,  # OutOfDiskSpace
    20: Fault.UNSUITED,  # IllegalOperation, such as retryable writes without a replica set
    59: Fault.UNSUITED,  # CommandNotFound
    115: Fault.UNSUITED,  # CommandNotSupported
    238: Fault.UNSUITED,  # NotImplemented
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
    code = _code_of(error)
    if isinstance(error, DocumentTooLarge) or code in _TOO_LARGE:
        return RecordRefusedError(detail)
    if not isinstance(error, PyMongoError):
        return RecordRefusedError(detail)
    if isinstance(error, ConfigurationError):
        return StoreBrokenError(detail, Fault.UNSUITED)
    fault = _FAULTS.get(code) if code is not None else None
    if fault is None:
        return StoreUnavailableError(detail)
    return StoreBrokenError(detail, Fault.FULL if _QUOTA in detail else fault)


def plain(said: str) -> str:
    """Return the host and the reason, without the driver's view of all servers and its limits."""
    return _LIMITS.sub("", _DUMP.sub("", said))


def _code_of(error: Exception) -> int | None:
    if isinstance(error, BulkWriteError):
        faults = (error.details or {}).get("writeErrors") or []
        return faults[0].get("code") if faults else error.code
    return error.code if isinstance(error, OperationFailure) else None
