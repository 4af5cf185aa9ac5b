"""Use of models by a thread: counted in its record, compared with the limits."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime
from zoneinfo import ZoneInfo

from pydantic_ai.messages import ModelResponse

from agents.core.asking.limits import LimitInfo
from agents.core.errors import AgentError
from bot.observability.events import LimitStopped, ModelUsed, TellEvent, nobody
from bot.ports.process import Clock
from bot.records.thread import ModelUse, Thread, ThreadStore
from bot.threads.runs.model_limits import ModelLimits, UnknownPriceError, dollars, money
from bot.words import say
from storage.thread_ids import turn_of

logger = logging.getLogger(__name__)

TOKENS, COST = "tokens", "cost"
"""Names of the limits, as a policy's `when.limit` names them."""

TermsOfLimit = Callable[[Thread, str, LimitInfo], Awaitable[str]]
"""Returns the terms of a request at a limit, from the thread and the agent's name.

Raises `LimitReachedError` if the policy permits no request."""


class UncountedError(AgentError):
    """An answer has no known usage or price, so no limit can be kept."""


def limit_reached(limits: ModelLimits, use: ModelUse) -> LimitInfo | None:
    """Return the request for more if a limit is reached; None below all limits.

    Args:
        limits: The agent's limits.
        use: What was used in the current turn and on the current day.
    """
    if limits.tokens is not None:
        allowed = max(limits.tokens, use.turn_allowed)
        if use.turn_tokens >= allowed:
            used = say("limit.tokens_used", used=f"{use.turn_tokens:,}", allowed=f"{allowed:,}")
            return LimitInfo(
                limit=TOKENS,
                period=str(use.turn),
                used=use.turn_tokens,
                allowed=allowed,
                more=limits.tokens,
                title=say("limit.tokens_more", more=f"{limits.tokens:,}"),
                text=used,
            )
    if limits.cost is not None:
        allowed = max(limits.cost, use.day_allowed)
        if use.day_cost >= allowed:
            used = say("limit.cost_used", used=dollars(use.day_cost), allowed=money(allowed))
            return LimitInfo(
                limit=COST,
                period=use.day,
                used=use.day_cost,
                allowed=allowed,
                more=limits.cost,
                title=say("limit.cost_more", more=money(limits.cost)),
                text=used,
            )
    return None


def extended(use: ModelUse, approved: LimitInfo) -> ModelUse:
    """Return the use with the amount that people approved; a second time changes nothing."""
    amount = approved.allowed + approved.more
    if approved.limit == TOKENS and approved.period == str(use.turn):
        return use.changed(turn_allowed=max(use.turn_allowed, amount))
    if approved.limit == COST and approved.period == use.day:
        return use.changed(day_allowed=max(use.day_allowed, amount))
    return use  # the turn or the day is over, and its successor counts anew


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentBudget:
    """Keeps the models of one agent, and of all agents inside of it, within its limits.

    Args:
        agent: Name of the agent that the file of agents names.
        limits: Its limits.
        threads: All threads; each has the record of its use.
        clock: The time now.
        timezone: Returns the name of the time zone in which days begin; empty for UTC.
        terms: Returns the terms of a request at a limit.
        tell: Receives an event for each answer, and for each stop.
    """

    agent: str
    limits: ModelLimits
    threads: ThreadStore
    clock: Clock
    timezone: Callable[[], str]
    terms: TermsOfLimit
    tell: TellEvent = nobody

    async def reached(self, checkpoint_id: str) -> LimitInfo | None:
        """See `ModelBudget`."""
        thread_id, turn = turn_of(checkpoint_id)
        thread = await self.threads.get(thread_id)
        info = limit_reached(self.limits, thread.model_use.at(turn=turn, day=self._today()))
        if info is None:
            return None
        logger.info(
            "the agent %s has reached its limit of %s",
            self.agent,
            info.limit,
            extra={"action": "limit_reached", "thread_id": thread_id},
        )
        self.tell(LimitStopped(self.agent, info.limit))
        return replace(info, terms=await self.terms(thread, self.agent, info))

    async def extend(self, checkpoint_id: str, approved: LimitInfo) -> None:
        """See `ModelBudget`."""
        thread_id, turn = turn_of(checkpoint_id)
        day = self._today()
        await self.threads.note_use(
            thread_id, lambda use: extended(use.at(turn=turn, day=day), approved)
        )

    async def count(self, checkpoint_id: str, response: ModelResponse) -> None:
        """See `ModelBudget`. An answer that cannot be counted ends the turn.

        Raises:
            UncountedError: The answer has no known usage, or no known price.
        """
        thread_id, turn = turn_of(checkpoint_id)
        usage, day, cost = response.usage, self._today(), 0
        if not usage.total_tokens or usage.unmeasured_requests:
            raise UncountedError(say("limit.no_usage", model=response.model_name or "?"))
        if self.limits.cost is not None:
            try:
                cost = self.limits.cost_of(response)
            except UnknownPriceError as error:
                raise UncountedError(say("limit.no_price", model=error)) from error
        await self.threads.note_use(
            thread_id,
            lambda use: use.at(turn=turn, day=day).more(tokens=usage.total_tokens, cost=cost),
        )
        self.tell(ModelUsed(self.agent, usage.total_tokens, cost))

    def _today(self) -> str:
        zone = ZoneInfo(self.timezone() or "UTC")
        return datetime.fromtimestamp(self.clock() / 1_000, zone).date().isoformat()
