"""A ring of keys whose owners a test knows."""

from __future__ import annotations

from bot.api.keyring import KeyRing
from bot.ports.process import Clock
from bot.stores import Stores
from tests.support.fakes import FakeDirectory, FakeNotices, Queue


def a_ring(
    storage: Stores,
    clock: Clock,
    *owners: str,
    directory: FakeDirectory | None = None,
    notices: FakeNotices | None = None,
    queue: Queue | None = None,
) -> KeyRing:
    """Know the programs of a store.

    Args:
        storage: The store.
        clock: The time.
        owners: Slack user ids of full members.
        directory: Knows people.
        notices: Takes messages to owners.
        queue: Holds the messages back.
    """
    directory = directory or FakeDirectory()
    for name in owners:
        directory.add(name)
    return KeyRing(
        store=storage.programs,
        audit=storage.audit,
        directory=directory,
        notices=notices or FakeNotices(),
        clock=clock,
        spawn=(queue or Queue()).spawn,
    )
