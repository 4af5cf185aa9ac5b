"""The call that people are shown: a command line with all that its outcome hangs on."""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from countersign_client.cli.parser import pair
from countersign_client.cli.process import UsageError

NOT_EXECUTABLE = 126
NOT_FOUND = 127
_LARGEST = 64 * 1024 * 1024
"""Bytes up to which the executable's hash is shown."""
_HIDDEN = "COUNTERSIGN_"


_MEMBERS = frozenset({"argv", "cwd", "executable", "sha256", "stdin", "files", "env"})
_PIECE = re.compile(r"[a-z][a-z0-9_]{0,39}")


class NoCommandError(Exception):
    """The command cannot be run; `code` is what a shell would exit with."""

    def __init__(self, code: int, text: str) -> None:
        self.code = code
        super().__init__(text)


def environment(options: argparse.Namespace, environ: Mapping[str, str]) -> dict[str, str]:
    """Give the command's environment, without what is Countersign's.

    Args:
        options: The parsed command line.
        environ: The environment of this process.
    """
    kept = {"PATH", "HOME", "LANG", *options.env} if options.clean_env else environ.keys()
    return {
        name: value
        for name, value in environ.items()
        if name in kept and not name.startswith(_HIDDEN)
    }


def call_of(
    options: argparse.Namespace, child: Mapping[str, str], stdin: BinaryIO | None
) -> dict[str, Any]:
    """Look at the command as it would run now.

    Args:
        options: The parsed command line, with the command in `argv`.
        child: The command's environment.
        stdin: What the command will read, opened.

    Returns:
        The arguments of the request: JSON data.

    Raises:
        NoCommandError: There is no such command.
        UsageError: A file or a variable is not there.
    """
    executable = _executable(options.argv[0], child.get("PATH", os.defpath))
    call: dict[str, Any] = {
        "argv": list(options.argv),
        "cwd": os.path.realpath(Path.cwd()),
        "executable": executable,
    }
    if Path(executable).stat().st_size <= _LARGEST:
        call["sha256"] = _hash_of(executable)
    if stdin is not None:
        stdin.seek(0)
        call["stdin"] = _hash(stdin)
        stdin.seek(0)
    if options.bind:
        call["files"] = {name: _hash_of(name) for name in options.bind}
    if options.env:
        missing = [name for name in options.env if name not in child]
        if missing:
            raise UsageError(f"--env: {', '.join(missing)} is not set")
        call["env"] = {name: child[name] for name in options.env}
    return call


def pieces_of(options: argparse.Namespace) -> dict[str, str]:
    """Give the texts of the command that people may change, by name.

    Args:
        options: The parsed command line, with the command in `argv`.

    Raises:
        UsageError: A name cannot be one, or stands nowhere in the command.
    """
    pieces = dict(pair(text) for text in options.edit)
    if len(pieces) < len(options.edit):
        raise UsageError("--edit: a name is given twice")
    for name in pieces:
        if _PIECE.fullmatch(name) is None or name in _MEMBERS:
            raise UsageError(f"--edit: {name!r} is no name for a text: use a-z, 0-9 and _")
        if not any(f"{{{name}}}" in word for word in options.argv[1:]):
            raise UsageError(f"--edit: {{{name}}} stands in no argument of the command")
    return pieces


def filled(argv: Sequence[str], pieces: Mapping[str, str]) -> list[str]:
    """Give the command line with its texts in place; each argument stays one.

    Args:
        argv: The command line, as it was shown.
        pieces: The decided texts, by name.
    """
    if not pieces:
        return list(argv)
    places = re.compile("|".join(re.escape(f"{{{name}}}") for name in pieces))
    return [places.sub(lambda match: pieces[match[0][1:-1]], word) for word in argv]


def differences(shown: Mapping[str, Any], present: Mapping[str, Any]) -> list[str]:
    """Name what has changed since it was shown.

    Args:
        shown: The decided arguments.
        present: The arguments of now.
    """
    files, others = shown.get("files", {}), present.get("files", {})
    changed = [
        name for name in sorted(files.keys() | others.keys()) if files.get(name) != others.get(name)
    ]
    names = sorted((shown.keys() | present.keys()) - {"files"})
    return [name for name in names if shown.get(name) != present.get(name)] + changed


def _executable(name: str, path: str) -> str:
    program = shutil.which(name, path=path)
    if program is not None:
        return os.path.realpath(program)
    places = [name] if os.sep in name else [os.path.join(each, name) for each in path.split(":")]  # noqa: PTH118
    if any(Path(place).exists() for place in places):
        raise NoCommandError(NOT_EXECUTABLE, f"{name} is not executable")
    raise NoCommandError(NOT_FOUND, f"{name} is not found")


def opened(name: str) -> BinaryIO:
    """Open a regular file; another kind would change by being read, or never end.

    Args:
        name: The file.

    Raises:
        UsageError: It cannot be read, or is no regular file.
    """
    try:
        if not Path(name).is_file():
            raise UsageError(f"{name} is no file")
        return Path(name).open("rb")
    except OSError as error:
        raise UsageError(f"{name}: {error.strerror}") from None


def _hash_of(name: str) -> str:
    with opened(name) as file:
        return _hash(file)


def _hash(file: BinaryIO) -> str:
    digest = hashlib.sha256()
    while block := file.read(1 << 20):
        digest.update(block)
    return digest.hexdigest()
