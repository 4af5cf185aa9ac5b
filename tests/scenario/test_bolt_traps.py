"""The traps of Bolt and Slack (reference/slack.md, parts 0 and 11), each against the whole bot.

The numbers in the names are those of part 0; a letter stands for a row of part 11.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any, cast

import aiohttp
import pytest
from pydantic_ai.models import Model

from agents import Agent, ChatModelAgent, ScriptedModel, tool
from agents.models import call, say
from bot.errors import SettingsError
from bot.records.messages import InboxStore, Message
from slack_sandbox import RefusedError
from slack_sandbox.delivery.http import HttpTransport, Parcel
from slack_sandbox.server import Sandbox
from storage.errors import StoreUnavailableError
from tests.support.mongo import DRIVERS, MongoServer
from tests.support.stage import (
    APPROVE,
    PATIENCE_S,
    REJECT,
    SECRET,
    Stage,
    Transport,
    a_bot,
    a_sandbox,
    a_stage,
    buttons,
)

ASK = "@countersign deploy payments 1.4.2 to production"
BOTH: Sequence[Transport] = ("socket", "http")


ENDLESS_S = 3_600.0
"""A delay that lasts until the sandbox ends: whatever happens before has not waited for it."""


async def sleep(seconds: float) -> None:
    """Wait in the sandbox; an endless delay ends with it."""
    if seconds == ENDLESS_S:
        await asyncio.Event().wait()
    await asyncio.sleep(seconds)


def a_keen_sandbox(*, ack_timeout: float = PATIENCE_S) -> Sandbox:
    """A sandbox that repeats soon."""
    return a_sandbox(ack_timeout=ack_timeout, retry_delays=(0, 0.1, 0.2), sleep=sleep)


@pytest.fixture(params=BOTH)
async def stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stage]:
    async with a_keen_sandbox() as sandbox, a_bot(sandbox, tmp_path, request.param) as opened:
        yield opened


@pytest.fixture(params=BOTH)
async def impatient(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stage]:
    """On a socket, the bot says nothing about an event that failed: Slack waits in vain."""
    async with (
        a_keen_sandbox(ack_timeout=1.5) as sandbox,
        a_bot(sandbox, tmp_path, request.param) as opened,
    ):
        yield opened


@pytest.fixture
async def on_http(tmp_path: Path) -> AsyncIterator[Stage]:
    async with a_keen_sandbox() as sandbox, a_bot(sandbox, tmp_path, "http") as opened:
        yield opened


@pytest.fixture
async def on_socket(tmp_path: Path) -> AsyncIterator[Stage]:
    async with a_keen_sandbox() as sandbox, a_bot(sandbox, tmp_path, "socket") as opened:
        yield opened


async def a_card(stage: Stage) -> dict[str, Any]:
    await stage.say("Rosa", ASK)
    return await stage.card(word=APPROVE)


async def sooner_or_later(stage: Stage, predicate: Callable[[], object]) -> None:
    """Let the bot's time pass, and its sweep work, until something is true."""
    for _ in range(20):
        try:
            await stage.sandbox.until(predicate, timeout=0.5)
        except TimeoutError:
            await stage.later(seconds=20)
        else:
            return
    raise AssertionError("it did not come true")


def is_final(stage: Stage) -> bool:
    """Whether the only card shows the approval and has no buttons."""
    cards = stage.cards()
    return len(cards) == 1 and "Approved" in str(cards[0]) and not buttons(cards[0])


def is_acknowledged(stage: Stage) -> bool:
    """Whether the newest click or form was, and all before it were."""
    acks = [ack.ok for ack in stage.sandbox.stats.acks if ack.kind == "interactive"]
    return bool(acks) and all(acks)


def is_live(stage: Stage) -> int:
    """How often the deployment took place, as the agent says."""
    return sum(text.startswith("Done.") for text in stage.texts())


def turns_of(stage: Stage) -> int:
    """How often the agent told how payments is."""
    return sum("payments is healthy" in text for text in stage.texts())


async def quiet(stage: Stage) -> None:
    """Wait until nothing is on its way to the bot."""
    await stage.sandbox.until(lambda: stage.sandbox.is_idle)


# ---- 1: an acknowledgement, then an exception ---------------------------------------------------


