"""One process of a bot with rules of its own: its model, its listeners, and the end of its life.

What people do goes through the listeners, as a verified payload would.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Coroutine, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, TypeVar, cast

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponsePart,
    ToolReturnPart,
    UserPromptPart,
)
from slack_bolt.async_app import AsyncApp
from slack_bolt.context.async_context import AsyncBoltContext
from slack_sdk.web.async_client import AsyncWebClient

from agents import ChatModelAgent, tool
from agents.core.tools import Tool
from agents.gates.rulings import Judgement
from agents.models import AnsweringModel, call, say
from bot.approvals.editing import Edits
from bot.approvals.secondary_actions import SecondaryActions
from bot.layout.action_ids import ActionId, encode
from bot.leases import CLICK_PATIENCE
from bot.people.viewer import Viewers
from bot.ports.people import Actor
from bot.records.approval import Approval
from bot.slack.decisions import Decisions
from bot.slack.listeners import actions, views
from bot.slack.responding import Responder
from bot.slack.slash_commands.answers import Asker
from bot.slack.slash_commands.words import ShownLists
from bot.stores import Stores
from bot.threads.agents import Catalog
from tests.property.worlds.bench import PEOPLE as USUAL, READS, STORES, mark
from tests.property.worlds.ledger import Ledger, Shown
from tests.property.worlds.rulebook import DAN, FAY, Payment, wrapped
from tests.support.fakes import FakeNotifier
from tests.unit.bot.counter_stage import homes_of
from tests.unit.bot.layout.forms_stage import submitted
from tests.unit.bot.office import RULES, KilledError, Office

T = TypeVar("T")
PEOPLE = (*USUAL, DAN, FAY)


@dataclass
class Life:
    """How long a process lives.

    Attributes:
        left: How many writes it can still make; None for any number.
        ends_in_tool: Whether it dies when a tool has begun.
    """

    left: int | None = None
    ends_in_tool: bool = False

    def writes(self, number: int) -> None:
        """Use some of it up.

        Raises:
            KilledError: It is over.
        """
        if self.left is None:
            return
        self.left -= number
        if self.left < 0:
            raise KilledError

    def wrote(self, store: str, method: str, *values: Any) -> None:
        """A write has taken effect.

        Args:
            store: Of which store.
            method: Which one.
            told: What was given to it.
        """

    def enters_tool(self) -> None:
        """A tool has begun.

        Raises:
            KilledError: It is over.
        """
        if self.ends_in_tool:
            self.left = 0
            raise KilledError


class Mortal:
    """A database, or one of its stores, at which a process dies before one of its writes."""

    def __init__(self, life: Life, target: Any, name: str = "") -> None:
        self._life = life
        self._target = target
        self._name = name

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._target, name)
        if not self._name:
            return Mortal(self._life, attribute, name) if name in STORES else attribute
        if isinstance(attribute, type) or not callable(attribute):
            return attribute

        async def use(*args: Any, **options: Any) -> Any:
            self._life.writes(0 if name in READS else 1)
            result = await attribute(*args, **options)
            if name not in READS:
                self._life.wrote(self._name, name, *args)
            return result

        return use


class Unhurried(Responder):
    """Runs the work of listeners; no real time passes."""

    async def in_time(self, work: Awaitable[T]) -> T:
        """See `Responder.in_time`."""
        return await work


class Bolt:
    """Keeps the one listener of clicks and that of modals, and the modals that were opened."""

    def __init__(self) -> None:
        self.click: Any = None
        self.submit: Any = None
        self.opened: list[dict[str, Any]] = []

    def action(self, _: object) -> Any:
        """See `AsyncApp.action`."""
        return lambda listener: setattr(self, "click", listener)

    def view(self, _: object) -> Any:
        """See `AsyncApp.view`."""
        return lambda listener: setattr(self, "submit", listener)

    async def views_open(self, *, trigger_id: str, view: dict[str, Any]) -> None:
        """See `AsyncWebClient`."""
        self.opened.append(view)


class Hall:
    """The process.

    Attributes:
        life: How long it lives.
        office: Its use cases.
        between: What somebody else does while the next form is being judged.
    """

    def __init__(
        self, storage: Stores, notifier: FakeNotifier, ledger: Ledger, life: Life | None = None
    ) -> None:
        self.life, self.bolt, self._ledger = life or Life(), Bolt(), ledger
        self.between: list[Coroutine[Any, Any, None]] = []
        model = AnsweringModel(self._next, name="town")
        tools = [wrapped(self._tool(), ledger.book)]
        self._agent = ChatModelAgent(name="A", model=model, tools=tools)
        house, directory = ledger.house, ledger.directory
        self._rules = replace(
            RULES,
            approvers=house.approvers,
            escalate_after=timedelta(minutes=house.escalate) if house.escalate else None,
            escalate_to=house.escalate_to,
            exclude_editors=house.excludes_editors,
        )
        kept = dict(directory.people), dict(directory.channels)
        self.office = Office(
            cast(Stores, Mortal(self.life, storage)),
            (),
            clock=ledger.clock,
            notifier=notifier,
            directory=directory,
            make_agent=lambda _: self._agent,
            rules=self._rules,
        )
        directory.people.update(kept[0])  # an office puts people in
        directory.channels.update(kept[1])
        self._register()

    def _register(self) -> None:
        office, app = self.office, cast(AsyncApp, self.bolt)

        async def no_name(_: str) -> str:
            return ""

        catalog = Catalog(
            {"*": self._agent},
            make_runner=lambda _: office.runner,
            checkpoints=office.storage.checkpoints,
            channel_name=no_name,
        )

        async def judge(approval: Approval, arguments: dict[str, Any]) -> Judgement | None:
            judgement = await catalog.judge(approval, arguments)
            while self.between:  # somebody else was faster
                await self.between.pop()
            return judgement

        def no_asker(_: Actor) -> Asker:
            raise NotImplementedError  # no list is shown

        client = cast(AsyncWebClient, self.bolt)
        responder = Unhurried(directory=office.access.directory, patience=CLICK_PATIENCE)
        decisions = Decisions(
            approvals=office.approvals, check_call=catalog.check_call, clock=office.clock
        )
        shown_lists = ShownLists(
            publish_home=homes_of(office, client).acted,
            asker=no_asker,
            respond=office.outbox.respond,
        )
        directory, delegations = office.approvals.access.directory, office.storage.delegations
        actions.register(
            app,
            actions.ActionServices(
                responder=responder,
                client=client,
                storage=office.storage,
                approvals=office.approvals,
                decisions=decisions,
                viewers=Viewers(directory, office.approvals.policy, office.clock, delegations),
                secondary_actions=SecondaryActions(office.storage, office.approvals, office.clock),
                notices=office.notices,
                outbox=office.outbox,
                shown_lists=shown_lists,
                spawn=office.queue.spawn,
            ),
        )
        views.register(
            app,
            views.ViewServices(
                responder=responder,
                approvals=office.approvals,
                decisions=decisions,
                edits=Edits(office.storage, office.approvals, self._rules, office.clock),
                check_call=catalog.check_call,
                judge=judge,
                outbox=office.outbox,
                shown_lists=shown_lists,
                spawn=office.queue.spawn,
            ),
        )

    def forget_between(self) -> None:
        """Nobody was faster after all."""
        while self.between:
            self.between.pop().close()

    # ---- buttons and forms ----------------------------------------------------------------------

    async def press(self, who: str, card: Shown, button: ActionId) -> None:
        """Somebody presses a button of a card.

        Raises:
            UserFacingError: It is refused.
        """
        value = encode(card.approval_id, card.digest)
        pressed = {"action_id": str(button), "value": value}
        waits = await self.office.storage.approvals.get(card.approval_id)
        place = {
            "channel": {"id": waits.channel_id},
            "message": {"ts": waits.thread_card.ts or "9.1"},
        }

        async def ack() -> None:
            pass

        await self.bolt.click(
            {"actions": [pressed], "trigger_id": "1", **place}, ack, _context(who)
        )

    async def send(self, who: str, card: Shown, form: ActionId, block: str, text: str) -> None:
        """Somebody sends a form with one text.

        Raises:
            UserFacingError: It is refused.
        """
        state = {"type": "plain_text_input", "value": text}
        await self._submit(who, card, form, {block: {ActionId.VALUE: state}})

    async def edit(self, who: str, card: Shown, payment: Payment) -> bool:
        """Somebody opens the form of a card, fills it in and sends it; whether it was taken.

        Raises:
            UserFacingError: It is refused.
        """
        await self.press(who, card, ActionId.EDIT)
        view = self.bolt.opened[-1]
        if view.get("callback_id") != ActionId.EDIT_MODAL:
            return False
        return not await self._submit(who, card, ActionId.EDIT_MODAL, _filled(view, payment))

    async def _submit(
        self, who: str, card: Shown, form: ActionId, values: dict[str, Any]
    ) -> dict[str, Any]:
        response: dict[str, Any] = {}

        async def ack(**answer: Any) -> None:
            response.update(answer)

        view = {
            "callback_id": str(form),
            "private_metadata": encode(card.approval_id, card.digest),
            "state": {"values": values},
        }
        await self.bolt.submit({"view": view}, ack, _context(who))
        return response

    # ---- the agent ------------------------------------------------------------------------------

    def _tool(self) -> Tool:
        @tool(title="Pay {amount} to {to} for {ref}")
        async def pay(ref: str, amount: int, to: str) -> str:
            """Pay.

            Args:
                ref: What for.
                amount: How much.
                to: Whom.
            """
            self._ledger.begins(ref, Payment(amount, to))
            self.life.enters_tool()
            return f"amount {amount} went to {to} for {ref}"

        return pay

    def _next(self, messages: Sequence[ModelMessage]) -> list[ModelResponsePart]:
        last = messages[-1]
        assert isinstance(last, ModelRequest)
        results = [part for part in last.parts if isinstance(part, ToolReturnPart)]
        if results:
            return [say(" | ".join(part.model_response_str() for part in results))]
        asked = " ".join(str(p.content) for p in last.parts if isinstance(p, UserPromptPart))
        parts: list[ModelResponsePart] = [say("Well.")]
        for number, amount, to in re.findall(r"job (\d+) pay (\d+) to (\w+)", asked):
            self._ledger.heard[f"job-{number}"] = _heard_in(str(messages))
            arguments = {"ref": f"job-{number}", "amount": int(amount), "to": to}
            parts.append(call("pay", arguments, id=f"pay{number}"))
        return parts


def amount_by(who: str, size: int) -> int:
    """An amount that only this person fills in: its last digit tells them apart."""
    return size + 1 + PEOPLE.index(who)


def _heard_in(text: str) -> set[str]:
    """Whose words, or values, are in what the model has read."""
    amounts = [int(number) for number in re.findall(r"amount\W{1,6}(\d+)", text)]
    return {who for who in PEOPLE if mark(who) in text} | {
        PEOPLE[number % 10 - 1] for number in amounts if number % 10
    }


def _filled(view: dict[str, Any], payment: Payment) -> dict[str, Any]:
    """What Slack sends of a form whose inputs for the amount and the name were changed."""
    inputs = {block["label"]["text"]: block for block in view["blocks"] if block["type"] == "input"}
    block_ids = {name.split()[0].lower(): block["block_id"] for name, block in inputs.items()}
    changes = {block_ids["amount"]: str(payment.amount), block_ids["to"]: payment.to}
    return submitted(view["blocks"], **changes)


def _context(who: str) -> AsyncBoltContext:
    return AsyncBoltContext({"actor_user_id": who, "actor_team_id": "T1"})
