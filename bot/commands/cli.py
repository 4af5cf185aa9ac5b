"""The command line: `countersign run`, `sandbox`, `demo`, `doctor`, and for the database.

Those are `backup`, `restore`, `audit`, `forget` and `prune`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import uuid
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path

from agents.models import ask_once
from bot import main as composition
from bot.clock import system_clock
from bot.commands.demo import PORT, RunBot, try_out
from bot.commands.doctor import Tools, examine
from bot.commands.upkeep import forget_thread, go_back, prune
from bot.config import stores
from bot.config.agents import load_agents, load_model
from bot.config.durations import parse_duration
from bot.config.manifest import manifest_text
from bot.config.settings import Settings, variables
from bot.config.values import LONGEST_RETENTION
from bot.core.audit import json_line, line, story
from bot.core.upkeep.forgetting import Forgetting
from bot.core.upkeep.restoring import Restoring
from bot.errors import BotError, InvalidSettingsError, SettingsError
from bot.observability import logs
from bot.redaction.mask import in_force
from bot.redaction.rules import NO_RULES, RuleError, Rules, read_rules
from bot.sandbox import Sandbox
from storage.base import Storage
from storage.errors import StorageError, StoreUnavailableError

FAILED = 1
WRONG_SETTINGS = 2

DISTRIBUTION = "countersign-bot"
"""Name of the package; another project has the name `countersign` on the package index."""

_DATA_DIR_HELP = "instead of COUNTERSIGN_DATA_DIR, or .countersign"

DESCRIPTION = "A self-hosted Slack approval bot for AI agents."


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of the program.

    Attributes:
        arguments: What was typed.
        environ: The variables.
        run_bot: Runs the bot.
        say: Shows a text to the person at the terminal.
    """

    arguments: argparse.Namespace
    environ: MutableMapping[str, str]
    run_bot: RunBot
    say: Callable[[str], object]


def main(
    argv: Sequence[str] | None = None,
    *,
    environ: MutableMapping[str, str] | None = None,
    run_bot: RunBot | None = None,
    say: Callable[[str], object] | None = None,
) -> int:
    """Run a command.

    Args:
        argv: The arguments after the program's name; those of the process when None.
        environ: The variables; those of the process when None.
        run_bot: Runs the bot; the real one when None.
        say: Shows a text to the person at the terminal; on standard output when None.

    Returns:
        The exit code: 0, `FAILED` or `WRONG_SETTINGS`.
    """
    if environ is None:
        environ = os.environ  # noqa: TID251 - the way in; all the rest gets it as an argument
    arguments = _parser().parse_args(argv)
    call = Call(arguments=arguments, environ=environ, run_bot=run_bot or _run_bot, say=say or _say)
    try:
        asyncio.run(arguments.command(call))
    except (InvalidSettingsError, SettingsError) as error:
        return _complain(error, WRONG_SETTINGS)
    except StoreUnavailableError as error:
        return _complain(f"the database cannot be used: {error.detail}", FAILED)
    except (BotError, StorageError) as error:
        return _complain(error, FAILED)
    except BrokenPipeError:
        # Whoever read the output has enough, as `head` has. Python would complain once more when
        # it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except KeyboardInterrupt:  # before the command listens to signals itself
        return 0
    return 0


async def _run_bot(
    settings: Settings, *, stop: asyncio.Event, ready: asyncio.Event | None = None
) -> None:
    logs.configure(settings.log, secrets=settings.secrets())
    await composition.run(settings, ready=ready, stop=stop)


async def _run(call: Call) -> None:
    await call.run_bot(Settings.load(call.environ), stop=_stopped_by_signals())


async def _demo(call: Call) -> None:
    # Slack's library reads variables of its own, such as SLACK_CLIENT_ID; the demo knows no Slack.
    for name in [name for name in call.environ if name.startswith("SLACK_")]:
        del call.environ[name]
    await try_out(
        call.environ,
        port=call.arguments.port,
        clock=_seconds,
        run_bot=call.run_bot,
        stop=_stopped_by_signals(),
        say=call.say,
    )


