"""The installer of hooks in the settings of coding agents (row 28 of the doors' threats)."""

from __future__ import annotations

import io
import json
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from countersign_client.cli import main
from countersign_client.cli.process import Process
from countersign_client.hooks.trying import RECORDED

FILES = {
    "claude-code": ".claude/settings.json",
    "codex": ".codex/config.toml",
    "gemini": ".gemini/settings.json",
    "cursor": ".cursor/hooks.json",
    "copilot": ".github/hooks/countersign.json",
}
MINE: dict[str, dict[str, Any]] = {
    "claude-code": {
        "model": "opus",
        "hooks": {
            "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "mine"}]}]
        },
    },
    "gemini": {"ui": {"theme": "Ä"}, "hooks": {"BeforeTool": []}},
    "cursor": {"version": 1, "hooks": {"stop": [{"command": "mine"}]}},
    "copilot": {"version": 1, "hooks": {}},
}
VALID = {agent: json.dumps(settings, ensure_ascii=False) for agent, settings in MINE.items()} | {
    "codex": '# mine\nmodel = "gpt-5"\n\n[[hooks.PreToolUse]]\nmatcher = "x"\n'
}
BROKEN = {
    "comment": '{"hooks": {}} // mine',
    "twice": '{"hooks": {}, "hooks": {}}',
    "cut": '{"hooks": ',
    "list": "[]",
    "text": '{"hooks": "mine"}',
}
BROKEN_TOML = {
    "cut": "[hooks",
    "inline": "hooks = {PreToolUse = []}",
    "text": 'hooks = "mine"',
    "array": '[hooks]\nPreToolUse = [{matcher = "x"}]',
    "old": '[[hooks.PreToolUse.hooks]]\ncommand = "countersign hook codex --deadline 5"',
}
VERSION = '#!/bin/sh\n[ "$1" = --version ] && echo "{version} (Claude Code)"\n'
CODEX = "#!/bin/sh\n{deed}\n"


class Place:
    """The home, the project and the programs of somebody who installs a hook."""

    def __init__(self, folder: Path) -> None:
        self.home, self.project = folder / "home", folder / "project"
        self.programs = folder / "bin"
        for path in (self.home, self.project, self.programs):
            path.mkdir()
        self.environ = {"HOME": str(self.home), "PATH": str(self.programs)}
        self.program("claude", VERSION.format(version="2.1.330"))
        self.program("codex", CODEX.format(deed=': > "$COUNTERSIGN_HOOK_PROBE"'))
        self.out = self.err = ""

    def program(self, name: str, text: str) -> None:
        (self.programs / name).write_text(text)
        (self.programs / name).chmod(0o755)

    def install(self, agent: str, *more: str) -> int:
        out, err = io.StringIO(), io.StringIO()
        process = Process(environ=self.environ, stdin=None, stdout=out, stderr=err)
        code = main(["hook", "install", agent, *more], process)
        self.out, self.err = out.getvalue(), err.getvalue()
        return code

    def settings(self, agent: str, text: str | None = None) -> Path:
        path = (self.project if agent == "copilot" else self.home) / FILES[agent]
        if text is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        return path


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    place = Place(tmp_path)
    monkeypatch.chdir(place.project)
    return place


def read(path: Path) -> dict[str, Any]:
    text = path.read_text("utf-8")
    return tomllib.loads(text) if path.suffix == ".toml" else dict(json.loads(text))


def entries(agent: str, path: Path) -> list[dict[str, Any]]:
    """Our entries, of all events."""
    hooks = read(path)["hooks"]
    flat = [inner for each in hooks.values() for e in each for inner in e.get("hooks", [e])]
    return [e for e in flat if f" hook {agent}" in json.dumps(e)]


