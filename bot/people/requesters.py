"""Requesters: everyone whose messages the agent of a thread has read.

Requesters are stored before the agent reads their words. None of them may approve what the agent
requests, because any of them may have caused the request.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from agents.core.errors import CheckpointConflictError
from bot.approvals.model import Approval, Kind, Status
from bot.approvals.queries import newest_of
from bot.people.thread_pass import ThreadPass
from bot.ports.people import EXCLUDED
from bot.stores import Stores

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
        kept = await self.storage.threads.set_requesters(
            thread.thread_id, fence=thread.fence, requesters=grown
        )
        if not kept:
            raise CheckpointConflictError(thread.checkpoint_id)
        work.thread = thread.changed(requesters=grown)

    async def grown(self, work: ThreadPass, people: Iterable[str]) -> tuple[str, ...] | None:
        """Return the list extended by people; None if it already has them."""
        grown = tuple(dict.fromkeys((*await self._known(work), *people)))
        is_same = grown == work.thread.requesters
        return None if is_same else grown

    async def note_decided(self, work: ThreadPass, decided: Iterable[Approval]) -> None:
        """Store people whose answers, edits and reasons the agent is about to read.

        Raises:
            CheckpointConflictError: The lease was lost; the agent must not read.
        """
        await self.note(work, _speakers(decided))

    async def of(self, work: ThreadPass) -> tuple[str, ...]:
        """Return everyone whose words can have caused the turn's requests; never empty.

        The author of the turn's first message comes first.
        """
        thread = work.thread
        if work.messages is None:
            work.messages = await self.storage.inbox.of_turn(thread.thread_id, thread.turn)
        known = await self._known(work)
        found = dict.fromkeys((*(message.user_id for message in work.messages), *known))
        return tuple(found) or (thread.requester_id,)

    async def of_call(self, work: ThreadPass, address: str) -> tuple[str, ...]:
        """Return the requesters of a call as of its approval request."""
        thread = work.thread
        place = (thread.checkpoint_id, address)
        for asked in await newest_of(self.storage.approvals, thread.thread_id, limit=_LAST):
            if (asked.checkpoint_id, asked.address) == place and asked.kind is Kind.APPROVAL:
                return requesters_of(asked)
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
        people.update(dict.fromkeys(_speakers(one for one in decided if not one.open)))
        return [*people]


def requesters_of(approval: Approval) -> tuple[str, ...]:
    """Return the requesters of an approval."""
    return tuple(dict.fromkeys((approval.requester_id, *approval.requesters)))


def all_requesters(approval: Approval) -> frozenset[str]:
    """Return all requesters of an approval, including those in older records."""
    names = approval.approvers
    marked = [one[len(EXCLUDED) :] for one in names if one.startswith(EXCLUDED)]
    return frozenset((*requesters_of(approval), *marked))


def is_requester(approval: Approval, user_id: str) -> bool:
    """Whether this person's words contributed to the request."""
    excluded = f"{EXCLUDED}{user_id}"  # format of older records
    return user_id in requesters_of(approval) or excluded in approval.approvers


def editors_of(approval: Approval) -> tuple[str, ...]:
    """Return the people who edited the call, the latest last."""
    last = [approval.edited_by] if approval.edited_by else []
    return tuple(dict.fromkeys((*approval.editors, *last)))


def _speakers(decided: Iterable[Approval]) -> list[str]:
    """Return people whose words or values the agent reads, including editors."""
    found: list[str] = []
    for one in decided:
        if one.status in {Status.APPROVED, Status.ANSWERED}:
            found.extend(editors_of(one))
        if one.decision is not None and _says_something(one):
            found.extend((one.decision.by, *_joint_authors(one)))
    return found


def _joint_authors(approval: Approval) -> list[str]:
    """Return the voters whose reasons or answers are part of the decision.

    The agent reads the reasons of all votes that rejected the request, and an answer that several
    people gave in the same words.
    """
    return [one.by for one in approval.votes if (one.note if one.is_stop else one.result)]


def _says_something(approval: Approval) -> bool:
    """Whether the agent reads words, values or a choice of the people who decided.

    A plain approval has none. The agent never reads the note of an approval.
    """
    decision = approval.decision
    if decision is None or not decision.by:
        return False
    if decision.arguments_json or (decision.reason and decision.status is not Status.APPROVED):
        return True
    if not decision.answer_json:
        return False
    answer = json.loads(decision.answer_json)
    if not isinstance(answer, dict):
        return bool(answer)
    if "choice" in answer:  # of a doubt, the agent reads only the result that a person gave
        return answer["choice"] == "ran" and bool(answer.get("result"))
    return set(answer) != {"accepted"}  # a button accepted the text unchanged
