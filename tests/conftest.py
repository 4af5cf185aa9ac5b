"""Fixtures shared by all tests."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pydantic_ai.models
import pytest
from hypothesis import settings

from storage.sqlite import SqliteStorage
from tests.mongo import collected, mongo_server

__all__ = ["collected", "mongo_server"]

pydantic_ai.models.ALLOW_MODEL_REQUESTS = False

# For each change: the same examples each time, so that what fails is what was changed. To look
# for what nobody has thought of: `make test PROFILE=thorough`, random and longer.
settings.register_profile("quick", max_examples=15, deadline=None, derandomize=True)
settings.register_profile("thorough", max_examples=300, deadline=None)
settings.load_profile("quick")


FAR = re.compile(
    r"(browser|chaos|property|scenario)/|"
    r"unit/bot/test_(action_ids|cards|cli|demo|doctor|edit|pacing|redaction|streams)"
)
"""Tests of what has no bar of coverage, or far from the code that they try."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Measure coverage where it matters: it makes tests take twice as long."""
    here = Path(__file__).parent
    for item in items:
        if FAR.match(item.path.relative_to(here).as_posix()):
            item.add_marker(pytest.mark.no_cover)


@pytest.fixture
async def storage() -> AsyncIterator[SqliteStorage]:
    """The embedded database, in memory."""
    opened = SqliteStorage(None)
    await opened.open()
    yield opened
    await opened.close()
