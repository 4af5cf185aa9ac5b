"""The command line: imports the module of the typed command and runs it."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine, MutableMapping, Sequence
from importlib import import_module

from bot.commands.call import Call
from bot.commands.parser import parse
from bot.config.secretfiles import secret_files
from bot.errors import (
    BotError,
    FaultyPolicyError,
    InvalidSettingsError,
    SettingsError,
    UnknownScopeError,
)
from storage.errors import StorageError, StoreBrokenError, StoreUnavailableError

FAILED = 1
WRONG_SETTINGS = 2
OF_CLIENT = ("ask", "gate", "wait", "get", "cancel", "result", "hook", "mcp", "mcp-proxy")
"""Commands of `countersign-client`, which is a distribution of its own."""


def main(
    argv: Sequence[str] | None = None,
    *,
    environ: MutableMapping[str, str] | None = None,
    run_bot: Callable[..., Coroutine[None, None, None]] | None = None,
    say: Callable[[str], object] | None = None,
) -> int:
    """Run a command.

    Args:
        argv: The arguments after the program's name; None for the arguments of the process.
        environ: The environment; None for the environment of the process.
        run_bot: Runs the bot; None for the real bot.
        say: Prints a text to the terminal; None for standard output.

    Returns:
        The exit code: 0, `FAILED` or `WRONG_SETTINGS`.
    """
    if environ is None:
        environ = os.environ  # noqa: TID251 - the way in; all the rest gets it as an argument
    words = list(sys.argv[1:] if argv is None else argv)
    if words and words[0] in OF_CLIENT:
        return _ask_people(words)
    arguments = parse(words)
    call = Call(arguments=arguments, environ=environ, run_bot=run_bot, say=say or _say)
    try:
        return asyncio.run(carry_out(call, _complain))
    except BrokenPipeError:
        # The reader of the output has closed it, as `head` does. Without this, Python reports the
        # error again when it flushes the output on exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except KeyboardInterrupt:  # before the command has registered its signal handlers
        return 0


def _ask_people(words: list[str]) -> int:
    try:
        commands = import_module("countersign_client.cli")
    except ImportError:
        _complain(f"`countersign {words[0]}` needs the client: pip install ./countersign_client")
        return WRONG_SETTINGS
    return int(commands.main(words))


async def carry_out(call: Call, complain: Callable[[str], object]) -> int:
    """Execute a command.

    Args:
        call: The command.
        complain: Prints an error to the terminal.

    Returns:
        The exit code.
    """
    command = import_module(f"bot.commands.{call.arguments.command}")
    try:
        # Set in the environment itself, because model libraries and tools read their keys there.
        call.environ.update(secret_files(call.environ))
        await command.execute(call)
    except (FaultyPolicyError, InvalidSettingsError, SettingsError, UnknownScopeError) as error:
        complain(str(error))
        return WRONG_SETTINGS
    except StoreUnavailableError as error:
        complain(f"can't use the database: {error.detail}{_remedy(error, call)}")
        return FAILED
    except (BotError, StorageError) as error:
        complain(str(error))
        return FAILED
    return 0


def _remedy(error: StoreUnavailableError, call: Call) -> str:
    if not isinstance(error, StoreBrokenError):
        return ""
    from bot.commands.database import remedy_for  # noqa: PLC0415 - slow, and only for a fault

    return f" → {remedy_for(error, is_embedded=not call.environ.get('MONGODB_URI'))}"


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _complain(text: str) -> None:
    sys.stderr.write(f"{text}\n")
