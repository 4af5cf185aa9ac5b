"""The events of a timeline: what people, operators and processes do in each."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from bot.approvals.changes import edited
from bot.errors import RunEndedError
from bot.layout.action_ids import ActionId
from bot.maintenance.pending import PendingRequests
from bot.policy.values import seconds
from bot.questions.reasons import RejectionKind, name_to_type
from bot.records.approval import Approval, Status
from bot.records.switch import SWITCH_ID
from bot.records.thread import Thread
from bot.rehearsal.case_file import Case
from bot.rehearsal.case_schema import CaseError, Data
from bot.rehearsal.scripted_agents import Script, name_of_agent, refused_by
from bot.rehearsal.simulation import Simulation
from bot.slack.cards.secondary_actions import OTHER, UNTIL, WHEN
from slack_sandbox.errors import RefusedError
from storage.documents import update
from storage.errors import RecordNotFoundError
from storage.thread_ids import thread_id_of

REQUESTER = "U0ROSA"
CHANNEL = "C0OPS"
THREAD = "t1"
HELD = "another-process"
_DAY_MS = 86_400_000
_OLD = "0" * 64
"""The digest of an outdated card."""
_BLANK = " "
"""Input for a missing reason: Slack does not submit a form without its required inputs."""


@dataclass
class SimulatedSteps:
    """The acts of people and operators in a case.

    Attributes:
        stage: The simulation.
        script: The acts of the agents.
        swap_policy: Changes the policy file; receives the name or the text in the case.
        threads: Thread ids by their names in the case.
        asked_by: The writers of each thread.
        ended: Turns whose end was checked.
        said: The view that replaced the last submitted form, as JSON.
        has_form: Whether the last form of a batch was opened.
        running: Tools that the answer to a freeze names, because their calls run.
    """

    case: Case
    stage: Simulation
    script: Script
    swap_policy: Callable[[object], Awaitable[None]]
    threads: dict[str, str] = field(default_factory=dict)
    asked_by: dict[str, list[str]] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)
    current: str = ""
    said: str = ""
    has_form: bool = False
    running: list[str] = field(default_factory=list)
    _roots: dict[str, tuple[str, str]] = field(default_factory=dict)

    async def play(self, name: str, value: Any) -> None:
        """Run one event.

        Raises:
            CaseError: The event is unknown.
        """
        act: Callable[[Any], Awaitable[None]] | None = getattr(self, f"_on_{name}", None)
        if act is None:
            raise CaseError(f"case {self.case.id}: there is no event {name!r}")
        await act(value)
        await self._settle()

    async def _settle(self) -> None:
        await self.stage.settle()
        if self.script.has_died:
            self.script.has_died = False
            await self.stage.bury(self.threads[self.current])

    # ---- the agent asks ---------------------------------------------------------------------

    async def request(self, requests: Sequence[Data]) -> None:
        """Write messages, after which the agent makes these calls in one turn."""
        for request in requests:
            tool = str(request["tool"])
            schema = self.case.world.tools.get(tool, {}).get("schema") or {}
            if fault := refused_by(schema, request.get("args") or {}):
                raise CaseError(
                    f"case {self.case.id}: the tool {tool} refuses this call before any rule: "
                    f"{fault}"
                )
        first = requests[0]
        self.script.is_slow = bool(first.get("slow"))
        self.script.code = [*first.get("code", ())]
        self.script.crash = bool(first.get("crash_on_run"))
        self.script.next_turn(requests)
        name = str(first.get("thread", THREAD))
        channel = str(first.get("channel", CHANNEL))
        with self.stage.bot.tasks.held_back(of_all=True):  # the agent reads all of them at once
            for user in first.get("said") or [REQUESTER]:
                self.stage.writers.add(str(user))
                await self._write(name, channel, str(user), agent=name_of_agent(first))
            await self.stage.sandbox.idle()
        await self._settle()

    async def _write(self, name: str, channel: str, user: str, *, agent: str = "") -> None:
        sandbox = self.stage.sandbox
        room = sandbox.workspace.channels[channel]
        is_member = user in room.members
        if not is_member:
            room.members.append(user)
        try:
            root = self._roots.get(name)
            words = f"{agent}: check the numbers" if agent and root is None else "check the numbers"
            text = words if room.kind == "im" else f"@{sandbox.workspace.bot_name} {words}"
            ts = await sandbox.say(user, channel, text, thread_ts=root[1] if root else None)
        finally:
            if not is_member:
                room.members.remove(user)
        if root is None:
            self._roots[name] = (channel, ts)
            self.threads[name] = thread_id_of(sandbox.workspace.team_id, channel, ts)
        self.current = name

    async def newest(self) -> list[Approval]:
        """Return the approvals of the current thread, the oldest first."""
        thread_id = self.threads.get(self.current)
        return await self.stage.approvals(thread_id) if thread_id else []

    async def thread(self) -> Thread | None:
        """Return the current thread; None before the first message."""
        thread_id = self.threads.get(self.current)
        return await self.stage.storage.threads.get(thread_id) if thread_id else None

    async def frozen(self) -> list[str]:
        """Return the ids of the freezes in force, oldest first."""
        try:
            switch = await self.stage.storage.switches.get(SWITCH_ID)
        except RecordNotFoundError:
            return []
        return [freeze.id for freeze in switch.freezes]

    async def is_waiting(self) -> bool:
        """Whether the current thread has an open turn."""
        thread_id = self.threads.get(self.current)
        return bool(thread_id and (await self.stage.storage.threads.get(thread_id)).turn_open)

    async def was_told_of_the_end(self) -> bool:
        """Whether the end of a turn by a rule, which the agent will read about, is new."""
        thread_id = self.threads.get(self.current)
        if not thread_id or await self.is_waiting():
            return False
        thread = await self.stage.storage.threads.get(thread_id)
        texts = await self.stage.storage.log.load(thread_id, before_turn=thread.turn + 1)
        is_told = bool(texts) and str(RunEndedError()) in texts[-1]
        is_new = is_told and thread.checkpoint_id not in self.ended
        self.ended.add(thread.checkpoint_id)
        return is_new

    async def the_approval(self) -> Approval:
        """Return the pending approval, or else the newest one.

        Raises:
            CaseError: The thread has no approval.
        """
        approvals = await self.newest()
        waiting = [approval for approval in approvals if approval.status is Status.PENDING]
        if not approvals:
            raise CaseError(f"case {self.case.id}: there is no card to act on")
        return (waiting or approvals)[-1]

    # ---- deciding ---------------------------------------------------------------------------

    async def _on_approve(self, value: Any) -> None:
        given = value if isinstance(value, dict) else {"by": value}
        approval = await self.the_approval()
        shown = _OLD if given.get("digest") == "old" else ""
        user, action = str(given["by"]), ActionId.APPROVE
        if "grant" in given:
            action = ActionId.GRANT
        views = await self.stage.press(user, approval, action, shown=shown)
        # The modal has no submit button; submit it anyway.
        if views and not views[-1].get("submit"):
            self.said = json.dumps(await self.stage.force(user, views[-1], ActionId.REVIEW_MODAL))
            await self.stage.close_views(user)
        elif views:
            grant = given.get("grant") or {}
            await self._submit(
                user,
                {
                    "reason": given.get("reason") or _BLANK,
                    "for": grant.get("time", ""),
                    "times": str(grant.get("uses", "")),
                    "only": [],  # every argument may vary that the rule permits
                    "name": name_to_type(approval),
                },
            )

    async def _on_reject(self, value: Any) -> None:
        given = value if isinstance(value, dict) else {"by": value}
        await self._refuse(str(given["by"]), str(given.get("reason", "")))

    async def _on_withdraw(self, value: Data) -> None:
        await self._refuse(str(value["by"]), str(value.get("reason", "")), action=ActionId.WITHDRAW)

    async def _refuse(self, user: str, reason: str, *, action: ActionId = ActionId.REJECT) -> None:
        approval = await self.the_approval()
        if await self.stage.press(user, approval, action):
            meaning = RejectionKind.OTHER if reason else RejectionKind.LATER
            await self._submit(user, {"canned": str(meaning), "reason": reason or _BLANK})

    async def _on_take_back(self, user: str) -> None:
        await self._press_only(user, "countersign:take_back")

    async def _on_edit(self, value: Data) -> None:
        approval, user = await self.the_approval(), str(value["by"])
        if await self.stage.press(user, approval, ActionId.EDIT):
            await self._submit(
                user, {name: str(argument) for name, argument in value["args"].items()}
            )

    async def _on_reveal(self, user: str) -> None:
        await self._press_only(user, ActionId.REVEAL)
        await self.stage.close_views(user)

    async def _on_doubt(self, value: Data) -> None:
        actions = {
            "again": ActionId.AGAIN,
            "ran": ActionId.RAN,
            "give_up": ActionId.GIVE_UP,
        }
        approval, user = await self.the_approval(), str(value["by"])
        if await self.stage.press(user, approval, actions[str(value["choice"])]):
            result = str(value.get("result", ""))
            await self._submit(user, {"result": result, "what was the result?": result})

    async def _submit(self, user: str, values: Mapping[str, object]) -> None:
        try:
            await self.stage.fill(user, {name: text for name, text in values.items() if text != ""})
        except RefusedError as error:
            raise CaseError(f"case {self.case.id}: the form of {user}: {error.code}") from error
        self.said = json.dumps(self.stage.sandbox.open_views(user))
        await self.stage.close_views(user)

    async def _press_only(self, user: str, action: str) -> None:
        await self.stage.press(str(user), await self.the_approval(), ActionId(action))

    # ---- meanwhile --------------------------------------------------------------------------

    async def _on_claim(self, user: str) -> None:
        await self._press_only(user, "countersign:claim")

    async def _on_let_go(self, user: str) -> None:
        await self._press_only(user, "countersign:let_go")

    async def _on_snooze(self, value: Data) -> None:
        approval, user = await self.the_approval(), str(value["by"])
        if await self.stage.press(user, approval, ActionId("countersign:snooze")):
            at_ms = self.stage.clock() + 1_000 * seconds(str(value["for"]))
            await self._submit(user, {WHEN: OTHER, UNTIL: at_ms // 1_000})

    async def _on_ask_back(self, value: Data) -> None:
        approval, user = await self.the_approval(), str(value["by"])
        if await self.stage.press(user, approval, ActionId("countersign:ask_back")):
            await self._submit(user, {"question": str(value["text"])})

    async def _on_break_glass(self, value: Data) -> None:
        approval, user = await self.the_approval(), str(value["by"])
        first, second = (str(reason) for reason in value["reasons"])
        if await self.stage.press(user, approval, ActionId.OVERRIDE):
            await self._submit(user, {"what": first, "why_now": second, "sure": ["yes"]})

    async def _on_revoke(self, user: str) -> None:
        """Revoke the standing grant with the menu of its message."""
        thread_id, grants = self.threads[self.current], self.stage.storage.grants
        current = await grants.current(thread_id, now_ms=self.stage.clock())
        if not current:
            raise CaseError(f"case {self.case.id}: there is no standing grant to end")
        approval = await self.stage.storage.approvals.get(current[-1].approval_id)
        message = approval.with_card_ts(current[-1].card_ts).changed(elsewhere="")
        if await self.stage.press(user, message, ActionId.STOP_GRANT):
            await self._submit(user, {})

    async def _on_batch(self, value: Data) -> None:
        cards = [approval for approval in await self.newest() if approval.status is Status.PENDING]
        user = str(value["by"])
        first = cards[int(value["cards"][0])]
        views = await self.stage.press(user, first, ActionId.BATCH)
        for number in value.get("changed", ()):
            await self._change(cards[int(number)])
        self.has_form = bool(views)
        if views:
            await self._submit(
                user, self._ticked(user, [cards[int(number)] for number in value["cards"]])
            )

    def _ticked(self, user: str, cards: Sequence[Approval]) -> dict[str, object]:
        """Return the values of the open form in which the boxes of some cards are ticked."""
        ids = {card.approval_id for card in cards}
        view = self.stage.sandbox.open_views(user)[-1]
        boxes = [
            block
            for block in view["blocks"]
            if block.get("element", {}).get("type") == "checkboxes"
        ]
        return {
            box["block_id"]: [
                option["value"]
                for option in box["element"]["options"]
                if option["value"].split(".")[0] in ids
            ]
            for box in boxes
        }

    async def _change(self, approval: Approval) -> None:
        """Edit a call while a form that shows the call is open."""
        other = f"{int(approval.digest[:8], 16) ^ 1:08x}{approval.digest[8:]}"
        write = partial(
            edited,
            judged=approval.changed(digest=other),
            unedited=approval,
            now_ms=self.stage.clock(),
        )
        approvals = self.stage.storage.approvals
        await update(approvals, approval.approval_id, write, writes_due=True)

    async def _on_say(self, value: Data) -> None:
        name = self.current or THREAD
        channel, _ = self._roots.get(name, (CHANNEL, ""))
        await self._write(name, channel, str(value["by"]))

    async def _on_turn(self, _: Data) -> None:
        """Do nothing: the agent reads kept messages by itself when its turn has ended."""

    # ---- the workspace ----------------------------------------------------------------------

    async def _on_members(self, value: Mapping[str, Data]) -> None:
        workspace = self.stage.sandbox.workspace
        for name, change in value.items():
            room = workspace.groups.get(name) or workspace.channels[name]
            for user in change.get("add", ()):
                room.members.append(str(user))
            for user in change.get("remove", ()):
                room.members.remove(str(user))

    async def _on_person(self, value: Mapping[str, Data]) -> None:
        for user, flags in value.items():
            person = self.stage.sandbox.workspace.person(user)
            person.deleted = bool(flags.get("deactivated", person.deleted))
            person.is_restricted = bool(flags.get("guest", person.is_restricted))

    async def _on_lookups(self, value: str) -> None:
        self.stage.lookups_fail = value == "fail"

    async def _on_file(self, value: object) -> None:
        await self.swap_policy(value)

    async def _on_clock(self, _: Data) -> None:
        """Do nothing: only time passes."""

    # ---- freezes ----------------------------------------------------------------------------

    async def _on_freeze(self, value: Data) -> None:
        scope = value.get("scope", "all")
        for kind, name in scope.items() if isinstance(scope, dict) else ():
            channels = self.stage.sandbox.workspace.channels
            scope = f"#{channels[name].name}" if kind == "channel" else f"{kind} {name}"
        turns = " turns" if value.get("turns") else ""
        text, user = f"freeze {scope}{turns} {value['why']}", str(value["by"])
        await self._command(user, text, channel=str(value.get("channel", CHANNEL)))
        answers = [str(message["text"]) for message in self.stage.sandbox.ephemerals(user)[-1:]]
        tools = self.case.world.tools
        self.running = [name for name in tools for text in answers if f"`{name}`" in text]
        await self.stage.tick()

    async def _on_unfreeze(self, value: Data) -> None:
        text = " ".join(("unfreeze", str(value.get("id", "")), str(value["why"])))
        await self._command(str(value["by"]), text)
        await self.stage.tick()

    async def _on_freeze_file(self, state: str) -> None:
        self.stage.set_freeze_file(state)
        await self.stage.tick()

    async def _on_finish(self, _: Data) -> None:
        """Let the slow call end."""
        self.script.is_slow = False
        self.stage.end_stalls()

    # ---- the process ------------------------------------------------------------------------

    async def _on_hold(self, _: object) -> None:
        """Suspend the process: another process holds the thread's lease and does nothing."""
        thread_id, now = self.threads[self.current], self.stage.clock()
        threads = self.stage.storage.threads
        await threads.wake(thread_id, now_ms=now)
        await threads.claim(thread_id, owner=HELD, until_ms=now + 400 * _DAY_MS, now_ms=now)

    async def _on_start(self, _: Data) -> None:
        thread_id, now = self.threads[self.current], self.stage.clock()
        thread = await self.stage.storage.threads.get(thread_id)
        await self.stage.storage.threads.release(
            thread_id, fence=thread.fence, wakes=thread.wakes - 1, now_ms=now
        )
        await self.stage.tick()

    async def _on_run_ended(self, _: Data) -> None:
        """End the turn, because the run cannot continue."""
        turns = self.stage.bot.turns
        thread_id, now = self.threads[self.current], self.stage.clock()
        await self.stage.storage.threads.wake(thread_id, now_ms=now)
        held = await self.stage.storage.threads.claim(
            thread_id, owner=HELD, until_ms=now + _DAY_MS, now_ms=now
        )
        if held is None:
            raise CaseError(f"case {self.case.id}: somebody works on the thread")
        await turns.ending.give_up(held, "It cannot go on.")
        await self.stage.storage.threads.release(
            thread_id, fence=held.fence, wakes=held.wakes, now_ms=now
        )

    async def _on_reask(self, _: Data) -> None:
        """Ask again, like `countersign pending reask`."""
        requests = PendingRequests(self.stage.storage, self.stage.clock)
        await requests.reask((await self.the_approval()).approval_id)
        await self.stage.tick()

    # ---- delegation -------------------------------------------------------------------------

    async def _on_delegate(self, value: Data) -> None:
        until = str(value["until"])
        name = self.stage.sandbox.workspace.person(str(value["to"])).name
        group = f" for {value['for']}" if "for" in value else ""
        await self._command(str(value["from"]), f"delegate @{name} until {until}{group}")

    async def _on_end_delegation(self, user: str) -> None:
        await self._command(str(user), "delegate off")

    async def _on_away(self, value: Data) -> None:
        await self._command(str(value["by"]), f"away until {value['until']}")

    async def _command(self, user: str, text: str, *, channel: str = CHANNEL) -> None:
        room = self.stage.sandbox.workspace.channels[channel]
        is_member = user in room.members
        if not is_member:
            room.members.append(user)
        try:
            await self.stage.sandbox.command(user, channel, "/countersign", text)
        finally:
            if not is_member:
                room.members.remove(user)