@pytest.mark.parametrize("effect", ["status", "html", "cut", "error"])
async def test_1_click_is_acknowledged_although_all_that_follows_fails(
    stage: Stage, effect: Any
) -> None:
    card = await a_card(stage)
    stage.sandbox.faults.add(effect, "chat.*")
    stage.sandbox.faults.add(effect, "conversations.replies")
    await stage.click("Ada", card, APPROVE)
    assert is_acknowledged(stage)
    await stage.click("Ben", card, APPROVE)
    stage.sandbox.calm()
    await sooner_or_later(stage, lambda: is_final(stage) and is_live(stage))
    assert stage.user("Ada") in str(stage.cards()[0])
    assert is_live(stage) == 1


async def test_1_click_that_fails_before_its_acknowledgement_is_answered(stage: Stage) -> None:
    card = await a_card(stage)
    stage.sandbox.faults.add("cut", "views.open", times=2)  # of which one may say to wait
    await stage.click("Ada", card, REJECT)
    assert "try again" in await stage.whispered("Ada", ".")
    stage.sandbox.faults.clear()
    await stage.click("Ada", card, REJECT)
    assert (await stage.modal("Ada"))["type"] == "modal"


# ---- 2: blocking code ---------------------------------------------------------------------------


class Gate:
    """A tool that blocks its thread until it is let go, and says when it has begun."""

    begun = threading.Event()
    open = threading.Event()

    @classmethod
    def reset(cls) -> None:
        cls.begun.clear()
        cls.open.clear()


@tool(gate="review", title="Block")
def block() -> str:
    """Block."""
    Gate.begun.set()
    return "done" if Gate.open.wait(timeout=PATIENCE_S) else "never let go"


def blocking(_: Model) -> Agent:
    """Calls a tool that blocks."""
    model = ScriptedModel([call("block", {}, id="c1"), say("It is over.")])
    return ChatModelAgent(name="blocking", model=model, tools=[block])


@pytest.mark.parametrize("transport", BOTH)
async def test_2_tool_that_blocks_delays_no_click(tmp_path: Path, transport: Transport) -> None:
    Gate.reset()
    agent = "tests.scenario.test_bolt_traps:blocking"
    async with (
        a_keen_sandbox() as sandbox,
        a_bot(sandbox, tmp_path, transport, COUNTERSIGN_AGENT=agent) as stage,
    ):
        card = await stage.asked("@countersign go", word=APPROVE)
        try:
            late = sandbox.payload_of_click(stage.user("Ben"), stage.channel, card["ts"], APPROVE)
            await stage.click("Ada", card, APPROVE)
            assert await asyncio.to_thread(Gate.begun.wait, PATIENCE_S)
            await sandbox.send_interaction(late)
            assert "was first" in await stage.whispered("Ben", ".")
            assert is_acknowledged(stage)
        finally:
            Gate.open.set()
        await stage.said("It is over")


async def test_2_slow_slack_is_not_on_the_way_of_an_acknowledgement(stage: Stage) -> None:
    card = await a_card(stage)
    stage.sandbox.faults.add("slow", "chat.*", delay=ENDLESS_S)
    await stage.click("Ada", card, APPROVE)
    assert is_acknowledged(stage)
    stage.sandbox.calm()
    await sooner_or_later(stage, lambda: is_final(stage))


async def test_2_rate_limit_is_not_waited_for_before_an_acknowledgement(stage: Stage) -> None:
    card = await a_card(stage)
    stage.sandbox.faults.add("ratelimited", "*", retry_after=3_600)
    await stage.click("Ada", card, REJECT)
    await stage.click("Ben", card, APPROVE)
    assert is_acknowledged(stage)
    stage.sandbox.calm()


# ---- 3: posts whose answer was lost -------------------------------------------------------------


@pytest.mark.parametrize("skip", [0, 1])
async def test_3_lost_answer_to_a_post_makes_no_second_card(stage: Stage, skip: int) -> None:
    stage.sandbox.faults.add("lost_answer", "chat.postMessage", skip=skip, times=2)
    await stage.say("Rosa", ASK)
    await sooner_or_later(stage, lambda: any(buttons(card) for card in stage.cards()))
    await stage.click("Ada", stage.cards()[0], APPROVE)
    await sooner_or_later(stage, lambda: is_final(stage) and is_live(stage))
    assert stage.sandbox.doubles() == {}


