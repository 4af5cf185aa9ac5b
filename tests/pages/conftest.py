"""What the pages with code have in common."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.pages.operated import make_data_directory
from tests.pages.program import program


@pytest.fixture
def module() -> Iterator[ModuleType]:
    """A module for the code of a page, where dataclasses and pydantic find it."""
    made = ModuleType("code_of_a_page")
    sys.modules[made.__name__] = made
    yield made
    del sys.modules[made.__name__]


@pytest.fixture(scope="session")
def data_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory to copy; see `make_data_directory`."""
    directory = tmp_path_factory.mktemp("operated") / ".countersign"
    asyncio.run(make_data_directory(directory))
    return directory


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the command `countersign`, for `PATH`; see `program`."""
    with program(tmp_path_factory.mktemp("program")) as folder:
        yield folder
