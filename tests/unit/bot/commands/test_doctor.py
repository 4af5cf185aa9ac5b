"""The doctor, against the stand-in for Slack: each fault gets a line that says what to do."""

import asyncio
import os
import socket
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from pydantic_ai.models import Model

from agents import Agent, ChatModelAgent, approval_gate, tool
from agents.core.errors import ModelError, ModelRefusedError
from agents.gates import policy_gate
from agents.policy import AllowList, Ask, Deny, Rule, RulePolicy, all_of, first_of
from agents.workflows import AgentTool
from bot.commands.call import Finding
from bot.commands.database import EMBEDDED, SHARED, remedy_for
from bot.commands.doctor import Tools, examine
from bot.config.agents import load_agents, load_model
from bot.config.manifest import bot_scopes, manifest_text, read_manifest
from bot.config.settings import Settings
from bot.freezes.service import Freezes
from bot.records.approval_queries import count_pending
from bot.records.switch import FreezeScope, ScopeKind
from bot.stores import Stores
from slack_sandbox import ADA, BOT_USER, GUS, ONCALL, Sandbox
from storage.base import CheckResult
from storage.chain import Seal
from storage.documents import Unreadable
from storage.errors import Fault, StoreBrokenError, StoreUnavailableError
from storage.sqlite import back_up
from tests.contract.builders import APPROVAL_ID, THREAD_ID, a_thread, an_approval, an_entry
from tests.contract.spoiling import spoil
from tests.support.stores import MongoStores, SqliteStores

MakeStorage = Callable[[Settings], Stores]


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    scopes = set(bot_scopes(read_manifest(manifest_text())))
    async with Sandbox(clock=time.time, scopes=scopes) as running:
        yield running


@pytest.fixture
def environ(sandbox: Sandbox, tmp_path: Path) -> dict[str, str]:
    return {
        "SLACK_API_URL": sandbox.api_url,
        "SLACK_BOT_TOKEN": sandbox.bot_token,
        "SLACK_APP_TOKEN": sandbox.app_token,
        "COUNTERSIGN_APPROVERS": ADA,
        "COUNTERSIGN_DATA_DIR": str(tmp_path / "data"),
    }


def embedded(settings: Settings) -> Stores:
    return SqliteStores(settings.data_dir)


async def look(
    environ: dict[str, str],
    *,
    manifest: str = "",
    make_storage: MakeStorage = embedded,
    load: Callable[[str, Model], Mapping[str, Agent]] = load_agents,
    ask_model: Callable[[Model], Awaitable[None]] | None = None,
) -> dict[str, Finding]:
    tools = Tools(
        manifest=manifest or manifest_text(),
        load_model=load_model,
        load_agents=load,
        ask_model=ask_model,
        make_storage=make_storage,
        clock=lambda: 0,
    )
    findings = [finding async for finding in examine(environ, tools)]
    return {finding.subject: finding for finding in findings}


def lines(findings: dict[str, Finding]) -> list[str]:
    return [str(finding) for finding in findings.values() if not finding.is_ok]


async def test_all_is_well(environ: dict[str, str]) -> None:
    findings = await look(environ)
    assert lines(findings) == []
    assert list(findings) == [
        "manifest.yml",
        "settings",
        "agent",
        "database",
        "SLACK_BOT_TOKEN",
        "scopes",
        "approvers",
        "SLACK_APP_TOKEN",
    ]
    assert str(findings["scopes"]) == "ok  scopes: match manifest.yml"
    assert "Socket Mode" in str(findings["settings"])


