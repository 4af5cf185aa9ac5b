"""Files of a deep agent: texts in the run's session, never on the host's disk.

All agents of a run share the files, and they are stored with the run. Each file is a session value
of its own, so a change of a file writes no other file. A shell is a port: the application may
supply an implementation, and people approve each command.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Protocol

from agents.core.component.context import session_values
from agents.core.errors import ToolError
from agents.core.tools import Tool
from agents.gates.approval import approval_gate
from agents.gates.decorator import tool

PREFIX = "file:"
"""Prefix of the session value keys that store files. The file's path follows."""

MAX_FILE = 100_000
"""Maximum length of one file of a deep agent, in characters."""

MAX_ALL = 500_000
"""Maximum length of all files of a run, paths included, in characters."""

MAX_OUTPUT = 20_000
"""Maximum length of a command's output for the model, in characters."""

_PATH = re.compile(r"(/[^/\x00-\x1f\x7f]{1,100})+")


class Shell(Protocol):
    """Runs commands, for example in a container or on another machine."""

    async def run(self, command: str) -> str:
        """Run a command.

        Args:
            command: The model's command, as a person approved it.

        Returns:
            Its output and exit status, for the model.
        """
        ...


def file_values(files: Mapping[str, str]) -> dict[str, object]:
    """Convert files to session values for `Runner.query(…, session_values=…)`.

    Args:
        files: Texts by path: `/notes/today.md`.

    Raises:
        ToolError: A path is malformed, or the files are too large.
    """
    values: dict[str, object] = {PREFIX + _path(path): text for path, text in files.items()}
    for path, text in files.items():
        _check_size(values, path, len(text))
    return values


def read_files(values: Mapping[str, object]) -> dict[str, str]:
    """Return the files among session values: texts by path, sorted."""
    files = {key: text for key, text in values.items() if key.startswith(PREFIX)}
    return {key.removeprefix(PREFIX): str(files[key]) for key in sorted(files)}


def file_tools() -> list[Tool]:
    """Create the tools `ls`, `read_file`, `write_file` and `edit_file`."""
    return [
        tool(title="List files below {path}", tags=["read-only"])(ls),
        tool(title="Read {path}", tags=["read-only"])(read_file),
        tool(title="Write {path}", idempotent=True)(write_file),
        tool(title="Edit {path}")(edit_file),
    ]


# The tools are coroutines without an `await`, so parallel calls never interleave.


async def ls(path: str = "/") -> str:
    """Lists the files at and below a path, with their sizes in characters.

    Args:
        path: Begins with a slash.
    """
    top = "/" if path == "/" else _path(path)
    below = top if top == "/" else f"{top}/"
    files = read_files(session_values())
    paths = [name for name in files if name == top or name.startswith(below)]
    return "\n".join(f"{name} ({len(files[name])})" for name in paths) or "There are no files."


async def read_file(path: str, offset: int = 0, limit: int = 500) -> str:
    """Reads a file; each line has its number before it.

    Args:
        path: Begins with a slash.
        offset: How many lines are left out at its beginning.
        limit: How many lines are read at most.
    """
    lines = _read(_path(path)).splitlines()
    first = max(offset, 0)
    shown = lines[first : first + max(limit, 1)]
    numbered = [f"{number}\t{line}" for number, line in enumerate(shown, start=first + 1)]
    left = len(lines) - first - len(shown)
    if left > 0:
        numbered.append(f"({left} more lines)")
    return "\n".join(numbered) or "(nothing there)"


async def write_file(path: str, content: str) -> str:
    """Writes a file; what was in it before is gone.

    Args:
        path: Begins with a slash.
        content: All of its text.
    """
    return _write(_path(path), content)


async def edit_file(path: str, old: str, new: str, replace_all: bool = False) -> str:  # noqa: FBT001, FBT002 - arguments of a model are named
    """Replaces a text in a file. The text must be there exactly once, or give `replace_all`.

    Args:
        path: Begins with a slash.
        old: What is replaced, with all its spaces and line breaks, without line numbers.
        new: What takes its place.
        replace_all: Whether it is replaced everywhere.
    """
    text = _read(_path(path))
    count = text.count(old) if old else 0
    if not count:
        raise ToolError("`old` is not in the file; read it, and give the text exactly as it is")
    if count > 1 and not replace_all:
        raise ToolError(
            f"`old` is in the file {count} times; give more of the text around it, or `replace_all`"
        )
    _check_size(session_values(), path, len(text) + count * (len(new) - len(old)))
    return _write(path, text.replace(old, new))


def execute_tool(shell: Shell) -> Tool:
    """Create the tool `execute`, which runs a command after a person's approval."""

    @tool(title="Run the command {command}", tags=["shell"])
    async def execute(command: str) -> str:
        """Runs a shell command. A person approves each one before.

        Args:
            command: The whole command.
        """
        output = await shell.run(command)
        if len(output) <= MAX_OUTPUT:
            return output
        return f"{output[:MAX_OUTPUT]}\n({len(output) - MAX_OUTPUT} more characters)"

    return approval_gate(execute)


def _path(path: str) -> str:
    if not _PATH.fullmatch(path) or any(part in {".", ".."} for part in path.split("/")):
        raise ToolError(
            f"{path!r} is no path of a file here; it begins with a slash, has no empty part, and "
            "no . or .. in it: /notes/today.md"
        )
    return path


def _read(path: str) -> str:
    text = session_values().get(PREFIX + path)
    if text is None:
        known = ", ".join(read_files(session_values())) or "none"
        raise ToolError(f"there is no file {path!r}; there are: {known}")
    return str(text)


def _write(path: str, text: str) -> str:
    values = session_values()
    _check_size(values, path, len(text))
    values[PREFIX + path] = text
    return f"{path} has {len(text)} characters now."


def _check_size(values: Mapping[str, object], path: str, size: int) -> None:
    """Refuse a file of this size before its text is built. Paths count, too."""
    others = sum(len(at) + len(text) for at, text in read_files(values).items() if at != path)
    if size > MAX_FILE or others + len(path) + size > MAX_ALL:
        raise ToolError(
            f"{path} would have {size:,} characters, with {others:,} in other files; one may "
            f"have {MAX_FILE:,}, and all together {MAX_ALL:,}. It stays as it is"
        )
