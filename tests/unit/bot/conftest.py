"""Fixtures of the bot's unit tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fakes import Queue


@pytest.fixture(autouse=True)
def no_work_is_left() -> Iterator[None]:
    yield
    Queue.drop_all()
