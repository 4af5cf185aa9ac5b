"""Seal, verify and prune the chains of the audit.

Entries are appended unsealed and sealed later. SQLite seals on append, so the sealer only logs the
ends of its chains.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from bot.audit.acts import Act
from bot.audit.entries import entry_of
from bot.clock import is_waiting, milliseconds
from bot.errors import BotError
from bot.ports.process import Clock
from bot.stores import Stores
from storage.audit import Link
from storage.chain import Flaw, Head, Seal, Verdict, Verifier, Wrong
from storage.errors import StorageError
from storage.trail import Trail

logger = logging.getLogger(__name__)

HEAD_EVERY = timedelta(hours=1)
"""Interval at which the ends of all chains are logged."""
LOOK_EVERY = timedelta(minutes=1)
"""Interval between searches for unsealed entries."""
LATE = timedelta(minutes=1)
"""Age at which an unsealed entry is reported as a fault."""
PAGE = 500
"""Number of entries per read."""


@dataclass(slots=True, kw_only=True)
class Sealer:
    """Seals unsealed audit entries periodically."""

    trail: Trail
    clock: Clock
    owner: str
    _next_head_ms: int = 0
    _next_look_ms: int = 0
    _is_busy: bool = False

    async def step(self) -> None:
        """Seal new entries; log the ends of the chains and overdue entries."""
        if self._is_busy:
            return
        self._is_busy = True
        try:
            await self._step(self.clock())
        except StorageError as error:
            logger.warning("audit sealing failed: %s", error, extra={"action": "seal_failed"})
        finally:
            self._is_busy = False

    async def _step(self, now: int) -> None:
        await self.trail.seal(owner=self.owner, now_ms=now)
        if not is_waiting(self._next_look_ms, now, LOOK_EVERY):
            self._next_look_ms = now + milliseconds(LOOK_EVERY)
            await self._report_unsealed(now)
        if not is_waiting(self._next_head_ms, now, HEAD_EVERY):
            self._next_head_ms = now + milliseconds(HEAD_EVERY)
            for team_id, head in (await self.trail.heads()).items():
                logger.info(
                    "audit head of %s: %d:%s",
                    team_id or "no workspace",
                    head.seq,
                    head.hash,
                    extra={"action": "audit_head"},
                )

    async def _report_unsealed(self, now: int) -> None:
        left = await self.trail.unsealed()
        if left.count and now - left.since_ms > milliseconds(LATE):
            logger.warning(
                "%d unsealed audit entries, oldest %d s",
                left.count,
                (now - left.since_ms) // 1_000,
                extra={"action": "audit_unsealed"},
            )


async def links(storage: Stores) -> AsyncIterator[Link]:
    """Return all audit entries: each chain in order, then the unsealed entries."""
    for team_id in sorted(await storage.trail.heads()):
        async for link in links_of(storage, team_id):
            yield link
    for link in await storage.trail.open_links(limit=PAGE):
        yield link


async def links_of(storage: Stores, team_id: str) -> AsyncIterator[Link]:
    """Return a workspace's sealed entries in order; damaged numbers come last."""
    after = 0
    while page := await storage.trail.page(team_id, after=after, limit=PAGE):
        numbers = [number for link in page if (number := _number(link))]
        for link in page:
            if not numbers or isinstance(link.form.get("seq"), int | float):
                yield link
        if not numbers:
            return
        after = numbers[-1]


async def verify(
    storage: Stores,
    seal: Seal,
    *,
    head: Head | None = None,
    plain_until: Head | None = None,
    team_id: str = "",
) -> Mapping[str, Verdict]:
    """Verify each chain from its first entry to its last.

    Args:
        storage: An open database.
        seal: Knows the keys.
        head: End of a chain, as noted elsewhere.
        plain_until: Last entry before the key was introduced, as noted elsewhere.
        team_id: The workspace; empty for all.

    Returns:
        The results by workspace.

    Raises:
        BotError: It is unclear which chain the noted entries belong to.
    """
    verdicts: dict[str, Verdict] = {}
    heads = await storage.trail.heads()
    noted = {team: end for team, end in heads.items() if not team_id or team == team_id}
    if (head or plain_until) is not None and len(noted) > 1:
        raise BotError("there are several workspaces: say --team, too")
    for team in sorted(noted):
        verifier = Verifier(seal, head, plain_until=plain_until)
        async for link in links_of(storage, team):
            verifier.add(link.form, is_whole=link.is_whole, is_erased=link.entry.erased)
        verdict = verifier.end()
        if (
            verdict.ok and verdict.seq < noted[team].seq
        ):  # the database has a later checkpoint of the end
            verdict = replace(verdict, fault=Flaw(verdict.seq + 1, Wrong.MISSING))
        verdicts[team] = verdict
    return verdicts


def _number(link: Link) -> int:
    """Return the number of a sealed entry; 0 if it is damaged."""
    seq = link.form.get("seq")
    return seq if isinstance(seq, int) else 0


async def prune(storage: Stores, team_id: str, *, before_ms: int, owner: str, clock: Clock) -> int:
    """Delete the beginning of a chain, before a checkpoint.

    Returns:
        The number of deleted entries.

    Raises:
        BotError: The checkpoint is not sealed yet, so no entry was deleted.
    """
    last: Link | None = None
    count = 0
    async for link in links_of(storage, team_id):
        if link.entry.at_ms >= before_ms:
            break
        last, count = link, count + 1
    if last is None:
        return 0
    upto, now = _number(last), clock()
    checkpoint = entry_of(
        Act.CHECKPOINT,
        key=f"{team_id}:{upto}",
        at_ms=now,
        about="",
        team_id=team_id,
        upto_seq=upto,
        upto_hash=last.form["hash"],
        count=count,
    )
    await storage.audit.append(checkpoint)
    await storage.trail.seal(owner=owner, now_ms=now)
    still_open = await storage.trail.open_links(limit=PAGE)
    if any(link.entry.entry_id == checkpoint.entry_id for link in still_open):
        raise BotError("another process is sealing the chain: try again")
    return await storage.trail.expire(team_id, upto=upto)
