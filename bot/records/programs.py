"""Programs that may ask people, and the keys by which the bot knows them."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import string
import zlib
from collections.abc import Sequence
from enum import StrEnum
from typing import Literal

from pydantic import Field

from bot.records.webhooks import Secrets, WebhookSecret, rotated
from storage.documents import Collection, Document, Index, Part, Spec, update, update_or_none
from storage.errors import RecordNotFoundError

_BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
_ID_LENGTH, _SECRET_LENGTH, _CHECK_LENGTH = 8, 32, 6
_KEY = re.compile(rf"csk_([0-9A-Za-z]{{{_ID_LENGTH}}})_[0-9A-Za-z]{{38}}", re.ASCII)

WARNED_MS = 14 * 24 * 3_600_000
"""Time before the end of a program's last key in which operators are warned, in milliseconds."""
MOST_LIVE_KEYS = 2
"""Live keys of one program: the present one, and its successor during a rotation."""


class ProgramScope(StrEnum):
    """A right of a program at the API. Stored: version 1, must stay readable."""

    WRITE = "requests:write"
    READ = "requests:read"
    WEBHOOKS = "webhooks:manage"
    THREADS = "threads:write"
    VERIFY = "executions:verify"


class ProgramLimits(Part):
    """Limits of one program. Stored: version 1, must stay readable."""

    create: int = 60
    """Requests that the program may create in a minute."""
    pending: int = 100
    """Undecided requests at once."""
    waiting: int = 200
    """Held calls at once, in one process."""


class ProgramRecord(Document):
    """A program that may ask people. Requests belong to it, not to its keys."""

    spec = Spec(name="programs", noun="program", indexes=(Index(("owner_id", "created_ms")),))

    id: str
    """`prg_` and a digest of the name, so that a name is taken once."""
    team_id: str
    name: str
    owner_id: str
    """Slack user id of the full member who answers for the program."""
    salt: str
    """Random, in hexadecimal: ids of requests and cursors are made with it. It never leaves."""
    scopes: tuple[ProgramScope, ...]
    tools: tuple[str, ...] = ()
    """Patterns (`fnmatch`, case-sensitive) of the tools that it may name."""
    channels: tuple[str, ...] = ()
    """Slack ids of the channels where it may ask; the first is the default."""
    requester: Literal["owner", "named", "required"] = "owner"
    """Whether a request may, or must, name the person for whom the program asks."""
    people: Literal["none", "narrow"] = "none"
    """Whether a request may narrow who is asked."""
    trusts_tags: bool = False
    """Whether the tags of a request count as true."""
    callback_hosts: tuple[str, ...] = ()
    callback_secrets: Secrets = Field(repr=False)
    """Sign the events that go to a `callback_url`."""
    networks: tuple[str, ...] = ()
    """Networks (CIDR) from which its keys work; empty for any."""
    limits: ProgramLimits = ProgramLimits()
    is_personal: bool = False
    """Whether the program is its owner's own tool."""
    created_ms: int

    @property
    def is_from_home(self) -> bool:
        """Whether its owner made it in Home; an operator's names have no slash."""
        return "/" in self.name


class ProgramKeyRecord(Document):
    """A key of a program. The key itself is shown once, and only its digest is kept."""

    spec = Spec(
        name="program_keys",
        noun="key",
        indexes=(Index(("program_id", "created_ms")), Index(("created_ms",))),
    )

    id: str
    """Public part of the key, without `csk_`."""
    program_id: str
    digest: str
    """SHA-256 of the whole key, in hexadecimal."""
    created_ms: int
    expires_ms: int
    revoked_ms: int | None = None
    """Time from which the key does not work; it may lie ahead. None for a key in force."""

    @property
    def public_id(self) -> str:
        """The name of the key in logs and in the audit."""
        return f"csk_{self.id}"

    @property
    def ends_ms(self) -> int:
        """Time from which the key does not work."""
        ends = (self.expires_ms, self.revoked_ms)
        return min(end_ms for end_ms in ends if end_ms is not None)

    def is_live(self, now_ms: int) -> bool:
        """Whether the key works: it is neither revoked nor expired."""
        return now_ms < self.ends_ms


def program_id(name: str) -> str:
    """Return the id of the program with a name."""
    return f"prg_{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def new_key() -> str:
    """Return a random key: `csk_`, an id, `_`, a secret of 190 bits, and a checksum."""
    unchecked = f"csk_{_random(_ID_LENGTH)}_{_random(_SECRET_LENGTH)}"
    return unchecked + _checksum(unchecked)


def key_id(key: str) -> str | None:
    """Return the id in a key; None if the text is no key, or has a typing error."""
    match = _KEY.fullmatch(key)
    is_key = match is not None and _checksum(key[:-_CHECK_LENGTH]) == key[-_CHECK_LENGTH:]
    return match[1] if match is not None and is_key else None


def key_digest(key: str) -> str:
    """Return the SHA-256 of a key, in hexadecimal."""
    return hashlib.sha256(key.encode()).hexdigest()


