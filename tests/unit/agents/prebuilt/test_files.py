"""Files of a deep agent, in the session of its run, and its shell behind an approval."""

from __future__ import annotations

from typing import Any

import pytest

from agents.agent import InterruptEvent, ToolEvent
from agents.core.errors import DuplicateNameError, ToolError
from agents.core.journal import Journal
from agents.core.observers import ToolOutcome
from agents.core.scope import RunContext, Scope, SessionValues, entered
from agents.gates.approval import approval_gate
from agents.memory import MemoryCheckpointStore
from agents.models import ScriptedModel, Turn, call, say
from agents.prebuilt.deep import deep_agent
from agents.prebuilt.files import (
    MAX_ALL,
    MAX_FILE,
    MAX_OUTPUT,
    execute_tool,
    file_tools,
    file_values,
    read_files,
)
from agents.runner import Runner
from tests.unit.agents.support import Plain, collect, yes


class Files:
    """The tools on one session."""

    def __init__(self, **files: str) -> None:
        values = file_values({f"/{name}": text for name, text in files.items()})
        self.session = SessionValues(values)
        self.tools = {tool.definition.name: tool for tool in file_tools()}

    async def use(self, name: str, **arguments: object) -> str:
        run = RunContext(
            checkpoint_id="1", new_id=str, journal=Journal(None, "1"), session=self.session
        )
        tool = self.tools[name]
        with entered(Scope(run=run)):
            result = await tool.call(tool.validate(arguments))
        assert isinstance(result, str)
        return result

    @property
    def all(self) -> dict[str, str]:
        return read_files(self.session)


async def test_write_list_and_read() -> None:
    files = Files()
    assert await files.use("ls") == "There are no files."
    assert await files.use("write_file", path="/a/b.md", content="one\ntwo\nthree") == (
        "/a/b.md has 13 characters now."
    )
    await files.use("write_file", path="/ab.md", content="")
    assert await files.use("ls") == "/a/b.md (13)\n/ab.md (0)"
    assert await files.use("ls", path="/a") == "/a/b.md (13)"
    assert await files.use("ls", path="/ab.md") == "/ab.md (0)"
    assert await files.use("read_file", path="/a/b.md") == "1\tone\n2\ttwo\n3\tthree"
    assert await files.use("read_file", path="/ab.md") == "(nothing there)"


@pytest.mark.parametrize(
    ("offset", "limit", "expected"),
    [
        (1, 1, "2\ttwo\n(1 more lines)"),
        (2, 9, "3\tthree"),
        (9, 9, "(nothing there)"),
        (-4, 0, None),
    ],
)
async def test_read_a_part(offset: int, limit: int, expected: str | None) -> None:
    files = Files(a="one\ntwo\nthree")
    text = await files.use("read_file", path="/a", offset=offset, limit=limit)
    assert text == (expected or "1\tone\n(2 more lines)")


async def test_edit_what_is_there_exactly_once() -> None:
    files = Files(a="x = 1\ny = 1\n")
    await files.use("edit_file", path="/a", old="x = 1", new="x = 2")
    assert files.all["/a"] == "x = 2\ny = 1\n"
    await files.use("edit_file", path="/a", old=" = ", new="=", replace_all=True)
    assert files.all["/a"] == "x=2\ny=1\n"


@pytest.mark.parametrize(
    ("old", "fault"), [("= 1", "2 times"), ("x  = 1", "exactly as it is"), ("", "exactly as it is")]
)
async def test_an_edit_that_does_not_match_changes_nothing(old: str, fault: str) -> None:
    files = Files(a="x = 1\ny = 1\n")
    with pytest.raises(ToolError, match=fault):
        await files.use("edit_file", path="/a", old=old, new="z")
    assert files.all == {"/a": "x = 1\ny = 1\n"}


@pytest.mark.parametrize(
    "path", ["", "a", "/", "/a/", "//a", "/a/../b", "/.", "/a\nb", "/a\x00", f"/{'x' * 101}"]
)
async def test_paths_that_are_none(path: str) -> None:
    for name, more in (("read_file", {}), ("write_file", {"content": "x"})):
        files = Files()
        with pytest.raises(ToolError, match="no path"):
            await files.use(name, path=path, **more)
        assert files.all == {}


async def test_a_file_that_is_not_there() -> None:
    with pytest.raises(ToolError, match=r"there is no file '/b'; there are: /a"):
        await Files(a="x").use("read_file", path="/b")
    with pytest.raises(ToolError, match="there are: none"):
        await Files().use("edit_file", path="/b", old="x", new="y")


