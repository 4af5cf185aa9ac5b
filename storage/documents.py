"""Documents: typed records in collections, and `update`, which changes one record.

A collection stores the body of each document. It keeps further columns beside the body: the
revision, the quarantine mark and, for work, the due time and the lease. A claim does not change the
body, so it never conflicts with a vote. A document whose body is unreadable can still be
quarantined.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import json
import logging
import math
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Generic, Self, TypeAlias, TypeVar, cast, get_args
from weakref import WeakValueDictionary

from cachetools import LRUCache
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    JsonValue,
    PlainSerializer,
    PlainValidator,
    ValidationInfo,
)
from pydantic.fields import FieldInfo
from pydantic_core import PydanticSerializationError, to_json

from agents.core.codec import to_text, well_formed
from agents.core.digest import check_keys
from agents.core.errors import UnstorableValueError
from storage.errors import (
    RecordConflictError,
    RecordFormatError,
    RecordNotFoundError,
    RecordRefusedError,
    StorageError,
)

logger = logging.getLogger(__name__)

Value: TypeAlias = str | int | bool | None
Where: TypeAlias = Mapping[str, object]
"""Conditions by field name: a value, or a mapping from an operator to a value.

The operators are `$lt`, `$lte`, `$gt`, `$gte`, `$ne` and `$in`. The name `id` means the key of the
document. A name with dots means a field of a nested part.
"""
Row: TypeAlias = Mapping[str, Any]
Body: TypeAlias = dict[str, Any]
"""The stored fields of a document as JSON data, without default values and columns."""

MAX_REASON = 300
"""Maximum length of the stored reason for a quarantine, in characters."""

PATIENCE_S = 2.0
"""Maximum time to retry a change after conflicts with other processes, in seconds."""

SOON_MS = 600_000
"""How far ahead retries and ends of leases lie at most, in milliseconds."""

LONGEST_DUE_MS = 20 * 365 * 24 * 3_600_000
"""A later due time is damage: no setting and no policy has longer times than ten years."""

_TEXTS = ({"$gte": ""},)
"""Conditions for texts, where a number belongs."""

LONGEST_LEASE_MS = 60_000
"""Longest lease that a process takes, in milliseconds."""

_LONGEST_PAUSE_S = 0.05

_PAGE = 500

_KNOWN = 500
"""Maximum number of documents of a collection that a process caches."""


@dataclass(frozen=True, slots=True)
class Index:
    """An index of a collection: for finds by equality, then sort, then range.

    Attributes:
        fields: The indexed fields, ascending. The key of the document follows them, because it ends
            every sort. Documents are found by indexed fields only.
        where: Condition of a partial index in SQLite. In MongoDB, which indexes all documents, the
            fields with one value come first.
    """

    fields: tuple[str, ...] = ()
    where: Where = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """Describes the documents of one collection to the storage engines.

    Attributes:
        name: Name of the collection.
        noun: Word for one document, for error messages.
        key: The field that identifies a document.
        version: Schema version; one higher with each change that needs a migration.
        indexes: The indexes of the collection.
        content: Fields that rarely change. SQLite stores them apart and only writes them, and their
            indexes, when they change.
    """

    name: str
    noun: str
    key: str = "id"
    version: int = 1
    indexes: tuple[Index, ...] = ()
    content: frozenset[str] = frozenset()


_TEXT = AfterValidator(well_formed)

Text: TypeAlias = Annotated[str, _TEXT]
"""Free text of people, models and programs. Half of a surrogate pair, which no database can hold,
becomes U+FFFD."""


def _read_free(value: object, info: ValidationInfo) -> object:
    if info.mode != "json":
        return _copy_free(value)
    if not isinstance(value, str):
        raise ValueError("free JSON is stored as a text")  # noqa: TRY004 - pydantic takes ValueError
    return _parse_free(value)


def _read_object(value: object, info: ValidationInfo) -> object:
    return _object(_read_free(value, info))


def _object(value: object) -> object:
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")  # noqa: TRY004 - as above
    return value


def _copy_free(value: object) -> object:
    """Return a copy, so that nobody outside can change what a document has."""
    try:
        check_keys(value)
    except (TypeError, RecursionError) as error:
        raise ValueError(f"not JSON data: {error}") from error
    return _parse_free(_free_text(value))


def _parse_free(text: str) -> object:
    try:
        return _STRICT.decode(text)
    except RecursionError as error:
        raise ValueError("free JSON is nested too deep") from error


def _free_text(value: object) -> str:
    try:
        return to_text(value)
    except UnstorableValueError as error:
        raise ValueError(f"not JSON data: {error}") from error


def _refuse(name: str) -> object:
    raise ValueError(f"{name} is not JSON data")


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else cast("float", _refuse(text))


_STRICT = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)
"""Made once: `json.loads` would make another for each text."""

_FREE = PlainValidator(_read_free, json_schema_input_type=str)
_OBJECT = PlainValidator(_read_object, json_schema_input_type=str)
_AS_TEXT = PlainSerializer(_free_text, return_type=str, when_used="json")

FreeJson = Annotated[JsonValue, _FREE, _AS_TEXT]
"""JSON of any shape, with keys that people or programs choose.

