"""Know programs by their keys: check, cache, and refuse."""

from __future__ import annotations

import ipaddress
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from bot.api.callers import ApiCaller
from bot.api.limits import WrongKeys
from bot.api.problems import ApiProblemError
from bot.audit.acts import Act
from bot.audit.entries import entry_of
from bot.errors import DeliveryError
from bot.ports.people import Directory
from bot.ports.process import Clock, Spawn
from bot.ports.threads import Notices
from bot.records.origin import RequestDoor
from bot.records.programs import (
    ProgramKeyRecord,
    ProgramRecord,
    ProgramStore,
    is_key_of,
    key_id,
)
from bot.words import say
from storage.audit import AuditStore

logger = logging.getLogger(__name__)

CACHE_MS = 15_000
"""Longest time for which a key is known without reading it again, in milliseconds."""
_MOST_CACHED = 1_000
_HOUR_MS = 3_600_000
_DAY_MS = 24 * _HOUR_MS
_IN_ADDRESS = re.compile(r"csk_[0-9A-Za-z]{8}_[0-9A-Za-z]{38}", re.ASCII)

Networks: TypeAlias = Sequence[ipaddress.IPv4Network | ipaddress.IPv6Network]


@dataclass(slots=True)
class _Known:
    """A key and its program, read at a time; whether its owner may own it, once looked up."""

    key: ProgramKeyRecord
    program: ProgramRecord
    read_ms: int
    has_owner: bool | None = None


