"""Where webhooks may go: to public hosts of the key, and to what the operator named (check 45)."""

from __future__ import annotations

import asyncio
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_network

import pytest

from bot.webhooks.addresses import AddressRefusedError, AddressRules, JudgingResolver
from tests.support.resolving import FakeResolver
from tests.support.webhooks import HOST, PUBLIC


def rules(*addresses: str, private: tuple[str, ...] = ()) -> AddressRules:
    return AddressRules(
        private=[ip_network(network) for network in private],
        own_hosts={"countersign.example.com:443"},
        own_ports={8091},
        resolver=FakeResolver(*addresses),
    )


async def test_i14_look_ups_have_threads_of_their_own() -> None:
    """The event loop looks Slack's hosts up in its own threads, which are few."""
    loop, is_over = asyncio.get_running_loop(), threading.Event()
    loop.set_default_executor(ThreadPoolExecutor(1))
    slow = loop.run_in_executor(None, is_over.wait)
    try:
        local = AddressRules(private=[ip_network("127.0.0.0/8"), ip_network("::1/128")])
        async with asyncio.timeout(10):
            assert await JudgingResolver(local, "http").resolve("localhost", 80)
    finally:
        is_over.set()
        await slow


NOT_PUBLIC = [
    "0.0.0.0",  # noqa: S104 - an address that is refused
    "10.1.2.3",
    "100.64.0.1",
    "127.0.0.1",
    "127.8.8.8",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.8",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.7",
    "203.0.113.9",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "64:ff9b::7f00:1",
    "64:ff9b:1::a00:1",
    "100::1",
    "2001::1",
    "2001:2::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "2002:a00:1::1",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
]


@pytest.mark.parametrize("address", NOT_PUBLIC)
async def test_45_a_host_with_an_address_that_is_not_public_is_refused(address: str) -> None:
    for addresses in ([address], [PUBLIC, address]):
        with pytest.raises(AddressRefusedError, match="not public"):
            await rules(*addresses).check(f"https://{HOST}/hook", hosts=[HOST])


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_45_the_socket_is_refused_too(address: str) -> None:
    guard = JudgingResolver(rules(), "https")
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with pytest.raises(AddressRefusedError):
        guard.open_socket((family, socket.SOCK_STREAM, 0, "", (address, 443)))


@pytest.mark.parametrize(
    "address",
    [
        "https://127.0.0.1/",
        "https://[::1]/",
        "https://[::ffff:127.0.0.1]/",
        "https://2130706433/",
        "https://0x7f000001/",
        "https://0x7f.1/",
        "https://0177.0.0.1/",
        "https://127.1/",
        "https://127.0.0.1./",
        "https://hooks.example.com./",
        "https://hooks.example.com:8443/",
        "https://hooks.example.com:80/",
        "http://hooks.example.com:443/",
        "https://olga@hooks.example.com/",
        "https://olga:secret@hooks.example.com/",
        "https://hooks.example.com@127.0.0.1/",
        "https://hooks.example.com\\@127.0.0.1/",
        "https://hooks.example.com/#",
        "https://hooks.example.com%00.evil.com/",
        "https://evil.example.com/",
        "https://xhooks.example.com/",
        "https://hooks.example.com.evil.com/",
        "https://countersign.example.com/v1/requests",
        "https://slack.com/api/chat.postMessage",
        "https://hooks.slack.com/services/T1",
        "ftp://hooks.example.com/",
        "https:///hook",
        "hooks.example.com/hook",
        "https://hooks.example.com/" + "x" * 2_000,
    ],
)
async def test_45_an_address_that_is_no_host_of_the_key_is_refused(address: str) -> None:
    named = [HOST, "2130706433", "0x7f.1", "127.1", "slack.com", "hooks.slack.com"]
    named += ["127.0.0.1", "countersign.example.com"]
    with pytest.raises(AddressRefusedError):
        await rules(PUBLIC).check(address, hosts=named)


@pytest.mark.parametrize(
    ("address", "hosts"),
    [
        ("https://hooks.example.com/hook?x=1", [HOST]),
        ("https://HOOKS.example.com:443", [HOST]),
        ("https://hooks.example.com:8443/", [f"{HOST}:8443"]),
        ("https://bücher.example/x", ["xn--bcher-kva.example"]),
    ],
)
async def test_a_public_host_of_the_key_is_allowed(address: str, hosts: list[str]) -> None:
    await rules(PUBLIC, "2606:4700::6810:84e5").check(address, hosts=hosts)


async def test_a_host_that_does_not_exist_is_refused() -> None:
    with pytest.raises(AddressRefusedError, match="looked up"):
        await rules().check(f"https://{HOST}/", hosts=[HOST])


async def test_the_operator_may_name_private_networks() -> None:
    ours = rules("10.20.0.7", private=("10.20.0.0/16",))
    for scheme in ("https", "http"):
        await ours.check(f"{scheme}://{HOST}/", hosts=[HOST])
    with pytest.raises(AddressRefusedError):
        await rules("10.21.0.7", private=("10.20.0.0/16",)).check(f"https://{HOST}/", hosts=[HOST])


async def test_without_tls_only_private_networks_are_reached() -> None:
    with pytest.raises(AddressRefusedError):
        await rules(PUBLIC).check(f"http://{HOST}/", hosts=[HOST])


async def test_the_bot_itself_is_not_reached_even_in_a_private_network() -> None:
    ours = rules("127.0.0.1", private=("127.0.0.0/8",))
    await ours.check("http://receiver:8092/", hosts=["receiver:8092"])
    with pytest.raises(AddressRefusedError, match="itself"):
        await ours.check("http://receiver:8091/", hosts=["receiver:8091"])
