"""What the pages with code have in common."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType

import pytest


@pytest.fixture
def module() -> Iterator[ModuleType]:
    """A module for the code of a page, where dataclasses and pydantic find it."""
    made = ModuleType("code_of_a_page")
    sys.modules[made.__name__] = made
    yield made
    del sys.modules[made.__name__]
