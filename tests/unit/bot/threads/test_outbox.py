"""Private answers: on record before they are told, told once, and given up at last."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from agents.models import call, say
from bot.errors import DeliveryError
from bot.records.messages import EphemeralMessage, Message
from bot.threads import outbox as outbox_module
from bot.words import adding, say as say_here, speaking
from storage.errors import StoreUnavailableError
from tests.support.stores import SqliteStores
from tests.unit.bot.office import ADA, CHANNEL, GUS, ROOT, ROSA, KilledError, Office, an_incoming
from tests.unit.bot.words.test_languages import PSEUDO, longer

PAY = call("pay", {"to": "Mia", "amount": 5}, id="c1")
ASK = "<@UBOT> pay Mia"
FAR = 10**15


async def tell(office: Office, text: str = "Only you.", *, key: str = "1.2.3") -> None:
    await office.outbox.send_ephemeral(
        channel_id=CHANNEL, thread_ts=ROOT, user_id=ADA, text=text, key=key
    )


async def left(office: Office) -> list[EphemeralMessage]:
    return list(await office.storage.ephemeral_messages.due(now_ms=FAR, limit=99))


async def test_the_same_answer_is_told_once(storage: SqliteStores) -> None:
    office = Office(storage, [])
    await tell(office)
    await tell(office)
    await tell(office, "Something else.")
    await tell(office, key="4.5.6")
    await office.queue.run()
    assert len(office.notifier.whispers) == 3


@pytest.mark.parametrize("seconds", [4, 15])
async def test_a_whisper_whose_turn_comes_late_is_told_once(
    storage: SqliteStores, seconds: int
) -> None:
    first = Office(storage, [])
    second = Office(storage, [], clock=first.clock, notifier=first.notifier, owner="second")
    await tell(first)  # and many others are before it
    first.clock.forward(seconds=seconds)
    await second.later()
    await first.queue.run()
    assert first.notifier.whispers == [(ADA, "Only you.")]
    assert await left(first) == []


async def test_a_whisper_that_takes_longer_than_its_lease_is_told_later(
    storage: SqliteStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    office = Office(storage, [])
    monkeypatch.setattr(outbox_module, "ATTENDANCE", timedelta(milliseconds=30))
    send = office.notifier.send_ephemeral

    async def slow(*_: object, **__: object) -> None:
        await asyncio.Event().wait()

    office.notifier.send_ephemeral = slow  # type: ignore[method-assign]
    await tell(office)
    async with asyncio.timeout(60):
        await office.queue.run()
    (waiting,) = await left(office)
    assert waiting.leased_by == ""
    office.notifier.send_ephemeral = send  # type: ignore[method-assign]
    await office.later(minutes=1)
    assert office.notifier.whispers == [(ADA, "Only you.")]


async def test_its_buttons_are_in_the_language_of_its_text_whoever_tells_it(
    storage: SqliteStores,
) -> None:
    office, heard = Office(storage, []), list[str]()
    office.notifier.failing.add("send_ephemeral")
    send = office.notifier.send_ephemeral

    async def listening(*args: Any, **named: Any) -> None:
        heard.append(say_here("button.edit"))
        await send(*args, **named)

    office.notifier.send_ephemeral = listening  # type: ignore[method-assign]
    with adding(PSEUDO):
        with speaking("eo"):
            await tell(office)
        await office.queue.run()
        await office.later(minutes=1)
        await tell(office, text="Another.", key="m2")
        await office.queue.run()
    assert heard == [longer("Edit…"), longer("Edit…"), "Edit…"]


async def test_a_fault_that_may_pass_is_tried_again_for_some_minutes(storage: SqliteStores) -> None:
    office = Office(storage, [])
    office.notifier.failing.add("send_ephemeral")
    await tell(office)
    await office.queue.run()
    (waiting,) = await left(office)
    assert waiting.due_ms is not None
    assert 5_000 <= waiting.due_ms - office.clock() <= 6_250
    for _ in range(20):
        await office.later(seconds=40)
    assert await left(office) == []
    assert office.notifier.whispers == []


async def test_slack_says_when(storage: SqliteStores) -> None:
    office = Office(storage, [])
    office.notifier.failing.add("send_ephemeral")
    office.notifier.faults["send_ephemeral"] = DeliveryError(
        "x", "y", retry_after=timedelta(seconds=60)
    )
    await tell(office)
    await office.queue.run()
    assert [message.due_ms for message in await left(office)] == [office.clock() + 60_000]


async def test_what_slack_will_never_take_is_left(
    storage: SqliteStores, caplog: pytest.LogCaptureFixture
) -> None:
    office = Office(storage, [])
    office.notifier.failing.add("send_ephemeral")
    office.notifier.faults["send_ephemeral"] = DeliveryError(
        "chat.postEphemeral", "user_not_in_channel"
    )
    await tell(office, "secret words")
    await office.queue.run()
    assert await left(office) == []
    assert "whisper_failed" in [getattr(record, "action", "") for record in caplog.records]
    assert "secret words" not in caplog.text


@pytest.mark.parametrize("is_slow", [True, False])
async def test_without_a_database_it_is_told_all_the_same(
    storage: SqliteStores,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    is_slow: bool,
) -> None:
    office = Office(storage, [])
    monkeypatch.setattr(outbox_module, "RECORD_PATIENCE", timedelta(milliseconds=5))

    async def away(_: EphemeralMessage) -> bool:
        if is_slow:
            await asyncio.Event().wait()
        raise StoreUnavailableError("gone")

    storage.ephemeral_messages.insert = away  # type: ignore[method-assign,assignment]
    await tell(office)
    await office.queue.run()
    assert office.notifier.whispers == [(ADA, "Only you.")]
    (warning,) = [text for text in caplog.messages if "could not record" in text]
    assert ("no answer in time" if is_slow else "gone") in warning


# ---- where they come from ------------------------------------------------------------------------


async def test_nothing_is_sent_before_an_event_is_acknowledged(storage: SqliteStores) -> None:
    office = Office(storage, [PAY])
    await office.hear(ASK)
    for text, ts in [("and tell me how it went", "2"), ("yes, approve", "3")]:
        await office.inbox.receive(an_incoming(text, ts=f"1800000000.00000{ts}"))
        assert office.notifier.whispers == []
    assert len(await left(office)) == 2
    await office.queue.run()
    assert [user for user, _ in office.notifier.whispers] == [ROSA, ROSA]


async def test_a_stranger_is_told_though_the_process_dies(storage: SqliteStores) -> None:
    office = Office(storage, [say("never")])
    take = storage.inbox.take

    async def dies(*_: object, **__: object) -> Sequence[Message]:
        raise KilledError

    storage.inbox.take = dies  # type: ignore[method-assign]
    with pytest.raises(KilledError):
        await office.hear(ASK, user_id=GUS)
    office.queue.drop()
    storage.inbox.take = take  # type: ignore[method-assign]
    second = Office(storage, [say("never")], clock=office.clock, owner="second")
    second.clock.forward(minutes=1)
    for _ in range(2):
        await second.later()
    assert second.notifier.whispers == [
        (GUS, "I didn't pass this on to the agent. Guests can't do this.")
    ]
    assert second.model.calls == 0
