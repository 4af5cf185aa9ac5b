"""The Home of each person, as Slack sends its payloads: what stands there, and what is done."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from slack_sdk.web.async_client import AsyncWebClient

from agents.models import call, say
from bot.layout.action_ids import ActionId
from bot.records.approval import Approval, Status
from bot.records.approval_queries import count_pending
from bot.slack.home import view
from bot.slack.home.homes import HomeViews
from bot.slack.home.settings import (
    AWAY_FORM,
    AWAY_UNTIL,
    COPIES,
    FROM,
    MESSAGES_FORM,
    QUIET_UNTIL,
    TEST_YES,
    WHO,
)
from bot.slack.home.state import HomeState, Shown
from slack_sandbox.blockkit.rules import view_errors
from tests.support.stores import SqliteStores
from tests.unit.bot.approvals.test_votes import ASK, TWO, an_office, asked
from tests.unit.bot.counter_stage import Counter, a_form, an_event, sent_by
from tests.unit.bot.office import ADA, BEN, CHANNEL, GUS, ROSA, an_actor

MIA = "UMIA"
ONE: dict[str, Any] = {"approve": [{"from": ["security"]}]}


@pytest.fixture
async def counter(storage: SqliteStores) -> Counter:
    office = await asked(storage, ONE)
    office.directory.add(MIA, name="Mia Chen", timezone="America/New_York", locale="en-US")
    office.directory.add(ROSA, name="Rosa Ortiz")
    return Counter.on(office)


def opened(user: str = MIA, **changes: Any) -> dict[str, Any]:
    event = {"type": "app_home_opened", "user": user, "channel": "D0HOME", "tab": "home"}
    return an_event() | {"event": {**event, "event_ts": "1525849128.000000", **changes}}


def clicked(
    action: str, user: str = MIA, state: HomeState | None = None, **more: Any
) -> dict[str, Any]:
    """A click in Home: there is a view and no message."""
    shown = state if state is not None else HomeState()
    home = {
        "id": "V0HOME",
        "team_id": "T1",
        "type": "home",
        "callback_id": view.CALLBACK,
        "private_metadata": shown.to_text(),
        "state": {"values": {}},
        "hash": "1.x",
    }
    return {
        "type": "block_actions",
        **sent_by(user),
        "container": {"type": "view", "view_id": "V0HOME"},
        "view": home,
        "actions": [{"type": "button", "action_id": action, "block_id": "b", **more}],
    }


def picked(action: str, value: str, **changes: Any) -> dict[str, Any]:
    option = {"text": {"type": "plain_text", "text": "x"}, "value": value}
    return clicked(action, type="static_select", selected_option=option, **changes)


async def home_of(counter: Counter, user: str = MIA, **changes: Any) -> dict[str, Any]:
    answer = await counter.send(opened(user, **changes))
    assert answer.status == 200
    return newest(counter, user)


def newest(counter: Counter, user: str = MIA) -> dict[str, Any]:
    home = [drawn for who, drawn in counter.views.published if who == user][-1]
    assert view_errors(home) == []
    return home


def texts(home: dict[str, Any]) -> list[str]:
    """All that people read of the blocks' own texts."""
    lines = rows(home["blocks"])
    for block in home["blocks"]:
        for element in block.get("elements", []):
            lines += [part["text"] for part in element.get("elements", [])]
    return lines


def rows(blocks: list[dict[str, Any]]) -> list[str]:
    """Each text of the blocks; the small print below a row's button belongs to the row."""
    lines: list[str] = []
    is_row = False
    for block in blocks:
        if isinstance(block.get("text"), dict):
            lines.append(block["text"]["text"])
        if block["type"] == "context":
            texts = [element["text"] for element in block["elements"]]
            lines[-1:] = ["\n".join([lines[-1], *texts])] if is_row else [*lines[-1:], *texts]
        is_row = "accessory" in block
    return lines


def buttons(home: dict[str, Any]) -> dict[str, str]:
    """Labels of all buttons, and their actions."""
    elements = [block["accessory"] for block in home["blocks"] if "accessory" in block]
    for block in home["blocks"]:
        elements += [
            element for element in block.get("elements", []) if element.get("type") == "button"
        ]
    return {element["text"]["text"]: element["action_id"] for element in elements}


