"""The command `gate`: ask, then run exactly what was shown, or nothing."""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from countersign_client import asking
from countersign_client.cli import parser as parsing
from countersign_client.cli.calls import (
    NoCommandError,
    call_of,
    differences,
    environment,
    filled,
    opened,
    pieces_of,
)
from countersign_client.cli.children import Child, keep_standard_streams
from countersign_client.cli.commands import PATIENCE, decided
from countersign_client.cli.process import REFUSED, Process, Signalled, Signals, UsageError
from countersign_client.errors import CountersignError
from countersign_client.requests import Request
from countersign_client.runs import Run
from countersign_client.sync import Countersign

RUN_TIMEOUT = 900
"""Seconds without a sign of life until people are asked; and for which a result is sent again."""
_KEYS = re.compile(r"cs[kt]_\w+")


def gate(argv: Sequence[str], process: Process | None = None) -> int:
    """Ask, wait, compare, run, and report.

    Args:
        argv: The arguments after `gate`.
        process: The process; None: the real one.

    Returns:
        The command's exit code; or why it did not run.
    """
    process = process or Process()
    keep_standard_streams()
    end = list(argv).index("--") if "--" in argv else len(argv)
    options = parsing.build_parser().parse_args(["gate", *argv[:end]])
    options.argv = list(argv[end + 1 :])
    if not options.argv:
        raise UsageError("give the command after --")
    signals = Signals()
    with signals.installed(), ExitStack() as stack:
        gating = _Gating(options, process, signals, stack)
        try:
            return gating.run(stack.enter_context(process.connect(PATIENCE)))
        except NoCommandError as error:
            process.say(str(error))
            return error.code


class _Gating:
    """One command behind the gate."""

    def __init__(
        self, options: argparse.Namespace, process: Process, signals: Signals, stack: ExitStack
    ) -> None:
        self._options = options
        self._process = process
        self._signals = signals
        self._environment = environment(options, process.environ)
        self._stdin = stack.enter_context(opened(options.stdin)) if options.stdin else None

    def run(self, client: Countersign) -> int:
        """Ask and run; give the exit code."""
        pieces = pieces_of(self._options)
        call = {**call_of(self._options, self._environment, self._stdin), **pieces}
        argv = self._options.argv
        members = {
            **parsing.common(self._options),
            "title": self._options.title
            or asking.one_line(f"Run {shlex.join(filled(argv, pieces))}"),
            "tool": self._options.tool,
            "arguments": call,
            "preview": self._preview(shlex.join(argv)),
            "execution": "idempotent" if self._options.idempotent else "once",
            "run_timeout": RUN_TIMEOUT,
        }
        if pieces:
            parts: dict[str, Any] = {name: {"readOnly": True} for name in call}
            parts |= {name: {"type": "string"} for name in pieces}
            schema = {"type": "object", "properties": parts, "required": list(pieces)}
            members |= {"kind": "edit", "schema": schema}
        done = decided(self._process, client, self._options, members)
        pieces = _decided_pieces(done, pieces)
        call = {**call, **pieces}
        done.check(self._options.tool, call)  # people changed nothing but the pieces
        self._signals.keep()  # from here on, a signal must not leave a start without its end
        run = client.start(done, tool=self._options.tool, arguments=call)
        if number := self._signals.first:
            self._report(run, "not_run", "ended by a signal before it ran")
            return 128 + number
        return self._start(run, call, pieces)

    def _start(self, run: Run, call: dict[str, Any], pieces: dict[str, str]) -> int:
        """Compare what would run now with what was shown, and run it."""
        try:
            present = call_of(self._options, self._environment, self._stdin)
            changed = differences(call, {**present, **pieces})
        except (NoCommandError, UsageError, OSError) as error:
            changed = [str(error)]
        if changed:
            text = f"changed since it was shown: {', '.join(changed)}"
            self._process.say(f"not run: {text}")
            self._report(run, "not_run", text)
            return REFUSED
        child = Child(
            filled(self._options.argv, pieces),
            executable=call["executable"],
            environment=self._environment,
            stdin=self._stdin,
            keeps_stderr=self._options.tail,
        )
        try:
            child.start()
        except NoCommandError as error:
            self._report(run, "not_run", str(error))
            raise
        self._signals.on_signal = child.pass_on
        code, text = child.wait(self._options.grace, run.progress)
        self._signals.keep()
        outcome = "ran" if code == 0 else "failed"
        self._report(run, outcome, _KEYS.sub("•••", text))
        return code

    def _preview(self, line: str) -> dict[str, str] | None:
        command = self._options.preview_cmd
        if command is None:
            given = parsing.preview(self._options, self._process)
            return given or {"format": "text", "text": asking.cut(line)}
        if self._options.preview or self._options.diff:
            raise UsageError("give --preview-cmd, --preview or --diff, one of them")
        try:
            done = subprocess.run(  # noqa: S603 - the command is the caller's own
                shlex.split(command),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                env=self._environment,
                check=False,
            )
        except (OSError, ValueError) as error:
            raise UsageError(f"--preview-cmd: {error}") from None
        if done.returncode:
            raise UsageError(f"--preview-cmd ended with exit code {done.returncode}")
        text = done.stdout.decode(errors="replace")
        return {"format": "text", "text": asking.cut(text)}

    def _report(self, run: Run, outcome: Any, summary: str) -> None:
        """Report the end over an outage, until a signal comes; at last leave it in a file."""
        request: Request = run.request
        try:
            with self._signals.ending(), self._process.connect(float(RUN_TIMEOUT)) as client:
                client.report(request, outcome, summary, token=run.token)
        except (CountersignError, OSError, ValueError, Signalled) as error:
            self._process.say(f"the outcome {outcome} could not be reported: {error}")
            if self._options.result_file:
                self._leave({"id": request.id, "outcome": outcome, "summary": summary})

    def _leave(self, result: Mapping[str, str]) -> None:
        try:
            Path(self._options.result_file).write_text(json.dumps(result), "utf-8")
        except OSError as error:
            self._process.say(f"--result-file: {error}")


def _decided_pieces(done: Request, pieces: Mapping[str, str]) -> dict[str, str]:
    """Give the texts that people decided on, for those that they might change."""
    if not pieces:
        return {}
    arguments = done.approved().arguments or {}
    return {name: str(arguments.get(name, text)) for name, text in pieces.items()}
