"""The command line for shells and CI jobs (check 62 of the doors)."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from countersign_client.cli import main
from countersign_client.cli.process import Process
from tests.support.programs.server import KEY
from tests.support.programs.world import VirtualWorld

CALL = ["--title", "Deploy payments", "--tool", "deploy", "--arg", "env=production"]


class Shell:
    """A shell in which the command line is called."""

    def __init__(self, world: VirtualWorld) -> None:
        self.world = world
        self.environ: dict[str, str] = {}
        self.stdin = b""
        self.out = self.err = ""

    def __call__(self, *argv: str, **given: Any) -> int:
        """Call the command line; give its exit code."""
        out, err = io.StringIO(), io.StringIO()
        usual = {
            "environ": self.environ,
            "stdin": io.BytesIO(self.stdin),
            "stdout": out,
            "stderr": err,
            "connect": lambda patience: self.world.client(patience=patience),
        }
        code = main(argv, Process(**{**usual, **given}))
        self.out, self.err = out.getvalue(), err.getvalue()
        assert KEY not in self.out + self.err
        return code

    @property
    def printed(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def shell(sync_world: VirtualWorld) -> Shell:
    return Shell(sync_world)


@pytest.mark.parametrize(
    ("end", "code", "words"),
    [
        ("approve", 0, ""),
        ("edit", 0, ""),
        ("reject", 10, "was rejected: Not today."),
        ("expire", 11, "nobody answered in time"),
        ("cancel", 12, "was cancelled"),
        ("fail", 13, "people could not be asked"),
        ("pending", 20, "is still pending"),
        ("lapse", 30, "was approved, but may not run now"),
        ("freeze", 30, "was approved, but may not run now"),
    ],
)
def test_an_exit_code_and_words_for_each_end(shell: Shell, end: str, code: int, words: str) -> None:
    world = shell.world
    server = world.server

    world.end(end, "Not today.")
    if end == "edit":
        world.after(60, lambda: server.approve(world.request, {"env": "staging"}))
    more = ["--wait", "2h"] if end == "pending" else []
    more += ["--kind", "edit"] if end == "edit" else []
    if end == "lapse":
        server.policy = "allow"
        shell("--output", "none", "--key", "k", *CALL)
        world.pass_time(901)
        more = ["--key", "k"]
    assert shell("ask", *CALL, *more) == code
    assert shell.printed["id"] == world.request.shown["id"]
    assert world.request.shown["id"] in shell.err
    assert words in shell.err


class Interrupted(io.BytesIO):
    """Input of a terminal at which somebody presses Ctrl-C."""

    def read(self, *_: Any) -> bytes:
        raise KeyboardInterrupt


def test_an_interrupt_while_input_is_awaited_is_an_exit_code() -> None:
    process = Process(stdin=Interrupted(), stderr=io.StringIO(), stdout=io.StringIO())
    assert main(["hook", "test", "claude-code", "--stdin", "-"], process) == 130


@pytest.mark.parametrize(
    "argv",
    [
        ["mcp-proxy", "--", "cat"],
        ["hook", "install", "claude-code", "--project"],
        ["gate", "--", "cat"],
    ],
    ids=lambda argv: argv[0],
)
def test_a_folder_that_is_gone_is_told_in_words(
    shell: Shell, argv: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert shell(*argv) == 2
    assert "No such file or directory" in shell.err


def test_input_that_is_nested_too_deep_is_told_in_words(shell: Shell) -> None:
    shell.stdin = b"[" * 100_000
    assert shell("hook", "test", "claude-code", "--stdin", "-") == 2
    assert "nothing that Claude Code writes" in shell.err


@pytest.mark.parametrize(
    ("proxy", "words"), [("foo:bar:baz", "Invalid port"), ("socks5://127.0.0.1:9", "SOCKS proxy")]
)
def test_a_proxy_that_cannot_be_used_is_told_in_words(
    proxy: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    monkeypatch.setenv("COUNTERSIGN_URL", "https://countersign.test")
    monkeypatch.setenv("COUNTERSIGN_KEY", KEY)
    err = io.StringIO()
    assert main(["get", "--key", "k"], Process(stderr=err, stdout=io.StringIO())) == 2
    assert words in err.getvalue()


def test_a_request_without_the_name_of_a_command_is_asked(shell: Shell) -> None:
    shell.world.server.policy = "deny"
    assert shell(*CALL) == 10
    assert shell.world.request.shown["execution"]["mode"] == "none"


@pytest.mark.parametrize(
    ("argv", "answer", "printed"),
    [
        (["--title", "Which?"], "The big one", "The big one\n"),
        (["--title", "Which?", "--option", "eu=Europe", "--option", "us"], "eu", "eu\n"),
        (
            ["--title", "Which?", "--option", "eu", "--option", "us", "--multiple"],
            ["eu", "us"],
            '["eu", "us"]\n',
        ),
    ],
)
def test_an_answer_alone_is_printed(
    shell: Shell, argv: list[str], answer: Any, printed: str
) -> None:
    shell.world.after(5, lambda: shell.world.server.reply(shell.world.request, answer))
    assert shell("ask", *argv, "--output", "value") == 0
    assert shell.out == printed


def test_decided_arguments_alone_are_printed(shell: Shell) -> None:
    shell.world.server.policy = "allow"
    assert shell(*CALL, "--arg-json", "replicas=3", "--output", "value") == 0
    assert shell.printed == {"env": "production", "replicas": 3}


def test_nothing_is_printed_if_nothing_is_wanted(shell: Shell) -> None:
    shell.world.server.policy = "allow"
    assert shell(*CALL, "--output", "none") == 0
    assert shell.out == ""


def test_each_option_becomes_its_member(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "schema.json").write_text('{"type": "object"}')
    (tmp_path / "change.diff").write_text("-a\n+b\n")
    shell.stdin = b'{"replicas": 3}'
    argv = [*CALL, "--kind", "edit", "--args", "-", "--schema", str(tmp_path / "schema.json")]
    argv += ["--diff", str(tmp_path / "change.diff"), "--why", "It is time.", "--group", "build-7"]
    argv += ["--channel", "C0OPS", "--expires", "30m", "--metadata", "build=7", "--wait", "0"]
    assert shell("ask", *argv) == 20
    record = shell.world.request
    assert record.group == "build-7"
    assert shell.printed["arguments"] == {"env": "production", "replicas": 3}
    assert shell.printed["metadata"] == {"build": "7"}
    assert shell.printed["expires_at"].startswith("2026-11-23T10:30")


def test_wait_get_and_cancel_find_a_request_by_its_id_or_key(shell: Shell) -> None:
    assert shell("ask", *CALL, "--wait", "0", "--key", "build-7") == 20
    identity = shell.printed["id"]
    assert shell("get", "--key", "build-7") == 20
    shell.world.after(60, lambda: shell.world.server.touch(shell.world.request))
    assert shell("wait", identity, "--wait", "2m") == 20
    assert shell("cancel", identity, "--reason", "A newer build.") == 0
    assert shell.printed["status"] == "cancelled"
    assert shell("wait", "--key", "build-7") == 12
    assert shell("get", "--key", "build-8") == 2
    assert (shell.out, "build-8" in shell.err) == ("", True)


def test_a_result_is_reported_only_of_what_was_started(shell: Shell) -> None:
    shell.world.server.policy = "allow"
    assert shell("ask", *CALL, "--execution", "once") == 0
    identity = shell.printed["id"]
    assert shell("result", identity, "ran") == 2
    assert "not-started" in shell.err
    done = shell.world.client().get(identity)
    shell.world.client().start(done, tool="deploy", arguments={"env": "production"})
    assert shell("result", identity, "ran", "--summary", "3 pods") == 0
    assert shell.printed["execution"]["summary"] == "3 pods"


@pytest.mark.parametrize(
    "argv",
    [
        ["--title", "x", "--arg", "env"],
        ["--title", "x", "--tool", "t", "--arg", "a=1", "--arg-json", "a=1"],
        ["--title", "x", "--tool", "t", "--arg-json", "a={"],
        ["--title", "x", "--tool", "t", "--arg-json", 'a={"b": 1, "b": 2}'],
        ["--title", "x", "--tool", "t", "--arg-json", "a=NaN"],
        ["--title", "x", "--tool", "t", "--arg-json", "a=9007199254740993"],
        ["--title", "x", "--tool", "t", "--args", "/no/such/file"],
        ["--title", "x", "--preview", "/a", "--diff", "/b"],
        ["--title", "x", "--tool", "not a tool"],
        ["--title", "x", "--channel", "C0OTHER"],
        ["--title", "x", "--key", "with blank"],
    ],
)
def test_wrong_usage_and_an_invalid_request_are_2(shell: Shell, argv: list[str]) -> None:
    code = shell("ask", *argv)
    is_refused_by_the_server = "C0OTHER" in argv
    assert (code, shell.out) == (3 if is_refused_by_the_server else 2, "")
    assert shell.world.server.records == {}


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["ask"],
        ["ask", "--title", "x", "--wait", "soon"],
        ["ask", "--title", "x", "--kee", "k"],
        ["ask", "--title", "x", "--key"],
        ["wait"],
        ["wait", "apr_1", "--key", "k"],
        ["result", "apr_1", "done"],
        ["unknown"],
    ],
)
def test_a_command_line_that_cannot_be_parsed_is_2(shell: Shell, argv: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        shell(*argv)
    assert ended.value.code == 2


def test_an_unreachable_server_and_a_refused_key_are_3(shell: Shell) -> None:
    shell.world.outage(0, 10_000)
    assert (shell("ask", *CALL), shell.out) == (3, "")
    shell.world.pass_time(20_000)
    shell.world.server.key = "another"
    assert (shell("ask", *CALL), shell.out) == (3, "")


@pytest.mark.parametrize("variable", ["COUNTERSIGN_URL", "COUNTERSIGN_KEY"])
def test_a_missing_setting_is_2_and_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], variable: str
) -> None:
    monkeypatch.setenv("COUNTERSIGN_URL", "https://countersign.test")
    monkeypatch.setenv("COUNTERSIGN_KEY", KEY)
    monkeypatch.delenv(variable)
    assert main(["ask", *CALL]) == 2
    assert variable in capsys.readouterr().err


GITHUB = {
    "GITHUB_RUN_ID": "99",
    "GITHUB_REPOSITORY": "acme/shop",
    "GITHUB_RUN_ATTEMPT": "1",
    "GITHUB_JOB": "deploy",
}
GITLAB = {
    "GITLAB_CI": "true",
    "CI_PROJECT_PATH": "acme/shop",
    "CI_PIPELINE_ID": "9",
    "CI_JOB_ID": "1",
}
BUILDKITE = {"BUILDKITE": "true", "BUILDKITE_BUILD_ID": "9", "BUILDKITE_RETRY_COUNT": "1"}
CIRCLE = {"CIRCLECI": "true", "CIRCLE_WORKFLOW_ID": "9", "CIRCLE_BUILD_NUM": "1"}
JENKINS = {"JENKINS_URL": "https://ci.test", "JOB_NAME": "shop", "BUILD_ID": "1"}


@pytest.mark.parametrize(
    ("environ", "attempt"),
    [
        (GITHUB, "GITHUB_RUN_ATTEMPT"),
        (GITLAB, "CI_JOB_ID"),
        (BUILDKITE, "BUILDKITE_RETRY_COUNT"),
        (CIRCLE, "CIRCLE_BUILD_NUM"),
        (JENKINS, "BUILD_ID"),
    ],
)
def test_a_retried_step_asks_no_second_time_and_a_new_attempt_does(
    shell: Shell, environ: dict[str, str], attempt: str
) -> None:
    shell.environ = dict(environ)
    for _ in range(2):
        shell("ask", *CALL, "--wait", "0")
    assert len(shell.world.server.records) == 1
    shell("ask", *CALL, "--arg", "more=1", "--wait", "0")
    assert len(shell.world.server.records) == 2
    shell.environ[attempt] = "2"
    shell("ask", *CALL, "--wait", "0")
    assert len(shell.world.server.records) == 3


@pytest.mark.parametrize(
    ("environ", "source"),
    [
        (
            {**GITHUB, "GITHUB_SERVER_URL": "https://github.com"},
            {
                "framework": "GitHub Actions",
                "agent": "acme/shop",
                "run": "99",
                "url": "https://github.com/acme/shop/actions/runs/99",
            },
        ),
        (GITHUB, {"framework": "GitHub Actions", "agent": "acme/shop", "run": "99"}),
        (
            {**GITLAB, "CI_JOB_URL": "https://gitlab.test/acme/shop/-/jobs/1"},
            {
                "framework": "GitLab CI",
                "agent": "acme/shop",
                "run": "9",
                "url": "https://gitlab.test/acme/shop/-/jobs/1",
            },
        ),
        ({**BUILDKITE, "BUILDKITE_BUILD_URL": "a page"}, {"framework": "Buildkite"}),
        (CIRCLE, {"framework": "CircleCI", "run": "1"}),
        (JENKINS, {"framework": "Jenkins", "agent": "shop"}),
        ({}, None),
    ],
)
def test_a_job_names_its_repository_run_and_page(
    shell: Shell, environ: dict[str, str], source: dict[str, str] | None
) -> None:
    shell.environ = dict(environ)
    shell("ask", *CALL, "--wait", "0")
    (record,) = shell.world.server.records.values()
    assert record.shown.get("source") == source


def test_elsewhere_each_call_asks_anew_and_says_its_key(shell: Shell) -> None:
    for _ in range(2):
        shell("ask", *CALL, "--wait", "0")
        assert "key cli/" in shell.err
    assert len(shell.world.server.records) == 2