async def test_what_waits_stands_there_with_one_button(counter: Counter) -> None:
    home = await home_of(counter)
    assert "1 waiting for you" in texts(home)
    (item,) = [text for text in texts(home) if "Pay 5 to Mia" in text]
    # 08:00 UTC of 15 January 2027, and eight hours: 11 AM in New York, on the same day there.
    assert item == "Pay 5 to Mia\nExpires today 11:00 AM · Rosa Ortiz in #c1"
    assert buttons(home)["Review"] == ActionId.DETAILS


async def test_who_may_not_decide_has_an_empty_home(counter: Counter) -> None:
    home = await home_of(counter, ADA)
    assert "Nothing is waiting for you" in texts(home)
    assert buttons(home)["Send me a test card"] == view.TEST


async def test_who_has_voted_waits_no_more(storage: SqliteStores) -> None:
    office = await asked(storage, TWO)
    office.directory.add(MIA)
    counter = Counter.on(office)
    assert "1 waiting for you" in texts(await home_of(counter))
    await office.decide(await office.the_approval(), Status.APPROVED, by=MIA)
    office.clock.forward(seconds=6)
    assert "Nothing is waiting for you" in texts(await home_of(counter))
    assert "⏳ 1 of 3 approvals" in " ".join(texts(await home_of(counter, ROSA)))


def away(*, until: str | None, who: str | None, by: str = MIA) -> dict[str, Any]:
    values = {
        AWAY_UNTIL: {ActionId.VALUE: {"type": "datepicker", "selected_date": until}},
        WHO: {ActionId.VALUE: {"type": "users_select", "selected_user": who}},
    }
    return a_form(AWAY_FORM, values, by)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"is_guest": True}, "Guests"),
        ({"is_external": True, "team_id": "T9"}, "this workspace"),
        ({"is_deleted": True}, "deactivated"),
        ({"is_bot": True}, "person"),
    ],
)
async def test_strangers_see_nothing_of_anybody(
    counter: Counter, changes: dict[str, Any], words: str
) -> None:
    counter.office.directory.add(MIA, **changes)
    home = await home_of(counter)
    assert len(home["blocks"]) == 1
    assert words in texts(home)[0]
    assert "Pay" not in json.dumps(home)


async def test_the_tab_of_messages_draws_nothing(counter: Counter) -> None:
    assert (await counter.send(opened(tab="messages"))).status == 200
    assert counter.views.published == []


async def test_times_are_in_the_manner_of_the_persons_language(counter: Counter) -> None:
    counter.office.directory.add(MIA, timezone="Europe/Berlin", locale="de-DE")
    (item,) = [text for text in texts(await home_of(counter)) if "Pay 5" in text]
    assert "Expires today 17:00 ·" in item


async def test_a_locale_and_a_zone_that_are_not_there_are_english_and_utc(
    counter: Counter, subtests: pytest.Subtests
) -> None:
    locales = ("", "xx-XX", "../..", "zh-Hant-TW-x-y", "12")
    zones = ("", "Mars/Olympus", "../etc/passwd", "Mars/Olympus", "")
    for locale, zone in zip(locales, zones, strict=True):
        with subtests.test(locale=locale, zone=zone):
            counter.office.directory.add(MIA, timezone=zone, locale=locale)
            counter.office.clock.forward(seconds=6)
            (item,) = [text for text in texts(await home_of(counter)) if "Pay 5" in text]
            assert "Expires today" in item
            assert "4:00" in item or "16:00" in item


async def with_many(counter: Counter, count: int, **changes: Any) -> list[Approval]:
    first = await counter.office.the_approval()
    made = [
        first.changed(
            approval_id=f"apr_{number:032x}",
            position=number,
            title=f"Refund {number}",
            expires_ms=first.expires_ms + number * 60_000,
            due_ms=None,
            **changes,
        )
        for number in range(1, count + 1)
    ]
    await counter.office.storage.approvals.insert(*made)
    return made


async def test_what_expires_first_stands_first(counter: Counter) -> None:
    first = await counter.office.the_approval()
    names = [f"apr_{number:032x}" for number in range(3)]
    for name, minutes in zip(names, (-5, 9, -60), strict=True):
        at_ms = first.expires_ms + minutes * 60_000
        title = f"Refund {minutes}"
        changed = first.changed(approval_id=name, position=1, title=title, expires_ms=at_ms)
        await counter.office.storage.approvals.insert(changed.changed(due_ms=None))
    titles = [
        text.split("\n")[0] for text in texts(await home_of(counter)) if "Rosa Ortiz in" in text
    ]
    assert titles == ["Refund -60", "Refund -5", "Pay 5 to Mia", "Refund 9"]


