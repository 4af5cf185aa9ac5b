"""Play the events of a timeline in order, and compare each outcome with the expected one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bot.clock import milliseconds
from bot.records.approval import Approval, Status
from bot.rehearsal.case_file import Case, Difference, as_text, offset
from bot.rehearsal.case_schema import Data
from bot.rehearsal.events import SimulatedSteps
from bot.rehearsal.outcome import Watcher, agent_heard, last_result, state_of
from bot.rehearsal.scripted_agents import RAN, Script
from storage.audit import AuditEntry

_NOT_EVENTS = frozenset({"at", "expect"})
_ALWAYS = frozenset({"audit", "messages", "runs", "agent", "told"})
"""The keys that strict cases always compare: an absent key means that nothing happened."""
_ASKING = frozenset({"request", "unfreeze", "freeze_file"})
"""Events after which calls start that nobody is asked about."""
_GOING_ON = frozenset({"start", "finish", "unfreeze", "freeze_file"})
"""Events after which calls go on whose decisions belong to earlier steps."""
_SHOWN = frozenset({"ask_back", "reveal"})
"""Events that show something to a person; other events count something."""
REFUSED_GRANT = "over the policy's limits"
_FIXED = {
    **dict.fromkeys(
        (
            "request",
            "clock",
            "members",
            "person",
            "lookups",
            "file",
            "freeze_file",
            "finish",
            "hold",
            "turn",
            "run_ended",
            "reask",
            "away",
            "end_delegation",
        ),
        "",
    ),
    "start": "waits",
    "say": "kept",
}
"""The answers to events without a response to a person; `start` may have to wait."""


@dataclass
class Flow:
    """A running flow.

    Attributes:
        acts: The acts of people and operators.
        watcher: Observes each step.
        script: The acts of the agents.
    """

    case: Case
    acts: SimulatedSteps
    watcher: Watcher
    script: Script
    _ran: int = 0
    _results_read: int = 0
    _stage: int = 0

    async def play(self, *, is_judged: bool = True) -> list[Difference]:
        """Run all events; return the differences of the first event that has any.

        Args:
            is_judged: Whether to stop at that event.
        """
        events = [dict(entry) for entry in self.case.data["timeline"]]
        number = 0
        while number < len(events):
            together = _together(events, number)
            await self._happen(together)
            for place, event in enumerate(together):
                number += 1
                observed = await self._outcome_of_step(event, place, of=len(together))
                differences = self._compare(number, event.get("expect") or {}, observed)
                if differences and is_judged:
                    return differences
        return []

    async def _happen(self, events: list[Data]) -> None:
        stage = self.acts.stage
        self.acts.said, self.acts.running = "", []
        await stage.advance(self.case.start_ms + milliseconds(offset(events[0]["at"])))
        if "request" in events[0]:
            await self.acts.request([event["request"] for event in events])
        else:
            await self.acts.play(_name(events[0]), events[0][_name(events[0])])
        await stage.settle()

    async def _outcome_of_step(self, event: Data, place: int, *, of: int) -> Data:
        """Return the outcome of a step; for one of several calls of a turn, only its own part."""
        approvals = await self.acts.newest()
        if of > 1:
            approval: Approval | None = approvals[place - of]
        else:
            approval = approvals[-1] if approvals else None
        only = approval if of > 1 else None
        entries = await self.watcher.entries(self.acts.threads.values(), only=only)
        name, word = _name(event), await self._word(event, approval, entries)
        thread = await self.acts.thread()
        observed: Data = {
            "audit": [entry.action for entry in entries],
            "messages": self.watcher.messages(only=only),
            "runs": self.script.ran[self._ran :],
            "agent": ""
            if name in _GOING_ON and word == RAN
            else agent_heard(word, approval, entries),
            "told": _answer_to(event, entries),
            "on_behalf_of": next(
                (entry.for_id for entry in entries if entry.action == "voted"), ""
            ),
            "reason": _reason(entries),
            "run_ends": not await self.acts.is_waiting(),
            "state": "not started"
            if word == "frozen"
            else state_of(
                approval,
                [entry for entry in entries if name in _ASKING or entry.action == "denied"],
            ),
            "states": [state_of(other) for other in approvals],
            "frozen": await self.acts.frozen(),
            "parked": "freeze" if thread is not None and thread.parked_by else "",
            "line": self.watcher.lines(approval, (event.get("expect") or {}).get("line") or ()),
            "running": self.acts.running,
            "turn": {"said": [*thread.requesters]} if thread is not None else {},
            **(await self.watcher.card(approval)),
        }
        if name == "batch":
            cards = [approvals[int(number)] for number in event["batch"]["cards"]]
            entries = _by_card(entries, cards)
            observed["audit"] = [entry.action for entry in entries]
            observed["told"] = _told_each(entries, cards, has_form=self.acts.has_form)
        if REFUSED_GRANT in self.acts.said:
            observed["grant"] = f"refused: {REFUSED_GRANT}"
        if observed.get("stage") == self._stage:
            observed.pop("stage")
        self._stage = int(observed.get("stage", self._stage))
        self._ran, self._results_read = len(self.script.ran), len(self.script.results)
        return observed

    async def _word(
        self, event: Data, approval: Approval | None, entries: Sequence[AuditEntry]
    ) -> str:
        """Return the word for the agent's present or coming result; empty without one."""
        word = last_result(self.script.results[self._results_read :])
        is_decided = approval is not None and approval.status is Status.APPROVED
        if _name(event) in _GOING_ON and word == RAN:
            word = ""  # the decision belongs to an earlier step
        elif not word and is_decided and "decided" in {entry.action for entry in entries}:
            word = RAN  # the agent receives it when its process continues
        if not word and await self.acts.was_told_of_the_end():
            word = "expired"
        return word

    def _compared(self) -> frozenset[str]:
        return _ALWAYS if self.case.is_strict else frozenset()

    def _compare(self, step: int, expected: Mapping[str, Any], observed: Data) -> list[Difference]:
        return [
            Difference(
                case=self.case.id,
                step=step,
                key=key,
                expected=expected.get(key),
                actual=observed.get(key),
            )
            for key in sorted(expected.keys() | (observed.keys() & self._compared()))
            if not _same(expected.get(key), observed.get(key))
        ]