async def _sandbox(call: Call) -> None:
    host, port = call.arguments.host, call.arguments.port
    stop = _stopped_by_signals()
    try:
        sandbox = Sandbox(
            clock=_seconds, host=host, port=port, events_url=call.arguments.events_url
        )
    except ValueError as error:
        raise SettingsError("--host", str(error).rstrip("."), "use 127.0.0.1") from error
    try:
        await sandbox.start()
        call.say(_how_to_connect(sandbox))
        await stop.wait()
    except OSError as error:
        fault = f"cannot listen on {host}:{port}: {error.strerror}; choose another --port"
        raise BotError(fault) from error
    finally:
        await sandbox.stop()


def _how_to_connect(sandbox: Sandbox) -> str:
    if sandbox.events_url is None:
        proof = f"SLACK_APP_TOKEN={sandbox.app_token}"
    else:
        proof = f"SLACK_SIGNING_SECRET={sandbox.signing_secret}"
    return (
        f"The stand-in for Slack is ready. Open this page:\n\n    {sandbox.url}\n\n"
        "Start the bot with these variables; they are good until this program ends:\n\n"
        f"    SLACK_API_URL={sandbox.api_url}\n"
        f"    SLACK_BOT_TOKEN={sandbox.bot_token}\n"
        f"    {proof}\n"
        "    COUNTERSIGN_APPROVERS=channel\n"
        f"    COUNTERSIGN_CHANNELS={','.join(sandbox.channel_ids)}\n"
    )


async def _doctor(call: Call) -> None:
    tools = Tools(
        manifest=manifest_text(),
        load_model=load_model,
        load_agents=load_agents,
        ask_model=ask_once if call.arguments.model else None,
        make_storage=composition.make_storage,
        clock=system_clock,
    )
    faults = 0
    async for finding in examine(call.environ, tools):
        call.say(str(finding))
        faults += not finding.is_ok
    if faults:
        raise BotError(f"{faults} {'thing has' if faults == 1 else 'things have'} to be done")


async def _backup(call: Call) -> None:
    if call.environ.get("MONGODB_URI", "").strip():
        raise BotError(
            "MONGODB_URI is set: that database is copied with mongodump, or by whoever hosts it; "
            "this command copies the embedded one"
        )
    target = Path(call.arguments.file)
    try:
        size = await stores.back_up(_data_dir(call), target)
    except StoreUnavailableError as error:
        raise BotError(error.detail) from error
    call.say(f"{target}: {size:,} bytes, checked. Keep it as safe as the original.")


async def _restore(call: Call) -> None:
    shared, copy = _shared(call), call.arguments.copy
    if shared["uri"] and copy:
        raise BotError(
            "MONGODB_URI is set: put that database back with mongorestore while no bot runs, and "
            "call this command without a file then"
        )
    if not shared["uri"] and not copy:
        raise BotError("name the copy: countersign restore FILE")
    path = Path(copy) if copy else None
    try:
        async with stores.restoring(_data_dir(call), path, **shared) as storage:
            restoring = Restoring(storage=storage, clock=system_clock)
            with in_force(_redact(call)):
                await go_back(restoring, is_shared=path is None, say=call.say)
    except StoreUnavailableError as error:
        raise BotError(error.detail) from error


async def _audit(call: Call) -> None:
    given = call.arguments
    with in_force(_redact(call)):  # also what was not secret when it was written
        async with stores.open_to_read(_data_dir(call), **_shared(call)) as storage:
            entries = await story(storage, thread_id=given.thread, approval_id=given.approval)
        for entry in entries:
            call.say(json_line(entry) if given.json else line(entry))
    if not entries:
        raise BotError(f"nothing is on record of {given.thread or given.approval}")


async def _forget(call: Call) -> None:
    given = call.arguments
    async with stores.open_beside(_data_dir(call), **_shared(call)) as storage:
        await forget_thread(_forgetting(storage), given.thread, do_it=given.yes, say=call.say)


async def _prune(call: Call) -> None:
    given = call.arguments
    async with stores.open_beside(_data_dir(call), **_shared(call)) as storage:
        await prune(_forgetting(storage), given.older_than, do_it=given.yes, say=call.say)


def _forgetting(storage: Storage) -> Forgetting:
    owner = f"command:{os.getpid()}:{uuid.uuid4().hex[:8]}"
    return Forgetting(storage=storage, clock=system_clock, owner=owner)


