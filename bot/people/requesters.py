"""Requesters: everybody whose words the agent of a thread has read; on record before it reads them.

Who may decide what an agent wants is nobody of these: whoever told it something, in whichever turn
and in whichever way, may have led it there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace

from agents.core.errors import CheckpointConflictError
from bot.people.thread_pass import ThreadPass
from bot.policy.tally import read_votes
from bot.ports.people import EXCLUDED
from storage.base import Storage
from storage.records import Approval, Kind, Status

_LAST = 200
"""Approvals of a thread that are looked through, newest first."""


@dataclass(frozen=True, slots=True)
class Requesters:
    """Keeps the list of a thread; it grows with the people, not with what they say.

    Args:
        storage: Where records are kept.
    """

    storage: Storage

    async def note(self, work: ThreadPass, people: Iterable[str]) -> None:
        """Put on record whose words the agent is about to read.

        Args:
            work: The pass; its thread is what is on record afterwards.
            people: Slack user ids.

        Raises:
            CheckpointConflictError: The lease was lost; nothing may be read.
        """
        grown = await self.grown(work, people)
        if grown is None:
            return
        thread = work.thread
        kept = await self.storage.threads.set_requesters(
            thread.thread_id, fence=thread.fence, requesters_json=grown
        )
        if not kept:
            raise CheckpointConflictError(thread.checkpoint_id)
        work.thread = replace(thread, requesters_json=grown)

    async def grown(self, work: ThreadPass, people: Iterable[str]) -> str | None:
        """The list with people whose words the agent is about to read; None when it has them."""
        grown = list(dict.fromkeys((*await self._known(work), *people)))
        is_same = grown == json.loads(work.thread.requesters_json)
        return None if is_same else json.dumps(grown)

    async def note_decided(self, work: ThreadPass, decided: Iterable[Approval]) -> None:
        """Put on record whose answers, changes and reasons the agent is about to read.

        Args:
            work: The pass; its thread is what is on record afterwards.
            decided: What the agent is told now.

        Raises:
            CheckpointConflictError: The lease was lost; nothing may be read.
        """
        await self.note(work, _speakers(decided))

    async def of(self, work: ThreadPass) -> tuple[str, ...]:
        """Everybody whose words can have led to what the open turn asks; never empty.

        Who wrote what the turn began with comes first.
        """
        thread = work.thread
        if work.messages is None:
            work.messages = await self.storage.inbox.of_turn(thread.thread_id, thread.turn)
        known = await self._known(work)
        found = dict.fromkeys((*(message.user_id for message in work.messages), *known))
        return tuple(found) or (thread.requester_id,)

    async def of_call(self, work: ThreadPass, address: str) -> tuple[str, ...]:
        """Return the requesters of a call that began, as they were when people were asked about it.

        Args:
            work: Of the thread whose open turn made the call.
            address: Where in the run it stands.
        """
        thread = work.thread
        place = (thread.checkpoint_id, address)
        for asked in await self.storage.approvals.newest_of(thread.thread_id, limit=_LAST):
            if (asked.checkpoint_id, asked.address) == place and asked.kind is Kind.APPROVAL:
                return requesters_of(asked)
        return await self.of(work)

    async def _known(self, work: ThreadPass) -> list[str]:
        """Return the requesters on record; in a thread of an earlier release, those found in it."""
        thread = work.thread
        recorded = json.loads(thread.requesters_json)
        if recorded:
            return [str(one) for one in recorded]
        if work.is_new_turn and thread.turn == 1:
            return []  # nobody has written here before
        people: dict[str, None] = {}
        for turn in range(1, thread.turn + 1):
            messages = await self.storage.inbox.of_turn(thread.thread_id, turn)
            people.update(dict.fromkeys(message.user_id for message in messages))
        decided = await self.storage.approvals.newest_of(thread.thread_id, limit=_LAST)
        people.update(dict.fromkeys(_speakers(one for one in decided if not one.open)))
        return [*people]


def requesters_of(approval: Approval) -> tuple[str, ...]:
    """Return the requesters of an approval; records of earlier releases know only some of them."""
    found = [one for one in json.loads(approval.requesters_json) if isinstance(one, str)]
    return tuple(dict.fromkeys((approval.requester_id, *found)))


def all_requesters(approval: Approval) -> frozenset[str]:
    """Everybody who asked for it, also those whom earlier releases wrote among the approvers."""
    approvers = json.loads(approval.approvers_json)
    names = (
        [one for one in approvers if isinstance(one, str)] if isinstance(approvers, list) else []
    )
    marked = [one[len(EXCLUDED) :] for one in names if one.startswith(EXCLUDED)]
    return frozenset((*requesters_of(approval), *marked))


def is_requester(approval: Approval, user_id: str) -> bool:
    """Whether this person's words led to it: alone, or with those of others."""
    excluded = f"{EXCLUDED}{user_id}"  # as earlier releases wrote it
    return user_id in requesters_of(approval) or excluded in json.loads(approval.approvers_json)


def editors_of(approval: Approval) -> tuple[str, ...]:
    """Return the people who edited the call on its way to what it is now, the latest one last."""
    last = [approval.edited_by] if approval.edited_by else []
    return tuple(dict.fromkeys((*json.loads(approval.editors_json), *last)))


def _speakers(decided: Iterable[Approval]) -> list[str]:
    """Return the people whose words, or values, the agent reads; editors of agreed edits, too.

    Raises:
        TermsError: The votes of a record cannot be read, so that nobody knows whose words they are.
    """
    found: list[str] = []
    for one in decided:
        if one.status in {Status.APPROVED, Status.ANSWERED}:
            found.extend(editors_of(one))
        if one.decision is not None and _says_something(one):
            found.extend((one.decision.by, *_joint_authors(one)))
    return found


def _joint_authors(approval: Approval) -> list[str]:
    """Return the voters whose reasons, or whose answer, are a part of the decision.

    The agent reads the reasons of all votes that stopped the request, and an answer that several
    people gave in the same words.
    """
    votes = read_votes(approval.votes_json)
    return [one.by for one in votes if (one.note if one.is_stop else one.result)]


def _says_something(approval: Approval) -> bool:
    """Whether the agent reads words, values or a choice of the people who decided.

    A plain yes is none. The note beside a yes is for people alone, and no agent reads it.
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
    if "choice" in answer:  # of a doubt, only the result that somebody gives is told
        return answer["choice"] == "ran" and bool(answer.get("result"))
    return set(answer) != {"accepted"}  # that a text is good as it is says a button
