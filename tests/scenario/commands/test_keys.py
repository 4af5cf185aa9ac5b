"""`countersign keys`: beside the bot, on each database, with people and channels of Slack (1.2)."""

from __future__ import annotations

import inspect
import json
import re
import time
from collections.abc import Awaitable, Callable

import pytest

from bot.api.problems import ApiProblemError
from bot.clock import system_clock
from bot.commands.database import look_at_storage
from bot.config.manifest import bot_scopes, manifest_text, read_manifest
from bot.config.settings import Settings
from bot.records.programs import MOST_LIVE_KEYS, key_id
from bot.stores import Stores
from slack_sandbox import ADA, GUS, OPS, TEAM, Sandbox
from tests.scenario.commands.test_upkeep import Place, place
from tests.support.keyring import a_ring

__all__ = ["place"]

CREATE = ("keys", "create", "ci", "--tool", "deploy*", "--channel", OPS)
KEY = re.compile(r"csk_[0-9A-Za-z]{8}_[0-9A-Za-z]{38}")


def beside_slack(place: Place, work: Callable[..., Awaitable[None]]) -> None:
    """Do something while the stand-in for Slack runs; it is given to work that takes it."""

    async def doing(storage: Stores) -> None:
        scopes = set(bot_scopes(read_manifest(manifest_text())))
        async with Sandbox(clock=time.time, scopes=scopes) as sandbox:
            place.environ |= {
                "SLACK_API_URL": sandbox.api_url,
                "SLACK_BOT_TOKEN": sandbox.bot_token,
                "SLACK_APP_TOKEN": sandbox.app_token,
                "COUNTERSIGN_APPROVERS": ADA,
            }
            takes_sandbox = len(inspect.signature(work).parameters) > 1
            await work(storage, *([sandbox] if takes_sandbox else []))

    place.do(doing)


async def opens(storage: Stores, key: str) -> str:
    """The name of the program that a running bot knows by a key, or the code of the refusal."""
    ring = a_ring(storage, system_clock, ADA)
    try:
        caller = await ring.caller(f"Bearer {key}", address="127.0.0.1")
    except ApiProblemError as error:
        return error.code
    return caller.program.name


async def acts(storage: Stores) -> list[tuple[str, str]]:
    entries = await storage.audit.of_thread("", limit=100)
    return [(entry.action, str(entry.detail["name"])) for entry in entries]


def test_a_key_works_until_it_is_revoked(place: Place) -> None:
    async def work(storage: Stores) -> None:
        lines = await place.type(
            *CREATE, "--owner", ADA, "--limits", "create=5/m", "--people", "narrow"
        )
        key = lines[-1]
        assert KEY.fullmatch(key)
        public_id = f"csk_{key_id(key)}"
        assert lines[0].startswith(f"{public_id}: a key of ci, until ")
        assert await opens(storage, key) == "ci"
        record = await storage.programs.key(str(key_id(key)))
        assert record is not None
        assert key not in record.model_dump_json()
        program = await storage.programs.program(record.program_id)
        assert program is not None
        assert (program.owner_id, program.team_id) == (ADA, TEAM)
        assert (program.limits.create, program.limits.pending, program.people) == (5, 100, "narrow")

        (line,) = await place.type("keys", "list")
        assert line.startswith(f"{public_id}  ci  until ")
        (line,) = await place.type("keys", "list", "--json")
        record = json.loads(line)
        assert (record["key"], record["tools"], record["channels"]) == (
            public_id,
            ["deploy*"],
            [OPS],
        )
        assert not {"salt", "callback_secrets", "digest"} & record.keys()

        (line,) = await place.type("keys", "revoke", public_id)
        assert line.startswith(f"{public_id}: ends ")
        assert await opens(storage, key) == "key-revoked"
        assert await place.type("keys", "revoke", public_id) == [f"{public_id}: had ended before."]
        (line,) = await place.type("keys", "list")
        assert "  ended  " in line
        assert ("key_made", public_id) in await acts(storage)
        assert ("key_revoked", public_id) in await acts(storage)

    beside_slack(place, work)


