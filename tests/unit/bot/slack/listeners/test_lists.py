"""Words that list, after the command and after a mention in a thread: what people read."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from agents.models import say
from bot.layout.short_ids import LENGTH, prefix_of, short_id
from bot.records.approval import Status
from slack_sandbox.blockkit.rules import message_errors
from tests.contract.builders import a_grant, a_program, a_program_key
from tests.support.stores import SqliteStores
from tests.unit.bot.approvals.test_votes import an_office
from tests.unit.bot.counter_stage import Counter, an_event
from tests.unit.bot.office import BEN, CHANNEL, GUS, ROOT, ROSA, THREAD_ID
from tests.unit.bot.slack.listeners.test_commands import send
from tests.unit.bot.slack.listeners.test_home import MIA, ONE, counter, rows, with_many

__all__ = ["counter"]


async def answered(counter: Counter, text: str, *, by: str = MIA) -> dict[str, Any]:
    answer = await send(counter, text, by=by)
    body: dict[str, Any] = json.loads(answer.body)
    assert (answer.status, body["response_type"]) == (200, "ephemeral")
    message = {"text": body["text"], "blocks": body.get("blocks") or []}
    assert message_errors(message) == []
    return body


def read(body: dict[str, Any]) -> str:
    return " | ".join(rows(body.get("blocks") or []))


async def test_the_list_has_what_waits_with_its_button(
    counter: Counter, subtests: pytest.Subtests
) -> None:
    cases: list[str] = ["", "list", "LIST", "  list  "]
    for text in cases:
        with subtests.test(text=text):
            body = await answered(counter, text)
            assert body["text"] == "1 waiting for you"
            assert "Pay 5 to Mia\nExpires today 11:00 AM · Rosa Ortiz in #c1" in read(body)
            assert body["blocks"][1]["accessory"]["text"]["text"] == "Review"


async def test_a_long_list_says_that_there_is_more(counter: Counter) -> None:
    await with_many(counter, 30)
    body = await answered(counter, "list")
    assert body["text"] == "31 waiting for you"
    assert body["blocks"][-1]["elements"][0]["text"] == "1\N{EN DASH}20 of 31"
    assert len(body["blocks"]) == 42


async def test_own_requests_are_listed(counter: Counter) -> None:
    body = await answered(counter, "mine", by=ROSA)
    assert "Pay 5 to Mia\nExpires today 4:00 PM · ⏳ Needs approval · #c1" in read(body)
    assert (await answered(counter, "mine"))["text"] == "None of your requests are waiting."


async def test_what_was_decided_is_listed(counter: Counter) -> None:
    assert (await answered(counter, "decided"))["text"] == "Nothing has been decided yet."
    await counter.office.decide(await counter.office.the_approval(), Status.APPROVED, by=MIA)
    assert "✅ Approved by you · ran today 3:00 AM" in read(await answered(counter, "decided"))
    assert "Approved by Mia Chen" in read(await answered(counter, "decided", by=ROSA))
    assert "Approved" not in str(await answered(counter, "decided", by=BEN))


async def test_one_request_is_shown_by_its_letters(counter: Counter) -> None:
    letters = short_id((await counter.office.the_approval()).approval_id)
    for typed in (letters, letters.lower(), (await counter.office.the_approval()).approval_id):
        body = await answered(counter, f"show {typed}")
        assert body["text"] == f"{letters}: Pay 5 to Mia"
        assert body["blocks"][0]["accessory"]["text"]["text"] == "Review"
    own = await answered(counter, f"show {letters}", by=ROSA)
    assert own["blocks"][0]["accessory"]["text"]["text"] == "Open"


async def test_nobody_is_shown_what_they_may_not_see(counter: Counter) -> None:
    approval = await counter.office.the_approval()
    counter.office.directory.channels[CHANNEL] = frozenset({ROSA})
    body = await answered(counter, f"show {short_id(approval.approval_id)}", by=BEN)
    assert "There's no request" in body["text"]
    assert "Pay" not in json.dumps(body)
    counter.office.directory.channels[CHANNEL] = frozenset({ROSA, BEN})
    body = await answered(counter, f"show {short_id(approval.approval_id)}", by=BEN)
    assert "Pay 5 to Mia" in body["text"]


async def test_a_title_that_would_be_markup_is_none(counter: Counter) -> None:
    approval = await counter.office.the_approval()
    evil = approval.changed(
        approval_id=f"apr_{7:032x}", title="<!channel> *now* <http://x|y>", position=7, due_ms=None
    )
    await counter.office.storage.approvals.insert(evil)
    body = await answered(counter, f"show {evil.approval_id}")
    assert "&lt;!channel&gt;" in body["text"]
    assert "<!channel>" not in body["text"]
    assert body["blocks"][0]["text"]["type"] == "plain_text"


async def with_grant(counter: Counter, **changes: Any) -> None:
    approval = await counter.office.the_approval()
    fields = {
        "granter_id": MIA,
        "approval_id": approval.approval_id,
        "thread_id": THREAD_ID,
        "requesters": (ROSA,),
        "created_ms": counter.office.clock(),
        "until_ms": counter.office.clock() + 3_600_000,
        "max_uses": 5,
        "uses": ("a",),
        **changes,
    }
    await counter.office.storage.grants.add(
        a_grant(f"{THREAD_ID}:grant:{approval.approval_id}", **fields)
    )


async def test_grants_are_listed_and_ended_by_their_numbers(counter: Counter) -> None:
    assert (await answered(counter, "grants"))["text"] == "No standing permissions."
    await with_grant(counter)
    body = await answered(counter, "grants")
    assert body["text"] == "1 standing permission is active."
    assert "1. Pay 5 to Mia\n🔑 Runs without asking · 1 of 5 used · until today 4:00 AM" in read(
        body
    )
    assert body["blocks"][1]["accessory"]["text"]["text"] == "Stop…"
    assert (await answered(counter, "grants", by=BEN))["text"] == "No standing permissions."
    assert (await answered(counter, "revoke 1"))["text"] == (
        "Stopped: Pay 5 to Mia. The agent asks again."
    )
    assert (await answered(counter, "grants"))["text"] == "No standing permissions."


async def test_a_grant_of_a_channel_that_its_reader_left_shows_its_id_only(
    counter: Counter,
) -> None:
    await with_grant(counter)
    assert "Pay 5 to Mia" in read(await answered(counter, "grants", by=ROSA))
    directory = counter.office.directory
    directory.channels[CHANNEL] = directory.channels[CHANNEL] - {ROSA}
    name = short_id((await counter.office.the_approval()).approval_id)
    body = await answered(counter, "grants", by=ROSA)
    reply = (await answered(counter, "revoke 1", by=ROSA))["text"]
    for text in (str(body), reply):
        assert name in text
        assert "Pay 5" not in text
    assert body["blocks"][1]["accessory"]["text"]["text"] == "Stop…"


async def test_nobody_ends_the_grant_of_others(counter: Counter) -> None:
    await with_grant(counter)
    assert (
        "There's no standing permission 1." in (await answered(counter, "revoke 1", by=BEN))["text"]
    )
    assert (await answered(counter, "grants"))["text"] == "1 standing permission is active."


async def test_health_is_for_admins(counter: Counter) -> None:
    assert (await answered(counter, "health"))["text"] == "Only admins can see this."
    counter.office.directory.add(MIA, is_admin=True)
    text = (await answered(counter, "health"))["text"]
    assert "Slack is connected." in text
    assert "1 request is waiting." in text
    assert "last key" not in text


async def test_admins_see_programs_whose_last_key_ends_soon(counter: Counter) -> None:
    office = counter.office
    office.directory.add(MIA, is_admin=True)
    program = a_program("ci")
    await office.storage.programs.add(program)
    ends_ms = office.clock() + 13 * 86_400_000
    await office.storage.programs.add_key(
        a_program_key("a" * 8, program_id=program.id, expires_ms=ends_ms)
    )
    assert "The last key of ci ends " in (await answered(counter, "health"))["text"]


async def test_each_word_of_the_help_is_one_that_works(counter: Counter) -> None:
    text = (await answered(counter, "help"))["text"]
    typed = [
        line.split("`")[1].removeprefix("/countersign").strip() for line in text.split("\n")[1:-1]
    ]
    assert len(typed) == 14
    for command in typed:
        words = command.replace("@ben", f"<@{BEN}>").replace(" for sre", "")
        reply = (await answered(counter, words))["text"]
        assert "I don't know" not in reply, command
        assert "couldn't read" not in reply, command


async def test_each_command_of_the_guide_works(counter: Counter) -> None:
    page = Path(__file__).parents[5] / "docs" / "how-to" / "decide-in-slack.md"
    commands = re.findall(r"`/countersign ?([^`]*)`", page.read_text("utf-8"))
    assert len(commands) == 7
    for command in commands:
        reply = (await answered(counter, command.replace("@ben", f"<@{BEN}>")))["text"]
        assert "I don't know" not in reply, command
        assert "couldn't read" not in reply, command


async def test_what_is_wrong_gets_an_answer_of_at_most_two_lines(
    counter: Counter, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str, str]] = [
        ("aprove", "Approve or reject on the request's card"),
        ("approve apr_1", "Approve or reject on the request's card"),
        ("yes", "Approve or reject on the request's card"),
        ("lst", "Did you mean `list`?"),
        ("helpp", "Did you mean `help`?"),
        ("decide", "Approve or reject on the request's card"),
        ("gants", "Did you mean `grants`?"),
        ("zzzz", "Did you mean `list`?"),
        ("list all", "“list all”. Did you mean `list`?"),
        ("show", "Add the request's ID, such as"),
        ("show a&lt;b&amp;&gt;c", "There's no request a&lt;b&amp;&gt;c"),
        ("show <!channel>", "There's no request @channel"),
        ("show ????", "There's no request ????"),
        ("show 0000", "There's no request 0000"),
        ("show apr_", "There's no request"),
        ("show " + "4" * 400, "There's no request"),
        ("revoke", "There's no standing permission …"),
        ("revoke 0", "There's no standing permission 0."),
        ("revoke -1", "There's no standing permission -1."),
        ("revoke 99999999", "There's no standing permission 99999999."),
        ("revoke two", "There's no standing permission two."),
        ("away until untill freitag", "I couldn't read “until untill freitag”. Try `until Fri`"),
        ("away for 3", "I couldn't read “for 3”"),
        ("away for 0 days", "I couldn't read “for 0 days”"),
        ("away for 9999 weeks", "30 days or less"),
        ("away until fri for @ben", "I don't know @ben. Mention a person, such as @ben."),
        (f"away until fri <@{BEN}>", "Put one person at the end"),
        (f"away for <@{BEN}>", "Add an end"),
        ("quiet 22", "I couldn't read “22”. Try `/countersign quiet 22:00-07:00`"),
        ("quiet at night", "I couldn't read “at night”"),
        ("quiet 25:00-07:00", "I couldn't read “25:00-07:00”"),
        ("quiet 22:60-07:00", "I couldn't read “22:60-07:00”"),
        ("quiet 13pm-7am", "I couldn't read “13pm-7am”"),
        ("quiet 22:00-07:00 please", "I couldn't read “22:00-07:00 please”"),
        ("quiet 22:00-22:00", "Both times are 10:00 PM."),
        ("quiet 0-24", "Both times are 12:00 AM."),
        ("quiet <!here>", "I couldn't read “@here”"),
        ("<@U0|x>", "“&lt;@U0&gt;”"),
        ("show <http://acme.example|acme.example>", "There's no request acme.example"),
        ("*bold* _x_ `code`", "I don't know"),
    ]
    for text, words in cases:
        with subtests.test(text=text, words=words):
            body = await answered(counter, text)
            assert words in body["text"]
            assert body["text"].count("\n") < 2
            assert not body.get("blocks")


async def test_away_for_days_hands_over_and_back_ends_all(counter: Counter) -> None:
    body = await answered(counter, f"away for 3 days for <@{BEN}|ben>")
    assert f"<@{BEN}> decides for you until" in body["text"]
    assert (await answered(counter, "list", by=BEN))["text"] == "1 waiting for you"
    assert "You decide again" in (await answered(counter, "back"))["text"]
    assert (await answered(counter, "back"))["text"] == "You're not away."
    assert (await answered(counter, "list", by=BEN))["text"] == "Nothing is waiting for you."


async def test_quiet_hours_are_read_as_people_write_them(
    counter: Counter, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str, str]] = [
        ("22:00-07:00", "from 10:00 PM to 7:00 AM"),
        ("22-7", "from 10:00 PM to 7:00 AM"),
        ("10pm-7am", "from 10:00 PM to 7:00 AM"),
        ("10:30 PM to 7 AM", "from 10:30 PM to 7:00 AM"),
        ("from 18:00 until 9:00", "from 6:00 PM to 9:00 AM"),
        ("12am-12pm", "from 12:00 AM to 12:00 PM"),
        ("20:00\N{EN DASH}24:00", "from 8:00 PM to 12:00 AM"),
    ]
    for typed, words in cases:
        with subtests.test(typed=typed, words=words):
            expected = f"Direct messages muted {words}, except high-risk requests."
            assert (await answered(counter, f"quiet {typed}"))["text"] == expected
            assert (await answered(counter, "quiet"))["text"] == expected
            again = (await answered(counter, "quiet off"))["text"]
            assert again == "Direct messages are back on."
            assert (await answered(counter, "quiet"))["text"].startswith("Direct messages are on")


async def test_a_word_about_quiet_hours_is_answered_in_a_thread_too(counter: Counter) -> None:
    await counter.send(mentioned("<@UBOT> quiet 22:00-07:00"))
    ((_, text),) = counter.office.notifier.whispers
    assert text.startswith("Direct messages muted from 10:00 PM")


async def test_guests_and_strangers_learn_nothing(
    counter: Counter, subtests: pytest.Subtests
) -> None:
    cases: list[str] = ["list", "mine", "decided", "show 0000", "grants", "quiet 22-7", "health"]
    for text in cases:
        with subtests.test(text=text):
            assert "Guests" in (await answered(counter, text, by=GUS))["text"]
            counter.office.directory.add(BEN, is_external=True, team_id="T9")
            assert "this workspace" in (await answered(counter, text, by=BEN))["text"]


async def test_a_directory_that_is_down_shows_nothing(counter: Counter) -> None:
    counter.office.directory.is_down = True
    body = await answered(counter, "list")
    assert "check" in body["text"]
    assert not body.get("blocks")


def mentioned(text: str, *, kind: str = "app_mention", ts: str = "1800000001.000001") -> Any:
    return an_event(type=kind, user=MIA, ts=ts, thread_ts=ROOT, text=text, team="T1")


async def test_a_word_in_a_thread_is_answered_once_and_privately(counter: Counter) -> None:
    for kind in ("app_mention", "message"):
        assert (await counter.send(mentioned("<@UBOT> list", kind=kind))).status == 200
    notifier = counter.office.notifier
    assert notifier.whispers == [(MIA, "1 waiting for you")]
    assert notifier.whispered_to == [(CHANNEL, ROOT)]
    assert "Pay 5 to Mia" in str(notifier.whispered_blocks)
    assert await counter.office.storage.inbox.new(THREAD_ID, limit=9) == []


@pytest.mark.parametrize(
    "text",
    [
        "<@UBOT> list the files of the project",
        "<@UBOT> help me deploy payments",
        "<@UBOT> show me the numbers of May",
        "<@UBOT> quiet the alerts of payments",
        "list",
        "<@UBOT> stop",
        "please <@UBOT> list",
    ],
)
async def test_what_is_meant_for_the_agent_is_no_word(counter: Counter, text: str) -> None:
    await counter.send(mentioned(text))
    assert counter.office.notifier.whispered_blocks in ([], [[]])


async def test_a_mention_outside_of_a_thread_is_for_the_agent(storage: SqliteStores) -> None:
    counter = Counter.on(an_office(storage, ONE, turns_of_model=[say("Hello.")]))
    event = mentioned("<@UBOT> list")
    del event["event"]["thread_ts"]
    await counter.send(event)
    assert counter.office.notifier.whispers == []


def test_letters_are_read_as_they_are_written() -> None:
    for number in (0, 1, 0xFFFFF, 0x4F2B1):
        approval_id = f"apr_{number:05x}{'0' * 27}"
        letters = short_id(approval_id)
        assert len(letters) == LENGTH
        assert approval_id.startswith(prefix_of(letters))
    assert prefix_of("oil1") == prefix_of("0111")
    assert prefix_of("UUUU") == prefix_of("") == prefix_of("12345") == ""
    assert short_id("odd") == "odd"