async def test_3_post_that_slack_refuses_for_a_while_comes_once(stage: Stage) -> None:
    stage.sandbox.faults.add("status", "chat.postMessage", status=500, times=1)
    stage.sandbox.faults.add("ratelimited", "chat.postMessage", times=1)
    await stage.say("Rosa", ASK)
    await sooner_or_later(stage, lambda: any(buttons(card) for card in stage.cards()))
    assert len(stage.cards()) == 1
    assert stage.sandbox.doubles() == {}


# ---- 4: what nobody listens to ------------------------------------------------------------------


UNHEARD: list[dict[str, Any]] = [
    {"type": "reaction_added", "user": "U0ADALINDQ", "reaction": "eyes", "item": {}},
    {"type": "channel_archive", "channel": "C0OPSOPS01", "user": "U0ADALINDQ"},
    {"type": "app_home_opened", "user": "U0ADALINDQ", "tab": "home"},
    {"type": "tokens_revoked", "tokens": {"bot": ["U0COUNTERS"]}},
    {"type": "app_uninstalled"},
    {"type": "app_rate_limited", "minute_rate_limited": 1},
    {"type": "an_event_of_next_year"},
    *(
        {"type": "message", "subtype": subtype, "channel": "C0OPSOPS01", "ts": "1.1"}
        for subtype in ("message_changed", "channel_join", "bot_message", "tombstone", "next_year")
    ),
]


async def test_4_events_without_a_listener_are_taken_and_not_sent_again(stage: Stage) -> None:
    for event in UNHEARD:
        stage.sandbox.emit(event)
    await quiet(stage)
    assert stage.sandbox.stats.retries == 0
    assert stage.sandbox.lost_events == []
    assert stage.messages() == []


UNASKED: list[dict[str, Any]] = [
    {"type": "shortcut", "callback_id": "x"},
    {"type": "message_action", "callback_id": "x"},
    {"type": "view_closed", "view": {"type": "modal", "callback_id": "countersign:edit_modal"}},
    {"type": "block_suggestion", "action_id": "x", "block_id": "y", "value": "z"},
    {"type": "block_actions", "actions": [{"action_id": "link", "type": "button"}]},
    {"type": "view_submission", "view": {"type": "modal", "callback_id": "somebody_elses"}},
    {"type": "an_interaction_of_next_year"},
]
BEYOND_BOLT: list[dict[str, Any]] = [
    {"type": "view_submission", "view": {"callback_id": "countersign:edit_modal"}},
    {"type": "view_submission", "view": None},
    {"type": "block_actions", "actions": None},
    {"type": "block_actions", "actions": {}},
]
"""Bolt stumbles over these while it gathers the arguments of its listeners and error handler."""
NONSENSE: list[dict[str, Any]] = [
    {"type": "view_submission"},
    {"type": "view_submission", "view": []},
    {"type": "block_actions"},
    {"type": "block_actions", "actions": [None]},
    {"type": "block_actions", "actions": [{"action_id": 5}], "container": 7, "channel": []},
    {"type": "interactive_message"},
    {"type": None},
    {},
]


async def test_4_interactions_without_a_listener_and_signed_nonsense_are_answered(
    stage: Stage,
) -> None:
    sender = {"user": {"id": stage.user("Ada"), "team_id": "T0ACMEWORK"}}
    for payload in (*UNASKED, *BEYOND_BOLT, *NONSENSE):
        await stage.sandbox.send_interaction({**sender, "team": {"id": "T0ACMEWORK"}, **payload})
        assert is_acknowledged(stage), payload


# ---- 5: one post, several events ----------------------------------------------------------------


MISCHIEF: dict[str, list[dict[str, Any]]] = {
    "none": [],
    "same event id twice": [{"effect": "duplicate", "count": 3}],
    "mention before message": [{"effect": "reorder", "match": "message", "times": 1}],
    "message before mention": [{"effect": "reorder", "match": "app_mention", "delay": 0.2}],
    "answers unheard": [{"effect": "unheard", "count": 3}],
    "only the mention": [{"effect": "drop", "match": "message"}],
    "only the message": [{"effect": "drop", "match": "app_mention"}],
}


