"""The current policy: the last valid one, read again when its file changes.

An invalid file is never used, and no failure widens what is permitted: the last valid policy
applies until a valid file is read.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from bot.config.settings import Settings
from bot.policy.evaluation.context import PolicyWorld
from bot.policy.evaluation.evaluate import PolicyEvaluator
from bot.policy.model import PolicyFile
from bot.policy.parser.checks import CheckedPolicy, check, check_all
from bot.policy.parser.lookups import SlackFacts
from bot.policy.parser.problems import PolicyError, PolicyProblem
from bot.policy.parser.settings import policy_text, settings_policy
from bot.policy.parser.source import MAX_BYTES

OF_SETTINGS = "settings"
"""Name of the policy that is built from the settings."""
Read = Callable[[], Awaitable[bytes]]
"""Reads the policy's bytes; raises `OSError` on failure."""
Check = Callable[[bytes], Awaitable[CheckedPolicy]]
"""Checks a policy's bytes; raises `PolicyError`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyNews:
    """A policy that took effect or was refused.

    Attributes:
        name: Name of the file.
        hash: SHA-256 of the file's bytes; empty if the file is unreadable.
        in_force: Hash of the policy in effect.
        faults: All faults, one per line; empty if the policy took effect.
    """

    name: str
    hash: str
    in_force: str
    faults: str = ""


_ANY = "?"
"""Placeholder for the hash of a refused file that is checked again each time."""
Tell = Callable[[PolicyNews], Awaitable[None]]
"""Receives news of the policy, for the log, the audit and the metrics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySource:
    """The source of a policy."""

    name: str
    read: Read
    check: Check
    tell: Tell


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldPolicy:
    """An immutable policy.

    Attributes:
        rulebook: The prepared rules.
        file_hash: SHA-256 of the file's bytes.
        is_settings: Whether it was built from the settings.
    """

    rulebook: PolicyEvaluator
    file_hash: str
    is_settings: bool


class LoadedPolicy:
    """The current policy. Created by `load`; call `reload` regularly.

    Attributes:
        held: The current policy. Keep the object while a call is evaluated.
    """

    def __init__(self, source: PolicySource, policy: CheckedPolicy) -> None:
        self._source = source
        self._policy = policy
        self.held = self._hold(policy)
        self._refused = ("", "")
        self._turn = asyncio.Lock()

    @classmethod
    async def load(cls, source: PolicySource) -> LoadedPolicy:
        """Read the first policy.

        Raises:
            PolicyError: The policy is invalid, or cannot be read or looked up. Nothing may start.
        """
        policy = await source.check(await _read(source))
        await source.tell(PolicyNews(name=source.name, hash=policy.hash, in_force=policy.hash))
        return cls(source, policy)

    @property
    def file(self) -> PolicyFile:
        """The policy's model."""
        return self._policy.file

    @property
    def hash(self) -> str:
        """SHA-256 of the policy's bytes, 64 hexadecimal digits."""
        return self._policy.hash

    @property
    def name(self) -> str:
        """Name of the policy's source."""
        return self._source.name

    @property
    def faults(self) -> str:
        """The faults of the newest file, if it was refused; else empty."""
        return self._refused[1]

    async def reload(self, *, anew: bool = False) -> bool:
        """Read the file again. Use a valid new version, refuse an invalid one.

        Args:
            anew: Check and report a refused file again, even if it has not changed.

        Returns:
            Whether another policy is now in effect.
        """
        async with self._turn:
            file_hash = ""
            try:
                data = await _read(self._source)
                file_hash = hashlib.sha256(data).hexdigest()
                if self._is_known(file_hash) and not anew:
                    return False
                policy = await self._source.check(data)
            except PolicyError as error:
                await self._refuse(error, file_hash, anew=anew)
                return False
            return await self._put_in_force(policy)

    def _is_known(self, file_hash: str) -> bool:
        """Whether the file is in effect already, or was refused for a permanent fault."""
        return file_hash == (self._refused[0] or self.hash)

    async def _put_in_force(self, policy: CheckedPolicy) -> bool:
        is_new = policy.hash != self.hash
        if is_new or self._refused[1]:  # recorded before it takes effect
            news = PolicyNews(name=self.name, hash=policy.hash, in_force=policy.hash)
            await self._source.tell(news)
        self._refused = ("", "")
        if is_new:
            self._policy, self.held = policy, self._hold(policy)
        return is_new

    def _hold(self, policy: CheckedPolicy) -> HeldPolicy:
        return HeldPolicy(
            rulebook=PolicyEvaluator(policy.file),
            file_hash=policy.hash,
            is_settings=self._source.name == OF_SETTINGS,
        )

    async def _refuse(self, error: PolicyError, file_hash: str, *, anew: bool) -> None:
        text = error.text(self.name)
        is_told = text == self._refused[1] and not anew
        # A failed look-up or read may succeed the next time, so check such a file again.
        may_pass = not file_hash or any(
            problem.code == "unresolvable" for problem in error.problems
        )
        if not is_told:
            await self._source.tell(
                PolicyNews(name=self.name, hash=file_hash, in_force=self.hash, faults=text)
            )
        self._refused = (_ANY if may_pass else file_hash, text)


def source_of(
    settings: Settings,
    world: PolicyWorld,
    slack: SlackFacts | None,
    tell: Tell,
    *,
    is_demo: bool = False,
) -> PolicySource:
    """Return the source of the policy: the file in the settings, or the settings.

    Args:
        settings: Checked settings.
        world: The tools and agents that exist.
        slack: Looks up ids; None skips these checks.
        tell: Receives news of a file. Settings do not change.
        is_demo: Whether each rule may use `here`.
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
    """Return a reader of a file, which reads just enough to detect a too large file."""

    def read() -> bytes:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)

    async def read_beside() -> bytes:
        return await asyncio.to_thread(read)

    return read_beside
