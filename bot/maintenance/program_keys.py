"""Make and end keys of programs, each with its audit entry; members make keys of their own."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from bot.audit.acts import Act
from bot.audit.entries import note
from bot.clock import milliseconds
from bot.errors import UserFacingError
from bot.ports.people import Directory
from bot.ports.process import Clock
from bot.records.programs import (
    MOST_LIVE_KEYS,
    ProgramKeyRecord,
    ProgramRecord,
    ProgramScope,
    key_digest,
    key_id,
    new_key,
    program_id,
)
from bot.records.webhooks import new_secret
from bot.stores import Stores
from bot.words import say

USUAL_PERSONAL_KEY = timedelta(days=30)
"""Lifetime of a key of a person's own program, unless the operator gives another one."""
MOST_PERSONAL = 10
"""Maximum number of programs that one person makes."""
MOST_CHANNELS = 20
"""Maximum number of channels of a program that a person makes."""
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_SALT_BYTES = 32


def is_program_name(name: str) -> bool:
    """Whether people may call a program so."""
    return _NAME.fullmatch(name) is not None


def new_salt() -> str:
    """Return a random salt of a program."""
    return secrets.token_hex(_SALT_BYTES)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramKeys:
    """Makes and ends keys.

    Args:
        storage: The database.
        clock: The time now.
        by: Who acts, for the audit.
    """

    storage: Stores
    clock: Clock
    by: str

    async def make(
        self, program: ProgramRecord, lifetime: timedelta
    ) -> tuple[ProgramKeyRecord, str]:
        """Make a key; return its record, and the key itself, which is not kept."""
        key, now_ms = new_key(), self.clock()
        record = ProgramKeyRecord(
            id=key_id(key) or "",
            program_id=program.id,
            digest=key_digest(key),
            created_ms=now_ms,
            expires_ms=now_ms + milliseconds(lifetime),
        )
        await self.storage.programs.add_key(record)
        await note(
            self.storage.audit,
            Act.KEY_MADE,
            key=record.public_id,
            at_ms=now_ms,
            about="",
            by=self.by,
            team_id=program.team_id,
            name=record.public_id,
            program=program.name,
            owner=program.owner_id,
            expires_ms=record.expires_ms,
        )
        return record, key

    async def end(
        self, program: ProgramRecord, key: ProgramKeyRecord, *, at_ms: int | None = None
    ) -> bool:
        """End a key at a time, now by default; return False if it had ended before."""
        now_ms = self.clock()
        ends_ms = now_ms if at_ms is None else at_ms
        if await self.storage.programs.revoke(key.id, at_ms=ends_ms) is None:
            return False
        await note(
            self.storage.audit,
            Act.KEY_REVOKED,
            key=f"{key.public_id}:{ends_ms}",
            at_ms=now_ms,
            about="",
            by=self.by,
            team_id=program.team_id,
            name=key.public_id,
            program=program.name,
            owner=program.owner_id,
            ends_ms=ends_ms,
        )
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonalKeys:
    """Lets a member connect a program of their own, without an operator.

    Args:
        storage: The database.
        directory: Looks channels up.
        clock: The time now.
        url: Public address of the API.
        team_id: The workspace.
    """

    storage: Stores
    directory: Directory
    clock: Clock
    url: str
    team_id: str

    async def connect(
        self, user_id: str, name: str, channels: Sequence[str], *, direct: str
    ) -> tuple[ProgramKeyRecord, str]:
        """Make a program, or take the one that the person gave this name; make a key for it.

        Args:
            user_id: An active full member.
            name: What the person calls the program.
            channels: Where it may ask, the default first. The direct message is added.
            direct: Id of the person's direct message with the bot.

        Returns:
            The record of the key, and the key itself, which is not kept.

        Raises:
            UserFacingError: A name, a channel or a number is not allowed.
            DirectoryError: A channel could not be looked up.
        """
        if not is_program_name(name):
            raise UserFacingError(say("error.program_name"))
        await self._check_channels(user_id, channels)
        program = self._program(user_id, name, (*dict.fromkeys(channels), direct))
        store, now_ms = self.storage.programs, self.clock()
        keys = await store.keys_of(program.id)
        if sum(key.is_live(now_ms) for key in keys) >= MOST_LIVE_KEYS:
            raise UserFacingError(say("error.program_keys", n=MOST_LIVE_KEYS))
        if not await store.replace_channels(program.id, program.channels):
            own = [known for known in await store.of_owner(user_id) if known.is_personal]
            if len(own) >= MOST_PERSONAL:
                raise UserFacingError(say("error.programs", n=MOST_PERSONAL))
            await store.add(program)
        return await self._keys(user_id).make(program, USUAL_PERSONAL_KEY)

    async def revoke(self, user_id: str, key: str) -> None:
        """End a key of the person's own program at once.

        Raises:
            UserFacingError: The person has no such key.
        """
        record = await self.storage.programs.key(key)
        program = await self.storage.programs.program(record.program_id) if record else None
        is_own = program is not None and program.is_personal and program.owner_id == user_id
        if record is None or program is None or not is_own:
            raise UserFacingError(say("error.key_unknown"))
        await self._keys(user_id).end(program, record)

    async def _check_channels(self, user_id: str, channels: Sequence[str]) -> None:
        """Refuse channels that the person or the bot is not in."""
        if len(channels) > MOST_CHANNELS:
            raise UserFacingError(say("error.program_channels", n=MOST_CHANNELS))
        for channel in channels:
            is_ours = channel[:1] in {"C", "G"} and await self.directory.is_in(channel)
            if not is_ours or user_id not in await self.directory.channel_members(channel):
                raise UserFacingError(say("error.program_channel"))

    def _program(self, user_id: str, name: str, channels: tuple[str, ...]) -> ProgramRecord:
        # An operator's names have no slash, so no rule for one of theirs is true for it.
        whole = f"personal/{user_id.lower()}/{name}"
        return ProgramRecord(
            id=program_id(whole),
            team_id=self.team_id,
            name=whole,
            owner_id=user_id,
            salt=new_salt(),
            scopes=(ProgramScope.WRITE, ProgramScope.READ),
            tools=("*",),
            channels=channels,
            callback_secrets=(new_secret(),),
            is_personal=True,
            created_ms=self.clock(),
        )

    def _keys(self, user_id: str) -> ProgramKeys:
        return ProgramKeys(storage=self.storage, clock=self.clock, by=user_id)
