"""examples/langgraph_gate.py runs as a program, and acts on what people decide."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.programs.loopback import Loopback
from tests.support.programs.server import KEY, Record, Server

EXAMPLE = Path(__file__).parents[4] / "examples" / "langgraph_gate.py"


@pytest.mark.parametrize(
    ("deed", "said"),
    [
        (lambda server, asked: server.approve(asked), "Refunded 40.00 of order 12."),
        (
            lambda server, asked: server.approve(asked, {"order": 12, "amount": 4.5}),
            "Refunded 4.50 of order 12.",
        ),
        (lambda server, asked: server.reject(asked, "Twice."), "Rejected by Ada: Twice."),
        (
            lambda server, asked: server._cancel(asked),
            "Not run: the request was withdrawn. This is no rejection.",
        ),
    ],
    ids=["approved", "edited", "rejected", "cancelled"],
)
def test_a_graph_asks_before_it_acts(deed: Callable[[Server, Record], object], said: str) -> None:
    with Loopback() as door:
        program = subprocess.Popen(  # noqa: S603 - our own example
            [sys.executable, str(EXAMPLE)],
            env={**os.environ, "COUNTERSIGN_URL": door.url, "COUNTERSIGN_KEY": KEY},
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            asked = door.request()
            door.do(lambda: deed(door.server, asked))
            output, _ = program.communicate(timeout=60)
        finally:
            program.kill()
            program.wait()
    assert (output.strip(), program.returncode) == (said, 0)
    assert (asked.shown["tool"], asked.shown["arguments"]["order"]) == ("refund", 12)
