"""Fixtures shared by all tests."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pydantic_ai.models
import pytest

from storage.sqlite import SqliteStorage

pydantic_ai.models.ALLOW_MODEL_REQUESTS = False


@pytest.fixture
async def storage() -> AsyncIterator[SqliteStorage]:
    """The embedded database, in memory."""
    opened = SqliteStorage(None)
    await opened.open()
    yield opened
    await opened.close()
