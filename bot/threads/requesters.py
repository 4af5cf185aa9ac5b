"""Keep the requesters of a thread: everyone whose words its agent has read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from agents.core.errors import CheckpointConflictError
from bot.records.approval import Approval, Kind, Status
from bot.records.approval_queries import newest_of
from bot.stores import Stores
from bot.threads.thread_pass import ThreadPass

_LAST = 200
"""Limit of approvals of a thread to search, newest first."""


@dataclass(frozen=True, slots=True)
class Requesters:
    """Maintains the requesters of a thread; the list grows with people, not messages."""

    storage: Stores

    async def note(self, work: ThreadPass, people: Iterable[str]) -> None:
        """Store people whose messages the agent is about to read.

        Raises:
            CheckpointConflictError: The lease was lost; the agent must not read.
        """
        grown = await self.grown(work, people)
        if grown is None:
            return
        thread = work.thread
        is_stored = await self.storage.threads.set_requesters(
            thread.thread_id, fence=thread.fence, requesters=grown
        )
        if not is_stored:
            raise CheckpointConflictError(thread.checkpoint_id)
        work.thread = thread.changed(requesters=grown)

    async def grown(self, work: ThreadPass, people: Iterable[str]) -> tuple[str, ...] | None:
        """Return the list extended by people; None if it already has them."""
        grown = tuple(dict.fromkeys((*await self._known(work), *people)))
        is_same = grown == work.thread.requesters
        return None if is_same else grown

    async def of(self, work: ThreadPass) -> tuple[str, ...]:
        """Return everyone whose words can have caused the turn's requests; never empty.

        The author of the turn's first message comes first.
        """
        thread = work.thread
        if work.messages is None:
            work.messages = await self.storage.inbox.of_turn(thread.thread_id, thread.turn)
        known = await self._known(work)
        people = dict.fromkeys((*(message.user_id for message in work.messages), *known))
        return tuple(people) or (thread.requester_id,)

    async def of_call(self, work: ThreadPass, address: str) -> tuple[str, ...]:
        """Return the requesters of a call as of its approval request."""
        thread = work.thread
        place = (thread.checkpoint_id, address)
        for asked in await newest_of(self.storage.approvals, thread.thread_id, limit=_LAST):
            if (asked.checkpoint_id, asked.address) == place and asked.kind is Kind.APPROVAL:
                return asked.all_requesters
        return await self.of(work)

    async def _known(self, work: ThreadPass) -> list[str]:
        """Return the stored requesters; search the thread if none are stored."""
        thread = work.thread
        if thread.requesters:
            return [*thread.requesters]
        if work.is_new_turn and thread.turn == 1:
            return []  # no messages yet
        people: dict[str, None] = {}
        for turn in range(1, thread.turn + 1):
            messages = await self.storage.inbox.of_turn(thread.thread_id, turn)
            people.update(dict.fromkeys(message.user_id for message in messages))
        decided = await newest_of(self.storage.approvals, thread.thread_id, limit=_LAST)
        people.update(
            dict.fromkeys(speakers_of(approval for approval in decided if not approval.open))
        )
        return [*people]


def speakers_of(decided: Iterable[Approval]) -> list[str]:
    """Return the people whose words or values the agent reads in decisions, with editors."""
    speakers: list[str] = []
    for approval in decided:
        if approval.status in {Status.APPROVED, Status.ANSWERED}:
            speakers.extend(approval.edits.editors)
        if approval.decision is not None and _says_something(approval):
            speakers.extend((approval.decision.by, *_joint_authors(approval)))
    return speakers


def _joint_authors(approval: Approval) -> list[str]:
    """Return the voters whose reasons or answers are part of the decision.

    The agent reads the reasons of all votes that rejected the request, and an answer that several
    people gave in the same words.
    """
    return [vote.by for vote in approval.votes if (vote.note if vote.is_stop else vote.result)]


def _says_something(approval: Approval) -> bool:
    """Whether the agent reads words, values or a choice of the people who decided.

    A plain approval has none. The agent never reads the note of an approval.
    """
    decision = approval.decision
    if decision is None or not decision.by:
        return False
    is_reason = bool(decision.reason) and decision.status is not Status.APPROVED
    if is_reason or decision.arguments is not None:
        return True
    answer = decision.answer
    if not isinstance(answer, dict):
        return bool(answer)
    if "choice" in answer:  # of a doubt, the agent reads only the result that a person gave
        return answer["choice"] == "ran" and bool(answer.get("result"))
    return set(answer) != {"accepted"}  # a button accepted the text unchanged
