"""I2, I4, I5, I13: the bot is killed at any write while a call is changed, decided and started.

`relay` plays it: one person edits, so that another one has to agree, who does; and it runs. The bot
dies before a write to the database is made, or right after it has taken effect, and another one
goes on with what is due. Whichever write it is, the payment runs once, as it was edited, by the
word of the second person, and all comes to rest.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from random import Random

import pytest

from bot.records.approval import Status
from bot.records.approval_queries import open_of
from bot.stores import Stores
from bot.threads.closing import GIVEN_UP
from bot.threads.runs.streaming import post_id
from bot.threads.worker import MAX_CRASHES
from storage.mongo import Driver
from tests.property.worlds.relay import FINAL, Play, Relay, dies
from tests.support.mongo import DRIVERS, MongoServer
from tests.support.sizes import size
from tests.support.stores import MongoStores, SqliteStores
from tests.unit.bot.office import ADA, BEN

COURSE = ("voted", "decided", "resumed", "started", "executed")
"""What is noted of a call that runs, in this order."""
FEWEST = 30
"""Writes of one payment, from the message to the last word; there are more."""


@pytest.fixture
async def relay(storage: SqliteStores) -> Relay:
    return Relay(storage)


@pytest.fixture(params=DRIVERS)
async def far_relay(
    request: pytest.FixtureRequest, mongo_server: MongoServer
) -> AsyncIterator[Relay]:
    driver: Driver = request.param
    database, timeout = mongo_server.new_database(), timedelta(seconds=20)
    storage = MongoStores(mongo_server.uri, driver=driver, database=database, timeout=timeout)
    await storage.open()
    yield Relay(storage)
    await storage.close()


async def test_an_edited_call_runs_by_the_word_of_who_decides_it(relay: Relay) -> None:
    play = await relay.play()
    await ends_well(relay, play)
    assert (play.deaths, play.doubts) == (0, set())


@pytest.mark.parametrize(
    ("is_after", "step"), [(False, size(4, 1)), (True, size(3, 1))], ids=["before", "after"]
)
async def test_whichever_write_it_dies_at(relay: Relay, is_after: bool, step: int) -> None:
    await dies_at_any(relay, is_after=is_after, step=step)


@pytest.mark.mongo
@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
async def test_whichever_write_it_dies_at_over_the_wire(far_relay: Relay, is_after: bool) -> None:
    await dies_at_any(far_relay, is_after=is_after, step=size(15, 2))


async def test_whichever_write_the_next_one_dies_at(relay: Relay) -> None:
    random = Random(8)  # noqa: S311 - not for secrets
    for _ in range(size(6, 200)):
        first, second, third = (
            dies(random.randint(1, FEWEST), is_after=random.random() < 0.5) for _ in range(3)
        )
        play = await relay.play(first, second, third)
        assert play.deaths >= 1
        if await is_given_up(relay, play):
            assert play.deaths == MAX_CRASHES
            assert relay.ledger.ran[play.job] in ([], [FINAL])
        else:
            await ends_well(relay, play)


async def is_given_up(relay: Relay, play: Play) -> bool:
    """Whether all of them died during the turn, which is then ended."""
    thread = await relay.storage.threads.get(play.thread_id)
    return await relay.storage.posts.get(post_id(thread, GIVEN_UP)) is not None


async def dies_at_any(relay: Relay, *, is_after: bool, step: int) -> None:
    """Play it again and again, each time with a death at another write.

    Left out is none that is next to the tool: there it is not known whether it has run.
    """
    await relay.play(dies(10_000, is_after=is_after))  # the first start makes the switch's record
    whole = await relay.play(dies(10_000, is_after=is_after))
    (begin,) = whole.begins()
    last = len(whole.done) - 1  # the tool is in the list, and is no write
    assert last > FEWEST
    beside = begin + 1 - is_after
    doubts = 0
    for write in sorted({*range(step, last + 1, step), beside}):
        play = await relay.play(dies(write, is_after=is_after))
        await ends_well(relay, play)
        assert play.deaths == 1, write
        doubts += len(play.doubts)
    assert doubts


async def ends_well(relay: Relay, play: Play) -> None:
    """It has run once, rightly, and nothing waits any more."""
    assert (play.faults, relay.ledger.faults) == ([], [])
    assert relay.ledger.ran[play.job] == [FINAL]
    await decided_before_it_began(relay.storage, play)
    await all_is_noted(relay.storage, play)
    thread = await relay.storage.threads.get(play.thread_id)
    assert (thread.due_ms, thread.turn_open) == (None, False)
    assert await open_of(relay.storage.approvals, play.thread_id) == []
    for drawn in relay.cards():
        kept = await relay.storage.approvals.get(drawn.approval_id)
        assert drawn.status is kept.status is not Status.PENDING
        assert (drawn.shown_revision, kept.card.revision, kept.due_ms) == (
            kept.shown_revision,
        ) * 2 + (None,)
        assert relay.notifier.posts.count(drawn.approval_id) == 1
    texts = [text for key, text in relay.notifier.texts.items() if key.startswith(play.thread_id)]
    assert len(texts) == 2
    messages = relay.notifier.messages.items()
    assert all(len(posted) == 1 for key, posted in messages if key.startswith(play.thread_id))
    assert f"for {play.job}" in texts[-1] or play.doubts


async def all_is_noted(storage: Stores, play: Play) -> None:
    """Nothing is missing in the audit, and what follows from something stands behind it.

    What came of a doubt is its own story. Who edited a call is said once more where it is decided.
    """
    kept = await storage.audit.of_thread(play.thread_id, limit=100)
    assert play.doubts or {noted.action for noted in kept} >= {*COURSE, "requested"}
    acts: dict[tuple[str, str], None] = {}
    for _, entry in play.entries():
        acts.setdefault((entry.approval_id, entry.action))
    for about in {name for name, _ in acts if name}:
        places = [COURSE.index(act) for name, act in acts if name == about and act in COURSE]
        assert places == sorted(places), acts


async def decided_before_it_began(storage: Stores, play: Play) -> None:
    """The decision; the audit of it, then of the start; the mark in the journal; the tool."""
    (begin,) = play.begins()
    decided, decision = next(iter(play.decisions()))
    assert (decision.by, decision.status) == (BEN, Status.APPROVED)
    noted = next(at for at, entry in play.entries() if entry.action == "decided")
    started = next(at for at, entry in play.entries() if entry.action == "started")
    begun = next(
        at for at, (_, _, values) in enumerate(play.done) if '"started"' in str(values[1:2])
    )
    assert decided < noted <= started < begun < begin
    acts = [entry.action for _, entry in play.entries()]
    assert acts.index("decided") < acts.index("started")
    entries = await storage.audit.of_thread(play.thread_id, limit=100)
    (about, *_) = [record for record in entries if record.action == "decided"]
    assert (about.actor_id, about.detail["digest"]) == (BEN, decision.digest)
    assert about.detail["edited_by"] == ADA
    for audited in (about, next(record for record in entries if record.action == "started")):
        assert audited.detail["arguments"] == {
            "ref": play.job,
            "amount": FINAL.amount,
            "to": FINAL.to,
        }
