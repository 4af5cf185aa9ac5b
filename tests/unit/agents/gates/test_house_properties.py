"""Nothing runs unless its final ruling was satisfied, whenever the rules change (I1, I2, I13)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from hypothesis import given, settings, strategies as st

from agents import (
    CheckpointClosedError,
    InterruptContext,
    ResumeDataError,
    ReviewEditInfo,
    ReviewEditResult,
)
from agents.core.asking.infos import ApprovalInfo, CallInfo
from agents.core.codec import Json
from agents.core.tools import Tool
from agents.gates import approval_gate, policy_gate, review_edit_gate
from agents.models import call, say
from agents.policy import Allow, Ask, Deny, PolicyCall, Ruling
from tests.unit.agents.house import TestHouse, always
from tests.unit.agents.support import Plain, World

RULINGS: Sequence[Ruling] = (
    Allow(rule="fine"),
    Ask(rule="one"),
    Ask(rule="two", kind="review"),
    Ask(rule="three", kind="review"),
    Deny("no", rule="never"),
)
AMOUNTS = (1, 2)


@dataclass
class Moody(TestHouse):
    """A house whose file changes between any two questions.

    Attributes:
        files: Indexes of rulings by amount; one file for each question, the last stays.
        said: What it said of the file alone, in order: arguments and the ruling with code.
    """

    files: list[tuple[int, int]] = field(default_factory=list)
    said: list[tuple[int, Ruling, bool]] = field(default_factory=list)

    async def rule(self, call: PolicyCall, code: Ruling | None, *, inside: bool) -> Ruling:
        file = self.files.pop(0) if len(self.files) > 1 else self.files[0]
        amount = int(str(call.arguments["x"]))
        self.rules = always(RULINGS[file[amount - 1]])
        ruling = await super().rule(call, code, inside=inside)
        self.said.append((amount, ruling, inside))
        return ruling


@dataclass(frozen=True)
class CodeRules:
    """A policy in code that never changes."""

    by_amount: tuple[int, int]

    async def evaluate(self, call: PolicyCall) -> Ruling:
        ruling = RULINGS[self.by_amount[int(str(call.arguments["x"])) - 1]]
        if isinstance(ruling, Ask):
            return Ask(rule=f"code-{ruling.rule}", kind=ruling.kind)
        return ruling


@dataclass
class Play:
    """A call, the people who answer, and what each of them agreed to.

    Attributes:
        agreed: Amount and ruling of all that people let run, in order.
    """

    world: World
    house: Moody
    agreed: list[tuple[int, str]] = field(default_factory=list)
    asked: list[tuple[int, str]] = field(default_factory=list)

    async def answer(self, context: InterruptContext, act: str) -> None:
        info = context.info
        assert isinstance(info, CallInfo)
        self.asked.append((int(str(info.arguments["x"])), info.ruling))
        before = list(self.agreed)
        answer = await self._answer(context, info, act)
        try:
            await self.world.resume({context.id: answer})
        except ResumeDataError:  # all still waits, and this answer counts for nothing
            self.agreed = before

    async def _answer(self, context: InterruptContext, info: CallInfo, act: str) -> object:
        name = f"U{len(self.asked)}"
        shown = int(str(info.arguments["x"]))
        if act == "reject":
            assert isinstance(info, ApprovalInfo | ReviewEditInfo)
            return info.reject("no", by=name)
        if act == "edit" and isinstance(info, ReviewEditInfo):
            wanted: dict[str, Json] = {"x": 3 - shown}
            judged = await self.world.runner().judge("1", context.id, wanted)
            assert judged is not None
            ruling = judged.info.ruling if judged.info is not None else None
            if judged.denied:
                return info.reject("no", by=name)
            self.agreed.append((3 - shown, ruling or ""))
            return ReviewEditResult(
                edited_arguments=wanted,
                digest=info.digest_of(wanted, ruling=ruling),
                ruling=ruling,
                by=name,
                edited_by=name,
            )
        self.agreed.append((shown, info.ruling))
        if isinstance(info, ReviewEditInfo):
            return info.accept(by=name)
        assert isinstance(info, ApprovalInfo)
        return info.approve(by=name)


GATES: Mapping[str, Callable[[Tool, tuple[int, int]], Tool]] = {
    "none": lambda tool, _: tool,
    "approval": lambda tool, _: approval_gate(tool),
    "review": lambda tool, _: review_edit_gate(tool),
    "policy": lambda tool, code: policy_gate(tool, CodeRules(code)),
    "both": lambda tool, code: policy_gate(review_edit_gate(tool), CodeRules(code)),
    "inside": lambda tool, code: review_edit_gate(policy_gate(tool, CodeRules(code))),
}

FILES = st.tuples(*[st.integers(0, len(RULINGS) - 1)] * 2)


@settings(max_examples=max(settings().max_examples, 100), deadline=None)
@given(
    files=st.lists(FILES, min_size=1, max_size=8),
    gate=st.sampled_from(sorted(GATES)),
    code=FILES,
    acts=st.lists(st.sampled_from(["approve", "edit", "edit", "reject"]), max_size=6),
)
def test_nothing_runs_unless_its_final_ruling_was_satisfied(
    files: list[tuple[int, int]], gate: str, code: tuple[int, int], acts: list[str]
) -> None:
    asyncio.run(_play(files, gate, code, acts))


async def _play(
    files: list[tuple[int, int]], gate: str, code: tuple[int, int], acts: list[str]
) -> None:
    ran: list[int] = []
    house = Moody(always(Allow()), files=list(files))

    def body(arguments: dict[str, Json]) -> str:
        ran.append(int(str(arguments["x"])))
        return "paid"

    tool = GATES[gate](Plain("pay", body), code)
    world = World([call("pay", {"x": 1}, id="c1"), say("done")], [tool], policy=house)
    play = Play(world, house)
    await world.run()
    for act in acts:
        try:
            waiting = await world.pending()
        except CheckpointClosedError:
            break
        if not waiting:
            break
        await play.answer(waiting[0], act)
    assert len(ran) <= 1
    if ran:
        _check(ran[0], play, gate, code)


def _check(amount: int, play: Play, gate: str, code: tuple[int, int]) -> None:
    """What ran was agreed to under a ruling of the house on just it, or allowed on record."""
    house = play.house
    whole = [
        ruling
        for judged_amount, ruling, inside in house.said
        if judged_amount == amount and not inside
    ]
    assert whole, "the house never judged what ran"
    assert not isinstance(whole[-1], Deny), "a denial in force was run over"
    bound = {ruling.to_text() for ruling in whole if isinstance(ruling, Ask)}
    people = {ruling for agreed_amount, ruling in play.agreed if agreed_amount == amount}
    is_noted = [arguments for _, arguments, ruling in house.noted if isinstance(ruling, Allow)]
    if is_noted:
        assert is_noted == [{"x": amount}]
        assert isinstance(whole[-1], Allow)
    else:
        assert people & bound, "nobody agreed to what ran, under the house's ruling on it"
    if gate in {"approval", "review", "both", "inside"}:
        assert people, "a gate in code did not ask"
    if gate in {"policy", "inside", "both"}:
        ruled = RULINGS[code[amount - 1]]
        assert not isinstance(ruled, Deny), "code denied it"
        name = f"code-{ruled.rule}"
        if isinstance(ruled, Ask):
            assert any(f'{name}"' in text or f"{name} " in text for text in people)
