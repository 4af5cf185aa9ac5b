"""The context of listeners: the use cases, and a way to start work that outlives the payload."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

from slack_bolt.context.async_context import AsyncBoltContext
from slack_sdk.web.async_client import AsyncWebClient

from agents import AgentError
from agents.gates.rulings import Judgement
from bot.approvals.delegation import Delegating
from bot.approvals.disclosure import Surface
from bot.approvals.editing import Edits
from bot.approvals.grants import Grants, why_never
from bot.approvals.secondary_actions import Means, explains_nothing
from bot.approvals.service import Approvals
from bot.errors import DirectoryError, InvalidInputError, NotApproverError, NotRecordedError
from bot.layout.action_ids import ActionId, Reference
from bot.layout.modals import Errors, Values
from bot.leases import CLICK_PATIENCE, ThreadWorker
from bot.notifications.preferences import NotificationPreferences
from bot.people.terms_of import is_critical
from bot.people.waiting import Waits
from bot.policy.grants import GrantRequest
from bot.policy.localtime import zone_of
from bot.policy.terms import TermsError
from bot.ports.people import Actor
from bot.ports.process import Clock, Spawn
from bot.ports.tools import CheckedCall
from bot.questions.drawing import DecisionDraft, DrawnQuestion, drawn_question
from bot.slack.agentview.prompts import SuggestedPrompts
from bot.slack.cards.modals import agreeing_form
from bot.slack.destinations import NO_MESSAGE, ClickedMessage
from bot.slack.home.homes import HomeViews
from bot.slack.listeners.modals import Window
from bot.slack.listeners.slash_commands.answers import Asker
from bot.slack.listeners.slash_commands.shown import ShownLists
from bot.threads.agents import AgentFacts
from bot.threads.inbox import ThreadInbox
from bot.threads.message_edits import Revisions
from bot.threads.outbox import Outbox
from bot.words import languages, say, speaking
from storage.base import Storage
from storage.records import Approval, Decision, Grant, Status

T = TypeVar("T")

Facts = Callable[[str], Awaitable[AgentFacts]]
"""Tells of the agent that works in a channel."""
CheckCall = Callable[[Approval, dict[str, Any]], Awaitable[CheckedCall]]
"""Takes a call and its new arguments; raises `InvalidArgumentsError` where they do not fit."""

Judge = Callable[[Approval, dict[str, Any]], Awaitable[Judgement | None]]
"""Takes a call and its new arguments; says what the rules demand of it, when that is known."""

OURS = re.compile(r"^countersign:")
"""The buttons and modals that are ours."""
HOME = "countersign:home_"
"""Begins the ids of all that is clicked in Home."""
HOME_OPENED = "app_home_opened"
"""The event that somebody looks at their Home."""

_UTC = "Etc/UTC"


def hear_nothing(_: Mapping[str, Any]) -> bool:
    """Take no event."""
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class FormNotice:
    """Our own words in place of a form that was submitted.

    Attributes:
        title: At most 24 characters.
        words: Escaped mrkdwn.
        view: Another form in place of the words; None for these.
    """

    title: str = ""
    words: str = ""
    view: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerContext:
    """The use cases behind the listeners.

    Attributes:
        storage: Where records are kept.
        approvals: Decisions.
        inbox: Messages.
        threads: The agents' work.
        check_call: Brings edited arguments of a call into their canonical form, and words it.
        judge: Says what the rules demand of an edited call.
        edits: What becomes of an edited call.
        grants: Standing grants.
        wishes: When people are not to be messaged.
        outbox: Private answers.
        homes: The open Homes, and the lists that people ask for.
        client: Opens modals; never waits long.
        clock: The time now.
        spawn: Starts work that outlives the payload.
        window: Of the click that is being answered; None for another payload.
        clicked: The message that the click is in; an empty one where it is in a form.
        facts: Tells of the agent of a channel; None where nobody asks for it.
        prompts: Offered to who opens the conversation with the bot; None for none.
        explains: Whether the agent of a call can be asked about it.
        hear: Takes events about people and groups; False for another event.
        shown_lists: The lists that people typed for, and clicked in.
        patience: The longest that a click may take in all.
    """

    storage: Storage
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
        """The workspace where the app is installed; a payload may come from another one."""
        return self.homes.composer.team_id

    @property
    def revisions(self) -> Revisions:
        """The use case of messages that people edit or delete."""
        return Revisions(
            storage=self.storage,
            receive=self.inbox.receive,
            spoken_to=self.inbox.spoken_to,
            approvals=self.approvals,
            outbox=self.outbox,
            clock=self.clock,
        )

    async def in_time(self, work: Awaitable[T]) -> T:
        """Wait for the database, but not longer than Slack waits for us.

        Raises:
            NotRecordedError: It took too long; whether the write took place is not known.
        """
        try:
            async with asyncio.timeout(self.patience.total_seconds()):
                return await work
        except TimeoutError as error:
            raise NotRecordedError from error

    async def speak_to(self, user_id: str, work: Awaitable[T]) -> T:
        """Do work that answers a person, in their language; in English where it is not known."""
        with speaking(await self.locale(user_id)):
            return await work

    async def locale(self, user_id: str) -> str:
        """The locale of a person; empty where it makes no difference, or cannot be looked up."""
        return await self.inbox.access.locale(user_id) if len(languages()) > 1 else ""

    async def sees(self, approval: Approval, actor: Actor) -> bool:
        """Whether somebody may read all of a request now; see `WaitingLook.sees`.

        Raises:
            DirectoryError: It could not be looked up.
        """
        approvals = self.approvals
        waits = Waits(
            approvals.access.directory, approvals.policy, self.clock, self.storage.delegations
        )
        return await (await waits.look(actor, approval.team_id)).sees(approval)

    async def check_sees(self, approval: Approval, actor: Actor) -> None:
        """Refuse who may not read a request now; see `sees`.

        Raises:
            NotApproverError: They may not.
            DirectoryError: It could not be looked up.
        """
        if not await self.sees(approval, actor):
            raise NotApproverError(say("refuse.withheld"))

    async def open_view(self, trigger_id: str, view: dict[str, Any]) -> None:
        """Open a modal for the person who clicked.

        Raises:
            DeliveryError: Slack refused, most often because the click is too old.
        """
        window = self.window or Window(self.client, trigger_id)
        await window.show(view)

    async def open_agreeing(
        self, approval: Approval, actor: Actor, trigger_id: str, view: dict[str, Any]
    ) -> None:
        """Open a form that says yes: it shows all of the call, or its reader has opened that.

        Args:
            approval: What it is about.
            actor: Who clicked.
            trigger_id: Of the click.
            view: The form, without the call.

        Raises:
            NotSeenError: They have to open all of it first.
            DeliveryError: See `open_view`.
        """
        is_edit = view["callback_id"] == ActionId.EDIT_MODAL
        surface = Surface.EDIT_FORM if is_edit else Surface.FORM
        await self.approvals.check_seen(approval, actor.user_id, surface)
        await self.open_view(trigger_id, agreeing_form(approval, view))

    async def question(
        self, about: Reference, actor: Actor, *, what: str, known: Approval | None = None
    ) -> DrawnQuestion:
        """Read the question that a person answers; whether they may is not looked up yet.

        Raises:
            InvalidInputError: Nobody answers it.
            UserFacingError: It has changed or ended; see `Approvals.find`.
        """
        name, shown = about.approval_id, about.shown
        approval = await self.approvals.find(name, actor, shown=shown, known=known)
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
        """Record a decision; return the approval as decided.

        Args:
            approval: Pending.
            draft: The decision.
            actor: Who made it.
            surface: Where they made it.
            call: The call that it completes, where that has been checked.
            allowance: How much more is allowed with it, see `allow`; None for nothing. It is on
                record with the decision, where the rule lets it be.

        Raises:
            InvalidInputError: It agrees to something critical without the form for that.
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
            answer_json=draft.answer_json,
            digest=draft.digest,
            title=call.title if call is not None else "",
            preview=call.preview if call is not None else "",
            allowance_json=_kept(approval, allowance) if allowance is not None else "",
        )
        return await self.approvals.decide(approval, decision, actor, surface=surface)

    async def _completed(
        self, approval: Approval, arguments: dict[str, object]
    ) -> CheckedCall | None:
        """The call with what people chose; without words of its tool the choice counts, too."""
        with suppress(AgentError, DirectoryError):
            return await self.check_call(approval, arguments)
        return None

    async def allow(self, decided: Approval, allowance: GrantRequest | None) -> Errors | FormNotice:
        """Give the grant that goes with an approval; the approval counts in any case.

        Args:
            decided: As just decided.
            allowance: How much is allowed; None for nothing.
        """
        granted = await self.grants.give(decided, allowance) if allowance else None
        if isinstance(granted, Grant):
            self.spawn(self.grants.show_later(granted.grant_id))
        if not isinstance(granted, str):
            return {}
        words = say("form.approved_no_grant_words", why=granted)
        return FormNotice(title=say("form.approved_no_grant"), words=words)

    async def follow_up(self, approval: Approval, *, address: str, thread_ts: str) -> None:
        """Do what follows a decision; say so where the card cannot.

        Args:
            approval: As decided.
            address: Where the click can be answered without a token; empty when there is none.
            thread_ts: The thread of the card.
        """
        await self.approvals.follow_up(approval)
        if self.is_refused:
            await self.outbox.respond(address, say("form.recorded_words"), thread_ts=thread_ts)

    @property
    def delegating(self) -> Delegating:
        """The use case of delegations and absences; what waits is looked at after them."""
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
        """Somebody who has typed a word."""
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
        """Show somebody at once what they have just changed: in their Home, and in their list."""
        await self.homes.acted(actor)
        await self.shown_lists.redraw(self.asker(actor), self.outbox.respond)

    async def zone(self, actor: Actor) -> ZoneInfo:
        """The zone of a person, as Slack knows it; else that of the policy.

        Raises:
            DirectoryError: It could not be looked up.
        """
        approvals = self.approvals
        person = await approvals.access.directory.person(actor.user_id)
        for name in (person.timezone, approvals.policy.timezone):
            with suppress(TermsError):
                return zone_of(name)
        return zone_of(_UTC)

    @property
    def typed(self) -> Values:
        """The values typed so far into the form that the click is in; empty for a card."""
        return self.window.typed if self.window is not None else {}

    @property
    def means(self) -> Means:
        """The means beside a vote."""
        return Means(self.storage, self.approvals, self.clock, self.explains)

    @property
    def is_refused(self) -> bool:
        """Whether Slack refuses the app, so that no card changes now."""
        return self.outbox.notifier.is_refused


