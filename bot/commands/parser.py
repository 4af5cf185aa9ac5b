"""The parser of the command line. It imports no command, so that it starts fast."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import timedelta
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from re import fullmatch

from bot.config.durations import LONGEST_RETENTION, parse_duration

DISTRIBUTION = "countersign-bot"
"""Name of the distribution on the package index, where another project is called `countersign`."""

PORT = 8900
"""Default port of the sandbox's page. If it is taken, the demo uses a free port."""

MAX_WHY = 300
"""The same as `bot.records.switch.MAX_WHY`, whose import would take long."""

_DESCRIPTION = "A self-hosted Slack approval bot for AI agents."
_OUTDATED_HELP = "only requests created under a different version of the policy"
_DATA_DIR_HELP = "data directory (default: COUNTERSIGN_DATA_DIR, else .countersign)"


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line; exit the program on an error or for help.

    Args:
        argv: The arguments after the program's name; None for the arguments of the process.

    Returns:
        The arguments. `command` is the name of a module in `bot.commands`.
    """
    parser = build_parser()
    arguments = parser.parse_args(argv)
    if arguments.command == "audit" and not (
        arguments.part or arguments.thread or arguments.approval
    ):
        parser.error(
            "audit: give a subcommand, --thread or --approval; see countersign audit --help"
        )
    is_lifting = arguments.command == "freeze" and arguments.action == "unfreeze"
    if is_lifting and not arguments.id and fullmatch(r"f\d+", arguments.why):
        parser.error("unfreeze: give a reason, too: countersign unfreeze ID WHY")
    return arguments


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of all commands."""
    parser = argparse.ArgumentParser(prog="countersign", description=_DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"%(prog)s {version(DISTRIBUTION)}")
    commands = parser.add_subparsers(
        title="commands", metavar="COMMAND", required=True, parser_class=_CommandParser
    )
    _add(commands, "run", "start the bot")
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
    _add_freeze(commands)
    _add_keys(commands)
    _add_webhooks(commands)
    _add_policy(commands)
    return parser


class _CommandParser(argparse.ArgumentParser):
    """The parser of one command; the help of `run` lists the variables, too."""

    def format_help(self) -> str:
        """Return the help text. The settings are imported only here."""
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
    parser = _add(commands, "sandbox", "start the Slack sandbox without the bot")
    parser.add_argument(
        "--host", default="127.0.0.1", help="a loopback address (default: %(default)s)"
    )
    parser.add_argument(
        "--port",
        type=_port,
        default=PORT,
        help="port of the sandbox page; 0 picks a free one (default: %(default)s)",
    )
    parser.add_argument(
        "--events-url",
        metavar="URL",
        help="send signed requests to this URL, such as http://127.0.0.1:3000/slack/events; "
        "default: Socket Mode",
    )
    parser.add_argument(
        "--manifest",
        type=Path,
        metavar="FILE",
        help="manifest of another Slack app, whose scopes, commands and shortcuts the sandbox uses",
    )


def _add_demo(commands: _Commands[_CommandParser]) -> None:
    parser = _add(commands, "demo", "start the sandbox and the bot together; needs no Slack")
    parser.add_argument(
        "--port",
        type=_port,
        help=f"port of the sandbox page (default: {PORT}, or a free port if it's taken)",
    )


def _add_doctor(commands: _Commands[_CommandParser]) -> None:
    parser = _add(
        commands,
        "doctor",
        "check the settings, the database and Slack, and say how to fix problems",
    )
    parser.add_argument(
        "--model",
        action="store_true",
        help="also send the model a one-word request (billed by the provider)",
    )


def _add_manifest(commands: _Commands[_CommandParser]) -> None:
    parser = _add(commands, "manifest", "print the manifest for creating the Slack app")
    ways = parser.add_mutually_exclusive_group(required=True)
    ways.add_argument("--url", metavar="URL", help="use HTTP; the bot's public https URL")
    ways.add_argument("--socket", action="store_true", help="use Socket Mode; needs no public URL")
    parser.add_argument(
        "--no-agent-view",
        action="store_true",
        help="leave out Slack's agent view, for plans that don't include it",
    )


def _add_backup(commands: _Commands[_CommandParser]) -> None:
    parser = _add(commands, "backup", "back up the embedded database; the bot can keep running")
    parser.add_argument(
        "file", metavar="FILE", help="the file to create; an existing file is never overwritten"
    )
    _add_data_dir(parser)


def _add_restore(commands: _Commands[_CommandParser]) -> None:
    parser = _add(commands, "restore", "restore a backup; stop the bot first")
    parser.add_argument(
        "copy",
        metavar="FILE",
        nargs="?",
        help="a file made by `countersign backup`; leave out after mongorestore, or for a file "
        "in place",
    )
    _add_data_dir(parser)