It is stored as a text, because MongoDB does not take every key, nor every number. The text is
parsed once, when the record is read. NaN is refused. Nobody changes the value in place: records are
shared.
"""

FreeObject = Annotated[dict[str, JsonValue], _OBJECT, _AS_TEXT]
"""A JSON object; see `FreeJson`."""


class Part(BaseModel):
    """A nested part of a document: immutable and strictly validated."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    def changed(self, **changes: Any) -> Self:
        """Return a copy with other values in some fields.

        Raises:
            TypeError: A field does not exist.
            ValueError: A value of free JSON is not JSON data.
        """
        cleaners = _cleaners(type(self))
        if unknown := changes.keys() - cleaners.keys():
            raise TypeError(f"{type(self).__name__} has no field {', '.join(sorted(unknown))}")
        for name, value in changes.items():
            if (clean := cleaners[name]) is not None:
                changes[name] = clean(value)
        return self.model_copy(update=changes)

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """Return itself: it is immutable. Pydantic copies default values with this."""
        return self


@functools.cache
def _cleaners(kind: type[Part]) -> Mapping[str, Callable[[Any], object] | None]:
    """Return what each field makes of a new value: None for fields without free text or JSON."""
    return {name: _cleaner(model_field) for name, model_field in kind.model_fields.items()}


def _cleaner(model_field: FieldInfo) -> Callable[[Any], object] | None:
    marks = [*model_field.metadata, *_marks(model_field.annotation)]
    if _TEXT in model_field.metadata:
        return well_formed
    if _OBJECT in marks:
        return lambda value: None if value is None else _object(_copy_free(value))
    return _copy_free if _FREE in marks else None


def _marks(annotation: object) -> Iterator[object]:
    """Yield the metadata of the types in a union."""
    for choice in get_args(annotation):
        yield from getattr(choice, "__metadata__", ())


class Document(Part):
    """A stored record.

    Each write increments `revision` and names the revision it replaces.
    """

    spec: ClassVar[Spec]

    revision: int = 0

    @property
    def key(self) -> str:
        """The value that identifies the document in its collection."""
        return str(getattr(self, self.spec.key))


class WorkDocument(Document):
    """A document that a worker processes when it is due.

    The four fields are columns beside the body. A write of the document only changes `due_ms`, and
    only if the caller changed it. `claim` and `release` write the lease.
    """

    due_ms: int | None = None
    """Time at which a worker has to process the document; None for never."""
    leased_by: str = ""
    leased_until_ms: int = 0
    fence: int = 0
    """Fencing token: each claim increments it."""


AS_IT_IS = -1
"""Value for a due time that the write must not change."""


def is_leased(until_ms: object, now_ms: int) -> bool:
    """Whether the stored end of a lease means that a process works on the record.

    A value that is no number, or that lies further ahead than a lease and two differing clocks
    explain, is damage, or the trace of a wrong clock. It must not block the record for ever.
    """
    if isinstance(until_ms, bool) or not isinstance(until_ms, int | float):
        return False
    return now_ms < until_ms <= now_ms + 2 * LONGEST_LEASE_MS


WORK_FIELDS = frozenset({"due_ms", "leased_by", "leased_until_ms", "fence"})


def due_of(document: Document) -> int | None:
    """Return the time at which a worker has to process a document; None for never."""
    return document.due_ms if isinstance(document, WorkDocument) else None


