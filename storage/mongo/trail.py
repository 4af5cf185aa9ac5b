"""The audit chain in MongoDB: entries are appended unsealed, and sealed under a lease.

Each chain has a record with its last number and hash. A batch of seals is first written to this
record, conditional on the last number and on the lease, and then applied to the entries. Each
number is therefore assigned once, even if the lease expires. Where the server can, a unique partial
index guards the numbers, too; a cluster that is sharded by `_id` cannot have one. If a process
crashes between both writes, the next process applies the stored batch.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from storage.audit import AuditEntry
from storage.chain import PLAIN, Head, Seal, is_alg, is_hash
from storage.documents import Row, is_leased
from storage.errors import StorageError, StoreBrokenError
from storage.ledger import SEALED, check_alg, open_form, row_of, seal_for, tell_key_begins
from storage.mongo.collection import MongoLog
from storage.mongo.commands import Commands, Document, Filter, Update
from storage.trail import BY_TIME, IS_OPEN, PIECE, Trail

logger = logging.getLogger(__name__)

LEASE_MS = 15_000
"""Lease of a chain, in milliseconds. A crashed process delays the chain by at most this time;
sealing a batch takes far less.
"""

# The plain index of both fields has the other order: a cluster keeps that one.
_NUMBERS: tuple[str, Sequence[str], Filter] = ("chain", ("seq", "team_id"), {"seq": {"$gt": 0}})
"""Name, fields and filter of the index that guards the numbers."""


@dataclass(frozen=True, slots=True)
class _Held:
    """A chain whose lease is held."""

    team_id: str
    head: Head
    alg: str
    lease: Document

    @property
    def where(self) -> Filter:
        """Filter for the chain's record, if this process still has the lease."""
        head = {"seq": self.head.seq, "hash": self.head.hash}
        return {"_id": self.team_id, **head, **self.lease}

    def at(self, link: Mapping[str, object]) -> _Held:
        """Return the chain with another end, under the same lease."""
        return replace(self, head=_head(link), alg=str(link["alg"]))


