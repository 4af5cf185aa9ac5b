"""People as Slack describes them: kept for ten minutes at most; every failure refuses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, cast

import aiohttp
import pytest
from aiohttp import web
from slack_sdk.errors import SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

from bot.errors import DirectoryError
from bot.slack.directory import MAX_KEPT, PAGE, LookupCache, SlackDirectory
from bot.slack.ratelimit import SLACK_LIMITS, Pacer
from bot.words import say
from tests.support.fakes import FakeClock, SleepingClock, slack_error


@dataclass
class Answer:
    data: object


@dataclass
class Client:
    """Answers each method from a list; the last answer is given again and again."""

    answers: dict[str, list[object]]
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    pace: SleepingClock = field(default_factory=SleepingClock)
    is_called: asyncio.Event = field(default_factory=asyncio.Event)
    is_open: asyncio.Event | None = None
    """What every call waits for; None to answer at once."""

    async def api_call(self, method: str, *, params: dict[str, Any]) -> Answer:
        self.calls.append((method, params))
        self.is_called.set()
        if self.is_open is not None:
            await self.is_open.wait()
        left = self.answers[method]
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, Exception):
            raise answer
        return Answer(answer)


def a_directory(**answers: object) -> tuple[SlackDirectory, Client, FakeClock]:
    named = {name.replace("_", "."): value for name, value in answers.items()}
    client = Client({k: v if isinstance(v, list) else [v] for k, v in named.items()})
    clock = FakeClock()
    made = SlackDirectory(
        cast(AsyncWebClient, client),
        team_id="T1",
        clock=clock,
        pacer=Pacer(client.pace, client.pace.sleep),
    )
    return made, client, clock


def a_user(**changes: object) -> dict[str, object]:
    return {"user": {"id": "UADA", "team_id": "T1", "real_name": "Ada", **changes}}


async def test_a_colleague() -> None:
    directory, _, _ = a_directory(users_info=a_user(profile={"display_name": "ada"}))
    person = await directory.person("UADA")
    assert (person.user_id, person.team_id, person.name) == ("UADA", "T1", "ada")
    facts = (person.is_bot, person.is_guest, person.is_external, person.is_deleted)
    assert not any(facts)


@pytest.mark.parametrize(
    ("user", "fact"),
    [
        ({"is_restricted": True}, "is_guest"),
        ({"is_ultra_restricted": True}, "is_guest"),
        ({"is_bot": True}, "is_bot"),
        ({"deleted": True}, "is_deleted"),
        ({"is_stranger": True}, "is_external"),
        ({"team_id": "T2"}, "is_external"),
        ({"team_id": ""}, "is_external"),
        ({"team_id": None}, "is_external"),
        ({"team_id": "T2", "enterprise_user": {"teams": ["T3"]}}, "is_external"),
        (
            {"team_id": "T2", "enterprise_user": {"teams": ["T1"]}, "is_stranger": True},
            "is_external",
        ),
    ],
)
async def test_who_is_no_colleague(user: dict[str, object], fact: str) -> None:
    directory, _, _ = a_directory(users_info=a_user(**user))
    assert getattr(await directory.person("UADA"), fact)


async def test_slackbot_is_a_bot() -> None:
    directory, _, _ = a_directory(users_info=a_user())
    assert (await directory.person("USLACKBOT")).is_bot


async def test_a_person_of_an_organisation_is_at_home_in_each_of_its_workspaces() -> None:
    of_grid = {"id": "W1", "enterprise_id": "E1", "teams": ["T9", "T1"]}
    grid = a_user(team_id="T2", enterprise_user=of_grid)
    directory, _, _ = a_directory(users_info=grid)
    person = await directory.person("WADA")
    assert not person.is_external
    assert (person.team_id, person.enterprise_id) == ("T1", "E1")
    assert person.own_team_id == "T2"


async def test_a_failure_on_the_second_page_is_a_failure() -> None:
    pages: list[object] = [
        {"members": ["U1"], "response_metadata": {"next_cursor": "more"}},
        TimeoutError(),
    ]
    directory, _, _ = a_directory(conversations_members=pages)
    with pytest.raises(DirectoryError):
        await directory.channel_members("C1")


def groups(**members: list[str]) -> dict[str, object]:
    return {"usergroups": [{"id": name, "users": users} for name, users in members.items()]}


async def test_i13_what_decides_is_at_most_ten_minutes_old() -> None:
    directory, client, clock = a_directory(
        users_info=[a_user(), a_user(deleted=True)],
        conversations_members=[{"members": ["UADA"]}, {"members": []}],
        usergroups_list=[groups(S1=["UADA"]), groups(S1=[])],
    )
    for _ in range(2):
        assert not (await directory.person("UADA")).is_deleted
        assert await directory.channel_members("C1") == {"UADA"}
        assert await directory.group_members("S1") == {"UADA"}
        clock.forward(minutes=9)
    assert len(client.calls) == 3
    clock.forward(minutes=1)
    assert (await directory.person("UADA")).is_deleted
    assert await directory.channel_members("C1") == frozenset()
    assert await directory.group_members("S1") == frozenset()


async def test_i13_a_clock_that_was_set_back_keeps_nothing_longer() -> None:
    directory, _, clock = a_directory(users_info=[a_user(), a_user(deleted=True)])
    await directory.person("UADA")
    clock.forward(hours=-1)
    assert (await directory.person("UADA")).is_deleted


PERSON_CHANGED = {"type": "user_change", "user": {"id": "UADA"}}
GROUP_CHANGED = {"type": "subteam_members_changed", "subteam_id": "S1"}
LEFT = {"type": "member_left_channel", "channel": "C1", "user": "UADA"}


async def test_i13_an_event_makes_it_forget_what_has_changed() -> None:
    directory, _, _ = a_directory(
        users_info=[a_user(), a_user(deleted=True)],
        conversations_members=[{"members": ["UADA"]}, {"members": []}],
        usergroups_list=[groups(S1=["UADA"]), groups(S1=[])],
    )
    await directory.person("UADA")
    await directory.channel_members("C1")
    await directory.group_members("S1")
    for event in (PERSON_CHANGED, GROUP_CHANGED, LEFT):
        assert directory.hear(event)
    assert (await directory.person("UADA")).is_deleted
    assert await directory.channel_members("C1") == frozenset()
    assert await directory.group_members("S1") == frozenset()


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"type": "message", "channel": "C1"},
        {"type": "user_change"},
        {"type": "user_change", "user": "UADA"},
        {"type": "user_change", "user": {"id": 5}},
        {"type": "member_left_channel", "channel": ["C1"]},
        {"type": ["subteam_updated"]},
    ],
)
async def test_other_events_are_not_its_own(event: dict[str, object]) -> None:
    directory, _, _ = a_directory()
    assert not directory.hear(event)


async def test_i13_an_answer_from_before_an_event_is_not_kept() -> None:
    """The look-up is on its way when the event comes: its answer may be of the time before."""
    directory, client, _ = a_directory(usergroups_list=[groups(S1=["UADA"]), groups(S1=[])])
    client.is_open = asyncio.Event()
    early = asyncio.create_task(directory.group_members("S1"))
    await client.is_called.wait()
    directory.hear(GROUP_CHANGED)
    late = asyncio.create_task(directory.group_members("S1"))
    client.is_open.set()
    assert await early == {"UADA"}
    assert await late == frozenset()
    assert await directory.group_members("S1") == frozenset()


async def test_a_failure_is_not_remembered_and_nothing_old_is_used() -> None:
    directory, _, clock = a_directory(users_info=[a_user(), TimeoutError(), a_user()])
    await directory.person("UADA")
    clock.forward(minutes=10)
    with pytest.raises(DirectoryError):
        await directory.person("UADA")
    assert (await directory.person("UADA")).name == "Ada"


async def test_who_asks_at_the_same_time_gets_the_same_answer() -> None:
    directory, client, _ = a_directory(users_info=[a_user(), a_user(deleted=True)])
    client.is_open = asyncio.Event()
    impatient = asyncio.create_task(directory.person("UADA"))
    others = [asyncio.create_task(directory.person("UADA")) for _ in range(3)]
    await client.is_called.wait()
    impatient.cancel()
    client.is_open.set()
    people = await asyncio.gather(*others)
    assert [person.is_deleted for person in people] == [False, False, False]
    assert len(client.calls) == 1


# ---- many at once -------------------------------------------------------------------------------

CROWD = [f"U{number:04d}" for number in range(150)]


def the_crowd(**changes: object) -> dict[str, object]:
    return {"members": [{"id": user_id, "team_id": "T1", **changes} for user_id in CROWD]}


async def test_many_people_are_looked_up_by_one_list() -> None:
    directory, client, _ = a_directory(users_info=a_user(), users_list=the_crowd())
    people = [await directory.person(user_id) for user_id in CROWD]
    assert [person.user_id for person in people] == CROWD
    methods = [method for method, _ in client.calls]
    assert methods == ["users.info"] * 3 + ["users.list"]
    assert client.calls[-1][1]["limit"] == PAGE


async def test_who_is_not_on_the_list_is_looked_up_alone() -> None:
    directory, client, _ = a_directory(users_info=a_user(), users_list={"members": []})
    for user_id in CROWD[:6]:
        await directory.person(user_id)
    methods = [method for method, _ in client.calls]
    assert methods == ["users.info"] * 3 + ["users.list"] + ["users.info"] * 3


async def test_a_list_that_fails_keeps_nobody_from_being_looked_up() -> None:
    directory, _, _ = a_directory(users_info=a_user(), users_list=slack_error("fatal_error"))
    assert [(await directory.person(user_id)).name for user_id in CROWD[:6]] == ["Ada"] * 6


async def test_i13_a_list_from_before_an_event_says_nothing_of_that_person() -> None:
    gone = a_user(deleted=True)
    directory, client, _ = a_directory(
        users_info=[a_user(), a_user(), a_user(), gone], users_list=the_crowd()
    )
    for user_id in CROWD[:3]:
        await directory.person(user_id)
    client.is_called.clear()
    client.is_open = asyncio.Event()
    asked = asyncio.create_task(directory.person(CROWD[3]))
    await client.is_called.wait()
    directory.hear({"type": "user_change", "user": {"id": CROWD[3]}})
    client.is_open.set()
    await asked
    assert (await directory.person(CROWD[3])).is_deleted


PASSING: list[tuple[object, float]] = [
    (slack_error("x", status=503), 0.2),
    (slack_error("internal_error"), 0.2),
    (slack_error("ratelimited", status=429, headers={"Retry-After": "1"}), 1.0),
    (aiohttp.ClientConnectionError(), 0.2),
]


@pytest.mark.parametrize(("fault", "pause"), PASSING)
async def test_a_fault_that_passes_refuses_nobody(fault: object, pause: float) -> None:
    directory, client, _ = a_directory(users_info=[fault, a_user()])
    assert (await directory.person("UADA")).name == "Ada"
    assert client.pace.slept == [pause]


@pytest.mark.parametrize(
    ("fault", "calls"),
    [
        (slack_error("x", status=503), 3),
        (slack_error("ratelimited", status=429, headers={"Retry-After": "30"}), 1),
        (slack_error("missing_scope"), 1),
        (TimeoutError(), 1),
    ],
)
async def test_a_fault_that_lasts_refuses_while_somebody_still_waits(
    fault: object, calls: int
) -> None:
    directory, client, _ = a_directory(users_info=fault)
    with pytest.raises(DirectoryError):
        await directory.person("UADA")
    assert len(client.calls) == calls


async def test_memory_is_bounded() -> None:
    kept: LookupCache[str] = LookupCache(FakeClock(), timedelta(minutes=1))
    for number in range(MAX_KEPT + 1):
        kept.put(str(number), "x", asked_ms=kept._clock())
    assert len(kept._answers) == MAX_KEPT
    assert kept.known("0") is None
    assert kept.known(str(MAX_KEPT)) == "x"


FAULTS: list[object] = [
    slack_error("internal_error"),
    SlackClientError(),
    aiohttp.ClientConnectionError(),
    ConnectionResetError(),
    TimeoutError(),
    "a text",
    {},
    {"user": None},
    {"user": "UADA"},
    {"user": []},
    {"user": {"team_id": "T1", "profile": "x"}},
    {"user": {"team_id": "T1", "enterprise_user": "x"}},
    {"user": {"team_id": "T2", "enterprise_user": {"teams": 5}}},
    {"members": None, "usergroups": None},
    {"members": 5, "usergroups": 5},
    {"members": [["U1"]], "usergroups": [["S1"]]},
    {"members": "U1", "usergroups": "S1"},
    {"usergroups": [{"users": ["U1"]}]},
    {"usergroups": [{"id": "S1"}]},
    {"usergroups": [{"id": "S1", "user_count": 1}]},
    {"usergroups": [{"id": "S1", "users": None}]},
    {"usergroups": [{"id": "S1", "users": "U1"}]},
    {"usergroups": [{"id": "S1", "users": [["U1"]]}]},
]


@pytest.mark.parametrize("fault", FAULTS)
async def test_every_failure_is_a_directory_error(fault: object) -> None:
    directory, _, _ = a_directory(
        users_info=fault, conversations_members=fault, usergroups_list=fault
    )
    with pytest.raises(DirectoryError) as raised:
        await directory.person("UADA")
    assert str(raised.value) == say("refuse.lookup")
    with pytest.raises(DirectoryError):
        await directory.channel_members("C1")
    with pytest.raises(DirectoryError):
        await directory.group_members("S1")


@pytest.mark.parametrize("count", [0, "0"])
async def test_members_of_groups_come_in_one_list(count: object) -> None:
    empty = {"id": "S2", "user_count": count}
    listed = {"usergroups": [{"id": "S1", "users": ["U1"]}, empty]}
    directory, client, _ = a_directory(usergroups_list=listed)
    assert await directory.group_members("S1") == {"U1"}
    assert await directory.group_members("S2") == frozenset()
    assert client.calls == [("usergroups.list", {"include_users": "true"})]


async def test_a_group_that_is_not_known_is_looked_for_again_after_a_minute() -> None:
    directory, client, clock = a_directory(usergroups_list=[groups(S1=[]), groups(S2=["U1"])])
    for _ in range(2):
        with pytest.raises(DirectoryError) as raised:
            await directory.group_members("S2")
        assert raised.value.detail.endswith("no_such_subteam")
    assert len(client.calls) == 1
    clock.forward(minutes=1)
    assert await directory.group_members("S2") == {"U1"}


async def test_slacks_limit_is_kept_and_the_person_is_told_when_to_ask_again() -> None:
    directory, client, _ = a_directory(usergroups_list=groups(S1=["U1"]))
    most = SLACK_LIMITS["usergroups.list"][0].most
    for _ in range(most):
        directory.hear(GROUP_CHANGED)
        await directory.group_members("S1")
    directory.hear(GROUP_CHANGED)
    client.pace.forward(seconds=20)
    with pytest.raises(DirectoryError) as raised:
        await directory.group_members("S1")
    assert "Slack lets me check this again in 41 s." in str(raised.value)
    assert len(client.calls) == most
    client.pace.forward(seconds=41)
    assert await directory.group_members("S1") == {"U1"}


async def test_retry_after_is_obeyed_however_long() -> None:
    slow_down = slack_error("ratelimited", status=429, headers={"Retry-After": "1800"})
    directory, client, _ = a_directory(usergroups_list=[slow_down, groups(S1=["U1"])])
    for _ in range(3):
        with pytest.raises(DirectoryError) as raised:
            await directory.group_members("S1")
        assert raised.value.again == timedelta(minutes=30)
    assert len(client.calls) == 1
    client.pace.forward(minutes=30)
    assert await directory.group_members("S1") == {"U1"}


@dataclass
class Proxy:
    """Something on the way to Slack that answers in its own words."""

    url: str = ""
    answer: web.Response = field(default_factory=web.Response)


@pytest.fixture
async def proxy() -> AsyncIterator[Proxy]:
    made = Proxy()

    async def answer(_: web.Request) -> web.Response:
        return made.answer

    app = web.Application()
    app.router.add_route("*", "/api/{method}", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}/api/"
    yield made
    await runner.cleanup()


@pytest.mark.parametrize(
    ("status", "kind", "body"),
    [
        (502, "text/html", "<h1>Bad gateway</h1>"),
        (502, "text/plain", "Bad gateway"),
        (200, "text/plain", "Please log in"),
        (200, "application/json", "[]"),
        (200, "application/json", "{broken"),
    ],
)
async def test_a_proxy_that_answers_for_slack(
    proxy: Proxy, status: int, kind: str, body: str
) -> None:
    proxy.answer = web.Response(status=status, content_type=kind, text=body)
    client = AsyncWebClient(token="xoxb-test", base_url=proxy.url, timeout=2, retry_handlers=[])
    time = SleepingClock()
    directory = SlackDirectory(client, team_id="T1", clock=time, pacer=Pacer(time, time.sleep))
    with pytest.raises(DirectoryError):
        await directory.person("UADA")


async def test_somebody_whom_slack_does_not_know_is_nobody_of_ours() -> None:
    directory, _, _ = a_directory(users_info=slack_error("user_not_found"))
    person = await directory.person("U0GHOST")
    assert person.is_external
    assert person.team_id == ""


@pytest.mark.parametrize(
    ("channel", "name"),
    [({"id": "C1", "name": "ops"}, "ops"), ({"id": "C1", "is_im": True, "user": "UADA"}, "")],
)
async def test_the_name_of_a_channel(channel: dict[str, object], name: str) -> None:
    directory, client, _ = a_directory(conversations_info={"channel": channel})
    assert await directory.channel_name("C1") == name
    assert await directory.channel_name("C1") == name
    assert len(client.calls) == 1


async def test_a_direct_message_has_no_name() -> None:
    directory, client, _ = a_directory()
    assert await directory.channel_name("D1") == ""
    assert client.calls == []


@pytest.mark.parametrize("answer", [{}, {"channel": "ops"}, {"channel": {"id": "C1"}}])
async def test_a_channel_of_another_shape(answer: dict[str, object]) -> None:
    directory, _, _ = a_directory(conversations_info=answer)
    with pytest.raises(DirectoryError):
        await directory.channel_name("C1")
