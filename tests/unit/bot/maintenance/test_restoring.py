"""After a restore: cards are true again, and nothing runs twice unseen (I1, I5, I8)."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from agents.models import call, say
from bot.approvals.disclosure import Surface
from bot.audit.report import story
from bot.commands.cli import FAILED, main
from bot.commands.freeze import freezes_of
from bot.commands.upkeep import go_back
from bot.config.stores import restoring
from bot.errors import NotApproverError
from bot.maintenance.restoring import Restoring
from bot.people.approvers import next_step_ms
from bot.records.approval import Approval, Decision, ExecutionState, Status
from bot.records.switch import FreezeScope
from bot.slack.cards.card_for import card_for
from storage.sqlite import back_up
from storage.sqlite.tables import DATABASE_VERSION
from tests.contract.builders import a_start
from tests.support.force import Forced, forced
from tests.support.halves import first
from tests.support.stage import buttons
from tests.support.stores import SqliteStores
from tests.unit.bot.office import (
    ADA,
    BEN,
    THREAD_ID,
    KilledError,
    Office,
    an_actor,
    an_incoming,
)

ASK = "<@UBOT> pay Mia"
PAY = call("pay", {"to": "Mia", "amount": 5}, id="c1")
PAY_MORE = call("pay", {"to": "Mia", "amount": 7}, id="c2")
APPROVE = "countersign:approve"
BACK = "My database was restored to 2027-01-15 08:00 UTC."


class Drill:
    """A bot on a file; a copy of it; and the bot that goes back to that copy.

    What stands in Slack is the same for both.
    """

    def __init__(self, tmp_path: Path, *script: object, later_h: int = 9) -> None:
        self.later_h = later_h
        self.directory = tmp_path / "data"
        self.copy = tmp_path / "copy.db"
        self.script = script
        self.storages: list[SqliteStores] = []

    async def start(
        self, *script: object, before: Office | None = None, policy: Forced | None = None
    ) -> Office:
        storage = SqliteStores(self.directory)
        await storage.open()
        self.storages.append(storage)
        kept: dict[str, object] = {} if policy is None else {"policy": policy}
        if before is not None:
            kept = {name: getattr(before, name) for name in ("clock", "notifier", "policy")}
        epoch = str(await storage.restoring.epoch() or "")
        return Office(storage, script or self.script, epoch=epoch, **kept)  # type: ignore[arg-type]

    async def make_copy(self) -> None:
        self.copy.unlink(missing_ok=True)
        await back_up(self.directory, self.copy)

    async def go_back(self, office: Office, *script: object) -> Office:
        """Stop the bot, move its files away, restore, start; nothing is done yet."""
        office.queue.drop()
        await self.storages[-1].close()
        for file in self.directory.glob("countersign.db*"):
            file.rename(file.with_suffix(".lost"))
        office.clock.forward(hours=self.later_h)
        async with restoring(self.directory, self.copy, uri="", driver="motor") as storage:
            await Restoring(storage=storage, clock=office.clock).mark()
        return await self.start(*script, before=office)

    async def asked_and_back(self, *script: object) -> Office:
        """Somebody asks, a copy is made, and the bot goes back to it."""
        office = await self.start()
        await office.hear(ASK)
        await self.make_copy()
        return await self.go_back(office, *script)

    async def close(self) -> None:
        for storage in self.storages:
            await storage.close()


@pytest.fixture(
    params=first(1, [9, 0, -1]), ids=["later", "the same time", "a clock that is behind"]
)
async def drill(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Drill]:
    made = Drill(tmp_path, PAY, say("Paid."), later_h=request.param)
    yield made
    await made.close()


async def look(office: Office) -> None:
    """What the bot does when it starts."""
    await office.later()


def drawn(office: Office, approval: Approval) -> str:
    card = card_for(office.notifier.cards[approval.approval_id], approvers_text="Ada")
    return f"{card.text} {card.blocks}"


def shown_buttons(office: Office, approval: Approval) -> list[str]:
    card = card_for(office.notifier.cards[approval.approval_id], approvers_text="Ada")
    return buttons({"blocks": card.blocks})


async def test_every_restore_gives_people_the_same_time(drill: Drill) -> None:
    office = await drill.start()
    asked = await office.asked(ASK)
    waits_ms = asked.expires_ms - asked.created_ms

    for _ in range(3):
        await drill.make_copy()
        office = await drill.go_back(office)

        again = await office.the_approval()
        assert again.expires_ms - office.clock() == waits_ms


@pytest.mark.parametrize("has_tried", [False, True], ids=["stored", "tried"])
async def test_i4_a_start_that_a_copy_has_unposted_is_posted_once(
    drill: Drill, has_tried: bool
) -> None:
    """No person starts its thread; its first message is in Slack since the copy was made."""
    office = await drill.start(say("Fine."))
    office.directory.add("U1")
    office.notices.is_down = has_tried
    start = a_start(agent_name="A", created_ms=office.clock(), expires_ms=office.clock() + 10**9)
    await office.starts.start(start)
    if has_tried:
        await office.queue.run()
    await drill.make_copy()
    office.notices.is_down = False
    await office.later(minutes=5)
    assert len(office.notices.starts) == 1
    shown, people = office.notices, office.directory
    office = await drill.go_back(office, say("Fine."))
    office.notices = office.slack.notices = shown
    office.directory = office.slack.directory = people
    office.clock.forward(hours=24)  # as far as the clock was behind
    await look(office)
    begun = await office.storage.starts.get(start.id)
    assert len(shown.starts) == 1
    assert begun.thread_ts == "1900000003.000001"


async def test_i4_who_decides_again_before_the_thread_is_looked_at_is_heard(drill: Drill) -> None:
    office = await drill.start()
    approval = await office.asked(ASK)
    await drill.make_copy()
    office = await drill.go_back(office, say("Paid."))
    await office.approvals.attendance.attend(approval.approval_id)  # its card is there first

    await office.decide(await office.the_approval(), by=ADA)

    assert office.ran == [("pay", ("Mia", 5, "card"))]
    assert (await office.storage.threads.get(THREAD_ID)).restored.epoch == 0


async def test_i5_what_was_approved_and_not_passed_on_in_the_copy_is_asked_again(
    drill: Drill,
) -> None:
    office = await drill.start()
    approval = await office.asked(ASK)
    seen = await office.approvals.get_decidable(
        approval.approval_id, an_actor(ADA), shown=approval.digest
    )
    decision = Decision(
        status=Status.APPROVED, by=ADA, at_ms=office.clock(), digest=approval.digest
    )
    decided = await office.approvals.decide(seen, decision, surface=Surface.CARD)
    await drill.make_copy()  # and then it runs
    await office.approvals.follow_up(decided)
    await office.queue.run()
    assert office.ran

    office = await drill.go_back(office, say("Paid again."))
    await look(office)

    assert office.ran == []
    again = await office.the_approval()
    assert (again.status, again.decision) == (Status.PENDING, None)
    assert shown_buttons(office, approval)[0] == APPROVE
    assert BACK in drawn(office, approval)
    entries = await story(office.storage, approval_id=approval.approval_id)
    (restored,) = (entry for entry in entries if entry.action == "restored")
    assert (restored.detail["was"], restored.detail["decided_by"]) == ("approved", ADA)
    assert again.votes == ()
    await office.decide(again, by=ADA)
    assert office.ran == [("pay", ("Mia", 5, "card"))]


TWO_STAGES = {
    "stages": [
        {"name": "first", "approve": [{"from": ["sre"]}]},
        {"name": "second", "approve": [{"from": ["lead"]}]},
    ],
    "escalate": [{"after": "1h", "add": ["backup"], "for": ["sre"]}],
    "remind": "10h",
}


async def test_i1_votes_and_steps_from_before_a_restore_count_no_more(drill: Drill) -> None:
    """Who had voted may have taken it back since, and who was asked since is not known."""
    groups = {"sre": {"users": [ADA]}, "lead": {"users": [BEN]}, "backup": {"users": ["UMIA"]}}
    office = await drill.start(policy=forced(default={"ask": TWO_STAGES}, groups=groups))
    office.directory.add("UMIA")
    await office.hear(ASK)
    office.clock.forward(hours=2)
    await look(office)  # the backups are asked
    before = await office.the_approval()
    voted = await office.decide(before, by=ADA)
    assert (before.escalation.steps, voted.stage) == (1, 1)
    await drill.make_copy()
    office = await drill.go_back(office, say("Paid."))
    office.directory.add("UMIA")
    await look(office)

    again = await office.the_approval()
    since = again.schedule_ms
    assert (again.votes, again.stage, again.escalation.steps, since) == ((), 0, 0, office.clock())
    assert next_step_ms(again) == office.clock() + 3_600_000
    with pytest.raises(NotApproverError):
        await office.decide(again, by=BEN)
    await office.decide(again, by=ADA)
    await office.decide(await office.the_approval(), by=BEN)
    assert office.ran == [("pay", ("Mia", 5, "card"))]


async def test_i5_a_turn_that_ran_when_the_copy_was_made_is_ended(drill: Drill) -> None:
    office = await drill.start()
    office.dies_in_tools = True
    approval = await office.asked(ASK)
    with pytest.raises(KilledError):
        await office.decide(approval, by=ADA)
    await drill.make_copy()

    office = await drill.go_back(office)
    await look(office)

    assert office.ran == []
    assert office.model.calls == 0
    assert "I've stopped it, so nothing more of it runs" in office.shown()[-1]
    assert await office.open_approvals() == []
    thread = await office.storage.threads.get(THREAD_ID)
    assert (thread.turn_open, thread.restored.epoch, thread.due_ms) == (False, 0, None)
    assert shown_buttons(office, approval) == []


async def test_i5_a_call_that_was_parked_in_the_copy_does_not_start(drill: Drill) -> None:
    """Its freeze may have been lifted since the copy was made, and then it has run."""
    office = await drill.start()
    approval = await office.asked(ASK)
    await office.freezes.freeze(FreezeScope(), by=BEN, why="An agent runs wild.")
    await office.decide(approval, by=ADA)
    await drill.make_copy()
    await office.freezes.lift("f1", by=BEN, why="It is mended.")
    await office.later()
    assert office.ran == [("pay", ("Mia", 5, "card"))]

    office = await drill.go_back(office)
    await office.freezes.lift("f1", by=BEN, why="It is mended.")
    await look(office)
    await look(office)

    assert office.ran == []
    assert "I've stopped it, so nothing more of it runs" in office.shown()[-1]
    restored = await office.storage.approvals.get(approval.approval_id)
    assert restored.execution.state is ExecutionState.DOUBT
    assert await office.storage.threads.parked() == []


async def test_a_message_that_the_copy_has_as_unread_is_left_alone(drill: Drill) -> None:
    office = await drill.start()
    await office.inbox.receive(an_incoming(ASK))
    await drill.make_copy()

    office = await drill.go_back(office, say("Hello."))
    await look(office)
    assert office.model.calls == 0
    assert "If you still need something, send it again." in office.shown()[-1]

    await office.hear("<@UBOT> hello", ts="1800099999.000001")
    assert office.shown()[-1] == "Hello."


async def test_a_turn_that_the_copy_has_as_begun_and_not_open_is_ended(drill: Drill) -> None:
    """Its messages were taken: what is written since begins a turn of its own."""
    office = await drill.start()
    await office.inbox.receive(an_incoming(ASK))
    (message,) = await office.storage.inbox.new(THREAD_ID, limit=9)
    await office.storage.inbox.take([message.message_id], turn=1)
    await drill.make_copy()

    office = await drill.go_back(office, say("Hello."))
    await look(office)
    assert office.model.calls == 0
    assert "I've stopped it, so nothing more of it runs" in office.shown()[-1]

    await office.hear("<@UBOT> hello", ts="1800099999.000001")
    assert office.shown()[-1] == "Hello."
    thread = await office.storage.threads.get(THREAD_ID)
    assert (thread.turn, thread.turn_open, thread.due_ms) == (2, False, None)
    assert len(await office.storage.inbox.of_turn(THREAD_ID, 2)) == 1


async def test_i4_a_message_since_the_restore_is_read(drill: Drill) -> None:
    office = await drill.asked_and_back(say("Cancelled."), say("Hello."))
    office.clock.forward(seconds=1)
    await office.inbox.receive(an_incoming("<@UBOT> hello", ts="1800099999.000001"))
    await look(office)

    await office.decide(await office.the_approval(), Status.REJECTED, by=ADA, reason="it ran")

    assert office.shown()[-1] == "Hello."


async def test_what_the_same_turn_asks_later_says_so_too(drill: Drill) -> None:
    office = await drill.asked_and_back(PAY_MORE, say("Paid."), PAY, say("Done."))
    await look(office)
    await office.decide(await office.the_approval(), by=ADA)

    second = await office.the_approval()
    assert second.restored.to_ms
    assert BACK in drawn(office, second)
    await office.decide(second, by=ADA)

    await office.hear("<@UBOT> once more", ts="1800099999.000001")
    assert (await office.the_approval()).restored.to_ms == 0


async def test_i9_the_agent_is_told_that_it_may_have_run_when_nobody_decides_again(
    drill: Drill,
) -> None:
    office = await drill.asked_and_back(say("Oh."))
    await look(office)
    office.clock.forward(hours=9)
    await look(office)
    assert office.shown()[-1] == "Oh."
    assert "may have been approved and have run before" in str(office.model.inputs[-1])


async def test_a_right_that_was_handed_on_does_not_come_back(drill: Drill) -> None:
    office = await drill.start()
    await office.hear(ASK)
    name = await office.lend(ADA, BEN)
    await drill.make_copy()
    await office.storage.delegations.end(name, now_ms=office.clock())
    office = await drill.go_back(office, say("Paid."))

    assert await office.storage.delegations.current("T1", now_ms=office.clock()) == []


# ---- the command --------------------------------------------------------------------------------


def made(directory: Path) -> Path:
    async def make() -> None:
        storage = SqliteStores(directory)
        await storage.open()
        office = Office(storage, [PAY, say("Paid.")])
        await office.hear(ASK)
        await storage.close()

    asyncio.run(make())
    return directory


def test_11_26_a_restored_database_is_frozen_even_if_the_first_restore_died(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    asyncio.run(back_up(made(tmp_path / "data"), place / "countersign.db"))

    async def die() -> None:
        async with restoring(place, None, uri="", driver="motor") as storage:
            storage.restoring.end = dead
            steps = Restoring(storage=storage, clock=lambda: 1_900_000_000_000)
            freezes = await freezes_of(storage)
            with pytest.raises(KilledError):
                await go_back(steps, freezes, by="cli:root@db1", is_shared=False, say=print)

    async def dead() -> None:
        raise KilledError

    asyncio.run(die())
    said: list[str] = []
    environ = {"COUNTERSIGN_DATA_DIR": str(place)}
    assert main(["restore"], environ=environ, say=said.append) == 0
    assert "The copy ends at 2027-01-15 08:00:00 UTC." in said[0]
    assert "1 pending request will be asked again, and 1 thread that was not at rest" in said[0]
    assert "countersign unfreeze f1 WHY" in said[1]
    said.clear()
    assert main(["freezes"], environ=environ, say=said.append) == 0
    assert said[0].startswith("f1  all  since ")
    assert main(["audit", "list", "--action", "frozen"], environ=environ, say=said.append) == 0
    assert "cli:root@db1" in said[1]


def test_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, copy = made(tmp_path / "data"), tmp_path / "copy.db"
    asyncio.run(back_up(data, copy))
    before = (data / "countersign.db").read_bytes()

    assert main(["restore", str(copy), "--data-dir", str(data)], environ={}) == FAILED
    assert "nothing is overwritten; move the files" in capsys.readouterr().err
    (data / "countersign.db").rename(tmp_path / "old.db")
    (data / "countersign.db-wal").write_bytes(b"of the lost one")
    assert main(["restore", str(copy), "--data-dir", str(data)], environ={}) == FAILED
    assert (tmp_path / "old.db").read_bytes() == before


FOREIGN = "it is not a database of Countersign"
UNUSABLE = {
    "missing": "there is no copy",
    "damaged": "cannot be used",
    "newer": "version 99",
    "empty": FOREIGN,
    "foreign": FOREIGN,
    "foreign, of our version": FOREIGN,
}


def unusable(copy: Path, kind: str) -> None:
    """Make a file that is no copy of ours, or one that this release cannot read."""
    if kind == "damaged":
        copy.write_bytes(b"this is no database" * 100)
    if kind == "empty":
        copy.touch()
    if kind == "newer":
        asyncio.run(back_up(made(copy.with_name("first")), copy))
        change(copy, "PRAGMA user_version = 99")
    if kind.startswith("foreign"):
        change(copy, "CREATE TABLE notes (body TEXT)")
    if kind == "foreign, of our version":
        change(copy, f"PRAGMA user_version = {DATABASE_VERSION}")


def change(file: Path, sql: str) -> None:
    with closing(sqlite3.connect(file)) as database:
        database.execute(sql)


@pytest.mark.parametrize("kind", UNUSABLE)
def test_a_copy_that_cannot_be_used_leaves_nothing(
    tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    copy, data = tmp_path / "copy.db", tmp_path / "d"
    unusable(copy, kind)
    assert main(["restore", str(copy), "--data-dir", str(data)], environ={}) == FAILED
    assert UNUSABLE[kind] in capsys.readouterr().err
    left = ["countersign.lock"] if kind == "newer" else []  # a lock is never deleted
    assert [file.name for file in data.glob("*")] == left


@pytest.mark.parametrize("kind", [kind for kind in UNUSABLE if kind != "missing"])
def test_a_file_that_cannot_be_used_is_not_made_ready_in_place(
    tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "d" / "countersign.db"
    file.parent.mkdir()
    unusable(file, kind)
    before = file.read_bytes()
    assert main(["restore", "--data-dir", str(file.parent)], environ={}) == FAILED
    assert capsys.readouterr().err
    assert file.read_bytes() == before


def test_a_running_bot_is_not_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, copy = made(tmp_path / "data"), tmp_path / "copy.db"
    asyncio.run(back_up(data, copy))

    async def beside() -> int:
        storage = SqliteStores(data)
        await storage.open()
        argv = ["restore", str(copy), "--data-dir", str(data)]
        code = await asyncio.to_thread(main, argv, environ={})
        await storage.close()
        return code

    assert asyncio.run(beside()) == FAILED
    assert "in use by another Countersign" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "uri", "words"),
    [
        (["restore", "--data-dir", "nowhere"], "", "name the backup"),
        (["restore", "x.db"], "mongodb://127.0.0.1:1/", "put that database back with mongorestore"),
    ],
)
def test_each_database_has_its_form(
    argv: list[str], uri: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv, environ={"MONGODB_URI": uri}) == FAILED
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("is_in_copy", [True, False], ids=["at rest", "unknown"])
async def test_i5_a_call_of_a_thread_gone_back_never_has_the_key_of_one_that_ran(
    drill: Drill, *, is_in_copy: bool
) -> None:
    office = await drill.start(say("Hi."), PAY, say("Paid."))
    if is_in_copy:
        await office.hear("<@UBOT> hello")
    await drill.make_copy()
    if not is_in_copy:
        await office.hear("<@UBOT> hello")
    await office.hear(ASK, ts="1800000000.000002")
    await office.decide(await office.the_approval())

    # A model that counts its calls from 1 gives the new one the same id, in a turn of that number.
    more = call("pay", {"to": "Mia", "amount": 7}, id="c1")
    hello = [] if is_in_copy else [say("Hi.")]
    again = await drill.go_back(office, *hello, more, say("Paid."))
    await look(again)
    if not is_in_copy:
        await again.hear("<@UBOT> hello", ts="1800000000.000003")
    await again.hear(ASK, ts="1800000000.000004")
    await again.decide(await again.the_approval())

    assert (len(office.keys), len(again.keys)) == (1, 1)
    assert office.keys != again.keys


async def test_i5_a_call_that_waited_in_the_copy_keeps_its_key(drill: Drill) -> None:
    office = await drill.start(PAY, say("Paid."))
    await office.hear(ASK)
    await drill.make_copy()
    await office.decide(await office.the_approval())

    again = await drill.go_back(office, say("Paid."))
    await look(again)
    await again.decide(await again.the_approval())

    assert office.keys == again.keys != []


def test_the_command_goes_back_and_says_what_comes(tmp_path: Path) -> None:
    data = made(tmp_path / "data")
    said: list[str] = []
    environ = {"COUNTERSIGN_DATA_DIR": str(tmp_path / "new")}
    copy = tmp_path / "copy.db"
    asyncio.run(back_up(data, copy))

    assert main(["restore", str(copy)], environ=environ, say=said.append) == 0

    assert "The copy ends at 2027-01-15 08:00:00 UTC." in said[0]
    assert "1 pending request will be asked again, and 1 thread that was not at rest" in said[0]
    assert said[1].endswith("no call starts until you type: countersign unfreeze f1 WHY")
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == [
        "countersign.db",
        "countersign.lock",
    ]
    assert (tmp_path / "new" / "countersign.db").stat().st_mode & 0o777 == 0o600
