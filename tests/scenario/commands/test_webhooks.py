"""`countersign webhooks`: endpoints of programs, beside the bot."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable

import pytest

from bot.commands.call import Finding
from bot.commands.database import look_at_storage
from bot.config.settings import Settings
from bot.records.programs import program_id
from bot.records.webhooks import EndpointStatus, QueuedEvent
from bot.stores import Stores
from tests.contract.builders import a_delivery, a_program, a_queue, an_endpoint
from tests.scenario.commands.test_upkeep import Place, place

__all__ = ["place"]

SECRET = re.compile(r"whsec_[A-Za-z0-9+/]{43}=")
ENVIRON = {
    "SLACK_BOT_TOKEN": "xoxb-1-2-abcdefghij",
    "SLACK_APP_TOKEN": "xapp-1-2-abcdefghij",
    "COUNTERSIGN_APPROVERS": "U0ADA",
    "COUNTERSIGN_CALLBACK_PRIVATE": "127.0.0.0/8,::1/128",
}


def with_program(place: Place, work: Callable[[Stores], Awaitable[None]]) -> None:
    """Do something while there is the program ci, which may have events sent to this machine."""

    async def doing(storage: Stores) -> None:
        place.environ |= ENVIRON
        await storage.programs.add(a_program("ci", callback_hosts=("localhost:8092",)))
        await work(storage)

    place.do(doing)


def test_an_endpoint_is_added_rotated_and_removed(place: Place) -> None:
    async def work(storage: Stores) -> None:
        lines = await place.type(
            "webhooks", "add", "ci", "http://localhost:8092/hook", "--event", "request.decided"
        )
        name = lines[0].partition(":")[0]
        assert lines[0] == f"{name}: gets events of ci."
        assert SECRET.fullmatch(lines[-1])
        (listed,) = await place.type("webhooks", "list")
        assert listed == f"{name}  ci  on  http://localhost:8092/hook  request.decided"
        (line,) = await place.type("webhooks", "list", "--json")
        assert json.loads(line)["program"] == "ci"
        assert "whsec" not in line
        rotated = await place.type("webhooks", "rotate", name)
        assert SECRET.fullmatch(rotated[-1])
        assert rotated[-1] != lines[-1]
        lines = await place.type("webhooks", "rotate", "--program", "ci")
        assert lines[0].startswith("callback_url of ci: has a new secret.")
        program = await storage.programs.program(program_id("ci"))
        assert program is not None
        assert program.callback_secrets[0].text == lines[-1]
        assert await place.type("webhooks", "remove", name) == [f"{name}: removed."]
        assert await place.type("webhooks", "list") == ["No program has an endpoint."]

    with_program(place, work)


def test_what_cannot_be_done_is_said(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    async def work(_: Stores) -> None:
        url = "http://localhost:8092/hook"
        for words, fault in (
            (("add", "cd", url), "no program cd"),
            (("add", "ci", url, "--event", "request.gone"), "isn't a type of event"),
            (("add", "ci", "https://example.com/"), "does not name this host"),
            (("remove", "whe_1"), "no endpoint whe_1"),
            (("redrive", "whe_1", "--since", "soon"), "isn't valid"),
        ):
            place.environ |= ENVIRON
            await place.type("webhooks", *words, fails=True)
            assert fault in capsys.readouterr().err

    with_program(place, work)


def test_44_events_are_sent_again(place: Place) -> None:
    async def work(storage: Stores) -> None:
        lines = await place.type("webhooks", "add", "ci", "http://localhost:8092/hook")
        name = lines[0].partition(":")[0]
        store = storage.webhooks
        await store.change(name, lambda known: known.changed(status=EndpointStatus.PAUSED))
        delivery = a_delivery(1, id=f"{name}:e1", endpoint_id=name, status="given_up")
        await store.keep(delivery)
        lines = await place.type("webhooks", "redrive", name)
        assert lines == [f"{name}: is on. 1 earlier events are sent again."]
        endpoint = await store.endpoint(name)
        assert endpoint is not None
        assert endpoint.status is EndpointStatus.ON
        assert len((await store.queues.due(now_ms=1 << 50, limit=9))[0].waiting) == 1

    with_program(place, work)


def test_deliveries_show_state_attempts_and_the_last_answer(place: Place) -> None:
    async def work(storage: Stores) -> None:
        store = storage.webhooks
        await store.endpoints.insert(an_endpoint(program_id=program_id("ci")))
        assert await place.type("webhooks", "deliveries", "whe_1") == ["whe_1: no deliveries."]
        await store.keep(a_delivery(1, last_status=204))
        gone = a_delivery(2, status="given_up", attempts=10, last_status=500)
        await store.keep(gone.changed(last_error="HTTP 500 no"))
        event = QueuedEvent(type="request.decided", sequence=3, at_ms=3, body="{}")
        due = "2026-09-21 14:13 UTC"
        failed = a_queue(attempts=2, last_error="no answer in time", due_ms=1_790_000_000_000)
        await store.queues.insert(failed.changed(waiting=(event,), is_waiting=True))
        assert await place.type("webhooks", "deliveries", "whe_1") == [
            f"evt_1_3  request.decided  waiting  2 attempts  no answer in time  next {due}",
            "evt_1_2  request.decided  given_up  10 attempts  HTTP 500 no",
            "evt_1_1  request.decided  delivered  1 attempt  HTTP 204",
        ]
        (line,) = await place.type("webhooks", "deliveries", "whe_1", "--status", "given_up")
        assert line.startswith("evt_1_2")
        lines = await place.type("webhooks", "deliveries", "whe_1", "--json")
        assert [json.loads(text)["sequence"] for text in lines] == [3, 2, 1]

    with_program(place, work)


def test_the_doctor_names_an_endpoint_that_gets_no_events(place: Place) -> None:
    async def work(storage: Stores) -> None:
        await storage.webhooks.endpoints.insert(an_endpoint(status=EndpointStatus.PAUSED))

    async def look() -> list[Finding]:
        looking = look_at_storage(Settings.load(place.environ), Settings.make_storage)
        return [finding async for finding in looking if finding.subject == "webhooks"]

    with_program(place, work)
    (silent,) = asyncio.run(look())
    assert silent.text == "whe_1 is paused, so its program gets no events"
    assert silent.remedy.endswith("countersign webhooks redrive whe_1")