async def test_each_fault_of_a_file_of_agents_is_found(
    environ: dict[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "countersign.yaml"
    path.write_text("version: 1\nagents:\n  a:\n    use: nowhere_at_all:build\n    prompt: []\n")
    findings = await look({**environ, "COUNTERSIGN_AGENTS_FILE": str(path)})
    (line,) = lines(findings)
    assert line == (
        "!!  COUNTERSIGN_AGENTS_FILE: countersign.yaml:5: agents.a.prompt: unknown key → "
        "did you mean prompts?"
    )
    path.write_text("version: 1\nagents:\n  a:\n    use: bot.demo:build\n")
    assert lines(await look({**environ, "COUNTERSIGN_AGENTS_FILE": str(path)})) == []


async def test_the_model_is_asked_only_when_wanted(environ: dict[str, str]) -> None:
    asked: list[Model] = []

    async def ask(model: Model) -> None:
        asked.append(model)

    findings = await look(environ)
    assert "model not tested (add --model" in findings["agent"].text
    assert "model" not in findings
    findings = await look(environ, ask_model=ask)
    assert lines(findings) == []
    assert len(asked) == 1
    assert str(findings["model"]).endswith(" responds")
    assert "not asked" not in findings["agent"].text


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            ModelRefusedError("key", "gpt-55"),
            "rejects requests → the provider of the model 'gpt-55' does not accept the key",
        ),
        (ModelError("sk-secret said no"), "isn't responding (ModelError) → try again"),
        (TimeoutError(), "isn't responding (TimeoutError) → try again"),
    ],
)
async def test_a_model_that_does_not_answer(
    environ: dict[str, str], error: Exception, said: str
) -> None:
    async def ask(_: Model) -> None:
        raise error

    findings = await look(environ, ask_model=ask)
    assert said in str(findings["COUNTERSIGN_MODEL"])
    assert "sk-secret" not in str(findings["COUNTERSIGN_MODEL"])
    assert not findings["COUNTERSIGN_MODEL"].is_ok


async def test_a_model_that_there_is_not_is_asked_nothing(environ: dict[str, str]) -> None:
    async def ask(_: Model) -> None:
        raise AssertionError

    findings = await look({**environ, "COUNTERSIGN_MODEL": "nowhere:gpt"}, ask_model=ask)
    assert not findings["COUNTERSIGN_MODEL"].is_ok


async def test_http_mode_needs_no_app_token(environ: dict[str, str]) -> None:
    del environ["SLACK_APP_TOKEN"]
    findings = await look({**environ, "SLACK_SIGNING_SECRET": "0123456789abcdef0123"})
    assert lines(findings) == []
    assert "HTTP" in str(findings["settings"])
    assert "it's checked when Slack sends" in str(findings["SLACK_SIGNING_SECRET"])


async def test_wrong_settings_end_the_examination(environ: dict[str, str]) -> None:
    findings = await look({**environ, "COUNTERSIGN_PORT": "x", "COUNTERSIGN_LOG": "y"})
    assert set(findings) == {"manifest.yml", "COUNTERSIGN_PORT", "COUNTERSIGN_LOG"}
    assert str(findings["COUNTERSIGN_PORT"]) == (
        "!!  COUNTERSIGN_PORT: 'x' isn't a valid port → "
        "give a number from 1 to 65535 (0 takes any that is free)"
    )


async def test_a_broken_manifest(environ: dict[str, str]) -> None:
    findings = await look(environ, manifest="settings: {}")
    assert "lacks app_mentions:read" in findings["manifest.yml"].text
    assert not findings["manifest.yml"].is_ok


async def test_an_agent_that_does_not_import(environ: dict[str, str]) -> None:
    findings = await look({**environ, "COUNTERSIGN_AGENT": "nowhere_at_all:build"})
    (line,) = lines(findings)
    assert line.startswith("!!  COUNTERSIGN_AGENT: ")
    assert "nowhere_at_all" in line


async def test_a_data_directory_in_use_may_be_the_running_bot(
    environ: dict[str, str], tmp_path: Path
) -> None:
    storage = SqliteStores(tmp_path / "data")
    await storage.open()
    try:
        findings = await look(environ)
    finally:
        await storage.close()
    assert "in use by process" in str(findings["database"])
    assert findings["database"].is_ok


@pytest.mark.parametrize("is_open", [True, False], ids=["of a running bot", "closed"])
async def test_freezes_in_force_are_named_and_no_fault(
    environ: dict[str, str], tmp_path: Path, *, is_open: bool
) -> None:
    storage = SqliteStores(tmp_path / "data")
    await storage.open()
    try:
        freezes = Freezes(switches=storage.switches, audit=storage.audit, clock=lambda: 0)
        await freezes.freeze(FreezeScope(kind=ScopeKind.TOOL, name="pay"), by="cli:a@b", why="x")
        if not is_open:
            await storage.close()
        findings = await look(environ)
    finally:
        await storage.close()
    text = "f1: tool pay, since 1970-01-01 00:00 UTC. No call in these scopes starts"
    assert (findings["freezes"].text, findings["freezes"].is_ok) == (text, True)


