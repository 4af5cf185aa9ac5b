"""The command line: each command is a module beside this one, loaded when it is called."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine, MutableMapping, Sequence
from importlib import import_module

from bot.commands.call import Call
from bot.commands.parser import parse
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
    command = import_module(f"bot.commands.{arguments.command}")
    try:
        asyncio.run(command.execute(call))
    except (FaultyPolicyError, InvalidSettingsError, SettingsError) as error:
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


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _complain(error: Exception | str, code: int) -> int:
    sys.stderr.write(f"{error}\n")
    return code
