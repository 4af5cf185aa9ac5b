"""Stop an agent's turn: who may, and what the thread is told."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from bot.approvals.execution import run_of
from bot.approvals.votes import Votes
from bot.errors import DirectoryError, NotApproverError
from bot.people.terms_of import is_requester
from bot.ports.people import Actor, Directory
from bot.records.approval import REJECT, Approval, Kind, RunState, Status
from bot.records.approval_queries import of_turn
from bot.records.messages import Message
from bot.records.thread import Thread
from bot.stores import Stores
from bot.words import say

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
        if user_id in asked or any(is_requester(one, user_id) for one in waiting):
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

    async def told(self, thread: Thread, message: Message) -> str:
        """Describe who stopped the run, what had run by then, and what had not."""
        by = await self._name(message.user_id)
        parts = [say("message.stopped_by", who=by) if by else say("message.stopped")]
        found = await of_turn(self.storage.approvals, thread.checkpoint_id)
        calls = [one for one in found if one.kind is not Kind.QUESTION or one.tool]
        ran, unsure, left = _titles(calls)
        if ran:
            parts.append(say("message.stopped_ran", what=_listed(ran)))
        if unsure:
            parts.append(say("message.stopped_doubt", what=_listed(unsure)))
        if left:
            parts.append(say("message.stopped_left", what=_listed(left)))
        if not ran and not unsure:
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


def _titles(calls: Sequence[Approval]) -> tuple[list[str], list[str], list[str]]:
    """Return titles of calls that ran, that may have run, and that did not run."""
    ran: list[str] = []
    unsure: list[str] = []
    left: list[str] = []
    for one in calls:
        run = run_of(one)
        decided = one.decision.title if one.decision is not None else ""
        title = decided or one.title or one.tool
        if run is not None and run.state in {RunState.RAN, RunState.FAILED}:
            ran.append(title)
        elif run is not None and run.state in {RunState.RUNNING, RunState.DOUBT}:
            unsure.append(title)
        elif one.status in {Status.PENDING, Status.APPROVED, Status.ANSWERED}:
            left.append(title)
    return ran, unsure, left


def _listed(titles: Sequence[str]) -> str:
    named = "; ".join(titles[:_MOST])
    more = len(titles) - _MOST
    return say("message.and_more", what=named, n=more) if more > 0 else named
