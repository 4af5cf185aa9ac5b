"""The errors of storage.

StorageError
    StoreUnavailableError       temporary; the same call may succeed later
        StoreBrokenError        fails until an operator repairs it
    StoreBusyError              the data directory belongs to another process
    RecordNotFoundError         (also LookupError)
    RecordConflictError         another writer was first
    RecordFormatError           stored by a newer or unknown version, or damaged
    RecordRefusedError          (also ValueError) no database can hold this record
"""

from __future__ import annotations

from enum import StrEnum


class StorageError(Exception):
    """Base of all errors of the storage."""


class StoreUnavailableError(StorageError):
    """The database does not answer. It is unknown whether the call took effect.

    Attributes:
        detail: What the driver said, without credentials.
    """

    def __init__(self, detail: str) -> None:
        self.detail = detail
        super().__init__(f"the database does not answer: {detail}; the call may be repeated")


class Fault(StrEnum):
    """A fault of a database that a retry cannot fix."""

    DAMAGED = "damaged"  # the file's content is broken
    FOREIGN = "foreign"  # the file is not a database, or belongs to another program
    FULL = "full"  # no disk space is left
    READ_ONLY = "read_only"  # it cannot be written
    REFUSED = "refused"  # the login fails, or lacks a permission
    MISSING = "missing"  # the file existed before, but is gone or empty
    REPLACED = "replaced"  # the file is not the one that was opened
    ADDRESS = "address"  # the address of the database is not usable
    CLOCK = "clock"  # the clock of the server and ours differ too much
    KEY = "key"  # the audit is sealed with a key that is not given
    UNSUITED = "unsuited"  # the server refuses a command, or lacks a required guarantee


class StoreBrokenError(StoreUnavailableError):
    """The database must be repaired before it works. Repeated calls fail, too.

    It is a `StoreUnavailableError`, because due work stays due. After the repair, the due work
    continues.

    Attributes:
        detail: What the driver said, without credentials.
        fault: What is wrong.
        remedy: What the operator has to do, if this is known better than by `fault`.
    """

    def __init__(self, detail: str, fault: Fault, *, remedy: str = "") -> None:
        super().__init__(detail)
        self.fault = fault
        self.remedy = remedy
        self.args = (f"the database must be repaired before it can be used: {detail}",)


class StoreBusyError(StorageError):
    """Another process uses the data directory.

    Attributes:
        path: The data directory.
        holder: Process id that the other process wrote to the lock file; empty if unknown.
        is_replaced: Whether the database file was replaced since the other process opened it.
    """

    def __init__(self, path: str, holder: str = "", *, is_replaced: bool = False) -> None:
        self.path = path
        self.holder = holder
        self.is_replaced = is_replaced
        who = f" (process {holder})" if holder else ""
        super().__init__(
            f"the data directory {path} is in use by another Countersign{who}; stop that one, "
            "choose another COUNTERSIGN_DATA_DIR, or set MONGODB_URI to run several"
        )


class RecordNotFoundError(StorageError, LookupError):
    """The database has no record with this id.

    Attributes:
        kind: Kind of record, such as `approval`.
        record_id: Its id.
    """

    def __init__(self, kind: str, record_id: str) -> None:
        self.kind = kind
        self.record_id = record_id
        super().__init__(f"no {kind} has the id {record_id!r}")


class RecordConflictError(StorageError):
    """Another writer changed the record first.

    Attributes:
        kind: Kind of record, such as `approval`.
        record_id: Its id.
    """

    def __init__(self, kind: str, record_id: str) -> None:
        self.kind = kind
        self.record_id = record_id
        super().__init__(f"the {kind} {record_id!r} was changed by somebody else; read it again")


class RecordFormatError(StorageError):
    """A stored record cannot be read: its version is unknown, or a field is damaged.

    Attributes:
        kind: Kind of record, such as `approval`.
        version: The version found.
        fault: What is wrong with the record; empty if the version is unknown.
        record_id: Id of the record; empty if unknown.
    """

    def __init__(self, kind: str, version: object, fault: str = "", *, record_id: str = "") -> None:
        self.kind = kind
        self.version = version
        self.fault = fault
        self.record_id = record_id
        name = f"{kind} {record_id}" if record_id else kind
        super().__init__(
            f"a stored {name} cannot be read: {fault}"
            if fault
            else f"a stored {name} has the unknown schema version {version!r}; "
            "it was written by another release of Countersign"
        )


class RecordRefusedError(StorageError, ValueError):
    """The record cannot be stored: it is too large, not JSON data, or not valid Unicode.

    Attributes:
        detail: What is wrong with the record.
    """

    def __init__(self, detail: str) -> None:
        self.detail = detail
        super().__init__(f"the record cannot be stored: {detail}")
