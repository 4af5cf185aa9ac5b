"""The log as the bot writes it, in memory."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from bot.config.values import Log
from bot.observability.logs import configure


@contextmanager
def logged(
    level: str = "DEBUG", *, as_json: bool = False, secrets: Sequence[str] = ()
) -> Iterator[io.StringIO]:
    """Configure the log on a text in memory; in the end every logger is as before."""
    before = {logger.name: logger.level for logger in _loggers()}
    handlers, stream = logging.root.handlers, io.StringIO()
    configure(Log(level=level, as_json=as_json), secrets=secrets, stream=stream)
    try:
        yield stream
    finally:
        logging.root.handlers = handlers
        for logger in _loggers():
            logger.setLevel(before.get(logger.name, logging.NOTSET))


def _loggers() -> list[logging.Logger]:
    known = logging.root.manager.loggerDict.values()
    return [logging.root, *(logger for logger in known if isinstance(logger, logging.Logger))]
