"""`countersign policy test`: run cases against a policy file, also those of the command line."""

from __future__ import annotations

import io
import json
import logging
import re
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from bot.commands.call import Call
from bot.commands.cli import WRONG_SETTINGS, carry_out
from bot.commands.demo_environment import demo_environment
from bot.commands.freeze import freezes_of
from bot.commands.parser import parse
from bot.commands.policy import RehearsedCall, check_file
from bot.config import stores
from bot.config.settings import Settings
from bot.errors import BotError, FaultyPolicyError, InvalidSettingsError
from bot.freezes.rules import ALL
from bot.policy.model import PolicyFile
from bot.policy.parser.lookups import SlackFacts
from bot.policy.parser.settings import settings_policy
from bot.policy.parser.source import read_source
from bot.policy.parser.structure import read_structure
from bot.rehearsal.case_file import Case, CaseFile, offset, read_case_file
from bot.rehearsal.case_schema import CaseError, Data
from bot.rehearsal.run_case import perform, run_case
from bot.rehearsal.world import BOT, WorldLookups, policy_world

_TOKENS = {"SLACK_BOT_TOKEN": "xoxb-case", "SLACK_APP_TOKEN": "xapp-case"}
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


class CasesDifferError(BotError):
    """Some cases differ from their expectations."""


async def execute(call: Call) -> None:
    """Run the command."""
    try:
        file = read_case_file(Path(call.arguments.cases))
        # Report faults of the cases first: the policy is checked against their world.
        file.cases({})
    except CaseError as error:
        raise FaultyPolicyError(str(error)) from error
    slack = SlackFacts(lookups=WorldLookups(world=file.world), bot_user_id=BOT)
    policy = await check_file(Path(call.arguments.file), policy_world(file.world), slack, call.say)
    cases = file.cases(cast(Data, policy.root.plain()))
    differing = 0
    with _silent():
        for case in cases:
            differences = await run_case(case, _KINDS)
            differing += bool(differences)
            for difference in differences:
                call.say(str(difference))
    if differing:
        raise CasesDifferError(f"{differing} of {len(cases)} cases failed")
    call.say(f"{len(cases)} {'case' if len(cases) == 1 else 'cases'} passed")


@contextmanager
def _silent() -> Iterator[None]:
    """Suppress the log of the simulated bot: cases cause many errors on purpose."""
    handler, log = logging.NullHandler(), logging.getLogger()
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


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
    lines: list[str] = []
    refusal = io.StringIO()
    try:
        with redirect_stderr(refusal):
            parsed = parse(arguments)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else WRONG_SETTINGS
        return code, refusal.getvalue()
    if "data_dir" in parsed and not parsed.data_dir:
        parsed.data_dir = str(directory)
    lookups = WorldLookups(world=case.world)
    call = RehearsedCall(
        arguments=parsed,
        environ={"COUNTERSIGN_DATA_DIR": str(directory)},
        run_bot=None,
        say=lines.append,
        world=policy_world(case.world),
        slack=SlackFacts(lookups=lookups, bot_user_id=BOT),
    )
    code = await carry_out(call, lines.append)
    return code, "\n".join(lines)


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
    elif given == "a freeze of all":
        async with stores.opened(directory) as storage:
            await (await freezes_of(storage)).freeze(ALL, by="U0ADA", why="x")
    else:
        raise CaseError(f"case {case.id}: it is not known how to play {given!r}")


async def _play(flow: Case, timeline: Sequence[Data], directory: Path) -> None:
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


async def play_settings(case: Case) -> dict[str, object]:
    """Read the settings of a case; return whether the bot starts with them, and who decides."""
    environ, expect = dict(case.data["environ"]), case.data["expect"]
    if case.data.get("command") == "demo":
        environ = demo_environment(environ, "http://127.0.0.1/", "xoxb-1", "xapp-1", ["C0OPS"])
    try:
        settings = Settings.load({**_TOKENS, **environ})
    except InvalidSettingsError as error:
        names = [name for name in expect.get("names", ()) if name in str(error)]
        return {"starts": False, "names": names}
    observed: dict[str, object] = {"starts": True, "approvers": deciders_of(settings)}
    if settings.policy is None:
        observed["policy"] = settings_policy(settings)
    return {name: observed.get(name) for name in ("starts", *expect)}


def deciders_of(settings: Settings) -> str:
    """Return the approvers by the settings: `here`, or `named` people."""
    if settings.policy is None:
        file = PolicyFile.model_validate(settings_policy(settings))
    else:
        read, _ = read_structure(read_source(settings.policy.read_bytes())[0])
        assert read is not None  # noqa: S101 - a policy of ours
        file = read
    names = [name for need in file.defaults.approve or () for name in need.from_]
    return "here" if all(file.groups[name].here for name in names) else "named"


_KINDS: Mapping[str, Callable[[Case], Awaitable[dict[str, object]]]] = {
    "cli": play_line,
    "settings": play_settings,
}
"""The function that plays a case, by the kind of the case."""
