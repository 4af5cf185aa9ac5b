"""The commands `ask`, `wait`, `get`, `cancel` and `result`."""

from __future__ import annotations

import argparse
import json
import logging
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from countersign_client.cli import parser as parsing
from countersign_client.cli.ci import default_key, source_of_job
from countersign_client.cli.process import (
    DONE,
    PENDING,
    REFUSED,
    Process,
    Signalled,
    Signals,
    UsageError,
    code_of,
)
from countersign_client.requests import NOT_USABLE, DecisionLapsed, Request, StillPending
from countersign_client.sync import Countersign

PATIENCE = 60.0


def ask(argv: Sequence[str], process: Process | None = None) -> int:
    """Ask, wait, and print the request.

    Args:
        argv: The arguments after `ask`.
        process: The process; None: the real one.

    Returns:
        The exit code.
    """

    def run(options: argparse.Namespace, process: Process, client: Countersign) -> int:
        arguments = parsing.arguments_of(options, process)
        kind = options.kind or (
            "approval" if options.tool else "choice" if options.option else "question"
        )
        schema = parsing.read(options.schema, process) if options.schema else None
        members = {
            **parsing.common(options),
            "kind": kind,
            "title": options.title,
            "tool": options.tool,
            "arguments": {} if arguments is None and options.tool else arguments,
            "preview": parsing.preview(options, process),
            "schema": parsing.parsed(schema, options.schema) if schema else None,
            "options": parsing.options_of(options.option),
            "multiple": options.multiple,
        }
        if kind in ("approval", "edit"):
            members["execution"] = options.execution
        return shown(process, options, decided(process, client, options, members))

    return _carry_out("ask", argv, process, run)


def wait(argv: Sequence[str], process: Process | None = None) -> int:
    """Wait for a request, and print it. As `ask`."""

    def run(options: argparse.Namespace, process: Process, client: Countersign) -> int:
        return shown(process, options, _waited(client, _named(options, client), options.wait))

    return _carry_out("wait", argv, process, run)


def get(argv: Sequence[str], process: Process | None = None) -> int:
    """Print a request. As `ask`."""

    def run(options: argparse.Namespace, process: Process, client: Countersign) -> int:
        named = _named(options, client)
        return shown(process, options, client.get(named) if isinstance(named, str) else named)

    return _carry_out("get", argv, process, run)


def cancel(argv: Sequence[str], process: Process | None = None) -> int:
    """Withdraw a request; 0 if it is cancelled. As `ask`."""

    def run(options: argparse.Namespace, process: Process, client: Countersign) -> int:
        shown(process, options, client.cancel(_named(options, client), options.reason))
        return DONE

    return _carry_out("cancel", argv, process, run)


def result(argv: Sequence[str], process: Process | None = None) -> int:
    """Report what came of a call; 0 if it is on record. As `ask`."""

    def run(options: argparse.Namespace, process: Process, client: Countersign) -> int:
        shown(process, options, client.report(options.id, options.outcome, options.summary))
        return DONE

    return _carry_out("result", argv, process, run)


def decided(
    process: Process, client: Countersign, options: argparse.Namespace, members: Mapping[str, Any]
) -> Request:
    """Ask, say at once how to find the request again, and wait for its end, or for --wait.

    Args:
        process: The process.
        client: The client.
        options: The parsed command line.
        members: The arguments of `Countersign.create`, without the key.

    Returns:
        The request, which may be pending.

    Raises:
        Signalled: A signal came. The request lives on, or is withdrawn if that was wanted.
    """
    call = {name: members.get(name) for name in ("kind", "title", "tool", "arguments", "options")}
    key = options.key or default_key(process.environ, call)
    source = source_of_job(process.environ)
    request = client.create(**{**members, "key": key, "source": source})
    try:
        process.say(f"asked: {request.id} (key {key}), see {request.url}")
        return _waited(client, request, options.wait)
    except Signalled as ended:
        if not options.cancel_on_interrupt or ended.number != signal.SIGINT:
            process.say(f"{request.id} lives on; `wait {request.id}` goes on")
            raise
    try:
        process.say("interrupt again to withdraw the request")
        return _waited(client, request, options.wait)
    except Signalled:
        client.cancel(request, "Interrupted")
        process.say(f"{request.id} is withdrawn")
        raise


def _waited(client: Countersign, request: Request | str, seconds: float | None) -> Request:
    try:
        return client.wait(request, seconds)
    except StillPending as pending:
        return pending.request


def shown(process: Process, options: argparse.Namespace, request: Request) -> int:
    """Print a request as --output says, say in words why it is not granted, give its exit code.

    Args:
        process: The process.
        options: The parsed command line.
        request: The request.
    """
    code = code_of(request)
    if options.output == "json":
        process.print(request.model_dump_json())
    elif options.output == "value" and request.decision and code == DONE:
        decision = request.decision
        value = decision.answer if decision.outcome == "answered" else decision.arguments
        process.print(value if isinstance(value, str) else json.dumps(value))
    if code == PENDING:
        process.say(f"{request.id} is still pending")
    elif code == REFUSED:
        process.say(str(DecisionLapsed(NOT_USABLE, request)))
    elif code != DONE:
        process.say(str(request.not_approved()))
    return code


def _named(options: argparse.Namespace, client: Countersign) -> Request | str:
    if options.id:
        return str(options.id)
    request = client.find(options.key)
    if request is None:
        raise UsageError(f"no request has the key {options.key}")
    return request


def _carry_out(
    name: str,
    argv: Sequence[str],
    process: Process | None,
    run: Callable[[argparse.Namespace, Process, Countersign], int],
) -> int:
    process = process or Process()
    options = parsing.build_parser().parse_args([name, *argv])
    if options.verbose:
        logging.getLogger("httpx").setLevel(logging.INFO)

    with Signals().installed(), process.connect(PATIENCE) as client:
        return run(options, process, client)