async def test_high_risk_stands_first_and_is_marked(counter: Counter) -> None:
    terms = (await counter.office.the_approval()).terms
    await with_many(counter, 2, terms=terms.model_copy(update={"risk": "high"}))
    lines = [text for text in texts(await home_of(counter)) if "Rosa Ortiz in" in text]
    assert [line.split(" · ")[0] for line in lines] == [
        "Refund 1\n🔺 High risk",
        "Refund 2\n🔺 High risk",
        "Pay 5 to Mia\nExpires today 11:00 AM",
    ]


@pytest.mark.parametrize(
    ("risk", "line"),
    [
        ("medium", "First to expire: today 11:00 AM."),
        ("critical", "First to expire: today 11:00 AM. 20 are high risk."),
    ],
)
async def test_a_long_list_begins_with_what_is_urgent(
    counter: Counter, risk: str, line: str
) -> None:
    terms = (await counter.office.the_approval()).terms
    await with_many(counter, 20, terms=terms.model_copy(update={"risk": risk}))
    assert line in texts(await home_of(counter))


async def test_a_stage_is_named(storage: SqliteStores) -> None:
    stages = [{"name": "technical", **ONE}, {"name": "team", "approve": [{"from": ["sre"]}]}]
    counter = Counter.on(await asked(storage, {"stages": stages}))
    (item,) = [text for text in texts(await home_of(counter)) if "Pay 5" in text]
    assert " · Stage 1 of 2 · " in item
    (item,) = [text for text in texts(await home_of(counter, ROSA)) if "Pay 5" in text]
    assert "⏳ Stage 1 of 2 · " in item
    assert "approvals" not in item


async def test_twenty_stand_on_a_page(counter: Counter) -> None:
    await with_many(counter, 44)
    home = await home_of(counter)
    assert "45 waiting for you" in texts(home)
    assert "1\N{EN DASH}20 of 45" in texts(home)
    assert "Pay 5" in texts(home)[2]
    assert set(buttons(home)) >= {"Next 20"}
    assert "Previous 20" not in buttons(home)

    await counter.send(clicked(view.NEXT, state=HomeState()))
    home = newest(counter)
    assert "21\N{EN DASH}40 of 45" in texts(home)
    assert {"Next 20", "Previous 20"} <= set(buttons(home))

    await counter.send(clicked(view.NEXT, state=HomeState(start=20)))
    home = newest(counter)
    assert "41\N{EN DASH}45 of 45" in texts(home)
    assert "Next 20" not in buttons(home)

    await counter.send(clicked(view.BACK, state=HomeState(start=40)))
    assert "21\N{EN DASH}40 of 45" in texts(newest(counter))


async def test_a_page_that_is_gone_is_the_last_one(counter: Counter) -> None:
    await with_many(counter, 21)
    await counter.send(clicked(view.NEXT, state=HomeState(start=60)))
    assert "21\N{EN DASH}22 of 22" in texts(newest(counter))


async def test_filters_leave_out_what_does_not_fit(counter: Counter) -> None:
    terms = (await counter.office.the_approval()).terms
    risky = terms.model_copy(update={"risk": "high"})
    await with_many(counter, 1, terms=risky)

    await counter.send(picked(view.ONLY, "risk"))
    (item,) = [text for text in texts(newest(counter)) if "\n" in text and "·" in text]
    assert item.startswith("Refund 1\n")
    assert "🔺 High risk" in item

    await counter.send(picked(view.ONLY, f"channel:{CHANNEL}"))
    assert "Pay 5" in " ".join(texts(newest(counter)))
    await counter.send(picked(view.ONLY, "channel:C0OTHER"))
    assert "Nothing matches this filter." in texts(newest(counter))
    await counter.send(picked(view.ONLY, "today"))
    assert "Pay 5" in " ".join(texts(newest(counter)))
    await counter.send(picked(view.ONLY, "all", state=HomeState(only="risk")))
    assert "Pay 5" in " ".join(texts(newest(counter)))


@pytest.mark.parametrize("value", ["", "channel:*", "channel:C1\n", "x" * 500, "rule"])
async def test_a_filter_that_we_do_not_have_changes_nothing(counter: Counter, value: str) -> None:
    answer = await counter.send(picked(view.ONLY, value, state=HomeState(only="risk")))
    assert answer.status == 200
    assert HomeState.from_text(newest(counter)["private_metadata"]) == HomeState(
        only="" if value == "" else "risk"
    )