@pytest.mark.parametrize("name", MISCHIEF)
async def test_5_one_post_makes_one_turn(stage: Stage, name: str) -> None:
    for fault in MISCHIEF[name]:
        stage.sandbox.faults.add(on="event", **fault)
    await stage.say("Rosa", "@countersign status of payments")
    await stage.said("payments is healthy")
    await quiet(stage)
    await stage.tick()
    assert turns_of(stage) == 1
    assert stage.sandbox.doubles() == {}
    assert stage.sandbox.lost_events == []


async def test_5_event_that_comes_again_after_a_restart_makes_no_second_turn(
    stage: Stage,
) -> None:
    stage.sandbox.faults.add("drop", on="event", times=2)
    ts = await stage.say("Rosa", ASK)
    (message,) = stage.messages()
    place = {"channel": stage.channel, "channel_type": "channel", "event_ts": ts}
    envelope = stage.sandbox.emit({**message, **place})
    await stage.click("Ada", await stage.card(word=APPROVE), APPROVE)
    await sooner_or_later(stage, lambda: is_final(stage) and is_live(stage))
    await stage.restart_bot()
    if stage.transport == "socket":
        await stage.sandbox.until(lambda: stage.sandbox.connections == 1)
    stage.clock.forward(hours=2)
    stage.sandbox.announce(envelope)
    stage.sandbox.emit({**message, **place, "type": "app_mention"})
    await quiet(stage)
    await stage.tick()
    assert stage.sandbox.stats.deliveries[envelope["event_id"]] == 2
    assert is_live(stage) == 1
    assert len(stage.cards()) == 1


# ---- 6: updates ---------------------------------------------------------------------------------


async def test_6_updates_of_cards_carry_text_and_blocks(stage: Stage) -> None:
    card = await a_card(stage)
    await stage.click("Ada", card, APPROVE)
    await sooner_or_later(stage, lambda: is_final(stage) and is_live(stage))
    updates = [
        call.args
        for call in stage.sandbox.calls
        if call.method == "chat.update" and call.args["ts"] == card["ts"]
    ]
    assert updates
    assert all(
        update["text"] and len(update["text"]) <= 4_000 and update["blocks"] for update in updates
    )


# ---- 8: replayed requests -----------------------------------------------------------------------


def a_line_to(stage: Stage) -> HttpTransport:
    """Somebody who sends signed requests; the same payload is the same request, byte for byte."""
    now, url = time.time(), stage.sandbox.events_url
    return HttpTransport(lambda: url, SECRET, clock=lambda: now, patience=5)


async def a_click(stage: Stage) -> Parcel:
    card = await a_card(stage)
    ada = stage.user("Ada")
    payload = stage.sandbox.payload_of_click(ada, stage.channel, card["ts"], APPROVE)
    return Parcel(kind="interactive", payload=payload)


async def test_8_same_signed_click_decides_once(on_http: Stage) -> None:
    stage = on_http
    click, line = await a_click(stage), a_line_to(on_http)
    answers = await asyncio.gather(*(line.send(click) for _ in range(5)))
    await stage.restart_bot()
    answers.append(await line.send(click))
    await line.close()
    assert all(answer.ok for answer in answers)
    await sooner_or_later(stage, lambda: is_final(stage) and is_live(stage))
    assert is_live(stage) == 1