def test_a_rotation_keeps_the_old_key_for_a_while(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    async def work(storage: Stores) -> None:
        old = (await place.type(*CREATE, "--owner", ADA))[-1]
        new = (await place.type("keys", "rotate", "ci", "--overlap", "1h"))[-1]
        assert [await opens(storage, key) for key in (old, new)] == ["ci", "ci"]
        record = await storage.programs.key(str(key_id(old)))
        assert record is not None
        assert 0 < record.ends_ms - system_clock() <= 3_600_000
        await place.type("keys", "rotate", "ci", fails=True)
        assert f"has {MOST_LIVE_KEYS} keys in force" in capsys.readouterr().err
        assert len(await place.type("keys", "revoke", "--program", "ci")) == MOST_LIVE_KEYS
        assert [await opens(storage, key) for key in (old, new)] == ["key-revoked"] * 2
        await place.type("keys", "rotate", "cd", fails=True)
        assert "there's no program cd" in capsys.readouterr().err
        await place.type("keys", "revoke", "csk_00000000", fails=True)
        assert "there's no key" in capsys.readouterr().err

    beside_slack(place, work)


REFUSED: tuple[tuple[tuple[str, ...], str], ...] = (
    (("--owner", GUS), "isn't an active full member"),
    (("--owner", "U0NOBODY00"), "isn't an active full member"),
    (("--owner", ADA, "--channel", "C0NOWHERE0"), "the bot isn't in C0NOWHERE0"),
    (("--owner", ADA, "--scope", "requests:decide"), "a scope is one of"),
    (("--owner", ADA, "--from", "10.0.0.1/8"), "networks such as"),
    (("--owner", ADA, "--limits", "create=0"), "isn't a limit"),
    (("--owner", ADA, "--limits", "votes=5"), "isn't a limit"),
    (("--owner", ADA, "--expires", "401d"), "longer than 400 days"),
    (("--owner", ADA, "--callback-host", "127.0.0.1"), "exact name of a host"),
    (("--owner", ADA, "--callback-host", "*.example.com"), "exact name of a host"),
    (("--owner", ADA, "--personal", "--requester", "named"), "leave out --requester"),
)


def test_a_program_that_cannot_be_is_refused(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    async def work(storage: Stores) -> None:
        for changes, words in REFUSED:
            await place.type(*CREATE, *changes, fails=True)
            assert words in capsys.readouterr().err
        assert await storage.programs.all_keys() == []

    beside_slack(place, work)


def test_a_program_needs_tools_a_channel_and_a_name_of_its_own(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    async def work(storage: Stores) -> None:
        assert await place.type("keys", "list") == ["No program has a key."]
        create = ("keys", "create", "ci", "--owner", ADA)
        await place.type(*create, "--channel", OPS, fails=True)
        assert "give the tools" in capsys.readouterr().err
        await place.type(*create, "--tool", "deploy", fails=True)
        assert "give a channel" in capsys.readouterr().err
        await place.type("keys", "create", "C I", "--owner", ADA, "--tool", "x", fails=True)
        assert "isn't a name" in capsys.readouterr().err
        verifier = await place.type(*create, "--scope", "executions:verify")
        assert await opens(storage, verifier[-1]) == "ci"
        await place.type(*CREATE, "--owner", ADA, fails=True)
        assert "countersign keys rotate ci" in capsys.readouterr().err

    beside_slack(place, work)


def test_the_owner_is_told_of_a_revocation(place: Place) -> None:
    async def work(storage: Stores, sandbox: Sandbox) -> None:
        key = (await place.type(*CREATE, "--owner", ADA))[-1]
        assert len(await place.type("keys", "revoke", key)) == 1
        (message,) = sandbox.messages(sandbox.dm_id(ADA))
        assert f"revoked the key `csk_{key_id(key)}` of ci." in message["text"]
        assert key not in message["text"]
        await place.type("keys", "revoke", key)
        assert len(sandbox.messages(sandbox.dm_id(ADA))) == 1
        second = (await place.type("keys", "rotate", "ci"))[-1]
        place.environ["SLACK_API_URL"] = "http://127.0.0.1:9/api/"
        lines = await place.type("keys", "revoke", second)
        assert "wasn't told" in lines[1]
        assert await opens(storage, second) == "key-revoked"

    beside_slack(place, work)


def test_a_personal_program_has_any_tool_and_a_short_key(place: Place) -> None:
    async def work(storage: Stores) -> None:
        create = ("keys", "create", "laptop", "--owner", ADA, "--channel", OPS, "--personal")
        key = (await place.type(*create))[-1]
        await place.type("keys", "rotate", "laptop")
        for record in await storage.programs.all_keys():
            assert record.expires_ms - record.created_ms == 30 * 86_400_000
        program = (
            await a_ring(storage, system_clock, ADA).caller(f"Bearer {key}", address="127.0.0.1")
        ).program
        assert (program.tools, program.requester) == (("*",), "owner")

    beside_slack(place, work)


def test_the_doctor_names_a_last_key_that_ends_soon(place: Place) -> None:
    async def work(storage: Stores) -> None:
        await place.type(*CREATE, "--owner", ADA, "--expires", "13d")
        create = ("keys", "create", "cd", "--tool", "*", "--channel", OPS, "--owner", ADA)
        await place.type(*create, "--expires", "15d")
        names = [
            program.name for program, _ in await storage.programs.ending(now_ms=system_clock())
        ]
        assert names == ["ci"]
        looking = look_at_storage(Settings.load(place.environ), Settings.make_storage)
        findings = [finding async for finding in looking]
        words = [finding.text for finding in findings if finding.subject == "keys"]
        assert len(words) == 1
        assert "the last one of ci, ends" in words[0]
        await place.type("keys", "rotate", "ci")
        assert await storage.programs.ending(now_ms=system_clock()) == []
        await place.type("keys", "revoke", "--program", "cd")
        assert await storage.programs.ending(now_ms=system_clock()) == []

    beside_slack(place, work)
