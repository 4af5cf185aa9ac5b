"""The command line: loads the module of the command that was typed."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine, MutableMapping, Sequence
from importlib import import_module

from bot.commands.call import Call
from bot.commands.parser import parse
from bot.config.secretfiles import secret_files
from bot.errors import BotError, FaultyPolicyError, InvalidSettingsError, SettingsError
from storage.errors import StorageError, StoreUnavailableError

FAILED = 1
WRONG_SETTINGS = 2


def main(
    argv: Sequence[str] | None = None,
    *,
    environ: MutableMapping[str, str] | None = None,
    run_bot: Callable[..., Coroutine[None, None, None]] | None = None,
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
    arguments = parse(argv)
    call = Call(arguments=arguments, environ=environ, run_bot=run_bot, say=say or _say)
    try:
        return asyncio.run(carry_out(call, _complain))
    except BrokenPipeError:
        # Whoever read the output has enough, as `head` has. Python would complain once more when
        # it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except KeyboardInterrupt:  # before the command listens to signals itself
        return 0


async def carry_out(call: Call, complain: Callable[[str], object]) -> int:
    """Execute a command.

    Args:
        call: The command.
        complain: Shows the person at the terminal what is wrong.

    Returns:
        The exit code.
    """
    command = import_module(f"bot.commands.{call.arguments.command}")
    try:
        # Into the environment itself: libraries of models, and tools, look for their keys there.
        call.environ.update(secret_files(call.environ))
        await command.execute(call)
    except (FaultyPolicyError, InvalidSettingsError, SettingsError) as error:
        complain(str(error))
        return WRONG_SETTINGS
    except StoreUnavailableError as error:
        complain(f"can't use the database: {error.detail}")
        return FAILED
    except (BotError, StorageError) as error:
        complain(str(error))
        return FAILED
    return 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _complain(text: str) -> None:
    sys.stderr.write(f"{text}\n")
