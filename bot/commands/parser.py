"""The arguments of the command line. Nothing of what the commands do is loaded to read them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import timedelta
from importlib import import_module
from importlib.metadata import version

from bot.config.durations import LONGEST_RETENTION, parse_duration

DISTRIBUTION = "countersign-bot"
"""Name of the package; another project has the name `countersign` on the package index."""

PORT = 8900
"""The port of the sandbox's page, unless another program has it."""

_DESCRIPTION = "A self-hosted Slack approval bot for AI agents."
_OUTDATED_HELP = "asked under another policy file than COUNTERSIGN_POLICY is now"
_DATA_DIR_HELP = "instead of COUNTERSIGN_DATA_DIR, or .countersign"


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read what was typed; ends the program where that is wrong, or asks for help.

    Args:
        argv: The arguments after the program's name; those of the process when None.

    Returns:
        The arguments, with the name of the `command`: its module in `bot.commands`.
    """
    parser = argparse.ArgumentParser(prog="countersign", description=_DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"%(prog)s {version(DISTRIBUTION)}")
    commands = parser.add_subparsers(
        title="commands", metavar="COMMAND", required=True, parser_class=_CommandParser
    )
    _add(commands, "run", "run the bot")
    _add_sandbox(commands)
    _add_demo(commands)
    _add_doctor(commands)
    _add_manifest(commands)
    _add_backup(commands)
    _add_restore(commands)
    _add_audit(commands)
    _add_forget(commands)
    _add_prune(commands)
    _add_pending(commands)
    _add_policy(commands)
    arguments = parser.parse_args(argv)
    if arguments.command == "audit" and not (
        arguments.part or arguments.thread or arguments.approval
    ):
        parser.error("audit: name a part, --thread or --approval; see countersign audit --help")
    return arguments


class _CommandParser(argparse.ArgumentParser):
    """The parser of one command; the help of `run` lists the variables, too."""

    def format_help(self) -> str:
        """The help; the settings are loaded only for it."""
        if self.get_default("command") == "run":
            settings = import_module("bot.config.settings")
            rows = (
                f"  {name:<26} {text.replace('`', '')}"
                for name, text in settings.variables().items()
            )
            self.epilog = "\n".join(("environment:", *rows))
        return super().format_help()


_Commands = argparse._SubParsersAction  # noqa: SLF001 - argparse has no public name for it


def _add(commands: _Commands[_CommandParser], name: str, summary: str) -> argparse.ArgumentParser:
    parser = commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(command=name)
    return parser


def _add_sandbox(commands: _Commands[_CommandParser]) -> None:
    parser = _add(commands, "sandbox", "run the stand-in for Slack alone")
    parser.add_argument(
        "--host", default="127.0.0.1", help="an address of this machine alone (%(default)s)"
    )
    parser.add_argument(
        "--port", type=_port, default=PORT, help="port of the page; 0: any (%(default)s)"
    )
    parser.add_argument(
        "--events-url",
        metavar="URL",
        help="where signed requests go, as http://127.0.0.1:3000/slack/events; "
        "without it, the bot connects by Socket Mode",
    )


def _add_demo(commands: _Commands[_CommandParser]) -> None:
    parser = _add(commands, "demo", "run the stand-in and the bot together; needs no Slack")
    parser.add_argument(
        "--port", type=_port, help=f"port of the page ({PORT}, or a free one when it is taken)"
    )


def _add_doctor(commands: _Commands[_CommandParser]) -> None:
    parser = _add(commands, "doctor", "check settings, database, Slack, and say what to do")
    parser.add_argument(
        "--model", action="store_true", help="also ask the model for one word, at its price"
    )


def _add_manifest(commands: _Commands[_CommandParser]) -> None:
    parser = _add(commands, "manifest", "print the manifest to paste where Slack makes an app")
    ways = parser.add_mutually_exclusive_group(required=True)
    ways.add_argument(
        "--url", metavar="URL", help="for HTTP: where Slack reaches the bot, by https"
    )
    ways.add_argument("--socket", action="store_true", help="for Socket Mode: needs no address")
    parser.add_argument(
        "--no-agent-view",
        action="store_true",
        help="without Slack's surface for agents, where the plan has none",
    )


def _add_backup(commands: _Commands[_CommandParser]) -> None:
    parser = _add(commands, "backup", "copy the embedded database while the bot runs")
    parser.add_argument("file", metavar="FILE", help="the new file; nothing is overwritten")
    _add_data_dir(parser)


def _add_restore(commands: _Commands[_CommandParser]) -> None:
    parser = _add(commands, "restore", "go back to a copy, while no bot runs")
    parser.add_argument(
        "copy",
        metavar="FILE",
        nargs="?",
        help="as `backup` made it; none for MongoDB after mongorestore, and for a file in place",
    )
    _add_data_dir(parser)


def _add_audit(commands: _Commands[_CommandParser]) -> None:
    parser = _add(commands, "audit", "print what is on record, or verify that it is all of it")
    about = parser.add_mutually_exclusive_group()
    about.add_argument("--thread", metavar="ID", default="", help="of a thread: team:channel:ts")
    about.add_argument("--approval", metavar="ID", default="", help="of an approval: apr_…")
    _add_json(parser)
    _add_data_dir(parser)
    parts = parser.add_subparsers(title="parts", metavar="PART", dest="part")
    found = parts.add_parser("list", help="print entries of all threads")
    _add_filters(found)
    _add_json(found)
    shown = parts.add_parser("show", help="print what is on record of one approval")
    shown.add_argument("approval", metavar="APPROVAL", help="its id: apr_…")
    _add_json(shown)
    verified = parts.add_parser("verify", help="look for entries that were altered or removed")
    verified.add_argument("--head", metavar="SEQ:HASH", default="", help="an end noted elsewhere")
    verified.add_argument(
        "--plain-until",
        metavar="SEQ:HASH",
        default="",
        help="the last entry from before COUNTERSIGN_AUDIT_KEY was set, noted elsewhere",
    )
    verified.add_argument("--team", metavar="ID", default="", help="of one workspace alone")
    exported = parts.add_parser("export", help="print all entries, with their places in the chain")
    exported.add_argument(
        "--format", choices=("jsonl", "csv"), default="jsonl", help="(%(default)s)"
    )
    pruned = parts.add_parser("prune", help="delete old entries, behind a checkpoint")
    pruned.add_argument(
        "--older-than", metavar="TIME", type=_age, required=True, help="such as 400d"
    )
    _add_yes(pruned)
    # What was typed before the name of a part holds, unless it is typed again.
    for part in (found, shown, verified, exported, pruned):
        _add_data_dir(part, default=argparse.SUPPRESS)


def _add_filters(parser: argparse.ArgumentParser) -> None:
    for name, what in (
        ("--since", "from then on: 2026-11-22, 2026-11-22T09:30 (UTC), or 2d ago"),
        ("--until", "up to then"),
        ("--user", "who did it, or for whom"),
        ("--action", "such as decided"),
        ("--tool", "about calls of this tool"),
        ("--outcome", "how it ended, such as approved or failed"),
        ("--thread", "in a thread: team:channel:ts"),
    ):
        parser.add_argument(name, metavar="TEXT", default="", help=what)


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="one JSON object on each line")


def _add_forget(commands: _Commands[_CommandParser]) -> None:
    parser = _add(commands, "forget", "delete all of one thread, also while the bot runs")
    parser.add_argument(
        "thread",
        metavar="THREAD",
        help="link of one of its messages, team:channel:ts, or the id of an approval",
    )
    _add_yes(parser)
    _add_data_dir(parser)


def _add_prune(commands: _Commands[_CommandParser]) -> None:
    parser = _add(commands, "prune", "delete threads that ended long ago")
    parser.add_argument(
        "--older-than",
        metavar="TIME",
        type=_age,
        required=True,
        help="nothing has happened in them for so long, such as 90d",
    )
    _add_yes(parser)
    _add_data_dir(parser)
    parser.set_defaults(command="forget")  # both are in one module


def _add_pending(commands: _Commands[_CommandParser]) -> None:
    parser = _add(commands, "pending", "list what waits for people, or have it asked anew")
    parser.add_argument("--user", metavar="ID", default="", help="rules name this user or group")
    parser.add_argument("--rule", metavar="NAME", default="", help="asked by this rule")
    parser.add_argument("--stuck", action="store_true", help="nobody can decide it now")
    parser.add_argument("--outdated", action="store_true", help=_OUTDATED_HELP)
    _add_data_dir(parser)
    parser.set_defaults(part="")
    parts = parser.add_subparsers(title="actions", metavar="ACTION")
    reask = parts.add_parser("reask", help="call it off, and ask under the rules of now")
    reask.add_argument("id", metavar="ID", nargs="?", default="", help="of a request: apr_…")
    reask.add_argument("--outdated", action="store_true", help=_OUTDATED_HELP)
    _add_data_dir(reask)
    reask.set_defaults(part="reask")


def _add_policy(commands: _Commands[_CommandParser]) -> None:
    parser = _add(commands, "policy", "look at a policy file; needs no bot that runs")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    check = actions.add_parser("check", help="all faults of a file; exits with 0, or 2 with faults")
    check.add_argument("file", metavar="FILE", help="the policy")
    check.add_argument("--offline", action="store_true", help="look up no ids in Slack, and say so")
    check.set_defaults(action="check")
    schema = actions.add_parser("schema", help="the JSON schema of policy files, for editors")
    schema.set_defaults(action="schema")
    show = actions.add_parser("show", help="the policy that the settings name, or are, as YAML")
    show.set_defaults(action="show")
    explain = actions.add_parser("explain", help="what it says of a call, rule by rule")
    explain.add_argument("file", metavar="FILE", help="the policy")
    explain.add_argument("call", metavar="CALL.json", help="the call: its tool, arguments, world")
    explain.add_argument("--json", action="store_true", help="as one JSON object")
    explain.add_argument(
        "--as-case", action="store_true", help="as a file of cases for `policy test`"
    )
    explain.set_defaults(command="policies.explain")
    test = actions.add_parser("test", help="play cases of calls and clicks; exits with 0, or 1")
    test.add_argument("file", metavar="FILE", help="the policy; cases that name none are about it")
    test.add_argument("cases", metavar="CASES.yaml", help="the cases, and the world they play in")
    test.set_defaults(command="policies.cases")


def _add_yes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--yes", action="store_true", help="do it; else it is only told")


def _add_data_dir(parser: argparse.ArgumentParser, *, default: str | None = None) -> None:
    parser.add_argument("--data-dir", metavar="DIRECTORY", default=default, help=_DATA_DIR_HELP)


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= 65535):
        raise argparse.ArgumentTypeError(f"{text!r} is not a port; give a number up to 65535")
    return int(text)


def _age(text: str) -> timedelta:
    try:
        return parse_duration(text, longest=LONGEST_RETENTION)
    except ValueError as error:
        fault = f"{text!r} cannot be used: {error}; write whole days, such as 90d"
        raise argparse.ArgumentTypeError(fault) from error
