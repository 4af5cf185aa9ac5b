"""Where the server is and with which key, and how a step of the engine goes over HTTP."""

from __future__ import annotations

import ipaddress
import os
import re
import socket
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import httpx

from countersign_client.engine import Fault, Reply, Send
from countersign_client.errors import CountersignError

_KEY = re.compile("csk_[0-9A-Za-z_-]+")
_CONNECT = 10.0
LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=20)
"""Each wait holds a connection, so that their number is the program's business."""


@dataclass(frozen=True)
class Target:
    """A server and a key; the key is in no text made from it."""

    url: str
    headers: dict[str, str] = field(repr=False)

    def of(self, send: Send) -> dict[str, Any]:
        """Give the arguments of httpx's `request` for a step.

        Args:
            send: The step.
        """
        content = {"Content-Type": "application/json"} if send.content is not None else {}
        return {
            "method": send.method,
            "url": self.url + send.path,
            "params": send.params or None,
            "headers": {**self.headers, **content, **send.headers},
            "content": send.content,
            "timeout": httpx.Timeout(_CONNECT, read=send.timeout),
            "follow_redirects": False,
            "auth": None,
        }


def target(url: str | None, key: str | None, user_agent: str | None) -> Target:
    """Take address and key from the arguments or from the environment, and check them.

    Args:
        url: The address of the API; None: COUNTERSIGN_URL.
        key: The key; None: COUNTERSIGN_KEY, or what is in the file COUNTERSIGN_KEY_FILE.
        user_agent: What the program calls itself; None: the name of this package.

    Raises:
        CountersignError: One is missing or malformed.
    """
    environ = os.environ  # noqa: TID251 - a program's settings are in its environment
    url = url or environ.get("COUNTERSIGN_URL") or ""
    if not url:
        raise CountersignError("COUNTERSIGN_URL is not set. Set it to the address of the API.")
    if key is None:
        key = environ.get("COUNTERSIGN_KEY") or _from_file(environ.get("COUNTERSIGN_KEY_FILE"))
    key = key.strip()
    if not key:
        raise CountersignError("COUNTERSIGN_KEY is not set. An admin makes a key for the program.")
    if not _KEY.fullmatch(key):
        raise CountersignError("The key is no key of Countersign: these begin with csk_.")
    headers = {
        "Authorization": f"Bearer {key}",
        "Accept": "application/json",
        "User-Agent": user_agent or f"countersign-client/{_version()}",
    }
    return Target(_address(url), headers)


def runner_name() -> str:
    """Name this process, for the card."""
    return f"{socket.gethostname()} pid {os.getpid()}"[:120]


def reply(response: httpx.Response) -> Reply:
    """Give an answer of httpx as the engine takes it.

    Args:
        response: The answer, read.
    """
    headers = {name.lower(): value for name, value in response.headers.items()}
    return Reply(response.status_code, headers, response.content)


def fault(error: httpx.RequestError) -> Fault:
    """Say why there is no answer.

    Args:
        error: The error of httpx.
    """
    return Fault(f"{type(error).__name__}: {error}".rstrip(": "))


def _from_file(path: str | None) -> str:
    if not path:
        return ""
    try:
        return Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CountersignError(f"COUNTERSIGN_KEY_FILE cannot be read: {error}") from None


def _address(url: str) -> str:
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, TypeError):
        raise CountersignError("COUNTERSIGN_URL is no address") from None
    if parsed.userinfo or parsed.query or parsed.fragment:
        raise CountersignError("COUNTERSIGN_URL must have no user, no query and no fragment")
    if parsed.scheme != "https" and not (parsed.scheme == "http" and _is_loopback(parsed.host)):
        raise CountersignError("COUNTERSIGN_URL must begin with https://, except on loopback")
    return str(parsed).rstrip("/")


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _version() -> str:
    try:
        return version("countersign-client")
    except PackageNotFoundError:  # run from a checkout
        return "0"
