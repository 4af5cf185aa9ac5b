"""Bot and receiver die at random; no event is lost, and each request's rise (check 43)."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass, field

import pytest
from yarl import URL

from bot.api.shapes import ApiResult
from bot.records.approval import ExecutionState
from bot.webhooks.sending import WebhookAnswer
from tests.support.fakes import FakeClock
from tests.support.halves import first
from tests.support.stores import SqliteStores
from tests.support.webhooks import FAILED, TAKEN, FakePoster, Posted
from tests.unit.bot.api.program_office import (
    a_caller,
    a_start as a_start_of,
    an_office,
    asked,
    programs_of,
)
from tests.unit.bot.office import Office
from tests.unit.bot.webhooks.receiving import a_receiver

ALLOWS = {"name": "free", "when": {"program": "ci"}, "then": "allow"}


class DiedError(BaseException):
    """The process is gone."""


@dataclass
class WildPoster(FakePoster):
    """Dies before or after the receiver has an event, fails, or loses the answer."""

    chance: random.Random = field(default_factory=lambda: random.Random(43))  # noqa: S311 - chance
    arrived: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))

    async def post(self, url: URL, body: str, headers: dict[str, str]) -> WebhookAnswer:
        fate = self.chance.random()
        if fate < 0.1:
            raise DiedError
        if fate < 0.2:
            return FAILED
        posted = Posted(str(url), body, headers)
        self.arrived[posted.request["id"]].append(posted.sequence)
        if fate < 0.3:
            raise DiedError
        return WebhookAnswer(error="no answer in time") if fate < 0.4 else TAKEN


@dataclass
class Processes:
    """One process after the other, over one database."""

    storage: SqliteStores
    poster: WildPoster
    clock: FakeClock
    chance: random.Random
    office: Office
    deaths: int = 0

    async def live(self) -> None:
        """Do what is due, or die over it; or die in between."""
        try:
            await self.office.sweep.tick()
            if self.chance.random() < 0.9:
                await self.office.queue.run()
                return
            await _death()
        except DiedError:
            self.deaths += 1
            self.office.queue.drop()
            self.office = an_office(
                self.storage,
                ALLOWS,
                poster=self.poster,
                clock=self.clock,
                owner=f"office-{self.deaths}",
            )


@pytest.mark.parametrize("requests", first(1, [40, 200]))
async def test_43_each_event_arrives_and_first_arrivals_rise(
    storage: SqliteStores, requests: int
) -> None:
    clock, chance, poster = FakeClock(), random.Random(43), WildPoster()  # noqa: S311 - chance
    office = an_office(storage, ALLOWS, poster=poster, clock=clock)
    await a_receiver(office)
    processes = Processes(storage, poster, clock, chance, office)
    names: list[str] = []
    for number in range(requests):
        programs = programs_of(processes.office)
        made = await programs.create(a_caller(), asked(), idempotency_key=str(number))
        names.append(made.request.id)
        if chance.random() < 0.5:
            await processes.live()
        clock.forward(seconds=chance.random() * 2)
        programs = programs_of(processes.office)
        request = await programs.get(a_caller(), names[-1])
        await programs.executions.start(a_caller(), names[-1], a_start_of(request))
        if chance.random() < 0.5:
            await processes.live()
        ran = ApiResult.model_validate({"outcome": "ran"})
        await programs_of(processes.office).report(a_caller(), names[-1], ran)
    for _ in range(4_000):
        await processes.live()
        clock.forward(seconds=60)
        if not await _is_work_left(storage):
            break
    assert processes.deaths > requests / 4
    for name in names:
        record = await storage.approvals.get(name)
        assert record.execution.state is ExecutionState.ENDED
        arrived = poster.arrived[name]
        firsts = list(dict.fromkeys(arrived))
        assert firsts == sorted(firsts)
        assert len(firsts) == 4, (name, arrived)
    assert sum(map(len, poster.arrived.values())) > 4 * requests  # some came twice


async def _death() -> None:
    raise DiedError


async def _is_work_left(storage: SqliteStores) -> bool:
    waiting = await storage.webhooks.queues.due(now_ms=1 << 52, limit=1)
    return bool(waiting or await storage.approvals.due(now_ms=1 << 52, limit=1))
