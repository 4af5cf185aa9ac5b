"""Edits: what becomes of a card whose call somebody has changed (I2, I13).

After an edit the whole ruling is worked out anew. What the rules deny is refused while the form
is still open. Under the same ruling, the edit is the editor's approval. Under another one, the same
card is bound to it, in one conditional write, and asks those who have to agree now. The runtime
works out the ruling once more before anything runs.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from agents.gates.rulings import Judgement
from bot.core.approvals import Approvals
from bot.core.audit import note_edit
from bot.errors import plain_words
from bot.people.outlook import Outlook
from bot.people.requesters import editors_of
from bot.ports import CheckedCall, Clock
from bot.questions.form import edited_digest, in_order
from bot.questions.record import Rules, rebound, unknown_names
from storage.base import Storage
from storage.records import Approval, Decision, Status


@dataclass(frozen=True, slots=True)
class Edits:
    """The edits of calls that people may change.

    Args:
        storage: Where records are kept.
        approvals: Decisions.
        rules: Who decides, and how long it may take.
        clock: The time now.
    """

    storage: Storage
    approvals: Approvals
    rules: Rules
    clock: Clock

    async def edit(
        self, approval: Approval, call: CheckedCall, judgement: Judgement | None, *, by: str
    ) -> Approval | str:
        """Record an edit. Whoever calls has looked (`Approvals.look`) with the same person before.

        Args:
            approval: Pending, as it was shown.
            call: The call with its new arguments, which are others than those that were shown.
            judgement: What the rules say of it; None when that is not known before it is resumed.
            by: Who edited.

        Returns:
            The approval, decided or waiting for others; or why the rules do not let it run.

        Raises:
            ApprovalClosedError: Somebody, or the clock, decided first.
            OutdatedCardError: Somebody edited first.
            InvalidInputError: The record takes no such answer.
        """
        if judgement is not None and judgement.denied:
            return judgement.denied
        if self._is_approval(approval, judgement):
            decision = Decision(
                status=Status.APPROVED,
                by=by,
                at_ms=self.clock(),
                arguments_json=in_order(call.arguments),
                digest=edited_digest(approval, call.arguments),
                title=call.title,
                preview=call.preview,
            )
            return await self.approvals.decide(approval, decision)
        return await self._ask_others(approval, call, judgement, by)

    def _is_approval(self, approval: Approval, judgement: Judgement | None) -> bool:
        """Whether the edit is the editor's approval, too: nobody else has to agree."""
        if judgement is None:
            return not approval.editors_excluded
        if judgement.info is None:
            return True
        is_same = judgement.info.ruling == approval.ruling_json
        excluded = judgement.info.exclude_editors or self.rules.exclude_editors
        return is_same and not excluded and not approval.editors_excluded

    async def _ask_others(
        self, approval: Approval, call: CheckedCall, judgement: Judgement | None, by: str
    ) -> Approval | str:
        now = self.clock()
        info = judgement.info if judgement is not None else None
        if info is not None:
            changed = rebound(approval, info, self.rules, by=by, now_ms=now)
        else:
            changed = _same_people(approval, call, by=by, now_ms=now)
        outlook = Outlook(self.approvals.access.directory, self.rules.channels)
        changed = await outlook.prepare(
            replace(changed, editors_json=_editors(approval, by), escalated_ms=None, stuck=""),
            unknown=unknown_names(info),
        )
        if changed.decision is not None:
            return f"nobody could decide this: {plain_words(changed.decision.reason)}"
        kept = await self.approvals.rebind(approval, changed, by=by)
        await note_edit(self.storage.audit, approval, kept, now)
        return kept


def _editors(approval: Approval, by: str) -> str:
    """Return earlier editors as JSON: a part of the call stays theirs, whoever edits last."""
    return json.dumps([name for name in editors_of(approval) if name != by])


def _same_people(approval: Approval, call: CheckedCall, *, by: str, now_ms: int) -> Approval:
    """The call is changed, and whoever may decide it stays the same, but for the editor."""
    return replace(
        approval,
        title=call.title or approval.title,
        preview=call.preview,
        arguments_json=in_order(call.arguments),
        digest=edited_digest(approval, call.arguments),
        original_json=approval.original_json or approval.arguments_json,
        edited_by=by,
        remind_ms=now_ms,
    )