def _add_audit(commands: _Commands[_CommandParser]) -> None:
    parser = _add(commands, "audit", "print the audit log, or verify that it's complete")
    about = parser.add_mutually_exclusive_group()
    about.add_argument(
        "--thread", metavar="ID", default="", help="only this thread (team:channel:ts)"
    )
    about.add_argument("--approval", metavar="ID", default="", help="only this approval (apr_…)")
    _add_json(parser)
    _add_data_dir(parser)
    parts = parser.add_subparsers(title="parts", metavar="PART", dest="part")
    listed = parts.add_parser("list", help="print entries from all threads, a short line for each")
    _add_filters(listed)
    form = listed.add_mutually_exclusive_group()
    form.add_argument(
        "--format", choices=("jsonl", "csv"), default="", help="print whole entries, as export does"
    )
    form.add_argument(
        "--json",
        dest="format",
        action="store_const",
        const="jsonl",
        help="the same as --format jsonl",
    )
    shown = parts.add_parser("show", help="print the entries of one approval")
    shown.add_argument("approval", metavar="APPROVAL", help="its id: apr_…")
    _add_json(shown)
    verified = parts.add_parser("verify", help="check for altered or removed entries")
    verified.add_argument(
        "--head",
        metavar="SEQ:HASH",
        default="",
        help="a head you saved earlier; fails if entries after it are gone",
    )
    verified.add_argument(
        "--plain-until",
        metavar="SEQ:HASH",
        default="",
        help="the last entry from before COUNTERSIGN_AUDIT_KEY was set, noted elsewhere",
    )
    verified.add_argument("--team", metavar="ID", default="", help="only this workspace")
    exported = parts.add_parser("export", help="print all entries with their position in the chain")
    exported.add_argument(
        "--format", choices=("jsonl", "csv"), default="jsonl", help="(%(default)s)"
    )
    pruned = parts.add_parser("prune", help="delete old entries and leave a checkpoint")
    pruned.add_argument(
        "--older-than", metavar="TIME", type=_age, required=True, help="such as 400d"
    )
    _add_yes(pruned)
    # An option before the subcommand's name stays valid, unless it is repeated after it.
    for part in (listed, shown, verified, exported, pruned):
        _add_data_dir(part, default=argparse.SUPPRESS)


def _add_filters(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        *("--user", "--by"),
        dest="by",
        metavar="ID",
        default="",
        help="person who acted, or was acted for, such as U0ADALINDQ; also --user",
    )
    for name, what in (
        ("--since", "start: 2026-11-22, 2026-11-22T09:30 (UTC) or 2d (two days ago)"),
        ("--until", "end, in the same formats; entries of that time are left out"),
        ("--action", "such as decided"),
        ("--tool", "about calls of this tool"),
        ("--outcome", "outcome, such as approved or failed"),
        ("--thread", "in a thread: team:channel:ts"),
    ):
        parser.add_argument(name, metavar="TEXT", default="", help=what)


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="one JSON object on each line")


def _add_forget(commands: _Commands[_CommandParser]) -> None:
    parser = _add(
        commands, "forget", "delete everything stored about one thread; the bot can keep running"
    )
    parser.add_argument(
        "thread",
        metavar="THREAD",
        help="a link to one of its messages, team:channel:ts, or an approval ID",
    )
    _add_yes(parser)
    _add_data_dir(parser)


def _add_prune(commands: _Commands[_CommandParser]) -> None:
    parser = _add(commands, "prune", "delete threads that have been inactive for a while")
    parser.add_argument(
        "--older-than",
        metavar="TIME",
        type=_age,
        required=True,
        help="minimum time since the last activity, such as 90d",
    )
    _add_yes(parser)
    _add_data_dir(parser)
    parser.set_defaults(command="forget")  # both are in one module


def _add_pending(commands: _Commands[_CommandParser]) -> None:
    parser = _add(commands, "pending", "list open requests, or ask them again")
    parser.add_argument(
        "--user", metavar="ID", default="", help="only requests that name this user or group"
    )
    parser.add_argument(
        "--rule", metavar="NAME", default="", help="only requests from this policy rule"
    )
    parser.add_argument("--stuck", action="store_true", help="only requests no one can decide now")
    parser.add_argument("--outdated", action="store_true", help=_OUTDATED_HELP)
    _add_data_dir(parser)
    parser.set_defaults(part="")
    parts = parser.add_subparsers(title="actions", metavar="ACTION")
    reask = parts.add_parser("reask", help="cancel it and ask again under the current policy")
    reask.add_argument("id", metavar="ID", nargs="?", default="", help="of a request: apr_…")
    reask.add_argument("--outdated", action="store_true", help=_OUTDATED_HELP)
    _add_data_dir(reask)
    reask.set_defaults(part="reask")