def is_key_of(record: ProgramKeyRecord, key: str) -> bool:
    """Whether a key is the one that a record is about. Compares in constant time."""
    return hmac.compare_digest(record.digest, key_digest(key))


def _random(length: int) -> str:
    return "".join(secrets.choice(_BASE62) for _ in range(length))


def _checksum(text: str) -> str:
    """Return the CRC-32 of a text as six base62 digits."""
    number = zlib.crc32(text.encode())
    digits = ""
    for _ in range(_CHECK_LENGTH):
        number, rest = divmod(number, len(_BASE62))
        digits = _BASE62[rest] + digits
    return digits


class ProgramStore:
    """Programs and their keys."""

    def __init__(
        self, programs: Collection[ProgramRecord], keys: Collection[ProgramKeyRecord]
    ) -> None:
        self.programs = programs
        self.keys = keys

    async def add(self, program: ProgramRecord) -> bool:
        """Insert a program; return False if its name is taken."""
        return bool(await self.programs.insert(program))

    async def add_key(self, key: ProgramKeyRecord) -> bool:
        """Insert a key; return False if its id exists."""
        return bool(await self.keys.insert(key))

    async def program(self, program_id: str) -> ProgramRecord | None:
        """Read a program; None if it does not exist.

        Raises:
            RecordFormatError: The record cannot be read.
        """
        try:
            return await self.programs.get(program_id)
        except RecordNotFoundError:
            return None

    async def key(self, key_id: str) -> ProgramKeyRecord | None:
        """Read a key by its id; None if it does not exist.

        Raises:
            RecordFormatError: The record cannot be read.
        """
        try:
            return await self.keys.get(key_id)
        except RecordNotFoundError:
            return None

    async def keys_of(self, program_id: str) -> Sequence[ProgramKeyRecord]:
        """Return the keys of a program, oldest first."""
        page = await self.keys.find({"program_id": program_id}, sort=["created_ms"])
        return page.documents

    async def all_keys(self) -> Sequence[ProgramKeyRecord]:
        """Return all keys, oldest first."""
        return (await self.keys.find({}, sort=["created_ms"])).documents

    async def ending(self, *, now_ms: int) -> Sequence[tuple[ProgramRecord, ProgramKeyRecord]]:
        """Return the programs whose last key ends soon, with that key; the first to end first."""
        keys = [key for key in await self.all_keys() if key.is_live(now_ms)]
        last = {key.program_id: key for key in sorted(keys, key=lambda key: key.ends_ms)}
        soon = [(await self.program(name), key) for name, key in last.items()]
        return [
            (program, key) for program, key in soon if program and key.ends_ms < now_ms + WARNED_MS
        ]

    async def with_callbacks(self) -> Sequence[ProgramRecord]:
        """Return the programs that may have events sent."""
        programs = (await self.programs.find({})).documents
        return [program for program in programs if program.callback_hosts]

    async def of_owner(self, owner_id: str) -> Sequence[ProgramRecord]:
        """Return the programs of an owner, oldest first."""
        page = await self.programs.find({"owner_id": owner_id}, sort=["created_ms"])
        return page.documents

    async def live_keys_of_owner(
        self, owner_id: str, *, now_ms: int
    ) -> Sequence[tuple[ProgramRecord, ProgramKeyRecord]]:
        """Return the keys in force of an owner's programs, with the programs."""
        return [
            (program, key)
            for program in await self.of_owner(owner_id)
            for key in await self.keys_of(program.id)
            if key.is_live(now_ms)
        ]

    async def replace_channels(self, program_id: str, channels: tuple[str, ...]) -> bool:
        """Set where a program may ask; return False if the program does not exist."""

        def changed(known: ProgramRecord) -> ProgramRecord:
            return known.changed(channels=channels)

        return await update_or_none(self.programs, program_id, changed) is not None

    async def rotate_callbacks(
        self, program_id: str, new: WebhookSecret, *, until_ms: int
    ) -> ProgramRecord | None:
        """Give a program a new secret for `callback_url`; the present one signs until a time.

        Returns:
            The program; None if it does not exist.
        """

        def changed(known: ProgramRecord) -> ProgramRecord:
            secrets = rotated(known.callback_secrets, new, until_ms=until_ms)
            return known.changed(callback_secrets=secrets)

        return await update_or_none(self.programs, program_id, changed)

    async def revoke(self, key_id: str, *, at_ms: int) -> ProgramKeyRecord | None:
        """End a key at a time, unless it ends before.

        Returns:
            The key as stored; None if it does not exist, or ended before.
        """

        def ended(key: ProgramKeyRecord) -> ProgramKeyRecord | None:
            is_ended = key.revoked_ms is not None and key.revoked_ms <= at_ms
            return None if is_ended else key.changed(revoked_ms=at_ms)

        try:
            return await update(self.keys, key_id, ended)
        except RecordNotFoundError:
            return None

    async def end_all(self, *, now_ms: int) -> int:
        """End all keys after a restore, because later revocations are not in the backup."""
        return sum(
            [await self.revoke(key.id, at_ms=now_ms) is not None for key in await self.all_keys()]
        )
