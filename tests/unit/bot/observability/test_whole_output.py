"""All that is counted, timed and traced of one played afternoon, to the letter.

Dashboards and alerts go by these names, labels and attributes: a change of one of them is a change
that operators have to be told of.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from slack_sdk.errors import SlackApiError

from agents import ChatModelAgent, ScriptedModel, tool
from agents.core.checkpoint import CheckpointStatus
from agents.models import call, say
from bot.errors import NotApproverError
from bot.maintenance.policies import PolicyRecorder
from bot.observability.events import both
from bot.observability.instrument import metered
from bot.observability.metrics import Metrics
from bot.observability.tracing import Tracing, trace_context
from bot.policy.current import PolicyNews
from bot.records.approval import Status
from bot.slack.app import answering
from bot.slack.connect import Identity, Slack
from bot.tasks import Tasks
from storage.errors import StoreUnavailableError
from tests.support.fakes import FakeClock
from tests.support.stores import SqliteStores
from tests.unit.bot.office import GUS, THREAD_ID, Office

RECORDED = Path("tests/data/telemetry.txt").read_text()

_A_UUID = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}")


class Observed:
    """The telemetry of one process."""

    def __init__(self) -> None:
        self.metrics, self._exporter, provider = Metrics(), InMemorySpanExporter(), TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tell = both(self.metrics, Tracing(provider))

    def text(self) -> str:
        """Everything, without what depends on the machine."""
        shown = self.metrics.text().decode().splitlines()
        text = "\n".join([*filter(_is_certain, shown), *map(_line_of, self._spans()), ""])
        ids = dict.fromkeys(uuid.replace("-", "") for uuid in _A_UUID.findall(text))
        numbers = {name: f"<{number}>" for number, name in enumerate(ids, start=1)}
        return _A_UUID.sub(lambda match: numbers[match[0].replace("-", "")], text)

    def _spans(self) -> Iterator[ReadableSpan]:
        return iter(self._exporter.get_finished_spans())


def _is_certain(line: str) -> bool:
    """A moment, and the length of what is measured by the machine's own clock, are not."""
    of_machine = "click_to_ack|slack_call"
    return not re.match(
        rf"countersign_\w+_created|countersign_({of_machine})\w+_(sum|bucket)", line
    )


def _line_of(span: ReadableSpan) -> str:
    (parent,) = trace_context(THREAD_ID).values()
    expected = parent.get_span_context()  # type: ignore[attr-defined]
    assert span.parent == expected
    assert span.context is not None
    assert span.context.trace_id == expected.trace_id
    assert span.start_time is not None
    assert span.end_time is not None
    assert span.start_time <= span.end_time
    assert not span.events
    about = " ".join(f"{key}={value!s}" for key, value in sorted((span.attributes or {}).items()))
    status = " ".join(filter(None, [span.status.status_code.name, span.status.description]))
    return f"{span.name} {span.kind.name} {status} | {about}"


@dataclass
class Breakable:
    """Keeps checkpoints, unless the database is away."""

    save: Callable[..., Coroutine[Any, Any, int]]
    is_broken: bool = False

    async def __call__(
        self, checkpoint_id: str, data: str, *, status: CheckpointStatus, expected_version: int
    ) -> int:
        if self.is_broken:
            raise StoreUnavailableError("away")
        return await self.save(
            checkpoint_id, data, status=status, expected_version=expected_version
        )


@tool(gate="review", title="Pay {amount} to {to}")
def pay(to: str, amount: int) -> str:
    """Pay somebody.

    Args:
        to: Who gets it.
        amount: How much.
    """
    if amount > 100:
        raise ValueError(f"{to} takes no more than 100")
    return f"paid {amount} to {to}"


def _agent(model: ScriptedModel) -> ChatModelAgent:
    return ChatModelAgent(name="A", model=model, tools=[pay])


async def _play(office: Office, save: Breakable, clock: FakeClock) -> None:
    """Approve, after somebody tried who may not; reject; let expire; fail; lose the database."""
    await office.hear("<@UBOT> pay Mia")
    await office.hear("<@UBOT> pay Mia")  # Slack sends it again
    clock.forward(seconds=40)
    with pytest.raises(NotApproverError):
        await office.decide(await office.the_approval(), by=GUS)
    await office.decide(await office.the_approval())

    await office.hear("and Joe", ts="1800000001.000001")
    clock.forward(seconds=7)
    office.notifier.failing.add("update")
    await office.decide(await office.the_approval(), Status.REJECTED)
    office.notifier.failing.clear()
    clock.forward(minutes=5)
    await office.later()

    await office.hear("and Kim", ts="1800000002.000001")
    clock.forward(hours=9)
    await office.later()

    await office.hear("and Lea, all of it", ts="1800000003.000001")
    await office.decide(await office.the_approval())

    await _lose(office, save)
    clock.forward(minutes=10)
    await office.later()


async def _lose(office: Office, save: Breakable) -> None:
    """A message comes, and the first step of its run cannot be kept."""
    save.is_broken = True
    with pytest.raises(StoreUnavailableError):
        await office.hear("and Ned", ts="1800000004.000001")
    save.is_broken = False


async def _call_slack(observed: Observed) -> None:
    """Slack answers, refuses, and is no API at all."""

    async def answer(request: web.Request) -> web.Response:
        if request.path.endswith("chat.update"):
            return web.json_response({"ok": False, "error": "message_not_found"})
        return web.json_response({"ok": True})

    app = web.Application()
    app.router.add_post("/{method:.*}", answer)
    async with TestServer(app) as server:
        slack = Slack(
            token="xoxb-1",
            signing_secret="",
            api_url=f"{server.make_url('')}",
            identity=Identity(team_id="T1", bot_user_id="UBOT", bot_id="B1"),
        )
        client = slack.client(timeout_s=5, tell=observed.tell)
        await client.chat_postMessage(channel="C1", text="Paid.")
        with pytest.raises(SlackApiError):
            await client.chat_update(channel="C1", ts="1.2", text="Paid.")
    with pytest.raises(OSError, match="Cannot connect"):
        await client.chat_postMessage(channel="C1", text="Paid.")


async def test_one_afternoon_is_counted_timed_and_traced_as_ever(storage: SqliteStores) -> None:
    observed, clock = Observed(), FakeClock()
    save = Breakable(storage.checkpoints.save)
    storage.checkpoints.save = save  # type: ignore[method-assign]
    watched = metered(storage, observed.tell, clock)
    amounts = {"Mia": 5, "Joe": 6, "Kim": 7, "Lea": 500}
    turns = [
        turn
        for number, (name, amount) in enumerate(amounts.items())
        for turn in (call("pay", {"to": name, "amount": amount}, id=f"c{number}"), say("Well."))
    ]
    office = Office(
        watched,
        [*turns, say("Nothing to pay.")],
        clock=clock,
        make_agent=_agent,
        tell=observed.tell,
    )
    await _play(office, save, clock)
    await _call_slack(observed)
    with answering(Tasks(), observed.tell):
        pass
    recorder = PolicyRecorder(
        audit=watched.audit, tell=observed.tell, clock=clock, team_id="T1", owner="office"
    )
    await recorder(PolicyNews(name="policy.yaml", hash="a1", in_force="a1"))

    assert observed.text() == RECORDED
