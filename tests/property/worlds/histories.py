"""The history of one thread: what people, bots, Slack and the time do, and what must be true."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Sequence
from typing import Any

from bot.approvals.disclosure import Surface
from bot.approvals.editing import Edits
from bot.approvals.execution import was_taken_back
from bot.clock import milliseconds
from bot.errors import ApprovalClosedError, NotApproverError, OutdatedCardError, UserFacingError
from bot.freezes.service import Freezes
from bot.people.approvers import next_step_ms
from bot.ports.threads import CheckedCall
from bot.questions.form import edited_digest, in_order
from bot.records.approval import Approval, Decision, ExecutionState, Kind, Status
from bot.records.messages import EphemeralMessage
from bot.records.switch import FreezeScope, ScopeKind
from bot.records.thread import Thread
from bot.slack.destinations import ClickedMessage
from bot.threads.message_event import NO_TURN, Incoming
from bot.threads.worker import MAX_CRASHES
from bot.words import say
from tests.property.worlds.bench import (
    AFTER_EFFECT,
    CLEO,
    ESCALATE_AFTER,
    EVE,
    JOBS,
    Loop,
    Process,
    amount_of,
    mark,
    yes_of,
)
from tests.property.worlds.watching import Known, Watched, are_asked_anew, is_about
from tests.support.fakes import FakeClock
from tests.support.stores import SqliteStores
from tests.unit.bot.office import ADA, BEN, BOT, GUS, ROOT, ROSA, THREAD_ID, an_actor, an_incoming

FREEZES = (
    (FreezeScope(), False),
    (FreezeScope(kind=ScopeKind.TOOL, name="pay"), False),
    (FreezeScope(kind=ScopeKind.AGENT, name="A"), False),
    (FreezeScope(), True),
)
"""What people freeze, and whether turns stop, too."""
CHOICES = {
    Kind.APPROVAL: ("approve", "reject", "edit"),
    Kind.QUESTION: ("answer",),
    Kind.DOUBT: ("ran", "again", "give_up"),
}
PATIENCE_S = 2.5
"""How long people wait for the answer to a click."""
FAR_MS = 10**15
"""Later than anything is ever due."""
TROUBLE = (
    "none",
    "none",
    "lost",
    "lost",
    "card",
    "update",
    "say",
    "remind",
    "escalate",
    "send_ephemeral",
    "deleted",
)


POINTS = (
    "threads",
    "effect",
    "checkpoints",
    "approvals",
    "approvals.mark_card",
    "approvals.release",
    "threads.release",
    "post_card",
    "update_card",
    "stream",
    "approvals.escalate",
    "nudge",
)
PACES = ("", "", "", "no step", AFTER_EFFECT, AFTER_EFFECT, *POINTS)
"""How far a bot goes on after something has happened: to the end, or to a step of some kind."""
ACTS = ("ask", *["decide"] * 4, "click", "reply", "withdraw")
FATES = ("tick", "tick", "steps", "die", "wait", "wait", "sleep", "slack")
WHO = (BEN, BEN, ROSA, ADA, GUS, EVE, CLEO, CLEO)
THEN = ("go on", "go on", "die", "sleep")


def _surface(approval: Approval) -> Surface:
    """What a click in a request's card shows, also where a crash kept its `ts` off the record."""
    card = ClickedMessage(channel_id=approval.channel_id, ts=approval.thread_card.ts or "posted")
    return Surface.CARD if card.is_card_of(approval) else Surface.ELSEWHERE


