"""The drill: a copy, a decision after it, the loss of the database, the restore, the card again."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bot.commands.cli import main
from bot.errors import CopyInPlaceError
from bot.layout.action_ids import ActionId
from tests.scenario.calls.batch_agents import RAN
from tests.support.mongo import DRIVERS, MongoServer, own_client
from tests.support.stage import APPROVE, Stage, a_stage, buttons

ASK = "@countersign deploy payments 1.4.2 to production"
LIVE = r"^Done\. To go back: “roll back payments in production”"
BACK = r"Asking again\.\* My database was restored to <!date\^\d+\^.* UTC>"


@dataclass
class Place:
    """How a database is copied, lost and put back.

    Attributes:
        environ: Names it.
        copy: Makes a copy, while the bot runs.
        lose: Puts the copy back, or makes room for it; no bot runs.
        argv: The command that follows.
    """

    environ: dict[str, str]
    copy: Callable[[], object]
    lose: Callable[[], object]
    argv: list[str]


def an_embedded(tmp_path: Path) -> Place:
    data, copy = tmp_path / "data", tmp_path / "copy.db"
    environ = {"COUNTERSIGN_DATA_DIR": str(data)}

    def lose() -> None:
        for file in data.glob("countersign.db*"):
            file.unlink()

    return Place(
        environ=environ,
        copy=lambda: main(["backup", str(copy)], environ=dict(environ)),
        lose=lose,
        argv=["restore", str(copy)],
    )


def a_shared(server: MongoServer, driver: str) -> Place:
    """As mongodump and mongorestore do it, while nobody writes."""
    name = server.new_database()
    kept: dict[str, list[dict[str, Any]]] = {}

    def copy() -> None:
        with own_client(server.uri) as client:
            for _ in range(200):  # one with a lease in it is refused for as long as that lasts
                for collection in client[name].list_collection_names():
                    kept[collection] = list(client[name][collection].find())
                records = [record for part in ("threads", "approvals") for record in kept[part]]
                if not any(record["_work"]["leased_until_ms"] for record in records):
                    return

    def put_back() -> None:
        with own_client(server.uri) as client:
            for collection, documents in kept.items():
                client[name][collection].delete_many({})
                if documents:
                    client[name][collection].insert_many(documents)

    environ = {"MONGODB_URI": server.uri_of(name), "COUNTERSIGN_MONGO_DRIVER": driver}
    return Place(environ=environ, copy=copy, lose=put_back, argv=["restore"])


@pytest.fixture(
    params=["embedded", *(pytest.param(driver, marks=pytest.mark.mongo) for driver in DRIVERS)]
)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "embedded":
        return an_embedded(tmp_path)
    return a_shared(request.getfixturevalue("mongo_server"), request.param)


@pytest.fixture
async def stage(place: Place, tmp_path: Path) -> AsyncIterator[Stage]:
    async with a_stage(tmp_path, "socket", **place.environ) as opened:
        yield opened


async def back_to_copy(stage: Stage, place: Place) -> str:
    """Lose the database, put the copy back, lift its freeze, and start again.

    Return what the command said.
    """
    await stage.stop_bot()
    place.lose()
    said: list[str] = []
    argv, environ = place.argv, dict(place.environ)
    code = await asyncio.to_thread(main, argv, environ=environ, say=said.append)
    assert (code, len(said)) == (0, 2), said
    assert "Everything is frozen" in said[1]
    lift = ["unfreeze", "nothing newer was frozen"]
    assert await asyncio.to_thread(main, lift, environ=environ) == 0
    stage.clock.follow()  # the command has its time from the system
    await stage.start_bot()
    return said[0]


async def test_i8_a_card_decided_after_the_copy_has_live_buttons_and_a_warning_after_the_restore(
    stage: Stage, place: Place
) -> None:
    card = await stage.asked(ASK, word=APPROVE)
    await stage.tick()
    await stage.rest()  # a copy with a lease in it is refused for as long as that lasts
    await asyncio.to_thread(place.copy)
    await stage.click("Ada", card, APPROVE)
    await stage.said(LIVE)
    assert buttons(await stage.card(word="Approved")) == []
    said = await back_to_copy(stage, place)
    assert "1 pending request will be asked again" in said

    again = await stage.card(word="Asking again")
    assert len(stage.cards()) == 1
    assert buttons(again)[0] == APPROVE
    assert re.search(BACK, str(again["blocks"]))
    assert "may have run. Check before you approve" in again["text"]
    await stage.click("Ada", again, APPROVE)
    await stage.card(word="Approved")
    assert buttons(stage.cards()[0]) == []


async def test_i5_a_clock_that_is_behind_the_copy_makes_nothing_of_it_run(
    stage: Stage, place: Place
) -> None:
    """The command has its time from the system, years before the end of the copy."""
    stage.clock.forward(hours=20_000)
    card = await stage.asked(ASK, word=APPROVE)
    await stage.say("Rosa", "@countersign and deploy search, too", thread_ts=card["thread_ts"])
    await stage.tick()
    await stage.rest()
    await asyncio.to_thread(place.copy)
    await stage.click("Ada", card, APPROVE)
    await stage.said(LIVE)
    said = await back_to_copy(stage, place)
    assert "The clock of this machine is behind that moment" in said

    again = await stage.card(word="Asking again")
    await stage.said("If you still need something")
    assert buttons(again)[0] == APPROVE
    await stage.rest()
    assert len([text for text in stage.texts() if re.search(LIVE, text)]) == 1


async def test_i5_a_bot_does_not_run_on_a_copy_that_was_put_in_place_by_hand(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = an_embedded(tmp_path)
    async with a_stage(tmp_path, "socket", **place.environ) as stage:
        card = await stage.asked(ASK, word=APPROVE)
        await stage.rest()
        await asyncio.to_thread(place.copy)
        await stage.click("Ada", card, APPROVE)
        await stage.said(LIVE)
        await stage.stop_bot()
        place.lose()
        shutil.copy(tmp_path / "copy.db", tmp_path / "data" / "countersign.db")

        with pytest.raises(CopyInPlaceError, match="type: countersign restore"):
            await stage.start_bot()

        assert await asyncio.to_thread(main, ["restore"], environ=dict(place.environ)) == 0
        stage.clock.follow()
        await stage.start_bot()
        again = await stage.card(word="Asking again")
        assert buttons(again)[0] == APPROVE


async def test_i8_what_was_on_one_card_is_asked_again_one_by_one_and_posted_once(
    tmp_path: Path,
) -> None:
    """Each got a card of its own after the copy, which knows nothing of that: they are found."""
    place = an_embedded(tmp_path)
    agent = {"COUNTERSIGN_AGENT": "tests.scenario.calls.batch_agents:clerk"}
    async with a_stage(tmp_path, "socket", **place.environ, **agent) as shop:
        card = await shop.asked("@countersign refund 3", word="need approval")
        await shop.rest()
        shop.clock.forward(seconds=16)  # a copy with a lease in it is refused
        await asyncio.to_thread(place.copy)
        await shop.choose("Ada", card, ActionId.BATCH_SPLIT)
        own = [await shop.card(number=number, word=APPROVE) for number in (2, 3, 4)]
        await shop.click("Ada", own[1], APPROVE)
        await shop.card(number=3, word="pproved by")
        await shop.rest()
        RAN.clear()

        assert "3 pending requests will be asked again" in await back_to_copy(shop, place)
        again = [await shop.card(number=number, word="Asking again") for number in (2, 3, 4)]
        await shop.rest()
        assert [message["ts"] for message in again] == [message["ts"] for message in own]
        assert len(shop.cards()) == 4
        assert buttons(shop.cards()[0]) == []
        assert "its own card" in str(shop.cards()[0])
        assert all(re.search(BACK, str(message["blocks"])) for message in again)
        for renewed in again:
            assert buttons(renewed)[0] == APPROVE
            await shop.click("Ada", renewed, APPROVE)
        await shop.sandbox.until(lambda: len(RAN) == 3)
        assert len(shop.cards()) == 4
