"""The command `hook`: what a coding agent runs before each call, its trial and its installation."""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from countersign_client.cli import parser as parsing
from countersign_client.cli.process import DONE, USAGE, Process, Signalled, Signals, UsageError
from countersign_client.hooks.agents import AGENTS, Agent, Printed
from countersign_client.hooks.calls import LARGEST_INPUT
from countersign_client.hooks.running import answer, in_time
from countersign_client.hooks.settings import NotInstalled, edit_of
from countersign_client.hooks.trying import RECORDED, tried

PATIENCE = 30.0
"""Seconds for which a server that is away is tried."""
_DEADLINE = 590.0
_PATIENCE_OF_AGENT = 180.0
_ENTRY = "CLAUDE_CODE_ENTRYPOINT"
"""Set by Claude Code: `sdk-cli` for `claude -p`, `cli` at a terminal."""
_PROBE = "COUNTERSIGN_HOOK_PROBE"
"""Names a file that the hook makes, and refuses: so the installer sees that the hook is called."""
_BLOCKS = (2, 1, 295)
"""The first version of Claude Code that has onFailure; older ones go on when a hook fails."""
_ABOUT = """\
Coding agents run `hook AGENT` before a call, and obey what it prints: it asks people in Slack, and
the call runs if they approve it. COUNTERSIGN_URL and COUNTERSIGN_KEY are in its environment.
An agent that can change its own settings can take the hook away: for what matters, give the
credentials to `mcp-proxy` or a CI job with `gate`, not to the agent.
"""


def hook(argv: Sequence[str], process: Process | None = None) -> int:
    """Answer an agent, or try its hook.

    Args:
        argv: The arguments after `hook`.
        process: The process; None: the real one, which ends here.

    Returns:
        The exit code.
    """
    options = _parser().parse_args(argv)
    if options.command == "test":
        return _test(options, process or Process())
    if options.command == "install":
        return _install(options, process or Process())
    agent = AGENTS[options.command]
    code = _answer(agent, options, process or Process())
    if process is None:
        os._exit(code)  # a thread that still reads stdin would turn the end into a crash
    return code


def _answer(agent: Agent, options: argparse.Namespace, process: Process) -> int:
    if process.environ.get(_PROBE):
        with suppress(OSError):
            Path(process.environ[_PROBE]).touch()
        return _print(agent.fail("Not run: this is a trial of the hook."), process)

    def work() -> Printed:
        return answer(
            agent,
            lambda: process.stdin.read(LARGEST_INPUT + 1) if process.stdin else b"",
            lambda: process.connect(PATIENCE),
            options.deadline,
            # With a person at the terminal, Claude Code ignores `defer` and may run the call.
            defer=options.defer and process.environ.get(_ENTRY, "").startswith("sdk"),
            memory=_memory(process.environ),
        )

    try:
        with Signals().installed():
            printed = in_time(agent, work, options.deadline)
    except Signalled:
        printed = agent.fail("Not run: the hook was ended. This is no rejection.")
    return _print(printed, process)


def _memory(environ: Mapping[str, str]) -> Path | None:
    state = environ.get("XDG_STATE_HOME") or (
        f"{environ['HOME']}/.local/state" if environ.get("HOME") else ""
    )
    return Path(state) / "countersign" / "hooks" if state else None


def _print(printed: Printed, process: Process) -> int:
    """Write both texts; exit code 2 if the decision does not reach the agent."""
    try:
        if printed.stdout and process.stdout is not None:
            process.stdout.write(printed.stdout + "\n")
            process.stdout.flush()
        elif printed.stdout:
            raise OSError("stdout is closed")  # noqa: TRY301 - as any other fault of it
    except (OSError, ValueError) as error:
        printed = Printed(stderr=f"Not run: the decision could not be told: {error}", code=USAGE)
    if printed.stderr:
        process.say(printed.stderr)
    return printed.code


def _test(options: argparse.Namespace, process: Process) -> int:
    agent = AGENTS[options.agent]
    records = [json.dumps(record) for record in RECORDED[options.agent]]
    try:
        if options.stdin:
            records = [parsing.read(options.stdin, process)]
        for record in records:
            process.print(f"stdin: {record}")
            for name, shown in tried(agent, record.encode()):
                if isinstance(shown, Printed):
                    parts = {"exit": shown.code, "stdout": shown.stdout, "stderr": shown.stderr}
                    text = ", ".join(
                        f"{part} {value}" for part, value in parts.items() if value != ""
                    )
                else:
                    text = json.dumps(shown, ensure_ascii=False)
                process.print(f"  {name}: {text}")
    except (UsageError, KeyError, TypeError, ValueError, RecursionError) as error:
        process.say(f"this is nothing that {agent.label} writes to its hook: {error}")
        return USAGE
    return DONE