class History:
    """Two bots on one database, and what was seen of them so far.

    Args:
        can_sleep: Whether a computer may be asleep so long that its leases end, and wake up again.
        skew_ms: How far the clock of the second bot is ahead.
    """

    def __init__(self, *, can_sleep: bool = True, skew_ms: int = 0) -> None:
        self.can_sleep, self.skews = can_sleep, (0, skew_ms)
        clock = FakeClock()
        self.runner = asyncio.Runner(loop_factory=lambda: Loop(clock))
        loop = self.runner.get_loop()
        assert isinstance(loop, Loop)
        self.world = Watched(SqliteStores(None), loop)
        self.world.directory.add(EVE, is_external=True, team_id="T9")
        self.world.directory.add(CLEO)
        self.slack = self.world.notifier
        self.run(self.world.storage.open())
        self.bots = [
            self.world.start(name, skew_ms=skew_ms)
            for name, skew_ms in zip(("a", "b"), self.skews, strict=True)
        ]
        self.known = Known()
        self.sent: list[Incoming] = []
        self.unheard: dict[Incoming, tuple[int, str]] = {}
        self.all: list[Approval] = []
        self.count = 0
        self.is_broken = False

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Do something, and let nothing be left that goes on by itself."""
        self.is_broken = True
        result = self.runner.run(work)
        self.is_broken = False
        return result

    def do(self, bot: int, work: Coroutine[Any, Any, Any], pace: str) -> None:
        """Begin something in a bot, and let the bot go on, so far."""

        async def begin() -> None:
            self.bots[bot].spawn(work)
            await self.world.settle()
            if pace != "no step":
                await self.bots[bot].finish(before=pace)

        self.run(begin())

    # ---- people ---------------------------------------------------------------------------------

    def somebody_acts(
        self, what: str, bot: int, who: str, which: int, *, pace: str, then: str
    ) -> None:
        """A person does something, the bot goes on so far, and then may die or fall asleep."""
        if what == "decide" and self.pending:
            approval = self.pending[which % len(self.pending)]
            decider = BEN if which else ADA
            if approval.escalation.steps and which > 2:
                decider = CLEO
            work = self._click(bot, approval, decider, which, approval.digest[:32])
        elif what == "click" and self.all:
            approval = self.all[-1 - which % len(self.all)]
            work = self._click(bot, approval, who, which, (approval.digest, "0" * 32)[which % 2])
        elif what == "withdraw" and self.all:
            work = self._withdraw(bot, self.all[-1 - which % len(self.all)], who)
        elif what == "reply" and self.sent:
            work = self._reply(bot, who, which)
        else:
            work = self._ask(bot, who if which == 5 else ROSA, JOBS[which % len(JOBS)])
        self.do(bot, work, pace)
        if self.bots[bot].waiting and then != "go on":
            self._sleep() if then == "sleep" else self.run(self._die(bot))

    def _ask(self, bot: int, who: str, kind: str) -> Coroutine[Any, Any, None]:
        ts, job = self._ts(), self.count
        text = f"<@{BOT}> job {job} {kind}, {mark(who)}"
        incoming = an_incoming(text, user_id=who, ts=ts, thread_ts=ROOT)
        self.sent.append(incoming)
        return self._receive(self.bots[bot], incoming, job, kind)

    def _reply(self, bot: int, who: str, which: int) -> Coroutine[Any, Any, None]:
        """Somebody writes without a mention; or Slack sends an event once more."""
        text = (yes_of(who), f"It is fine, {mark(who)}.", "")[which % 3]
        incoming = an_incoming(text, user_id=who, ts=self._ts(), thread_ts=ROOT)
        if not text:
            incoming = self.sent[self.count % len(self.sent)]
        return self._receive(self.bots[bot], incoming, 0, "")

    def _ts(self) -> str:
        self.count += 1
        return f"1800000001.{self.count:06d}"

    async def _receive(self, bot: Process, incoming: Incoming, job: int, kind: str) -> None:
        job, kind = self.unheard.setdefault(incoming, (job, kind))
        thread_id = await bot.office.inbox.receive(incoming)
        self.unheard.pop(incoming, None)  # it is acknowledged; perhaps it came twice
        if job and incoming.user_id not in {GUS, EVE}:
            self.known.jobs[job] = kind
        if thread_id is not None:
            bot.spawn(bot.office.threads.work(thread_id))

    @property
    def pending(self) -> list[Approval]:
        """What people can decide."""
        return [approval for approval in self.all if approval.status is Status.PENDING]

    async def _click(self, bot: int, approval: Approval, who: str, which: int, shown: str) -> None:
        process = self.bots[bot]
        use, store = process.office.approvals, self.world.storage.approvals
        choices = CHOICES[approval.kind]
        choice = choices[which % len(choices)]
        try:
            async with asyncio.timeout(PATIENCE_S):
                seen = await use.get_decidable(approval.approval_id, an_actor(who), shown=shown)
                decision = self._decision(seen, who, choice)
                if decision.arguments is not None:
                    edits = Edits(self.world.storage, use, process.office.rules, self.world.clock)
                    call = CheckedCall(arguments=decision.arguments)
                    edited = await edits.edit(seen, call, None, actor=an_actor(who))
                    assert isinstance(edited, Approval), edited
                    decided = edited
                else:
                    decided = await use.decide(seen, decision, surface=_surface(seen))
        except TimeoutError:
            return  # they are told that nobody knows
        except UserFacingError as error:
            now = await store.get(approval.approval_id)
            self._check_refusal(error, now, is_right=approval.digest.startswith(shown))
            # As it was before the click: it may have escalated while that was refused.
            may = await self.world.may_decide(approval, who)
            if isinstance(error, NotApproverError) and may and not self._has_spoken(approval, who):
                self.world.faults.append(f"{who} was refused: {error}")
            return
        if decided.decision != decision or not await self.world.may_decide(seen, who):
            self.world.faults.append(
                f"{who} was told that {decision} is recorded: {decided.decision}"
            )
        process.spawn(use.follow_up(decided))

    async def _withdraw(self, bot: int, approval: Approval, who: str) -> None:
        """Somebody takes a request back, or tries to."""
        process, name = self.bots[bot], approval.approval_id
        try:
            async with asyncio.timeout(PATIENCE_S):
                withdrawn = await process.office.approvals.withdrawals.withdraw(
                    name, an_actor(who), reason=f"I do not want it, {mark(who)}"
                )
        except TimeoutError:
            return
        except ApprovalClosedError as error:
            now = await self.world.storage.approvals.get(name)
            self._check_refusal(error, now, is_right=True)
            return
        except UserFacingError as error:
            if approval.kind is not Kind.DOUBT and who in self.world.asked(approval):
                self.world.faults.append(f"{who} asked, and may not withdraw: {error}")
            return
        if approval.kind is Kind.DOUBT or not await self.world.has_asked(approval, who):
            self.world.faults.append(f"{who} withdrew {withdrawn}")
        process.spawn(process.office.approvals.follow_up(withdrawn))

    def _has_spoken(self, approval: Approval, who: str) -> bool:
        """Whether the run was told words of theirs, which it may have lost before it used them."""
        decisions = [
            other.decision for other in self.all if other != approval and other.decision is not None
        ]
        return any(
            decision.by == who and (decision.reason or decision.answer or decision.arguments)
            for decision in decisions
        )

    def _decision(self, seen: Approval, who: str, choice: str) -> Decision:
        status = Status.APPROVED
        more: dict[str, Any] = {"digest": seen.digest}
        if choice == "reject":
            status, more = Status.REJECTED, {**more, "reason": f"no, {mark(who)}"}
        elif choice == "edit" and seen.tool == "pay":
            edited = {**seen.arguments, "amount": amount_of(who)}
            more = {"arguments": edited, "digest": edited_digest(seen, edited)}
        elif choice == "answer":
            status, more = (
                Status.ANSWERED,
                {**more, "answer": [f"fine, {mark(who)}"]},
            )
        elif seen.kind is Kind.DOUBT:
            by_choice = {"ran": Status.ANSWERED, "give_up": Status.REJECTED}
            status = by_choice.get(choice, Status.APPROVED)
            more = {
                **more,
                "answer": {"choice": choice, "result": f"done, {mark(who)}"},
            }
        return Decision(status=status, by=who, at_ms=self.world.clock(), **more)

    def _check_refusal(self, error: UserFacingError, now: Approval, *, is_right: bool) -> None:
        """What a person is told is true."""
        match error:
            case ApprovalClosedError():
                is_late = self.world.clock() >= now.expires_ms
                by = now.decision.by if now.decision else ""
                is_true = (now.status is not Status.PENDING or is_late) and by in str(error)
                # A decision that was made in time may be written after that, by whoever slept.
                is_true = is_true or (is_late and self.known.was_asleep)
            case OutdatedCardError():
                is_true = not is_right
            case _:
                is_true = isinstance(error, NotApproverError)
        if not is_true:
            self.world.faults.append(f"somebody was told {error!r}, and the record is {now}")

    # ---- processes, time and trouble ------------------------------------------------------------

    def something_happens(self, what: str, bot: int, picks: Sequence[int], pace: str) -> None:
        """A tick, some steps, a death, time passes, Slack becomes lame or well again."""
        is_busy = any(process.waiting for process in self.bots)
        if what == "steps" and is_busy:
            self.run(self._go(bot, picks))
        elif what == "die" and is_busy:
            self.run(self._die(bot))
        elif what == "sleep" and is_busy:
            self._sleep()
        elif what == "wait":
            self._pass((16, 16, 16, 16 * 60, 16 * 60, 9 * 3600)[picks[0]])
        elif what == "slack":
            self._make_trouble(TROUBLE[sum(picks) % len(TROUBLE)])
        else:
            self.do(bot, self.bots[bot].office.sweep.tick(), pace)

    async def _go(self, bot: int, picks: Sequence[int]) -> None:
        for pick in picks:
            await self.bots[bot].go(pick)

    async def _die(self, bot: int) -> None:
        name = self.bots[bot].name
        await self.bots[bot].kill()
        self.bots[bot] = self.world.start(f"{name}'", skew_ms=self.skews[bot])

    def all_die(self) -> None:
        """Both bots die, whatever they do, and others begin."""
        for bot in range(len(self.bots)):
            self.run(self._die(bot))

    def _sleep(self) -> None:
        """The leases have ended, and nobody's timer has rung; it rings when time passes again."""
        if not self.can_sleep:
            self._pass(5)
            return
        self.known.was_asleep = True
        self.world.loop.lag_ms += 20_000
        self._pass(20, lag=True)

    def _pass(self, seconds: int, *, lag: bool = False) -> None:
        self.world.clock.forward(seconds=seconds)
        if not lag:
            self.world.loop.lag_ms = 0
        self.run(self.world.settle())

    def _make_trouble(self, trouble: str) -> None:
        slack = self.slack
        slack.failing, slack.lost = set(), set()
        if trouble == "lost":
            slack.lost.add("card")
        elif trouble == "deleted":
            self.known.deleted.update(set(slack.cards) - slack.deleted)
            slack.deleted.update(slack.cards)
        elif trouble != "none":
            slack.failing.add(trouble)

    # ---- freezes --------------------------------------------------------------------------------

    def somebody_freezes(self, which: int) -> None:
        """Ada freezes calls, and sometimes turns."""
        scope, turns = FREEZES[which % len(FREEZES)]
        self.run(self._freezes.freeze(scope, by=ADA, why="wild", turns=turns))

    def somebody_lifts(self, which: int) -> bool:
        """Ben lifts a freeze; False if there is none."""
        is_lifted: bool = self.run(self._lift(which))
        return is_lifted

    async def _lift(self, which: int) -> bool:
        in_force = await self._freezes.in_force()
        if in_force:
            freeze = in_force[which % len(in_force)]
            await self._freezes.lift(freeze.id, by=BEN, why="mended")
        return bool(in_force)

    @property
    def _freezes(self) -> Freezes:
        storage = self.world.storage
        return Freezes(switches=storage.switches, audit=storage.audit, clock=self.world.clock)

    # ---- what must be true ----------------------------------------------------------------------

    def check(self) -> None:
        """What must be true at any time."""
        self.all = self.run(self.world.approvals())
        assert self.world.faults == [], self.world.faults[0]
        for approval in self.all:
            self._check_decision(approval)
            self._check_card(approval)
            self._check_escalation(approval)

    def _check_decision(self, approval: Approval) -> None:
        name, known = approval.approval_id, self.known
        assert (approval.status is Status.PENDING) == (approval.decision is None)
        if approval.decision is not None:
            assert approval.decision.status is approval.status
            if was_taken_back(approval):  # once, while it waited for the end of a freeze
                name = f"{name} taken back"
            assert known.decisions.setdefault(name, approval.decision) == approval.decision
        if name in known.closed:
            assert not approval.open, f"{approval} is open again"
        if not approval.open:
            assert approval.decision is not None
            known.closed.add(name)

    def _check_card(self, approval: Approval) -> None:
        assert approval.card.revision <= approval.shown_revision
        card = self.slack.cards.get(approval.approval_id)
        if card is not None:
            assert card.shown_revision <= approval.shown_revision
            # The decision of a call that people took back later counts, too.
            assert card.decision in (
                None,
                approval.decision,
                self.known.decisions.get(approval.approval_id),
            )
        posts = self.slack.posts.count(approval.approval_id)
        deleted = self.known.deleted[approval.approval_id]
        assert posts <= 1 + deleted or self.known.was_asleep

    def _check_escalation(self, approval: Approval) -> None:
        """An edit begins it anew: then it was escalated about another call (5.11)."""
        name, since = approval.approval_id, approval.escalation.begun_ms or None
        posts = self.slack.escalations.count(name)
        times = sum(approval_id == name for approval_id, _ in self.world.escalated)
        assert posts <= times or (times and self.known.was_asleep)
        assert self.world.escalated.get((name, approval.digest)) == since
        if since is None:
            return
        assert approval.kind is not Kind.QUESTION
        assert next_step_ms(approval) is None
        begun = approval.escalation.since_ms if approval.edits.by else approval.created_ms
        assert begun + milliseconds(ESCALATE_AFTER) <= since < approval.expires_ms
        is_told = any(
            reminder.kind == "escalation" and reminder.is_posted for reminder in approval.reminders
        )
        assert posts or not is_told
        assert approval.shown_revision >= 2 + (approval.decision is not None)

    def end(self) -> None:
        """Let everything come to rest, and see whether it is as it must be then."""
        try:
            if not self.is_broken:
                self.run(self._rest())
                self.check()
                self.run(self._check_end())
        finally:
            self.runner.run(self._stop())
            self.runner.close()

    async def _stop(self) -> None:
        for bot in list(self.world.processes):
            await bot.kill()
        await self.world.storage.close()

    async def _send_again(self) -> None:
        """Slack sends the events once more that no bot has lived to acknowledge."""
        for bot in self.bots:
            await self.world.settle()
            await bot.finish()
        for incoming, (job, kind) in list(self.unheard.items()):
            self.bots[0].spawn(self._receive(self.bots[0], incoming, job, kind))

    async def _rest(self) -> None:
        """Nobody does anything any more, and nothing is lame: the bots do what is due."""
        self.world.loop.lag_ms = 0
        self.slack.failing, self.slack.lost = set(), set()
        while await self._lift(0):
            pass
        await self._send_again()
        for _ in range(300):
            for bot in self.bots:
                await self.world.settle()
                await bot.finish()
                bot.spawn(bot.office.sweep.tick())
                await self.world.settle()
                await bot.finish()
            next_ms = await self._next_due()
            if next_ms is None:
                return
            self.world.clock.now_ms = max(self.world.clock.now_ms, next_ms)
            await self.world.settle()
        self.world.faults.append("there is always something due")

    async def _next_due(self) -> int | None:
        storage = self.world.storage
        due: list[Approval | Thread | EphemeralMessage] = [
            *await storage.approvals.due(now_ms=FAR_MS, limit=1),
            *await storage.threads.due(now_ms=FAR_MS, limit=1),
            *await storage.ephemeral_messages.due(now_ms=FAR_MS, limit=1),
        ]
        return min(
            (max(record.due_ms or 0, record.leased_until_ms) for record in due), default=None
        )

    async def _check_end(self) -> None:
        storage = self.world.storage
        assert not self.unheard
        assert await storage.inbox.new(THREAD_ID, limit=9) == []
        assert await storage.posts.unfinished(THREAD_ID) == []
        if self.known.jobs:
            thread = await storage.threads.get(THREAD_ID)
            assert not thread.turn_open
            assert thread.leased_by == ""
        for approval in self.all:
            assert approval.status is not Status.PENDING
            assert not approval.open
            assert approval.leased_by == ""
            # Nobody has cancelled anything here.
            is_over = approval.status in {Status.CANCELLED, Status.SUPERSEDED}
            assert not is_over or self._has_given_up()
            self._check_final_card(approval)
            if approval.kind is Kind.APPROVAL:
                self._check_effects(approval)
        await self._check_jobs()
        audit = await storage.audit.of_thread(THREAD_ID, limit=10_000)
        escalated = [entry.approval_id for entry in audit if entry.action == "escalated"]
        assert sorted(escalated) == sorted(name for name, _ in self.world.escalated)

    def _has_given_up(self) -> bool:
        """Whether processes died three times in a row in a turn, which then was given up."""
        words = say("error.crashed", n=MAX_CRASHES)
        return any(words in text for text in self.slack.texts.values())

    def _check_final_card(self, approval: Approval) -> None:
        assert approval.card.revision == approval.shown_revision
        card = self.slack.cards[approval.approval_id]
        assert (card.status, card.decision) == (approval.status, approval.decision)

    def _check_effects(self, approval: Approval) -> None:
        done = [effect for effect in self.world.effects if is_about(approval, effect)]
        if approval.status is not Status.APPROVED:
            assert done == []
            return
        # Without an effect, it was cut off, and people were asked what became of it; or it could
        # not start in time, and they were asked anew.
        doubts = [
            doubt
            for doubt in self.all
            if doubt.kind is Kind.DOUBT
            and (doubt.tool, doubt.checkpoint_id) == (approval.tool, approval.checkpoint_id)
        ]
        anew = [
            other
            for other in self.all
            if (other.kind, other.address, other.checkpoint_id)
            == (approval.kind, approval.address, approval.checkpoint_id)
        ]
        lapsed = approval != anew[-1] and are_asked_anew(anew)
        is_over = approval.execution.state is ExecutionState.LAPSED and self._has_given_up()
        assert done or doubts or lapsed or is_over, f"{approval} was approved, nothing happened"

    async def _check_jobs(self) -> None:
        """What was acknowledged has reached the agent, once; or it was taken as an answer."""
        aside = {
            message.text for message in await self.world.storage.inbox.of_turn(THREAD_ID, NO_TURN)
        }
        answers = json.dumps(
            [approval.decision.answer for approval in self.all if approval.decision]
        )
        refusals = (say("refuse.two_questions"), say("refuse.not_taken", why="").strip())
        refused = {
            who for who, text in self.slack.whispers if any(refusal in text for refusal in refusals)
        }
        author = {message.text.removeprefix(f"<@{BOT}> "): message.user_id for message in self.sent}
        for job, kind in self.known.jobs.items():
            text = next(sent_text for sent_text in author if sent_text.startswith(f"job {job} "))
            if text in aside:
                assert text in answers or author[text] in refused
                continue
            for tool in {"ask": [""], "both": ["pay", "restart"]}.get(kind, [kind]):
                words = f"job {job}?" if kind == "ask" else f'"job-{job}"'
                approvals = [
                    approval
                    for approval in self.all
                    if approval.tool == tool and words in in_order(approval.arguments)
                ]
                asked = [approval for approval in approvals if approval.kind is not Kind.DOUBT]
                assert asked or self._has_given_up(), text
                assert are_asked_anew(asked), f"{text}: {approvals}"
