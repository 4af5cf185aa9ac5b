"""Ports for servers that tests start."""

from __future__ import annotations

import secrets
import socket
from contextlib import suppress


def free_port() -> int:
    """A port that nobody listens on, nor gets by chance for a connection of its own."""
    while True:
        port = secrets.randbelow(20_000) + 10_000
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
