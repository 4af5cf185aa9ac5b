"""Run cases about entries that are appended to the audit."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module

from bot.commands.simulation.cases import Case
from bot.commands.simulation.models import CaseError
from bot.config import stores
from bot.maintenance.audit_sealer import links, links_of, verify
from bot.stores import Stores
from storage.audit import AuditEntry
from storage.chain import NO_KEY

_TEAM = "T0CASES"
_BEFORE = 5
"""Number of entries in the chain before two concurrent appends."""
_VOTE_OF = re.compile(r"the vote of ([A-Z]+\d+)")


async def play_append(case: Case) -> dict[str, object]:
    """Append the entries of a case; return the results by the keys that the case expects.

    Raises:
        CaseError: The case expects an unknown key.
    """
    expect = case.data["expect"]
    storage = stores.in_memory()
    await storage.open()
    try:
        for name, play in _PLAYS.items():
            if name in expect:
                return await play(case, storage)
    finally:
        await storage.close()
    raise CaseError(f"case {case.id}: it expects none of {', '.join(_PLAYS)}")


async def _two_at_once(_: Case, storage: Stores) -> dict[str, object]:
    for number in range(_BEFORE):
        await storage.audit.append(_entry(f"before-{number}"))
    await storage.trail.seal(owner="one", now_ms=1)
    new = [_entry("one"), _entry("two")]
    await asyncio.gather(*map(storage.audit.append, new))
    await asyncio.gather(*(storage.trail.seal(owner=who, now_ms=2) for who in ("one", "two")))
    names = {entry.entry_id for entry in new}
    seqs = [
        one.form["seq"] async for one in links_of(storage, _TEAM) if one.entry.entry_id in names
    ]
    return {"seqs": sorted(seqs, key=str), "verify": await _verified(storage)}


async def _twice(_: Case, storage: Stores) -> dict[str, object]:
    await storage.audit.append(_entry("again"))
    await storage.trail.seal(owner="one", now_ms=1)
    await storage.audit.append(_entry("again"))
    await storage.trail.seal(owner="two", now_ms=2)
    count = len([one async for one in links(storage) if one.entry.entry_id == "again"])
    return {"entries_with_id": count, "verify": await _verified(storage)}


async def _on_record(case: Case, storage: Stores) -> dict[str, object]:
    """Return the results for the vote of a flow."""
    found = _VOTE_OF.search(str(case.data.get("about", "")))
    if found is None:
        raise CaseError(f"case {case.id}: its `about` does not say of which flow the vote is")
    flow = case.file.case(found[1])
    perform = import_module("bot.commands.simulation.rehearse").perform  # it loads all of the bot
    await perform(flow, flow.data["timeline"], storage)
    wanted = case.data["expect"]
    entries = [one.entry async for one in links(storage)]
    entry = next((one for one in entries if one.action == wanted["action"]), None)
    if entry is None:
        return {"action": None}
    names = [one for one in wanted.get("detail_has", ()) if entry.detail.get(one)]
    result: dict[str, object] = {
        "action": entry.action,
        "actor": entry.actor_id,
        "for": entry.for_id,
        "detail_has": names,
    }
    return {name: value for name, value in result.items() if name in wanted}


async def _verified(storage: Stores) -> str:
    verdicts = await verify(storage, NO_KEY)
    return "ok" if verdicts and all(one.ok for one in verdicts.values()) else "faulty"


def _entry(name: str) -> AuditEntry:
    return AuditEntry(entry_id=name, at_ms=1, action="checkpoint", team_id=_TEAM)


_PLAYS: Mapping[str, Callable[[Case, Stores], Awaitable[dict[str, object]]]] = {
    "seqs": _two_at_once,
    "entries_with_id": _twice,
    "action": _on_record,
}
"""The function that runs a case, by a key that the case expects."""