D = TypeVar("D", bound=Document)

Place: TypeAlias = tuple[object, ...]
"""End of a page: the values of the sort fields, and the key."""


@dataclass(frozen=True, slots=True)
class Page(Generic[D]):
    """One page of a list.

    Attributes:
        documents: The readable documents of the page.
        last: Place of the last document; None at the end of the list.
    """

    documents: list[D]
    last: Place | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """A document that this release cannot read. It stays stored, and lists omit it.

    Attributes:
        kind: Kind of document, such as `approval`.
        record_id: Id of the document.
        why: What is wrong with the document. For a thread, also which of its records are
            unreadable.
    """

    kind: str
    record_id: str
    why: str


class Collection(ABC, Generic[D]):
    """Documents of one kind. The collection does not know what they mean.

    The engine implements the methods whose names begin with `_`. Each may raise
    `StoreUnavailableError`. A list that meets an unreadable document quarantines it: the collection
    logs it once, and this release then omits it.

    Args:
        kind: The class of the documents.

    Attributes:
        known: Cache: the documents as this process last read or wrote them.
        may_claim: Whether this process may claim documents: not while its clock is wrong.
    """

    _damaged_leases: ClassVar[tuple[object, ...]] = _TEXTS
    """Conditions of the ends of leases that are no numbers."""

    def __init__(self, kind: type[D]) -> None:
        self.kind = kind
        self.known: LRUCache[str, D] = LRUCache(_KNOWN)
        self.may_claim = True
        self._is_work = issubclass(kind, WorkDocument)
        self._body_fields = kind.model_fields.keys() - columns_of(kind)
        self._reader = reader_of(kind)

    async def get(self, key: str) -> D:
        """Read one document.

        Raises:
            RecordNotFoundError: No document has this key.
            RecordFormatError: The document is unreadable.
        """
        rows = await self._rows({"id": key}, ["id"], limit=1)
        if not rows:
            raise RecordNotFoundError(self.kind.spec.noun, key)
        return self._parse(rows[0])

    async def insert(self, *documents: D) -> frozenset[str]:
        """Insert documents in one statement, except for existing keys; return the new keys.

        Raises:
            RecordRefusedError: A document cannot be stored.
            ValueError: A document would be unreadable.
        """
        new = await self._insert([(document, readable_body(document)) for document in documents])
        self.known.update({inserted.key: inserted for inserted in documents if inserted.key in new})
        return new

    async def replace(
        self,
        document: D,
        *,
        based_on: D,
        fence: int | None = None,
        writes_due: bool = False,
        releases: bool = False,
    ) -> D:
        """Write a document unless another writer changed it since `based_on` was read.

        Args:
            document: The new state.
            based_on: The document as it was read.
            fence: Fencing token of the lease that the caller must still have; None for no lease.
            writes_due: Whether to write the due time even if it equals that of `based_on`. A worker
                may have changed the column since.
            releases: Whether the write also releases the lease.

        Returns:
            The stored document, with the next revision and the given `fence`.

        Raises:
            RecordConflictError: Another writer was first, or the lease was lost.
            RecordRefusedError: The document cannot be stored.
            ValueError: The document would be unreadable.
        """
        # `document` may have been read before the claim
        held_by = {} if fence is None else {"fence": fence}
        no_lease = _NO_LEASE if releases else {}
        new = document.changed(revision=based_on.revision + 1, **held_by, **no_lease)
        body = readable_body(new)
        where = {"id": new.key, "revision": based_on.revision, "v": self.kind.spec.version}
        changes: dict[str, Value] = {"revision": new.revision, **no_lease}
        if writes_due or due_of(new) != due_of(based_on):
            changes["due_ms"] = due_of(new)
        held = {} if fence is None else _held(fence)
        differing = frozenset(
            name for name in self._body_fields if getattr(new, name) is not getattr(based_on, name)
        )
        if not await self._change(where | held, changes, (body, differing)):
            self.known.pop(new.key, None)
            raise RecordConflictError(self.kind.spec.noun, new.key)
        self.known[new.key] = new
        return new

    async def find(
        self,
        where: Where,
        *,
        sort: Sequence[str] = (),
        limit: int | None = None,
        after: Place | None = None,
        strict: bool = False,
    ) -> Page[D]:
        """Read documents by indexed fields.

        Args:
            where: Conditions that the documents must meet.
            sort: Sort fields, then the key. With `-` before each field, the order is descending.
                Sort fields are never None.
            limit: Maximum number of documents; None for all.
            after: End of the previous page.
            strict: Whether an unreadable document raises an error. Otherwise the list omits it.

        Raises:
            RecordFormatError: A document is unreadable, and `strict` is true.
        """
        if not strict:
            where = {**where, "quarantined_by": {"$ne": self._reader}}
        names, is_down = _sorting(sort)
        documents: list[D] = []
        before: Sequence[Row] = ()
        while limit is None or len(documents) < limit:
            size = _PAGE if limit is None else limit - len(documents)
            rows = await self._rows(where, names, limit=size, after=after, is_down=is_down)
            read = await self._read(rows, strict=strict)
            documents += read
            if len(rows) < size:
                return Page(documents)
            if read:
                after = _place_of(read[-1], names)
            elif rows == before:  # not quarantined: the database is open for reading only
                after = self._place(rows[-1], names)
                if after is None:
                    return Page(documents)
            # If no row was readable, the next query has the same start, because their sort fields
            # may be damaged. They are quarantined now, so that query omits them.
            before = rows
        return Page(documents, after)

    async def places(
        self, where: Where, *, sort: Sequence[str] = (), limit: int, after: Place | None = None
    ) -> list[Place]:
        """List the places of documents without parsing them, so unreadable ones are included.

        The parameters are those of `find`.

        Returns:
            For each document, the values of its sort fields, and its key.
        """
        names, is_down = _sorting(sort)
        rows = await self._rows(where, names, limit=limit, after=after, is_down=is_down)
        return [place for row in rows if (place := self._place(row, names)) is not None]

    async def count(self, where: Where, *, with_quarantined: bool = False) -> int:
        """Count documents."""
        passed_over = {} if with_quarantined else {"quarantined_by": {"$ne": self._reader}}
        return await self._count({**where, **passed_over})

    @abstractmethod
    async def delete(self, where: Where, *, limit: int) -> int:
        """Delete up to `limit` documents; return the number deleted."""

    async def due(self, *, now_ms: int, limit: int) -> Sequence[D]:
        """Read documents that are due and not leased, earliest first."""
        names = ["due_ms", "id"]
        documents: list[D] = []
        after: Place | None = None
        while self.may_claim and len(documents) < limit:
            size = limit - len(documents)
            rows = await self._rows(self._is_due(now_ms), names, limit=size, after=after)
            documents += await self._read(rows)
            after = self._place(rows[-1], names) if len(rows) == size else None
            if after is None:
                break
        return documents

    async def claim(self, key: str, *, owner: str, now_ms: int, until_ms: int) -> D | None:
        """Claim a document that is due and not leased. It is due again when the lease ends.

        Returns:
            The document with its lease; None if it is not due, is leased, or is unreadable.
        """
        if not self.may_claim:
            return None
        lease: dict[str, Value] = {
            "leased_by": owner,
            "leased_until_ms": until_ms,
            "due_ms": until_ms,
        }
        row = await self._claim({"id": key, **self._is_due(now_ms)}, {**lease, **_NO_MARK})
        return next(iter(await self._read([row] if row else [])), None)

    async def claim_at_rest(
        self, key: str, where: Where, *, owner: str, now_ms: int, until_ms: int
    ) -> int | None:
        """Claim a document that no worker processes, if it meets `where`.

        The document may be unreadable. It must not be due, unless it is quarantined: a quarantined
        document may be due, and the claim then removes its due time.

        Returns:
            The fencing token; None if the document could not be claimed.
        """
        if not self.may_claim:
            return None
        free = {"id": key, "leased_until_ms": {"$lte": now_ms}}
        lease: dict[str, Value] = {"leased_by": owner, "leased_until_ms": until_ms}
        row = await self._claim({**where, **free, "due_ms": None}, lease)
        if row is None:
            lease["due_ms"] = None
            row = await self._claim({**free, "quarantined_by": self._reader}, lease)
        return None if row is None else int(self._columns(row)["fence"])

    async def release(self, key: str, *, fence: int, due_ms: int | None = AS_IT_IS) -> bool:
        """Release a lease and set the next due time; return False if the lease was lost.

        Without `due_ms`, the due time does not change.
        """
        due = {} if due_ms == AS_IT_IS else {"due_ms": due_ms}
        return await self._change({"id": key, **_held(fence)}, {**_NO_LEASE, **due})

    async def extend(self, key: str, *, fence: int, until_ms: int) -> bool:
        """Renew a lease; return False if the lease was lost."""
        return await self._change({"id": key, **_held(fence)}, {"leased_until_ms": until_ms})

    async def end_false_leases(self, *, now_ms: int) -> None:
        """End the leases that no process can have; see `is_leased`. Their work is due now.

        Work whose due time is a text, or too far away, is due now, too: else it would never be.
        """
        if not self._is_work:
            return
        await self._end_false_dues(now_ms)
        furthest = now_ms + 2 * LONGEST_LEASE_MS
        for false in ({"$gt": furthest}, *self._damaged_leases):
            where = {"leased_until_ms": false}
            for row in await self._rows(where, ["leased_until_ms", "id"], limit=_PAGE):
                key = self._body(row)[0]
                if not self._has_columns(row):
                    await self._read([row])
                elif await self._change({"id": key, **where}, {**_NO_LEASE, "due_ms": now_ms}):
                    logger.warning(
                        "a lease of %s %s could not be right, and was ended",
                        self.kind.spec.noun,
                        key,
                        extra={"action": "lease_failed"},
                    )

    async def _end_false_dues(self, now_ms: int) -> None:
        for damaged in ({"$gt": now_ms + LONGEST_DUE_MS}, *_TEXTS):
            where = {"due_ms": damaged}
            for row in await self._rows(where, ["due_ms", "id"], limit=_PAGE):
                key = self._body(row)[0]
                if await self._change({"id": key, **where}, {"due_ms": now_ms}):
                    logger.warning(
                        "the due time of %s %s could not be right; it is due now",
                        self.kind.spec.noun,
                        key,
                        extra={"action": "lease_failed"},
                    )

    async def hasten(self, *, now_ms: int, before_ms: int) -> None:
        """Make work due that was due about when the clock was put back.

        Retries and ends of leases would otherwise come as late as the clock was put back. Work that
        is due too early does no harm.

        Args:
            now_ms: The time now.
            before_ms: The time before the clock was put back.
        """
        first = max(before_ms - SOON_MS, now_ms + 1)
        about = {"$gte": first, "$lte": before_ms + SOON_MS}
        if self._is_work:
            await self._change({"due_ms": about}, {"due_ms": now_ms}, many=True)

    async def quarantine(self, key: str, *, why: str, fence: int | None = None) -> bool:
        """Quarantine a document because it, or a record that belongs to it, is unreadable.

        This also releases the lease.

        Returns:
            False if `fence` is given and that lease was lost.
        """
        mark: dict[str, Value] = {
            "quarantined_by": self._reader,
            "quarantine_reason": why[:MAX_REASON],
        }
        held = {} if fence is None else _held(fence)
        return await self._change(
            {"id": key, **held}, {**mark, **(_NO_LEASE if self._is_work else {})}
        )

    async def count_quarantined(self) -> int:
        """Count the documents that this release has quarantined."""
        return await self._count({"quarantined_by": self._reader})

    async def unreadable(self, *, limit: int) -> Sequence[Unreadable]:
        """Check all documents and return the ones that this release cannot read.

        Changes nothing.
        """
        unreadable: list[Unreadable] = []
        after: Place | None = None
        while len(unreadable) < limit:
            rows = await self._rows({}, ["id"], limit=_PAGE, after=after)
            for row in rows:
                why = self._why_unreadable(row)
                if why and len(unreadable) < limit:
                    noun, key = self.kind.spec.noun, self._body(row)[0]
                    unreadable.append(Unreadable(kind=noun, record_id=key, why=why))
            after = self._place(rows[-1], ["id"]) if len(rows) == _PAGE else None
            if after is None:
                break
        return unreadable

    async def recheck(self) -> None:
        """Lift the quarantine of this release, because documents may have been repaired."""
        await self._change({"quarantined_by": self._reader}, _NO_MARK, many=True)

    def _why_unreadable(self, row: Row) -> str:
        try:
            self._parse(row)
        except RecordFormatError as error:
            return str(error)
        by, why = self._mark(row)
        return str(why) if by == self._reader else ""

    async def _read(self, rows: Iterable[Row], *, strict: bool = False) -> list[D]:
        documents: list[D] = []
        for row in rows:
            try:
                documents.append(self._parse(row))
            except RecordFormatError as error:
                if strict:
                    raise
                await self._set_aside(row, error)
        return documents

    async def _set_aside(self, row: Row, error: RecordFormatError) -> None:
        logger.error(
            "quarantined an unreadable record: %s; run `countersign doctor` for details",
            error,
            extra={"action": "set_aside"},
        )
        with suppress(StorageError):  # a failure is safe: the next reader quarantines it
            if not self._has_columns(row):
                await self._make_columns(row)
            await self.quarantine(self._body(row)[0], why=str(error))

    def _parse(self, row: Row) -> D:
        key, version, text = self._body(row)
        known = self.known.pop(key, None)
        columns = self._columns(row)
        document = read_document(self.kind, text, version=version, key=key, columns=columns)
        # This answer may be older than the cache: this process may have claimed or written since.
        is_late = known is not None and _age(known) > _age(document)
        self.known[key] = known if known is not None and is_late else document
        return document

    def _is_due(self, now_ms: int) -> dict[str, object]:
        return {
            "due_ms": {"$lte": now_ms},
            "leased_until_ms": {"$lte": now_ms},
            "quarantined_by": {"$ne": self._reader},
        }

    @abstractmethod
    async def _rows(
        self,
        where: Where,
        names: Sequence[str],
        *,
        limit: int,
        after: Place | None = None,
        is_down: bool = False,
    ) -> Sequence[Row]:
        """Read stored documents, sorted by some fields, that follow a place."""

    @abstractmethod
    async def _insert(self, documents: Sequence[tuple[D, Body]]) -> frozenset[str]:
        """See `insert`. Each document comes with its body."""

    @abstractmethod
    async def _change(
        self,
        where: Where,
        changes: Mapping[str, Value],
        body: tuple[Body, frozenset[str]] | None = None,
        *,
        many: bool = False,
    ) -> bool:
        """Set columns of one document and, optionally, replace its body.

        Args:
            where: Selects the document, and is the condition of the change.
            changes: New values of columns.
            body: The new body, and the names of the fields that may differ from the stored one;
                None to keep the body.
            many: Whether to change all documents that meet `where`.
        """

    @abstractmethod
    async def _claim(self, where: Where, changes: Mapping[str, Value]) -> Row | None:
        """Set columns of one document, increment its fencing token, and return the row."""

    @abstractmethod
    async def _count(self, where: Where) -> int:
        """Count documents, quarantined ones included."""

    @abstractmethod
    def _place(self, row: Row, names: Sequence[str]) -> Place | None:
        """Return the values of the sort fields and the key."""

    @abstractmethod
    def _body(self, row: Row) -> tuple[str, object, object]:
        """Return the key, the schema version and the body (JSON text unless damaged)."""

    @abstractmethod
    def _columns(self, row: Row) -> Row:
        """Return the columns beside the body that are fields of the document."""

    def _has_columns(self, row: Row) -> bool:  # noqa: ARG002 - for engines without columns
        """Return whether there is a place for the columns beside the body."""
        return True

    async def _make_columns(self, row: Row) -> None:
        """Make a place for the columns beside the body of a damaged row."""

    @abstractmethod
    def _mark(self, row: Row) -> tuple[object, object]:
        """Return the release that has quarantined the document, and the reason."""


