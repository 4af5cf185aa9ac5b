"""The chain of the audit in MongoDB: entries are appended unsealed, and sealed under a lease.

Each chain has one record of its own, with its last number and hash. Numbers are given by writing
there what is about to be sealed, on the condition that nobody else has given one since: so each is
given once, also where a lease was lost, and on clusters that cannot have a unique index over two
fields. What a crash left written there and not done is done by the next.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from storage.audit import AuditEntry
from storage.chain import PLAIN, Head, Seal, is_alg, is_hash
from storage.ledger import SEALED, check_alg, open_form, row_of, seal_for, tell_key_begins
from storage.log import Row
from storage.mongo.commands import Commands
from storage.mongo.documents import Document, Filter, Update
from storage.mongo.log import MongoLog
from storage.trail import BY_TIME, IS_OPEN, PIECE, Trail

LEASE_MS = 15_000
"""The most time that a dead process holds up a chain; a piece takes far less."""


@dataclass(frozen=True, slots=True)
class _Held:
    """A chain whose lease is held."""

    team_id: str
    head: Head
    alg: str

    @property
    def where(self) -> Filter:
        """The condition that nobody has gone on with it."""
        return {"_id": self.team_id, "seq": self.head.seq, "hash": self.head.hash}


class MongoTrail(Trail):
    """See `storage.trail.Trail`.

    Args:
        audit: The entries.
        chains: A record of each chain.
        seal: How entries are sealed.
    """

    def __init__(self, audit: Commands, chains: Commands, seal: Seal) -> None:
        super().__init__(MongoLog(audit, "entry_id"), seal)
        self._patient = MongoLog(audit.patient, "entry_id")
        self._audit, self._chains = audit, chains
        self._checked: set[str] = set()

    async def append_all(self, entries: Sequence[AuditEntry]) -> None:
        await self._log.append([row_of(entry, self._seal) for entry in entries])

    async def seal(self, *, owner: str, now_ms: int) -> int:
        total, last = 0, list[object]()
        while found := await self._open_ones():
            before, last = last, [row["entry_id"] for row in found]
            teams = {_team_of(row) for row in found}
            sealed = [await self._seal_team(team, owner, now_ms) for team in sorted(teams)]
            if not any(sealed) and last == before:
                break  # others seal them; what is foreign was marked, and is not found again
            total += sum(sealed)
        return total

    async def heads(self) -> Mapping[str, Head]:
        found = await self._chains.find({}, [("_id", 1)])
        return {
            str(each["_id"]): _head(each if _is_whole(each) else await self._last(str(each["_id"])))
            for each in found
        }

    async def check_key(self) -> None:
        for chain in await self._chains.find({}, [("_id", 1)], names=["alg"]):
            check_alg(chain.get("alg"), self._seal)

    async def _open_ones(self) -> Sequence[Row]:
        return await self._log.read({**IS_OPEN, "foreign": None}, BY_TIME, limit=PIECE)

    async def _seal_team(self, team_id: str, owner: str, now_ms: int) -> int:
        chain = await self._take(team_id, owner, now_ms)
        if chain is None:
            return 0
        # Read only now: what was open before the lease was had may have been sealed since.
        batch = await self._batch(chain)
        if batch and not await self._chains.update(
            {**chain.where, "batch": ""}, {"$set": {"batch": json.dumps(batch)}}
        ):
            return 0  # the lease was lost, and somebody else went on
        await self._finish(chain, batch)
        return len(batch)

    async def _take(self, team_id: str, owner: str, now_ms: int) -> _Held | None:
        """Take the lease of a chain, and finish what was begun; None when it cannot be had."""
        lease = {"leased_by": owner, "leased_until_ms": now_ms + LEASE_MS}
        document = await self._chains.update_and_get(
            {"_id": team_id, "leased_until_ms": {"$lte": now_ms}}, {"$set": lease}
        )
        if document is None:
            last = await self._last(team_id)
            document = {"_id": team_id, **_where(last), "batch": "", **lease}
            if not await self._chains.insert(document):
                return None
        if not _is_whole(document):  # damaged: the entries say where the chain ends
            last = _where(await self._last(team_id))
            mended = {**last, "batch": "", **lease}
            where: Filter = {"_id": team_id, "leased_by": owner}
            if not await self._chains.update(where, {"$set": mended}):
                return None
            document = {"_id": team_id, **mended}
        if document["batch"]:
            return await self._redo(_held(document), json.loads(document["batch"]), lease)
        if team_id in self._checked:
            return _held(document)
        self._checked.add(team_id)
        return await self._check(_held(document))

    async def _redo(
        self, chain: _Held, batch: Sequence[Document], lease: Mapping[str, object]
    ) -> _Held | None:
        """Finish what a crash left begun, and keep the lease; None when somebody else did."""
        await self._apply(chain, batch)
        done = _where(batch[-1])
        if not await self._chains.update(chain.where, {"$set": {**done, **lease, "batch": ""}}):
            return None
        return _held({"_id": chain.team_id, **done})

    async def _check(self, chain: _Held) -> _Held | None:
        """Go on behind the last entry that is sealed, also where the chain's record is older.

        So it is where a database went back to a copy whose parts are of different moments.
        """
        last = await self._last(chain.team_id)
        if int(last["seq"]) <= chain.head.seq:
            return chain
        if not await self._chains.update(chain.where, {"$set": _where(last)}):
            return None
        return _held({"_id": chain.team_id, **_where(last)})

    async def _last(self, team_id: str) -> Document:
        """The last sealed entry; before the first, as it begins."""
        where: Filter = {"team_id": team_id, "seq": {"$gt": 0}}
        found = await self._audit.find(where, [("seq", -1)], 1)
        return found[0] if found else {"seq": 0, "hash": Head().hash, "alg": PLAIN}

    async def _batch(self, chain: _Held) -> list[Document]:
        """The ids, numbers and hashes that are about to be given."""
        batch: list[Document] = []
        head, alg = chain.head, chain.alg
        for row, seal in await self._ours(chain):
            tell_key_begins(chain.team_id, head, alg, seal)
            form = seal.sealed(open_form(row), seq=head.seq + 1, prev=head.hash)
            head, alg = Head(head.seq + 1, str(form["hash"])), seal.alg
            batch.append({"id": row["entry_id"], **{name: form[name] for name in SEALED}})
        return batch

    async def _ours(self, chain: _Held) -> list[tuple[Row, Seal]]:
        """The open entries of a chain that may be sealed, and how; those without a key first."""
        ours: list[tuple[Row, Seal]] = []
        foreign: list[tuple[Filter, Update]] = []
        for row in await self._open_ones():
            if _team_of(row) == chain.team_id:
                seal = seal_for(row, self._seal, is_keyed=chain.alg != PLAIN)
                if seal is not None:
                    ours.append((row, seal))
                else:
                    foreign.append(({"_id": row["entry_id"]}, {"$set": {"foreign": True}}))
        await self._audit.change_each(foreign)
        return sorted(ours, key=lambda one: bool(one[1].key))

    async def _apply(self, chain: _Held, batch: Sequence[Document]) -> None:
        changes: list[tuple[Filter, Update]] = []
        for link in batch:
            made = {"team_id": chain.team_id, **{name: link[name] for name in SEALED}}
            where: Filter = {"_id": link["id"], **IS_OPEN}
            changes.append((where, {"$set": made}))
        await self._audit.change_each(changes)

    async def _finish(self, chain: _Held, batch: Sequence[Document]) -> None:
        """Seal what was written down, note it as done, and give the lease back."""
        await self._apply(chain, batch)
        done = _where(batch[-1]) if batch else {}
        await self._chains.update(
            chain.where, {"$set": {**done, "batch": "", "leased_by": "", "leased_until_ms": 0}}
        )


def _team_of(row: Row) -> str:
    return str(open_form(row)["team"])


def _is_whole(chain: Document) -> bool:
    """Whether a chain's record can be read."""
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


def _head(document: Document) -> Head:
    return Head(int(document["seq"]), str(document["hash"]))


def _held(document: Document) -> _Held:
    return _Held(str(document["_id"]), _head(document), str(document["alg"]))
