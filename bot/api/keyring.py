"""Know programs by their keys: check, cache, and refuse."""

from __future__ import annotations

import ipaddress
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from bot.api.limits import WrongKeys
from bot.api.ports import ApiCaller
from bot.api.problems import ApiProblemError
from bot.audit.acts import Act
from bot.audit.entries import entry_of
from bot.ports.process import Clock
from bot.records.origin import RequestDoor
from bot.records.programs import (
    ProgramKeyRecord,
    ProgramRecord,
    ProgramStore,
    is_key_of,
    key_id,
)
from storage.audit import AuditStore

logger = logging.getLogger(__name__)

CACHE_MS = 15_000
"""Longest time for which a key is known without reading it again, in milliseconds."""
_MOST_CACHED = 1_000
_HOUR_MS = 3_600_000
_IN_ADDRESS = re.compile(r"csk_[0-9A-Za-z]{8}_[0-9A-Za-z]{38}", re.ASCII)

Networks: TypeAlias = Sequence[ipaddress.IPv4Network | ipaddress.IPv6Network]


@dataclass(slots=True)
class KeyRing:
    """Checks the keys that programs send.

    Attributes:
        store: Programs and keys.
        audit: Records wrong uses of known keys.
        clock: The time now.
    """

    store: ProgramStore
    audit: AuditStore
    clock: Clock
    wrong: WrongKeys = field(init=False)
    _cache: dict[str, tuple[ProgramKeyRecord, ProgramRecord, int]] = field(default_factory=dict)

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
            ApiProblemError: The key is missing, wrong, revoked or expired, or the address is not
                one of its networks; or the address sent too many wrong keys.
            StoreUnavailableError: The database did not respond.
        """
        self.wrong.check(address)
        scheme, _, key = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not key:
            raise ApiProblemError("key-missing", "send Authorization: Bearer csk_…")
        try:
            return await self._checked(key.strip(), address, door)
        except ApiProblemError:
            self.wrong.note(address)
            raise

    async def still(self, caller: ApiCaller, *, address: str) -> None:
        """Check again that a held call's key works.

        Raises:
            ApiProblemError: The key ended meanwhile.
        """
        key, program = await self._known(caller.key.id)
        await self._check_live(key, program, address)

    async def _checked(self, key: str, address: str, door: RequestDoor) -> ApiCaller:
        name = key_id(key)
        if name is None:  # a typing error: nothing is looked up
            raise ApiProblemError("key-invalid")
        record, program = await self._known(name)
        if not is_key_of(record, key):
            await self._note_wrong(record, program, "secret", address)
            raise ApiProblemError("key-invalid")
        await self._check_live(record, program, address)
        return ApiCaller(program=program, key=record, door=door)

    async def _known(self, name: str) -> tuple[ProgramKeyRecord, ProgramRecord]:
        now_ms = self.clock()
        if (cached := self._cache.get(name)) and 0 <= now_ms - cached[2] < CACHE_MS:
            return cached[:2]
        self._cache.pop(name, None)
        record = await self.store.key(name)
        program = await self.store.program(record.program_id) if record is not None else None
        if record is None or program is None:
            raise ApiProblemError("key-invalid")
        if len(self._cache) >= _MOST_CACHED:
            self._cache.pop(next(iter(self._cache)))
        self._cache[name] = (record, program, now_ms)
        return record, program

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
            raise ApiProblemError(code)

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
                await self._revoke(record)
            raise ApiProblemError("key-in-address", "make a new key, and send it as a header")

    async def _revoke(self, key: ProgramKeyRecord) -> None:
        at_ms = self.clock()
        program = await self.store.program(key.program_id)
        await self.store.revoke(key.id, at_ms=at_ms)
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
