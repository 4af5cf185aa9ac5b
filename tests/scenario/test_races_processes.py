"""The same race on a smaller scale, with everything real: processes, sockets, Slack's answers."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from itertools import cycle
from pathlib import Path
from random import Random
from typing import Any

import pytest

from bot.layout.action_ids import ActionId
from slack_sandbox.errors import RefusedError
from slack_sandbox.server import Sandbox
from slack_sandbox.workspace.records import SlackChannel
from tests.chaos.agent import EFFECTS, KINDS, effects
from tests.scenario.calls.batch_agents import EFFECTS as REFUNDS
from tests.scenario.storage.test_restarts import Process, environ_of
from tests.support.mongo import DRIVERS, MongoServer
from tests.support.sizes import size
from tests.support.stage import APPROVE, a_sandbox, buttons

CARDS, CLICKS = size(3, 5), size(20, 40)
CROWD = ("Ada", "Ada", "Ben", "Mia", "Rosa", "Gus")
TOLD = {"Rosa": "approve your own request", "Gus": "Guests can't"}


class Bots:
    """Two bots on one database."""

    def __init__(self, sandbox: Sandbox, uri: str, directory: Path, **environ: str) -> None:
        self._environ = environ
        self._sandbox = sandbox
        self._uri = uri
        self._drivers = cycle(DRIVERS)
        self._directory = directory
        self.file = directory / "effects"
        self._running: list[Process] = []

    async def start(self) -> None:
        """Start one, and wait until it takes payloads."""
        environ = environ_of(self._sandbox, self._directory) | {
            "COUNTERSIGN_AGENT": "tests.chaos.agent:build",
            "COUNTERSIGN_LOG": "warning",
            "MONGODB_URI": self._uri,
            "COUNTERSIGN_MONGO_DRIVER": next(self._drivers),
            EFFECTS: str(self.file),
            **self._environ,
        }
        log = self._directory / f"bot-{environ['COUNTERSIGN_PORT']}.log"
        process = Process(environ, log)
        self._running.append(process)
        await process.start()

    async def restart(self) -> None:
        """Ask the older one to stop, wait until it has, and start another one."""
        await asyncio.to_thread(self._running.pop(0).stop, 15)
        await self.start()

    def close(self) -> None:
        """Stop what runs."""
        for process in self._running:
            process.stop(60)


class Street:
    """The cards, and everybody who clicks on them."""

    def __init__(self, sandbox: Sandbox, channels: list[str]) -> None:
        self.sandbox = sandbox
        self.channels = channels
        self.clicks: Counter[tuple[int, str]] = Counter()
        """How often each person clicked on each card, and the click was taken."""

    def cards(self) -> list[dict[str, Any]]:
        """The cards, by channel."""
        return [
            message
            for channel in self.channels
            for message in self.sandbox.messages(channel)
            if (message.get("metadata") or {}).get("event_type") == "countersign_card"
        ]

    async def press(self, card: int, who: str, payload: dict[str, Any]) -> None:
        """Click, and once more while Slack shows an error."""
        for _ in range(100):
            try:
                await self.sandbox.send_interaction(payload)
            except RefusedError:
                await asyncio.sleep(0.1)  # people are not faster
            else:
                self.clicks[card, who] += 1
                return
        raise AssertionError("a click was never taken")

    def answers_to(self, card: int, who: str) -> list[str]:
        """What a person was told about a card."""
        thread_ts = self.cards()[card]["thread_ts"]
        messages = self.sandbox.ephemerals(self.sandbox.user_id(who))
        return [message["text"] for message in messages if message["thread_ts"] == thread_ts]

    def is_told(self) -> bool:
        """Whether everybody has an answer to every click, but those who won."""
        missing = [n - len(self.answers_to(*key)) for key, n in self.clicks.items()]
        return sum(missing) <= CARDS and all(count <= 1 for count in missing)


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    async with a_sandbox() as opened:
        yield opened


def channels_of(sandbox: Sandbox) -> list[str]:
    """A channel for each card: Slack takes one message a second in each."""
    everybody = [sandbox.user_id(name) for name in ("Rosa", "Ada", "Ben", "Mia", "Gus")]
    channels = [SlackChannel(id=f"C0RACE{n:04d}", name=f"race-{n}") for n in range(CARDS)]
    for channel in channels:
        channel.members.extend([*everybody, sandbox.user_id("countersign")])
        sandbox.workspace.channels[channel.id] = channel
    return [channel.id for channel in channels]


@pytest.mark.mongo
async def test_i3_i5_i7_many_clicks_on_each_card_during_a_rolling_restart(
    sandbox: Sandbox, mongo_server: MongoServer, tmp_path: Path
) -> None:
    bots = Bots(sandbox, mongo_server.new_uri(), tmp_path)
    street = Street(sandbox, channels_of(sandbox))
    try:
        await asyncio.gather(bots.start(), bots.start())
        for number, channel in enumerate(street.channels):
            rosa = sandbox.user_id("Rosa")
            await sandbox.say(rosa, channel, f"@countersign please do job {number * KINDS}")
        await sandbox.until(
            lambda: [APPROVE in buttons(card) for card in street.cards()] == [True] * CARDS,
            timeout=20,
        )
        await everybody_clicks(street, bots)
        await sandbox.until(street.is_told, timeout=60)
        await sandbox.until(lambda: not any(map(buttons, street.cards())), timeout=60)
        await sandbox.until(lambda: len(effects(bots.file)) == CARDS, timeout=60)
    finally:
        bots.close()
    check(street)
    assert sorted(done[1] for done in effects(bots.file)) == sorted(
        f"job-{number * KINDS}-1" for number in range(CARDS)
    )


@pytest.mark.mongo
async def test_i3_i5_i7_a_card_of_several_that_people_decide_at_once_in_two_bots(
    sandbox: Sandbox, mongo_server: MongoServer, tmp_path: Path
) -> None:
    """Whoever was first for each of them, each runs once, and the card of all says so."""
    file = tmp_path / "refunds"
    agent = {"COUNTERSIGN_AGENT": "tests.scenario.calls.batch_agents:clerk", REFUNDS: str(file)}
    bots = Bots(sandbox, mongo_server.new_uri(), tmp_path, **agent)
    street = Street(sandbox, channels_of(sandbox)[:1])
    (channel,) = street.channels
    try:
        await asyncio.gather(bots.start(), bots.start())
        await sandbox.say(sandbox.user_id("Rosa"), channel, "@countersign refund 5")
        await sandbox.until(lambda: has_button(sandbox, channel, ActionId.APPROVE_ALL))
        (card,) = cards_of_several(sandbox, channel)
        payloads = [
            (who, sandbox.payload_of_click(sandbox.user_id(who), channel, card["ts"], press))
            for who in ("Ada", "Ben", "Mia")
            for press in (ActionId.APPROVE_ALL, ActionId.BATCH, ActionId.APPROVE_ALL)
        ]
        await asyncio.gather(*(street.press(0, who, payload) for who, payload in payloads))
        await sandbox.until(
            lambda: "4 ran, 1 failed" in str(cards_of_several(sandbox, channel)), timeout=60
        )
    finally:
        bots.close()
    (card,) = cards_of_several(sandbox, channel)
    assert [action_id for action_id in buttons(card) if action_id != ActionId.BATCH_DETAILS] == []
    assert sorted(file.read_text().split()) == ["1234", "1240", "1251", "1262", "1270"]
    assert street.cards() == [], "nothing left it"


def cards_of_several(sandbox: Sandbox, channel: str) -> list[dict[str, Any]]:
    """The cards of several in a channel."""
    return [
        message
        for message in sandbox.messages(channel)
        if (message.get("metadata") or {}).get("event_type") == "countersign_batch"
    ]


def has_button(sandbox: Sandbox, channel: str, press: str) -> bool:
    """Whether the cards of several have a button."""
    return any(press in buttons(card) for card in cards_of_several(sandbox, channel))


async def everybody_clicks(street: Street, bots: Bots) -> None:
    """All at once, in three waves; in the second and the third, one of the bots is away."""
    random = Random(11)  # noqa: S311 - not for secrets
    clicks = [(card, random.choice(CROWD)) for card in range(CARDS) for _ in range(CLICKS)]
    random.shuffle(clicks)
    shown = street.cards()
    ready = [
        (
            card,
            who,
            street.sandbox.payload_of_click(
                street.sandbox.user_id(who), street.channels[card], shown[card]["ts"], APPROVE
            ),
        )
        for card, who in clicks
    ]
    for wave in range(3):
        presses = [street.press(*click) for click in ready[wave::3]]
        restart = asyncio.create_task(bots.restart()) if wave else None
        if restart is not None:
            # What is on its way when a bot stops is answered by another one 15 seconds later.
            await street.sandbox.until(lambda: street.sandbox.connections < 2)
        await asyncio.gather(*presses)
        if restart is not None:
            await restart


def check(street: Street) -> None:
    """One decision per card; everybody else was told whose."""
    assert sum(street.clicks.values()) == CARDS * CLICKS
    for number, card in enumerate(street.cards()):
        approvers = ("Ada", "Ben", "Mia")
        (winner,) = (
            name for name in approvers if street.sandbox.user_id(name) in str(card["blocks"])
        )
        for who in set(CROWD):
            texts = street.answers_to(number, who)
            assert len(texts) >= street.clicks[number, who] - (who == winner)
            for text in texts:
                refused = who in TOLD and TOLD[who] in text
                by = f"<@{street.sandbox.user_id(winner)}> was first: approved"
                assert refused or by in text, text
