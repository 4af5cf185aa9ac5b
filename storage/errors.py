"""Everything that storage can raise.

StorageError
    StoreUnavailableError       temporary; the same call may succeed later
    StoreBusyError              the data directory belongs to another process
    RecordNotFoundError         (also LookupError)
    RecordConflictError         somebody else wrote first
    RecordFormatError           stored by a newer or unknown version, or damaged
    RecordRefusedError          (also ValueError) no database can hold this record
"""

from __future__ import annotations


class StorageError(Exception):
    """Base of all errors of this package."""


class StoreUnavailableError(StorageError):
    """The database does not answer now; nothing is known about the effect of the call.

    Attributes:
        detail: What the driver said, without credentials.
    """

    def __init__(self, detail: str) -> None:
        self.detail = detail
        super().__init__(f"the database does not answer: {detail}; the call may be repeated")


class StoreBusyError(StorageError):
    """The data directory is in use by another process.

    Attributes:
        path: The data directory.
        holder: Process id of the holder, as it wrote it; empty when unknown.
    """

    def __init__(self, path: str, holder: str = "") -> None:
        self.path = path
        self.holder = holder
        who = f" (process {holder})" if holder else ""
        super().__init__(
            f"the data directory {path} is in use by another Countersign{who}; stop that one, "
            "choose another COUNTERSIGN_DATA_DIR, or set MONGODB_URI to run several"
        )


class RecordNotFoundError(StorageError, LookupError):
    """No record has this id.

    Attributes:
        kind: What was looked for, such as `approval`.
        record_id: Its id.
    """

    def __init__(self, kind: str, record_id: str) -> None:
        self.kind = kind
        self.record_id = record_id
        super().__init__(f"no {kind} has the id {record_id!r}")


class RecordConflictError(StorageError):
    """Another writer was first, or the record is no longer as expected.

    Attributes:
        kind: What was to be written, such as `approval`.
        record_id: Its id.
    """

    def __init__(self, kind: str, record_id: str) -> None:
        self.kind = kind
        self.record_id = record_id
        super().__init__(f"the {kind} {record_id!r} was changed by somebody else; read it again")


class RecordFormatError(StorageError):
    """A stored record cannot be read: unknown schema version, or a damaged field.

    Attributes:
        kind: What was read, such as `approval`.
        version: The version found.
        fault: What is wrong with it; empty when the version is unknown.
    """

    def __init__(self, kind: str, version: object, fault: str = "") -> None:
        self.kind = kind
        self.version = version
        self.fault = fault
        super().__init__(
            f"a stored {kind} cannot be read: {fault}"
            if fault
            else f"a stored {kind} has the unknown schema version {version!r}; "
            "it was written by another release of Countersign"
        )


class RecordRefusedError(StorageError, ValueError):
    """The record cannot be stored, now or later: too large, or text that is not valid Unicode.

    Attributes:
        detail: What is wrong with it.
    """

    def __init__(self, detail: str) -> None:
        self.detail = detail
        super().__init__(f"the record cannot be stored: {detail}")
