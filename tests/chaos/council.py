"""The chaos test with a policy: a quorum, two stages, another channel, a standing grant.

Several people vote at once, through several bots, press twice, change their minds, claim, edit
and hand their right on, while bots die. An independent count says what must have come of it.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Collection, Coroutine, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

from bot.records.approval import Approval, Kind, Status
from bot.stores import Stores
from slack_sandbox.workspace.records import SlackChannel, SlackUser, UserGroup
from storage.audit import AuditEntry
from tests.chaos.forms import DETAILS, choose, close_all, filled, opened, press_inside
from tests.chaos.play import (
    AGAIN,
    APPROVE,
    EDIT,
    GIVE_UP,
    RAN,
    REJECT,
    Play,
    buttons_that_act,
    changes_of,
)
from tests.chaos.tally import UNRECORDED, Press, Seats, Tally, Word
from tests.support.stage import buttons

COURT, GROUP = "C0COURT", "S0CHAOSOPS"
OVERRIDE, STOP_GRANT = "countersign:override", "countersign:stop_grant"
BATCH = "countersign_batch"
OVERRIDE_FORM = "countersign:override_modal"
GRANT, TAKE_BACK = "countersign:grant", "countersign:take_back"
APPROVE_ALL, SPLIT = "countersign:approve_all", "countersign:batch_split"
REVIEW = "review"
"""A yes in the form about a card."""
USES = 2
AGAIN_S = 3.0
"""How long people look at a card that did not change."""
POLICY = """\
version: 1
timezone: Europe/Berlin
groups:
  ops: {{usergroups: [{group}]}}
  leads: {{users: [{leads}]}}
defaults:
  approve: [{{from: [ops]}}]
  expires: {expire}s
  remind: {{after: 5s, times: 3}}
rules:
  - name: quorum
    when: {{tool: pay}}
    then:
      ask:
        approve: [{{from: [ops], count: 2}}]
        break_glass: {{by: [leads], alert: {court}}}
        reject: {{count: 2}}
        escalate: [{{after: 8s, add: [leads]}}]
  - name: stages
    when: {{tool: refund}}
    then:
      ask:
        edit: "yes"
        stages:
          - {{name: first, approve: [{{from: [ops]}}]}}
          - {{name: second, approve: [{{from: [leads]}}]}}
  - name: routed
    when: {{tool: restart}}
    then: {{ask: {{route: {{channel: {court}}}}}}}
  - name: granted
    when: {{tool: fetch}}
    then: {{ask: {{grants: {{max_time: 1h, max_uses: {uses}, vary: [ref]}}}}}}
