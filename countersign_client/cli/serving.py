"""The commands `mcp-proxy` and `mcp`, which talk to programs on their standard streams."""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import re
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import httpx

from countersign_client.asynchronous import AsyncCountersign
from countersign_client.cli.parser import duration, pair
from countersign_client.cli.process import Process, UsageError
from countersign_client.connection import LIMITS
from countersign_client.mcp.calls import Options
from countersign_client.mcp.files import Definitions, Spool
from countersign_client.mcp.stdio import serve

PATIENCE = 30.0
"""Seconds that a call waits for a server of Countersign that is away."""
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,59}")
_ABOUT = """\
Stand before an MCP server: each call of a tool waits until people in Slack, or a rule of the
policy, have approved it. The server then runs exactly what was approved, once. All other messages
pass. The policy knows a tool as NAME.TOOL.

A call whose client gives up is not lost: the same call again gets the decision, or the result.

This cannot hold an agent that can start the server itself or has its credentials. Give the
credentials to the proxy alone. COUNTERSIGN_URL is the address of the API; the key of the program is
in COUNTERSIGN_KEY, or in the file that COUNTERSIGN_KEY_FILE names; the server sees neither.
"""
_EXAMPLE = """\
examples:
  countersign-ask mcp-proxy --name github -- npx -y @modelcontextprotocol/server-github
  countersign-ask mcp-proxy --name github --url https://mcp.example.com/mcp \\
    --upstream-header Authorization=GITHUB_AUTHORIZATION
"""

_ABOUT_SERVER = """\
An MCP server on the standard streams, with tools by which an agent asks people in Slack:
request_approval, ask_people, get_request, cancel_request, report_result; and permission_prompt, for
`claude --permission-prompt-tool mcp__countersign__permission_prompt`. An approval is started when
the agent gets it, so that it is used once. COUNTERSIGN_URL is the address of the API; the key of
the program is in COUNTERSIGN_KEY, or in the file that COUNTERSIGN_KEY_FILE names.
"""
_SESSION = "calls of one session share decisions; default: the folder"


def mcp_proxy(argv: Sequence[str], process: Process | None = None) -> int:
    """Stand before a server of tools.

    Args:
        argv: The arguments after `mcp-proxy`.
        process: The process; None: the real one.

    Returns:
        The exit code: the server's if it ended by itself, 0 if the client did, 2 for wrong usage.
    """
    process = process or Process()
    at = argv.index("--") if "--" in argv else len(argv)
    own, command = argv[:at], argv[at + 1 :]
    parser = _parser()
    given = parser.parse_args(own)
    if bool(command) == bool(given.url):
        parser.error("name the server after --, or with --url")
    of_server = Path(command[0]).stem if command else given.url.host
    name = given.name or re.sub(r"[^A-Za-z0-9_.-]", "-", of_server)[:60]
    if not _NAME.fullmatch(name):
        parser.error("--name: at most 60 letters, digits and _ . -, and no sign at the beginning")
    session = given.session or str(Path.cwd())
    options = Options(
        name=name,
        session=f"mcp/{name}/{hashlib.sha256(session.encode(errors='replace')).hexdigest()[:32]}",
        gates=frozenset(given.gate),
        withdraws=given.cancel == "withdraws",
        tells_summary=given.summary,
        run_timeout=given.run_timeout,
        channel=given.channel,
        expires_in=given.expires,
    )
    state = process.environ.get("XDG_STATE_HOME") or str(Path("~/.local/state").expanduser())
    folder = Path(state) / "countersign" / name

    async def run() -> int:
        files = Definitions(folder / "tools.json"), Spool(folder)
        async with AsyncCountersign(patience=PATIENCE) as countersign:
            if command:
                return await serve(
                    command,
                    process.environ,
                    options,
                    files,
                    countersign,
                    restarts=given.restart,
                )
            http = _sdk("http")
            headers = _upstream(given.upstream_header, process)
            ends = http.Ends(str(given.url), headers, *given.listen, given.allow_host)
            process.say(f"clients find it at http://{ends.host}:{ends.port}{http.PATH}")
            await http.serve(ends, options, files, countersign)
        return 0

    return asyncio.run(run())


def _upstream(pairs: Sequence[str], process: Process) -> dict[str, str]:
    """Give the headers for the server, whose values no command line shows."""
    headers = dict(pair(text) for text in pairs)
    absent = sorted(set(headers.values()) - process.environ.keys())
    if absent:
        raise UsageError(f"{absent[0]} is not in the environment")
    return {name: process.environ[variable] for name, variable in headers.items()}


