"""Fixtures shared by all tests."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pydantic_ai.models
import pytest
from hypothesis import settings

from storage.sqlite import SqliteStorage

pydantic_ai.models.ALLOW_MODEL_REQUESTS = False

# Enough for each change; `--hypothesis-profile=thorough` looks longer.
settings.register_profile("quick", max_examples=30, deadline=None)
settings.register_profile("thorough", max_examples=500, deadline=None)
settings.load_profile("quick")


@pytest.fixture
async def storage() -> AsyncIterator[SqliteStorage]:
    """The embedded database, in memory."""
    opened = SqliteStorage(None)
    await opened.open()
    yield opened
    await opened.close()