_NO_LEASE: Mapping[str, Value] = {"leased_by": "", "leased_until_ms": 0}

_NO_MARK: Mapping[str, Value] = {"quarantined_by": "", "quarantine_reason": ""}


def _held(fence: int) -> dict[str, object]:
    return {"fence": fence, "leased_until_ms": {"$gt": 0}}


def _sorting(sort: Sequence[str]) -> tuple[list[str], bool]:
    """Return the sort fields, with the key last, and whether the order is descending."""
    is_down = bool(sort) and sort[0].startswith("-")
    return [*(name.removeprefix("-") for name in sort), "id"], is_down


def _place_of(document: Document, names: Sequence[str]) -> Place:
    """Return the values of the sort fields and the key."""
    place = (functools.reduce(getattr, name.split("."), document) for name in names[:-1])
    return (*place, document.key)


def _age(document: Document) -> tuple[int, int]:
    """Return a sort key for versions of one document.

    Writes only increment both numbers.
    """
    fence = document.fence if isinstance(document, WorkDocument) else 0
    return fence, document.revision


_locks: WeakValueDictionary[tuple[int, str], asyncio.Lock] = WeakValueDictionary()


async def update(  # noqa: PLR0913 - the parts of one write, given by name
    collection: Collection[D],
    target: D | str,
    change: Callable[[D], D | None],
    *,
    fence: int | None = None,
    writes_due: bool = False,
    releases: bool = False,
    patience_s: float = PATIENCE_S,
) -> D | None:
    """Change one document by a pure function of its current state.

    Writers in this process wait for each other at a lock. After a conflict with another process,
    the document is read again and `change` is called again, until a deadline.

    Args:
        collection: Collection of the document.
        target: The document, or its key. The first attempt uses the document, or the cached one,
            without a read. If `change` raises or returns None for it, the document is read and
            judged again, because the known state may be old.
        change: Returns the new document, or None to leave it. It must have no side effects, because
            it may be called several times. The caller gets the exceptions that it raises for the
            stored document.
        fence: Fencing token of the lease that the caller must have; None for no lease.
        writes_due: See `Collection.replace`.
        releases: See `Collection.replace`.
        patience_s: Maximum time to retry, in seconds.

    Returns:
        The stored document; None if `change` left the document unchanged.

    Raises:
        RecordNotFoundError: No document has this key.
        RecordFormatError: The document is unreadable.
        RecordConflictError: Other writers were first until the deadline, or the lease was lost.
    """
    key = target if isinstance(target, str) else target.key
    known = collection.known.get(key) if isinstance(target, str) else target
    lock = _locks.setdefault((id(collection), key), asyncio.Lock())
    deadline = asyncio.get_running_loop().time() + patience_s
    write = functools.partial(
        collection.replace, fence=fence, writes_due=writes_due, releases=releases
    )
    async with lock:
        if known is not None:
            with suppress(RecordConflictError):
                changed = _tried(change, known)
                if changed is not None:
                    return await write(changed, based_on=known)
        for attempt in range(1, 1_000_000):
            stored = await collection.get(key)
            changed = change(stored)
            if changed is None:
                return None
            try:
                return await write(changed, based_on=stored)
            except RecordConflictError:
                lost = fence is not None and isinstance(stored, WorkDocument)
                if lost and not _is_held(await collection.get(key), fence):
                    raise
                if asyncio.get_running_loop().time() > deadline:
                    raise
            longest = min(0.002 * 2**attempt, _LONGEST_PAUSE_S)
            await asyncio.sleep(random.random() * longest)  # noqa: S311 - jitter is no secret
    raise RecordConflictError(collection.kind.spec.noun, key)