@dataclass(slots=True, kw_only=True)
class KeyRing:
    """Checks the keys that programs send.

    Attributes:
        store: Programs and keys.
        audit: Records wrong uses of known keys.
        directory: Looks owners up.
        notices: Tells owners.
        clock: The time now.
        spawn: Runs work in the background.
    """

    store: ProgramStore
    audit: AuditStore
    directory: Directory
    notices: Notices
    clock: Clock
    spawn: Spawn
    wrong: WrongKeys = field(init=False)
    _cache: dict[str, _Known] = field(default_factory=dict)
    _warned: dict[str, int] = field(default_factory=dict)
    """The last day on which the owner of a key was warned, by the key's id."""

    def __post_init__(self) -> None:
        self.wrong = WrongKeys(self.clock)

    async def caller(
        self, authorization: str | None, *, address: str, door: RequestDoor = RequestDoor.API
    ) -> ApiCaller:
        """Return the program that a header proves.

        Args:
            authorization: The header `Authorization`; None without one.
            address: The sender's address.
            door: The door of the call.

        Raises:
            ApiProblemError: The key is missing, wrong, revoked or expired, the address is not one
                of its networks, or its owner has left; or the address sent too many wrong keys.
            DirectoryError: The owner could not be looked up.
            StoreUnavailableError: The database did not respond.
        """
        self.wrong.check(address)
        scheme, _, key = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not key:
            raise ApiProblemError("key-missing", "send Authorization: Bearer csk_…")
        try:
            known = await self._checked(key.strip(), address)
        except ApiProblemError:
            self.wrong.note(address)
            raise
        await self._check_owner(known, address)
        return ApiCaller(program=known.program, key=known.key, door=door)

    async def still(self, caller: ApiCaller, *, address: str) -> None:
        """Check again that a held call's key works.

        Raises:
            ApiProblemError: The key ended meanwhile.
            DirectoryError: The owner could not be looked up.
            StoreUnavailableError: The database did not respond.
        """
        known = await self._known(caller.key.id)
        await self._check_live(known.key, known.program, address)
        await self._check_owner(known, address)

    async def _checked(self, key: str, address: str) -> _Known:
        name = key_id(key)
        if name is None:  # a typing error: nothing is looked up
            raise ApiProblemError("key-invalid")
        known = await self._known(name)
        if not is_key_of(known.key, key):
            await self._note_wrong(known.key, known.program, "secret", address)
            raise ApiProblemError("key-invalid")
        await self._check_live(known.key, known.program, address)
        return known

    async def _check_owner(self, known: _Known, address: str) -> None:
        """Refuse the key of a program whose owner is no active full member any more."""
        if known.has_owner is None:
            owner = await self.directory.person(known.program.owner_id)
            known.has_owner = owner.is_full_member
        if not known.has_owner:
            await self._note_wrong(known.key, known.program, "owner-left", address)
            detail = "The owner of the program is no full member of the workspace any more."
            raise ApiProblemError("key-revoked", detail, status=403)

    async def _known(self, name: str) -> _Known:
        now_ms = self.clock()
        if (cached := self._cache.get(name)) and 0 <= now_ms - cached.read_ms < CACHE_MS:
            return cached
        self._cache.pop(name, None)
        record = await self.store.key(name)
        program = await self.store.program(record.program_id) if record is not None else None
        if record is None or program is None:
            raise ApiProblemError("key-invalid")
        if len(self._cache) >= _MOST_CACHED:
            self._cache.pop(next(iter(self._cache)))
        known = self._cache[name] = _Known(record, program, now_ms)
        return known

    async def _check_live(
        self, key: ProgramKeyRecord, program: ProgramRecord, address: str
    ) -> None:
        now_ms = self.clock()
        code = ""
        if not key.is_live(now_ms):
            is_expired = now_ms >= key.expires_ms
            code = "key-expired" if is_expired and key.revoked_ms is None else "key-revoked"
        elif program.networks and not is_in(address, networks_of(program.networks)):
            code = "network-not-allowed"
        if code:
            await self._note_wrong(key, program, code, address)
            if code == "network-not-allowed":
                self._warn(key, program)
            raise ApiProblemError(code)

    def _warn(self, key: ProgramKeyRecord, program: ProgramRecord) -> None:
        """Tell the owner that the key was used from elsewhere: once a day for each key."""
        day = self.clock() // _DAY_MS
        if self._warned.get(key.id) == day:
            return
        self._warned[key.id] = day
        stop = "message.key_stop_own" if program.is_from_home else "message.key_stop"
        names = ("message.key_elsewhere", stop)
        self.spawn(self._tell_owner(key, program, *names, once=f"{key.public_id}:elsewhere:{day}"))

    async def _note_wrong(
        self, key: ProgramKeyRecord, program: ProgramRecord, fault: str, address: str
    ) -> None:
        """Record a wrong use: once an hour for each key and fault."""
        at_ms = self.clock()
        entry = entry_of(
            Act.KEY_USED_WRONG,
            key=f"{key.public_id}:{fault}:{at_ms // _HOUR_MS}",
            at_ms=at_ms,
            about="",
            team_id=program.team_id,
            name=key.public_id,
            program=program.name,
            fault=fault,
            address=address,
        )
        await self.audit.append(entry)

    async def revoke_leaked(self, address_line: str, *, address: str) -> None:
        """Refuse a path or query that has a key, which logs now have: it is revoked at once.

        Args:
            address_line: Path and query of the request.
            address: The sender's address.

        Raises:
            ApiProblemError: There is a text with the form of a key.
        """
        for text in _IN_ADDRESS.findall(address_line):
            self.wrong.check(address)
            self.wrong.note(address)
            name = key_id(text)
            record = await self.store.key(name) if name is not None else None
            if record is not None and is_key_of(record, text):
                await self._revoke(record, address)
            raise ApiProblemError("key-in-address", "make a new key, and send it as a header")

    async def _revoke(self, key: ProgramKeyRecord, address: str) -> None:
        at_ms = self.clock()
        program = await self.store.program(key.program_id)
        is_new = await self.store.revoke(key.id, at_ms=at_ms) is not None
        self._cache.pop(key.id, None)
        logger.warning(
            "revoked %s, which stood in an address",
            key.public_id,
            extra={"action": "api_key_revoked"},
        )
        entry = entry_of(
            Act.KEY_REVOKED,
            key=f"{key.public_id}:leaked",
            at_ms=at_ms,
            about="",
            team_id=program.team_id if program is not None else "",
            name=key.public_id,
            program=program.name if program is not None else "",
            why="it stood in an address",
        )
        await self.audit.append(entry)
        if program is not None:
            await self._note_wrong(key, program, "key-in-address", address)
            if is_new:
                renew = "message.key_renew_own" if program.is_from_home else "message.key_renew"
                names = ("message.key_leaked", renew)
                self.spawn(self._tell_owner(key, program, *names, once=key.public_id))

    async def _tell_owner(
        self, key: ProgramKeyRecord, program: ProgramRecord, *names: str, once: str
    ) -> None:
        words = (say(name, program=program.name, key=key.public_id) for name in names)
        try:
            await self.notices.tell(" ".join(words), to=program.owner_id, key=once)
        except DeliveryError as error:
            logger.warning(
                "could not tell %s what happened to %s: %s",
                program.owner_id,
                key.public_id,
                error,
                extra={"action": "api_owner_not_told"},
            )


def networks_of(texts: Sequence[str]) -> Networks:
    """Return networks from their texts, such as `10.0.0.0/8`.

    Raises:
        ValueError: A text is no network.
    """
    return tuple(ipaddress.ip_network(text) for text in texts)


def is_in(address: str, networks: Networks) -> bool:
    """Whether an address is in one of some networks. False for a text that is no address."""
    try:
        known = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    mapped = known.ipv4_mapped if isinstance(known, ipaddress.IPv6Address) else None
    return any((mapped or known) in network for network in networks)


def sender_of(peer: str, forwarded: str, proxies: Networks) -> str:
    """Return the address of a sender: the last one in `X-Forwarded-For` that is no proxy of ours.

    Args:
        peer: The other end of the connection.
        forwarded: The text of the headers `X-Forwarded-For`.
        proxies: Networks whose word is believed.
    """
    hops = (text.strip() for text in reversed(forwarded.split(",")))
    for address in (peer, *hops):
        if not is_in(address, proxies):
            return address or peer
    return peer
