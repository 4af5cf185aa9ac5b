"""`gate -- CMD` runs exactly what was shown, or nothing (checks 56 and 63 of the doors)."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.scenario.programs.test_command_line import Shell
from tests.support.programs.world import VirtualWorld


@pytest.fixture
def shell(sync_world: VirtualWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """A shell in a folder of its own, with a tool `act` that writes what it got."""
    monkeypatch.chdir(tmp_path)
    tool = tmp_path / "bin" / "act"
    tool.parent.mkdir()
    script(
        "act", "import json,os,sys; json.dump([sys.argv[1:], dict(os.environ)], open('ran', 'w'))"
    )
    shell = Shell(sync_world)
    shell.environ = {
        "PATH": str(tool.parent),
        "HOME": str(tmp_path),
        "COUNTERSIGN_KEY": "hidden",
        "COUNTERSIGN_URL": "hidden",
        "SECRET": "kept",
        "REGION": "eu",
    }
    return shell


def script(name: str, code: str) -> Path:
    """A tool in Python."""
    path = Path("bin") / name
    path.write_text(f"#!{sys.executable}\n{code}\n")
    path.chmod(0o755)
    return path.resolve()


def approve(shell: Shell, before: Callable[[], object] = lambda: None, **edited: Any) -> None:
    """Let people approve after a minute, with these changes, and something happen just before."""
    world = shell.world

    def deed() -> None:
        before()
        changed = {**world.request.shown["arguments"], **edited} if edited else None
        world.server.approve(world.request, changed)

    world.after(60, deed)


def ran() -> Any:
    return json.loads(Path("ran").read_text()) if Path("ran").exists() else None


def execution(shell: Shell) -> tuple[str, str]:
    execution = shell.world.request.shown["execution"]
    return execution["state"], execution.get("summary", "")


def test_the_command_runs_as_it_was_shown(shell: Shell) -> None:
    approve(shell)
    assert shell("gate", "--title", "Act", "--", "act", "a b", "*", "$HOME", "--", "-x") == 0
    argv, environ = ran()
    assert argv == ["a b", "*", "$HOME", "--", "-x"]
    assert not [name for name in environ if name.startswith("COUNTERSIGN_")]
    assert environ["SECRET"] == "kept"
    tool = Path("bin/act").resolve()
    assert shell.world.request.shown["tool"] == "shell"
    assert shell.world.request.shown["arguments"] == {
        "argv": ["act", "a b", "*", "$HOME", "--", "-x"],
        "cwd": str(Path.cwd()),
        "executable": str(tool),
        "sha256": hashlib.sha256(tool.read_bytes()).hexdigest(),
    }
    assert execution(shell) == ("ran", "exit code 0 after 0 s")
    assert shell.out == ""


@pytest.mark.parametrize("end", ["reject", "cancel", "freeze", "expire"])
def test_without_a_yes_nothing_runs(shell: Shell, end: str) -> None:
    shell.world.end(end)
    assert shell("gate", "--", "act") in (10, 11, 12, 30)
    assert shell("gate", "--key", "k", "--wait", "0", "--", "act") == 20
    assert ran() is None


def replaced_by_a_link() -> None:
    Path("bin/act").rename("bin/real")
    Path("bin/act").symlink_to("real")


def earlier_in_the_path() -> None:
    tool = Path("first/act")
    tool.write_text(Path("bin/act").read_text())
    tool.chmod(0o755)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda: Path("plan.bin").write_text("another"), "plan.bin"),
        (lambda: Path("plan.bin").unlink(), "plan.bin"),
        (lambda: Path("input").write_text("another"), "stdin"),
        (lambda: script("act", "print('another')"), "sha256"),
        (replaced_by_a_link, "executable"),
        (earlier_in_the_path, "executable"),
        (lambda: Path("bin/act").unlink(), "not found"),
        (lambda: Path("bin/act").chmod(0o644), "not executable"),
    ],
)
def test_what_has_changed_since_it_was_shown_does_not_run(
    shell: Shell, change: Callable[[], object], named: str
) -> None:
    Path("first").mkdir()
    shell.environ["PATH"] = f"{Path('first').resolve()}:{shell.environ['PATH']}"
    Path("plan.bin").write_text("plan")
    Path("input").write_text("input")
    approve(shell, before=change)
    assert shell("gate", "--bind", "plan.bin", "--stdin", "input", "--", "act") == 30
    assert ran() is None
    outcome, summary = execution(shell)
    assert (outcome, named in summary, named in shell.err) == ("not_run", True, True)


def test_another_folder_since_it_was_shown_does_not_run(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    approve(shell, before=lambda: monkeypatch.chdir("bin"))
    assert shell("gate", "--", "act") == 30
    assert "cwd" in execution(shell)[1]


EDITS = ["--edit", "replicas=3", "--edit", "zone=a", "--", "act", "--n={replicas}", "{zone}{zone}"]


@pytest.mark.parametrize(
    ("edited", "argv"),
    [
        ({}, ["--n=3", "aa"]),
        ({"replicas": "5"}, ["--n=5", "aa"]),
        (
            {"replicas": "1; rm -rf $HOME", "zone": "{replicas}"},
            ["--n=1; rm -rf $HOME", "{replicas}{replicas}"],
        ),
    ],
)
def test_people_edit_the_texts_that_the_caller_names_and_these_run(
    shell: Shell, edited: dict[str, str], argv: list[str]
) -> None:
    """Each argument stays one argument: there is no shell, and nothing is filled twice."""
    world = shell.world

    def deed() -> None:
        shown = world.request.shown
        assert shown["kind"] == "edit"
        assert shown["arguments"]["argv"] == ["act", "--n={replicas}", "{zone}{zone}"]
        assert (shown["arguments"]["replicas"], shown["arguments"]["zone"]) == ("3", "a")
        world.server.approve(world.request, {**shown["arguments"], **edited})

    world.after(60, deed)
    assert shell("gate", *EDITS) == 0
    assert world.request.shown["title"] == "Run act --n=3 aa"
    assert ran()[0] == argv
    assert execution(shell)[0] == "ran"


@pytest.mark.parametrize(
    "edited",
    [{"argv": ["act", "--all"]}, {"cwd": "/"}, {"executable": "/bin/rm"}, {"more": "x"}],
    ids=str,
)
def test_an_edit_of_anything_else_runs_nothing(shell: Shell, edited: dict[str, Any]) -> None:
    approve(shell, **edited)
    assert shell("gate", *EDITS) == 30
    assert ran() is None


def test_a_text_that_no_argument_can_hold_is_not_run(shell: Shell) -> None:
    approve(shell, zone="a\0")
    assert shell("gate", *EDITS) == 126
    assert (ran(), execution(shell)[0]) == (None, "not_run")


def test_what_changed_beside_an_edit_does_not_run(shell: Shell) -> None:
    approve(shell, lambda: script("act", "print('another')"), zone="b")
    assert shell("gate", *EDITS) == 30
    assert "sha256" in execution(shell)[1]


def test_bound_files_and_stdin_are_shown_by_their_hash(shell: Shell) -> None:
    script("act", "import sys; open('ran', 'w').write('\"' + sys.stdin.read() + '\"')")
    Path("plan.bin").write_text("plan")
    Path("input").write_text("input")
    approve(shell)
    assert shell("gate", "--bind", "plan.bin", "--stdin", "input", "--", "act") == 0
    shown = shell.world.request.shown["arguments"]
    assert shown["files"] == {"plan.bin": hashlib.sha256(b"plan").hexdigest()}
    assert shown["stdin"] == hashlib.sha256(b"input").hexdigest()
    assert ran() == "input"


def test_a_clean_environment_has_what_was_named(shell: Shell) -> None:
    approve(shell)
    assert shell("gate", "--clean-env", "--env", "REGION", "--", "act") == 0
    environ = ran()[1]
    assert (environ["REGION"], "SECRET" in environ) == ("eu", False)
    assert shell.world.request.shown["arguments"]["env"] == {"REGION": "eu"}


@pytest.mark.parametrize("name", ["MISSING", "COUNTERSIGN_KEY"])
def test_a_variable_that_cannot_be_shown_is_wrong_usage(shell: Shell, name: str) -> None:
    assert shell("gate", "--env", name, "--", "act") == 2
    assert shell.world.server.records == {}


def test_the_output_of_a_command_is_the_preview(shell: Shell) -> None:
    script(
        "show", "import os; print('3 to add', *sorted(n for n in os.environ if n[:4] == 'COUN'))"
    )
    approve(shell)
    previews: list[Any] = []
    create = shell.world.server._create

    def spying(body: dict[str, Any], headers: Any) -> Any:
        previews.append(body.get("preview"))
        return create(body, headers)

    shell.world.server._create = spying  # type: ignore[method-assign]
    assert shell("gate", "--preview-cmd", "bin/show plan.bin", "--", "act") == 0
    assert previews == [{"text": "3 to add\n", "format": "text"}]


def test_a_long_preview_is_cut_and_a_failing_one_asks_nobody(shell: Shell) -> None:
    script("show", "print('x' * 100_000)")
    approve(shell)
    assert shell("gate", "--preview-cmd", "bin/show", "--", "act") == 0
    script("show", "raise SystemExit(3)")
    asked = len(shell.world.server.records)
    assert shell("gate", "--preview-cmd", "bin/show", "--", "act") == 2
    assert "exit code 3" in shell.err
    assert len(shell.world.server.records) == asked


@pytest.mark.parametrize(("code", "outcome"), [(0, "ran"), (7, "failed"), (255, "failed")])
def test_the_exit_code_of_the_command_is_ours(shell: Shell, code: int, outcome: str) -> None:
    script("act", f"import sys; print('out'); sys.exit({code})")
    approve(shell)
    assert shell("gate", "--", "act") == code
    assert execution(shell)[0] == outcome
    assert f"exit code {code}" in execution(shell)[1]


def test_a_command_that_a_signal_ends_is_128_and_its_number(shell: Shell) -> None:
    script("act", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    approve(shell)
    assert shell("gate", "--", "act") == 137
    assert execution(shell)[1].startswith("ended by SIGKILL")


def test_the_last_lines_of_stderr_are_reported_if_wanted(
    shell: Shell, capfd: pytest.CaptureFixture[str]
) -> None:
    script(
        "act",
        "import sys\nfor n in range(30): print('line', n, file=sys.stderr)\nsys.exit('csk_abc')",
    )
    approve(shell)
    assert shell("gate", "--tail", "--", "act") == 1
    summary = execution(shell)[1]
    assert summary.splitlines()[1] == "line 11"
    assert summary.endswith("•••")
    assert "line 0\n" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("name", "code"), [("missing", 127), ("bin/missing", 127), ("./bin", 126), ("./plan.bin", 126)]
)
def test_a_command_that_is_not_there_asks_nobody(shell: Shell, name: str, code: int) -> None:
    Path("plan.bin").write_text("no command")
    assert shell("gate", "--", name) == code
    assert shell.world.server.records == {}


def test_a_file_that_is_no_program_is_126_and_not_run(shell: Shell) -> None:
    Path("bin/act").write_bytes(b"\x00\x01\x02")
    approve(shell)
    assert shell("gate", "--", "act") == 126
    assert execution(shell)[0] == "not_run"


def test_a_program_whose_interpreter_is_gone_is_127_and_not_run(shell: Shell) -> None:
    Path("bin/act").write_text("#!/no/such/interpreter\n")
    approve(shell)
    assert shell("gate", "--", "act") == 127
    assert execution(shell)[0] == "not_run"


def test_a_retry_never_runs_twice_unless_it_is_harmless(shell: Shell) -> None:
    approve(shell)
    assert shell("gate", "--key", "k", "--", "act") == 0
    Path("ran").unlink()
    assert shell("gate", "--key", "k", "--", "act") == 30
    assert ran() is None


def test_an_idempotent_command_may_run_again(shell: Shell) -> None:
    approve(shell)
    client = shell.world.client()
    assert shell("gate", "--wait", "0", "--idempotent", "--key", "k", "--", "act") == 20
    shell.world.pass_time(61)
    done = client.get(shell.world.request.shown["id"])
    client.start(done, tool="shell", arguments=done.arguments)  # a process that died
    assert shell("gate", "--idempotent", "--key", "k", "--", "act") == 0
    assert ran() is not None


def fails_in_an_outage(shell: Shell) -> None:
    """Let the server go away as the command starts, which fails."""
    approve(shell)
    start = shell.world.server._start

    def start_and_go(*args: Any) -> Any:
        shell.world.outage(0, 10_000)
        return start(*args)

    shell.world.server._start = start_and_go  # type: ignore[method-assign, assignment]
    script("act", "raise SystemExit(4)")


def test_a_result_that_cannot_be_sent_is_left_in_a_file(shell: Shell) -> None:
    fails_in_an_outage(shell)
    assert shell("gate", "--result-file", "left.json", "--", "act") == 4
    left = json.loads(Path("left.json").read_text())
    assert (left["id"], left["outcome"]) == (shell.world.request.shown["id"], "failed")
    assert shell.world.time > 800


def test_the_exit_code_stays_that_of_the_command_if_its_result_cannot_be_kept(
    shell: Shell,
) -> None:
    fails_in_an_outage(shell)
    assert shell("gate", "--result-file", "no/such/folder", "--", "act") == 4
    assert "--result-file" in shell.err


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["--"],
        ["act"],
        ["--bind", "missing", "--", "act"],
        ["--stdin", "missing", "--", "act"],
        ["--bind", "bin", "--", "act"],
        ["--preview-cmd", "missing", "--", "act"],
        ["--preview-cmd", "'", "--", "act"],
        ["--preview-cmd", "act", "--preview", "f", "--", "act"],
        ["--", "act", "\udc80"],
        ["--edit", "n", "--", "act", "{n}"],
        ["--edit", "n=1", "--", "act", "n"],
        ["--edit", "n=1", "--edit", "n=2", "--", "act", "{n}"],
        ["--edit", "argv=1", "--", "act", "{argv}"],
        ["--edit", "N-1=1", "--", "act", "{N-1}"],
        ["--edit", "tool=act", "--", "{tool}"],
    ],
)
def test_wrong_usage_asks_nobody(shell: Shell, argv: list[str]) -> None:
    try:
        code = shell("gate", *argv)
    except SystemExit as ended:
        code = int(str(ended.code))
    assert code == 2
    assert shell.world.server.records == {}
