"""A proxy that holds each reply of a server, as a replica set does that waits for its disks.

`--delay 3ms` of a benchmark puts it in front of the server.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from tests.support.mongo import MongoServer


@contextmanager
def delayed(server: MongoServer) -> Iterator[None]:
    """Reach a server through the proxy while the block runs, if the command line says so."""
    if "--delay" not in sys.argv:
        yield
        return
    given = sys.argv[sys.argv.index("--delay") + 1]
    assert server.kind != "mongod", "a replica set sends its clients past the proxy"
    direct, port = server.uri, urlsplit(server.uri).port
    command = [sys.executable, "-m", "benchmarks.delay", str(port), given.removesuffix("ms")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as proxy:
        assert proxy.stdout is not None
        server.uri = f"mongodb://127.0.0.1:{int(proxy.stdout.readline())}/"
        print(f"\nThe server holds each reply for {given}.")
        try:
            yield
        finally:
            server.uri = direct
            proxy.terminate()


async def main(port: int, delay_s: float) -> None:
    """Listen on a free port, print it, and pass everything on."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behind, ahead = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(_pass_on(reader, ahead, 0), _pass_on(behind, writer, delay_s))

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, hold: float) -> None:
    later = asyncio.get_running_loop().call_later
    try:
        while data := await reader.read(1 << 16):
            later(hold, writer.write, data)
    except ConnectionError:
        pass  # as at the end
    later(hold, writer.close)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), float(sys.argv[2]) / 1e3))
