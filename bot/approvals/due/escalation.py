"""Reminders and escalation of a pending approval: who is notified, and when.

A step is stored together with its messages, in one conditional write, before they are sent. After a
crash, another process sends what is missing, and nothing twice.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeAlias

from bot.approvals.changes import escalated
from bot.approvals.due.approval_pass import users_of, write_held
from bot.approvals.due.batch_cards import stays
from bot.approvals.due.escalation_state import (
    NOTHING,
    EscalationPlan,
    can_hasten,
    direct_message,
    due_audience,
    escalation_state_of,
    key_of,
    new_card,
    new_message,
    own_card,
    with_step,
)
from bot.approvals.due.quiet_hours import DoNotDisturb, NeverQuiet
from bot.approvals.due.wanted import REMINDER
from bot.audit.entries import note_steps
from bot.people.approvers import asked_groups, resolve_groups
from bot.people.lookup import is_direct
from bot.people.recipients import MOST_PEOPLE, Audience, Waiting
from bot.policy.escalation import Due, Notice, begin, due, next_moment, tells_nobody
from bot.ports.people import CHANNEL, is_channel, is_person, is_usergroup
from bot.ports.process import Clock
from bot.records.approval import (
    BATCH,
    Approval,
    ApprovalMessage,
    Kind,
    Status,
    StoredBatch,
    StoredEscalation,
)
from bot.records.approval_queries import ApprovalCollection
from bot.records.terms import Terms, TermsError
from storage.audit import AuditStore

logger = logging.getLogger(__name__)

DM = "dm"
"""Value of `Approval.place` if the cards are sent as direct messages."""
MOST_DIRECT = 20
"""Maximum number of people who get a card by direct message."""
THREAD = "thread"

Recipients: TypeAlias = tuple[str, ...]
"""Ids of people, user groups and channels; `CHANNEL` stands for the channel of the thread."""


async def _nobody_leaves(_: Approval) -> None:
    """Return None: no delegation ends."""


@dataclass(frozen=True, slots=True)
class OwnCards:
    """Finds the people who prefer to receive cards by direct message.

    Only people who can decide at that moment receive a card, because it shows the arguments.
    """

    approvals: ApprovalCollection
    audience: Audience
    consideration: DoNotDisturb

    async def asking(
        self, approval: Approval, terms: Terms, people: Collection[str], *, steps: int
    ) -> frozenset[str]:
        """Return the people who prefer direct cards and can decide now.

        A batch has no direct cards: its messages are posted below the batch card.

        Raises:
            TermsError: A time zone is unknown on this machine.
        """
        if approval.is_batched or approval.elsewhere == DM:
            return frozenset()
        wants = await self.consideration.direct(approval, people)
        return await self.audience.able(approval, terms, wants, steps=steps) if wants else wants

    async def of_groups(
        self,
        approval: Approval,
        terms: Terms,
        names: Collection[str],
        people: Collection[str],
        *,
        steps: int,
    ) -> tuple[tuple[ApprovalMessage, ...], Mapping[str, int]]:
        """Plan direct cards for members of the mentioned user groups.

        Returns:
            The cards, and when to notify each person in quiet hours.
        """
        new = {*people} - users_of(approval) - {*names}
        wants = await self.consideration.direct(approval, new)
        if not wants:
            return (), {}
        members = wants & await self.audience.members(approval, names)
        able = sorted(await self.asking(approval, terms, members, steps=steps))[:MOST_DIRECT]
        held = await self.consideration.quiet(approval, able)
        return tuple(own_card(approval, user_id) for user_id in able if user_id not in held), held

    async def late(
        self, approval: Approval, terms: Terms, now_ms: int
    ) -> tuple[ApprovalMessage, ...]:
        """Plan cards for the claimant and for recipients of a split batch."""
        claim = approval.claim
        people = {claim.by} if claim.holds(now_ms) else set[str]()
        if approval.batch.owner_id and not stays(approval):
            card_owner = await self.approvals.get(approval.batch.owner_id)
            people |= {copy.user for copy in card_owner.copies if copy.kind == BATCH}
        people -= users_of(approval)
        if not people:
            return ()
        alone, steps = approval.changed(batch=StoredBatch()), approval.escalation.steps
        able = await self.asking(alone, terms, people, steps=steps)
        held = await self.consideration.quiet(approval, able)
        return tuple(own_card(approval, user_id) for user_id in sorted(able - held.keys()))


@dataclass(frozen=True, slots=True)
class EscalationPlanner:
    """Reminds approvers and escalates pending approvals."""

    approvals: ApprovalCollection
    audit: AuditStore
    audience: Audience
    clock: Clock
    consideration: DoNotDisturb = field(default_factory=NeverQuiet)
    leaves: Callable[[Approval], Awaitable[int | None]] = _nobody_leaves

    @property
    def _own(self) -> OwnCards:
        return OwnCards(self.approvals, self.audience, self.consideration)

    async def invite(self, approval: Approval) -> Approval:
        """Add the first cards and recipients to a new approval, before it is stored."""
        if approval.status is not Status.PENDING or approval.kind is Kind.QUESTION:
            return approval  # a question waits for its requester
        terms = _terms_of(approval)
        state = begin(terms, approval.created_ms, deadline_ms=approval.expires_ms)
        place = _place(approval, terms)
        approval = approval.changed(elsewhere=place)
        is_told = state.is_announced
        deserted = await self.audience.is_deserted(approval, terms)
        steps = 1 if deserted and is_told else 0
        plan = await self._first(approval, terms, is_told=is_told, steps=steps)
        messages = plan.messages
        if tells_nobody(terms, state) or _sleeps_through(approval, plan):
            messages = (*messages, new_message(approval, "quiet", "quiet"))
        stored = StoredEscalation(
            mentioned=tuple(dict.fromkeys(plan.names)),
            told=steps,
            announced=is_told,
            digest=approval.digest,
            deserted=deserted,
        )
        return approval.changed(
            snoozes=plan.held or approval.snoozes,
            messages=(*plan.cards, *messages),
            escalation=stored,
        )

    async def take_step(self, approval: Approval, now_ms: int) -> tuple[Approval, frozenset[str]]:
        """Store the due step. Return the approval and the keys of its new messages.

        The caller sends the messages.
        """
        terms = _terms_of(approval)
        try:
            due_step = due(terms, escalation_state_of(approval, terms), now_ms)
        except TermsError as error:
            logger.warning(
                "could not plan reminders and escalation: %s",
                error,
                extra={"action": "ladder_failed"},
            )
            return approval, frozenset()
        await self._note(approval, approval.escalation.noted)
        if not due_step.expires:
            due_step = await self._hastened(approval, terms, due_step, now_ms)
        late = () if due_step.expires else await self._own.late(approval, terms, now_ms)
        if due_step.expires or not (due_step.is_any or late):
            return approval, frozenset()
        plan = await self._plan(approval, terms, due_step, now_ms)
        known = {card.user for card in plan.cards}
        late = tuple(card for card in late if card.user not in known)
        plan = replace(plan, cards=(*plan.cards, *late))
        changed = with_step(approval, terms, due_step, plan, now_ms)
        redraws = bool(due_step.begun or due_step.awake or plan.cards)
        write = partial(escalated, judged=changed, now_ms=now_ms, redraws=redraws)
        stepped = await write_held(self.approvals, approval, write)
        if stepped is None:  # another process wrote first: return its version
            newest = await self.approvals.get(approval.approval_id)
            return newest.changed(fence=approval.fence), frozenset()
        await self._note(stepped, approval.escalation.steps)
        return stepped, plan.keys

    def next_ms(self, approval: Approval) -> int:
        """Return when the next step is due: the expiry at the latest."""
        terms = _terms_of(approval)
        try:
            return next_moment(terms, escalation_state_of(approval, terms), self.clock())
        except TermsError:
            return approval.expires_ms

    async def next_look_ms(self, approval: Approval) -> int:
        """Return when to check again: at the next step, or when a delegation ends."""
        next_ms, leaves_ms = self.next_ms(approval), await self.leaves(approval)
        return next_ms if leaves_ms is None else min(next_ms, leaves_ms)

    async def _hastened(self, approval: Approval, terms: Terms, due_step: Due, now_ms: int) -> Due:
        """Return what is due, with an early escalation if no approver is left.

        Checked on every pass, because approvers can leave while an approval is pending.
        """
        state = escalation_state_of(approval, terms)
        if due_step.state.steps or not can_hasten(approval, terms):
            return due_step
        if not await self.audience.is_deserted(approval, terms):
            return due_step
        return due(terms, replace(state, is_deserted=True), now_ms)

    async def _note(self, approval: Approval, noted: int) -> None:
        """Record steps without an audit entry: their process may have died before it."""
        if approval.escalation.steps > noted:
            steps = range(noted, approval.escalation.steps)
            await note_steps(self.audit, approval, steps, at_ms=self.clock())

    async def _first(
        self, approval: Approval, terms: Terms, *, is_told: bool, steps: int
    ) -> EscalationPlan:
        """Plan the cards and recipients of a new approval."""
        groups = asked_groups(terms, approval.stage, steps)
        names = resolve_groups(terms, groups, approval.created_ms)
        if approval.elsewhere == DM:
            return await self._direct(approval, terms, names) if is_told else NOTHING
        place = approval.elsewhere or approval.channel_id
        channels = [name for name in names if is_channel(name) and name not in {CHANNEL, place}]
        cards = [new_card(approval, channel=channel) for channel in channels]
        people: tuple[str, ...] = ()
        here: tuple[str, ...] = ()
        held: Mapping[str, int] = {}
        if is_told and terms.mention:
            waiting = await self.audience.waiting(approval, terms, steps=steps)
            recipients, held = await self._awake(approval, names, waiting, silent=())
            people = _few(tuple(name for name in recipients if not is_channel(name)))
            absent = await self.audience.absent(place, [name for name in people if is_person(name)])
            wants = await self._own.asking(approval, terms, {*people} - absent, steps=steps)
            here = tuple(name for name in people if name not in absent | wants)
            cards += [new_card(approval, user=name) for name in people if name in absent]
            cards += [own_card(approval, name) for name in people if name in wants]
            own, later = await self._own.of_groups(
                approval, terms, names, waiting.people, steps=steps
            )
            cards, held = [*cards, *own], {**held, **later}
        if approval.elsewhere:
            cards.insert(0, new_card(approval, channel=place).changed(mentions=here))
        return EscalationPlan(names=people, cards=tuple(cards), held=held)

    async def _direct(
        self, approval: Approval, terms: Terms, names: Mapping[str, tuple[str, ...]]
    ) -> EscalationPlan:
        """Plan a direct card for each approver. People named in the policy come first."""
        waiting = await self.audience.waiting(approval, terms, steps=approval.escalation.steps)
        named = [name for name in names if is_person(name)]
        others = sorted(waiting.people - {*named})
        people = [name for name in (*named, *others) if waiting.wants(name, names.get(name, ()))]
        known = users_of(approval)
        new = [user_id for user_id in people[:MOST_DIRECT] if user_id not in known]
        held = await self.consideration.quiet(approval, new)
        new = [user_id for user_id in new if user_id not in held]
        cards = tuple(new_card(approval, user=user_id) for user_id in new)
        return EscalationPlan(names=tuple(new), cards=cards, held=held)

    async def _awake(
        self,
        approval: Approval,
        names: Mapping[str, tuple[str, ...]],
        waiting: Waiting,
        *,
        silent: Collection[str],
    ) -> tuple[Recipients, Mapping[str, int]]:
        """Split recipients into those to notify now and those in quiet hours.

        A mention of a user group notifies all of its members. They are therefore never deferred.
        """
        recipients = await self.audience.to_mention(approval, names, waiting, silent=silent)
        groups = [name for name in recipients if is_usergroup(name)]
        people = {*recipients, *(waiting.people if groups else ())} - {*silent}
        held = await self.consideration.quiet(
            approval, [name for name in people if is_person(name)]
        )
        if not held:
            return recipients, held
        named = {*recipients}
        recipients = await self.audience.to_mention(
            approval, names, waiting, silent=(*silent, *held)
        )
        recipients = tuple(name for name in recipients if name not in held)
        is_reached = any(is_usergroup(name) for name in recipients)
        return recipients, {
            user_id: end for user_id, end in held.items() if user_id in named or not is_reached
        }

    async def _plan(
        self, approval: Approval, terms: Terms, due_step: Due, now_ms: int
    ) -> EscalationPlan:
        """Plan the message of a due step: its recipients and its channels."""
        if due_step.notice is None:
            return NOTHING
        if approval.kind is Kind.QUESTION:
            return await self._plan_question(approval, due_step, now_ms)
        waiting = await self.audience.waiting(approval, terms, steps=due_step.state.steps)
        names = due_audience(approval, terms, due_step, now_ms)
        silent = due_step.state.snoozes
        recipients, held = await self._awake(approval, names, waiting, silent=silent)
        awake = await self.audience.awaited_among(approval, due_step.awake, waiting)
        awake = tuple(name for name in awake if name not in recipients)
        recipients = (*recipients, *awake)
        plan = await self._plan_notified(approval, terms, due_step, recipients, now_ms)
        steps, others = due_step.state.steps, waiting.people - {*recipients, *silent}
        own, later = await self._own.of_groups(approval, terms, names, others, steps=steps)
        cards = (*plan.cards, *own)
        return replace(plan, cards=cards, held={**plan.held, **held, **later})

    async def _plan_question(
        self, approval: Approval, due_step: Due, now_ms: int
    ) -> EscalationPlan:
        """Plan a reminder of the requester, in the thread; quiet hours delay it."""
        if not due_step.reminds and not due_step.awake:
            return NOTHING
        asked = approval.requester_id
        if later := await self.consideration.later(approval, asked):
            return EscalationPlan(held={asked: later})
        message = new_message(approval, REMINDER, f"{REMINDER}:{now_ms}")
        return EscalationPlan(messages=(message.changed(mentions=(asked,)),))

    async def _plan_notified(
        self, approval: Approval, terms: Terms, due_step: Due, recipients: Recipients, now_ms: int
    ) -> EscalationPlan:
        """Plan the messages for recipients who are notified now."""
        if due_step.notice is Notice.SNOOZE_OVER:
            return await self._plan_awake(approval, terms, due_step, recipients, now_ms)
        if approval.elsewhere == DM:
            return await self._plan_direct(approval, terms, due_step, recipients, now_ms)
        return await self._plan_here(approval, terms, due_step, recipients, now_ms)

    async def _apart(
        self, approval: Approval, terms: Terms, due_step: Due, people: Collection[str]
    ) -> dict[str, ApprovalMessage]:
        """Plan direct cards for people outside the channel or who prefer them, by user id."""
        place = approval.elsewhere or approval.channel_id
        absent = {*people} if place == DM else await self.audience.absent(place, people)
        rest, steps = {*people} - absent, due_step.state.steps
        wants = await self._own.asking(approval, terms, rest, steps=steps)
        cards = {user_id: new_card(approval, user=user_id) for user_id in absent}
        cards |= {user_id: own_card(approval, user_id) for user_id in wants}
        return {user_id: card.changed(kind=str(due_step.notice)) for user_id, card in cards.items()}

    async def _plan_awake(
        self, approval: Approval, terms: Terms, due_step: Due, recipients: Recipients, now_ms: int
    ) -> EscalationPlan:
        """Plan messages for people whose snooze has ended: the card, or a line."""
        apart, users = await self._apart(approval, terms, due_step, recipients), users_of(approval)
        new = [name for name in recipients if name in apart and name not in users]
        cards = [apart[name] for name in new]
        again = (
            direct_message(approval, due_step, name, now_ms)
            for name in recipients
            if name not in new
        )
        return EscalationPlan(cards=tuple(cards), messages=tuple(again))

    async def _plan_direct(
        self, approval: Approval, terms: Terms, due_step: Due, recipients: Recipients, now_ms: int
    ) -> EscalationPlan:
        """Plan a step by direct message: a card, or a line for people who have the card."""
        known = users_of(approval)
        escalation = approval.escalation.changed(steps=due_step.state.steps)
        changed = approval.changed(escalation=escalation)
        new = await self._direct(changed, terms, dict.fromkeys(recipients, ()))
        cards = tuple(card.changed(kind=str(due_step.notice)) for card in new.cards)
        reached = {card.user for card in cards}
        again = [name for name in recipients if name in known and name not in reached]
        messages = tuple(direct_message(approval, due_step, name, now_ms) for name in again)
        return EscalationPlan(names=new.names, cards=cards, messages=messages, held=new.held)

    async def _plan_here(
        self, approval: Approval, terms: Terms, due_step: Due, recipients: Recipients, now_ms: int
    ) -> EscalationPlan:
        """Plan a step in a channel: a message below the card, and direct messages."""
        place = approval.elsewhere or approval.channel_id
        channels = [name for name in recipients if is_channel(name)]
        people = _few(tuple(name for name in recipients if not is_channel(name)))
        apart = await self._apart(
            approval, terms, due_step, [name for name in people if is_person(name)]
        )
        kind, key = str(due_step.notice), key_of(due_step, now_ms)
        users, places = users_of(approval), {copy.channel for copy in approval.copies}
        fresh = [channel for channel in channels if channel not in {CHANNEL, place, *places}]
        cards = [new_card(approval, channel=channel).changed(kind=kind) for channel in fresh]
        cards += [apart[name] for name in people if name in apart and name not in users]
        here = tuple(name for name in people if name not in apart)
        messages = [
            direct_message(approval, due_step, name, now_ms)
            for name in people
            if name in apart and name in users
        ]
        if here or (channels and not fresh):
            below = new_message(approval, kind, key)
            messages.insert(0, below.changed(mentions=here))
        return EscalationPlan(names=people, cards=tuple(cards), messages=tuple(messages))


def _people(recipients: Collection[str], waiting: Waiting) -> frozenset[str]:
    """Return everyone whom a message notifies, by name or through a user group."""
    named = {name for name in recipients if is_person(name)}
    reached = waiting.people if any(is_usergroup(name) for name in recipients) else frozenset[str]()
    return reached | named


def _sleeps_through(approval: Approval, plan: EscalationPlan) -> bool:
    """Whether every recipient is in quiet hours until the approval expires."""
    is_nobody = bool(plan.held) and not plan.names and approval.elsewhere != DM
    return is_nobody and min(plan.held.values()) >= approval.expires_ms


def _place(approval: Approval, terms: Terms) -> str:
    """Return where the cards go. Only the requester can read a direct message."""
    if is_direct(approval):
        return DM
    return "" if terms.route in {THREAD, approval.channel_id} else terms.route


def _few(names: tuple[str, ...]) -> tuple[str, ...]:
    """Limit the people to mention; keep all user groups."""
    people = [name for name in names if is_person(name)][:MOST_PEOPLE]
    return tuple(name for name in names if not is_person(name) or name in people)


def _terms_of(approval: Approval) -> Terms:
    """Return the terms. An approval in doubt has no reminders."""
    terms = approval.terms
    return terms.model_copy(update={"remind_s": 0}) if approval.kind is Kind.DOUBT else terms
