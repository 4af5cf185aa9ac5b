"""Cases of the kinds `audit` and `append`: entries of the audit, and what their check says."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from bot.config import stores
from bot.maintenance.audit_sealer import links, links_of, verify
from bot.rehearsal.case_file import Case
from bot.rehearsal.case_schema import CaseError, Data
from bot.stores import Stores
from storage.audit import AuditEntry
from storage.chain import NO_KEY, Head, Seal, Verifier

_TEAM = "T0CASES"
_BEFORE = 5
"""Number of entries in the chain before two concurrent appends."""
_VOTE_OF = re.compile(r"the vote of ([A-Z]+\d+)")
Perform: TypeAlias = Callable[[Case, Sequence[Data], Stores], Awaitable[None]]
"""Plays events in the world of a case; see `bot.rehearsal.run_case.perform`."""


async def play_audit(case: Case) -> dict[str, object]:
    """Verify the entries of a case; return the end of the chain, or its first fault."""
    head = Head(**case.data["head"]) if "head" in case.data else None
    verifier = Verifier(Seal(bytes.fromhex(case.data.get("key_hex", ""))), head)
    for entry in case.data["entries"]:
        verifier.add(entry)
    verdict = verifier.end()
    if verdict.fault is None:
        return {"ok": True, "seq": verdict.seq, "hash": verdict.hash}
    return {"ok": False, "at": verdict.fault.at, "fault": verdict.fault.wrong}


async def play_append(case: Case, perform: Perform) -> dict[str, object]:
    """Append the entries of a case; return the results by the keys that the case expects.

    Args:
        case: The case.
        perform: Plays the events of another case, whose entries this case is about.

    Raises:
        CaseError: The case expects an unknown key.
    """
    expect = case.data["expect"]
    storage = stores.in_memory()
    await storage.open()
    try:
        if "seqs" in expect:
            return await _two_at_once(storage)
        if "entries_with_id" in expect:
            return await _twice(storage)
        if "action" in expect:
            return await _on_record(case, storage, perform)
    finally:
        await storage.close()
    raise CaseError(f"case {case.id}: it expects none of seqs, entries_with_id, action")


async def _two_at_once(storage: Stores) -> dict[str, object]:
    for number in range(_BEFORE):
        await storage.audit.append(_entry(f"before-{number}"))
    await storage.trail.seal(owner="one", now_ms=1)
    new = [_entry("one"), _entry("two")]
    await asyncio.gather(*map(storage.audit.append, new))
    await asyncio.gather(*(storage.trail.seal(owner=who, now_ms=2) for who in ("one", "two")))
    names = {entry.entry_id for entry in new}
    seqs = [
        link.form["seq"] async for link in links_of(storage, _TEAM) if link.entry.entry_id in names
    ]
    return {"seqs": sorted(seqs, key=str), "verify": await _verified(storage)}


async def _twice(storage: Stores) -> dict[str, object]:
    await storage.audit.append(_entry("again"))
    await storage.trail.seal(owner="one", now_ms=1)
    await storage.audit.append(_entry("again"))
    await storage.trail.seal(owner="two", now_ms=2)
    count = len([link async for link in links(storage) if link.entry.entry_id == "again"])
    return {"entries_with_id": count, "verify": await _verified(storage)}


async def _on_record(case: Case, storage: Stores, perform: Perform) -> dict[str, object]:
    """Return the results for the vote of a flow."""
    match = _VOTE_OF.search(str(case.data.get("about", "")))
    if match is None:
        raise CaseError(f"case {case.id}: its `about` does not say of which flow the vote is")
    flow = case.file.case(match[1])
    await perform(flow, flow.data["timeline"], storage)
    wanted = case.data["expect"]
    entries = [link.entry async for link in links(storage)]
    entry = next((candidate for candidate in entries if candidate.action == wanted["action"]), None)
    if entry is None:
        return {"action": None}
    names = [name for name in wanted.get("detail_has", ()) if entry.detail.get(name)]
    result: dict[str, object] = {
        "action": entry.action,
        "actor": entry.actor_id,
        "for": entry.for_id,
        "detail_has": names,
    }
    return {name: value for name, value in result.items() if name in wanted}


async def _verified(storage: Stores) -> str:
    verdicts = await verify(storage, NO_KEY)
    return "ok" if verdicts and all(verdict.ok for verdict in verdicts.values()) else "faulty"


def _entry(name: str) -> AuditEntry:
    return AuditEntry(entry_id=name, at_ms=1, action="checkpoint", team_id=_TEAM)