def _shared(call: Call) -> dict[str, str]:
    """Which shared database, and by which driver; no address for the embedded one."""
    return {
        "uri": call.environ.get("MONGODB_URI", "").strip(),
        "driver": call.environ.get("COUNTERSIGN_MONGO_DRIVER", "").strip() or "motor",
    }


def _redact(call: Call) -> Rules:
    text = call.environ.get("COUNTERSIGN_REDACT", "").strip()
    try:
        return read_rules(text) if text else NO_RULES
    except RuleError as error:
        raise SettingsError("COUNTERSIGN_REDACT", error.fault, error.remedy) from error


def _data_dir(call: Call) -> Path:
    given = call.arguments.data_dir or call.environ.get("COUNTERSIGN_DATA_DIR", "").strip()
    return Path(given) if given else stores.DATA_DIR


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="countersign", description=DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"%(prog)s {version(DISTRIBUTION)}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add(commands, "run", _run, "run the bot", epilog=_variables_help())
    sandbox = _add(commands, "sandbox", _sandbox, "run the stand-in for Slack alone")
    sandbox.add_argument(
        "--host", default="127.0.0.1", help="an address of this machine alone (%(default)s)"
    )
    sandbox.add_argument(
        "--port", type=_port, default=PORT, help="port of the page; 0: any (%(default)s)"
    )
    sandbox.add_argument(
        "--events-url",
        metavar="URL",
        help="where signed requests go, as http://127.0.0.1:3000/slack/events; "
        "without it, the bot connects by Socket Mode",
    )
    demo = _add(commands, "demo", _demo, "run the stand-in and the bot together; needs no Slack")
    demo.add_argument(
        "--port", type=_port, help=f"port of the page ({PORT}, or a free one when it is taken)"
    )
    doctor = _add(
        commands, "doctor", _doctor, "check settings, database, Slack, and say what to do"
    )
    doctor.add_argument(
        "--model", action="store_true", help="also ask the model for one word, at its price"
    )
    backup = _add(commands, "backup", _backup, "copy the embedded database while the bot runs")
    backup.add_argument("file", metavar="FILE", help="the new file; nothing is overwritten")
    back = _add(commands, "restore", _restore, "go back to a copy, while no bot runs")
    back.add_argument(
        "copy",
        metavar="FILE",
        nargs="?",
        help="as `backup` made it; none for MongoDB, after mongorestore",
    )
    audit = _add(commands, "audit", _audit, "print what is on record, also while the bot runs")
    about = audit.add_mutually_exclusive_group(required=True)
    about.add_argument("--thread", metavar="ID", default="", help="of a thread: team:channel:ts")
    about.add_argument("--approval", metavar="ID", default="", help="of an approval: apr_…")
    audit.add_argument("--json", action="store_true", help="one JSON object on each line")
    forget = _add(commands, "forget", _forget, "delete all of one thread, also while the bot runs")
    forget.add_argument(
        "thread",
        metavar="THREAD",
        help="link of one of its messages, team:channel:ts, or the id of an approval",
    )
    old = _add(commands, "prune", _prune, "delete threads that ended long ago")
    old.add_argument(
        "--older-than",
        metavar="TIME",
        type=_age,
        required=True,
        help="nothing has happened in them for so long, such as 90d",
    )
    for command in (forget, old):
        command.add_argument("--yes", action="store_true", help="do it; else it is only told")
    for command in (backup, back, audit, forget, old):
        command.add_argument("--data-dir", metavar="DIRECTORY", help=_DATA_DIR_HELP)
    return parser


def _add(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    command: Callable[[Call], Awaitable[None]],
    summary: str,
    *,
    epilog: str = "",
) -> argparse.ArgumentParser:
    parser = commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(command=command)
    return parser


def _variables_help() -> str:
    rows = (f"  {name:<26} {text.replace('`', '')}" for name, text in variables().items())
    return "\n".join(("environment:", *rows))


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


def _stopped_by_signals() -> asyncio.Event:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # not every system has such handlers
            loop.add_signal_handler(number, stop.set)
    return stop


def _seconds() -> float:
    return system_clock() / 1000


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _complain(error: Exception | str, code: int) -> int:
    sys.stderr.write(f"{error}\n")
    return code
