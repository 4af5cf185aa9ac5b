"""Where people meet the app beside its messages: Home, commands, shortcuts, lists, reactions."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from slack_sandbox import ADA, BOT_USER, FINANCE, GUS, MIA, OPS, ROSA, RefusedError, Sandbox
from slack_sandbox.delivery.http import AppReply, Parcel
from slack_sandbox.workspace.emoji import emoji_names
from slack_sandbox.workspace.surfaces import Shortcut, SlashCommand, Surfaces, surfaces_of
from tests.unit.slack_sandbox.conftest import Seconds, Slack, a_card, a_modal, an_input

ROOT = Path(__file__).parents[4]
PAGE = ROOT / "slack_sandbox" / "page"
SURFACES = Surfaces(
    commands=(SlashCommand(name="/countersign", usage_hint="[help]"),),
    shortcuts=(
        Shortcut(name="My approvals", callback_id="mine", type="global"),
        Shortcut(name="Ask about this", callback_id="ask", type="message"),
    ),
)


class App:
    """An app that takes everything, and answers with `answer`."""

    is_open = True

    def __init__(self) -> None:
        self.got: list[dict[str, Any]] = []
        self.answer: Any = None

    async def send(self, parcel: Parcel) -> AppReply:
        self.got.append(parcel.payload)
        return AppReply(ok=True, body=self.answer)

    def events(self, kind: str) -> list[dict[str, Any]]:
        """The events of a kind."""
        events = [message["event"] for message in self.got if "event" in message]
        return [event for event in events if event["type"] == kind]


@pytest.fixture
def app() -> App:
    return App()


@pytest.fixture
async def sandbox(clock: Seconds, app: App) -> AsyncIterator[Sandbox]:
    async with Sandbox(clock=clock, retry_delays=(), surfaces=SURFACES) as opened:
        opened.use(app)
        yield opened


async def post(web: aiohttp.ClientSession, path: str, user: str, **body: Any) -> dict[str, Any]:
    async with web.post(f"/sandbox/{path}", json={"as": user, **body}) as response:
        return dict(await response.json())


# ---- Home -----------------------------------------------------------------------------------


async def test_opened_home_is_told_with_the_view_that_is_there(
    web: aiohttp.ClientSession, sandbox: Sandbox, slack: Slack, app: App
) -> None:
    view = {"type": "home", "blocks": a_card()}
    await slack.ok("views.publish", user_id=ADA, view=view)
    await post(web, "home", ADA, tab="home")
    await post(web, "home", ADA, tab="messages")
    await sandbox.idle()
    home, messages = app.events("app_home_opened")
    assert (home["user"], home["tab"], home["channel"]) == (ADA, "home", sandbox.dm_id(ADA))
    assert home["view"]["blocks"][1]["block_id"] == "buttons"
    assert (messages["tab"], "view" in messages) == ("messages", False)


async def test_app_without_home_hears_nothing(clock: Seconds, app: App) -> None:
    async with Sandbox(clock=clock, surfaces=Surfaces(has_home=False)) as sandbox:
        sandbox.use(app)
        async with aiohttp.ClientSession(sandbox.url) as web:
            await post(web, "home", ADA, tab="home")
        await sandbox.idle()
        assert app.got == []


async def test_page_gets_the_home_of_its_person_alone(
    web: aiohttp.ClientSession, slack: Slack
) -> None:
    await slack.ok("views.publish", user_id=ADA, view={"type": "home", "blocks": a_card()})
    async with web.ws_connect("/sandbox/ws", params={"as": ADA}) as ada:
        assert (await ada.receive_json())["view"]["type"] == "home"
        await slack.ok("views.publish", user_id=MIA, view={"type": "home", "blocks": []})
        await slack.ok("views.publish", user_id=ADA, view={"type": "home", "blocks": []})
        assert (await ada.receive_json())["view"]["blocks"] == []


# ---- windows --------------------------------------------------------------------------------


async def test_form_is_gone_after_a_reload_and_back_after_a_lost_connection(
    web: aiohttp.ClientSession, sandbox: Sandbox, slack: Slack
) -> None:
    ticket = sandbox.workspace.triggers.issue(ADA, window="w1")
    await slack.ok("views.open", trigger_id=ticket, view=a_modal())
    async with web.ws_connect("/sandbox/ws", params={"as": ADA, "window": "w1"}) as same:
        assert (await same.receive_json())["type"] == "view"
    async with web.ws_connect("/sandbox/ws", params={"as": ADA, "window": "w2"}) as reloaded:
        await sandbox.say(ROSA, OPS, "hello")
        assert (await reloaded.receive_json())["type"] == "message"


async def test_two_windows_have_two_forms(sandbox: Sandbox, slack: Slack) -> None:
    issue = sandbox.workspace.triggers.issue
    for window in ("w1", "w2"):
        ticket = issue(ADA, window=window)
        await slack.ok("views.open", trigger_id=ticket, view=a_modal())
    first, second = sandbox.open_views(ADA)
    await sandbox.close_view(ADA, first, everything=True)
    assert [view["id"] for view in sandbox.open_views(ADA)] == [second["id"]]


# ---- shortcuts ------------------------------------------------------------------------------


async def test_global_shortcut_has_slacks_payload(
    web: aiohttp.ClientSession, sandbox: Sandbox, app: App
) -> None:
    assert await post(web, "shortcut", ADA, callback_id="mine") == {"ok": True}
    (payload,) = app.got
    assert payload["type"] == "shortcut"
    assert payload["callback_id"] == "mine"
    assert payload["user"]["id"] == ADA
    assert {"action_ts", "trigger_id", "team", "token", "enterprise"} <= payload.keys()
    assert "channel" not in payload


async def test_message_shortcut_has_slacks_payload(
    web: aiohttp.ClientSession, sandbox: Sandbox, app: App
) -> None:
    ts = await sandbox.say(ROSA, OPS, "the build is red")
    await sandbox.idle()
    await post(web, "shortcut", ADA, callback_id="ask", channel=OPS, ts=ts)
    payload = app.got[-1]
    assert payload["type"] == "message_action"
    assert payload["channel"] == {"id": OPS, "name": "ops"}
    assert (payload["message_ts"], payload["message"]["text"]) == (ts, "the build is red")
    assert payload["response_url"].startswith(sandbox.url)


@pytest.mark.parametrize(("callback_id", "on"), [("mine", "message"), ("ask", "global")])
async def test_shortcut_of_the_other_kind_is_none(
    web: aiohttp.ClientSession, sandbox: Sandbox, callback_id: str, on: str
) -> None:
    ts = await sandbox.say(ROSA, OPS, "hello")
    where = {"channel": OPS, "ts": ts} if on == "message" else {}
    answer = await post(web, "shortcut", ADA, callback_id=callback_id, **where)
    assert answer["error"] == "no_such_shortcut"


def test_surfaces_are_read_from_a_manifest() -> None:
    surfaces = surfaces_of(
        {
            "features": {
                "app_home": {"home_tab_enabled": True},
                "slash_commands": [{"command": "/x", "description": "d", "usage_hint": "[a]"}],
                "shortcuts": [{"name": "N", "type": "message", "callback_id": "c"}],
            }
        }
    )
    assert surfaces.commands == (SlashCommand(name="/x", description="d", usage_hint="[a]"),)
    assert surfaces.shortcuts == (Shortcut(name="N", callback_id="c", type="message"),)
    assert surfaces.has_home
    assert surfaces_of({}) == Surfaces(has_home=False)


# ---- searched lists -------------------------------------------------------------------------


def a_search() -> dict[str, Any]:
    element = {"type": "external_select", "action_id": "input", "min_query_length": 0}
    return a_modal(blocks=[{**an_input("country"), "element": element}])


def option(value: str) -> dict[str, Any]:
    return {"text": {"type": "plain_text", "text": value.title()}, "value": value}


@pytest.mark.parametrize(
    "answer", [None, {}, {"options": [{"value": "x"}]}, {"options": [], "x": 1}]
)
async def test_answer_that_is_no_list_of_options_is_a_fault_of_the_app(
    sandbox: Sandbox, slack: Slack, app: App, answer: Any
) -> None:
    ticket = sandbox.workspace.triggers.issue(ADA)
    view = (await slack.ok("views.open", trigger_id=ticket, view=a_search()))["view"]
    app.answer = answer
    with pytest.raises(RefusedError, match="app_error"):
        await sandbox.suggest(ADA, view, "input", "ger")
    assert "block_suggestion" in sandbox.bad_answers[0]


# ---- /invite --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("user", "channel", "text", "error"),
    [
        (ROSA, OPS, "", "no_user"),
        (ROSA, OPS, "@nobody", "no_user"),
        (ROSA, OPS, "@ada", "already_in_channel"),
        (ROSA, FINANCE, "@rosa", "not_in_channel"),
        (GUS, OPS, "@mia", "user_is_restricted"),
        (ROSA, "D0ROSAORTI", "@ada", "method_not_supported_for_channel_type"),
    ],
)
async def test_invite_says_what_is_wrong(
    web: aiohttp.ClientSession, user: str, channel: str, text: str, error: str
) -> None:
    answer = await post(web, "command", user, channel=channel, command="/invite", text=text)
    assert answer["error"] == error


# ---- reactions, own messages ----------------------------------------------------------------


async def test_bot_reacts_and_takes_it_back(sandbox: Sandbox, slack: Slack, asked: str) -> None:
    sandbox.scopes |= {"reactions:write", "reactions:read"}
    where = {"channel": OPS, "timestamp": asked}
    await slack.ok("reactions.add", **where, name="hourglass_flowing_sand")
    shown = (await slack.ok("reactions.get", **where))["message"]["reactions"]
    assert shown == [{"name": "hourglass_flowing_sand", "users": [BOT_USER], "count": 1}]
    assert await slack.error("reactions.add", **where, name="hourglass_flowing_sand") == (
        "already_reacted"
    )
    await slack.ok("reactions.remove", **where, name="hourglass_flowing_sand")
    assert await slack.error("reactions.remove", **where, name="eyes") == "no_reaction"
    assert await slack.error("reactions.add", **where, name="no such") == "invalid_name"
    assert await slack.error("reactions.add", channel=OPS, timestamp="1.1", name="eyes") == (
        "message_not_found"
    )


async def test_app_hears_of_a_persons_reaction_if_it_may(
    web: aiohttp.ClientSession, sandbox: Sandbox, app: App, asked: str
) -> None:
    await post(web, "react", ADA, channel=OPS, ts=asked, name="+1")
    sandbox.scopes |= {"reactions:read"}
    await post(web, "react", ADA, channel=OPS, ts=asked, name="+1")
    await sandbox.idle()
    assert app.events("reaction_added") == []
    (event,) = app.events("reaction_removed")
    assert (event["user"], event["reaction"], event["item_user"]) == (ADA, "+1", ROSA)
    assert event["item"] == {"type": "message", "channel": OPS, "ts": asked}


async def test_own_message_is_edited_and_deleted_by_its_writer_alone(
    web: aiohttp.ClientSession, sandbox: Sandbox, asked: str
) -> None:
    where = {"channel": OPS, "ts": asked}
    assert (await post(web, "edit", ADA, **where, text="no"))["error"] == "cant_update_message"
    assert (await post(web, "edit", ROSA, **where, text=" "))["error"] == "no_text"
    assert await post(web, "edit", ROSA, **where, text="never mind") == {"ok": True}
    assert sandbox.messages(OPS)[0]["text"] == "never mind"
    assert (await post(web, "delete", ADA, **where))["error"] == "cant_delete_message"
    assert await post(web, "delete", ROSA, **where) == {"ok": True}
    assert sandbox.messages(OPS) == []


async def test_message_for_later_is_refused_with_a_reason(slack: Slack) -> None:
    refused = await slack.refused("chat.scheduleMessage", channel=OPS, text="x", post_at=1)
    assert refused["error"] == "not_in_the_sandbox"
    assert "sends no messages later" in str(refused["response_metadata"])


# ---- notifications, zones, symbols ----------------------------------------------------------


async def test_notification_has_the_text_of_the_post_and_the_one_of_now(
    web: aiohttp.ClientSession, sandbox: Sandbox, slack: Slack
) -> None:
    async def of(user: str) -> list[tuple[str, str, str]]:
        async with web.get("/sandbox/notifications", params={"as": user}) as response:
            notifications = (await response.json())["notifications"]
        return [
            (notification["why"], notification["text"], notification["now"])
            for notification in notifications
        ]

    root = await sandbox.say(ROSA, OPS, "@ada please look")
    card = await slack.ok("chat.postMessage", channel=OPS, thread_ts=root, text="Approval needed")
    await slack.ok("chat.update", channel=OPS, ts=card["ts"], text="Approved")
    await slack.ok("chat.postEphemeral", channel=OPS, user=ADA, text="psst")
    await slack.ok("chat.postMessage", channel=MIA, text="Your turn")
    reply = ("reply", "Approval needed", "Approved")
    assert await of(ADA) == [
        reply,
        ("mention", "<@U0ADALINDQ> please look", "<@U0ADALINDQ> please look"),
    ]
    assert await of(ROSA) == [reply]
    assert await of(MIA) == [("direct message", "Your turn", "Your turn")]
    assert await of("U0NOBODY01") == []


def test_symbols_that_the_page_names_are_drawn() -> None:
    text = (PAGE / "blocks" / "emoji_data.js").read_text(encoding="utf-8")
    named = set(" ".join(re.findall(r'^  "([0-9a-f -]+)",$', text, re.MULTILINE)).split())
    drawn = re.findall(r'<symbol id="([^"]+)"', (PAGE / "symbols.svg").read_text(encoding="utf-8"))
    assert named == set(drawn)
    assert len(drawn) == len(named)


def test_symbols_of_all_words_are_drawn_and_have_a_name() -> None:
    """No machine needs a font for what the bot writes."""
    words = json.dumps(
        json.loads((ROOT / "bot" / "words" / "en.json").read_text(encoding="utf-8")),
        ensure_ascii=False,
    )
    names = set(re.findall(r":([a-z][a-z0-9_+]+):", words))
    assert names <= emoji_names()
    text = (PAGE / "blocks" / "emoji_data.js").read_text(encoding="utf-8")
    characters = dict(re.findall(r'"([a-z0-9_+-]+)": "([^"]+)"', text))
    drawn = set(re.findall(r'symbol id="([^"]+)"', (PAGE / "symbols.svg").read_text("utf-8")))
    used = {characters[name] for name in names} | set(
        re.findall(r"[⌀-➿\U0001f300-\U0001faff]", words)
    )
    codes = {
        "-".join(f"{ord(character):x}" for character in each if character != "\ufe0f")
        for each in used
    }
    assert codes - drawn == set()


def test_symbols_of_all_cards_are_drawn() -> None:
    """Those that stand in code, before the state of a card."""
    code = "".join(
        path.read_text("utf-8")
        for room in ("questions", "slack", "layout")
        for path in (ROOT / "bot" / room).rglob("*.py")
    )
    drawn = set(re.findall(r'symbol id="([^"]+)"', (PAGE / "symbols.svg").read_text("utf-8")))
    used = re.findall(r"[\u23e9-\u23fa\u2600-\u27bf\U0001f300-\U0001faff]", code)
    assert {f"{ord(character):x}" for character in used} - drawn == set()


# ---- people, direct messages, what the bot made of trouble -----------------------------------


async def control(web: aiohttp.ClientSession, path: str, **body: Any) -> tuple[int, dict[str, Any]]:
    async with web.post(f"/control/{path}", json=body) as response:
        return response.status, dict(await response.json())


async def test_member_becomes_a_guest_and_a_member_again(
    web: aiohttp.ClientSession, slack: Slack
) -> None:
    seen = []
    for guest in (True, False):
        assert (await control(web, "person", user=MIA, guest=guest))[1] == {"ok": True}
        person = (await slack.ok("users.info", user=MIA))["user"]
        seen.append((person["is_restricted"], person["is_ultra_restricted"]))
    assert seen == [(True, False), (False, False)]


async def test_request_that_is_not_understood_is_a_bad_one(web: aiohttp.ClientSession) -> None:
    status, answer = await control(web, "person", user=MIA, guest="yes")
    assert (status, answer["error"]) == (400, "invalid_arguments")
    async with web.post(
        "/control/time", data='{"seconds": NaN}', headers={"Content-Type": "application/json"}
    ) as response:
        assert response.status == 400


@pytest.mark.parametrize("user", [ROSA, ADA, MIA, GUS])
async def test_direct_message_to_a_person_is_unread_on_the_apps_row(
    web: aiohttp.ClientSession, slack: Slack, user: str
) -> None:
    channel = (await slack.ok("conversations.open", users=user))["channel"]["id"]
    await slack.ok("chat.postMessage", channel=user, text="Your turn")
    async with web.get("/sandbox/state", params={"as": user}) as response:
        rooms = {room["id"]: room["unread"] for room in (await response.json())["channels"]}
    assert rooms[channel] == 1


async def test_panel_counts_what_failed_and_what_came_again(
    web: aiohttp.ClientSession, sandbox: Sandbox, slack: Slack, asked: str
) -> None:
    await sandbox.idle()
    sandbox.fail("chat.postMessage", error="internal_error")
    await slack.error("chat.postMessage", channel=OPS, text="x")
    sandbox.announce(sandbox.emit({"type": "message", "channel": OPS, "ts": asked}))
    same = {"event_type": "card", "event_payload": {"id": "1"}}
    for _ in range(2):
        await slack.ok("chat.postMessage", channel=OPS, text="x", metadata=same)
    await sandbox.idle()
    async with web.get("/control/panel") as response:
        coped = (await response.json())["coped"]
    assert coped == {"failed": 1, "again": 1, "lost": 0, "doubles": 1}


async def test_typed_letters_are_sent_and_options_come_back(
    web: aiohttp.ClientSession, sandbox: Sandbox, slack: Slack, app: App
) -> None:
    ticket = sandbox.workspace.triggers.issue(ADA)
    view = (await slack.ok("views.open", trigger_id=ticket, view=a_search()))["view"]
    app.answer = {"options": [option("germany")]}
    where = {"view_id": view["id"], "block_id": "country", "action_id": "input"}
    answer = await post(web, "suggest", ADA, **where, value="ger")
    assert answer == {"ok": True, "options": [option("germany")]}
    payload = app.got[-1]
    assert (payload["type"], payload["value"]) == ("block_suggestion", "ger")
    assert payload["view"]["callback_id"] == "edit"