async def test_files_have_a_size() -> None:
    files = Files(a="old")
    with pytest.raises(ToolError, match="It stays as it is"):
        await files.use("write_file", path="/a", content="x" * (MAX_FILE + 1))
    for number in range(MAX_ALL // MAX_FILE):
        await files.use("write_file", path=f"/f{number}", content="x" * (MAX_FILE - 10))
    with pytest.raises(ToolError, match="all together"):
        await files.use("write_file", path="/more", content="x" * 100)
    assert files.all["/a"] == "old"
    with pytest.raises(ToolError, match="may have"):
        file_values({f"/{n}": "x" * MAX_FILE for n in range(6)})


async def test_paths_count_as_well() -> None:
    files = Files()
    with pytest.raises(ToolError, match="all together"):
        await files.use("write_file", path="/abcdefghi" * (MAX_ALL // 10 + 1), content="")
    assert files.all == {}


async def test_an_edit_is_measured_before_it_is_made() -> None:
    """Ten thousand millions of characters would be the end of the process."""
    files = Files(a="a" * MAX_FILE)
    with pytest.raises(ToolError, match="would have 10,000,000,000 characters"):
        await files.use("edit_file", path="/a", old="a", new="b" * MAX_FILE, replace_all=True)
    assert files.all == {"/a": "a" * MAX_FILE}
    await files.use("edit_file", path="/a", old="a" * 50_000, new="b", replace_all=True)
    assert files.all == {"/a": "bb"}


async def test_one_change_writes_one_value() -> None:
    files = Files(a="1", b="2")
    files.session.take_changes()
    await files.use("write_file", path="/b", content="3")
    assert list(files.session.take_changes()) == ["file:/b"]


class Echo:
    """A shell that says what it was told."""

    def __init__(self, output: str = "") -> None:
        self.output = output
        self.ran: list[str] = []

    async def run(self, command: str) -> str:
        self.ran.append(command)
        return self.output or f"did {command}"


def deep(script: list[Turn], store: MemoryCheckpointStore, **options: Any) -> Runner:
    agent = deep_agent(name="deep", model=ScriptedModel(script), **options)
    return Runner(agent, checkpoint_store=store)


async def test_agents_of_a_run_share_the_files_over_a_restart() -> None:
    task = {"subagent_type": "general-purpose", "description": "Edit /plan.md."}
    script: list[Turn] = [
        call("write_file", {"path": "/plan.md", "content": "go there"}),
        call("task", task),
        call("edit_file", {"path": "/plan.md", "old": "there", "new": "home"}),
        call("pay", id="p1"),
    ]
    store, tools = MemoryCheckpointStore(), [approval_gate(Plain("pay"))]
    events = await collect(deep(script, store, tools=tools).query("Go.", checkpoint_id="1"))
    last = events[-1]
    assert isinstance(last, InterruptEvent)
    rest: list[Turn] = [say("edited"), call("read_file", {"path": "/plan.md"}), say("done")]
    events = await collect(
        deep(rest, store, tools=tools).resume("1", {last.contexts[0].id: yes(last.contexts[0])})
    )
    results = [event.result for event in events if isinstance(event, ToolEvent)]
    assert results == ["edited", "1\tgo home"]


async def test_a_command_runs_when_a_person_has_approved_it() -> None:
    shell, store = Echo(), MemoryCheckpointStore()
    first = deep([call("execute", {"command": "ls -l"}, id="c1")], store, shell=shell)
    [*_, last] = await collect(first.query("Go.", checkpoint_id="1"))
    assert isinstance(last, InterruptEvent)
    assert shell.ran == []
    events = await collect(
        deep([say("ok")], store, shell=shell).resume(
            "1", {last.contexts[0].id: yes(last.contexts[0])}
        )
    )
    [done] = [event for event in events if isinstance(event, ToolEvent)]
    assert (done.outcome, done.result, shell.ran) == (ToolOutcome.RAN, "did ls -l", ["ls -l"])


async def test_the_output_of_a_command_is_cut() -> None:
    tool: Any = execute_tool(Echo("x" * (MAX_OUTPUT + 7)))
    text = await tool.tool.call({"command": "yes"})
    assert text == f"{'x' * MAX_OUTPUT}\n(7 more characters)"


def test_what_a_deep_agent_has() -> None:
    names = {"ls", "read_file", "write_file", "edit_file"}
    model = ScriptedModel([])
    with_all: Any = deep_agent(name="deep", model=model, shell=Echo())
    without: Any = deep_agent(name="deep", model=model, with_files=False)
    assert {name for _, name in with_all.components()} == {*names, "write_todos", "task", "execute"}
    alone: Any = deep_agent(name="deep", model=model, with_files=False, with_general_purpose=False)
    assert {name for _, name in without.components()} == {"write_todos", "task"}
    assert {name for _, name in alone.components()} == {"write_todos"}
    with pytest.raises(DuplicateNameError):
        deep_agent(name="deep", model=model, tools=[Plain("ls")])
