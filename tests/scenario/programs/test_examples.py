"""The examples for the command line do what their comments say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from countersign_client.hooks.trying import RECORDED
from tests.support.programs.loopback import Loopback
from tests.support.programs.server import KEY, Record, Server

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples"


@pytest.fixture
def environ(door: Loopback, tmp_path: Path) -> dict[str, str]:
    """The environment of a shell in which the client is installed."""
    command = tmp_path / "bin" / "countersign-ask"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m countersign_client.cli "$@"\n')
    command.chmod(0o755)
    return {
        **os.environ,
        "PATH": f"{command.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "COUNTERSIGN_URL": door.url,
        "COUNTERSIGN_KEY": KEY,
    }


def with_title(words: str) -> Callable[[Record], bool]:
    return lambda record: words in record.shown["title"]


def played(
    argv: list[str],
    door: Loopback,
    environ: dict[str, str],
    deeds: dict[str, Callable[[Server, Record], object]],
    stdin: str = "",
) -> subprocess.CompletedProcess[str]:
    """Run a program, while people do a deed at each request that has these words in its title."""
    with subprocess.Popen(  # noqa: S603 - our own examples
        argv,
        env=environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as program:
        try:
            assert program.stdin is not None
            program.stdin.write(stdin)
            program.stdin.close()
            program.stdin = None
            for title, deed in deeds.items():
                record = door.request(with_title(title))
                door.do(partial(deed, door.server, record))
            out, err = program.communicate(timeout=60)
        finally:
            program.kill()
    return subprocess.CompletedProcess(argv, program.returncode, out, err)


SCRIPT = ["sh", str(EXAMPLES / "release.sh"), "payments", "1.4.2"]


def test_the_script_asks_where_and_then_runs_what_people_approved(
    door: Loopback, environ: dict[str, str]
) -> None:
    ended = played(
        SCRIPT,
        door,
        environ,
        {
            "Where does payments 1.4.2": lambda server, asked: server.reply(asked, "us"),
            "Release payments 1.4.2 in us": lambda server, asked: server.approve(asked),
        },
    )
    assert (ended.returncode, ended.stdout) == (0, "payments 1.4.2 is live in us\n"), ended.stderr


def test_a_retried_job_says_in_one_sentence_that_it_was_started_before(
    door: Loopback, environ: dict[str, str]
) -> None:
    job = [sys.executable, str(EXAMPLES / "ci_deploy.py")]
    title = "Deploy payments to production"
    first = played(job, door, environ, {title: lambda server, asked: server.approve(asked)})
    assert (first.returncode, first.stdout) == (0, "Deployed payments 4711 to production\n")
    again = played(job, door, environ, {})
    assert (again.returncode, again.stdout) == (1, "")
    (sentence,) = again.stderr.splitlines()
    assert "was started before" in sentence
    assert "ask with another key" in sentence


def test_the_script_ends_at_a_rejection(door: Loopback, environ: dict[str, str]) -> None:
    ended = played(
        SCRIPT, door, environ, {"Where does": lambda server, asked: server.reject(asked, "Later.")}
    )
    assert (ended.returncode, ended.stdout) == (10, "")
    assert "Later." in ended.stderr
    assert len(door.server.records) == 1


@pytest.mark.parametrize("is_approved", [True, False], ids=["approved", "rejected"])
def test_the_settings_let_people_decide_about_claude_codes_calls(
    door: Loopback, environ: dict[str, str], *, is_approved: bool
) -> None:
    settings = json.loads((EXAMPLES / "claude-code/.claude/settings.json").read_text())
    ((group,),) = settings["hooks"].values()
    (hook,) = group["hooks"]
    assert hook["onFailure"] == "block", "a hook that fails lets the call through"

    def decide(server: Server, asked: Record) -> None:
        assert asked.shown["tool"] == "claude.Bash"
        if is_approved:
            server.approve(asked)
        else:
            server.reject(asked, "Not on Fridays.")

    call = json.dumps(RECORDED["claude-code"][0])
    ended = played(["sh", "-c", hook["command"]], door, environ, {"": decide}, stdin=call)
    printed = json.loads(ended.stdout)["hookSpecificOutput"]
    assert printed["permissionDecision"] == ("allow" if is_approved else "deny")
    assert is_approved or "Not on Fridays." in printed["permissionDecisionReason"]
