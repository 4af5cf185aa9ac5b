"""The command line as a process: signals, streams, and its own death (check 63 of the doors)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.programs.loopback import Loopback
from tests.support.programs.server import KEY, Record

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.fixture
def start(door: Loopback, tmp_path: Path) -> Iterator[Any]:
    """Starts the command line as a process of its own group, as a shell does."""
    started: list[subprocess.Popen[bytes]] = []

    def begin(*argv: str, **more: Any) -> subprocess.Popen[bytes]:
        environ = {**os.environ, "COUNTERSIGN_URL": door.url, "COUNTERSIGN_KEY": KEY}
        process = subprocess.Popen(  # noqa: S603 - our own words
            [sys.executable, "-m", "countersign_client.cli", *argv],
            cwd=tmp_path,
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            **{"stdin": subprocess.DEVNULL, **more},
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def python(code: str) -> list[str]:
    return ["--", sys.executable, "-c", code]


def execution(record: Record) -> tuple[str, str]:
    execution = record.shown["execution"]
    return execution["state"], execution.get("summary") or ""


def has_state(state: str) -> Any:
    return lambda record: record.shown["execution"]["state"] == state


WAITS = "import signal, sys, time; open('runs', 'w').close(); time.sleep(300)"
STAYS = "import signal, time; signal.signal(15, print); open('runs', 'w').close(); time.sleep(300)"


def runs(tmp_path: Path, process: subprocess.Popen[bytes]) -> None:
    """Wait until the command runs."""
    while not (tmp_path / "runs").exists():
        assert process.poll() is None
        os.sched_yield()


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("argv", [["ask", "--title", "Which?"], ["gate", "--", "true"]])
def test_a_signal_while_people_are_waited_for_leaves_the_request(
    door: Loopback, start: Any, number: signal.Signals, argv: list[str]
) -> None:
    process = start(*argv)
    record = door.request()
    printed = process.stderr.readline()
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert (out, record.shown["status"]) == (b"", "pending")
    assert record.shown["id"] in printed.decode()
    assert b"Traceback" not in err


def test_a_second_interrupt_withdraws_the_request_if_that_is_wanted(
    door: Loopback, start: Any
) -> None:
    process = start("ask", "--title", "Which?", "--cancel-on-interrupt")
    record = door.request()
    process.stderr.readline()
    process.send_signal(signal.SIGINT)
    assert b"interrupt again" in process.stderr.readline()
    assert record.shown["status"] == "pending"
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130
    assert record.shown["status"] == "cancelled"


def test_one_interrupt_of_the_two_that_withdraw_keeps_nothing_from_running(
    door: Loopback, start: Any, tmp_path: Path
) -> None:
    process = start("gate", "--cancel-on-interrupt", *python("open('runs', 'w')"))
    record = door.request()
    process.stderr.readline()
    process.send_signal(signal.SIGINT)
    assert b"interrupt again" in process.stderr.readline()
    door.do(lambda: door.server.approve(record))
    assert process.wait(timeout=60) == 0
    assert (tmp_path / "runs").exists()


def test_a_signal_ends_the_tries_to_report_over_an_outage(
    door: Loopback, start: Any, tmp_path: Path
) -> None:
    door.server.policy = "allow"
    code = "import os, sys; open('runs', 'w').close()\nwhile not os.path.exists('go'): pass"
    process = start("gate", "--result-file", "result", *python(f"{code}\nsys.exit(7)"))
    runs(tmp_path, process)
    door.do(lambda: door.server.next_problems.extend([(503, "store-unavailable", None)] * 100))
    (tmp_path / "go").touch()
    door.request(lambda _: any("result" in target for _, target in door.server.seen))
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=20) == 7
    assert json.loads((tmp_path / "result").read_text())["outcome"] == "failed"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_the_command_runs_is_passed_on(
    door: Loopback, start: Any, tmp_path: Path, number: signal.Signals
) -> None:
    door.server.policy = "allow"
    process = start("gate", *python(WAITS))
    runs(tmp_path, process)
    process.send_signal(number)
    assert process.wait(timeout=60) == 128 + number
    state, summary = execution(door.request())
    assert (state, summary.startswith(f"ended by {number.name}")) == ("failed", True)


def test_a_command_that_outlives_term_is_killed_after_the_grace(
    door: Loopback, start: Any, tmp_path: Path
) -> None:
    door.server.policy = "allow"
    process = start("gate", "--grace", "0.2s", *python(STAYS))
    runs(tmp_path, process)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == 137
    assert execution(door.request())[0] == "failed"


def test_an_interrupt_of_the_terminal_ends_the_command_and_is_reported(
    door: Loopback, start: Any, tmp_path: Path
) -> None:
    door.server.policy = "allow"
    process = start("gate", *python(WAITS))
    runs(tmp_path, process)
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=60)
    assert execution(door.request())[0] == "failed"


def test_an_interrupt_of_us_alone_is_left_to_the_command(
    door: Loopback, start: Any, tmp_path: Path
) -> None:
    door.server.policy = "allow"
    code = "import os; open('runs', 'w').close()\nwhile not os.path.exists('go'): pass"
    process = start("gate", *python(code))
    runs(tmp_path, process)
    process.send_signal(signal.SIGINT)
    (tmp_path / "go").touch()
    assert process.wait(timeout=60) == 0
    assert execution(door.request())[0] == "ran"


def test_the_command_ends_with_us_and_its_outcome_is_unknown(
    door: Loopback, start: Any, tmp_path: Path
) -> None:
    door.server.policy = "allow"
    code = "import os, time; open('pid', 'w').write(str(os.getpid())); os.rename('pid', 'runs')"
    code += "; time.sleep(300)"
    process = start("gate", *python(code))
    runs(tmp_path, process)
    child = int((tmp_path / "runs").read_text())
    process.kill()
    process.wait(timeout=60)
    while Path(f"/proc/{child}").exists() and "Z" not in state_of(child):
        os.sched_yield()
    assert execution(door.request())[0] == "started"


def state_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


def test_much_output_passes_whole(door: Loopback, start: Any) -> None:
    door.server.policy = "allow"
    size = 300 * 1024 * 1024
    code = f"import sys\nfor _ in range(300): sys.stdout.buffer.write(b'x' * {size // 300})"
    process = start("gate", *python(code))
    read = 0
    while block := process.stdout.read(1 << 20):
        read += len(block)
    assert (read, process.wait(timeout=60)) == (size, 0)


def test_closed_streams_are_no_fault(door: Loopback, tmp_path: Path) -> None:
    door.server.policy = "allow"
    script = '"$0" -m countersign_client.cli gate -- "$0" -c "open(\'runs\', \'w\')" <&- >&- 2>&-'
    environ = {**os.environ, "COUNTERSIGN_URL": door.url, "COUNTERSIGN_KEY": KEY}
    done = subprocess.run(  # noqa: S603 - our own words
        ["/bin/sh", "-c", script, sys.executable], cwd=tmp_path, env=environ, check=False
    )
    assert done.returncode == 0
    assert (tmp_path / "runs").exists()
    assert execution(door.request())[0] == "ran"


def test_the_key_is_in_no_output(door: Loopback, start: Any, tmp_path: Path) -> None:
    helps = [["--help"], ["ask", "--help"], ["gate", "--help"]]
    for argv in (*helps, ["ask", "-v", "--title", "x", "--wait", "0"]):
        out, err = start(*argv).communicate(timeout=60)
        assert KEY.encode() not in out + err
        assert b"usage" in out or b"HTTP Request" in err
    proxy = "http://127.0.0.1:9"
    environ = {**os.environ, "HTTP_PROXY": proxy, "http_proxy": proxy, "NO_PROXY": ""}
    environ |= {"COUNTERSIGN_URL": door.url, "COUNTERSIGN_KEY": KEY + "\n"}
    done = subprocess.run(  # noqa: S603 - our own words
        [sys.executable, "-c", IMPATIENT],
        env=environ,
        capture_output=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 3
    assert KEY.encode() not in done.stdout + done.stderr


IMPATIENT = """
import sys
from countersign_client import Countersign
from countersign_client.cli import main
from countersign_client.cli.process import Process

process = Process(connect=lambda _: Countersign(patience=0))
sys.exit(main(["ask", "-v", "--title", "x"], process))
"""
