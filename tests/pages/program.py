"""The command `countersign` for shell scripts, forked from a process that has loaded its modules.

To load them takes a command longer than its work. That the program starts as it is installed is
shown by tests/unit/bot/commands/test_cli.py.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bot.commands import cli
from tests.support.forked import FORKS

_CALL_BYTES = 1_000_000
_CLIENT = """\
#!{python} -IS
import json, os, socket, sys

server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
call = json.dumps([sys.argv, os.getcwd(), dict(os.environ)]).encode()
socket.send_fds(server, [call], [0, 1, 2])
sys.exit(int(server.recv(8) or 70))
"""


@contextmanager
def program(folder: Path) -> Iterator[Path]:
    """Offer the command `countersign` in a new folder, for `PATH`.

    Args:
        folder: Where to make the folder.
    """
    offered = folder / "bin"
    offered.mkdir()
    address = folder / "calls"
    client = offered / "countersign"
    client.write_text(_CLIENT.format(python=sys.executable, address=str(address)), "utf-8")
    client.chmod(0o755)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(address))
        listener.listen()
        server = FORKS.Process(target=_serve, args=(listener,), daemon=True)
        server.start()
    yield offered
    server.terminate()
    server.join()


def _serve(listener: socket.socket) -> None:
    while True:
        connection, _ = listener.accept()
        with connection:
            if os.fork() == 0:
                listener.close()
                _be(connection)
            # The child holds the connection until its command has ended.


def _be(connection: socket.socket) -> None:
    """Be one command: with the caller's arguments, folder, environment and open files."""
    code = 70
    try:
        call, files, _, _ = socket.recv_fds(connection, _CALL_BYTES, 3)
        sys.argv, folder, environ = json.loads(call)
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environ)
        paths = environ.get("PYTHONPATH", "").split(":")
        sys.path[:0] = [str(Path(each).absolute()) for each in paths if each]
        code = cli.main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        connection.sendall(str(code).encode())
        os._exit(0)