def _sdk(module: str) -> Any:
    try:
        return import_module(f"countersign_client.mcp.{module}")
    except ImportError:
        raise UsageError("this needs the SDK: pip install './countersign_client[mcp]'") from None


def mcp(argv: Sequence[str], process: Process | None = None) -> int:
    """Serve the tools by which an agent asks people, on our standard streams.

    Args:
        argv: The arguments after `mcp`.
        process: The process; None: the real one.

    Returns:
        The exit code: 0 if the client has closed our input, 2 for wrong usage.
    """
    process = process or Process()
    parser = argparse.ArgumentParser(
        prog="countersign-ask mcp",
        description=_ABOUT_SERVER,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--session", metavar="TEXT", help=_SESSION)
    parser.add_argument(
        "--name", default="claude-code", help="before tools of permission_prompt; %(default)s"
    )
    parser.add_argument(
        "--http",
        metavar="HOST:PORT",
        type=_loopback,
        help="serve HTTP at /mcp instead; each caller sends its own key as a bearer token",
    )
    _add_hosts(parser)
    given = parser.parse_args(argv)

    async def run() -> int:
        server = _sdk("server")
        session = given.session or str(Path.cwd())
        if given.http is not None:
            host, port = given.http
            async with httpx.AsyncClient(limits=LIMITS) as http:
                tools = server.build_server(server.by_key_of_caller(http), session, given.name)
                await tools.run_streamable_http_async(
                    host=host,
                    port=port,
                    stateless_http=True,
                    transport_security=_sdk("http").checked_hosts(host, port, given.allow_host),
                )
            return 0
        async with AsyncCountersign(patience=PATIENCE) as countersign:
            tools = server.build_server(lambda _: countersign, session, given.name)
            await tools.run_stdio_async()
        return 0

    return asyncio.run(run())


def _address(text: str) -> tuple[str, int]:
    match = re.fullmatch(r"([\w.-]+|\[[\da-fA-F:.]+\]):(\d{1,5})", text)
    if match is None or int(match[2]) > 65_535:
        raise argparse.ArgumentTypeError("HOST:PORT, such as 127.0.0.1:8092")
    return match[1].strip("[]"), int(match[2])


def _loopback(text: str) -> tuple[str, int]:
    host, port = _address(text)
    if host not in ("127.0.0.1", "localhost"):
        raise argparse.ArgumentTypeError("127.0.0.1:PORT; for others, put a TLS proxy before it")
    return host, port


def _url(text: str) -> httpx.URL:
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if url.scheme not in ("http", "https") or not url.host or url.userinfo:
        raise argparse.ArgumentTypeError(
            "http://HOST/PATH or https://HOST/PATH, without a password"
        )
    return url


def _add_hosts(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--allow-host",
        metavar="HOST[:PORT]",
        action="append",
        default=[],
        help="another value of the header Host, such as that of a TLS proxy",
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="countersign-ask mcp-proxy",
        usage="%(prog)s [options] (-- SERVER [ARG ...] | --url URL)",
        description=_ABOUT,
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--name", help="of the server, as the policy names it; default: its file or host"
    )
    parser.add_argument(
        "--url", type=_url, help="of a server on HTTP, which this one stands before"
    )
    parser.add_argument(
        "--listen",
        metavar="HOST:PORT",
        type=_address,
        default=("127.0.0.1", 8092),
        help="with --url: where clients find it, at /mcp; default: 127.0.0.1:8092",
    )
    _add_hosts(parser)
    parser.add_argument(
        "--upstream-header",
        metavar="HEADER=VARIABLE",
        action="append",
        default=[],
        help="with --url: a header for the server, with the value of a variable of the environment",
    )
    parser.add_argument(
        "--session",
        metavar="TEXT",
        help="calls of one session share decisions; default: the folder",
    )
    parser.add_argument("--channel", metavar="ID", help="where to ask; default: the key's first")
    parser.add_argument(
        "--expires", metavar="TIME", type=duration, help="people must answer in it, such as 2h"
    )
    parser.add_argument(
        "--run-timeout",
        metavar="TIME",
        type=duration,
        default=900.0,
        help="after it, people are asked about a call of that nothing is heard; default: 15m",
    )
    parser.add_argument(
        "--cancel",
        choices=("stays", "withdraws"),
        default="stays",
        help="the request when the client cancels its call; default: %(default)s",
    )
    parser.add_argument(
        "--gate",
        metavar="METHOD",
        action="append",
        default=[],
        help="hold another method too, such as resources/read",
    )
    parser.add_argument(
        "--restart", action="store_true", help="start a server after -- again when it ends"
    )
    parser.add_argument(
        "--summary", action="store_true", help="show the beginning of each result on the card"
    )
    return parser
