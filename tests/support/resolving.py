"""A resolver of host names in memory."""

from __future__ import annotations

import socket

from aiohttp.abc import AbstractResolver, ResolveResult


class FakeResolver(AbstractResolver):
    """Gives the same addresses for each host."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = addresses

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        if not self.addresses:
            raise OSError("no such host")
        return [
            ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=0)
            for address in self.addresses
        ]

    async def close(self) -> None:
        pass
