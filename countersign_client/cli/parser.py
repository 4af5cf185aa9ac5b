"""The arguments of the commands, and the request that is made from them."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from countersign_client.canonical import strict_json
from countersign_client.cli.process import EXIT_CODES, Process, UsageError

_UNITS = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}


def build_parser(name: str = "countersign-ask") -> argparse.ArgumentParser:
    """Make the parser of all commands.

    Args:
        name: The program's name.
    """
    form = argparse.RawDescriptionHelpFormatter
    about = (
        "Ask people in Slack. COUNTERSIGN_URL is the address of the API; the key of the program\n"
        "is in COUNTERSIGN_KEY, or in the file that COUNTERSIGN_KEY_FILE names."
    )
    parser = argparse.ArgumentParser(
        prog=name, description=about, epilog=EXIT_CODES, formatter_class=form, allow_abbrev=False
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True, dest="command")
    ask = _add(commands, "ask", "ask for an approval, or a question")
    ask.add_argument("--title", required=True, help="a verb and an object, one line")
    ask.add_argument("--kind", choices=("approval", "edit", "question", "choice", "form"))
    ask.add_argument("--tool", help="the name that the policy judges")
    _add_arguments(ask)
    ask.add_argument("--schema", metavar="FILE", help="JSON Schema of the arguments, or the answer")
    ask.add_argument("--option", metavar="VALUE[=LABEL]", action="append", default=[])
    ask.add_argument("--multiple", action="store_true", help="several options may be picked")
    ask.add_argument("--execution", choices=("once", "idempotent", "none"), default="none")
    _add_output(ask)
    _add_request(ask)
    gate = _add(commands, "gate", "ask, then run exactly the command after --, or nothing")
    gate.add_argument("--title", help="default: Run and the command")
    gate.add_argument("--tool", default="shell", help="default: %(default)s")
    _add_gate(gate)
    _add_request(gate)
    waiting = _add(commands, "wait", "wait until a request is over")
    _add_id(waiting)
    waiting.add_argument("--wait", metavar="TIME", type=duration, help="such as 90s, 30m or 2h")
    reading = _add(commands, "get", "read a request")
    _add_id(reading)
    withdrawing = _add(commands, "cancel", "withdraw a request")
    _add_id(withdrawing)
    withdrawing.add_argument("--reason", help="shown on the card")
    reporting = _add(commands, "result", "report what came of a started call")
    reporting.add_argument("id", metavar="ID")
    outcomes = ("running", "ran", "failed", "not_run", "unknown")
    reporting.add_argument("outcome", metavar="OUTCOME", choices=outcomes, help=", ".join(outcomes))
    reporting.add_argument("--summary", help="shown on the card")
    for each in (waiting, reading, withdrawing, reporting):
        _add_output(each)
    commands.add_parser("hook", help="ask about each call of a coding agent", add_help=False)
    commands.add_parser("mcp", help="serve MCP tools by which an agent asks people")
    commands.add_parser("mcp-proxy", help="hold each call of an MCP server until people approve it")
    return parser


def duration(text: str) -> float:
    """Parse a time: a number, and s, m, h or d.

    Args:
        text: Such as 90, 90s, 30m, 2h or 1d.

    Returns:
        Seconds.

    Raises:
        ArgumentTypeError: It is none.
    """
    match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,3})?)([smhd]?)", text)
    if match is None:
        raise argparse.ArgumentTypeError("a time such as 90s, 30m, 2h or 1d")
    return float(match[1]) * _UNITS[match[2]]


def common(options: argparse.Namespace) -> dict[str, Any]:
    """Give the arguments of `Countersign.create` that `ask` and `gate` share.

    Args:
        options: The parsed command line.

    Raises:
        UsageError: A text is not of its form.
    """
    members = {
        "why": options.why,
        "channel": options.channel,
        "group": options.group,
        "requested_for": options.requested_for,
        "expires_in": options.expires,
        "metadata": dict(pair(text) for text in options.metadata),
    }
    return {name: value for name, value in members.items() if value not in (None, {})}


def preview(options: argparse.Namespace, process: Process) -> dict[str, str] | None:
    """Give the preview of a file, whole.

    Args:
        options: The parsed command line.
        process: Has stdin.

    Raises:
        UsageError: It is too long, or cannot be read.
    """
    if options.diff and options.preview:
        raise UsageError("give --preview or --diff, not both")
    name = options.diff or options.preview
    if not name:
        return None
    return {"format": "diff" if options.diff else "text", "text": read(name, process)}


def read(name: str, process: Process) -> str:
    """Read a text.

    Args:
        name: A file, or `-` for stdin.
        process: Has stdin.

    Raises:
        UsageError: It cannot be read, or is no UTF-8.
    """
    try:
        content = (process.stdin.read() if process.stdin else b"") if name == "-" else None
        return (Path(name).read_bytes() if content is None else content).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{name}: {error}") from None


def parsed(text: str, what: str) -> Any:
    """Parse JSON, where a member that stands twice is an error.

    Args:
        text: The JSON.
        what: Where it is from.

    Raises:
        UsageError: It is no JSON.
    """
    try:
        return strict_json(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{what} is no JSON: {error}") from None


def pair(text: str) -> tuple[str, str]:
    """Split name=value.

    Args:
        text: The text.

    Raises:
        UsageError: It has no name.
    """
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise UsageError(f"{text!r} is no name=value")
    return name, value


def _add(commands: Any, name: str, summary: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="print each HTTP request")
    return parser


def _add_id(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("id", metavar="ID", nargs="?", help="the request: apr_ and 32 digits")
    which.add_argument("--key", help="the request's idempotency key")


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--output",
        choices=("json", "value", "none"),
        default="json",
        help="on stdout: the request; the answer or the decided arguments alone; or nothing",
    )


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--arg", metavar="NAME=TEXT", action="append", default=[])
    parser.add_argument("--arg-json", metavar="NAME=JSON", action="append", default=[])
    parser.add_argument("--args", metavar="FILE", help="a JSON object; - for stdin")


def _add_request(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--why", help="why, in your words")
    parser.add_argument("--preview", metavar="FILE", help="what will happen; - for stdin")
    parser.add_argument("--diff", metavar="FILE", help="the same as a unified diff")
    parser.add_argument("--channel", metavar="ID", help="where to ask, such as C0OPS")
    parser.add_argument("--group", metavar="TEXT", help="requests of one group share a thread")
    parser.add_argument(
        "--for", metavar="USER", dest="requested_for", help="whose wish it is, such as U0ROSA"
    )
    parser.add_argument("--expires", metavar="TIME", type=duration, help="such as 30m or 2h")
    parser.add_argument(
        "--key", help="makes two calls the same; default: in CI, by this run of the job"
    )
    parser.add_argument("--wait", metavar="TIME", type=duration, help="default: until it is over")
    parser.add_argument("--metadata", metavar="NAME=TEXT", action="append", default=[])
    parser.add_argument(
        "--cancel-on-interrupt", action="store_true", help="a second Ctrl-C withdraws the request"
    )


def _add_gate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--bind", metavar="FILE", action="append", default=[], help="show its hash")
    parser.add_argument("--stdin", metavar="FILE", help="what the command reads; show its hash")
    parser.add_argument("--env", metavar="NAME", action="append", default=[], help="show its value")
    parser.add_argument(
        "--clean-env", action="store_true", help="give it PATH, HOME, LANG and --env alone"
    )
    parser.add_argument(
        "--edit",
        metavar="NAME=TEXT",
        action="append",
        default=[],
        help="people may change this text, which stands for {NAME} in the command",
    )
    parser.add_argument("--preview-cmd", metavar="COMMAND", help="its output is the preview")
    parser.add_argument("--tail", action="store_true", help="report the last lines of stderr")
    parser.add_argument(
        "--grace", metavar="TIME", type=duration, default=10.0, help="from TERM to KILL; 10s"
    )
    parser.add_argument("--idempotent", action="store_true", help="a second run does no harm")
    parser.add_argument("--result-file", metavar="FILE", help="gets a result that cannot be sent")


def arguments_of(options: argparse.Namespace, process: Process) -> dict[str, Any] | None:
    """Give the arguments of the call that is asked for.

    Args:
        options: The parsed command line.
        process: Has stdin.

    Raises:
        UsageError: A name stands twice, or something is no JSON.
    """
    pairs: list[tuple[str, Any]] = [pair(text) for text in options.arg]
    for text in options.arg_json:
        name, value = pair(text)
        pairs.append((name, parsed(value, name)))
    if options.args:
        given = parsed(read(options.args, process), options.args)
        if not isinstance(given, dict):
            raise UsageError(f"{options.args} is no JSON object")
        pairs += given.items()
    names = [name for name, _ in pairs]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UsageError(f"{', '.join(twice)}: given twice")
    return dict(pairs) if pairs or options.args else None


def options_of(texts: Sequence[str]) -> list[dict[str, str]] | None:
    """Give the options of a choice.

    Args:
        texts: Each VALUE or VALUE=LABEL.
    """
    split = [(value, label or value) for value, _, label in (each.partition("=") for each in texts)]
    return [{"value": value, "label": label} for value, label in split] or None
