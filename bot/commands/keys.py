"""`countersign keys`: make, list, revoke and rotate the keys of programs."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta

import aiohttp
from slack_sdk.errors import SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

from bot.clock import milliseconds, system_clock
from bot.commands.call import Call
from bot.commands.freeze import actor
from bot.config.durations import parse_duration
from bot.config.settings import Settings
from bot.errors import BotError, DirectoryError
from bot.maintenance.program_keys import (
    USUAL_PERSONAL_KEY,
    ProgramKeys,
    is_program_name,
    new_salt,
)
from bot.records.programs import (
    MOST_LIVE_KEYS,
    ProgramKeyRecord,
    ProgramLimits,
    ProgramRecord,
    ProgramScope,
    program_id,
)
from bot.records.webhooks import new_secret
from bot.slack.calls import slack_fault
from bot.slack.directory import SlackDirectory
from bot.slack.ratelimit import Pacer
from bot.stores import Stores
from bot.words import say
from bot.words.times import utc

TIMEOUT_S = 10
"""Longest time of a call to Slack by `countersign keys`, in seconds."""
LONGEST_KEY = timedelta(days=400)
"""Longest lifetime of a key of a program."""
USUAL_KEY = timedelta(days=90)
"""Lifetime of a key of a program, unless the operator gives another one."""

_HOST = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")
_PORT = "(?:[1-9][0-9]{0,4})?"
_SLACK_FAULTS = (SlackClientError, aiohttp.ClientError, OSError, TimeoutError)


async def execute(call: Call) -> None:
    """Run the command."""
    await _ACTIONS[call.arguments.action](call)


async def _create(call: Call) -> None:
    program = await _checked(call, _program(call))
    lifetime = _lifetime(call.arguments.expires, is_personal=program.is_personal)
    async with call.open_beside() as storage:
        if not await storage.programs.add(program):
            raise BotError(
                f"the program {program.name} exists; to make another key for it: "
                f"countersign keys rotate {program.name}"
            )
        lines = await _make_key(storage, program, lifetime)
    for line in lines:
        call.say(line)


def _program(call: Call) -> ProgramRecord:
    """Return the program that the arguments describe, before Slack is asked."""
    given = call.arguments
    scopes = _scopes(given.scope)
    if not is_program_name(given.name):
        raise BotError(f"{given.name!r} isn't a name: use a-z, 0-9, - and _, at most 40 characters")
    if ProgramScope.WRITE in scopes and not (given.tool or given.personal):
        raise BotError("give the tools that the program may name, such as --tool 'backups.*'")
    if not given.channel and {ProgramScope.WRITE, ProgramScope.THREADS} & set(scopes):
        raise BotError("give a channel where the program may ask: --channel C…")
    if given.personal and given.requester != "owner":
        raise BotError("a personal program asks for its owner alone: leave out --requester")
    for host in given.callback_host:
        name, _, port = host.partition(":")
        if _HOST.fullmatch(name) is None or _is_address(name) or not re.fullmatch(_PORT, port):
            raise BotError(f"{host!r} isn't the exact name of a host, in lower case")
    return ProgramRecord(
        id=program_id(given.name),
        team_id="",
        name=given.name,
        owner_id=given.owner,
        salt=new_salt(),
        scopes=scopes,
        tools=tuple(given.tool or (["*"] if given.personal else [])),
        channels=tuple(given.channel),
        requester=given.requester,
        people=given.people,
        trusts_tags=given.trust == "tags",
        callback_hosts=tuple(given.callback_host),
        callback_secrets=(new_secret(),),
        networks=_networks(given.networks),
        limits=_limits(given.limits),
        is_personal=given.personal,
        created_ms=system_clock(),
    )


def _scopes(names: Sequence[str]) -> tuple[ProgramScope, ...]:
    try:
        scopes = tuple(map(ProgramScope, names))
    except ValueError as error:
        known = ", ".join(ProgramScope)
        raise BotError(f"{error}; a scope is one of {known}") from error
    return scopes or (ProgramScope.WRITE, ProgramScope.READ)


def _networks(texts: Sequence[str]) -> tuple[str, ...]:
    try:
        return tuple(str(ipaddress.ip_network(text)) for text in texts)
    except ValueError as error:
        raise BotError(f"{error}; write networks such as 10.0.0.0/8") from error


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _limits(text: str) -> ProgramLimits:
    numbers: dict[str, int] = {}
    for part in filter(None, text.split(",")):
        name, _, number = part.partition("=")
        number = number.removesuffix("/m")
        if name not in ProgramLimits.model_fields or not re.fullmatch("[1-9][0-9]{0,4}", number):
            raise BotError(f"{part!r} isn't a limit; write create=60,pending=100,waiting=200")
        numbers[name] = int(number)
    return ProgramLimits(**numbers)


def _lifetime(text: str, *, is_personal: bool) -> timedelta:
    if not text:
        return USUAL_PERSONAL_KEY if is_personal else USUAL_KEY
    return _duration(text, longest=LONGEST_KEY)


def _duration(text: str, *, longest: timedelta) -> timedelta:
    try:
        return parse_duration(text, longest=longest)
    except ValueError as error:
        raise BotError(f"{text!r} isn't valid: {error}; use a duration such as 90d") from error


async def _checked(call: Call, program: ProgramRecord) -> ProgramRecord:
    """Look up owner and channels in Slack; return the program with its workspace.

    Raises:
        BotError: The owner is no active full member, or the bot is not in a channel.
    """
    client = _slack(call)
    try:
        team_id = str((await client.auth_test()).get("team_id"))
    except _SLACK_FAULTS as error:
        raise BotError(f"can't ask Slack: {slack_fault(error)}") from error
    directory = SlackDirectory(client, team_id=team_id, clock=system_clock, pacer=Pacer())
    try:
        owner = await directory.person(program.owner_id)
        outside = [name for name in program.channels if not await directory.is_in(name)]
    except DirectoryError as error:
        raise BotError(f"can't look up the owner or a channel in Slack: {error.detail}") from error
    is_other = owner.team_id != team_id or owner.is_bot or owner.is_external
    if is_other or owner.is_guest or owner.is_deleted:
        raise BotError(f"{program.owner_id} isn't an active full member of this workspace")
    if outside:
        raise BotError(f"the bot isn't in {', '.join(outside)}: invite it there first")
    return program.changed(team_id=team_id)


def _slack(call: Call) -> AsyncWebClient:
    settings = Settings.load(call.environ)
    return AsyncWebClient(
        token=settings.slack_bot_token.get_secret_value(),
        base_url=settings.slack_api_url,
        timeout=TIMEOUT_S,
    )


async def _make_key(storage: Stores, program: ProgramRecord, lifetime: timedelta) -> Sequence[str]:
    """Make a key; return the lines that show it, once."""
    record, key = await _keys(storage).make(program, lifetime)
    return (
        f"{record.public_id}: a key of {program.name}, until {utc(record.expires_ms)}.",
        "Store it now: it isn't shown again.",
        key,
    )


def _keys(storage: Stores) -> ProgramKeys:
    return ProgramKeys(storage=storage, clock=system_clock, by=actor())


async def _list(call: Call) -> None:
    async with call.open_beside(read_only=True) as storage:
        keys = await storage.programs.all_keys()
        programs = {
            name: await storage.programs.program(name) for name in {k.program_id for k in keys}
        }
    now_ms = system_clock()
    for key in keys:
        if (program := programs[key.program_id]) is not None:
            call.say(_json(key, program) if call.arguments.json else _line(key, program, now_ms))
    if not keys and not call.arguments.json:
        call.say("No program has a key.")


def _line(key: ProgramKeyRecord, program: ProgramRecord, now_ms: int) -> str:
    state = f"until {utc(key.ends_ms)}" if key.is_live(now_ms) else "ended"
    scopes, tools = ",".join(program.scopes), ",".join(program.tools)
    return f"{key.public_id}  {program.name}  {state}  owner {program.owner_id}  {scopes}  {tools}"


def _json(key: ProgramKeyRecord, program: ProgramRecord) -> str:
    of_program = program.model_dump(mode="json", exclude=_NEVER_LISTED)
    of_key = key.model_dump(mode="json", exclude={"digest", "revision", "id"})
    return json.dumps({"key": key.public_id, **of_program, **of_key}, ensure_ascii=False)


_NEVER_LISTED = {"salt", "callback_secrets", "revision", "id"}


async def _revoke(call: Call) -> None:
    given = call.arguments
    async with call.open_beside() as storage:
        name = given.key.removeprefix("csk_").partition("_")[0]
        key = await storage.programs.key(name) if name else None
        keys = (
            [key] if key is not None else await storage.programs.keys_of(program_id(given.program))
        )
        if not keys:
            raise BotError(f"there's no key {given.key or f'of a program {given.program}'}")
        for key in keys:
            program = await _end_key(call, storage, key, at_ms=system_clock())
            if program is not None:
                await _tell_owner(call, program, key)


async def _tell_owner(call: Call, program: ProgramRecord, key: ProgramKeyRecord) -> None:
    """Tell the owner that a key is revoked. It stays revoked if Slack does not respond."""
    words = say("message.key_revoked", program=program.name, key=key.public_id)
    renew = "message.key_renew_own" if program.is_from_home else "message.key_renew"
    words = f"{words} {say(renew, program=program.name)}"
    try:
        await _slack(call).chat_postMessage(channel=program.owner_id, text=words)
    except BotError as error:
        call.say(f"Its owner, {program.owner_id}, wasn't told: {error}")
    except _SLACK_FAULTS as error:
        call.say(f"Its owner, {program.owner_id}, wasn't told: {slack_fault(error)}")


async def _end_key(
    call: Call, storage: Stores, key: ProgramKeyRecord, *, at_ms: int
) -> ProgramRecord | None:
    """End a key at a time; return its program, or None if the key had ended before."""
    program = await storage.programs.program(key.program_id)
    if program is None or not await _keys(storage).end(program, key, at_ms=at_ms):
        call.say(f"{key.public_id}: had ended before.")
        return None
    call.say(f"{key.public_id}: ends {utc(at_ms)}. A running bot knows it within 15 seconds.")
    return program


async def _rotate(call: Call) -> None:
    given = call.arguments
    overlap = _duration(given.overlap, longest=LONGEST_KEY)
    async with call.open_beside() as storage:
        program = await storage.programs.program(program_id(given.name))
        if program is None:
            raise BotError(f"there's no program {given.name}; make it: countersign keys create")
        now_ms = system_clock()
        keys = await storage.programs.keys_of(program.id)
        live = [key for key in keys if key.is_live(now_ms)]
        if len(live) >= MOST_LIVE_KEYS:
            raise BotError(
                f"{given.name} has {MOST_LIVE_KEYS} keys in force; end one first: "
                f"countersign keys revoke {live[0].public_id}"
            )
        lifetime = _lifetime(given.expires, is_personal=program.is_personal)
        lines = await _make_key(storage, program, lifetime)
        for key in live:
            await _end_key(call, storage, key, at_ms=now_ms + milliseconds(overlap))
    for line in lines:
        call.say(line)


_ACTIONS: Mapping[str, Callable[[Call], Awaitable[None]]] = {
    "create": _create,
    "list": _list,
    "revoke": _revoke,
    "rotate": _rotate,
}
