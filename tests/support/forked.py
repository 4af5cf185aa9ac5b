"""Bots in processes of their own, forked from one that has loaded all modules.

To load them takes as long as everything else that most of these bots do. How the program itself
starts, by `python -m bot run`, is the business of tests/scenario/storage/test_restarts.py.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Mapping
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from pymongo import monitoring

from bot.commands import cli
from tests.support.mongo_listener import LISTENER

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    [
        __name__,
        "anyio._backends._asyncio",  # what httpx loads for its first call
        "bot.commands.run",
        "bot.main",
        "httpcore",
        "storage.mongo.storage",
        "tests.chaos.process",
        "tests.chaos.program",
    ]
)


def run_program() -> None:
    """Do what `countersign run` does, to its exit code."""
    sys.exit(cli.main(["run"]))


def fork_bot(
    environ: Mapping[str, str],
    log: Path,
    *,
    run: Callable[[], None] = run_program,
    name: str | None = None,
) -> ForkServerProcess:
    """Start a bot.

    Args:
        environ: Its whole environment.
        log: A file for what it prints.
        run: What it does; a function of a module.
        name: Of the process.
    """
    judged = {**environ, **LISTENER.environ()}
    bot = FORKS.Process(target=_be, args=(judged, log, run), name=name, daemon=True)
    bot.start()
    return bot


def _be(environ: dict[str, str], log: Path, run: Callable[[], None]) -> None:
    """Be a bot, in the process that was forked."""
    os.environ.clear()
    os.environ.update(environ)
    with log.open("wb", buffering=0) as file:
        os.dup2(file.fileno(), sys.stdout.fileno())
        os.dup2(file.fileno(), sys.stderr.fileno())
    monitoring.register(LISTENER)
    run()
