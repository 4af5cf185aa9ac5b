"""A command loads what it needs, when it runs: help and a copy are quick, a bot stays small."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.stores import SqliteStores

HEAVY = {"aiohttp", "bot.main", "bot.demo", "slack_sandbox", "pydantic_ai", "pymongo", "slack_sdk"}

CALL = """
import sys
from bot.commands.cli import main
try:
    code = main(sys.argv[1:], environ={})
except SystemExit as end:
    code = end.code
finally:
    print(*sys.modules)
sys.exit(code)
"""

RUN = """
import sys
from pathlib import Path
import bot.main
from bot.config.stores import make_storage
make_storage(Path("data"), uri="", driver="motor")
print(*sys.modules)
"""


def loaded(code: str, *argv: str, folder: Path) -> set[str]:
    """The modules that a new process has loaded at its end."""
    done = subprocess.run(  # noqa: S603 - our own words
        [sys.executable, "-c", code, *argv],
        capture_output=True,
        check=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("argv", [["--help"], ["run", "--help"], ["doctor", "--help"]])
def test_help_loads_nothing_of_the_bot(argv: list[str], tmp_path: Path) -> None:
    assert not HEAVY & loaded(CALL, *argv, folder=tmp_path)


async def test_a_copy_is_made_by_the_database_alone(tmp_path: Path) -> None:
    storage = SqliteStores(tmp_path / ".countersign")
    await storage.open()
    await storage.close()
    modules = loaded(CALL, "backup", "copy.db", folder=tmp_path)
    assert (tmp_path / "copy.db").exists()
    assert "storage.sqlite" in modules
    assert not HEAVY & modules


def test_a_bot_loads_only_what_its_settings_name(tmp_path: Path) -> None:
    modules = loaded(RUN, folder=tmp_path)
    assert "storage.sqlite" in modules
    assert not {"bot.demo", "slack_sandbox", "prometheus_client", "pymongo"} & modules
