"""Context of listeners: use cases, responses, background work."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

from slack_sdk.web.async_client import AsyncWebClient

from agents import AgentError
from agents.gates.rulings import Judgement
from bot.approvals.delegation import Delegating
from bot.approvals.disclosure import Surface
from bot.approvals.editing import Edits
from bot.approvals.grants import Grants, why_never
from bot.approvals.secondary_actions import Means, explains_nothing
from bot.approvals.service import Approvals
from bot.errors import (
    REFUSALS,
    DirectoryError,
    InvalidInputError,
    NotApproverError,
    NotRecordedError,
)
from bot.layout.action_ids import ActionId, Reference
from bot.layout.modals import Errors, Values
from bot.leases import CLICK_PATIENCE, ThreadWorker
from bot.notifications.preferences import NotificationPreferences
from bot.people.viewer import Viewers
from bot.policy.demands import is_critical
from bot.policy.hours import zone_of
from bot.ports.people import Actor
from bot.ports.process import Clock, Spawn
from bot.ports.threads import CheckedCall
from bot.questions.drawing import DecisionDraft, DrawnQuestion, OpenModal, drawn_question
from bot.questions.yes import Proof
from bot.records.approval import Approval, Decision, GrantRequest, Status
from bot.records.people import Grant
from bot.records.terms import TermsError
from bot.slack.agent_view import SuggestedPrompts
from bot.slack.cards.modals import agreeing_form
from bot.slack.destinations import NO_MESSAGE, ClickedMessage
from bot.slack.home.homes import HomeViews
from bot.slack.modals import Window
from bot.slack.payloads import FormNotice
from bot.slack.slash_commands.answers import Asker
from bot.slack.slash_commands.words import ShownLists
from bot.stores import Stores
from bot.threads.agents import AgentFacts
from bot.threads.inbox import ThreadInbox
from bot.threads.message_event import Revisions
from bot.threads.outbox import Outbox
from bot.words import languages, say, speaking
from storage.errors import RecordNotFoundError

T = TypeVar("T")

Facts = Callable[[str], Awaitable[AgentFacts]]
"""Describes the agent of a channel."""
CheckCall = Callable[[Approval, dict[str, Any]], Awaitable[CheckedCall]]
"""Validates a call's new arguments; raises `InvalidArgumentsError`."""

Judge = Callable[[Approval, dict[str, Any]], Awaitable[Judgement | None]]
"""Judges a call with new arguments by the policy, if possible."""

DRAW_S = 0.5
"""Longest time, in seconds, that a form waits for its card while Slack refuses calls."""
_UTC = "Etc/UTC"