default: {{ask: {{}}}}
"""


class Council(Play):
    """One run with a policy."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.presses: list[Press] = []
        self._looked: dict[tuple[str, str, str], float] = {}
        self._voted: dict[tuple[str, str], str] = {}
        self._clicks = 0
        self._has_granted = False
        workspace = self.sandbox.workspace
        for name in ("Cal", "Lea"):
            made = SlackUser(
                id=f"U0{name.upper()}CHAOS",
                name=name.lower(),
                real_name=name,
                team_id=workspace.team_id,
            )
            workspace.people[made.id] = made
        user = self.sandbox.user_id
        self.ops = [user("Ada"), user("Ben"), "U0CALCHAOS"]
        self.leads = [user("Mia"), "U0LEACHAOS"]
        group = UserGroup(id=GROUP, handle="chaos-ops", name="Ops", members=[*self.ops])
        workspace.groups[GROUP] = group

    @property
    def seats(self) -> dict[str, Seats]:
        """The rules once more, in other words."""
        ops, leads = frozenset(self.ops), frozenset(self.leads)
        both = ops | leads
        return {
            "pay": Seats(slots=(both, both), rejections=2, later=leads, later_ms=8_000),
            "refund": Seats(slots=(ops, leads)),
            "restart": Seats(slots=(ops,)),
            "fetch": Seats(slots=(ops,)),
        }

    def _rules(self) -> dict[str, str]:
        path = self.setting.directory / "policy.yaml"
        path.write_text(
            POLICY.format(
                group=GROUP,
                leads=", ".join(self.leads),
                court=COURT,
                uses=USES,
                expire=max(60, self.setting.expire_s),
            )
        )
        return {
            "COUNTERSIGN_AGENT": "tests.chaos.council_agent:build",
            "COUNTERSIGN_POLICY": str(path),
        }

    def _make_channels(self) -> None:
        """Leads are not where the agent works: their cards come by direct message."""
        super()._make_channels()
        channels, bot = self.sandbox.workspace.channels, self.sandbox.user_id("countersign")
        for channel_id in self.channels:
            channels[channel_id].members.append("U0CALCHAOS")
            channels[channel_id].members.append(self.leads[1])
        court = SlackChannel(id=COURT, name="court")
        court.members.extend([*self.ops, *self.leads, bot])
        channels[COURT] = court

    # ---- who plays ----------------------------------------------------------------------------

    def _people(self) -> list[Coroutine[Any, Any, None]]:
        return [self._sit(user) for user in (*self.ops, *self.leads)] + [self._hand_over()]

    async def _sit(self, user: str) -> None:
        """Look at all cards that one can see, over and over."""
        while not self._all_done():
            mine = self.sandbox.dm_id(user)
            for channel in [COURT, mine, *self.channels]:
                if user not in self.sandbox.workspace.channels[channel].members:
                    continue
                for message in self.sandbox.messages(channel):
                    if self._can_be_decided(message):
                        await self._consider(user, channel, message)
                    elif STOP_GRANT in str(message.get("blocks")) and self.random.random() < 0.02:
                        await self._try(self._stop_grant(user, channel, message))
            await asyncio.sleep(0.1)  # people look now and then

    def _can_be_decided(self, message: dict[str, Any]) -> bool:
        is_shared = (message.get("metadata") or {}).get("event_type") == BATCH
        return (is_shared or self._is_card(message)) and bool(buttons_that_act(message))

    async def _hand_over(self) -> None:
        """Lea lends her right to Mia, and is away now and then; Mia has the same right anyway."""
        while not self._all_done():
            for text in (
                "delegate @{} until 23:59",
                "away until 23:59",
                "delegate off",
                "away off",
            ):
                words = text.format("mia")
                await self._try(
                    self.sandbox.command(self.leads[1], self.channels[0], "/countersign", words)
                )
                await asyncio.sleep(0.5)  # in the course of the day

    async def _consider(self, user: str, channel: str, card: dict[str, Any]) -> None:
        """Do what somebody does who sees a card."""
        key = (user, card["ts"], str(card["blocks"]))
        if time.monotonic() - self._looked.get(key, -1e9) < AGAIN_S / self.setting.hurry:
            return
        is_again = key in self._looked
        self._looked[key] = time.monotonic()
        if self.random.random() < 0.1:
            await self._try(self._press_as("U0GUSGUEST", channel, card, buttons_that_act(card)[0]))
        action = self._mind(user, card, is_again=is_again)
        if not action:
            return
        presses = [self._press_as(user, channel, card, action)]
        if action in {APPROVE, REJECT} and self.random.random() < 0.3:  # a double click
            presses.append(self._press_as(user, channel, card, action))
        if self.random.random() < 0.1:
            presses.append(self._claim(user, channel, card))
        await asyncio.gather(*(self._try(press) for press in presses))

    async def _try(self, press: Coroutine[Any, Any, None]) -> None:
        with suppress(Exception):  # the app did not answer, or the card is gone: they look again
            async with asyncio.timeout(8):
                await press

    def _mind(self, user: str, card: dict[str, Any], *, is_again: bool) -> str:
        """What somebody makes of a card."""
        ids, known = buttons(card), _id_of(card)
        if AGAIN in ids:
            return self._doubt_wish(card)
        if APPROVE_ALL in ids:
            wishes = [APPROVE_ALL, SPLIT] if is_again else [APPROVE_ALL, APPROVE_ALL, SPLIT, ""]
            return self.random.choice(wishes)
        if self._voted.get((user, known), "") and not is_again:
            return self._second_thought(ids)
        if user in self.leads and "Pay" in str(card["blocks"]) and self.random.random() < 0.3:
            return OVERRIDE
        if GRANT in ids and (not is_again or self._wants_grant()):
            return GRANT  # the quickest would else approve this call alone
        weights = [45, 12, 20, 12, 20] if not is_again else [80, 10, 5, 0, 0]
        wish = self.random.choices([APPROVE, REVIEW, EDIT, REJECT, ""], weights=weights)[0]
        return wish if wish in {*ids, REVIEW, ""} else APPROVE

    def _wants_grant(self) -> bool:
        """Whether a call may be approved only with its grant: until one was, where luck is out."""
        return not self.setting.luck and not self._has_granted

    def _second_thought(self, ids: Collection[str]) -> str:
        """What somebody makes of a card after voting."""
        chance = self.random.random()
        if APPROVE in ids and chance < 0.1:
            return TAKE_BACK
        return REJECT if chance > 0.95 and REJECT in ids else ""

    async def _press_as(self, user: str, channel: str, card: dict[str, Any], action: str) -> None:
        """Press a button, and fill in the form behind it; note what is a vote."""
        known = _id_of(card)
        if action in {APPROVE, AGAIN}:
            press = self._pressing(user, known, action, channel)
            await self.sandbox.click(user, channel, card["ts"], action)
            self._answered(press)
        elif action == APPROVE_ALL:
            await self._approve_all(user, channel, card)
        elif action == SPLIT:
            await choose(self.sandbox, user, channel, card, SPLIT)
        elif action == OVERRIDE:
            await self._break_glass(user, channel, card)
        elif action in {REVIEW, REJECT, EDIT, GRANT, RAN}:
            await self._fill_in(user, channel, card, action)
        elif action == TAKE_BACK:
            await self._take_back(user, channel, card)
        else:
            await self.sandbox.click(user, channel, card["ts"], action)

    async def _approve_all(self, user: str, channel: str, card: dict[str, Any]) -> None:
        """Vote on all that a card lists, with one click."""
        self._clicks += 1
        value = re.search(rf"{APPROVE_ALL}.*?'value': '([^']*)'", str(card["blocks"]))
        assert value is not None, card
        presses = [
            self._pressing(user, known, APPROVE, channel)
            for known in re.findall(r"apr_[0-9a-f]{32}", value[1])
        ]
        for press in presses:
            press.click = self._clicks
        await self.sandbox.click(user, channel, card["ts"], APPROVE_ALL)
        for press in presses:
            self._answered(press)

    async def _fill_in(self, user: str, channel: str, card: dict[str, Any], action: str) -> None:
        """Open the form of a button, or of the menu, and send it, if it can be sent."""
        try:
            if action == REVIEW:
                await choose(self.sandbox, user, channel, card, DETAILS)
            else:
                await self.sandbox.click(user, channel, card["ts"], action)
            view = await opened(self.sandbox, user)
            about = re.search(r"apr_[0-9a-f]{32}", str(view.get("private_metadata")))
            if not view.get("submit") or about is None:
                return  # it says why not
            press = self._pressing(user, about[0], _of_view(view), channel)
            values = filled(view, changes_of(view, action))
            reply = await self.sandbox.submit(user, view, values)
            if reply.get("ok") and not reply.get("errors") and not _is_unrecorded(reply):
                self._answered(press)
                self._has_granted = self._has_granted or action == GRANT
        finally:
            await close_all(self.sandbox, user)

    async def _take_back(self, user: str, channel: str, card: dict[str, Any]) -> None:
        """Take one's vote back, in the form about the card."""
        try:
            if await press_inside(self.sandbox, user, channel, card, TAKE_BACK):
                self._voted.pop((user, _id_of(card)), None)
        finally:
            await close_all(self.sandbox, user)

    async def _break_glass(self, user: str, channel: str, card: dict[str, Any]) -> None:
        """Let it run without the others; how that ends, the audit and the alert must say."""
        try:
            if await press_inside(self.sandbox, user, channel, card, OVERRIDE):
                view = await opened(self.sandbox, user)
                if view["callback_id"] == OVERRIDE_FORM:
                    said = {"what": "the database is down", "why": "nobody else is awake"}
                    await self.sandbox.submit(user, view, filled(view, said))
        finally:
            await close_all(self.sandbox, user)

    async def _stop_grant(self, user: str, channel: str, message: dict[str, Any]) -> None:
        try:
            if await choose(self.sandbox, user, channel, message, STOP_GRANT):
                view = await opened(self.sandbox, user)
                await self.sandbox.submit(user, view, {})
        finally:
            await close_all(self.sandbox, user)

    async def _claim(self, user: str, channel: str, card: dict[str, Any]) -> None:
        await choose(self.sandbox, user, channel, card, "countersign:claim")

    def _pressing(self, user: str, approval_id: str, action: str, channel: str) -> Press:
        choice = "reject" if action in {REJECT, GIVE_UP} else "approve"
        now = time.time_ns() // 1_000_000
        press = Press(
            by=user, approval_id=approval_id, choice=choice, channel=channel, began_ms=now
        )
        self.presses.append(press)
        return press

    def _answered(self, press: Press) -> None:
        press.ended_ms, press.is_answered = time.time_ns() // 1_000_000, True
        self._voted[press.by, press.approval_id] = press.choice

    def _is_done(self, number: int) -> bool:
        return super()._is_done(number) and not any(
            buttons_that_act(message)
            for message in self.sandbox.messages(COURT)
            if self._is_card(message) and f"job-{number}-" in str(message["blocks"])
        )

    # ---- what must be true ---------------------------------------------------------------------

    async def _check_rules(
        self, storage: Stores, approvals: Sequence[Approval], audit: Sequence[AuditEntry]
    ) -> set[str]:
        tally = self._tally
        tally.count(approvals, audit)
        for approval in approvals:
            if approval.decision is not None and approval.decision.emergency:
                self._check_emergency(approval, audit)
        grants = []
        for approval in approvals:
            if any(
                entry.action == "granted" and entry.approval_id == approval.approval_id
                for entry in audit
            ):
                name = f"{approval.thread_id}:grant:{approval.approval_id}"
                grants.append(await storage.grants.get(name))
        by_grant = tally.count_grants(grants, audit)
        self.report.votes += sum(entry.action == "voted" for entry in audit)
        self.report.by_grant += len(by_grant)
        self.report.unrecorded = tally.unrecorded
        self.report.wrong.extend(tally.wrong)
        tally.wrong.clear()
        return by_grant

    @cached_property
    def _tally(self) -> Tally:
        """The count of the whole run, by what the bots noted before they said it, too."""
        lines = self.said.read_text().splitlines() if self.said.exists() else []
        words = [Word(**json.loads(line)) for line in lines]
        return Tally(seats=self.seats, presses=self.presses, words=words)

    def _check_emergency(self, approval: Approval, audit: Sequence[AuditEntry]) -> None:
        """It is in the audit once, and the channel has heard of it; twice at the most."""
        self.report.emergencies += 1
        name = f"emergency of {approval.title!r}"
        about = [entry for entry in audit if entry.approval_id == approval.approval_id]
        broken = [entry for entry in about if entry.action == "broke_glass"]
        if len(broken) != 1 or broken[0].actor_id not in self.leads:
            self.report.wrong.append(
                f"{name}: {[(entry.action, entry.actor_id) for entry in about]}"
            )
        alerts = [
            message
            for message in self.sandbox.messages(COURT)
            if (message.get("metadata") or {}).get("event_type") == "countersign_alert"
            and _id_of(message) == approval.approval_id
        ]
        if not 1 <= len(alerts) <= 2:
            self.report.wrong.append(f"{name}: {len(alerts)} alerts")

    def _check_card(
        self, channel: str, ts: str, approval: Approval, given_up: Collection[str]
    ) -> None:
        """The thread has one card, or one line; so has each other place, without buttons."""
        if approval.is_batched:
            self._check_shared_card(channel, ts, approval)
        elif not approval.elsewhere:
            super()._check_card(channel, ts, approval, given_up)
        for place, channel_row in self.sandbox.workspace.channels.items():
            if place == channel and not approval.elsewhere:
                continue
            cards = [
                message
                for message in self.sandbox.messages(channel_row.id)
                if self._is_card(message) and _id_of(message) == approval.approval_id
            ]
            if any(buttons_that_act(card) for card in cards):
                self.report.wrong.append(f"card of {approval.title!r} in {place}: it has buttons")
            if len(cards) > 1:
                self.report.wrong.append(
                    f"card of {approval.title!r} in {place}: there are {len(cards)}"
                )
            if place == approval.elsewhere and not cards and approval.kind is Kind.APPROVAL:
                self.report.wrong.append(f"card of {approval.title!r}: none in {place}")

    def _check_shared_card(self, channel: str, ts: str, approval: Approval) -> None:
        """There is one card of all that it lists, and nobody can decide on it any more."""
        cards = [
            message
            for message in self.sandbox.messages(channel, thread_ts=ts)
            if (message.get("metadata") or {}).get("event_type") == BATCH
            and _id_of(message) == approval.batch.owner_id
        ]
        name = f"shared card of {approval.title!r}"
        if approval.status is Status.PENDING or approval.open:
            self.report.wrong.append(f"{name}: it is not closed ({approval.status})")
        if len(cards) != 1:
            self.report.wrong.append(f"{name}: there are {len(cards)}")
        elif buttons_that_act(cards[0]):
            self.report.wrong.append(f"{name}: it has buttons")


def _id_of(card: dict[str, Any]) -> str:
    return str(card["metadata"]["event_payload"]["id"])


def _of_view(view: dict[str, Any]) -> str:
    return REJECT if "reject" in str(view.get("callback_id")) else APPROVE


def _is_unrecorded(reply: dict[str, Any]) -> bool:
    """Whether a form says in its place that it may not have been kept."""
    said = str(reply.get("view") or "")
    return any(text in said for text in UNRECORDED)
