"""Run cases of a command line, in a directory with the case's files, and of audit entries."""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from bot.commands.cli import WRONG_SETTINGS, carry_out
from bot.commands.parser import parse
from bot.commands.policy import RehearsedCall
from bot.commands.simulation.cases import Case, CaseFile, offset
from bot.commands.simulation.known import BOT, WorldLookups, policy_world
from bot.commands.simulation.models import CaseError, Data
from bot.config import stores
from bot.maintenance.audit_sealer import links, links_of, verify
from bot.policy.parser.lookups import SlackFacts
from bot.stores import Stores
from storage.audit import AuditEntry
from storage.chain import NO_KEY

_GROUP: Data = {"users": ["U0ADA"]}
_ONE_OF_SRE: Data = {
    "version": 1,
    "groups": {"sre": _GROUP},
    "defaults": {"approve": [{"from": ["sre"]}]},
    "default": {"ask": {}},
    "rules": [],
}
"""A valid policy: the content of `good.yaml`, unless the file has a policy of that name."""
_UP_TO = re.compile(r"([A-Z]+\d+) up to (\w+)")
_REASON = re.compile(r'a rejection reason that begins with "(.+)"')


async def play_line(case: Case) -> dict[str, object]:
    """Run the command of a case.

    The directory has the policies of the case's file as `NAME.yaml`, the texts of checks as
    `ID.yaml`, the calls of explanations as `ID.json`, and the file itself, without commands, as
    `cases.yaml`. The events of `given` happen before, in the command's database.

    Args:
        case: A case with `args`, and `expect` with `exit`, `says` and `json`.

    Returns:
        The exit code, the expected words that were printed, and the expected entries that the
        printed object has.

    Raises:
        CaseError: The case cannot be run as written.
    """
    with tempfile.TemporaryDirectory(prefix="countersign-case-") as name:
        directory = Path(name)
        async with stores.opened(directory):  # a new database
            pass
        for given in case.data.get("given", ()):
            await _happen(case, str(given), directory)
        code, text = await _typed(case, directory)
    return _outcome(code, text, case.data["expect"])


async def _typed(case: Case, directory: Path) -> tuple[int, str]:
    arguments = [_file(case.file, str(argument), directory) for argument in case.data["args"]]
    if not arguments:
        raise CaseError(f"case {case.id}: there is no command in its `args`")
    said: list[str] = []
    try:
        parsed = parse(arguments)
    except SystemExit as error:
        return (error.code if isinstance(error.code, int) else WRONG_SETTINGS), ""
    if "data_dir" in parsed and not parsed.data_dir:
        parsed.data_dir = str(directory)
    lookups = WorldLookups(world=case.world)
    call = RehearsedCall(
        arguments=parsed,
        environ={"COUNTERSIGN_DATA_DIR": str(directory)},
        run_bot=None,
        say=said.append,
        world=policy_world(case.world),
        slack=SlackFacts(lookups=lookups, bot_user_id=BOT),
    )
    code = await carry_out(call, said.append)
    return code, "\n".join(said)


def _file(file: CaseFile, argument: str, directory: Path) -> str:
    """Return an argument. If it names a file of the case, write the file and return its path."""
    name, dot, kind = argument.rpartition(".")
    if not dot or kind not in {"yaml", "json"}:
        return argument
    path = directory / Path(argument).name
    path.write_text(_content(file, name, kind), encoding="utf-8")
    return str(path)


def _content(file: CaseFile, name: str, kind: str) -> str:
    if kind == "json":
        case = file.case(name)
        tools = {tool: dict(fields) for tool, fields in case.world.tools.items()}
        return json.dumps({"world": {"tools": tools}, **case.data["call"]}, default=str)
    if name == "cases":
        return _cases(file)
    if name in file.policies:
        return json.dumps(file.policies[name], default=str)
    return json.dumps(_ONE_OF_SRE) if name == "good" else str(file.case(name).data["text"])


def _cases(file: CaseFile) -> str:
    """Return the file of cases without its commands, which would run it again."""
    data = {
        "world": {
            "people": file.world.people,
            "usergroups": file.world.usergroups,
            "channels": file.world.channels,
            "bot_in": [*file.world.bot_in],
            "agents": [*file.world.agents],
            "tools": file.world.tools,
        },
        "policies": file.policies,
        "cases": [entry for entry in file.entries if entry.get("kind") != "cli"],
    }
    return json.dumps(data, default=str)


async def _happen(case: Case, given: str, directory: Path) -> None:
    """Apply the events of `given` to the database in a directory."""
    if match := _UP_TO.fullmatch(given):
        flow = case.file.case(match[1])
        end = offset(f"+{match[2]}")
        timeline = [event for event in flow.data["timeline"] if offset(event["at"]) <= end]
        await _play(flow, timeline, directory)
    elif match := _REASON.fullmatch(given):
        request: Data = {"at": "+0m", "request": {"tool": "sql", "args": {"statement": "a"}}}
        rejection: Data = {"at": "+1m", "reject": {"by": "U0ADA", "reason": f"{match[1]} x"}}
        flow = replace(case, kind="flow", data={"policy": _ONE_OF_SRE})
        await _play(flow, [request, rejection], directory)
    else:
        raise CaseError(f"case {case.id}: it is not known how to play {given!r}")


async def _play(flow: Case, timeline: Sequence[Mapping[str, Any]], directory: Path) -> None:
    perform = import_module("bot.commands.simulation.rehearse").perform  # it loads all of the bot
    async with stores.opened(directory) as storage:
        await perform(flow, timeline, storage)


def _outcome(code: int, text: str, expect: Mapping[str, Any]) -> dict[str, object]:
    outcome: dict[str, object] = {"exit": code}
    if "says" in expect:
        outcome["says"] = [word for word in expect["says"] if str(word) in text]
    if "json" in expect:
        printed = json.loads(text)
        outcome["json"] = {name: printed.get(name) for name in expect["json"]}
    return outcome


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
        link.form["seq"] async for link in links_of(storage, _TEAM) if link.entry.entry_id in names
    ]
    return {"seqs": sorted(seqs, key=str), "verify": await _verified(storage)}


async def _twice(_: Case, storage: Stores) -> dict[str, object]:
    await storage.audit.append(_entry("again"))
    await storage.trail.seal(owner="one", now_ms=1)
    await storage.audit.append(_entry("again"))
    await storage.trail.seal(owner="two", now_ms=2)
    count = len([link async for link in links(storage) if link.entry.entry_id == "again"])
    return {"entries_with_id": count, "verify": await _verified(storage)}


async def _on_record(case: Case, storage: Stores) -> dict[str, object]:
    """Return the results for the vote of a flow."""
    match = _VOTE_OF.search(str(case.data.get("about", "")))
    if match is None:
        raise CaseError(f"case {case.id}: its `about` does not say of which flow the vote is")
    flow = case.file.case(match[1])
    perform = import_module("bot.commands.simulation.rehearse").perform  # it loads all of the bot
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


_PLAYS: Mapping[str, Callable[[Case, Stores], Awaitable[dict[str, object]]]] = {
    "seqs": _two_at_once,
    "entries_with_id": _twice,
    "action": _on_record,
}
"""The function that runs a case, by a key that the case expects."""
