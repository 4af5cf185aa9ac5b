"""A program and its server die around the start of a call, at twelve places (check 32)."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any, NoReturn, TypeVar, cast

import pytest

from bot.api.problems import ApiProblemError
from bot.api.shapes import ApiRequest, ApiStarted
from bot.records.approval import ExecutionState, Status
from tests.chaos.points import Fragile, Plan
from tests.support.halves import first
from tests.support.stores import SqliteStores
from tests.unit.bot.api.program_office import (
    a_caller,
    a_result,
    a_start,
    an_office,
    approved,
    overdue,
    programs_of,
    settle,
    the_doubt,
    the_record,
)
from tests.unit.bot.office import KilledError, Office

T = TypeVar("T")
ATTEMPTS = 20
SERVER = {
    "start": ["approvals.replace", "switches.replace", "approvals.replace"],
    "report": ["approvals.replace"],
}
"""The writes of a start and of a result, before and after which the server dies."""
PLACES = [
    *[
        (call, point, number)
        for call, writes in SERVER.items()
        for at, write in enumerate(writes)
        for number in [writes[: at + 1].count(write)]
        for point in (f"{write} <", f"{write} >")
    ],
    *[("program", place, 1) for place in ("before", "started", "acted", "reported")],
]
assert len(PLACES) == 12


@dataclass
class DeadlyPlan(Plan):
    """Kills the process at the point; nothing that it does afterwards reaches the database."""

    is_dead: bool = False
    died: Any = field(default_factory=asyncio.Event)

    def at(self, name: str) -> None:
        if self.is_dead:
            raise KilledError
        super().at(name)

    def die(self, name: str) -> NoReturn:
        self.is_dead = True
        self.died.set()
        raise KilledError


class DeadProgramError(Exception):
    """The program is gone, with all that it knew."""


@dataclass
class Play:
    """One request, with one server after the other, and one program after the other."""

    storage: SqliteStores
    random: Random
    place: tuple[str, str, int]
    office: Office = field(init=False)
    plan: DeadlyPlan = field(init=False)
    tokens: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    acts: int = 0
    again: int = 0
    deaths: int = 0

    def __post_init__(self) -> None:
        self.plan = DeadlyPlan()
        self.office = an_office(cast(Any, Fragile(self.storage, self.plan)))

    async def calls(self, name: str, call: Callable[[], Awaitable[T]]) -> T:
        """Call the server as a client does: again, with the same words, when the server died."""
        where, point, number = self.place
        if where == name and not self.deaths:
            self.plan.reached.clear()
            self.plan.point, self.plan.number = point, number
        while True:
            working = asyncio.ensure_future(call())
            dying = asyncio.ensure_future(self.plan.died.wait())
            await asyncio.wait({working, dying}, return_when=asyncio.FIRST_COMPLETED)
            dying.cancel()
            if not self.plan.is_dead:
                return await working
            working.cancel()
            with suppress(KilledError, asyncio.CancelledError):
                await working
            self.restart()

    def restart(self) -> None:
        """Another server takes over; Slack shows what it showed."""
        self.deaths += 1
        self.plan = DeadlyPlan()
        before = self.office
        before.queue.drop()
        self.office = an_office(
            cast(Any, Fragile(self.storage, self.plan)),
            clock=before.clock,
            notifier=before.notifier,
            owner=f"office-{self.deaths}",
        )

    def passes(self, place: str) -> None:
        """Let the program die here, if this is the place."""
        if self.place[:2] == ("program", place) and not self.deaths:
            self.deaths += 1
            raise DeadProgramError

    async def run(self, request: ApiRequest) -> None:
        """Programs with the same key, until the call has an end."""
        for _ in range(9):
            with suppress(DeadProgramError):
                await self.live(request)
            if await self.is_over(request):
                return
        raise AssertionError("it has no end")

    async def is_over(self, request: ApiRequest) -> bool:
        state = (await the_record(self.office, request)).execution.state
        return state in {ExecutionState.ENDED, ExecutionState.FAILED}

    async def live(self, request: ApiRequest) -> None:
        """One program, with an attempt of its own."""
        started = await self.start(request)
        if started is None:
            await self.ask_people(request)
            return
        self.tokens[started.generation].add(started.token)
        self.passes("started")
        self.acts += 1
        self.passes("acted")
        result = a_result("ran", summary="It ran.", token=started.token)
        await self.calls("report", lambda: self.programs.report(a_caller(), request.id, result))
        self.passes("reported")

    async def start(self, request: ApiRequest) -> ApiStarted | None:
        self.passes("before")
        begin = a_start(request)
        try:
            return await self.calls(
                "start", lambda: self.programs.executions.start(a_caller(), request.id, begin)
            )
        except ApiProblemError as error:
            if error.code != "already-started":
                raise
            return None

    async def ask_people(self, request: ApiRequest) -> None:
        """A program before this one has started the call. Only people let it start again."""
        programs = self.programs
        if self.random.random() < 0.5:
            await programs.report(a_caller(), request.id, a_result("unknown"))
        await overdue(self.office, request)
        if await self.is_over(request):
            return
        assert (await programs.get(a_caller(), request.id)).execution.state == "unknown"
        with pytest.raises(ApiProblemError, match="already-started"):
            await programs.executions.start(a_caller(), request.id, a_start(request))
        doubt = await the_doubt(self.office, request)
        if self.acts:
            await settle(self.office, request, {"choice": "ran"}, Status.ANSWERED)
        elif self.random.random() < 0.7:
            self.again += 1
            await settle(self.office, request, {"choice": "again"}, Status.APPROVED)
        else:
            await settle(self.office, request, {"choice": "give_up"}, Status.REJECTED)
        shown = self.office.notifier.cards[doubt.approval_id]
        assert shown.status is not Status.PENDING

    @property
    def programs(self) -> Any:
        return programs_of(self.office)


@pytest.mark.parametrize("mode", ["once", "idempotent"])
@pytest.mark.parametrize("place", first(1, PLACES), ids=lambda place: "-".join(map(str, place)))
async def test_32_a_call_starts_once_wherever_program_and_server_die(
    storage: SqliteStores, place: tuple[str, str, int], mode: str
) -> None:
    for seed in range(ATTEMPTS):
        play = Play(storage, Random(f"{place} {seed}"), place)  # noqa: S311 - not for secrets
        request = await approved(play.office, key=f"k{seed}", execution=mode, run_timeout=60)
        await play.run(request)
        assert play.deaths == 1
        await play.office.later(minutes=1)
        record = await the_record(play.office, request)
        assert all(len(tokens) == 1 for tokens in play.tokens.values())
        if mode == "once":
            assert record.execution.program.generation <= 1 + play.again
            assert play.acts <= 1
        assert bool(play.acts) is (record.execution.state is ExecutionState.ENDED)
        shown = play.office.notifier.cards[request.id]
        assert (shown.execution.state, shown.open) == (record.execution.state, False)
