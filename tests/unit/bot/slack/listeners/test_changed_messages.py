"""Messages that people edit or delete, and files, in the payloads that Slack sends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from agents.models import say
from bot.ports.people import Person
from bot.records.approval import Status
from bot.threads.message_event import NO_TURN
from bot.words import say as words
from tests.support.fakes import FakeDirectory
from tests.support.stores import SqliteStores
from tests.unit.bot.approvals.test_votes import an_office
from tests.unit.bot.counter_stage import ASK, Counter, an_event
from tests.unit.bot.office import ADA, BOT, CHANNEL, ROOT, ROSA, THREAD_ID, Office, an_incoming

LATER = "1800000100.000001"


def a_message(text: str, *, ts: str = LATER, user: str = ROSA, **more: object) -> dict[str, Any]:
    """A message as events hold it."""
    return {
        "type": "message",
        "user": user,
        "ts": ts,
        "thread_ts": ROOT,
        "client_msg_id": "7f6e7a1c-0000-4000-8000-000000000001",
        "text": text,
        "team": "T1",
        "blocks": [{"type": "rich_text", "block_id": "x", "elements": []}],
        **more,
    }


def an_edit(before: dict[str, Any], text: str, *, at: str = "1800000200.000002") -> dict[str, Any]:
    after = {**before, "text": text, "edited": {"user": before["user"], "ts": at}}
    return changed("message_changed", message=after, previous_message=before)


def a_deletion(before: dict[str, Any]) -> dict[str, Any]:
    return changed("message_deleted", deleted_ts=before["ts"], previous_message=before)


def changed(subtype: str, **more: object) -> dict[str, Any]:
    return an_event() | {
        "event": {
            "type": "message",
            "subtype": subtype,
            "channel": CHANNEL,
            "hidden": True,
            "ts": "1800000200.000003",
            "event_ts": "1800000200.000003",
            "channel_type": "channel",
            **more,
        }
    }


async def waiting(counter: Counter, text: str = "it is 6") -> dict[str, Any]:
    """A message of Rosa's that waits behind her card."""
    await counter.office.hear(text, ts=LATER)
    return a_message(text)


async def new_texts(office: Office) -> list[str]:
    return [message.text for message in await office.storage.inbox.new(THREAD_ID, limit=9)]


async def test_the_edit_of_a_message_that_was_read_is_told_so_once(counter: Counter) -> None:
    root = a_message(ASK, ts=ROOT)
    edit = an_edit(root, f"{ASK} at once")
    await counter.send(edit)
    await counter.send(edit)  # again, as Slack sends it
    late = [who for who, text in counter.office.notifier.whispers if "already" in text]
    assert late == [ROSA]
    (read,) = await counter.office.storage.inbox.of_turn(THREAD_ID, 1)
    assert read.text == "pay Mia"


async def test_a_preview_of_a_link_is_no_edit(counter: Counter) -> None:
    root = a_message(ASK, ts=ROOT)
    after = {**root, "attachments": [{"title": "A page"}]}
    await counter.send(changed("message_changed", message=after, previous_message=root))
    assert counter.office.notifier.whispers == []


@pytest.mark.parametrize("former", [{}, {"previous_message": {}}, {"previous_message": None}])
@pytest.mark.parametrize("edited", [None, {"user": ROSA, "ts": "1800000100.000000"}])
async def test_a_preview_without_the_former_message_is_no_edit(
    counter: Counter, former: dict[str, Any], edited: object
) -> None:
    root = a_message(ASK, ts=ROOT, attachments=[{"title": "A page"}], edited=edited)
    await counter.send(changed("message_changed", message=root, **former))
    forgotten = a_message(ASK, ts="1700000000.000001", thread_ts="1700000000.000001", edited=edited)
    await counter.send(changed("message_changed", message=forgotten, **former))
    assert counter.office.notifier.whispers == []
    assert len(await counter.office.storage.inbox.of_turn(THREAD_ID, 1)) == 1
    assert counter.office.model.calls == 1


async def test_an_edit_without_the_former_message_is_an_edit(counter: Counter) -> None:
    await waiting(counter)
    now = {"user": ROSA, "ts": "1800000200.000000"}
    await counter.send(changed("message_changed", message=a_message("it is 7", edited=now)))
    assert await new_texts(counter.office) == ["it is 7"]
    unknown = a_message(ASK, ts="1800000199.000001", thread_ts="1800000199.000001", edited=now)
    await counter.send(changed("message_changed", message=unknown))
    assert counter.office.model.calls == 1


