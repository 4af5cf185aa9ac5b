"""Import the framework of an adapter in a version that the adapter was tried with."""

from __future__ import annotations

import re
from importlib import import_module, metadata
from typing import Any

from countersign_client.errors import CountersignError


class UnsupportedVersion(CountersignError, ImportError):
    """The framework is missing, or of a version that the adapter was not tried with."""


class AdapterError(CountersignError):
    """The framework gave something that people cannot be asked. Nothing was resumed."""


def framework(module: str, distribution: str, extra: str, least: str, below: str) -> Any:
    """Import a module of a framework, after a look at its version.

    Args:
        module: The module to import.
        distribution: What `pip` calls the framework.
        extra: The extra of countersign-client that installs it.
        least: The first version that the adapter takes, such as 1.2.
        below: The first version that it does not take.

    Returns:
        The module.

    Raises:
        UnsupportedVersion: The framework is missing, older or newer.
    """
    wanted = f"{distribution}>={least},<{below}"
    hint = f"pip install './countersign_client[{extra}]'"
    try:
        version = metadata.version(distribution)
        if not _numbers(least) <= _numbers(version) < _numbers(below):
            raise UnsupportedVersion(f"This adapter needs {wanted}, found {version}: {hint}")
        return import_module(module)
    except ImportError as error:
        if isinstance(error, UnsupportedVersion):
            raise
        raise UnsupportedVersion(f"This adapter needs {wanted}, found none: {hint}") from error


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])
