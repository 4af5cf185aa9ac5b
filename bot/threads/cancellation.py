"""Stop an agent's turn: who may, and what the thread is told."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from bot.approvals.changes import with_stop
from bot.approvals.execution import execution_of, may_have_run
from bot.approvals.votes import Votes
from bot.errors import DirectoryError, NotApproverError
from bot.ports.people import Actor, Directory
from bot.records.approval import REJECT, Approval, ExecutionState, Kind, Status
from bot.records.approval_queries import of_turn, open_of
from bot.records.messages import Message
from bot.records.thread import Thread
from bot.stores import Stores
from bot.words import say
from storage.documents import update_or_none

STOP = "stop"
"""The text that stops an agent; a button sends it, too."""
_MOST = 6
"""Maximum number of calls to name in a list."""
_STOP = re.compile(
    r"(?:please,? )?(?:stop|halt|abort)"
    r"(?: (?:it|this|that|now|everything|all|working|immediately|please))*[.! ]*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Stops:
    """Checks who may stop a run, and reports what the run did."""

    storage: Stores
    votes: Votes
    directory: Directory

    async def may_stop(self, thread: Thread, user_id: str, waiting: Sequence[Approval]) -> bool:
        """Whether a person may stop the run: its requesters and possible approvers may.

        Raises:
            DirectoryError: A look-up failed.
        """
        asked = {thread.requester_id, *thread.requesters}
        if user_id in asked or any(user_id in pending.all_requesters for pending in waiting):
            return True
        actor = Actor(user_id=user_id, team_id="")
        for approval in waiting:
            if approval.kind is Kind.QUESTION:
                continue  # every member may answer a question
            try:
                await self.votes.check(approval, actor, choice=REJECT)
            except NotApproverError:
                continue
            return True
        return False

    async def mark(self, thread: Thread, *, by: str, at_ms: int) -> list[Approval]:
        """Note a stop on the cards of the calls that may be running. Idempotent.

        Returns:
            The noted approvals, whose cards must be updated.
        """
        write = partial(with_stop, by=by, now_ms=at_ms)
        opened = await open_of(self.storage.approvals, thread.thread_id)
        names = [approval.approval_id for approval in opened if write(approval) is not None]
        approvals = self.storage.approvals
        marked = [await update_or_none(approvals, name, write, writes_due=True) for name in names]
        return [approval for approval in marked if approval is not None]

    async def describe(self, thread: Thread, message: Message) -> str:
        """Describe who stopped the run, what had run by then, and what had not."""
        by = message.sender or await self._name(message.user_id)
        parts = [say("message.stopped_by", who=by) if by else say("message.stopped")]
        approvals = await of_turn(self.storage.approvals, thread.checkpoint_id)
        calls = [
            approval
            for approval in approvals
            if approval.kind is not Kind.QUESTION or approval.tool
        ]
        by_fate = _titles(calls)
        parts += [
            say(f"message.stopped_{fate}", what=listed(titles))
            for fate, titles in by_fate.items()
            if titles
        ]
        if not any(titles for fate, titles in by_fate.items() if fate != "left"):
            parts.append(say("message.stopped_nothing"))
        return " ".join(parts)

    async def _name(self, user_id: str) -> str:
        try:
            return (await self.directory.person(user_id)).name
        except DirectoryError:
            return ""


def looks_like_stop(text: str) -> bool:
    """Whether a message only tells the agent to stop."""
    return _STOP.fullmatch(text.strip()) is not None


def is_stop(message: Message) -> bool:
    """Whether a message of the inbox only tells the agent to stop. Data never does."""
    return message.text == STOP if message.sender else looks_like_stop(message.text)


_FATES = ("ran", "finished", "failed", "doubt", "left")
"""Outcomes of the calls of a stopped turn; part of the key of the text."""


def _titles(calls: Sequence[Approval]) -> Mapping[str, Sequence[str]]:
    """Return the titles of calls by what became of them; the newest word about each counts.

    What may have run is not said to be left because people were asked again.
    """
    fates: dict[str, tuple[str, str]] = {}
    for approval in calls:
        fate, (before, _) = _fate(approval), fates.get(approval.address, ("", ""))
        if fate and not (fate == "left" and before == "doubt"):
            fates[approval.address] = fate, _title(approval)
    return {fate: [title for known, title in fates.values() if known == fate] for fate in _FATES}


def _fate(approval: Approval) -> str:
    """Return what became of a call; empty if an approval does not say that."""
    run, is_doubt = execution_of(approval), approval.kind is Kind.DOUBT
    if run is not None and run.state is ExecutionState.ENDED:
        return "finished" if approval.stopped_by else "ran"
    if run is not None and run.state is ExecutionState.FAILED:
        return "failed"
    waits = approval.status in {Status.PENDING, Status.APPROVED}
    if may_have_run(approval) or (is_doubt and waits):
        return "doubt"
    return "left" if not is_doubt and (waits or approval.status is Status.ANSWERED) else ""


def _title(approval: Approval) -> str:
    """Return the title of the decided call."""
    decided = approval.decision.title if approval.decision is not None else ""
    return decided or approval.title or approval.tool


def listed(titles: Sequence[str]) -> str:
    """Return the first titles as one text, and the number of the others."""
    named = "; ".join(titles[:_MOST])
    more = len(titles) - _MOST
    return say("message.and_more", what=named, n=more) if more > 0 else named
