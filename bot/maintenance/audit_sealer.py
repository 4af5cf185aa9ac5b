"""The care for the audit's chain: what is open is sealed, its end is told, and it is verified.

Nobody who appends waits for this. The embedded database seals at once, and there is only the end
to tell.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from bot.audit.acts import Act
from bot.audit.entries import entry_of
from bot.clock import milliseconds
from bot.errors import BotError
from bot.ports.process import Clock
from storage.base import Storage
from storage.chain import Flaw, Head, Seal, Verdict, Verifier, Wrong
from storage.errors import StorageError
from storage.ports.audit import Link, TrailStore

logger = logging.getLogger(__name__)

HEAD_EVERY = timedelta(hours=1)
"""From one line in the log with the ends of all chains to the next."""
LOOK_EVERY = timedelta(minutes=1)
"""From one look for what is not sealed to the next."""
LATE = timedelta(minutes=1)
"""The age from which an open entry is a fault."""
PAGE = 500
"""Entries that are read at a time."""


@dataclass(slots=True, kw_only=True)
class Sealer:
    """Seals what is open, again and again.

    Args:
        trail: The audit's chain.
        clock: The time now.
        owner: Name of this process in leases.
    """

    trail: TrailStore
    clock: Clock
    owner: str
    _next_head_ms: int = 0
    _next_look_ms: int = 0
    _is_busy: bool = False

    async def step(self) -> None:
        """Seal what is open; say in the log how far the chains are, and what is late."""
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
        if now >= self._next_look_ms:
            self._next_look_ms = now + milliseconds(LOOK_EVERY)
            await self._look(now)
        if now >= self._next_head_ms:
            self._next_head_ms = now + milliseconds(HEAD_EVERY)
            for team_id, head in (await self.trail.heads()).items():
                logger.info(
                    "audit head of %s: %d:%s",
                    team_id or "no workspace",
                    head.seq,
                    head.hash,
                    extra={"action": "audit_head"},
                )

    async def _look(self, now: int) -> None:
        left = await self.trail.unsealed()
        if left.count and now - left.since_ms > milliseconds(LATE):
            logger.warning(
                "%d unsealed audit entries, oldest %d s",
                left.count,
                (now - left.since_ms) // 1_000,
                extra={"action": "audit_unsealed"},
            )


async def links(storage: Storage) -> AsyncIterator[Link]:
    """All entries of the audit: those of each chain in order, and what is open."""
    for team_id in sorted(await storage.trail.heads()):
        async for link in links_of(storage, team_id):
            yield link
    for link in await storage.trail.open_links(limit=PAGE):
        yield link


async def links_of(storage: Storage, team_id: str) -> AsyncIterator[Link]:
    """The sealed entries of a workspace, in order; those whose number is none are the last."""
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
    storage: Storage,
    seal: Seal,
    *,
    head: Head | None = None,
    plain_until: Head | None = None,
    team_id: str = "",
) -> Mapping[str, Verdict]:
    """Look at each chain from its first entry to its last.

    Args:
        storage: Open.
        seal: Knows the keys.
        head: As noted elsewhere.
        plain_until: The last entry of before the key, as noted elsewhere.
        team_id: Whose chain; all of them when empty.

    Returns:
        What was found, by workspace.

    Raises:
        BotError: It is not clear of which chain the noted entries are.
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
        if verdict.ok and verdict.seq < noted[team].seq:  # the database itself noted a later end
            verdict = replace(verdict, fault=Flaw(verdict.seq + 1, Wrong.MISSING))
        verdicts[team] = verdict
    return verdicts


def _number(link: Link) -> int:
    """The number of a sealed entry; 0 for one that is damaged."""
    seq = link.form.get("seq")
    return seq if isinstance(seq, int) else 0


async def prune(storage: Storage, team_id: str, *, before_ms: int, owner: str, clock: Clock) -> int:
    """Delete the beginning of a chain, behind a checkpoint.

    Args:
        storage: Open.
        team_id: Whose chain.
        before_ms: Entries up to the first that is as young are deleted.
        owner: Name of this process in leases.
        clock: The time now.

    Returns:
        How many entries were deleted.

    Raises:
        BotError: The checkpoint is not sealed yet: nothing was deleted.
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
    return await storage.trail.expire(team_id, upto=upto, now_ms=now)