@pytest.mark.parametrize(
    ("show", "heading"), [(Shown.MINE, "Requested by you"), (Shown.DECIDED, "Recently decided")]
)
async def test_another_list_is_shown(counter: Counter, show: Shown, heading: str) -> None:
    await counter.send(picked(view.SHOW, show.value))
    assert texts(newest(counter))[0] == heading


async def test_the_buttons_below_show_the_whole_lists(counter: Counter) -> None:
    await counter.send(clicked(view.ALL_MINE, ROSA))
    assert texts(newest(counter, ROSA))[0] == "Requested by you"
    await counter.send(clicked(view.ALL_ENDED, ROSA))
    assert "Nothing has been decided yet." in texts(newest(counter, ROSA))


async def test_a_home_that_opens_again_shows_what_was_chosen(counter: Counter) -> None:
    kept = {"private_metadata": HomeState(show=Shown.MINE).to_text()}
    home = await home_of(counter, ROSA, view=kept)
    assert texts(home)[0] == "Requested by you"


@pytest.mark.parametrize(
    "kept", ["", "{", "[]", '{"show":"x"}', '{"show":"mine","only":"x","start":1}', 5, None]
)
async def test_a_choice_that_makes_no_sense_is_none(counter: Counter, kept: object) -> None:
    home = await home_of(counter, view={"private_metadata": kept})
    assert HomeState.from_text(home["private_metadata"]) == HomeState()


def button_of_the_item(home: dict[str, Any]) -> dict[str, Any]:
    (button,) = [
        block["accessory"] for block in home["blocks"] if "Pay 5" in str(block.get("text"))
    ]
    return dict(button)


async def test_review_opens_what_shows_everything(counter: Counter) -> None:
    button = button_of_the_item(await home_of(counter))
    await counter.send(clicked(button["action_id"], value=button["value"]))
    assert len(counter.views.opened) == 1


async def test_a_click_that_does_nothing_says_why_in_a_form(counter: Counter) -> None:
    button = button_of_the_item(await home_of(counter))
    gone = clicked(ActionId.REJECT, BEN, value=button["value"])
    assert (await counter.send(gone)).status == 200
    form = counter.views.opened[-1]
    assert view_errors(form) == []
    assert form["title"]["text"] == "Not done"
    assert "not an approver" in json.dumps(form)


async def test_a_click_on_what_is_decided_says_so_in_a_form(counter: Counter) -> None:
    button = button_of_the_item(await home_of(counter))
    await counter.office.decide(await counter.office.the_approval(), Status.REJECTED, by=MIA)
    await counter.send(clicked(ActionId.APPROVE, value=button["value"]))
    assert counter.views.opened[-1]["title"]["text"] == "Too late"


async def test_one_card_alone_cannot_be_chosen_with_others(counter: Counter) -> None:
    assert "Choose several…" not in buttons(await home_of(counter))


async def test_cards_of_high_risk_cannot_be_chosen_together(storage: SqliteStores) -> None:
    two = [call("pay", {"to": "Mia", "amount": n}, id=f"c{n}") for n in (1, 2)]
    office = an_office(storage, {**ONE, "risk": "high"}, turns_of_model=[two, say("Paid.")])
    office.directory.add(MIA)
    await office.hear(ASK)
    assert "Choose several…" not in buttons(await home_of(Counter.on(office)))


async def test_a_test_card_comes_as_a_direct_message(counter: Counter) -> None:
    await counter.send(clicked(view.TEST))
    notifier = counter.office.notifier
    assert notifier.whispered_to == [(MIA, "")]
    assert "Nothing runs" in notifier.whispers[0][1]
    assert TEST_YES in str(notifier.whispered_blocks)
    click = clicked(TEST_YES)
    click["response_url"] = "https://hooks.slack.com/x"
    assert (await counter.send(click)).status == 200
    assert await count_pending(counter.office.storage.approvals) == 1


async def test_guests_get_no_test_card(counter: Counter) -> None:
    await counter.send(clicked(view.TEST, GUS))
    assert counter.office.notifier.whispers == []