def _install(options: argparse.Namespace, process: Process) -> int:
    user = options.scope == "user" or (options.scope is None and options.agent != "copilot")
    name = Path(sys.argv[0]).name
    name = name if name.startswith("countersign") else "countersign-ask"
    program = shutil.which(name, path=process.environ.get("PATH")) if user else None
    try:
        _check_version(options.agent, process)
        edit = edit_of(
            options.agent,
            program or name,
            user=user,
            folder=Path.cwd(),
            environ=process.environ,
            url=_url(options, process),
        )
        if edit.diff:
            edit.write()
    except NotInstalled as error:
        process.say(f"not installed: {error}")
        return USAGE
    process.print(edit.diff or f"{edit.path} has the hook already")
    if options.agent != "codex" or _is_called(process):
        process.say("installed. COUNTERSIGN_URL and COUNTERSIGN_KEY must be in the environment.")
        return DONE
    process.say(
        "NOT PROTECTED: Codex did not call the hook. Start codex, open /hooks, trust the hook, and "
        "run this command again."
    )
    return USAGE


def _url(options: argparse.Namespace, process: Process) -> str | None:
    if not options.http:
        return None
    url = process.environ.get("COUNTERSIGN_URL", "")
    if options.agent != "claude-code" or not url.startswith(("https://", "http://")):
        raise NotInstalled("--http is for claude-code, and needs COUNTERSIGN_URL.")
    return url


def _check_version(agent: str, process: Process) -> None:
    if agent != "claude-code":
        return
    output = _run(["claude", "--version"], process)
    match = re.match(r"(\d+)\.(\d+)\.(\d+)", output or "")
    if match is None:
        process.say("`claude --version` does not tell the version; it must be 2.1.295 or newer")
    elif tuple(map(int, match.groups())) < _BLOCKS:
        raise NotInstalled(
            f"Claude Code {match[0]} runs a call when a hook fails. Update it first."
        )


def _is_called(process: Process) -> bool:
    """Let Codex make a call, which the hook then refuses."""
    process.say("asking Codex to run a command, which the hook must refuse; up to three minutes")
    with tempfile.TemporaryDirectory() as folder:
        mark = Path(folder) / "called"
        words = "Run the shell command `echo countersign` once, whatever comes of it, and end."
        _run(
            ["codex", "exec", "--skip-git-repo-check", "--sandbox", "read-only", words],
            process,
            {_PROBE: str(mark)},
        )
        return mark.exists()


def _run(command: list[str], process: Process, more: dict[str, str] | None = None) -> str | None:
    executable = shutil.which(command[0], path=process.environ.get("PATH"))
    if executable is None:
        return None
    try:
        return subprocess.run(  # noqa: S603 - the agent of the user
            [executable, *command[1:]],
            env={**process.environ, **(more or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=_PATIENCE_OF_AGENT,
        ).stdout
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="countersign-ask hook",
        description=_ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(metavar="AGENT|test|install", required=True, dest="command")
    for name, agent in AGENTS.items():
        answering = commands.add_parser(
            name, help=f"answer {agent.label}, on stdin and stdout", allow_abbrev=False
        )
        answering.set_defaults(defer=False)
        answering.add_argument(
            "--deadline",
            metavar="TIME",
            type=parsing.duration,
            default=_DEADLINE,
            help="refuse the call after it; below the timeout of the hook by 5 s; default: 590s",
        )
        if name == "claude-code":
            answering.add_argument(
                "--defer", action="store_true", help="end a `claude -p` instead of waiting"
            )
    trying = commands.add_parser("test", help="show what the hook would print, without a server")
    trying.add_argument("agent", choices=tuple(AGENTS))
    trying.add_argument("--stdin", metavar="FILE", help="what the agent wrote; - for stdin")
    installing = commands.add_parser("install", help="write the hook into the agent's settings")
    installing.add_argument("agent", choices=tuple(AGENTS))
    installing.add_argument(
        "--http", action="store_true", help="let Claude Code call COUNTERSIGN_URL by itself"
    )
    scopes = installing.add_mutually_exclusive_group()
    for scope, where in (("user", "for all your projects"), ("project", "for this folder")):
        scopes.add_argument(
            f"--{scope}", dest="scope", action="store_const", const=scope, help=where
        )
    return parser