async def test_8_request_with_an_odd_timestamp_is_refused_without_a_word(on_http: Stage) -> None:
    """It is not from Slack: it must not make the bot write to anybody."""
    click = await a_click(on_http)
    form = {"payload": json.dumps(click.payload)}
    url = str(on_http.sandbox.events_url)
    async with aiohttp.ClientSession() as session:
        for stamp in ("-1", str(10**30), "", "soon", "1e9", "١٢٣"):
            headers = {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": "v0=0"}
            async with session.post(url, data=form, headers=headers) as answer:
                assert answer.status >= 400, stamp
                assert "Traceback" not in await answer.text()
    await on_http.say("Rosa", "@countersign status of payments")
    await on_http.said("payments is healthy")
    assert on_http.sandbox.ephemerals(on_http.user("Ada")) == []


# ---- 9: two people at once ----------------------------------------------------------------------


async def test_9_of_many_clicks_at_once_one_decides(stage: Stage) -> None:
    card = await a_card(stage)
    stage.sandbox.faults.add("duplicate", on="interaction", count=4)
    await asyncio.gather(*(stage.click(who, card, APPROVE) for who in ("Ada", "Ben")))
    await quiet(stage)
    await sooner_or_later(stage, lambda: is_final(stage) and is_live(stage))
    assert is_live(stage) == 1
    texts = [
        message["text"]
        for who in ("Ada", "Ben")
        for message in stage.sandbox.ephemerals(stage.user(who))
    ]
    assert texts
    assert all("was first" in text or "approved" in text.lower() for text in texts)


# ---- 12: the environment ------------------------------------------------------------------------


async def test_12_client_id_in_the_environment_is_refused_at_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLACK_CLIENT_ID", "1.2")
    monkeypatch.setenv("SLACK_CLIENT_SECRET", "x")
    async with a_keen_sandbox() as sandbox:
        with pytest.raises(SettingsError, match="SLACK_CLIENT_ID"):
            async with a_bot(sandbox, tmp_path, "http"):
                raise AssertionError("it started")


# ---- a: an event listener that failed -----------------------------------------------------------


class Away:
    """An inbox whose database is away at first."""

    def __init__(self, store: InboxStore, times: int) -> None:
        self._store = store
        self._times = times

    async def add(self, message: Message) -> bool:
        if self._times > 0:
            self._times -= 1
            raise StoreUnavailableError("away")
        return await self._store.add(message)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


@pytest.mark.parametrize("times", [1, 2, 4])
async def test_a_event_that_could_not_be_stored_comes_again_and_counts_once(
    impatient: Stage, times: int
) -> None:
    stage = impatient
    storage = cast(Any, stage.storage)
    storage.inbox = Away(storage.inbox, times)
    await stage.say("Rosa", "@countersign status of payments")
    await stage.said("payments is healthy")
    await quiet(stage)
    assert stage.sandbox.stats.retries >= 1
    assert stage.sandbox.lost_events == []
    assert turns_of(stage) == 1


# ---- b: triggers --------------------------------------------------------------------------------


async def test_b_click_whose_trigger_expired_is_answered(stage: Stage) -> None:
    card = await a_card(stage)
    stage.sandbox.faults.add("stale", on="interaction", times=1)
    await stage.click("Ada", card, REJECT)
    assert "try again" in await stage.whispered("Ada", ".")
    assert stage.sandbox.open_views(stage.user("Ada")) == []
    await stage.click("Ada", card, REJECT)
    assert await stage.modal("Ada")


async def test_b_modal_is_opened_before_anything_slow(stage: Stage) -> None:
    card = await a_card(stage)
    stage.sandbox.faults.add("hang", "chat.*", delay=ENDLESS_S)
    await stage.click("Ada", card, REJECT)
    assert await stage.modal("Ada")
    assert is_acknowledged(stage)
    stage.sandbox.calm()


async def test_b_click_is_answered_in_time_when_no_look_up_is(tmp_path: Path) -> None:
    """Who it is cannot be looked up: nothing is decided, and the person is told to try again."""
    async with a_stage(tmp_path, "http") as stage:
        card = await a_card(stage)
        for method in ("users.*", "conversations.*"):
            stage.sandbox.faults.add("hang", method, delay=4)
        stage.clock.forward(minutes=10)  # what is known is too old to decide
        await stage.click("Ada", card, APPROVE)
        assert stage.sandbox.stats.ack_ms()[-1] < 3_000
        assert await stage.whispered("Ada", ".")
        assert APPROVE in buttons(stage.cards()[0])
        stage.sandbox.calm()


# ---- c: Socket Mode -----------------------------------------------------------------------------


async def click_until_taken(stage: Stage, who: str, card: dict[str, Any]) -> None:
    """Click again on an error, as people do: Slack's library connects twice in a row when it is
    told to go, and drops the acknowledgements of the connection in between."""
    for _ in range(10):
        try:
            await stage.click(who, card, APPROVE)
        except RefusedError as refusal:
            if refusal.code == "action_not_found":
                return  # redrawn: a click has counted whose acknowledgement was lost
            await stage.sandbox.until(lambda: stage.sandbox.is_connected)
        else:
            return
    raise AssertionError("no click was taken")


@pytest.mark.parametrize("reason", ["warning", "refresh_requested", "link_disabled"])
async def test_c_bot_connects_again_when_it_is_told_to_go(on_socket: Stage, reason: Any) -> None:
    stage, sandbox = on_socket, on_socket.sandbox
    card = await a_card(stage)
    await sandbox.disconnect(reason, grace=0.5 if reason == "warning" else None)
    await sandbox.until(
        lambda: sandbox.connections_so_far >= 2 and sandbox.connections == 1, timeout=20
    )
    await click_until_taken(stage, "Ada", card)
    await sooner_or_later(stage, lambda: is_final(stage) and is_live(stage))


async def test_c_bot_connects_again_when_the_connection_breaks(on_socket: Stage) -> None:
    stage, sandbox = on_socket, on_socket.sandbox
    card = await a_card(stage)
    sandbox.cut_connections()
    await sandbox.until(lambda: not sandbox.is_connected)
    await sandbox.until(lambda: sandbox.is_connected)
    await click_until_taken(stage, "Ada", card)
    await sooner_or_later(stage, lambda: is_final(stage) and is_live(stage))


async def test_c_message_written_while_nobody_listens_comes_later(on_socket: Stage) -> None:
    stage = on_socket
    environ = dict(stage.environ)
    await stage.stop_bot()
    await stage.sandbox.until(lambda: not stage.sandbox.is_connected)
    stage.sandbox.faults.add("delay", on="event", delay=2.0)
    await stage.say("Rosa", ASK)
    await stage.start_bot(**environ)
    assert APPROVE in buttons(await stage.card(word=APPROVE))


# ---- d: any connection --------------------------------------------------------------------------


@pytest.mark.mongo
@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_d_two_bots_share_the_envelopes(
    tmp_path: Path, mongo_server: MongoServer, seed: int
) -> None:
    uri = mongo_server.new_uri()
    motor, pymongo = (
        {"MONGODB_URI": uri, "COUNTERSIGN_MONGO_DRIVER": driver} for driver in DRIVERS
    )
    async with (
        a_keen_sandbox() as sandbox,
        a_bot(sandbox, tmp_path / "a", "socket", **motor) as stage,
        a_bot(sandbox, tmp_path / "b", "socket", **pymongo) as other,
    ):
        stage.clock.follow()
        other.clock.follow()
        assert sandbox.connections == 2
        sandbox.spread_at_random(seed)
        sandbox.faults.add("unheard", on="event", every=2)
        thread = await stage.say("Rosa", ASK)
        card = await stage.card(word=APPROVE)
        await stage.say("Rosa", "and thank you", thread_ts=thread)
        await asyncio.gather(*(stage.click(who, card, APPROVE) for who in ("Ada", "Ben")))
        await sandbox.until(lambda: is_final(stage) and is_live(stage), timeout=60)
        await quiet(stage)
        assert is_live(stage) == 1
        assert sandbox.doubles() == {}
        assert sandbox.lost_events == []


# ---- e: the workspace changes under a card ------------------------------------------------------


@pytest.mark.parametrize("error", ["token_revoked", "invalid_auth", "account_inactive"])
async def test_e_nobody_decides_while_the_token_is_revoked(stage: Stage, error: str) -> None:
    """Who clicks cannot be looked up then."""
    card = await a_card(stage)
    stage.sandbox.revoke_token(error)
    await stage.click("Ada", card, APPROVE)
    assert is_acknowledged(stage)
    await stage.tick()
    stage.sandbox.restore_token()
    assert APPROVE in buttons(stage.cards()[0])
    await stage.click("Ada", card, APPROVE)
    await sooner_or_later(stage, lambda: is_final(stage) and is_live(stage))


@pytest.mark.parametrize("how", ["archived", "removed"])
async def test_e_decision_counts_while_the_channel_is_closed(stage: Stage, how: str) -> None:
    card = await a_card(stage)
    sandbox = stage.sandbox
    leave, back = {
        "archived": (sandbox.archive, sandbox.unarchive),
        "removed": (sandbox.remove_bot, sandbox.invite_bot),
    }[how]
    leave(stage.channel)
    await stage.click("Ada", card, APPROVE)
    assert is_acknowledged(stage)
    back(stage.channel)
    await sooner_or_later(stage, lambda: is_final(stage) and is_live(stage))