async def test_an_absence_is_set_and_ended(counter: Counter) -> None:
    await counter.send(clicked(view.AWAY))
    assert counter.views.opened[-1]["callback_id"] == AWAY_FORM
    assert view_errors(counter.views.opened[-1]) == []
    await counter.send(away(until="2027-01-20", who=ADA))
    home = await home_of(counter)
    counter.office.directory.add(ADA, name="Ada Lind")
    (row,) = [text for text in texts(home) if text.startswith("🌴")]
    when = "Wed, Jan 20, 11:59 PM"
    assert row == f"🌴 Away until {when}\nuada decides for you until {when}."
    await counter.send(clicked(view.BACK_HERE))
    counter.office.clock.forward(seconds=6)
    home = await home_of(counter)
    (row,) = [text for text in texts(home) if text.startswith("🌴")]
    assert row == "🌴 You're available\nChoose who decides while you're away."
    await counter.send(away(until="2027-01-20", who=None))
    counter.office.clock.forward(seconds=6)
    home = await home_of(counter)
    (row,) = [text for text in texts(home) if text.startswith("🌴")]
    assert row == f"🌴 Away until {when}\nYou won't be mentioned, but you can still decide."


async def test_a_faulty_absence_is_explained_at_its_field(
    counter: Counter, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str | None, str | None, str, str]] = [
        (None, None, AWAY_UNTIL, "Use a date"),
        ("soon", None, AWAY_UNTIL, "Use a date"),
        ("9999-12-31", None, AWAY_UNTIL, "Use a date"),
        ("2026-01-01", None, AWAY_UNTIL, "time has passed"),
        ("2029-01-01", None, AWAY_UNTIL, "30 days or less"),
        ("2027-01-20", MIA, WHO, "You can't delegate to yourself."),
        ("2027-01-20", GUS, WHO, "Choose an active member"),
        ("2027-01-20", "x", WHO, "Choose one"),
    ]
    for until, who, block, words in cases:
        with subtests.test(until=until, who=who, block=block, words=words):
            answer = json.loads((await counter.send(away(until=until, who=who))).body)
            assert answer["response_action"] == "errors"
            assert words in answer["errors"][block]


async def test_admins_see_how_the_bot_is(counter: Counter) -> None:
    assert "Health" not in texts(await home_of(counter))
    counter.office.directory.add(MIA, is_admin=True)
    counter.office.clock.forward(seconds=6)
    lines = " ".join(texts(await home_of(counter)))
    assert "✅ Slack is connected." in lines
    assert "1 request is waiting. First to expire: today 4:00 PM" in lines
    assert "Only admins see this. Version" in lines


@pytest.mark.parametrize(
    "body",
    [
        clicked("countersign:home_nothing"),
        {**clicked(view.NEXT), "actions": ["x"]},
        {**clicked(view.NEXT), "view": "x"},
        {**clicked(view.NEXT), "view": None},
    ],
)
async def test_odd_clicks_do_no_harm(counter: Counter, body: dict[str, Any]) -> None:
    assert (await counter.send(body)).status == 200


class TestPace:
    """An open Home is published when something changes, and seldom enough."""

    async def test_a_decision_is_seen_after_five_seconds(self, counter: Counter) -> None:
        await home_of(counter)
        await counter.office.decide(await counter.office.the_approval(), Status.APPROVED, by=MIA)
        for _ in range(20):
            homes(counter).changed()
            await counter.office.queue.run()
        assert len(counter.views.published) == 1
        counter.office.clock.forward(seconds=5)
        await homes(counter).refresh()
        assert len(counter.views.published) == 2
        assert "Nothing is waiting for you" in texts(newest(counter))

    async def test_what_has_not_changed_is_not_published(self, counter: Counter) -> None:
        await home_of(counter)
        for _ in range(10):
            counter.office.clock.forward(seconds=6)
            homes(counter).changed()
            await counter.office.queue.run()
        assert len(counter.views.published) == 1

    async def test_a_home_that_opens_again_at_once_is_not_published_again(
        self, counter: Counter
    ) -> None:
        for _ in range(5):
            await counter.send(opened())
        assert len(counter.views.published) == 1

    async def test_a_home_that_nobody_looks_at_is_forgotten(self, counter: Counter) -> None:
        await home_of(counter)
        counter.office.clock.forward(minutes=31)
        await homes(counter).refresh()
        assert len(homes(counter)) == 0
        assert len(counter.views.published) == 1

    async def test_an_open_home_is_looked_at_again_each_minute(self, counter: Counter) -> None:
        await home_of(counter)
        await with_many(counter, 1)  # by another process
        counter.office.clock.forward(seconds=30)
        await homes(counter).refresh()
        assert len(counter.views.published) == 1
        counter.office.clock.forward(seconds=31)
        await homes(counter).refresh()
        assert "2 waiting for you" in texts(newest(counter))

    async def test_as_many_homes_are_kept_as_there_is_room_for(self, counter: Counter) -> None:
        client = cast(AsyncWebClient, counter.views)
        few = HomeViews(homes(counter).composer, client, counter.office.queue.spawn, most=2)
        for user in (MIA, ADA, ROSA):
            await few.opened(an_actor(user), HomeState())
        assert len(few) == 2

    async def test_a_home_that_slack_did_not_take_is_tried_again(self, counter: Counter) -> None:
        counter.views.failing = True
        assert (await counter.send(opened())).status == 200
        assert counter.views.published == []
        counter.views.failing = False
        counter.office.clock.forward(seconds=5)
        await homes(counter).refresh()
        assert "1 waiting for you" in texts(newest(counter))

    async def test_a_look_up_that_fails_shows_nothing(self, counter: Counter) -> None:
        counter.office.directory.is_down = True
        assert (await counter.send(opened())).status == 200
        assert counter.views.published == []