def _name(event: Data) -> str:
    (name,) = event.keys() - _NOT_EVENTS
    return str(name)


def _same(expected: object, observed: object) -> bool:
    return (not expected and not observed) or as_text(expected) == as_text(observed)


def _together(events: list[Data], first: int) -> list[Data]:
    """Return the requests of one time and thread, which the agent makes in one turn."""
    requests = [events[first]]
    if "request" not in requests[0]:
        return requests
    for event in events[first + 1 :]:
        same_time = event["at"] == requests[0]["at"] and "request" in event
        if not same_time or event["request"].get("thread") != requests[0]["request"].get("thread"):
            break
        requests.append(event)
    return requests


def _answer_to(event: Data, entries: list[AuditEntry]) -> object:
    """Return the answer to the person of an event: the code of a refusal, or the effect."""
    name, actions = _name(event), {entry.action for entry in entries}
    if name in _FIXED:
        return "" if name == "start" and entries else _FIXED[name]
    refused = [entry for entry in entries if entry.action in {"refused", "edit_refused"}]
    if refused:
        return str(refused[-1].detail.get("code") or refused[-1].detail.get("why"))
    if name == "edit" and "edited" in actions and "allowed" not in actions:
        return "edited and counted" if "voted" in actions else "edited"
    accepted = "shown" if name in _SHOWN else "counted"
    return accepted if actions else ""


def _by_card(entries: list[AuditEntry], cards: Sequence[Approval]) -> list[AuditEntry]:
    """Sort entries of one time by the order of their cards."""
    places = {card.approval_id: place for place, card in enumerate(cards)}
    places.update({card.address: place for place, card in enumerate(cards)})
    last = len(cards)
    return sorted(
        entries,
        key=lambda entry: places.get(
            entry.approval_id, places.get(str(entry.detail.get("address")), last)
        ),
    )


def _told_each(
    entries: list[AuditEntry], cards: Sequence[Approval], *, has_form: bool
) -> dict[str, str]:
    """Return the answer about each card; a card without an entry was not in the batch.

    If the person may not open the form, the answer is the same for each card.
    """
    codes = {
        entry.approval_id: str(entry.detail.get("code"))
        for entry in entries
        if entry.action == "refused"
    }
    voted = {entry.approval_id for entry in entries if entry.action == "voted"}
    rest = "not_in_batch" if has_form else next(iter(codes.values()), "not_in_batch")
    return {
        str(number): codes.get(card.approval_id, "counted" if card.approval_id in voted else rest)
        for number, card in enumerate(cards)
    }


def _reason(entries: list[AuditEntry]) -> str:
    """Return the reason of a denial; empty without one."""
    denied = [entry for entry in entries if entry.action == "denied"]
    return str(denied[-1].detail.get("reason", "")) if denied else ""
