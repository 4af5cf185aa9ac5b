"""`countersign freeze`, `unfreeze` and `freezes`: stop all starts, without the bot and Slack."""

from __future__ import annotations

import json
import os
import pwd
import socket
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from bot.clock import system_clock
from bot.commands.call import Call
from bot.errors import BotError
from bot.freezes.scopes import Names, names_of, scope_of
from bot.freezes.service import Freezes
from bot.freezes.starts import FreezeFile
from bot.policy.current import reader_of
from bot.policy.parser.source import read_source
from bot.policy.parser.structure import read_structure
from bot.records.switch import Freeze, FreezeScope, ScopeKind
from bot.stores import Stores
from bot.words.times import utc

_KINDS = (ScopeKind.AGENT, ScopeKind.TOOL, ScopeKind.TAG, ScopeKind.CHANNEL)


async def execute(call: Call) -> None:
    """Run the command."""
    await _ACTIONS[call.arguments.action](call)


def actor() -> str:
    """Return the actor of this command in the audit: the user and the machine."""
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container may run as a user without a name
        user = str(os.getuid())
    return f"cli:{user}@{socket.gethostname()}"


async def freezes_of(storage: Stores) -> Freezes:
    """Return the freezes of a database, with the workspace for the audit if there is only one."""
    teams = await storage.teams()
    team = next(iter(teams)) if len(teams) == 1 else ""
    return Freezes(switches=storage.switches, audit=storage.audit, clock=system_clock, team=team)


async def _freeze(call: Call) -> None:
    given = call.arguments
    scope = _scope(call)
    async with call.open_beside() as storage:
        freezes = await freezes_of(storage)
        answer = await freezes.freeze(scope, by=actor(), why=given.why, turns=given.turns)
    freeze = answer.freeze
    if answer.is_wider:
        call.say("There is no room for another scope, so this freeze covers all calls.")
    if answer.is_new:
        call.say(f"{freeze.id}: frozen: {_title(freeze)}. No call in this scope starts now.")
    else:
        call.say(
            f"{freeze.id}: {_title(freeze)} is frozen since {utc(freeze.since_ms)}, by {freeze.by}."
        )
    call.say(f"To lift it: countersign unfreeze {freeze.id} WHY")


async def _unfreeze(call: Call) -> None:
    given, count = call.arguments, await _count(call)
    async with call.open_beside() as storage:
        freezes = await freezes_of(storage)
        answer = await freezes.lift(given.id or "", by=actor(), why=given.why, count=count)
    title = f"{answer.freeze.id}: {_title(answer.freeze)}"
    if answer.missing:
        call.say(f"{title}: confirmed. Still frozen: {answer.missing} more must confirm.")
        return
    call.say(f"{title}: lifted.")
    if answer.rest:
        call.say(f"Still in force: {', '.join(freeze.id for freeze in answer.rest)}.")
    if _by_file(call) is not None:
        call.say("The freeze file still exists: remove it, too.")


async def _count(call: Call) -> int:
    """Return how many people must lift a freeze, by the policy file.

    Raises:
        BotError: The file is unreadable, so the number is unknown.
    """
    path = call.environ.get("COUNTERSIGN_POLICY", "").strip()
    if not path:
        return 1
    try:
        file, _ = read_structure(read_source(await reader_of(Path(path))())[0])
    except OSError as error:
        raise _unknown_count(error.strerror or str(error)) from error
    if file is None:
        raise _unknown_count("it has errors")
    return file.freeze.lift.count


def _unknown_count(fault: str) -> BotError:
    return BotError(
        f"can't read the policy file ({fault}), which says how many people must lift a freeze; "
        "countersign policy check lists its errors"
    )


async def _list(call: Call) -> None:
    async with call.open_beside(read_only=True) as storage:
        freezes = [*await (await freezes_of(storage)).in_force()]
    by_file = _by_file(call)
    freezes += [] if by_file is None else [by_file]
    for freeze in freezes:
        call.say(_json(freeze) if call.arguments.json else _line(freeze))
    if not freezes and not call.arguments.json:
        call.say("Nothing is frozen.")


_ACTIONS: Mapping[str, Callable[[Call], Awaitable[None]]] = {
    "freeze": _freeze,
    "unfreeze": _unfreeze,
    "freezes": _list,
}


def _scope(call: Call) -> FreezeScope:
    named = [(kind, name) for kind in _KINDS if (name := getattr(call.arguments, kind)) is not None]
    if not named:
        return FreezeScope()
    kind, name = named[0]
    return scope_of(kind, name, {} if kind is ScopeKind.CHANNEL else _names(call))


def _names(call: Call) -> Names:
    """Return the names of agents, tools and tags; none if the application cannot be loaded.

    Stopping must not fail because of that: the name is then taken as it is, and people are told.
    """
    from bot.commands import policy  # noqa: PLC0415 - slow, and only for a scope with a name

    if isinstance(call, policy.RehearsedCall):
        return names_of(call.world)
    try:
        if policy.names_no_agents(call.environ):
            raise BotError("COUNTERSIGN_AGENT isn't set")  # noqa: TRY301 - one way to tell
        return names_of(policy.load_world(call.environ))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - code of agents may raise anything
        call.say(
            f"The name wasn't checked, because the agents can't be loaded: {error}. "
            "If it's wrong, nothing is frozen. To stop everything, leave out the scope."
        )
        return {}


def _by_file(call: Call) -> Freeze | None:
    path = call.environ.get("COUNTERSIGN_FREEZE_FILE", "").strip()
    return FreezeFile(path=Path(path) if path else None, clock=system_clock).freeze()


def _title(freeze: Freeze) -> str:
    return f"{freeze.scope}{', and turns' if freeze.turns else ''}"


def _line(freeze: Freeze) -> str:
    words = [freeze.id, _title(freeze), f"since {utc(freeze.since_ms)}", f"by {freeze.by}"]
    words.append(json.dumps(freeze.why, ensure_ascii=False))
    words += [f"lifting confirmed by {person.by}" for person in freeze.confirmations]
    return "  ".join(words)


def _json(freeze: Freeze) -> str:
    body = freeze.model_dump(mode="json")
    return json.dumps({**body, "scope": str(freeze.scope)}, ensure_ascii=False)