def homes(counter: Counter) -> HomeViews:
    return counter.office.homes


def messages(
    start: str | None, until: str | None, *, copies: bool = False, by: str = MIA
) -> dict[str, Any]:
    yes = [{"text": {"type": "plain_text", "text": "x"}, "value": "yes"}]
    cards = yes if copies else []
    values = {
        FROM: {ActionId.VALUE: {"type": "timepicker", "selected_time": start}},
        QUIET_UNTIL: {ActionId.VALUE: {"type": "timepicker", "selected_time": until}},
        COPIES: {ActionId.VALUE: {"type": "checkboxes", "selected_options": cards}},
    }
    return a_form(MESSAGES_FORM, values, by)


async def test_home_says_when_messages_come_and_its_form_changes_that(counter: Counter) -> None:
    home = await home_of(counter)
    assert "🔔 Direct messages\nAt any time." in texts(home)
    assert buttons(home)["Change…"] == view.MESSAGES

    await counter.send(clicked(view.MESSAGES))
    (form,) = counter.views.opened
    assert view_errors(form) == []
    counter.office.clock.forward(seconds=6)
    assert (await counter.send(messages("22:00", "07:00"))).body in {"", "{}"}
    home = await home_of(counter)
    words = "Muted from 10:00 PM to 7:00 AM, except high-risk requests."
    assert f"🔔 Direct messages\n{words}" in texts(home)

    await counter.send(clicked(view.MESSAGES))
    shown = json.dumps(counter.views.opened[-1])
    assert '"initial_time": "22:00"' in shown
    assert "initial_options" not in shown
    counter.office.clock.forward(seconds=6)
    await counter.send(messages(None, None))
    assert "🔔 Direct messages\nAt any time." in texts(await home_of(counter))


async def test_cards_by_direct_message_are_asked_for_in_that_form(counter: Counter) -> None:
    await counter.send(messages(None, None, copies=True))
    words = "At any time. Requests you can decide are sent here too."
    assert f"🔔 Direct messages\n{words}" in texts(await home_of(counter))
    await counter.send(clicked(view.MESSAGES))
    form = counter.views.opened[-1]
    assert view_errors(form) == []
    ticked = [
        block["block_id"] for block in form["blocks"] if "initial_options" in block["element"]
    ]
    assert ticked == [COPIES]
    counter.office.clock.forward(seconds=6)
    await counter.send(messages(None, None))
    person = (await counter.office.storage.people.of("T1", [MIA]))[MIA]
    assert not person.has_copies


@pytest.mark.parametrize(
    ("start", "until", "block", "words"),
    [
        ("22:00", None, QUIET_UNTIL, "Set both times, or neither"),
        (None, "07:00", FROM, "Set both times, or neither"),
        ("22:00", "22:00", QUIET_UNTIL, "Use a different time from the one above"),
    ],
)
async def test_hours_that_are_none_are_told_at_their_field(
    counter: Counter, start: str | None, until: str | None, block: str, words: str
) -> None:
    answer = json.loads((await counter.send(messages(start, until))).body)
    assert answer["errors"] == {block: words}


@pytest.mark.parametrize("start", ["25:99", 7, ["22:00"], "22:00:00"])
async def test_hours_that_slack_never_sends_change_nothing(counter: Counter, start: Any) -> None:
    await counter.send(messages(start, "07:00"))
    assert await counter.office.storage.people.of("T1", [MIA]) == {}
