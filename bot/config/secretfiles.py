"""Secrets in files: one file per variable, as Docker, Kubernetes and systemd provide them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from bot.errors import SettingsError

DIRECTORY = "COUNTERSIGN_SECRETS_DIR"
"""The variable with the path of the directory."""

LARGEST = 65_536
"""Maximum size of a secret file, in bytes."""

_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")


def secret_files(environ: Mapping[str, str]) -> dict[str, str]:
    """Read the variables that are stored in files.

    Args:
        environ: The environment, which names the directory.

    Returns:
        The contents by file name, without surrounding spaces; empty without a directory.

    Raises:
        SettingsError: The directory or a file cannot be used, or a variable has another value in
            the environment.
    """
    directory = environ.get(DIRECTORY, "").strip()
    secret_values = read_secrets(Path(directory)) if directory else {}
    for name, text in secret_values.items():
        if environ.get(name, text).strip() != text:
            raise SettingsError(
                name, f"set to one value here and to another in {directory}", "keep one of the two"
            )
    return secret_values


def read_secrets(directory: Path) -> dict[str, str]:
    """Read the files of a directory that are named like variables; ignore other files.

    Raises:
        SettingsError: The directory or a file cannot be used. The error contains no values.
    """
    try:
        paths = sorted(path for path in directory.iterdir() if _VARIABLE.fullmatch(path.name))
    except OSError as error:
        fault = f"{directory} cannot be listed ({error.strerror})"
        raise SettingsError(DIRECTORY, fault, "name a directory that this user may read") from error
    if not paths:
        raise SettingsError(
            DIRECTORY,
            f"{directory} has no file with the name of a variable",
            "name each file as its variable is called, such as SLACK_BOT_TOKEN",
        )
    return {path.name: _secret(path) for path in paths}


def _secret(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        fault = f"{path} cannot be read ({error.strerror})"
        remedy = "let this user read it: with Docker Compose, mode 0444 in a directory of mode 0700"
        raise SettingsError(DIRECTORY, fault, remedy) from error
    try:
        text = data.decode().strip()
    except UnicodeDecodeError:
        text = ""
    if not text or "\0" in text or len(data) > LARGEST:
        fault = f"{path} is empty, longer than {LARGEST} bytes, or not text"
        raise SettingsError(DIRECTORY, fault, "write the value into it, or delete it")
    return text
