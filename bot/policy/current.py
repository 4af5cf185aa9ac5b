"""The policy in force: the last good one, read again when its file changes (1.27).

A faulty file never comes into force, and nothing that fails widens what holds: until a good one
is there, the last good one holds.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from bot.config.settings import Settings
from bot.policy.evaluation.evaluate import PolicyEvaluator
from bot.policy.evaluation_context import PolicyWorld
from bot.policy.model import PolicyFile
from bot.policy.parser.checks import CheckedPolicy, check, check_all
from bot.policy.parser.lookups import SlackFacts
from bot.policy.parser.problems import PolicyError, PolicyProblem
from bot.policy.parser.settings import policy_text, settings_policy
from bot.policy.parser.source import MAX_BYTES

OF_SETTINGS = "settings"
"""The name of the policy that the settings are."""
Read = Callable[[], Awaitable[bytes]]
"""Reads the policy's bytes as they are now; raises `OSError` when that fails."""
Check = Callable[[bytes], Awaitable[CheckedPolicy]]
"""Looks at a policy's bytes; raises `PolicyError`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyNews:
    """A policy that came into force, or was refused.

    Attributes:
        name: Of its file.
        hash: SHA-256 of its bytes; empty when it cannot be read.
        in_force: The hash of the policy that holds now.
        faults: All faults, a line each; empty when it came into force.
    """

    name: str
    hash: str
    in_force: str
    faults: str = ""


_ANY = "?"
"""Stands for the hash of a refused file that is looked at again each time."""
Tell = Callable[[PolicyNews], Awaitable[None]]
"""Told what happens to the policy: for the log, the audit and the metrics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySource:
    """The place that a policy comes from.

    Attributes:
        name: Shown to people: the path of the file, or `settings`.
        read: Reads it.
        check: Looks at it.
        tell: Told what happens.
    """

    name: str
    read: Read
    check: Check
    tell: Tell


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldPolicy:
    """The policy at one moment.

    Attributes:
        rulebook: Its rules, ready to judge.
        file_hash: SHA-256 of its bytes.
        is_settings: Whether it is made of the settings.
    """

    rulebook: PolicyEvaluator
    file_hash: str
    is_settings: bool


class LoadedPolicy:
    """The policy that holds now. Made by `load`; `look` is called from time to time.

    Args:
        source: Where it comes from.
        policy: The first good one.
    """

    def __init__(self, source: PolicySource, policy: CheckedPolicy) -> None:
        self._source = source
        self._policy = policy
        self._held = self._hold(policy)
        self._refused = ("", "")
        self._turn = asyncio.Lock()

    @classmethod
    async def load(cls, source: PolicySource) -> LoadedPolicy:
        """Read the first policy.

        Raises:
            PolicyError: It is faulty, or cannot be read or looked up: nothing may start.
        """
        policy = await source.check(await _read(source))
        await source.tell(PolicyNews(name=source.name, hash=policy.hash, in_force=policy.hash))
        return cls(source, policy)

    @property
    def held(self) -> HeldPolicy:
        """The policy of this moment; whoever judges a call keeps it until that is done."""
        return self._held

    @property
    def file(self) -> PolicyFile:
        """Its rules."""
        return self._policy.file

    @property
    def hash(self) -> str:
        """SHA-256 of its bytes, 64 hexadecimal digits."""
        return self._policy.hash

    @property
    def name(self) -> str:
        """The name of the place that it comes from."""
        return self._source.name

    @property
    def faults(self) -> str:
        """The faults of the newest file, when that is not the one in force; else empty."""
        return self._refused[1]

    async def look(self, *, anew: bool = False) -> bool:
        """Read the file again; take a good new one, refuse a faulty one.

        Args:
            anew: Look at it even when it was refused before and has not changed, and tell it again.

        Returns:
            Whether another policy is in force now.
        """
        async with self._turn:
            found = ""
            try:
                data = await _read(self._source)
                found = hashlib.sha256(data).hexdigest()
                if self._is_known(found) and not anew:
                    return False
                policy = await self._source.check(data)
            except PolicyError as error:
                await self._refuse(error, found, anew=anew)
                return False
            return await self._take(policy)

    def _is_known(self, found: str) -> bool:
        """Whether nothing is new: it holds already, or was refused for what stays."""
        return found == (self._refused[0] or self.hash)

    async def _take(self, policy: CheckedPolicy) -> bool:
        is_new = policy.hash != self.hash
        if is_new or self._refused[1]:  # on record before it counts
            news = PolicyNews(name=self.name, hash=policy.hash, in_force=policy.hash)
            await self._source.tell(news)
        self._refused = ("", "")
        if is_new:
            self._policy, self._held = policy, self._hold(policy)
        return is_new

    def _hold(self, policy: CheckedPolicy) -> HeldPolicy:
        return HeldPolicy(
            rulebook=PolicyEvaluator(policy.file),
            file_hash=policy.hash,
            is_settings=self._source.name == OF_SETTINGS,
        )

    async def _refuse(self, error: PolicyError, found: str, *, anew: bool) -> None:
        text = error.text(self.name)
        is_told = text == self._refused[1] and not anew
        # What could not be looked up may be known the next time; so may a file that cannot be read.
        may_pass = not found or any(one.code == "unresolvable" for one in error.problems)
        if not is_told:
            await self._source.tell(
                PolicyNews(name=self.name, hash=found, in_force=self.hash, faults=text)
            )
        self._refused = (_ANY if may_pass else found, text)


def source_of(
    settings: Settings,
    world: PolicyWorld,
    slack: SlackFacts | None,
    tell: Tell,
    *,
    is_demo: bool = False,
) -> PolicySource:
    """The place of the policy that the settings name, or are.

    Args:
        settings: Checked settings.
        world: The tools and agents that exist.
        slack: Who answers about ids; None looks none up.
        tell: Told what happens to a file; the settings do not change.
        is_demo: Whether `here` may stand in each rule.
    """
    path = settings.policy
    is_settings = path is None

    async def check_it(data: bytes) -> CheckedPolicy:
        if slack is None:
            return check(data, world, demo=is_demo, is_settings=is_settings)
        return await check_all(data, world, slack, demo=is_demo, is_settings=is_settings)

    if path is not None:
        return PolicySource(name=str(path), read=reader_of(path), check=check_it, tell=tell)
    text = policy_text(settings_policy(settings)).encode()

    async def read() -> bytes:
        return text

    async def tell_nothing(_: PolicyNews) -> None:
        pass

    return PolicySource(name=OF_SETTINGS, read=read, check=check_it, tell=tell_nothing)


async def _read(source: PolicySource) -> bytes:
    try:
        return await source.read()
    except OSError as error:
        problem = PolicyProblem(
            code="not_yaml",
            key="",
            line=1,
            fault=f"can't read the file: {error.strerror or error}",
            remedy="check the path and its permissions",
        )
        raise PolicyError([problem]) from error


def reader_of(path: Path) -> Read:
    """Make the reader of a file; it reads no more than shows that the file is too big."""

    def read() -> bytes:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)

    async def read_beside() -> bytes:
        return await asyncio.to_thread(read)

    return read_beside