class MongoTrail(Trail):
    """See `storage.trail.Trail`.

    Args:
        audit: The collection of entries.
        chains: The collection with one record per chain.
        probe: A collection for the check of the server's indexes.
        seal: Seals entries.
    """

    def __init__(self, audit: Commands, chains: Commands, probe: Commands, seal: Seal) -> None:
        super().__init__(MongoLog(audit, "entry_id"), seal)
        self._audit, self._chains, self._probe = audit, chains, probe
        self._checked: set[str] = set()

    async def append(self, *entries: AuditEntry) -> None:
        await self._log.append([row_of(entry, self._seal) for entry in entries])

    async def seal(self, *, owner: str, now_ms: int) -> int:
        total, fault = 0, None
        left_out: list[object] = []  # workspaces that cannot be sealed now do not hold up others
        last: list[object] = []
        while rows := await self._open_ones({"team_id": {"$nin": left_out}} if left_out else {}):
            before, last = last, [row["entry_id"] for row in rows]
            teams: dict[str, list[object]] = {}
            for row in rows:
                stored = teams.setdefault(_team_of(row), [])
                stored += {row.get("team_id")} - {*stored}
            for team, stored in sorted(teams.items()):
                try:
                    sealed = await self._seal_team(team, stored, owner, now_ms)
                except StorageError as error:
                    fault = fault or error
                    left_out += stored
                    continue
                total += sealed
                # Where all were foreign, and are marked now, the next read finds those behind.
                if not sealed and last == before:
                    left_out += stored
        if fault is not None:
            raise fault
        return total

    async def guard_numbers(self) -> None:
        """Let the server refuse a second entry with the same number, where it can.

        Raises:
            StoreUnavailableError: The server does not respond, or an index that hides entries
                cannot be dropped.
        """
        try:
            is_safe = await self._is_filter_honored()
            if is_safe:
                await self._audit.make_unique(*_NUMBERS)
        except StoreBrokenError as error:
            _tell_unguarded(error.detail)
            return
        if not is_safe:
            await self._audit.drop_index(_NUMBERS[0])  # earlier versions did not check
            _tell_unguarded("its partial indexes have all documents")

    async def _is_filter_honored(self) -> bool:
        """Whether the index of the numbers leaves out open entries, and reads still find these.

        Some compatible servers ignore the filter of an index. The second open entry of a workspace
        would then be a duplicate, and would be lost, because it seems to have been appended before.
        The documents of this check stay, so that any number of processes can check at once.
        """
        await self._probe.make_unique(*_NUMBERS)
        documents: list[Document] = [{"_id": name, "team_id": "T"} for name in ("a", "b", "c")]
        documents[0]["seq"] = 1
        await self._probe.insert_all(documents)
        return {*await self._probe.keys({**IS_OPEN, "team_id": "T"}, 3)} == {"b", "c"}

    async def heads(self) -> Mapping[str, Head]:
        chains = await self._chains.find({}, [("_id", 1)])
        return {
            str(each["_id"]): _head(each if _is_whole(each) else await self._last(str(each["_id"])))
            for each in chains
        }

    async def check_key(self) -> None:
        for chain in await self._chains.find({}, [("_id", 1)], names=["alg"]):
            check_alg(chain.get("alg"), self._seal)

    async def _open_ones(self, where: Filter) -> Sequence[Row]:
        return await self._log.read({**IS_OPEN, "foreign": None, **where}, BY_TIME, limit=PIECE)

    async def _seal_team(
        self, team_id: str, stored: Sequence[object], owner: str, now_ms: int
    ) -> int:
        chain = await self._take_chain(team_id, owner, now_ms)
        if chain is None:
            return 0
        # Read the open entries after the lease is acquired: another process may have sealed earlier
        # ones.
        batch = await self._batch(chain, stored)
        if batch and not await self._chains.update(
            {**chain.where, "batch": ""}, {"$set": {"batch": json.dumps(batch)}}
        ):
            return 0  # the lease expired, and another process continued the chain
        await self._finish(chain, batch)
        return len(batch)

    async def _take_chain(self, team_id: str, owner: str, now_ms: int) -> _Held | None:
        """Acquire the lease of a chain and apply a stored batch; None if the lease is taken."""
        document = await self._lease(team_id, owner, now_ms)
        if document is None:
            return None
        lease = {name: document[name] for name in ("leased_by", "fence")}
        if not _is_whole(document):
            # The record is damaged: find the end of the chain from the entries.
            mended = {**_where(await self._last(team_id)), "batch": ""}
            if not await self._chains.update({"_id": team_id, **lease}, {"$set": mended}):
                return None
            document = mended
        chain = _Held(team_id, _head(document), str(document["alg"]), lease)
        if document["batch"]:
            return await self._redo(chain, json.loads(document["batch"]))
        if team_id in self._checked:
            return chain
        self._checked.add(team_id)
        return await self._check(chain)

    async def _lease(self, team_id: str, owner: str, now_ms: int) -> Document | None:
        """Lease a chain with the next fencing token; return its record, or None if it is leased."""
        lease = {"leased_by": owner, "leased_until_ms": now_ms + LEASE_MS}
        stored = await self._chains.find({"_id": team_id}, [("_id", 1)], 1)
        if not stored:
            last = _where(await self._last(team_id))
            first = {"_id": team_id, **last, "batch": "", **lease, "fence": 1}
            return first if await self._chains.insert_own(first, mark="claim") else None
        (document,) = stored
        if is_leased(document.get("leased_until_ms"), now_ms):
            return None
        fence = document.get("fence", 0)
        lease["fence"] = fence + 1 if isinstance(fence, int) else now_ms  # damaged: start again
        where = {"_id": team_id, **{name: document.get(name) for name in ("leased_by", "fence")}}
        return await self._chains.claim(where, {"$set": lease}, mark="claim")

    async def _redo(self, chain: _Held, batch: Sequence[Document]) -> _Held | None:
        """Apply the batch of a crashed process; None if the lease was lost."""
        await self._apply(chain, batch)
        done = _where(batch[-1])
        if not await self._chains.update(chain.where, {"$set": {**done, "batch": ""}}):
            return None
        return chain.at(done)

    async def _check(self, chain: _Held) -> _Held | None:
        """Correct the chain's record if the last sealed entry is newer than the record.

        This happens after a restore whose collections are of different moments.
        """
        last = await self._last(chain.team_id)
        if int(last["seq"]) <= chain.head.seq:
            return chain
        if not await self._chains.update(chain.where, {"$set": _where(last)}):
            return None
        return chain.at(last)

    async def _last(self, team_id: str) -> Document:
        """Return the last sealed entry of a chain, or the start of an empty chain."""
        where: Filter = {"team_id": team_id, "seq": {"$gt": 0}}
        rows = await self._audit.find(where, [("seq", -1)], 1)
        return rows[0] if rows else {"seq": 0, "hash": Head().hash, "alg": PLAIN}

    async def _batch(self, chain: _Held, stored: Sequence[object]) -> list[Document]:
        """Return the ids, numbers and hashes of the next entries to seal."""
        batch: list[Document] = []
        head, alg = chain.head, chain.alg
        for row, seal in await self._ours(chain, stored):
            tell_key_begins(chain.team_id, head, alg, seal)
            form = seal.sealed(open_form(row), seq=head.seq + 1, prev=head.hash)
            head, alg = Head(head.seq + 1, str(form["hash"])), seal.alg
            batch.append({"id": row["entry_id"], **{name: form[name] for name in SEALED}})
        return batch

    async def _ours(self, chain: _Held, stored: Sequence[object]) -> list[tuple[Row, Seal]]:
        """Return the open entries of a chain and their seals; entries without a key first.

        Entries that must not be sealed are marked as foreign, see `seal_for`.

        Args:
            chain: The chain.
            stored: The values of `team_id` in its open entries, which may be damaged.
        """
        ours: list[tuple[Row, Seal]] = []
        foreign: list[tuple[Filter, Update]] = []
        for row in await self._open_ones({"team_id": {"$in": list(stored)}}):
            if _team_of(row) == chain.team_id:
                seal = seal_for(row, self._seal, is_keyed=chain.alg != PLAIN)
                if seal is not None:
                    ours.append((row, seal))
                else:
                    foreign.append(
                        ({"_id": row["entry_id"], **IS_OPEN}, {"$set": {"foreign": True}})
                    )
        await self._audit.change_each(foreign)
        return sorted(ours, key=lambda sealed: bool(sealed[1].key))

    async def _apply(self, chain: _Held, batch: Sequence[Document]) -> None:
        changes: list[tuple[Filter, Update]] = []
        for link in batch:
            made = {"team_id": chain.team_id, **{name: link[name] for name in SEALED}}
            where: Filter = {"_id": link["id"], **IS_OPEN}
            changes.append((where, {"$set": made}))
        await self._audit.change_each(changes)

    async def _finish(self, chain: _Held, batch: Sequence[Document]) -> None:
        """Apply the stored batch, advance the chain's record, and release the lease."""
        await self._apply(chain, batch)
        done = _where(batch[-1]) if batch else {}
        await self._chains.update(
            chain.where, {"$set": {**done, "batch": "", "leased_by": "", "leased_until_ms": 0}}
        )


def _tell_unguarded(fault: str) -> None:
    logger.info(
        "the server does not guard the numbers of the audit: %s",
        fault,
        extra={"action": "audit_unguarded"},
    )


def _team_of(row: Row) -> str:
    return str(open_form(row)["team"])


def _is_whole(chain: Document) -> bool:
    """Whether a chain's record is valid."""
    seq, batch = chain.get("seq"), chain.get("batch")
    is_number = isinstance(seq, int) and not isinstance(seq, bool)
    if not (is_number and is_hash(chain.get("hash")) and is_alg(chain.get("alg"))):
        return False
    try:
        return isinstance(batch, str) and (not batch or isinstance(json.loads(batch), list))
    except ValueError:
        return False


def _where(link: Mapping[str, object]) -> Document:
    return {name: link[name] for name in ("seq", "hash", "alg")}


def _head(document: Mapping[str, Any]) -> Head:
    return Head(int(document["seq"]), str(document["hash"]))
