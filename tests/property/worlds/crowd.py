"""A crowd in one channel, and an agent that pays: who agreed to what, found out from outside.

What a call demands is worked out here from its final arguments and from what the model had read,
not from any record of the product. To try other rules, change `POLICY` and `demanded` together.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponsePart,
    ToolReturnPart,
    UserPromptPart,
)

from agents import ChatModelAgent, follow_up_tool, policy_gate, tool
from agents.models import AnsweringModel, call, say
from agents.policy import Ask, Condition, Rule, RulePolicy
from bot.approvals.disclosure import Surface
from bot.approvals.editing import Edits
from bot.errors import UserFacingError
from bot.ports.threads import CheckedCall
from bot.records.approval import Approval, Decision, Kind, Status
from tests.property.worlds.bench import (
    CLEO,
    EVE,
    GROUP,
    PEOPLE,
    amount_of,
    befall,
    heard_in,
    mark,
)
from tests.support.stores import SqliteStores
from tests.unit.bot.office import ADA, BEN, CHANNEL, ROOT, ROSA, RULES, Office, an_actor

BACKUP = timedelta(minutes=30)
LARGE = 100
"""From here on, the treasury decides. Whoever edits an amount makes it larger than that."""
POLICY = RulePolicy(
    rules=(
        Rule(
            tool="pay",
            when=(Condition("amount", ">=", LARGE),),
            then=Ask(kind="review", rule="large", approvers=(GROUP,)),
        ),
    ),
    default=Ask(kind="review", rule="small"),
)
FATES = ("joins", "leaves", "guest", "gone", "back", "treasurer", "no treasurer")


@dataclass(frozen=True)
class Yes:
    """Somebody's agreement that was taken.

    Attributes:
        by: Whose.
        ref: Which job.
        amount: How much is paid, as they agreed to it.
        is_entitled: Whether they were one of those who may agree to that, at that moment.
    """

    by: str
    ref: str
    amount: int
    is_entitled: bool


class Crowd:
    """People, their office, and what was seen of them."""

    def __init__(self) -> None:
        self.loop = asyncio.Runner()
        self.storage = SqliteStores(None)
        self.loop.run(self.storage.open())
        self.agreed: list[Yes] = []
        self.heard: dict[str, set[str]] = {}
        self.members: dict[str, frozenset[str]] = {}
        self.stopped: set[str] = set()
        self.faults: list[str] = []
        self.jobs = 0
        self.count = 0
        model = AnsweringModel(self._next, name="crowd")
        agent = ChatModelAgent(name="A", model=model, tools=self._tools())
        self.office = Office(
            self.storage,
            (),
            make_agent=lambda _: agent,
            rules=replace(RULES, escalate_after=BACKUP, escalate_to=(CLEO,)),
        )
        self.directory = self.office.directory
        self.directory.add(CLEO)
        self.directory.add(EVE, is_external=True, team_id="T9")
        self.directory.groups[GROUP] = frozenset({CLEO})

    def close(self) -> None:
        """Forget all of it."""
        self.office.queue.drop()
        self.loop.run(self.storage.close())
        self.loop.close()

    # ---- the rules, once more -------------------------------------------------------------------

    def demanded(self, amount: int, approval: Approval) -> frozenset[str]:
        """Who may agree to a payment, by its final amount: whoever they are, and wherever now."""
        if amount >= LARGE:
            return self.directory.groups[GROUP]
        approvers = self.members.get(approval.approval_id, frozenset())
        approvers &= self.directory.channels[CHANNEL]
        is_late = self.office.clock() >= approval.created_ms + BACKUP // timedelta(milliseconds=1)
        return approvers | {CLEO} if is_late else approvers

    def may_agree(self, who: str, amount: int, approval: Approval) -> bool:
        """Whether a person may agree to it now."""
        person = self.directory.people[who]
        is_ours = not (person.is_guest or person.is_deleted or person.is_external)
        asked = self.heard[approval.address.rpartition(":")[2]]
        return is_ours and who not in asked and who in self.demanded(amount, approval)

    # ---- what people do -------------------------------------------------------------------------

    def write(self, who: str, text: str) -> None:
        """Somebody writes into the thread, with a mention."""
        self.count += 1
        words = f"<@UBOT> {text}, {mark(who)}"
        ts = ROOT if self.count == 1 else f"1800000001.{self.count:06d}"
        self.loop.run(self.office.hear(words, user_id=who, ts=ts, thread_ts=ROOT))
        self._look_around()

    def ask_for(self, who: str, kind: str) -> None:
        """Somebody asks for a payment, or for something that the agent has to ask about first."""
        self.jobs += 1
        self.write(who, f"job {self.jobs} {kind}")

    def decide(self, who: str, which: int, choice: str) -> None:
        """Somebody does something with a card that waits."""
        waiting = self.loop.run(self.office.open_approvals())
        if waiting:
            approval = waiting[which % len(waiting)]
            self.loop.run(self._decide(who, approval, choice))
            self._look_around()

    async def _decide(self, who: str, approval: Approval, choice: str) -> None:
        office = self.office
        try:
            if choice == "withdraw":
                await office.approvals.withdrawals.withdraw(
                    approval.approval_id, an_actor(who), reason=f"no, {mark(who)}"
                )
                self.stopped.add(approval.approval_id)
                decided = await self.storage.approvals.get(approval.approval_id)
            else:
                actor, shown = an_actor(who), approval.digest
                seen = await office.approvals.get_decidable(
                    approval.approval_id, actor, shown=shown
                )
                decided = await self._record(who, seen, choice)
        except UserFacingError:
            return
        if decided.decision is not None:
            office.queue.spawn(office.approvals.follow_up(decided))
        else:
            office.queue.spawn(office.approvals.attendance.attend(decided.approval_id))
        await office.queue.run()

    async def _record(self, who: str, seen: Approval, choice: str) -> Approval:
        given: dict[str, Any] = {"by": who, "at_ms": self.office.clock(), "digest": seen.digest}
        if seen.kind is Kind.QUESTION:
            decision = Decision(status=Status.ANSWERED, answer=[f"fine, {mark(who)}"], **given)
            return await self.office.approvals.decide(seen, decision, surface=Surface.CARD)
        if choice == "reject":
            decision = Decision(status=Status.REJECTED, reason=f"no, {mark(who)}", **given)
            decided = await self.office.approvals.decide(seen, decision, surface=Surface.CARD)
            self.stopped.add(seen.approval_id)
            return decided
        arguments = seen.arguments
        if choice == "edit" and arguments["amount"] != amount_of(who):
            return await self._edit(who, seen, {**arguments, "amount": amount_of(who)})
        yes = self._yes(who, seen, arguments)
        decided = await self.office.approvals.decide(
            seen, Decision(status=Status.APPROVED, **given), surface=Surface.CARD
        )
        self.agreed.append(yes)
        return decided

    async def _edit(self, who: str, seen: Approval, arguments: dict[str, Any]) -> Approval:
        edits = Edits(self.storage, self.office.approvals, self.office.rules, self.office.clock)
        judgement = await self.office.runner.judge(seen.checkpoint_id, seen.interrupt_id, arguments)
        yes = self._yes(who, seen, arguments)
        edited = await edits.edit(
            seen, CheckedCall(arguments=arguments), judgement, actor=an_actor(who)
        )
        if isinstance(edited, str):
            return await self.storage.approvals.get(seen.approval_id)
        if edited.decision is not None:
            self.agreed.append(yes)
        return edited

    def _yes(self, who: str, seen: Approval, arguments: dict[str, Any]) -> Yes:
        ref, amount = arguments["ref"], arguments["amount"]
        return Yes(who, ref, amount, self.may_agree(who, amount, seen))

    def befalls(self, who: str, what: str) -> None:
        """Something becomes of a person."""
        befall(self.directory, who, what)

    def passes(self, minutes: int) -> None:
        """Time passes, and the bot does what is due."""
        self.office.clock.forward(minutes=minutes)
        self.loop.run(self._tick())
        self._look_around()

    async def _tick(self) -> None:
        await self.office.sweep.tick()
        await self.office.queue.run()

    def _look_around(self) -> None:
        """Note who is in the channel when something new is asked."""
        for approval in self.loop.run(self.office.open_approvals()):
            now = self.directory.channels[CHANNEL]
            self.members.setdefault(approval.approval_id, now)

    # ---- the agent ------------------------------------------------------------------------------

    def _tools(self) -> Sequence[Any]:
        @tool(title="Pay {amount} for {ref}")
        async def pay(ref: str, amount: int) -> str:
            """Pay.

            Args:
                ref: What for.
                amount: How much.
            """
            self._look_before(ref, amount)
            return f"paid {amount} for {ref}"

        return [policy_gate(pay, POLICY), follow_up_tool()]

    def _look_before(self, ref: str, amount: int) -> None:
        """I13: somebody whom the rule for exactly this demands has agreed to exactly this."""
        agreements = [
            agreement
            for agreement in self.agreed
            if (agreement.ref, agreement.amount) == (ref, amount)
        ]
        if not any(agreement.is_entitled for agreement in agreements):
            self.faults.append(f"{ref} is paid with {amount}; who agreed: {agreements}")

    def _next(self, messages: Sequence[ModelMessage]) -> list[ModelResponsePart]:
        last = messages[-1]
        assert isinstance(last, ModelRequest)
        results = [part for part in last.parts if isinstance(part, ToolReturnPart)]
        for part in results:  # an answer was waited for: now it pays
            if part.tool_name == "ask_people" and "fine" in part.model_response_str():
                return [self._pay(part.tool_call_id.removeprefix("ask"), messages)]
        if results:
            return [say(" | ".join(part.model_response_str() for part in results))]
        asked = " ".join(str(p.content) for p in last.parts if isinstance(p, UserPromptPart))
        parts: list[ModelResponsePart] = [say("Well.")]
        for number, kind in re.findall(r"job (\d+) (\w+)", asked):
            if kind == "ask":
                questions = {"questions": [f"What about job {number}?"]}
                parts.append(call("ask_people", questions, id=f"ask{number}"))
            else:
                parts.append(self._pay(number, messages))
        return parts

    def _pay(self, number: str, messages: Sequence[ModelMessage]) -> ModelResponsePart:
        self.heard[f"pay{number}"] = heard_in(str(messages))
        return call("pay", {"ref": f"job-{number}", "amount": 5}, id=f"pay{number}")


__all__ = ["ADA", "BEN", "FATES", "PEOPLE", "ROSA", "Crowd"]
