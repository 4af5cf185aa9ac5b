"""Hooks of coding agents: check 72 of the doors, rows 28 and 29 of their threats."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest
from jsonschema import Draft7Validator

from countersign_client import Countersign
from countersign_client.hooks.agents import AGENTS, Printed
from countersign_client.hooks.trying import RECORDED, tried
from tests.scenario.programs.test_command_line import Shell
from tests.support.programs.server import KEY
from tests.support.programs.world import VirtualWorld

CODEX = json.loads((Path(__file__).parents[2] / "data" / "codex-hooks.json").read_text("utf-8"))
EVENTS = [(agent, record) for agent, records in RECORDED.items() for record in records]
EVENT_NAMES = [
    f"{agent}-{record.get('hook_event_name', '')}-{n}" for n, (agent, record) in enumerate(EVENTS)
]
REFUSALS = ["reject", "reject silently", "expire", "cancel", "fail", "freeze", "pending", "deny"]
FAULTS = ["down", "key", "invalid", "garbage", "no object", "twice", "empty", "huge", "surrogate"]
CALLS = {agent: records[0] for agent, records in RECORDED.items()}


class Hook(Shell):
    """A hook as an agent runs it, and what it left."""

    code = 0

    def run(self, agent: str, stdin: bytes | dict[str, Any], *more: str, **given: Any) -> Hook:
        self.stdin = stdin if isinstance(stdin, bytes) else json.dumps(stdin).encode()
        usual = {"environ": {"CLAUDE_CODE_ENTRYPOINT": "sdk-cli"}}
        self.code = self("hook", agent, *more, **{**usual, **given})
        return self

    @property
    def sent(self) -> dict[str, Any]:
        return self.world.request.shown


@pytest.fixture
def hook(sync_world: VirtualWorld) -> Hook:
    return Hook(sync_world)


def text_of_refusal(agent: str, event: str, hook: Hook) -> str:
    """The text of a refusal in a form that holds the call; anything else fails the test.

    These are the forms that were tried with the real agents, or that their documentation names.
    """
    if hook.code == 2 and agent != "copilot":
        assert hook.out == "", "exit code 2 and a decision contradict each other"
        assert hook.err.strip(), "Codex runs the call after exit code 2 without a reason"
        return hook.err
    assert hook.code == 0, "Claude Code, Codex and Gemini run the call after other exit codes"
    assert agent not in ("codex", "gemini"), "an output that is not quite right runs the call"
    printed = hook.printed
    assert hook.out.count("\n") == 1
    if agent == "copilot":
        assert printed.keys() == {"permissionDecision", "permissionDecisionReason"}
        assert printed["permissionDecision"] == "deny"
        return str(printed["permissionDecisionReason"])
    if agent == "cursor":
        assert printed.keys() == {"permission", "user_message", "agent_message"}
        assert printed["permission"] == "deny"
        return str(printed["agent_message"])
    assert printed.keys() == {"hookSpecificOutput"}
    output = printed["hookSpecificOutput"]
    assert output.pop("hookEventName") == event, "another event runs the call"
    if event == "PermissionRequest":
        assert output["decision"].keys() == {"behavior", "message"}
        assert output["decision"]["behavior"] == "deny"
        return str(output["decision"]["message"])
    assert output.keys() == {"permissionDecision", "permissionDecisionReason"}
    assert output["permissionDecision"] == "deny", "`ask` and `defer` may run the call"
    return str(output["permissionDecisionReason"])


@pytest.mark.parametrize("end", REFUSALS)
@pytest.mark.parametrize(("agent", "record"), EVENTS, ids=EVENT_NAMES)
def test_72_each_end_but_a_yes_holds_the_call(
    hook: Hook, agent: str, record: dict[str, Any], end: str
) -> None:
    world = hook.world
    world.end(end.partition(" ")[0], "Not on Fridays." if end == "reject" else None)
    if end == "expire":
        world.after(60, lambda: world.pass_time(30_000))
    text = text_of_refusal(agent, record.get("hook_event_name", ""), hook.run(agent, record))
    assert text.strip()
    was_rejected = end in ("reject", "reject silently", "deny")
    assert ("Rejected by" in text) == was_rejected
    if end == "reject":
        assert "Not on Fridays." in text
    if end == "pending":
        assert hook.sent["id"] in text


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(("agent", "record"), EVENTS, ids=EVENT_NAMES)
def test_72_each_fault_holds_the_call(
    hook: Hook, agent: str, record: dict[str, Any], fault: str
) -> None:
    stdin: bytes | dict[str, Any] = record
    if fault == "down":
        hook.world.is_down = True
    if fault == "key":
        hook.world.server.key = "csk_another"
    if fault == "invalid":
        hook.world.server.next_problems = [(422, "invalid", None)]
    whole = json.dumps(record).encode()
    broken = {
        "garbage": whole[:-1],
        "no object": b"[]",
        "twice": whole[:-1] + b', "cwd": "/tmp", "cwd": "/srv"}',
        "empty": b"",
        "huge": b" " * 4 * 1024 * 1024 + whole,
        "surrogate": whole.replace(b"git push", b"git \\ud800").replace(b"One", b"\\ud800"),
    }
    if fault == "surrogate" and agent == "cursor":
        broken["surrogate"] = broken["surrogate"].replace(b"It is", b"\\ud800")
    hook.run(agent, broken.get(fault, stdin))
    text = text_of_refusal(agent, record.get("hook_event_name", ""), hook)
    assert "This is no rejection." in text
    assert hook.world.server.records == {}


@pytest.mark.parametrize(("agent", "record"), EVENTS, ids=EVENT_NAMES)
def test_72_a_yes_is_told_as_the_agent_takes_it(
    hook: Hook, agent: str, record: dict[str, Any]
) -> None:
    hook.world.after(60, lambda: hook.world.server.approve(hook.world.request))
    hook.run(agent, record)
    reason = f"Approved by Ada ({hook.sent['id']})."
    event = record.get("hook_event_name", "")
    nested: dict[str, Any] = {"hookEventName": event}
    if event == "PermissionRequest":
        nested["decision"] = {"behavior": "allow"}
    else:
        nested |= {"permissionDecision": "allow", "permissionDecisionReason": reason}
    wanted = {
        "claude-code": {"hookSpecificOutput": nested},
        "codex": {"hookSpecificOutput": nested} if event == "PermissionRequest" else None,
        "gemini": {"decision": "allow"},
        "cursor": {"permission": "allow"},
        "copilot": {"permissionDecision": "allow", "permissionDecisionReason": reason},
    }[agent]
    assert (hook.code, hook.err) == (0, "")
    assert (hook.printed if hook.out else None) == wanted


@pytest.mark.parametrize(("agent", "record"), EVENTS, ids=EVENT_NAMES)
def test_72_an_edit_is_told_whole_or_not_offered(
    hook: Hook, agent: str, record: dict[str, Any]
) -> None:
    world = hook.world
    edited: dict[str, Any] = {}

    def approve() -> None:
        edited.update(world.request.shown["arguments"])
        name = next(iter(edited))
        edited[name] = "other"
        world.server.approve(world.request, edited)

    world.after(60, approve)
    hook.run(agent, record)
    event = record.get("hook_event_name", "")
    if agent == "cursor" or (agent, event) == ("codex", "PermissionRequest"):
        assert hook.sent["kind"] == "approval"
        text_of_refusal(agent, event, hook)
        return
    assert hook.sent["kind"] == "edit"
    printed = hook.printed
    output = printed.get("hookSpecificOutput", {})
    reply = {
        "claude-code": output.get("updatedInput", output.get("decision", {}).get("updatedInput")),
        "codex": output.get("updatedInput"),
        "gemini": output.get("tool_input"),
        "copilot": printed.get("modifiedArgs"),
    }[agent]
    assert reply == edited
    if agent == "codex":
        assert output.keys() == {"hookEventName", "permissionDecision", "updatedInput"}


def test_an_edit_that_codex_cannot_take_is_not_offered(hook: Hook) -> None:
    record = {**CALLS["codex"], "tool_name": "mcp__github__create_issue"}
    hook.world.server.policy = "allow"
    hook.run("codex", {**record, "tool_input": {"title": "It is broken"}})
    assert hook.sent["kind"] == "approval"


@pytest.mark.parametrize("agent", ["codex", "gemini"])
def test_an_edit_that_leaves_a_member_out_is_refused(hook: Hook, agent: str) -> None:
    """Gemini merges: the member that people took away would be back."""
    assert_members = {"command", "dir"}
    record = {**CALLS["gemini"], "tool_input": {"command": "rm -r x", "dir": "/srv"}}
    if agent == "codex":
        record, assert_members = CALLS["codex"], {"command"}
    world = hook.world
    world.after(60, lambda: world.server.approve(world.request, {"other": "x"}))
    hook.run(agent, record)
    assert set(hook.sent["schema"]["required"]) == assert_members
    assert hook.sent["schema"]["additionalProperties"] is False
    text_of_refusal(agent, record["hook_event_name"], hook)


def test_a_value_that_only_python_calls_equal_is_an_edit(hook: Hook) -> None:
    record = {**CALLS["claude-code"], "tool_input": {"command": "ls", "run_in_background": 1}}
    changed = {"command": "ls", "run_in_background": True}
    hook.world.after(60, lambda: hook.world.server.approve(hook.world.request, changed))
    hook.run("claude-code", record)
    assert hook.printed["hookSpecificOutput"]["updatedInput"] == changed


def test_the_request_names_call_session_and_folder(hook: Hook) -> None:
    hook.world.server.policy = "allow"
    hook.run("claude-code", CALLS["claude-code"])
    assert hook.world.request.key == "claude/6f1c1d5e-0001/toolu_01"
    assert hook.world.request.group == "claude/6f1c1d5e-0001"
    assert hook.world.request.group_title == "Calls of Claude Code"
    sent = hook.sent
    assert sent["tool"] == "claude.Bash"
    assert sent["title"] == "Run git push origin main"
    assert sent["why"] == "Publish the release"
    assert sent["execution"]["mode"] == "none"
    assert sent["source"]["call"] == "toolu_01"


def test_the_same_call_again_is_the_same_request(hook: Hook) -> None:
    for _ in range(2):
        hook.run("claude-code", CALLS["claude-code"], "--deadline", "60")
    assert len(hook.world.server.records) == 1


def test_two_calls_alike_are_two_requests(hook: Hook) -> None:
    for call in ("toolu_01", "toolu_02"):
        record = {**CALLS["claude-code"], "tool_use_id": call}
        hook.run("claude-code", record, "--deadline", "60")
    assert len(hook.world.server.records) == 2


@pytest.mark.parametrize("name", ["tool_use_id", "session_id", "tool_name", "tool_input"])
@pytest.mark.parametrize("value", [None, "", 7, []])
def test_a_call_without_its_parts_is_refused(hook: Hook, name: str, value: object) -> None:
    hook.run("claude-code", {**CALLS["claude-code"], name: value})
    text_of_refusal("claude-code", "PreToolUse", hook)
    assert hook.world.server.records == {}


@pytest.mark.parametrize("agent", [name for name in RECORDED if name != "copilot"])
def test_another_event_is_refused(hook: Hook, agent: str) -> None:
    hook.run(agent, {**CALLS[agent], "hook_event_name": "Stop"})
    assert text_of_refusal(agent, "Stop", hook)
    assert hook.world.server.records == {}


# -- the deadline -----------------------------------------------------------------------------


@pytest.mark.parametrize("agent", RECORDED)
def test_72_a_server_that_never_answers_ends_at_the_deadline(hook: Hook, agent: str) -> None:
    gone = threading.Event()

    def hang(_: httpx.Request) -> httpx.Response:
        gone.wait()
        raise httpx.ReadError("gone")

    http = httpx.Client(transport=httpx.MockTransport(hang))
    client = Countersign("https://countersign.test", KEY, http=http)
    hook.run(agent, CALLS[agent], "--deadline", "0.05", connect=lambda _: client)
    text = text_of_refusal(agent, CALLS[agent].get("hook_event_name", ""), hook)
    assert "This is no rejection." in text
    gone.set()


def test_72_an_agent_that_keeps_stdin_open_gets_its_answer() -> None:
    reading, writing = os.pipe()
    try:
        command = [sys.executable, "-m", "countersign_client.cli"]
        done = subprocess.run(  # noqa: S603 - our own command
            [*command, "hook", "codex", "--deadline", "0.2"],
            stdin=reading,
            capture_output=True,
            check=False,
            timeout=30,
        )
    finally:
        os.close(reading)
        os.close(writing)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"in time" in done.stderr


@pytest.mark.parametrize("agent", RECORDED)
def test_72_a_decision_that_cannot_be_written_holds_the_call(hook: Hook, agent: str) -> None:
    class Closed(io.StringIO):
        def flush(self) -> None:
            raise BrokenPipeError

    hook.world.server.policy = "allow"
    record = RECORDED[agent][-1]
    for stream in (Closed(), None):
        hook.run(agent, record, stdout=stream)
        assert hook.code == 2
        assert hook.err.strip()


# -- the same call again ----------------------------------------------------------------------


def asked_again(hook: Hook, tmp_path: Path, call: str, *more: str, **change: Any) -> Hook:
    """The same call with another id, on a machine that remembers."""
    environ = {"XDG_STATE_HOME": str(tmp_path / "state"), "CLAUDE_CODE_ENTRYPOINT": "sdk-cli"}
    record = {**CALLS["claude-code"], "tool_use_id": call, **change}
    return hook.run("claude-code", record, *more, environ=environ)


def decision_of(hook: Hook) -> str:
    return str(hook.printed["hookSpecificOutput"]["permissionDecision"])


@pytest.mark.parametrize("end", ["approve", "reject"])
def test_a_call_made_again_after_the_deadline_finds_the_decision(
    hook: Hook, tmp_path: Path, end: str
) -> None:
    server = hook.world.server
    asked_again(hook, tmp_path, "toolu_01", "--deadline", "60")
    assert "again later" in text_of_refusal("claude-code", "PreToolUse", hook)
    asked_again(hook, tmp_path, "toolu_02", "--deadline", "60", prompt_id="p-2")
    (server.approve if end == "approve" else server.reject)(hook.world.request)
    asked_again(hook, tmp_path, "toolu_03")
    assert decision_of(hook) == ("allow" if end == "approve" else "deny")
    assert len(server.records) == 1


def test_a_decision_that_was_found_is_used_up(hook: Hook, tmp_path: Path) -> None:
    asked_again(hook, tmp_path, "toolu_01", "--deadline", "60")
    hook.world.server.approve(hook.world.request)
    asked_again(hook, tmp_path, "toolu_02")
    asked_again(hook, tmp_path, "toolu_03", "--deadline", "60")
    assert decision_of(hook) == "deny"
    assert len(hook.world.server.records) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"tool_input": {"command": "git push --force"}},
        {"cwd": "/srv/other"},
        {"session_id": "another"},
        {"tool_name": "Other"},
    ],
)
def test_another_call_finds_no_decision(hook: Hook, tmp_path: Path, change: dict[str, Any]) -> None:
    asked_again(hook, tmp_path, "toolu_01", "--deadline", "60")
    hook.world.server.approve(hook.world.request)
    asked_again(hook, tmp_path, "toolu_02", "--deadline", "60", **change)
    assert decision_of(hook) == "deny"
    assert len(hook.world.server.records) == 2


@pytest.mark.parametrize("content", ["claude/another/toolu_01", "", "\n"])
def test_a_memory_that_was_changed_is_not_believed(
    hook: Hook, tmp_path: Path, content: str
) -> None:
    asked_again(hook, tmp_path, "toolu_01", "--deadline", "60")
    (left,) = (tmp_path / "state" / "countersign" / "hooks").iterdir()
    left.write_text(content)
    asked_again(hook, tmp_path, "toolu_02", "--deadline", "60")
    assert {record.key for record in hook.world.server.records.values()} == {
        "claude/6f1c1d5e-0001/toolu_01",
        "claude/6f1c1d5e-0001/toolu_02",
    }


def test_without_a_memory_the_call_is_asked_anew(hook: Hook, tmp_path: Path) -> None:
    (tmp_path / "state").write_text("no folder")
    for call in ("toolu_01", "toolu_02"):
        asked_again(hook, tmp_path, call, "--deadline", "60")
    assert len(hook.world.server.records) == 2


def test_a_call_that_was_not_alone_is_deferred_the_second_time(hook: Hook, tmp_path: Path) -> None:
    both = transcript(tmp_path / "a.jsonl", "toolu_01", "toolu_02")
    other = transcript(tmp_path / "b.jsonl", "toolu_03")
    asked_again(hook, tmp_path, "toolu_01", "--defer", transcript_path=both)
    assert "only call" in text_of_refusal("claude-code", "PreToolUse", hook)
    asked_again(hook, tmp_path, "toolu_03", "--defer", transcript_path=other)
    assert decision_of(hook) == "defer"
    hook.world.server.approve(hook.world.request)
    asked_again(hook, tmp_path, "toolu_03", "--defer", transcript_path=other)
    assert decision_of(hook) == "allow"


# -- defer ------------------------------------------------------------------------------------


def transcript(path: Path, *ids: str) -> str:
    """A session in which the last message of the model makes these calls, a line each."""
    lines: list[dict[str, Any]] = [{"type": "user", "message": {"content": "Go"}}, {"type": "x"}]
    for call in ids:
        part = {"type": "tool_use", "id": call}
        lines.append({"type": "assistant", "message": {"id": "msg_1", "content": [part]}})
    path.write_text("\n".join(json.dumps(line) for line in lines), "utf-8")
    return str(path)


def test_defer_ends_at_once_and_finds_the_decision_when_resumed(hook: Hook, tmp_path: Path) -> None:
    session = transcript(tmp_path / "a.jsonl", "toolu_01")
    record = {**CALLS["claude-code"], "transcript_path": session}
    hook.run("claude-code", record, "--defer")
    output = {"hookEventName": "PreToolUse", "permissionDecision": "defer"}
    assert hook.printed == {"hookSpecificOutput": output}
    hook.world.server.approve(hook.world.request, {"command": "ls", "description": "Look"})
    hook.run("claude-code", record, "--defer")
    output = hook.printed["hookSpecificOutput"]
    assert output["permissionDecision"] == "allow"
    assert output["updatedInput"] == {"command": "ls", "description": "Look"}


@pytest.mark.parametrize("ids", [("toolu_01", "toolu_02"), ("toolu_03",), ()])
def test_a_call_that_is_not_alone_is_refused_instead_of_deferred(
    hook: Hook, tmp_path: Path, ids: tuple[str, ...]
) -> None:
    """Claude Code ignores `defer` then, and might run the call."""
    session = transcript(tmp_path / "a.jsonl", *ids) if ids else str(tmp_path / "none")
    record = {**CALLS["claude-code"], "transcript_path": session}
    hook.run("claude-code", record, "--defer")
    assert hook.sent["id"] in text_of_refusal("claude-code", "PreToolUse", hook)


@pytest.mark.parametrize("entry", ["cli", "claude-vscode", None])
def test_a_session_with_a_person_waits_instead_of_deferring(
    hook: Hook, tmp_path: Path, entry: str | None
) -> None:
    """Claude Code ignores `defer` there, and might run the call."""
    session = transcript(tmp_path / "a.jsonl", "toolu_01")
    record = {**CALLS["claude-code"], "transcript_path": session}
    hook.world.after(60, lambda: hook.world.server.reject(hook.world.request))
    environ = {} if entry is None else {"CLAUDE_CODE_ENTRYPOINT": entry}
    hook.run("claude-code", record, "--defer", environ=environ)
    assert "Rejected by Ada" in text_of_refusal("claude-code", "PreToolUse", hook)


def test_a_prompt_is_never_deferred(hook: Hook) -> None:
    hook.run("claude-code", RECORDED["claude-code"][-1], "--defer")
    text_of_refusal("claude-code", "PermissionRequest", hook)


# -- what people are shown --------------------------------------------------------------------


def posted(monkeypatched: list[dict[str, Any]], hook: Hook, record: dict[str, Any]) -> Any:
    """The preview that was sent."""
    answer = hook.world.answer

    def listen(request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            monkeypatched.append(json.loads(request.content))
        return answer(request)

    hook.world.answer = listen  # type: ignore[method-assign]
    hook.world.server.policy = "allow"
    hook.run("claude-code", record)
    assert hook.code == 0
    return monkeypatched[0].get("preview")


@pytest.mark.parametrize(
    ("tool", "change", "lines"),
    [
        ("Write", {"content": "One\nThree\n"}, ["-Two", "+Three"]),
        ("Edit", {"old_string": "Two", "new_string": "2"}, ["-Two", "+2"]),
        ("Edit", {"old_string": "gone", "new_string": "here"}, ["-gone", "+here"]),
        ("Edit", {"old_string": "o", "new_string": "0", "replace_all": True}, ["-Two", "+Tw0"]),
    ],
)
def test_a_change_of_a_file_is_shown_as_a_diff(
    hook: Hook, tmp_path: Path, tool: str, change: dict[str, Any], lines: list[str]
) -> None:
    (tmp_path / "a.txt").write_text("One\nTwo\n")
    call = {"file_path": str(tmp_path / "a.txt"), **change}
    record = {**CALLS["claude-code"], "tool_name": tool, "tool_input": call}
    preview = posted([], hook, record)
    assert preview["format"] == "diff"
    assert set(lines) <= set(preview["text"].splitlines())


@pytest.mark.parametrize("kind", ["folder", "binary", "large", "pipe"])
def test_a_file_that_cannot_be_shown_does_not_hold_the_hook(
    hook: Hook, tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "a"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.write_bytes(b"\xff" if kind == "binary" else b"x" * 300_000)
    call = {"file_path": str(path), "content": "x"}
    record = {**CALLS["claude-code"], "tool_name": "Write", "tool_input": call}
    assert posted([], hook, record)["format"] == "text"


def test_a_long_command_is_cut_in_the_preview_alone(hook: Hook) -> None:
    command = "echo " + "x" * 40_000
    record = {**CALLS["claude-code"], "tool_input": {"command": command}}
    assert posted([], hook, record)["text"].endswith("cut here")
    assert hook.sent["arguments"]["command"] == command


@pytest.mark.parametrize("record", RECORDED["codex"], ids=lambda record: record["hook_event_name"])
def test_72_what_codex_writes_and_reads_fits_the_schemas_of_its_program(
    record: dict[str, Any],
) -> None:
    """Codex runs a call whose hook answers with a member that it does not know."""
    name = {"PreToolUse": "pre-tool-use", "PermissionRequest": "permission-request"}
    kind = f"{name[record['hook_event_name']]}.command"
    Draft7Validator(CODEX[f"{kind}.input"]).validate(record)
    ends = dict(tried(AGENTS["codex"], json.dumps(record).encode()))
    printed = {end: shown for end, shown in ends.items() if isinstance(shown, Printed)}
    assert len(printed) >= 5
    for end, shown in printed.items():
        if end.startswith("approved"):
            assert (shown.code, shown.stderr) == (0, "")
            if shown.stdout:
                Draft7Validator(CODEX[f"{kind}.output"]).validate(json.loads(shown.stdout))
        else:
            assert (shown.code, shown.stdout) == (2, "")
            assert shown.stderr


# -- trying -----------------------------------------------------------------------------------


@pytest.mark.parametrize("agent", RECORDED)
def test_a_trial_shows_the_request_and_each_end(hook: Hook, agent: str) -> None:
    hook.run("test", b"", agent)
    assert hook.code == 0
    for name in ("request", "approved", "rejected", "nobody answered", "no server"):
        assert hook.out.count(f"  {name}: ") == len(RECORDED[agent])
    assert hook.world.server.records == {}


def test_a_trial_takes_what_an_agent_wrote(hook: Hook) -> None:
    record = {**CALLS["codex"], "tool_input": {"command": "make release"}}
    hook.run("test", json.dumps(record).encode(), "codex", "--stdin", "-")
    assert "Run make release" in hook.out
    hook.run("test", b"{}", "codex", "--stdin", "-")
    assert hook.code == 2
