"""The world of a scenario: where the server is, is chosen here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.programs.loopback import Loopback
from tests.support.programs.world import VirtualWorld


@pytest.fixture(params=["sync", "async"])
def world(request: pytest.FixtureRequest) -> Iterator[VirtualWorld]:
    made = VirtualWorld(request.param)
    yield made
    made.close()


@pytest.fixture
def sync_world() -> Iterator[VirtualWorld]:
    """For what has no meaning with an event loop."""
    made = VirtualWorld("sync")
    yield made
    made.close()


@pytest.fixture
def async_world() -> Iterator[VirtualWorld]:
    """For scenarios that have an event loop of their own."""
    made = VirtualWorld("async")
    yield made
    made.close()


@pytest.fixture
def door() -> Iterator[Loopback]:
    """For programs that are processes of their own."""
    with Loopback() as made:
        yield made