async def update_or_none(
    collection: Collection[D], target: D | str, change: Callable[[D], D | None], **options: Any
) -> D | None:
    """Change one document.

    Return None also if it does not exist, or the write conflicts.

    Args:
        collection: See `update`.
        target: See `update`.
        change: See `update`.
        options: Further options of `update`.
    """
    try:
        return await update(collection, target, change, **options)
    except (RecordConflictError, RecordNotFoundError):
        return None


def _tried(change: Callable[[D], D | None], known: D) -> D | None:
    """Apply the change to a known state.

    Return None if it raises: the state may be outdated.
    """
    try:
        return change(known)
    except Exception:  # noqa: BLE001 - judged again by the stored document
        return None


def _is_held(document: Document, fence: int | None) -> bool:
    if not isinstance(document, WorkDocument):
        return False
    return document.fence == fence and document.leased_until_ms > 0


_INT64 = 1 << 63


@functools.cache
def columns_of(kind: type[Document]) -> frozenset[str]:
    """Return the fields that are columns beside the body."""
    return frozenset({"revision"}) | (WORK_FIELDS if issubclass(kind, WorkDocument) else set())


def _body_of(document: Document) -> Body:
    """Return the stored body of a document.

    Indexed fields are always included, because a missing value could not be found.

    Raises:
        RecordRefusedError: A value is not JSON data.
    """
    kind = type(document)
    try:
        body = document.model_dump(
            mode="json", exclude_defaults=True, exclude=set(columns_of(kind)), warnings=False
        )
    except ValueError as error:
        raise RecordRefusedError(f"the {kind.spec.noun} is not JSON data") from error
    if any(isinstance(value, int) and not -_INT64 <= value < _INT64 for value in body.values()):
        raise RecordRefusedError(f"the {kind.spec.noun} has a number that is too large")
    return {**_indexed_defaults(kind), **body}


