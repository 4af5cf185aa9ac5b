"""The command `hook`: what a coding agent runs before each call, its trial and its installation."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence

from countersign_client.cli import parser as parsing
from countersign_client.cli.process import DONE, USAGE, Process, Signalled, Signals, UsageError
from countersign_client.hooks import AGENTS, Agent, Printed, answer, in_time, tried
from countersign_client.hooks.calls import LARGEST_INPUT
from countersign_client.hooks.trying import RECORDED

PATIENCE = 30.0
"""Seconds for which a server that is away is tried."""
_DEADLINE = 590.0
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
    agent = AGENTS[options.command]
    code = _answer(agent, options, process or Process())
    if process is None:
        os._exit(code)  # a thread that still reads stdin would turn the end into a crash
    return code


def _answer(agent: Agent, options: argparse.Namespace, process: Process) -> int:
    def work() -> Printed:
        return answer(
            agent,
            lambda: process.stdin.read(LARGEST_INPUT + 1) if process.stdin else b"",
            lambda: process.connect(PATIENCE),
            options.deadline,
            defer=options.defer,
        )

    try:
        with Signals().installed():
            printed = in_time(agent, work, options.deadline)
    except Signalled:
        printed = agent.fail("Not run: the hook was ended. This is no rejection.")
    return _print(printed, process)


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
                    text = ", ".join(f"{part} {told}" for part, told in parts.items() if told != "")
                else:
                    text = json.dumps(shown, ensure_ascii=False)
                process.print(f"  {name}: {text}")
    except (UsageError, KeyError, TypeError, ValueError) as error:
        process.say(f"this is nothing that {agent.label} writes to its hook: {error}")
        return USAGE
    return DONE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="countersign hook",
        description=_ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(metavar="AGENT|test", required=True, dest="command")
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
    return parser
