"""RC01 (11.7 to 11.9): two workers start calls while people freeze and lift, in every order."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from bot.freezes import starts
from bot.freezes.rules import CallScope, covering
from bot.freezes.service import Freezes
from bot.freezes.starts import FreezeFile, Frozen, StartSwitch
from bot.records.switch import SWITCH_ID, Freeze, FreezeScope, SwitchRecord
from storage.documents import Body, Collection, Place, Row, Value, Where, read_document
from tests.model.races import Stage, every_order
from tests.support.fakes import FakeClock

CALL = CallScope(agents=frozenset({"clerk"}), tool="search")


@dataclass
class Database:
    """The stored switch, and what a reader of the database can see.

    Attributes:
        switch: As it is stored.
        is_frozen: Whether a freeze is confirmed and its lifting not written.
        late: Numbers that were given out under a confirmed freeze.
    """

    switch: SwitchRecord = field(default_factory=SwitchRecord)
    is_frozen: bool = False
    late: int = 0

    def write(self, new: SwitchRecord, *, revision: int) -> bool:
        """Replace the switch if it has this revision."""
        if self.switch.revision != revision:
            return False
        self.late += self.is_frozen and new.starts > self.switch.starts
        self.is_frozen &= bool(new.freezes)
        self.switch = new
        return True


class StagedSwitch(Collection[SwitchRecord]):
    """The collection of the switch as one process sees it: each read and write is a step."""

    def __init__(self, stage: Stage, database: Database, actor: str) -> None:
        super().__init__(SwitchRecord)
        self._stage, self._database, self._actor = stage, database, actor

    async def _rows(self, *_: Any, **__: Any) -> Sequence[Row]:
        read = lambda: [{"switch": self._database.switch}]  # noqa: E731 - a step
        rows: Sequence[Row] = await self._stage.step(self._actor, "read", read, is_write=False)
        return rows

    async def _change(
        self,
        where: Where,
        changes: Mapping[str, Value],
        body: tuple[Body, frozenset[str]] | None = None,
        *,
        many: bool = False,
    ) -> bool:
        assert body is not None
        columns = {"revision": changes["revision"]}
        version = SwitchRecord.spec.version
        text = json.dumps(body[0])
        new = read_document(SwitchRecord, text, version=version, key=SWITCH_ID, columns=columns)
        before = self.known[SWITCH_ID]
        assert before.revision == where["revision"]
        if len(new.acts) < len(before.acts):  # the audit has them; no start depends on it
            return self._database.write(new, revision=before.revision)
        write = lambda: self._database.write(new, revision=before.revision)  # noqa: E731 - a step
        what = "number" if new.starts > before.starts else "freeze" if new.freezes else "lift"
        written: bool = await self._stage.step(self._actor, what, write, is_write=True)
        return written

    def _parse(self, row: Row) -> SwitchRecord:
        switch: SwitchRecord = row["switch"]
        self.known[SWITCH_ID] = switch
        return switch

    async def delete(self, where: Where, *, limit: int) -> int:
        raise NotImplementedError

    async def _insert(self, documents: Sequence[tuple[SwitchRecord, Body]]) -> frozenset[str]:
        raise NotImplementedError

    async def _claim(self, where: Where, changes: Mapping[str, Value]) -> Row | None:
        raise NotImplementedError

    async def _count(self, where: Where) -> int:
        raise NotImplementedError

    def _place(self, row: Row, names: Sequence[str]) -> Place | None:
        raise NotImplementedError

    def _body(self, row: Row) -> tuple[str, object, object]:
        raise NotImplementedError

    def _columns(self, row: Row) -> Row:
        raise NotImplementedError

    def _mark(self, row: Row) -> tuple[object, object]:
        raise NotImplementedError


class Audit:
    """Takes entries."""

    async def append(self, *_: object) -> None:
        pass


def test_rc01_no_start_under_a_confirmed_freeze_none_twice_none_lost() -> None:
    assert every_order(play, deaths=1) > 1_000


async def play(stage: Stage) -> None:
    """Two workers start one call each; Ada freezes, and lifts once the freeze is confirmed."""
    database = Database()
    numbers: dict[str, int] = {}
    again: set[str] = set()

    def freezes_of(actor: str) -> Freezes:
        audit: Any = Audit()
        switches = StagedSwitch(stage, database, actor)
        return Freezes(switches=switches, audit=audit, clock=FakeClock())

    async def start(actor: str, freezes: Freezes) -> None:
        switch = StartSwitch(freezes, FreezeFile(path=None, clock=FakeClock()), owner=actor)
        answer = await switch.take_number(CALL)
        if isinstance(answer, Frozen):
            again.add(actor)
        else:
            numbers[actor] = answer

    async def freeze_and_lift() -> None:
        freezes = freezes_of("Ada")
        await freezes.freeze(FreezeScope(), by="U0ADA", why="wild")
        database.is_frozen = True
        await freezes.lift("f1", by="U0ADA", why="mended")

    warm = freezes_of("first")
    warm.switches.known[SWITCH_ID] = database.switch
    stage.begin("first", start("first", warm))
    stage.begin("second", start("second", freezes_of("second")))
    stage.begin("Ada", freeze_and_lift())
    await stage.play()
    stage.deaths = 0
    # Whoever died is taken up by another process, and whoever met a freeze asks after the lifting.
    if database.switch.freezes:
        stage.begin("Ben", lift(freezes_of("Ben")))
        await stage.play()
    for actor in {"first", "second"} - numbers.keys():
        stage.begin(f"{actor} again", start(actor, freezes_of(f"{actor} again")))
        await stage.play()
    assert database.late == 0, "a call got a number under a confirmed freeze"
    assert len({*numbers.values()}) == 2, "two calls have one number, or one has none"
    assert database.switch.starts <= 3, "a number was lost without a death"


async def lift(freezes: Freezes) -> None:
    """Lift what is frozen."""
    await freezes.lift("", by="U0BEN", why="mended")


def judged_once(verdicts: dict[str, Freeze | None]) -> Any:
    """Return a rule that judges each call only the first time, apart from the write."""

    def judge(switch: SwitchRecord, call: CallScope) -> Freeze | None:
        task = asyncio.current_task()
        return verdicts.setdefault(str(id(task)), covering(switch, call))

    return judge


def over_whatever_is_there(self: Database, new: SwitchRecord, *, revision: int) -> bool:
    """Write without the condition on the revision."""
    del revision
    self.late += self.is_frozen and new.starts > self.switch.starts
    self.is_frozen &= bool(new.freezes) or new.starts > self.switch.starts
    self.switch = new
    return True


def test_a_verdict_apart_from_the_write_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    verdicts: dict[str, Freeze | None] = {}
    monkeypatch.setattr(starts, "covering", judged_once(verdicts))

    async def cleared(stage: Stage) -> None:
        verdicts.clear()
        await play(stage)

    with pytest.raises(AssertionError, match="under a confirmed freeze"):
        every_order(cleared, deaths=0)


def test_a_write_without_its_condition_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Database, "write", over_whatever_is_there)
    with pytest.raises(AssertionError, match=r"under a confirmed freeze|one number"):
        every_order(play, deaths=0)