Press = Callable[[ListenerContext, Reference, Actor, str], Awaitable[None]]
"""The work of a button: for whom, about what, and with which trigger for a form."""
Submit = Callable[[ListenerContext, Reference, Actor, Values], Awaitable[Errors | FormNotice]]
"""The work of a form: for whom, about what, and with what was filled in."""


def address_of(body: Mapping[str, Any]) -> str:
    """Return the address that takes answers to a click for half an hour, without a token; or "".

    Source:
        https://docs.slack.dev/interactivity/handling-user-interaction#message_responses
    """
    found = body.get("response_url")
    return found if isinstance(found, str) else ""


def actor_of(context: AsyncBoltContext, body: Mapping[str, Any]) -> Actor:
    """Return the sender of a payload, as Bolt read it from the verified request."""
    payload = body.get("trigger_id")
    return Actor(
        payload=payload if isinstance(payload, str) else "",
        user_id=context.actor_user_id or context.user_id or "",
        team_id=context.actor_team_id or "",
        enterprise_id=context.actor_enterprise_id or "",
    )


def action_of(body: Mapping[str, Any], *, what: str = "this button") -> dict[str, Any]:
    """Return the element that somebody used.

    Raises:
        InvalidInputError: The payload is not one that our cards and forms send.
    """
    actions = body.get("actions")
    action = actions[0] if isinstance(actions, list) and actions else None
    if not isinstance(action, dict):
        raise InvalidInputError(what)
    return action


def _kept(approval: Approval, allowance: GrantRequest) -> str:
    """How much is allowed with a decision, as its record keeps it; nothing of what cannot be."""
    return "" if why_never(approval, allowance) else allowance.to_text()
