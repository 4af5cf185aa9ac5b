"""The policy in force: the last good file holds until another good one is there (1.27)."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.config.settings import Settings
from bot.policy.current import LoadedPolicy, PolicyNews, PolicySource, reader_of, source_of
from bot.policy.parser.checks import CheckedPolicy, check, check_all
from bot.policy.parser.lookups import SlackFacts
from bot.policy.parser.problems import PolicyError
from tests.support.policies import CASES
from tests.support.policyworld import BOT, WorldDirectory, policy_world

GOOD = CASES["K001"]["text"].encode()
OTHER = GOOD.replace(b"name: one", b"name: two")
BAD = CASES["K069"]["text"].encode()


class Shelf:
    """A file that a test writes, with those who are told of it."""

    def __init__(self, data: bytes = GOOD) -> None:
        self.data = data
        self.fault: OSError | None = None
        self.directory = WorldDirectory()
        self.news: list[PolicyNews] = []
        self.checks = 0
        self.is_refusing_news = False
        self.source = PolicySource(
            name="policy.yaml", read=self.read, check=self.check, tell=self.tell
        )

    async def read(self) -> bytes:
        if self.fault is not None:
            raise self.fault
        return self.data

    async def check(self, data: bytes) -> CheckedPolicy:
        self.checks += 1
        slack = SlackFacts(lookups=self.directory, bot_user_id=BOT)
        return await check_all(data, policy_world(), slack)

    async def tell(self, news: PolicyNews) -> None:
        if self.is_refusing_news:
            raise ConnectionError("no database")
        self.news.append(news)

    def verdicts(self) -> list[bool]:
        """Of each news, whether a policy came into force; then it is forgotten."""
        accepted = [not news.faults for news in self.news]
        self.news.clear()
        return accepted


async def begun(shelf: Shelf) -> LoadedPolicy:
    policy = await LoadedPolicy.load(shelf.source)
    shelf.news.clear()
    shelf.checks = 0
    return policy


async def test_a_file_that_did_not_change_is_not_looked_at() -> None:
    shelf = Shelf()
    policy = await begun(shelf)
    assert not await policy.reload()
    assert (shelf.checks, shelf.verdicts()) == (0, [])


async def test_a_faulty_new_file_is_refused_and_told_once() -> None:
    shelf = Shelf()
    policy = await begun(shelf)
    before, shelf.data = policy.file, BAD
    assert [await policy.reload() for _ in range(3)] == [False] * 3
    assert policy.file is before
    assert (shelf.checks, shelf.verdicts()) == (1, [False])
    assert "policy.yaml:9: rules[0].when.tool" in policy.faults


async def test_a_file_that_is_good_again_ends_the_fault() -> None:
    shelf = Shelf()
    policy = await begun(shelf)
    shelf.data = BAD
    await policy.reload()
    shelf.data = GOOD
    assert not await policy.reload()
    assert (policy.faults, shelf.verdicts()) == ("", [False, True])


async def test_a_signal_finds_out_who_has_left_and_keeps_what_holds() -> None:
    shelf = Shelf()
    policy = await begun(shelf)
    shelf.directory.is_down = True
    assert not await policy.reload(anew=True)
    assert policy.file.rules
    assert "cannot be looked up" in policy.faults


async def test_what_could_not_be_looked_up_is_tried_again_and_told_once() -> None:
    shelf = Shelf()
    policy = await begun(shelf)
    shelf.data, shelf.directory.is_down = OTHER, True
    assert [await policy.reload() for _ in range(2)] == [False] * 2
    assert (shelf.checks, shelf.verdicts()) == (2, [False])
    shelf.directory.is_down = False
    assert await policy.reload()
    assert (policy.faults, shelf.verdicts()) == ("", [True])


async def test_a_file_that_is_gone_is_a_fault_that_may_pass() -> None:
    shelf = Shelf()
    policy = await begun(shelf)
    shelf.fault = FileNotFoundError(2, "No such file or directory")
    assert [await policy.reload() for _ in range(2)] == [False] * 2
    assert "No such file" in policy.faults
    shelf.fault = None
    await policy.reload()
    assert (policy.faults, shelf.verdicts()) == ("", [False, True])


async def test_what_is_not_on_record_does_not_come_into_force() -> None:
    shelf = Shelf()
    policy = await begun(shelf)
    before, shelf.data, shelf.is_refusing_news = policy.hash, OTHER, True
    with pytest.raises(ConnectionError):
        await policy.reload()
    assert policy.hash == before
    shelf.is_refusing_news = False
    assert await policy.reload()


async def test_the_settings_are_a_policy_that_is_not_told() -> None:
    shelf = Shelf()
    tokens = {"SLACK_BOT_TOKEN": "xoxb-1", "SLACK_APP_TOKEN": "xapp-1"}
    settings = Settings.load({**tokens, "COUNTERSIGN_APPROVERS": "U0ADA"})
    policy = await LoadedPolicy.load(source_of(settings, policy_world(), None, shelf.tell))
    assert (policy.name, policy.file.default.allow) == ("settings", True)
    assert not await policy.reload(anew=True)
    assert shelf.verdicts() == []


async def test_a_file_is_read_no_further_than_shows_that_it_is_too_big(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_bytes(b"#" * 300 * 1024)
    data = await reader_of(path)()
    assert len(data) == 256 * 1024 + 1
    with pytest.raises(PolicyError, match="KiB"):
        check(data, policy_world())
