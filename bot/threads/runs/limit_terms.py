"""Terms of a request at a limit of models: of a rule, of the operators, or of the admins."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from agents.core.asking.limits import LimitInfo
from agents.core.errors import LimitReachedError
from bot.policy.eligibility import REQUESTERS
from bot.policy.evaluation.asking import AskingError, terms_of
from bot.policy.evaluation.context import Members, PolicyQuestion, ToolFacts
from bot.policy.evaluation.evaluate import DEFAULT
from bot.policy.evaluation.merge import Refusal
from bot.policy.model import ApproveEntry, AskEntry, PolicyFile
from bot.policy.named_terms import NamedPeople, named_terms
from bot.ports.people import Person
from bot.questions.record import Rules
from bot.records.terms import Terms
from bot.records.thread import Thread
from bot.stores import Stores
from bot.threads.requesters import Requesters
from bot.threads.runs.application_policy import InForce
from bot.threads.thread_pass import ThreadPass

OPERATORS = "operators"
"""Name of the group that decides at a limit, unless a rule names others."""
RULE = "limit"
"""Name of the rule of a request that no rule of the policy names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitTerms:
    """Finds the terms of a request at a limit. The requesters never decide.

    Args:
        storage: The database.
        rules: Times of the settings.
        in_force: Returns the policy in force; None without a policy.
        members: Looks groups up, for conditions on requesters.
        admins: Looks up the admins of the workspace.
    """

    storage: Stores
    rules: Rules
    in_force: Callable[[], InForce] | None
    members: Members
    admins: Callable[[], Awaitable[Sequence[Person]]]

    async def __call__(self, thread: Thread, agent: str, info: LimitInfo) -> str:
        """Return the terms of a request at a limit, as a text.

        Raises:
            LimitReachedError: A rule denies going on, or its approvers cannot be named.
            DirectoryError: The admins could not be looked up.
        """
        terms = await self._by_policy(thread, agent, info) or await self._by_admins()
        exclude = tuple(dict.fromkeys((*terms.exclude, REQUESTERS)))
        never = {"edit": "no", "editors": (), "grants": None, "break_glass": None}
        return terms.model_copy(update={**never, "exclude": exclude, "always_ask": True}).text

    async def _by_policy(self, thread: Thread, agent: str, info: LimitInfo) -> Terms | None:
        if self.in_force is None:
            return None
        rulebook = self.in_force().rulebook
        question = PolicyQuestion(
            tool=ToolFacts(name="", limit=info.limit),
            arguments={},
            requesters=await Requesters(self.storage).of(ThreadPass(thread=thread)),
            channel=thread.channel_id,
            agent=agent,
        )
        judged = await rulebook.judge(question, self.members)
        if judged.names == (DEFAULT,):
            return _of_operators(rulebook.file)
        if isinstance(judged.ruling, Terms):
            return judged.ruling
        reason = f" {judged.ruling.reason}" if isinstance(judged.ruling, Refusal) else ""
        raise LimitReachedError(info.limit, f"{info.text}{reason}")

    async def _by_admins(self) -> Terms:
        admins = [person.user_id for person in await self.admins()]
        rules = self.rules
        named = NamedPeople(
            approvers=admins,
            expires=rules.expire_after,
            remind=rules.remind_after,
            max_age=rules.max_age,
        )
        return named_terms(named, rule=RULE)


def _of_operators(file: PolicyFile) -> Terms | None:
    if OPERATORS not in file.groups:
        return None
    entry = AskEntry(approve=(ApproveEntry.model_validate({"from": (OPERATORS,)}),))
    try:
        return terms_of(file, entry, RULE, ToolFacts(name=""))
    except AskingError:
        return None
