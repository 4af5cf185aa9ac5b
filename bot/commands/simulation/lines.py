"""Run a command line of a case, in a directory with the case's files."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping, Sequence
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
from bot.policy.parser.lookups import SlackFacts

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
    arguments = [_file(case.file, str(one), directory) for one in case.data["args"]]
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
        tools = {tool: dict(one) for tool, one in case.world.tools.items()}
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
        "cases": [one for one in file.entries if one.get("kind") != "cli"],
    }
    return json.dumps(data, default=str)


async def _happen(case: Case, given: str, directory: Path) -> None:
    """Apply the events of `given` to the database in a directory."""
    if found := _UP_TO.fullmatch(given):
        flow = case.file.case(found[1])
        end = offset(f"+{found[2]}")
        timeline = [one for one in flow.data["timeline"] if offset(one["at"]) <= end]
        await _play(flow, timeline, directory)
    elif found := _REASON.fullmatch(given):
        request: Data = {"at": "+0m", "request": {"tool": "sql", "args": {"statement": "a"}}}
        rejection: Data = {"at": "+1m", "reject": {"by": "U0ADA", "reason": f"{found[1]} x"}}
        flow = replace(case, kind="flow", data={"policy": _ONE_OF_SRE})
        await _play(flow, [request, rejection], directory)
    else:
        raise CaseError(f"case {case.id}: it is not known how to play {given!r}")


async def _play(flow: Case, timeline: Sequence[Mapping[str, Any]], directory: Path) -> None:
    perform = import_module("bot.commands.simulation.rehearse").perform  # it loads all of the bot
    async with stores.opened(directory) as storage:
        await perform(flow, timeline, storage)


def _outcome(code: int, text: str, expect: Mapping[str, Any]) -> dict[str, object]:
    found: dict[str, object] = {"exit": code}
    if "says" in expect:
        found["says"] = [word for word in expect["says"] if str(word) in text]
    if "json" in expect:
        printed = json.loads(text)
        found["json"] = {name: printed.get(name) for name in expect["json"]}
    return found
