"""Store flat dataclasses as documents, until each of them is a document itself.

A flat record is a dataclass without nested parts; some of its fields hold JSON as text. Here such
a class is given a document of the same fields, and each change is a function of the record.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Annotated, Any, Generic, TypeVar, get_type_hints

from cachetools import LRUCache
from pydantic import AfterValidator, create_model

from storage.documents import (
    WORK_FIELDS,
    Collection,
    Document,
    Place,
    Spec,
    Where,
    WorkDocument,
    update,
)
from storage.errors import RecordConflictError, RecordNotFoundError

R = TypeVar("R")

_KNOWN = 500
"""The most documents that a process remembers as it wrote or read them last."""

_RENAMED = {"revision": "shown_revision", "schema_json": "form_json"}
"""A flat record counts changes that people see, the revision of its document counts all writes; and
pydantic's models have a `schema_json` of their own."""


def flat_document(
    record: type[Any], spec: Spec, shapes: Mapping[str, object] | None = None
) -> type[Document]:
    """Make the document class of a flat record.

    Args:
        record: The dataclass.
        spec: Facts about the documents.
        shapes: By name of a field that holds JSON text, the type of what has to be in it.
    """
    hints = get_type_hints(record)
    base = WorkDocument if "fence" in hints else Document
    found: dict[str, Any] = {}
    for one in fields(record):
        if base is WorkDocument and one.name in WORK_FIELDS:
            continue
        hint: Any = hints[one.name]
        if shapes and one.name in shapes:
            hint = Annotated[hint, AfterValidator(_holds(shapes[one.name]))]
        default = ... if one.default is MISSING else one.default
        found[_RENAMED.get(one.name, one.name)] = (hint, default)
    made: type[Document] = create_model(f"{record.__name__}Document", __base__=base, **found)
    made.spec = spec
    return made


def _holds(shape: object) -> Callable[[str], str]:
    """Make the check that a text is empty, or holds JSON of a shape."""

    def check(text: str) -> str:
        found = json.loads(text) if text else None
        if text and not _is(found, shape):
            raise ValueError("it holds other JSON than it should")
        return text

    return check


def _is(found: object, shape: object) -> bool:
    if isinstance(shape, list):
        return isinstance(found, list) and all(_is(one, shape[0]) for one in found)
    return isinstance(found, shape)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class FlatPage(Generic[R]):
    """A part of a list of records; `last` as in `storage.documents.Page`."""

    records: list[R]
    last: Place | None


class FlatRecords(Generic[R]):
    """Records of one kind, over a collection of their documents.

    Args:
        collection: Where the documents are.
        record: The dataclass.
    """

    def __init__(self, collection: Collection[Any], record: type[R]) -> None:
        self.collection = collection
        self._record = record
        self._names = [(name, _RENAMED.get(name, name)) for name in _field_names(record)]
        self._known: LRUCache[str, Document] = LRUCache(_KNOWN)

    async def get(self, key: str) -> R:
        """Read a record; see `Collection.get`."""
        return self._read(await self.collection.get(key))

    async def insert(self, *records: R) -> frozenset[str]:
        """Insert records whose keys are free; return these keys."""
        documents = [self._document(one) for one in records]
        new = await self.collection.insert(*documents)
        for one in documents:
            if one.key in new:
                self._known[one.key] = one
        return new

    async def find(
        self,
        where: Where,
        *,
        sort: Sequence[str] = (),
        limit: int | None = None,
        after: Place | None = None,
        strict: bool = False,
    ) -> FlatPage[R]:
        """Read records; see `Collection.find`."""
        page = await self.collection.find(where, sort=sort, limit=limit, after=after, strict=strict)
        return FlatPage([self._read(one) for one in page.documents], page.last)

    async def due(self, *, now_ms: int, limit: int) -> list[R]:
        """Read records that are due and free, earliest first."""
        found = await self.collection.due(now_ms=now_ms, limit=limit)
        return [self._read(one) for one in found]

    async def claim(self, key: str, *, owner: str, now_ms: int, until_ms: int) -> R | None:
        """Take the lease of a record that is due and free."""
        found = await self.collection.claim(key, owner=owner, now_ms=now_ms, until_ms=until_ms)
        return None if found is None else self._read(found)

    async def change(self, key: str, change: Callable[[R], R | None], **options: Any) -> R | None:
        """Change a record by a pure function.

        Args:
            key: Which.
            change: None leaves the record as it is.
            options: Those of `storage.documents.update`.

        Returns:
            The record as stored; None when it was left as it is.

        Raises:
            RecordNotFoundError: There is no such record.
            RecordConflictError: The lease was lost.
        """

        def changed(document: Any) -> Any:
            record = change(self._flat(document))
            if record is None:
                return None
            return self._document(record).changed(revision=document.revision)

        found = self._known.get(key, key)
        try:
            stored = await update(self.collection, found, changed, **options)
        except (RecordConflictError, RecordNotFoundError):
            self._known.pop(key, None)
            raise
        return None if stored is None else self._read(stored)

    async def changed(self, key: str, change: Callable[[R], R | None], **options: Any) -> R | None:
        """Change a record; None, too, where there is none, or the lease was lost."""
        try:
            return await self.change(key, change, **options)
        except (RecordConflictError, RecordNotFoundError):
            return None

    def forget(self, key: str) -> None:
        """Forget how a record was: it is read before it is changed again."""
        self._known.pop(key, None)

    def _read(self, document: Any) -> R:
        self._known[document.key] = document
        return self._flat(document)

    def _flat(self, document: Any) -> R:
        return self._record(**{name: getattr(document, there) for name, there in self._names})

    def _document(self, record: R) -> Any:
        values = {there: getattr(record, name) for name, there in self._names}
        return self.collection.kind.model_construct(**values)


def _field_names(record: type[Any]) -> list[str]:
    return [one.name for one in fields(record)]