@pytest.mark.parametrize("agent", FILES)
def test_absent_settings_are_made(place: Place, agent: str) -> None:
    assert place.install(agent) == 0
    path = place.settings(agent)
    wanted: dict[str, dict[str, Any]] = {
        "claude-code": {"timeout": 600, "onFailure": "block"},
        "codex": {"timeout": 600},
        "gemini": {"timeout": 600_000},
        "cursor": {"failClosed": True},
        "copilot": {"timeoutSec": 600},
    }
    assert entries(agent, path)
    for entry in entries(agent, path):
        assert wanted[agent].items() <= entry.items()
    assert str(path) in place.out
    assert not path.with_name(f"{path.name}.bak").exists()
    assert [each.name for each in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("agent", FILES)
def test_valid_settings_keep_all_else_and_leave_a_copy(place: Place, agent: str) -> None:
    path = place.settings(agent, VALID[agent])
    path.chmod(0o640)
    assert place.install(agent) == 0
    assert path.with_name(f"{path.name}.bak").read_text("utf-8") == VALID[agent]
    assert path.stat().st_mode & 0o777 == 0o640
    after = read(path)
    assert entries(agent, path)
    if agent == "codex":
        assert path.read_text().startswith(VALID[agent].rstrip())
        assert after["hooks"]["PreToolUse"][0] == {"matcher": "x"}
        return
    for name, value in MINE[agent].items():
        if name != "hooks":
            assert after[name] == value
    for event, kept in MINE[agent]["hooks"].items():
        assert after["hooks"][event][: len(kept)] == kept
    added = [line for line in place.out.splitlines() if line.startswith("+") and "hook" in line]
    assert added


@pytest.mark.parametrize("agent", FILES)
def test_a_second_time_changes_nothing(place: Place, agent: str) -> None:
    path = place.settings(agent, VALID[agent])
    assert place.install(agent) == 0
    first = path.read_bytes()
    assert place.install(agent) == 0
    assert path.read_bytes() == first
    assert "already" in place.out
    assert path.with_name(f"{path.name}.bak").read_text("utf-8") == VALID[agent]


def test_claude_code_calls_the_api_by_itself_and_blocks_when_that_fails(place: Place) -> None:
    assert place.install("claude-code", "--http") == 2
    assert "needs COUNTERSIGN_URL" in place.err
    place.environ["COUNTERSIGN_URL"] = "https://countersign.example.com/"
    assert place.install("claude-code") == 0
    for _ in range(2):
        assert place.install("claude-code", "--http") == 0
    (group,) = read(place.settings("claude-code"))["hooks"]["PreToolUse"]
    assert group["hooks"] == [
        {
            "type": "http",
            "url": "https://countersign.example.com/v1/hooks/claude-code?deadline=595",
            "headers": {"Authorization": "Bearer $COUNTERSIGN_KEY"},
            "allowedEnvVars": ["COUNTERSIGN_KEY"],
            "timeout": 600,
            "onFailure": "block",
            "statusMessage": "Waiting for people in Slack",
        }
    ]
    assert place.install("codex", "--http") == 2


def test_an_older_entry_is_replaced_and_its_neighbours_stay(place: Place) -> None:
    old = {"type": "command", "command": "countersign hook claude-code", "timeout": 5}
    mine = {"type": "command", "command": "mine"}
    settings = {"hooks": {"PreToolUse": [{"matcher": "*", "hooks": [old, mine]}]}}
    path = place.settings("claude-code", json.dumps(settings))
    assert place.install("claude-code") == 0
    first, second = read(path)["hooks"]["PreToolUse"]
    assert first == {"matcher": "*", "hooks": [mine]}
    assert second["hooks"][0]["timeout"] == 600


BROKEN_CASES = [
    (agent, text) for agent in FILES if agent != "codex" for text in BROKEN.values()
] + [("codex", text) for text in BROKEN_TOML.values()]


@pytest.mark.parametrize(("agent", "text"), BROKEN_CASES)
def test_settings_that_cannot_be_understood_stay(place: Place, agent: str, text: str) -> None:
    path = place.settings(agent, text)
    assert place.install(agent) == 2
    assert path.read_text() == text
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    assert "stays as it is" in place.err
    assert f"hook {agent}" in place.err, "what to write by hand"


@pytest.mark.parametrize("agent", FILES)
def test_settings_that_are_no_text_or_no_file_stay(place: Place, agent: str) -> None:
    path = place.settings(agent, "")
    path.write_bytes(b"\xff")
    assert place.install(agent) == 2
    assert path.read_bytes() == b"\xff"
    path.unlink()
    path.mkdir()
    assert place.install(agent) == 2


@pytest.mark.parametrize("agent", FILES)
def test_read_only_settings_stay(place: Place, agent: str) -> None:
    path = place.settings(agent, VALID[agent])
    path.chmod(0o444)
    assert place.install(agent) == 2
    assert path.read_text("utf-8") == VALID[agent]
    assert "read-only" in place.err


def test_another_copy_of_countersign_in_codex_is_not_doubled(place: Place) -> None:
    assert place.install("codex", "--project") == 0
    before = (place.project / FILES["codex"]).read_text()
    changed = before.replace("countersign-ask hook codex", "/opt/countersign hook codex")
    (place.project / FILES["codex"]).write_text(changed)
    assert place.install("codex", "--project") == 2
    assert (place.project / FILES["codex"]).read_text() == changed


def test_a_link_to_settings_stays_a_link(place: Place) -> None:
    real = place.home / "dotfiles.json"
    real.write_text("{}")
    path = place.settings("claude-code")
    path.parent.mkdir()
    path.symlink_to(real)
    assert place.install("claude-code") == 0
    assert path.is_symlink()
    assert entries("claude-code", real)


def test_a_project_gets_a_command_without_a_path_of_this_machine(place: Place) -> None:
    place.program("countersign-ask", "#!/bin/sh\n")
    assert place.install("claude-code", "--project") == 0
    (entry,) = entries("claude-code", place.project / FILES["claude-code"])
    assert entry["command"] == "countersign-ask hook claude-code"
    assert place.install("claude-code", "--user") == 0
    (entry,) = entries("claude-code", place.settings("claude-code"))
    assert entry["command"] == f"{place.programs}/countersign-ask hook claude-code"
    assert place.install("copilot", "--user") == 2


@pytest.mark.parametrize(("version", "code"), [("2.1.294", 2), ("2.1.295", 0), ("3.0.0", 0)])
def test_28_a_claude_code_that_cannot_block_is_refused(
    place: Place, version: str, code: int
) -> None:
    place.program("claude", VERSION.format(version=version))
    assert place.install("claude-code") == code
    assert place.settings("claude-code").exists() == (code == 0)


def test_28_an_unknown_version_is_said(place: Place) -> None:
    (place.programs / "claude").unlink()
    assert place.install("claude-code") == 0
    assert "2.1.295" in place.err


@pytest.mark.parametrize("deed", ["exit 0", "exit 1", None])
def test_28_a_codex_that_does_not_call_the_hook_is_not_protected(
    place: Place, deed: str | None
) -> None:
    if deed is None:
        (place.programs / "codex").unlink()
    else:
        place.program("codex", CODEX.format(deed=deed))
    assert place.install("codex") == 2
    assert "NOT PROTECTED" in place.err


@pytest.mark.parametrize("agent", ["codex", "gemini"])
@pytest.mark.parametrize(
    ("deed", "code", "err"),
    [
        ("exit 0", 0, ""),
        ("echo no >&2; exit 2", 2, "no\n"),
        ("exit 1", 2, "Countersign did not answer\n"),
        ("kill -9 $$", 2, "Countersign did not answer\n"),
    ],
)
def test_28_a_hook_that_dies_holds_the_call(
    place: Place, agent: str, deed: str, code: int, err: str
) -> None:
    place.program("countersign-ask", f"#!/bin/sh\n{deed}\n")
    assert place.install(agent) == 0
    (entry,) = entries(agent, place.settings(agent))
    done = subprocess.run(  # noqa: S602 - as the agent runs it
        entry["command"], shell=True, capture_output=True, text=True, check=False
    )
    assert done.returncode == code
    assert done.stderr.endswith(err) if err else done.stderr == ""


@pytest.mark.parametrize("agent", RECORDED)
def test_28_a_trial_of_the_hook_refuses_and_leaves_its_mark(tmp_path: Path, agent: str) -> None:
    mark = tmp_path / "called"
    out, err = io.StringIO(), io.StringIO()
    environ = {"COUNTERSIGN_HOOK_PROBE": str(mark)}
    code = main(["hook", agent], Process(environ=environ, stdout=out, stderr=err))
    assert mark.exists()
    assert (code, "deny" in out.getvalue()) == ((0, True) if agent == "copilot" else (2, False))
