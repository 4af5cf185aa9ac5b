"""Writes a hook into an agent's own settings; a file that cannot be understood stays as it is."""

from __future__ import annotations

import difflib
import json
import os
import shlex
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from countersign_client.hooks.calls import parsed

TIMEOUT = 600
"""Seconds after which the agent ends its hook."""
_AT = "/v1/hooks/claude-code"
_WRITING = "Bash|Write|Edit|NotebookEdit|mcp__.*"
_GEMINI_WRITING = "run_shell_command|write_file|replace|mcp_.*"
_FILES = {
    "claude-code": ("~/.claude/settings.json", ".claude/settings.json"),
    "codex": ("~/.codex/config.toml", ".codex/config.toml"),
    "gemini": ("~/.gemini/settings.json", ".gemini/settings.json"),
    "cursor": ("~/.cursor/hooks.json", ".cursor/hooks.json"),
    "copilot": (None, ".github/hooks/countersign.json"),
}
_HOMES = {"claude-code": "CLAUDE_CONFIG_DIR", "codex": "CODEX_HOME"}
_WRAPPED = (
    "sh -c '{command}; case $? in 0) ;; 2) exit 2;; "
    '*) echo "Countersign did not answer" >&2; exit 2;; esac\''
)
"""Turns an end that Codex and Gemini take for a yes, such as a crash, into a no."""


class NotInstalled(Exception):
    """The settings are as they were; the text says why, and what to write by hand."""


@dataclass(frozen=True)
class Edit:
    """A change of a file of settings; `before` is None if there is none yet."""

    path: Path
    before: bytes | None
    after: bytes

    @property
    def diff(self) -> str:
        """The change as a unified diff; empty if there is none."""
        old, new = ((text or b"").decode().splitlines() for text in (self.before, self.after))
        return "\n".join(
            difflib.unified_diff(old, new, str(self.path), str(self.path), "", "", 3, "")
        )

    def write(self) -> None:
        """Write it, with the old text in a file beside it that ends in .bak.

        Raises:
            NotInstalled: A file cannot be written, or has changed.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            mode = 0o600
            if self.before is not None:
                mode = stat.S_IMODE(self.path.stat().st_mode)
                if not mode & stat.S_IWUSR or not os.access(self.path, os.W_OK):
                    raise NotInstalled(f"{self.path} is read-only.")
                if self.path.read_bytes() != self.before:
                    raise NotInstalled(f"{self.path} has changed meanwhile. Try again.")
                _replace(self.path.with_name(f"{self.path.name}.bak"), self.before, mode)
            _replace(self.path, self.after, mode)
        except OSError as error:
            raise NotInstalled(f"{self.path} cannot be written: {error.strerror}.") from None


def edit_of(
    agent: str,
    program: str,
    *,
    user: bool,
    folder: Path,
    environ: Mapping[str, str],
    url: str | None = None,
) -> Edit:
    """Work out what installs a hook; nothing is written.

    Args:
        agent: The agent, as the command line names it.
        program: The command of Countersign, as a shell finds it.
        user: For all projects of the user; else for the project in `folder`.
        folder: The project.
        environ: The environment, with HOME.
        url: Of the API, which Claude Code calls then by itself; None: it runs `program`.

    Raises:
        NotInstalled: The file cannot be understood.
    """
    path = _path(agent, folder, environ, user=user)
    command = url or f"{shlex.quote(program)} hook {agent}"
    if agent in ("codex", "gemini"):
        command = _WRAPPED.format(command=command.replace("'", "'\\''"))
    try:
        before = path.read_bytes() if path.exists() else None
        edit = _with_toml if agent == "codex" else _with_json
        return Edit(path, before, edit(before or b"", agent, command).encode())
    except (OSError, ValueError, TypeError) as error:
        lines = _toml(command) if agent == "codex" else json.dumps(_hooks(agent, command), indent=2)
        raise NotInstalled(
            f"{path} stays as it is: {error}. Repair it, or add by hand:\n{lines}"
        ) from None


def _path(agent: str, folder: Path, environ: Mapping[str, str], *, user: bool) -> Path:
    of_user, of_project = _FILES[agent]
    if not user:
        return (folder / of_project).resolve()
    if of_user is None:
        raise NotInstalled("Copilot CLI has hooks of a project alone: use --project.")
    name = of_user.rpartition("/")[2]
    own = environ.get(_HOMES.get(agent, ""))
    return (
        Path(own) / name if own else Path(environ.get("HOME") or Path.home()) / of_user[2:]
    ).resolve()


def _hooks(agent: str, command: str) -> dict[str, list[dict[str, Any]]]:
    """Give the entries by event, as the agent's settings have them."""
    entry: dict[str, Any] = {"type": "command", "command": command, "timeout": TIMEOUT}
    if agent == "claude-code":
        if command.startswith(("http://", "https://")):
            entry = {
                "type": "http",
                "url": f"{command.rstrip('/')}{_AT}?deadline={TIMEOUT - 5}",
                "headers": {"Authorization": "Bearer $COUNTERSIGN_KEY"},
                "allowedEnvVars": ["COUNTERSIGN_KEY"],
                "timeout": TIMEOUT,
            }
        entry |= {"onFailure": "block", "statusMessage": "Waiting for people in Slack"}
        return {"PreToolUse": [{"matcher": _WRITING, "hooks": [entry]}]}
    if agent == "gemini":
        entry["timeout"] = TIMEOUT * 1_000
        return {"BeforeTool": [{"matcher": _GEMINI_WRITING, "hooks": [entry]}]}
    if agent == "cursor":
        entry = {"command": command, "timeout": TIMEOUT, "failClosed": True}
        return {"beforeShellExecution": [entry], "beforeMCPExecution": [entry]}
    return {"preToolUse": [{"type": "command", "bash": command, "timeoutSec": TIMEOUT}]}