def _add_freeze(commands: _Commands[_CommandParser]) -> None:
    freeze = _add(commands, "freeze", "stop all starts of calls; works without the bot and Slack")
    freeze.add_argument("why", metavar="WHY", type=_why, help="the reason, which everyone sees")
    scopes = freeze.add_mutually_exclusive_group()
    scopes.add_argument("--agent", metavar="NAME", help="only calls of this agent, or through it")
    scopes.add_argument("--tool", metavar="NAME", help="only calls of this tool")
    scopes.add_argument("--tag", metavar="NAME", help="only calls of tools with this tag")
    scopes.add_argument("--channel", metavar="ID", help="only calls from this channel (C…)")
    freeze.add_argument("--turns", action="store_true", help="stop turns of agents, too")
    unfreeze = _add(commands, "unfreeze", "lift a freeze; waiting calls are then judged again")
    unfreeze.add_argument(
        "id", metavar="ID", nargs="?", help="of the freeze, such as f2; default: the only one"
    )
    unfreeze.add_argument("why", metavar="WHY", type=_why, help="the reason, for the audit")
    freezes = _add(commands, "freezes", "list the freezes in force")
    _add_json(freezes)
    for action, parser in {"freeze": freeze, "unfreeze": unfreeze, "freezes": freezes}.items():
        _add_data_dir(parser)
        parser.set_defaults(command="freeze", action=action)  # all are in one module


def _add_keys(commands: _Commands[_CommandParser]) -> None:
    keys = _add(commands, "keys", "make, list, revoke and rotate keys of programs for the API")
    actions = keys.add_subparsers(title="actions", metavar="ACTION", required=True)
    create = actions.add_parser("create", help="make a program and its key, which is shown once")
    create.add_argument("name", metavar="NAME", help="of the program: a-z, 0-9, - and _")
    for flag, metavar, text in (
        ("--owner", "ID", "full member who answers for the program, and can't approve its calls"),
        ("--expires", "TIME", "lifetime of the key, at most 400d (default: 90d; personal: 30d)"),
        ("--limits", "LIST", "such as create=60,pending=100,waiting=200 (the default)"),
    ):
        create.add_argument(
            flag, metavar=metavar, default="", required=flag == "--owner", help=text
        )
    for flag, metavar, text in (
        ("--scope", "NAME", "a right (default: requests:write and requests:read)"),
        ("--tool", "PATTERN", "tools that it may name, such as backups.*"),
        ("--channel", "ID", "where it may ask; the first is the default"),
        ("--callback-host", "HOST", "a host that its callbacks may name"),
        ("--from", "CIDR", "a network from which the key works (default: any)"),
    ):
        create.add_argument(
            flag,
            dest={"--from": "networks"}.get(flag),
            metavar=metavar,
            action="append",
            default=[],
            help=f"{text}; repeat for several",
        )
    create.add_argument(
        "--requester",
        choices=("owner", "named", "required"),
        default="owner",
        help="whether a request may or must name a person that it is for (%(default)s)",
    )
    create.add_argument(
        "--people",
        choices=("none", "narrow"),
        default="none",
        help="whether a request may narrow who is asked (%(default)s)",
    )
    create.add_argument(
        "--personal", action="store_true", help="it is the owner's own tool; any --tool"
    )
    create.add_argument("--trust", choices=("tags",), help="its tags count as true")
    listed = actions.add_parser("list", help="list all programs and keys")
    _add_json(listed)
    revoke = actions.add_parser("revoke", help="end a key, or all keys of a program, at once")
    what = revoke.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "key", metavar="csk_ID", nargs="?", default="", help="the key, or its public part"
    )
    what.add_argument("--program", metavar="NAME", default="", help="all keys of this program")
    rotate = actions.add_parser("rotate", help="make a new key; the old one ends after a while")
    rotate.add_argument("name", metavar="NAME", help="of the program")
    rotate.add_argument(
        "--overlap", metavar="TIME", default="24h", help="how long the old key works (%(default)s)"
    )
    rotate.add_argument("--expires", metavar="TIME", default="", help="as for create")
    for action, parser in {
        "create": create,
        "list": listed,
        "revoke": revoke,
        "rotate": rotate,
    }.items():
        _add_data_dir(parser)
        parser.set_defaults(action=action)