def hear_nothing(_: Mapping[str, Any]) -> bool:
    """Return False: no event is handled."""
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerContext:
    """Use cases and request data of listeners.

    Attributes:
        storage: The database.
        approvals: Use cases of approvals.
        inbox: Routes messages.
        threads: Processes threads.
        check_call: Validates and describes edited arguments.
        judge: Judges an edited call by the policy.
        edits: Records edits.
        grants: Standing grants.
        wishes: Notification preferences.
        outbox: Sends ephemeral messages.
        homes: Open Homes and lists.
        client: Opens modals, with short timeouts.
        spawn: Starts background work.
        window: Modal of the current click; None for other payloads.
        clicked: Message of the click; empty for a modal.
        facts: Describes the agent of a channel, if needed.
        prompts: Offers suggested prompts, if any.
        explains: Whether the agent of a call can be asked.
        hear: Handles events about people and groups; returns False for others.
        shown_lists: Lists shown by commands.
        patience: Longest time to handle a click.
    """

    storage: Stores
    approvals: Approvals
    inbox: ThreadInbox
    threads: ThreadWorker
    check_call: CheckCall
    judge: Judge
    edits: Edits
    grants: Grants
    wishes: NotificationPreferences
    outbox: Outbox
    homes: HomeViews
    client: AsyncWebClient
    clock: Clock
    spawn: Spawn
    window: Window | None = None
    clicked: ClickedMessage = NO_MESSAGE
    facts: Facts | None = None
    prompts: SuggestedPrompts | None = None
    explains: Callable[[Approval], Awaitable[bool]] = explains_nothing
    hear: Callable[[Mapping[str, Any]], bool] = hear_nothing
    shown_lists: ShownLists = field(default_factory=ShownLists)
    patience: timedelta = CLICK_PATIENCE

    @property
    def team_id(self) -> str:
        """Id of the app's workspace; a payload may come from another one."""
        return self.homes.composer.team_id

    @property
    def revisions(self) -> Revisions:
        """Use case of edited and deleted messages."""
        return Revisions(
            storage=self.storage,
            receive=self.inbox.receive,
            spoken_to=self.inbox.spoken_to,
            approvals=self.approvals,
            outbox=self.outbox,
            clock=self.clock,
        )

    async def in_time(self, work: Awaitable[T]) -> T:
        """Wait for the database, at most as long as Slack waits for us.

        Raises:
            NotRecordedError: A timeout; the write may have taken place.
        """
        try:
            async with asyncio.timeout(self.patience.total_seconds()):
                return await work
        except TimeoutError as error:
            raise NotRecordedError from error

    async def speak_to(self, user_id: str, work: Awaitable[T]) -> T:
        """Run work that responds to a person, in their language; English if unknown."""
        with speaking(await self.locale(user_id)):
            return await work

    async def locale(self, user_id: str) -> str:
        """Return a person's locale; empty if irrelevant or unknown."""
        return await self.inbox.access.locale(user_id) if len(languages()) > 1 else ""

    async def can_see(self, approval: Approval, actor: Actor) -> bool:
        """Whether a person may read the whole request now; see `Viewer.can_see`.

        Raises:
            DirectoryError: A look-up failed.
        """
        approvals = self.approvals
        viewers = Viewers(
            approvals.access.directory, approvals.policy, self.clock, self.storage.delegations
        )
        return await (await viewers.viewer_of(actor, approval.team_id)).can_see(approval)

    async def is_withheld(self, approval: Approval, actor: Actor) -> bool:
        """Whether a person may not read a request now; True if a look-up fails."""
        try:
            return not await self.can_see(approval, actor)
        except DirectoryError:
            return True

    async def check_can_see(self, approval: Approval, actor: Actor) -> None:
        """Refuse a person who may not read a request now; see `can_see`.

        Raises:
            NotApproverError: They may not.
            DirectoryError: A look-up failed.
        """
        if not await self.can_see(approval, actor):
            raise NotApproverError(say("refuse.withheld"))

    async def open_view(self, trigger_id: str, view: dict[str, Any]) -> None:
        """Open a modal for the person who clicked.

        Raises:
            DeliveryError: Slack refused, usually because the click is too old.
        """
        window = self.window or Window(self.client, trigger_id)
        await window.show(view)

    async def form(self, approval: Approval, actor: Actor, form: OpenModal) -> dict[str, Any]:
        """Return a modal for a person; one that agrees shows everything, or they opened the rest.

        Raises:
            NotSeenError: The person must open the rest first.
        """
        if form.agrees is not None:
            is_edit = form.agrees is ActionId.EDIT_MODAL
            surface = Surface.EDIT_FORM if is_edit else Surface.FORM
            await self.approvals.check_seen(approval, actor.user_id, surface)
        return agreeing_form(approval, form, Proof(is_whole=True))

    async def question(
        self, about: Reference, actor: Actor, *, what: str, known: Approval | None = None
    ) -> DrawnQuestion:
        """Read a question to be answered, without checking the person.

        Raises:
            InvalidInputError: The approval takes no answers.
            UserFacingError: It has changed or ended; see `Approvals.find`.
        """
        name, shown = about.approval_id, about.shown
        approval = await self.approvals.get_pending(name, actor, shown=shown, known=known)
        question = drawn_question(approval)
        if approval.kind not in question.kinds:
            raise InvalidInputError(what)
        return question

    async def record(
        self,
        approval: Approval,
        draft: DecisionDraft,
        actor: Actor,
        *,
        surface: Surface,
        call: CheckedCall | None = None,
        allowance: GrantRequest | None = None,
    ) -> Approval:
        """Store a decision or a vote; return the approval.

        Args:
            approval: A pending approval.
            draft: The decision.
            actor: The person.
            surface: Where they decided.
            call: The validated call that it completes, if any.
            allowance: Standing grant to store with it if the rule permits that, see `allow`; or
                None.

        Raises:
            InvalidInputError: A critical request was approved without its form.
            UserFacingError: See `Approvals.decide`.
        """
        if draft.status is Status.APPROVED and not draft.is_confirmed and is_critical(approval):
            raise InvalidInputError("this button")
        if call is None and draft.completes is not None:
            call = await self._completed(approval, draft.completes)
        decision = Decision(
            status=draft.status,
            by=actor.user_id,
            at_ms=self.clock(),
            reason=draft.reason,
            answer=draft.answer,
            digest=draft.digest,
            title=call.title if call is not None else "",
            preview=call.preview if call is not None else "",
            allowance=_kept(approval, allowance) if allowance is not None else None,
        )
        return await self.approvals.decide(approval, decision, actor, surface=surface)

    async def _completed(
        self, approval: Approval, arguments: dict[str, object]
    ) -> CheckedCall | None:
        """Return the call with the chosen values; valid without a description, too."""
        with suppress(AgentError, DirectoryError):
            return await self.check_call(approval, arguments)
        return None

    async def allow(self, decided: Approval, allowance: GrantRequest | None) -> Errors | FormNotice:
        """Create the grant of an approval; the approval counts in any case.

        Args:
            decided: The new approval.
            allowance: The requested grant, or None.
        """
        granted = await self.grants.give(decided, allowance) if allowance else None
        if isinstance(granted, Grant):
            self.spawn(self.grants.show_later(granted.grant_id))
        if not isinstance(granted, str):
            return {}
        words = say("form.approved_no_grant_words", why=granted)
        return FormNotice(title=say("form.approved_no_grant"), words=words)

    async def follow_up(self, approval: Approval, *, address: str, thread_ts: str) -> None:
        """Follow up a decision; respond where the card cannot show it.

        Args:
            approval: As decided.
            address: URL for responses without a token; may be empty.
            thread_ts: The thread of the card.
        """
        await self.approvals.follow_up(approval)
        if not self._is_drawn(approval) and await self.is_card_refused(approval.approval_id):
            await self.outbox.respond(address, say("form.recorded_words"), thread_ts=thread_ts)

    def _is_drawn(self, decided: Approval) -> bool:
        """Whether this process stored that the card shows a decision; on a batch card, unknown."""
        known = self.storage.approvals.known.get(decided.approval_id)
        if known is None or known.is_batched:
            return False
        return known.card.revision >= decided.shown_revision

    async def is_card_refused(self, approval_id: str) -> bool:
        """Whether Slack refused the app when it showed a request last, by the card's own record.

        What Slack answered to other calls of this process says nothing about this card.
        """
        store = self.storage.approvals
        try:
            approval = await store.get(approval_id)
            if approval.is_batched:
                approval = await store.get(approval.batch.keeper)
        except RecordNotFoundError:
            return False
        return approval.card.error in REFUSALS

    async def is_undrawn(self, approval_id: str) -> bool:
        """Draw a card before its form is answered; return whether Slack refused the app.

        Only a form that was submitted while Slack refuses calls waits for this.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(DRAW_S):
                await self.approvals.attendance.attend(approval_id)
        return await self.is_card_refused(approval_id)

    @property
    def delegating(self) -> Delegating:
        """Use case of delegations and absences; changes re-check pending approvals."""
        approvals = self.approvals
        attendance, spawn = approvals.attendance, self.spawn
        return Delegating(
            self.storage,
            approvals.access,
            approvals.policy,
            self.clock,
            left=lambda team_id: spawn(attendance.look_who_is_left(team_id)),
        )

    def asker(self, actor: Actor) -> Asker:
        """Return the context of a typed command."""
        return Asker(
            actor=actor,
            team_id=self.team_id,
            composer=self.homes.composer,
            changed=self.homes.changed,
            delegating=self.delegating,
            grants=self.grants,
            wishes=self.wishes,
            spawn=self.spawn,
        )

    async def acted(self, actor: Actor) -> None:
        """Update a person's Home and list after their change, at once."""
        await self.homes.acted(actor)
        await self.shown_lists.redraw(self.asker(actor), self.outbox.respond)

    async def zone(self, actor: Actor) -> ZoneInfo:
        """Return a person's time zone from Slack; else the policy's.

        Raises:
            DirectoryError: The look-up failed.
        """
        approvals = self.approvals
        person = await approvals.access.directory.person(actor.user_id)
        for name in (person.timezone, approvals.policy.timezone):
            with suppress(TermsError):
                return zone_of(name)
        return zone_of(_UTC)

    @property
    def typed(self) -> Values:
        """Return the values typed into the clicked modal; empty for a card."""
        return self.window.typed if self.window is not None else {}

    @property
    def means(self) -> Means:
        """Secondary actions."""
        return Means(self.storage, self.approvals, self.clock, self.explains)

    @property
    def is_refused(self) -> bool:
        """Whether Slack refused the app's last call, so that an update may fail, too."""
        return self.outbox.notifier.is_refused


Press = Callable[[ListenerContext, Reference, Actor, str], Awaitable[None]]
"""Handles a button: person, reference, and trigger for a modal."""
Submit = Callable[[ListenerContext, Reference, Actor, Values], Awaitable[Errors | FormNotice]]
"""Handles a modal: person, reference, and values."""


def _kept(approval: Approval, allowance: GrantRequest) -> GrantRequest | None:
    """Return a requested grant as it is recorded; None if the rule forbids it."""
    return None if why_never(approval, allowance) else allowance