@functools.cache
def _indexed_defaults(kind: type[Document]) -> Body:
    """Return the default values of the key and the indexed fields as JSON data, without None."""
    names = {kind.spec.key, *indexed(kind)} & kind.model_fields.keys()
    return kind.model_construct().model_dump(
        mode="json", include=names, exclude_none=True, warnings=False
    )


@functools.cache
def indexed(kind: type[Document]) -> frozenset[str]:
    """Return the fields for conditions and sorting, without the engine's columns."""
    named = {name for index in kind.spec.indexes for name in (*index.fields, *index.where)}
    return frozenset(named) - {"id"} - (WORK_FIELDS if issubclass(kind, WorkDocument) else set())


def read_document(kind: type[D], body: object, *, version: object, key: str, columns: Row) -> D:
    """Build a document from its stored body.

    Args:
        kind: The class of the document.
        body: JSON text.
        version: Schema version of the body.
        key: Key under which the body is stored. The body must contain the same key.
        columns: Columns beside the body that are fields of the document.

    Raises:
        RecordFormatError: The version is unknown, or the body is invalid.
    """
    if version != kind.spec.version:
        raise RecordFormatError(kind.spec.noun, version, record_id=key)
    try:
        document = kind.model_validate_json(body)  # type: ignore[arg-type] # refused if no text
        document = document.model_copy(update=_checked(columns))
    except (ValueError, TypeError, RecursionError) as error:
        fault = fault_of(error)
        raise RecordFormatError(kind.spec.noun, version, fault, record_id=key) from error
    if document.key != key:
        fault = f"field {kind.spec.key!r} is damaged"
        raise RecordFormatError(kind.spec.noun, version, fault, record_id=key)
    return document


