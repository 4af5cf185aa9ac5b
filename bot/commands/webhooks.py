"""`countersign webhooks`: the endpoints of programs, and what became of their events."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass

from bot.clock import milliseconds, system_clock
from bot.commands.call import Call
from bot.commands.freeze import actor
from bot.config.durations import parse_duration
from bot.config.settings import Settings
from bot.errors import BotError
from bot.records.approval import ProgramEventType
from bot.records.programs import ProgramRecord, program_id
from bot.records.webhooks import WebhookEndpoint, WebhookSecret
from bot.stores import Stores
from bot.webhooks.addresses import AddressRefusedError, AddressRules, rules_of
from bot.webhooks.endpoints import DeliveryState, NewEndpoint, WebhookEndpoints
from bot.webhooks.worker import KEPT
from bot.words.times import utc

_MOST_LISTED = 100


async def execute(call: Call) -> None:
    """Run the command."""
    await _ACTIONS[call.arguments.action](call)


@dataclass(frozen=True, slots=True)
class _Named:
    """The endpoint that the arguments name, and what can be done with it."""

    endpoints: WebhookEndpoints
    program: ProgramRecord
    endpoint: WebhookEndpoint


def _endpoints(storage: Stores, rules: AddressRules | None = None) -> WebhookEndpoints:
    addresses = rules or AddressRules()
    return WebhookEndpoints(storage=storage, addresses=addresses, clock=system_clock, by=actor())


@asynccontextmanager
async def _named(call: Call, *, read_only: bool = False) -> AsyncIterator[_Named]:
    async with call.open_beside(read_only=read_only) as storage:
        endpoint = await storage.webhooks.endpoint(call.arguments.endpoint)
        program = await storage.programs.program(endpoint.program_id) if endpoint else None
        if endpoint is None or program is None:
            raise BotError(
                f"there's no endpoint {call.arguments.endpoint}; list them: "
                "countersign webhooks list"
            )
        yield _Named(_endpoints(storage), program, endpoint)


async def _add(call: Call) -> None:
    given = call.arguments
    known = [str(name) for name in ProgramEventType]
    if unknown := [name for name in given.event if name not in known]:
        raise BotError(f"{unknown[0]!r} isn't a type of event; use one of {', '.join(known)}")
    rules = rules_of(Settings.load(call.environ))
    async with call.open_beside() as storage:
        program = await _program(storage, given.program)
        new = NewEndpoint(url=given.url, events=tuple(given.event), is_full=given.full)
        try:
            endpoint = await _endpoints(storage, rules).add(program, new)
        except AddressRefusedError as error:
            raise BotError(f"this address can't get events: {error}") from error
    call.say(f"{endpoint.id}: gets events of {program.name}.")
    _say_secret(call, endpoint.secrets[0])


async def _program(storage: Stores, name: str) -> ProgramRecord:
    program = await storage.programs.program(program_id(name))
    if program is None:
        raise BotError(f"there's no program {name}; list them: countersign keys list")
    return program


def _say_secret(call: Call, secret: WebhookSecret) -> None:
    call.say("Store its secret now: it isn't shown again.")
    call.say(secret.text)


async def _list(call: Call) -> None:
    async with call.open_beside(read_only=True) as storage:
        endpoints = await storage.webhooks.all_endpoints()
        names = {
            name: await storage.programs.program(name)
            for name in {endpoint.program_id for endpoint in endpoints}
        }
    for endpoint in endpoints:
        program = names[endpoint.program_id]
        name = program.name if program is not None else endpoint.program_id
        if call.arguments.json:
            members = endpoint.model_dump(mode="json", exclude={"secrets", "revision"})
            call.say(json.dumps({**members, "program": name}, ensure_ascii=False))
        else:
            events = ",".join(endpoint.events) or "all"
            parts = [endpoint.id, name, endpoint.status, endpoint.url, events, endpoint.last_error]
            call.say("  ".join(part for part in parts if part))
    if not endpoints and not call.arguments.json:
        call.say("No program has an endpoint.")


async def _deliveries(call: Call) -> None:
    given = call.arguments
    async with _named(call, read_only=True) as named:
        states, _ = await named.endpoints.deliveries(
            named.endpoint, status=given.status, limit=_MOST_LISTED
        )
    for state in states:
        if given.json:
            call.say(json.dumps(asdict(state), ensure_ascii=False))
        else:
            call.say(_delivery_line(state))
    if not states and not given.json:
        call.say(f"{named.endpoint.id}: no deliveries.")


def _delivery_line(state: DeliveryState) -> str:
    attempts = "1 attempt" if state.attempts == 1 else f"{state.attempts} attempts"
    answer = state.last_error or (f"HTTP {state.last_status}" if state.last_status else "")
    due = f"next {utc(state.next_ms)}" if state.next_ms is not None else ""
    parts = [state.id, state.event, state.status, attempts, answer, due]
    return "  ".join(part for part in parts if part)


async def _remove(call: Call) -> None:
    async with _named(call) as named:
        await named.endpoints.remove(named.program, named.endpoint)
    call.say(f"{named.endpoint.id}: removed.")


async def _rotate(call: Call) -> None:
    if call.arguments.program:
        async with call.open_beside() as storage:
            program = await _program(storage, call.arguments.program)
            stored = await _endpoints(storage).rotate_callbacks(program)
        name = f"callback_url of {program.name}"
        secrets = stored.callback_secrets if stored is not None else ()
    else:
        async with _named(call) as named:
            changed = await named.endpoints.rotate(named.program, named.endpoint)
        name = named.endpoint.id
        secrets = changed.secrets if changed is not None else ()
    if not secrets:
        raise BotError(f"{name}: was removed meanwhile")
    call.say(f"{name}: has a new secret. The old one signs too for 24 hours.")
    _say_secret(call, secrets[0])


async def _redrive(call: Call) -> None:
    text, since_ms = call.arguments.since, None
    if text:
        try:
            since_ms = system_clock() - milliseconds(parse_duration(text, longest=KEPT))
        except ValueError as error:
            raise BotError(f"{text!r} isn't valid: {error}; use a duration such as 2h") from error
    async with _named(call) as named:
        count = await named.endpoints.redrive(named.program, named.endpoint, since_ms=since_ms)
    call.say(f"{named.endpoint.id}: is on. {count} earlier events are sent again.")


_ACTIONS: Mapping[str, Callable[[Call], Awaitable[None]]] = {
    "add": _add,
    "list": _list,
    "deliveries": _deliveries,
    "remove": _remove,
    "rotate": _rotate,
    "redrive": _redrive,
}