async def test_a_data_directory_that_cannot_be_written(
    environ: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.write_text("")
    (line,) = lines(await look({**environ, "COUNTERSIGN_DATA_DIR": str(file)}))
    assert line.startswith("!!  COUNTERSIGN_DATA_DIR: ")
    assert "name a directory" in line


async def damaged(directory: Path) -> None:
    await emptied(directory)
    path = directory / "countersign.db"
    content = bytearray(path.read_bytes())
    content[4096::61] = b"\xff" * len(content[4096::61])
    path.write_bytes(content)


async def foreign(directory: Path) -> None:
    in_new(directory).write_bytes(b"no database " * 999)


async def foreign_tables(directory: Path) -> None:
    with closing(sqlite3.connect(in_new(directory))) as database:
        database.execute("CREATE TABLE notes (body TEXT)")


async def newer(directory: Path) -> None:
    await emptied(directory)
    connection = sqlite3.connect(directory / "countersign.db")
    connection.execute("PRAGMA user_version = 99")
    connection.close()


async def linked(directory: Path) -> None:
    in_new(directory).symlink_to(directory / "elsewhere")


def in_new(directory: Path) -> Path:
    directory.mkdir()
    return directory / "countersign.db"


async def emptied(directory: Path) -> None:
    storage = SqliteStores(directory)
    await storage.open()
    await storage.close()


@pytest.mark.parametrize(
    ("harm", "remedy"),
    [
        (damaged, "restore your newest backup"),
        (foreign, "find out who replaced the database"),
        (foreign_tables, "find out who replaced the database"),
        (newer, "start the newer release that wrote it"),
        (linked, "find out who replaced the database"),
    ],
)
async def test_nobody_is_told_to_take_an_empty_directory(
    environ: dict[str, str], tmp_path: Path, harm: Callable[[Path], Awaitable[None]], remedy: str
) -> None:
    await harm(tmp_path / "data")
    (line,) = lines(await look(environ))
    assert line.startswith("!!  COUNTERSIGN_DATA_DIR: ")
    assert remedy in line
    assert "name a directory" not in line


@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize("is_embedded", [True, False])
def test_every_lasting_fault_has_a_remedy(fault: Fault, *, is_embedded: bool) -> None:
    remedy = remedy_for(StoreBrokenError("odd", fault), is_embedded=is_embedded)
    assert remedy
    assert (fault is Fault.READ_ONLY and is_embedded) or "name a directory" not in remedy


def test_faults_that_differ_have_remedies_that_differ() -> None:
    assert len({EMBEDDED[fault] for fault in EMBEDDED}) == len(EMBEDDED)
    assert len({SHARED[fault] for fault in SHARED}) == len(SHARED)
    assert "authSource" in SHARED[Fault.REFUSED]


async def test_a_file_that_was_replaced_under_the_running_bot(
    environ: dict[str, str], tmp_path: Path
) -> None:
    storage = SqliteStores(tmp_path / "data")
    await storage.open()
    try:
        (tmp_path / "data" / "countersign.db").unlink()
        findings = await look(environ)
    finally:
        await storage.close()
    line = lines(findings)[0]
    assert "was deleted or replaced while process" in line
    assert "don't stop the bot" in line


@pytest.mark.parametrize("is_running", [True, False])
async def test_records_that_cannot_be_read_are_named(
    environ: dict[str, str], tmp_path: Path, *, is_running: bool
) -> None:
    storage = SqliteStores(tmp_path / "data")
    await storage.open()
    await storage.approvals.insert(an_approval())
    await storage.threads.ensure(a_thread(due_ms=1))
    await spoil(storage, "approvals", APPROVAL_ID, kind="vote")
    await storage.approvals.claim(
        APPROVAL_ID, owner="a", now_ms=1_800_000_000_000, until_ms=1_800_000_009_000
    )
    thread = await storage.threads.claim(THREAD_ID, owner="a", now_ms=1, until_ms=9)
    assert thread is not None
    await storage.threads.set_aside(THREAD_ID, fence=thread.fence, why="message m is damaged")
    if not is_running:
        await storage.close()
    findings = await look(environ)
    await storage.close()
    assert "field 'kind' is damaged" in findings[f"approval {APPROVAL_ID}"].text
    assert findings[f"thread {THREAD_ID}"].text == "message m is damaged"
    assert all("start the release that wrote it" in line for line in lines(findings))
    assert len(lines(findings)) == 2


async def test_of_many_records_some_are_named(environ: dict[str, str]) -> None:
    class Odd(SqliteStores):
        async def unreadable(self, *, limit: int) -> Sequence[Unreadable]:
            return [
                Unreadable(kind="post", record_id=str(number), why="odd") for number in range(limit)
            ]

    findings = await look(environ, make_storage=lambda _: Odd(None))
    assert len([name for name in findings if name.startswith("post ")]) == 20
    assert "more than 20" in findings["records"].text


async def test_what_the_server_lacks_is_told(environ: dict[str, str]) -> None:
    async def examine() -> Sequence[CheckResult]:
        return [CheckResult(text="of 20 decisions, 8 were taken", remedy="use another")]

    storage = SqliteStores(None)
    storage.examine = examine
    (line,) = lines(await look(environ, make_storage=lambda _: storage))
    assert line == "!!  server: of 20 decisions, 8 were taken → use another"


async def test_a_database_that_does_not_answer(environ: dict[str, str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, but nobody listens
        uri = f"mongodb://ann:hushhush@127.0.0.1:{taken.getsockname()[1]}/x?timeoutMS=100"
        findings = await look({**environ, "MONGODB_URI": uri}, make_storage=mongo)
    (line,) = lines(findings)
    assert line.startswith("!!  MONGODB_URI: ")
    assert "hushhush" not in line


def mongo(settings: Settings) -> Stores:
    assert settings.mongodb_uri is not None
    return MongoStores(settings.mongodb_uri.get_secret_value(), driver="motor")


async def test_the_database_is_closed_again(environ: dict[str, str], tmp_path: Path) -> None:
    findings = await look(environ)
    assert findings["database"].is_ok
    storage = SqliteStores(tmp_path / "data")
    await storage.open()  # refused while another process, or the doctor, has it
    assert await count_pending(storage.approvals) == 0
    await storage.close()


async def test_a_database_that_stops_answering_is_closed(environ: dict[str, str]) -> None:
    storage = SqliteStores(None)
    close, closed = storage.close, list[bool]()

    async def ping() -> None:
        raise StoreUnavailableError("gone")

    async def note_close() -> None:
        closed.append(True)
        await close()

    storage.ping, storage.close = ping, note_close
    (line,) = lines(await look(environ, make_storage=lambda _: storage))
    assert "gone" in line
    assert closed == [True]


async def test_no_database_is_made_where_none_is(environ: dict[str, str], tmp_path: Path) -> None:
    findings = await look(environ)
    assert lines(findings) == []
    assert f"none in {tmp_path / 'data'} yet" in findings["database"].text
    assert not await asyncio.to_thread(os.listdir, tmp_path)


async def test_no_database_is_made_after_a_restore_that_failed(
    environ: dict[str, str], tmp_path: Path
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "countersign.lock").write_text("4711\n")
    (data / "countersign.db").touch()

    assert "none in" in (await look(environ))["database"].text

    assert (data / "countersign.db").stat().st_size == 0


async def test_a_database_that_is_gone_is_missed(environ: dict[str, str], tmp_path: Path) -> None:
    await emptied(tmp_path / "data")
    for file in (tmp_path / "data").glob("countersign.db*"):
        file.unlink()
    (line,) = lines(await look(environ))
    assert "though there was a database in this directory" in line


async def test_a_copy_that_was_put_in_place_by_hand(
    environ: dict[str, str], tmp_path: Path
) -> None:
    await emptied(tmp_path / "first")
    (tmp_path / "data").mkdir()
    await back_up(tmp_path / "first", tmp_path / "data" / "countersign.db")
    (line,) = lines(await look(environ))
    assert "the database is a copy that was put in place" in line
    assert line.endswith("→ while no bot runs, type: countersign restore")


async def test_an_audit_key_that_is_missing(environ: dict[str, str], tmp_path: Path) -> None:
    keyed = SqliteStores(tmp_path / "data", seal=Seal(b"k" * 32))
    await keyed.open()
    await keyed.audit.append(an_entry("a"))
    await keyed.close()
    (line,) = lines(await look(environ))
    assert "its audit is sealed with the key" in line
    assert "may be repeated" not in line
    assert line.endswith("→ set COUNTERSIGN_AUDIT_KEY as it was")


async def test_faults_of_the_policy_are_told_without_slack(
    environ: dict[str, str], sandbox: Sandbox, tmp_path: Path
) -> None:
    await sandbox.stop()
    path = tmp_path / "policy.yaml"
    path.write_text("version: 1\nrules: []\n")
    del environ["COUNTERSIGN_APPROVERS"]
    findings = await look({**environ, "COUNTERSIGN_POLICY": str(path)})
    assert "default: required" in findings["COUNTERSIGN_POLICY"].text


async def test_a_wrong_bot_token(environ: dict[str, str]) -> None:
    findings = await look({**environ, "SLACK_BOT_TOKEN": "xoxb-wrong-hush"})
    assert "invalid_auth" in findings["SLACK_BOT_TOKEN"].text
    assert "scopes" not in findings
    assert findings["SLACK_APP_TOKEN"].is_ok
    assert "hush" not in "".join(lines(findings))


async def test_a_wrong_app_token(environ: dict[str, str]) -> None:
    (line,) = lines(await look({**environ, "SLACK_APP_TOKEN": "xapp-1-wrong"}))
    assert line.startswith("!!  SLACK_APP_TOKEN: can't open a Socket Mode connection: ")


async def test_slack_that_does_not_answer(environ: dict[str, str], sandbox: Sandbox) -> None:
    await sandbox.stop()
    findings = await look(environ)
    assert "Slack isn't responding" in findings["SLACK_API_URL"].text
    assert "check the network" in findings["SLACK_APP_TOKEN"].remedy


async def test_missing_scopes_are_named(environ: dict[str, str], sandbox: Sandbox) -> None:
    sandbox.scopes.discard("usergroups:read")
    sandbox.scopes.discard("chat:write")
    (line,) = lines(await look(environ))
    assert line == (
        "!!  scopes: the bot token is missing chat:write, usergroups:read → "
        "update the app's manifest from manifest.yml, then reinstall the app"
    )


async def test_scopes_that_are_not_needed_are_named(
    environ: dict[str, str], sandbox: Sandbox
) -> None:
    sandbox.scopes.add("files:read")
    findings = await look(environ)
    assert lines(findings) == []
    assert "consider removing: files:read" in str(findings["scopes"])


async def test_owners_and_channels_of_schedules(
    environ: dict[str, str], sandbox: Sandbox, tmp_path: Path
) -> None:
    task = 'cron: "0 9 * * mon", text: Look.'
    file = tmp_path / "countersign.yaml"
    good = f"good: {{channel: {sandbox.channel_ids[0]}, owner: {ADA}, {task}}}"
    bad = f"bad: {{channel: {sandbox.channel_ids[0]}, owner: {GUS}, {task}}}"
    agents = 'version: 1\nagents: {ops: {use: "bot.demo:build", channels: ["*"]}}\n'
    environ["COUNTERSIGN_AGENTS_FILE"] = str(file)
    file.write_text(f"{agents}schedules:\n  {good}\n")
    subject = "triggers and schedules"
    assert str((await look(environ))[subject]) == f"ok  {subject}: good"
    file.write_text(f"{agents}schedules:\n  {good}\n  {bad}\n")
    finding = (await look(environ))[subject]
    assert not finding.is_ok
    assert finding.text == "the owner of bad is no active full member"


async def test_what_it_means_that_a_channel_decides(
    environ: dict[str, str], sandbox: Sandbox
) -> None:
    ops = sandbox.channel_id("ops")
    given = {**environ, "COUNTERSIGN_APPROVERS": "channel"}
    text = (await look({**given, "COUNTERSIGN_CHANNELS": ops}))["channels"].text
    assert f"approvals work only in {ops} (" in text
    assert "anyone who was a member when it was requested and still is" in text
    wrong = await look({**given, "COUNTERSIGN_CHANNELS": f"{ops},C0NOWHERE1"})
    assert "can't look up C0NOWHERE1" in wrong["COUNTERSIGN_CHANNELS"].text
    alone = await look({**environ, "COUNTERSIGN_CHANNELS": ops})
    assert "still is at the click" not in alone["channels"].text


def policed(*names: str) -> Callable[[str, Model], Mapping[str, Agent]]:
    """Agents, one of them within another, with a policy around a tool that names these."""

    @tool
    def pay(amount: int) -> str:
        """Pay."""
        return "paid"

    asking = RulePolicy(
        rules=(Rule(tool="pay", then=Ask(rule="few", approvers=names)),), default=Deny("no")
    )
    both = all_of(asking, first_of(AllowList(["pay"])))

    def load(_: str, model: Model) -> Mapping[str, Agent]:
        inner = ChatModelAgent(name="B", model=model, tools=[approval_gate(policy_gate(pay, both))])
        return {"*": ChatModelAgent(name="A", model=model, tools=[AgentTool(inner)])}

    return load


async def test_whom_policies_name_is_looked_at_too(environ: dict[str, str]) -> None:
    good = await look(environ, load=policed(ADA, ONCALL))
    assert str(good["approvers of policies"]) == f"ok  approvers of policies: {ADA}, {ONCALL}"
    wrong = (await look(environ, load=policed("U-OPS", GUS)))["COUNTERSIGN_AGENT"].text
    assert "'U-OPS' isn't a user ID or a user group ID" in wrong
    assert f"{GUS} is a guest" in wrong
    anyone = (await look(environ, load=policed("channel")))["COUNTERSIGN_CHANNELS"].text
    assert "a tool's policy lets `channel` approve, which means no one until this is set" in anyone


async def test_approvers_who_can_never_decide(environ: dict[str, str], sandbox: Sandbox) -> None:
    names = ("U0NOBODYAT", GUS, BOT_USER, "S0NOGROUPX")
    findings = await look({**environ, "COUNTERSIGN_APPROVERS": ",".join(names)})
    text = findings["COUNTERSIGN_APPROVERS"].text
    assert "U0NOBODYAT isn't in this workspace, so they can never approve" in text
    assert f"{GUS} is a guest" in text
    assert f"{BOT_USER} is an app" in text
    assert "can't look up S0NOGROUPX" in text


async def test_backup_people_are_looked_at_too(environ: dict[str, str]) -> None:
    escalating = {**environ, "COUNTERSIGN_ESCALATE_AFTER": "1h"}
    good = await look({**escalating, "COUNTERSIGN_ESCALATE_TO": f"{ADA},{ONCALL}"})
    assert str(good["backup people"]) == f"ok  backup people: {ADA}, {ONCALL}"
    assert good["approvers"].is_ok
    (line,) = lines(await look({**escalating, "COUNTERSIGN_ESCALATE_TO": GUS}))
    assert line.startswith(
        f"!!  COUNTERSIGN_ESCALATE_TO: {GUS} is a guest, so they can never approve"
    )


async def test_a_policy_file_is_looked_at_in_place_of_approvers(
    environ: dict[str, str], tmp_path: Path
) -> None:
    del environ["COUNTERSIGN_APPROVERS"]
    path = tmp_path / "policy.yaml"
    environ["COUNTERSIGN_POLICY"] = str(path)
    text = f"version: 1\ngroups: {{ops: {{users: [{ADA}]}}}}\n"
    path.write_text(f"{text}rules: []\ndefault: {{ask: {{approve: [{{from: [ops]}}]}}}}\n")
    findings = await look(environ)
    assert findings["policy"].is_ok
    assert "approvers" not in findings
    path.write_text(f"{text}rules: []\ndefault: {{ask: {{approve: [{{from: [oops]}}]}}}}\n")
    assert "did you mean ops?" in (await look(environ))["COUNTERSIGN_POLICY"].text
