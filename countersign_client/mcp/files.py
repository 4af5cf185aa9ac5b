"""Files of a proxy: results that no client took, and the definitions of tools that people know."""

from __future__ import annotations

import difflib
import hashlib
import json
import logging
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from countersign_client.errors import CountersignError
from countersign_client.mcp.messages import members_of

logger = logging.getLogger("countersign_client")

LIFETIME = 3600.0
"""Seconds for which a result is kept."""
LONGEST_DIFF = 30_000
_DEFINED_BY = ("name", "description", "inputSchema")
_clock = time.time  # noqa: TID251 - times of files outlive the process


class Spool:
    """Results that no client took; the same call again gets its result, and runs nothing."""

    def __init__(self, folder: Path, now: Callable[[], float] = _clock) -> None:
        """Keep results in a folder that only its owner can read.

        Args:
            folder: The folder; it is made.
            now: Seconds since the epoch.
        """
        self._folder = folder
        self._now = now
        _make(folder)
        for path in folder.glob("*.result"):
            self._fresh(path)

    def put(self, key: str, kept: Mapping[str, Any]) -> None:
        """Keep a result; it is on disk before this returns.

        Args:
            key: Names the call.
            kept: JSON data.
        """
        _write(self._path(key), {**kept, "at": self._now()})

    def get(self, key: str) -> dict[str, Any] | None:
        """Give what was kept, if it is younger than `LIFETIME`.

        Args:
            key: Names the call.
        """
        return self._fresh(self._path(key))

    def drop(self, key: str) -> None:
        """Forget a result that a client has taken.

        Args:
            key: Names the call.
        """
        self._path(key).unlink(missing_ok=True)

    def _fresh(self, path: Path) -> dict[str, Any] | None:
        try:
            kept = members_of(json.loads(path.read_bytes()))
            if self._now() - float(kept["at"]) <= LIFETIME:
                return kept
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError):
            pass  # half a file, of a full disk
        path.unlink(missing_ok=True)
        return None

    def _path(self, key: str) -> Path:
        return self._folder / f"{hashlib.sha256(key.encode()).hexdigest()}.result"


@dataclass(frozen=True)
class Changed:
    """A definition that is not the one that people know."""

    since: str
    digest: str
    diff: str


class Definitions:
    """The tools of a server: as it listed them last, and as they were when people knew them."""

    def __init__(self, file: Path, now: Callable[[], float] = _clock) -> None:
        """Read what is known.

        Args:
            file: The state file.
            now: Seconds since the epoch.

        Raises:
            CountersignError: The file is damaged.
        """
        self._file = file
        self._now = now
        self._known: dict[str, dict[str, Any]] = {}
        self._listed: dict[str, dict[str, Any]] = {}
        _make(file.parent)
        try:
            known = json.loads(file.read_bytes())
            self._known = {str(name): dict(each) for name, each in known.items()}
            for each in self._known.values():
                _defined(each["definition"]), str(each["since"])
        except FileNotFoundError:
            pass
        except (ValueError, KeyError, TypeError, AttributeError):
            text = f"{file} is damaged. Remove it to trust the tools as the server lists them now."
            raise CountersignError(text) from None

    def take_page(self, tools: list[dict[str, Any]], *, is_first: bool) -> None:
        """Take a page of the server's list; a tool that is new is trusted as it is.

        Args:
            tools: The definitions; each has a name.
            is_first: Whether it begins a list anew.
        """
        self._listed = {} if is_first else self._listed
        self._listed.update({tool["name"]: tool for tool in tools})
        new = {name: tool for name, tool in self._listed.items() if name not in self._known}
        for name, tool in new.items():
            self._learn(name, tool)
        if new:
            self._keep()

    @property
    def is_listed(self) -> bool:
        """Whether the server has listed any tool."""
        return bool(self._listed)

    def listed(self, name: str) -> dict[str, Any] | None:
        """Give the definition of a tool in the last list.

        Args:
            name: The tool's name.
        """
        return self._listed.get(name)

    def changed(self, name: str) -> Changed | None:
        """Say how a listed tool differs from the one that people know.

        Args:
            name: The tool's name.
        """
        known, listed = self._known[name], _defined(self._listed[name])
        if known["definition"] == listed:
            return None
        before, after = (
            json.dumps(each, indent=1, sort_keys=True).splitlines()
            for each in (known["definition"], listed)
        )
        diff = "\n".join(difflib.unified_diff(before, after, known["since"], "now", lineterm=""))
        cut = diff if len(diff) <= LONGEST_DIFF else f"{diff[:LONGEST_DIFF]}\n(the rest is cut off)"
        digest = hashlib.sha256("\n".join(after).encode()).hexdigest()
        return Changed(known["since"], digest, cut)

    def accept(self, name: str) -> None:
        """Know a listed tool as it is; people have approved a call of it.

        Args:
            name: The tool's name.
        """
        self._learn(name, self._listed[name])
        self._keep()

    def _keep(self) -> None:
        try:
            _write(self._file, self._known)
        except OSError as error:  # this process knows them all the same
            logger.warning("%s cannot be written: %s", self._file, error)

    def _learn(self, name: str, tool: Mapping[str, Any]) -> None:
        since = datetime.fromtimestamp(self._now(), timezone.utc).date().isoformat()
        self._known[name] = {"definition": _defined(tool), "since": since}


def _defined(tool: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tool.get(name) for name in _DEFINED_BY}


def _make(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise CountersignError(f"{folder} cannot be made: {error.strerror}") from None


def _write(path: Path, value: Any) -> None:
    """Replace a file, whole, before this returns."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.new")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(json.dumps(value).encode())
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
