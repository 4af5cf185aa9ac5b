"""The addresses that webhooks may reach: what is public, and what the operator has named.

A program chooses the address, and this process calls it from inside of the operator's network. So
the address is judged when it is named, and again for each connection, at the socket.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from collections.abc import Collection, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from bot.config.settings import Settings

Networks: TypeAlias = Sequence[ipaddress.IPv4Network | ipaddress.IPv6Network]

LONGEST_URL = 2_000
"""Maximum length of the address of a webhook, in characters."""

_NOT_PUBLIC_4 = tuple(
    map(
        ipaddress.IPv4Network,
        (
            "0.0.0.0/8",
            "10.0.0.0/8",
            "100.64.0.0/10",
            "127.0.0.0/8",
            "169.254.0.0/16",  # with the metadata services of clouds
            "172.16.0.0/12",
            "192.0.0.0/24",
            "192.0.2.0/24",
            "192.88.99.0/24",
            "192.168.0.0/16",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/3",  # multicast, reserved, broadcast
        ),
    )
)
_PUBLIC_6 = ipaddress.IPv6Network("2000::/3")
"""All global unicast. Mapped, compatible, NAT64, local and multicast addresses lie outside."""
_NOT_PUBLIC_6 = tuple(
    map(ipaddress.IPv6Network, ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"))
)
"""Parts of it that are not public: Teredo and other protocols, documentation, 6to4."""

LOOKUPS_AT_ONCE = 32
"""Maximum number of look-ups at once. Each has a thread, also after its caller has left."""

_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9])?"
_HOST = re.compile(rf"(?:{_LABEL}\.)*{_LABEL}")
_NUMBER = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)")
"""A host that ends in a number is an IPv4 address for some parsers: `127.1`, `0x7f.1`."""
_SLACK = ("slack.com", "slack-edge.com", "slack-gov.com")


@dataclass(frozen=True, slots=True)
class SystemResolver(AbstractResolver):
    """Asks the system's resolver, in threads of its own.

    A slow resolver holds the threads of the event loop otherwise, where Slack's hosts are looked
    up, too.
    """

    threads: Executor = field(
        default_factory=partial(ThreadPoolExecutor, LOOKUPS_AT_ONCE, "webhook-lookup")
    )

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return the addresses of a host."""
        look_up = partial(
            socket.getaddrinfo,
            host,
            port,
            family,
            type=socket.SOCK_STREAM,
            flags=socket.AI_ADDRCONFIG,
        )
        infos = await asyncio.get_running_loop().run_in_executor(self.threads, look_up)
        return [
            ResolveResult(
                hostname=host,
                host=str(address[0]),
                port=port,
                family=kind,
                proto=protocol,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for kind, _, protocol, _, address in infos
        ]

    async def close(self) -> None:
        """Do nothing: look-ups share the threads."""


class AddressRefusedError(OSError):
    """A webhook may not go to this address. The text says why, and holds no address of a host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressRules:
    """The rules of one bot.

    Args:
        private: Networks that are allowed although they are not public.
        own_hosts: Hosts of the bot's API and of Slack's, each with its port; never allowed.
        own_ports: Ports on which this process listens; not allowed on this machine.
        proxy: The operator's proxy, which looks hosts up and judges their addresses; None without.
        resolver: Looks hosts up.
    """

    private: Networks = ()
    own_hosts: Collection[str] = ()
    own_ports: Collection[int] = ()
    proxy: str | None = None
    resolver: AbstractResolver = field(default_factory=SystemResolver)

    async def check(self, address: str, *, hosts: Collection[str]) -> None:
        """Refuse an address that a webhook may not have, after a look-up of its host.

        With a proxy nothing is looked up here: the proxy may know other hosts.

        Args:
            address: The whole address.
            hosts: Exact hosts that are allowed, each with its port unless that is the usual one.

        Raises:
            AddressRefusedError: It is not allowed, or the host does not exist.
        """
        url = self.parsed(address, hosts=hosts)
        if self.proxy is None:
            await JudgingResolver(self, url.scheme).resolve(url.raw_host or "", url.port or 0)

    def parsed(self, address: str, *, hosts: Collection[str]) -> URL:
        """Return an address whose text is allowed. Its host is not looked up.

        Raises:
            AddressRefusedError: It is not allowed.
        """
        try:
            url = URL(address)
        except ValueError as error:
            raise AddressRefusedError("it is no address") from error
        host = (url.raw_host or "").lower()
        if url.scheme not in {"https", "http"} or len(address) > LONGEST_URL:
            raise AddressRefusedError(f"write https and at most {LONGEST_URL} characters")
        if self.proxy is not None and url.scheme != "https":
            raise AddressRefusedError("only https goes through the proxy")
        if url.raw_user is not None or url.raw_password is not None or "#" in address:
            raise AddressRefusedError("leave out user, password and fragment")
        if _HOST.fullmatch(host) is None or _NUMBER.fullmatch(host):
            raise AddressRefusedError("name a host: addresses in numbers are not allowed")
        place = f"{host}:{url.port}"
        if place in self.own_hosts or any(f".{host}".endswith(f".{name}") for name in _SLACK):
            raise AddressRefusedError("the bot itself and Slack take no webhooks")
        if place not in hosts and not (url.is_default_port() and host in hosts):
            raise AddressRefusedError("the key does not name this host and port")
        return url

    def judge(self, address: str, port: int, *, scheme: str) -> None:
        """Refuse an IP address that is neither public nor in a network of the operator.

        Args:
            address: The IP address, which may have a zone.
            port: The port.
            scheme: Without `https`, only the operator's networks are allowed.

        Raises:
            AddressRefusedError: It is not allowed.
        """
        try:
            known = ipaddress.ip_address(address)
        except ValueError as error:
            raise AddressRefusedError("its host has an address of another kind") from error
        if port in self.own_ports and (known.is_loopback or known.is_unspecified):
            raise AddressRefusedError("the bot itself takes no webhooks")
        if any(known in network for network in self.private):
            return
        if scheme != "https" or not _is_public(known):
            raise AddressRefusedError("its host has an address that is not public")


def rules_of(settings: Settings) -> AddressRules:
    """Return the rules of a bot with these settings."""
    ours = [URL(address) for address in (settings.address_of_api, settings.slack_api_url)]
    ports = (settings.port, settings.api_port, settings.metrics_port)
    return AddressRules(
        private=[ipaddress.ip_network(network) for network in settings.callback_private],
        own_hosts=[f"{url.raw_host}:{url.port}" for url in ours],
        own_ports=[port for port in ports if port],
        proxy=settings.callback_proxy,
    )


def _is_public(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Whether an address is globally reachable. `is_global` lets NAT64 and 6to4 forms pass.

    Source:
        https://www.iana.org/assignments/iana-ipv4-special-registry
        https://www.iana.org/assignments/iana-ipv6-special-registry
    """
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in network for network in _NOT_PUBLIC_4)
    return address in _PUBLIC_6 and not any(address in network for network in _NOT_PUBLIC_6)


@dataclass(slots=True)
class JudgingResolver(AbstractResolver):
    """Looks hosts up; one address that is not allowed refuses the host.

    Args:
        rules: The rules.
        scheme: The scheme of the address.
    """

    rules: AddressRules
    scheme: str

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return the addresses of a host.

        Raises:
            AddressRefusedError: The host does not exist, or has an address that is not allowed.
        """
        try:
            results = await self.rules.resolver.resolve(host, port, family)
        except OSError as error:
            raise AddressRefusedError("its host cannot be looked up") from error
        if not results:
            raise AddressRefusedError("its host has no address")
        for result in results:
            self.rules.judge(result["host"], port, scheme=self.scheme)
        return results

    async def close(self) -> None:
        """Do nothing: the rules keep the resolver."""

    def open_socket(self, address_info: tuple[Any, ...]) -> socket.socket:
        """Return a socket for an address, which is judged again: nothing comes in between.

        The HTTP client looks no numeric host up, so this is the judge for those.
        """
        family, kind, protocol, _, address = address_info
        self.rules.judge(str(address[0]), int(address[1]), scheme=self.scheme)
        return socket.socket(family, kind, protocol)