def _add_webhooks(commands: _Commands[_CommandParser]) -> None:
    webhooks = _add(commands, "webhooks", "manage endpoints of programs and their events")
    actions = webhooks.add_subparsers(title="actions", metavar="ACTION", required=True)
    add = actions.add_parser("add", help="add an endpoint; its secret is shown once")
    add.add_argument("program", metavar="NAME", help="of the program")
    add.add_argument("url", metavar="URL", help="https, and a host that its key names")
    add.add_argument(
        "--event",
        metavar="TYPE",
        action="append",
        default=[],
        help="a type of event that it gets (default: all); repeat for several",
    )
    add.add_argument(
        "--full", action="store_true", help="send the whole request, with its arguments"
    )
    listed = actions.add_parser("list", help="list all endpoints")
    _add_json(listed)
    deliveries = actions.add_parser(
        "deliveries", help="list what was sent to an endpoint, and what waits: the newest 100"
    )
    deliveries.add_argument(
        "--status", choices=("waiting", "delivered", "given_up"), help="only these (default: all)"
    )
    _add_json(deliveries)
    remove = actions.add_parser("remove", help="remove an endpoint, and what waits for it")
    rotate = actions.add_parser("rotate", help="make a new secret; the old one signs too for a day")
    redrive = actions.add_parser(
        "redrive", help="switch an endpoint on, and send again what was given up"
    )
    redrive.add_argument(
        "--since", metavar="TIME", default="", help="send all again of this long, such as 2h"
    )
    for parser in (deliveries, remove, redrive):
        parser.add_argument("endpoint", metavar="whe_ID", help="the endpoint")
    what = rotate.add_mutually_exclusive_group(required=True)
    what.add_argument("endpoint", metavar="whe_ID", nargs="?", default="", help="the endpoint")
    what.add_argument(
        "--program", metavar="NAME", default="", help="the secret for callback_url of this program"
    )
    for action, parser in {
        "add": add,
        "list": listed,
        "deliveries": deliveries,
        "remove": remove,
        "rotate": rotate,
        "redrive": redrive,
    }.items():
        _add_data_dir(parser)
        parser.set_defaults(action=action)


def _why(text: str) -> str:
    if not 1 <= len(text.strip()) <= MAX_WHY:
        raise argparse.ArgumentTypeError(f"write from 1 to {MAX_WHY} characters")
    return text.strip()


def _add_policy(commands: _Commands[_CommandParser]) -> None:
    parser = _add(
        commands, "policy", "check, explain and test a policy file; the bot doesn't have to run"
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    check = actions.add_parser(
        "check", help="list all problems in a policy file; exits with 2 if there are any"
    )
    check.add_argument("file", metavar="FILE", help="the policy")
    check.add_argument("--offline", action="store_true", help="don't look up IDs in Slack")
    check.set_defaults(action="check")
    schema = actions.add_parser("schema", help="print the JSON schema of policy files, for editors")
    schema.set_defaults(action="schema")
    show = actions.add_parser("show", help="print the policy in force as YAML")
    show.set_defaults(action="show")
    explain = actions.add_parser(
        "explain", help="show how the policy decides one call, rule by rule"
    )
    explain.add_argument("file", metavar="FILE", help="the policy")
    explain.add_argument("call", metavar="CALL.json", help="the call: its tool, arguments, world")
    explain.add_argument("--json", action="store_true", help="as one JSON object")
    explain.add_argument(
        "--as-case", action="store_true", help="as a file of cases for `policy test`"
    )
    explain.set_defaults(command="policies.explain")
    test = actions.add_parser(
        "test", help="run test cases against the policy; exits with 1 if any fails"
    )
    test.add_argument("file", metavar="FILE", help="the policy file, for cases that don't name one")
    test.add_argument(
        "cases",
        metavar="CASES.yaml",
        help="the test cases and the people, channels and tools they use",
    )
    test.set_defaults(command="policies.cases")


def _add_yes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--yes", action="store_true", help="delete; without it, only show what would be deleted"
    )


def _add_data_dir(parser: argparse.ArgumentParser, *, default: str | None = None) -> None:
    parser.add_argument("--data-dir", metavar="DIRECTORY", default=default, help=_DATA_DIR_HELP)


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= 65535):
        raise argparse.ArgumentTypeError(f"{text!r} isn't a port; use a number from 0 to 65535")
    return int(text)


def _age(text: str) -> timedelta:
    try:
        return parse_duration(text, longest=LONGEST_RETENTION)
    except ValueError as error:
        fault = f"{text!r} isn't valid: {error}; use whole days, such as 90d"
        raise argparse.ArgumentTypeError(fault) from error
