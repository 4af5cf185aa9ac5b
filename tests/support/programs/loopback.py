"""The server in memory behind a port of loopback, on the real clock."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

from tests.support.programs.server import Record, Server


class Loopback:
    """A server for programs that are processes of their own."""

    def __init__(self) -> None:
        begun = time.monotonic()
        self.server = Server(lambda: time.monotonic() - begun)
        self._changed = threading.Condition()
        door = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                door._answer(self)

            def do_POST(self) -> None:
                door._answer(self)

            def log_message(self, *_: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def request(self, until: Callable[[Record], bool] = lambda _: True) -> Record:
        """Wait for a request, and until something holds of it."""
        with self._changed:
            assert self._changed.wait_for(
                lambda: any(map(until, self.server.records.values())), timeout=60
            ), [record.shown for record in self.server.records.values()]
            return next(filter(until, self.server.records.values()))

    def do(self, deed: Callable[[], object]) -> None:
        """Let people do something."""
        with self._changed:
            deed()
            self._changed.notify_all()

    def _answer(self, handler: Any) -> None:
        parts = urlsplit(handler.path)
        query = parse_qsl(parts.query, keep_blank_values=True)
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in handler.headers.items()}
        with self._changed:
            if handler.command == "GET":
                self._changed.wait_for(
                    lambda: not self.server.is_held(parts.path, query), timeout=5
                )
            answer = self.server.answer(handler.command, parts.path, query, headers, body)
            self._changed.notify_all()
        handler.send_response_only(answer.status)
        for name, value in answer.headers.items():
            handler.send_header(name, value)
        handler.send_header("content-length", str(len(answer.content)))
        with suppress(OSError):  # a client that a signal has ended
            handler.end_headers()
            handler.wfile.write(answer.content)