async def test_edits_between_people_are_left_alone(counter: Counter) -> None:
    await counter.send(an_edit(a_message("lunch?", user=ADA), "lunch at one?"))
    assert counter.office.notifier.whispers == []
    assert await new_texts(counter.office) == []


async def test_a_deleted_message_that_waits_is_dropped(counter: Counter) -> None:
    before = await waiting(counter)
    await counter.send(a_deletion(before))
    office = counter.office
    assert await new_texts(office) == []
    assert [message.text for message in await office.storage.inbox.of_turn(THREAD_ID, NO_TURN)] == [
        ""
    ]
    assert office.notifier.cards[(await office.the_approval()).approval_id].said == ()


@dataclass
class SlowDirectory(FakeDirectory):
    """A directory in which a message is deleted while the approvers are looked up."""

    counter: Counter | None = None

    async def person(self, user_id: str) -> Person:
        counter = self.counter
        if counter is not None and counter.office.model.calls:
            self.counter = None
            await counter.send(a_deletion(a_message(ASK, ts=ROOT)))
        return await super().person(user_id)


@pytest.mark.parametrize("effect", ["keep", "withdraw"])
async def test_a_deletion_before_the_card_counts_when_the_card_comes(
    storage: SqliteStores, effect: str
) -> None:
    directory = SlowDirectory()
    terms = {"approve": [{"from": ["security"]}], "on_delete": effect}
    office = an_office(storage, terms, directory=directory)
    directory.counter = Counter.on(office)
    await office.inbox.receive(an_incoming(ASK))
    await office.threads.work(THREAD_ID)
    await office.queue.run()
    (approval,) = office.notifier.cards.values()
    if effect == "withdraw":
        assert approval.status is Status.WITHDRAWN
        assert words("message.ask_deleted_withdrawn") in office.notifier.whispers[-1][1]
    else:
        assert (approval.status, approval.ask_deleted) == (Status.PENDING, ROSA)
        assert office.notifier.offered == [[approval.approval_id]]


async def test_the_deletion_of_a_message_that_no_agent_reads_wakes_no_thread(
    counter: Counter,
) -> None:
    said, storage = await waiting(counter), counter.office.storage
    (message,) = await storage.inbox.new(THREAD_ID, limit=9)
    await storage.inbox.take([message.message_id], turn=NO_TURN)
    before = await storage.threads.get(THREAD_ID)
    await counter.send(a_deletion(said))
    assert await storage.threads.get(THREAD_ID) == before


async def test_a_deletion_is_told_once(counter: Counter) -> None:
    for _ in range(2):
        await counter.send(a_deletion(a_message(ASK, ts=ROOT)))
    await counter.office.threads.work(THREAD_ID)
    assert len(counter.office.notifier.offered) == 1


async def test_a_root_that_is_deleted_before_it_is_read_starts_nothing(
    storage: SqliteStores,
) -> None:
    office = Office(storage, [])
    counter = Counter.on(office)
    await office.inbox.receive(an_incoming(ASK))
    await counter.send(a_deletion(a_message(ASK, ts=ROOT)))
    await office.threads.work(THREAD_ID)
    await office.queue.run()
    assert office.model.calls == 0
    assert office.shown() == []


async def test_a_root_with_replies_leaves_a_tombstone_and_the_thread_goes_on(
    counter: Counter,
) -> None:
    root = a_message(ASK, ts=ROOT)
    tomb = {
        "type": "message",
        "subtype": "tombstone",
        "user": "USLACKBOT",
        "ts": ROOT,
        "thread_ts": ROOT,
        "text": "This message was deleted.",
        "hidden": True,
    }
    event = changed("message_changed", message=tomb, previous_message=root)
    assert (await counter.send(event)).status == 200
    office = counter.office
    await office.decide(await office.the_approval())
    assert [name for name, _ in office.ran] == ["pay"]


async def test_files_are_refused_once_and_the_words_are_taken(storage: SqliteStores) -> None:
    office = Office(storage, [say("Thanks."), say("Again.")])
    counter = Counter.on(office)
    for ts in (ROOT, LATER):
        event = a_message(f"<@{BOT}> see this", ts=ts, subtype="file_share", channel=CHANNEL)
        event["files"] = [{"id": "F1", "mimetype": "image/png", "url_private": "https://x"}]
        await counter.send(an_event() | {"event": event})
    assert office.shown() == ["Thanks.", "Again."]
    assert office.notifier.whispers == [(ROSA, words("refuse.files"))]