def readable_body(document: Document) -> Body:
    """Return the body of a document, and refuse it if it could not be read again.

    `changed` does not check the values.

    Raises:
        RecordRefusedError: A value is not JSON data.
        ValueError: A value does not have the type of its field.
    """
    kind = type(document)
    body = _body_of(document)
    try:
        text = to_json(body)
    except PydanticSerializationError as error:  # half of a surrogate pair
        raise RecordRefusedError(str(error)) from error
    try:
        kind.model_validate_json(text)
        _checked({name: getattr(document, name) for name in columns_of(kind)})
    except (ValueError, TypeError) as error:
        fault = f"a {kind.spec.noun} with this value could not be read again"
        raise ValueError(f"{fault}: {fault_of(error)}") from error
    return body


def _checked(columns: Row) -> dict[str, Any]:
    for name, value in columns.items():
        expected = str if name == "leased_by" else int
        is_right = isinstance(value, expected) and not isinstance(value, bool)
        if not is_right and not (name == "due_ms" and value is None):
            raise TypeError(name)
    return dict(columns)


def fault_of(error: Exception) -> str:
    """Return which field pydantic refused."""
    details = getattr(error, "errors", None)
    places = [".".join(map(str, detail["loc"])) for detail in details()] if details else []
    names = [place or "the whole" for place in places] or [str(error) or type(error).__name__]
    return f"field {names[0]!r} is damaged"


@functools.cache
def reader_of(kind: type[Document]) -> str:
    """Return a name for the schema that this release reads.

    Another schema has another name.
    """
    text = json.dumps([kind.spec.version, kind.model_json_schema()], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def operators(wanted: object) -> Mapping[str, object]:
    """Return the condition on one field as a mapping from operators to values."""
    return wanted if isinstance(wanted, Mapping) else {"$eq": wanted}
