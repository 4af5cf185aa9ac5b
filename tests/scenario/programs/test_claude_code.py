"""The real Claude Code, with a scripted model, before each of our answers (checks 71 and 73).

COUNTERSIGN_TEST_CLAUDE names the program, such as that of `npm install @anthropic-ai/claude-code`;
these tests are left out without it.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bot.errors import DirectoryError
from tests.scenario.programs.test_mcp_proxy import ROOT, Bench
from tests.support.programs.loopback import Loopback
from tests.support.programs.scripted_model import COMMAND, ScriptedModel, scripted_model
from tests.unit.bot.api.programs import Doorstep, doorstep
from tests.unit.bot.api.test_hooks import decided

CLAUDE = os.environ.get("COUNTERSIGN_TEST_CLAUDE", "")
pytestmark = pytest.mark.skipif(not CLAUDE, reason="COUNTERSIGN_TEST_CLAUDE names no Claude Code")
EDITED = {"command": "echo edited > ran.txt", "description": "Write a file"}


class Session:
    """Claude Code in a folder of its own, with a model that calls Bash once."""

    def __init__(self, folder: Path, model: ScriptedModel) -> None:
        self.folder = folder
        self.model = model
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "PYTHONPATH": str(ROOT),
            "ANTHROPIC_BASE_URL": model.url,
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        }

    async def run(self, *options: str, hook: dict[str, Any] | None = None) -> dict[str, Any]:
        """Let it work until it ends; give what it printed."""
        if hook is not None:
            settings = {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}}
            options = ("--settings", json.dumps(settings), "--allowedTools", "Bash", *options)
        process = await asyncio.create_subprocess_exec(
            *(CLAUDE, "-p", "Write the file", "--output-format", "json", *options),
            cwd=self.folder,
            env=self.environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
        )
        printed, _ = await process.communicate()
        result: dict[str, Any] = json.loads(printed)
        return result

    @property
    def ran(self) -> str:
        """What Bash wrote; empty: it did not run."""
        path = self.folder / "ran.txt"
        return path.read_text("utf-8").strip() if path.exists() else ""


@pytest.fixture
async def session(tmp_path: Path) -> AsyncIterator[Session]:
    async with scripted_model() as model:
        yield Session(tmp_path, model)


@pytest.fixture
async def step() -> AsyncIterator[Doorstep]:
    async with doorstep() as opened:
        yield opened


@pytest.fixture
def bench(door: Loopback, tmp_path: Path) -> Bench:
    return Bench(door, tmp_path)


@asynccontextmanager
async def people(step: Doorstep, changes: dict[str, Any] | None) -> AsyncIterator[None]:
    async def decide() -> None:
        await step.use.made.wait()
        if changes is not None:
            await step.use.change(next(iter(step.use.requests)), **changes)

    deciding = asyncio.create_task(decide())
    yield
    deciding.cancel()


@pytest.mark.parametrize(
    ("end", "ran", "message"),
    [
        ("allow", "own", ""),
        ("edit", "edited", ""),
        ("deny", "", "Rejected by Ada: not on Friday"),
        ("deadline", "", "people have not decided"),
        ("fault", "", "Slack does not answer"),
        ("wrong key", "", "Unknown key"),
        ("slow", "", "timed out"),
        ("away", "", "blocking because onFailure"),
    ],
)
async def test_73_http_hook(
    session: Session, step: Doorstep, end: str, ran: str, message: str
) -> None:
    session.environment["COUNTERSIGN_KEY"] = await step.key() if end != "wrong key" else "csk_no"
    arguments: Any = {"edit": EDITED, "allow": COMMAND}.get(end)
    changes: dict[str, Any] | None = None
    if arguments is not None:
        changes = decided(step, arguments=arguments, edited=end == "edit")
    elif end == "deny":
        rejection = decided(step, outcome="rejected", reason="not on Friday")
        changes = {**rejection, "status": "rejected"}
    step.use.error = DirectoryError("users.info") if end == "fault" else None
    hook = {
        "type": "http",
        "url": f"http://127.0.0.1:{step.port}/v1/hooks/claude-code"
        f"?deadline={5 if end == 'deadline' else 595}",
        "headers": {"Authorization": "Bearer $COUNTERSIGN_KEY"},
        "allowedEnvVars": ["COUNTERSIGN_KEY"],
        "timeout": 5 if end == "slow" else 60,
        "onFailure": "block",
    }
    if end == "away":
        await step.stop()
    async with people(step, changes):
        await session.run(hook=hook)
    assert session.ran == ran
    assert message in " ".join(session.model.results)


async def test_73_a_deferred_call_runs_after_the_decision_with_one_card(
    session: Session, bench: Bench
) -> None:
    session.environment |= {
        name: value for name, value in bench.environment.items() if name.startswith(("C", "X"))
    }
    command = f"{sys.executable} -m countersign_client.cli hook claude-code --defer"
    hook = {"type": "command", "command": command, "timeout": 60, "onFailure": "block"}
    first = await session.run(hook=hook)
    assert first["stop_reason"] == "tool_deferred"
    assert session.ran == ""
    await bench.approve(EDITED)
    await session.run("--resume", first["session_id"], hook=hook)
    assert session.ran == "edited"
    assert len(bench.door.server.records) == 1


@pytest.mark.parametrize(("end", "ran"), [("allow", "own"), ("edit", "edited"), ("deny", "")])
async def test_71_permission_prompt(session: Session, bench: Bench, end: str, ran: str) -> None:
    server = {
        "command": sys.executable,
        "args": ["-m", "countersign_client.cli", "mcp"],
        "env": bench.environment,
    }
    prompt = ["--permission-prompt-tool", "mcp__countersign__permission_prompt"]
    config = ["--mcp-config", json.dumps({"mcpServers": {"countersign": server}})]
    if end == "deny":
        deciding = bench.later(lambda record: bench.door.server.reject(record, "not on Friday"))
    else:
        deciding = bench.approve(EDITED if end == "edit" else None)
    await session.run(*prompt, *config)
    await deciding
    assert session.ran == ran
    if end == "deny":
        assert "not on Friday" in " ".join(session.model.results)