def _hooks_of(whole: dict[str, Any]) -> dict[str, Any]:
    hooks = whole.setdefault("hooks", {})
    if not isinstance(hooks, dict):
        raise TypeError("its hooks are no object")
    return hooks


def _with_json(before: bytes, agent: str, command: str) -> str:
    whole = parsed(before) if before.strip() else {}
    if agent in ("cursor", "copilot"):
        whole.setdefault("version", 1)
    hooks = _hooks_of(whole)
    for event, entries in _hooks(agent, command).items():
        present = hooks.setdefault(event, [])
        if not isinstance(present, list):
            raise TypeError(f"its hooks of {event} are no list")
        hooks[event] = [*_without(present, agent), *entries]
    if before.strip() and parsed(before) == whole:
        return before.decode()
    return json.dumps(whole, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _without(entries: list[Any], agent: str) -> list[Any]:
    """Leave out what an earlier installation wrote, also beside hooks of others."""
    kept: list[Any] = []
    for entry in entries:
        inner = entry.get("hooks") if isinstance(entry, dict) else None
        if isinstance(inner, list) and (others := _without(inner, agent)):
            kept.append({**entry, "hooks": others})
        elif not any(mark in json.dumps(entry) for mark in (f" hook {agent}", f"/hooks/{agent}?")):
            kept.append(entry)
    return kept


def _toml(command: str) -> str:
    return (
        "[[hooks.PreToolUse]]\n\n[[hooks.PreToolUse.hooks]]\n"
        f'type = "command"\ncommand = {json.dumps(command)}\ntimeout = {TIMEOUT}\n'
    )


def _with_toml(before: bytes, agent: str, command: str) -> str:
    """Append, because a parser of TOML does not keep comments; then read it again."""
    try:
        loads = import_module("tomllib").loads
    except ImportError:
        raise ValueError("Python 3.10 cannot read TOML") from None
    text = before.decode()
    whole = loads(text)
    hooks = _hooks_of(whole)
    present, entries = hooks.get("PreToolUse", []), loads(_toml(command))["hooks"]["PreToolUse"]
    if entries[0] in present:
        return text
    if f" hook {agent}" in text:
        raise ValueError("it has another hook of Countersign; remove that first")
    after = f"{text.rstrip()}\n\n{_toml(command)}".lstrip()
    hooks["PreToolUse"] = [*present, *entries]
    if loads(after) != whole:
        raise ValueError("its hooks are in a form to which nothing can be added")
    return after


def _replace(path: Path, content: bytes, mode: int) -> None:
    """Put a file in the place of another one, whole or not at all."""
    draft = path.with_name(f".{path.name}.countersign")
    try:
        draft.write_bytes(content)
        draft.chmod(mode)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
