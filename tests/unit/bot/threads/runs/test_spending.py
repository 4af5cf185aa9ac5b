"""Limits of models: what is counted, when a limit is reached, and what an approval adds."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import pytest
from pydantic import ValidationError
from pydantic_ai.messages import ModelResponse
from pydantic_ai.usage import RequestUsage

from agents.core.asking.limits import LimitInfo
from agents.core.errors import LimitReachedError
from bot.observability.metrics import Metrics
from bot.records.thread import ModelUse, Thread
from bot.threads.runs.model_limits import ModelLimits, UnknownPriceError, money
from bot.threads.runs.spending import AgentBudget, UncountedError, extended, limit_reached
from bot.threads.worker import explain
from tests.contract.builders import a_thread
from tests.support.stores import SqliteStores
from tests.unit.bot.office import THREAD_ID

NOON = 1_795_953_600_000  # 2026-11-29 12:00 UTC
PRICE = {"input": "2 USD", "output": "10 USD"}
BOTH = ModelLimits.model_validate(
    {"tokens": "200k per turn", "cost": "5 USD per thread and day", "price": PRICE}
)
USE = ModelUse(turn=3, day="2026-11-29")


def an_answer(read: int = 100, written: int = 50, **more: Any) -> ModelResponse:
    usage = RequestUsage(input_tokens=read, output_tokens=written)
    return ModelResponse(parts=[], **{"usage": usage, "model_name": "secret-1", **more})


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("200k per turn", 200_000), ("2M per turn", 2_000_000), ("1,500  per turn", 1_500)],
)
def test_tokens_are_written_with_their_period(text: str, tokens: int) -> None:
    assert ModelLimits.model_validate({"tokens": text}).tokens == tokens


@pytest.mark.parametrize(
    ("text", "cost"),
    [("5 USD per thread and day", 5_000_000), ("0.25 USD per thread and day", 250_000)],
)
def test_costs_are_millionths_of_a_dollar(text: str, cost: int) -> None:
    assert ModelLimits.model_validate({"cost": text}).cost == cost


@pytest.mark.parametrize(
    "entry",
    [
        {},
        {"price": PRICE},
        {"tokens": 200_000},
        {"tokens": "200k"},
        {"tokens": "0 per turn"},
        {"tokens": "-1 per turn"},
        {"tokens": "200k per day"},
        {"cost": "5 EUR per thread and day"},
        {"cost": "0.0000001 USD per thread and day"},
        {"cost": "0 USD per thread and day"},
        {"cost": "5 USD per turn"},
        {"cost": "5 USD per thread and day", "price": {"input": "1 USD"}},
    ],
)
def test_other_forms_are_refused(entry: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ModelLimits.model_validate(entry)


@pytest.mark.parametrize(
    ("micro", "text"),
    [
        (4_983_122, "4.98 USD"),
        (5_000_000, "5.00 USD"),
        (100_000, "0.10 USD"),
        (99_999, "0.099999 USD"),
        (1_200, "0.0012 USD"),
        (0, "0.00 USD"),
    ],
)
def test_money_is_written_as_people_write_it(micro: int, text: str) -> None:
    assert money(micro) == text


def test_a_cost_is_rounded_up() -> None:
    assert BOTH.cost_of(an_answer(read=1, written=0)) == 2
    odd = BOTH.model_copy(update={"price": BOTH.price.model_copy(update={"input": Decimal("0.1")})})  # type: ignore[union-attr]
    assert odd.cost_of(an_answer(read=1, written=0)) == 1


def test_the_limits_are_told_as_the_file_states_them() -> None:
    assert list(BOTH.words()) == ["200,000 tokens per turn", "5.00 USD per thread and day"]


def test_known_models_need_no_price() -> None:
    limits = ModelLimits.model_validate({"cost": "5 USD per thread and day"})
    known = an_answer(1_000_000, 0, model_name="gpt-4o", provider_name="openai")
    assert limits.cost_of(known) == 2_500_000
    with pytest.raises(UnknownPriceError, match="secret-1"):
        limits.cost_of(an_answer())


@pytest.mark.parametrize(
    ("use", "limit"),
    [
        ({"turn_tokens": 199_999, "day_cost": 4_999_999}, None),
        ({"turn_tokens": 200_000}, "tokens"),
        ({"day_cost": 5_000_000}, "cost"),
        ({"turn_tokens": 200_000, "turn_allowed": 400_000}, None),
        ({"turn_tokens": 400_000, "turn_allowed": 400_000}, "tokens"),
        ({"day_cost": 9_999_999, "day_allowed": 10_000_000}, None),
        ({"day_cost": 10_000_000, "day_allowed": 10_000_000}, "cost"),
    ],
)
def test_a_limit_is_reached_at_its_amount(use: dict[str, int], limit: str | None) -> None:
    reached = limit_reached(BOTH, USE.changed(**use))
    assert (reached.limit if reached else None) == limit


def test_an_agent_without_a_limit_of_one_kind_never_reaches_it() -> None:
    use = USE.changed(turn_tokens=10**9, day_cost=10**9)
    tokens = ModelLimits.model_validate({"tokens": "9999M per turn"})
    cost = ModelLimits.model_validate({"cost": "9999 USD per thread and day"})
    assert limit_reached(tokens, use) is None
    assert limit_reached(cost, use) is None


def test_the_request_says_what_was_used_and_what_an_approval_adds() -> None:
    reached = limit_reached(BOTH, USE.changed(day_cost=5_120_000))
    assert reached is not None
    assert reached.text == "This thread has used 5.12 of 5.00 USD today."
    assert reached.title == "Go on with another 5.00 USD"
    assert (reached.used, reached.allowed, reached.more) == (5_120_000, 5_000_000, 5_000_000)
    tokens = limit_reached(BOTH, USE.changed(turn_tokens=210_000))
    assert tokens is not None
    assert tokens.text == "This turn has used 210,000 of 200,000 tokens."
    assert tokens.title == "Go on with another 200,000 tokens"
    assert (tokens.used, tokens.allowed, tokens.more) == (210_000, 200_000, 200_000)


@pytest.mark.parametrize("limit", ["turn_tokens", "day_cost"])
def test_an_approval_adds_once(limit: str) -> None:
    use = USE.changed(**{limit: 10**9})
    reached = limit_reached(BOTH, use)
    assert reached is not None
    once = extended(use, reached)
    assert max(once.turn_allowed, once.day_allowed) == reached.allowed + reached.more
    assert extended(once, reached) == once


def test_an_approval_is_for_its_own_turn_and_day() -> None:
    use = USE.changed(turn_tokens=10**9)
    tokens = limit_reached(BOTH, use)
    assert tokens is not None
    assert extended(use.at(turn=4, day=use.day), tokens).turn_allowed == 0
    use = USE.changed(day_cost=10**9)
    cost = limit_reached(BOTH, use)
    assert cost is not None
    assert extended(use.at(turn=3, day="2026-11-30"), cost).day_allowed == 0


def test_a_new_turn_keeps_the_day_and_a_new_day_keeps_the_turn() -> None:
    use = USE.changed(turn_tokens=7, turn_allowed=8, day_cost=9, day_allowed=10)
    assert use.at(turn=4, day=use.day) == USE.changed(turn=4, day_cost=9, day_allowed=10)
    assert use.at(turn=3, day="2026-11-30") == USE.changed(
        day="2026-11-30", turn_tokens=7, turn_allowed=8
    )


@dataclass
class Desk:
    """One thread and the budget of its agent."""

    storage: SqliteStores
    limits: ModelLimits = BOTH
    zone: str = ""
    asked: list[LimitInfo] = field(default_factory=list)
    metrics: Metrics = field(default_factory=Metrics)

    @property
    def budget(self) -> AgentBudget:
        return AgentBudget(
            agent="clerk",
            limits=self.limits,
            threads=self.storage.threads,
            clock=lambda: NOON,
            timezone=lambda: self.zone,
            terms=self.terms,
            tell=self.metrics,
        )

    async def terms(self, thread: Thread, agent: str, info: LimitInfo) -> str:
        assert (thread.thread_id, agent) == (THREAD_ID, "clerk")
        self.asked.append(info)
        return "{}"

    async def use(self) -> ModelUse:
        return (await self.storage.threads.get(THREAD_ID)).model_use


@pytest.fixture
async def desk(storage: SqliteStores) -> Desk:
    await storage.threads.add(a_thread(thread_id=THREAD_ID))
    return Desk(storage)


RUN = f"{THREAD_ID}#3"


async def test_each_answer_is_counted_and_the_thread_remembers_it(desk: Desk) -> None:
    await desk.budget.count(RUN, an_answer(100, 50))
    await desk.budget.count(RUN, an_answer(100, 50))
    assert await desk.use() == USE.changed(turn_tokens=300, day_cost=1_400)
    assert await desk.budget.reached(RUN) is None
    lines = desk.metrics.text().decode().splitlines()
    assert 'countersign_model_tokens_total{agent="clerk"} 300.0' in lines
    assert 'countersign_model_cost_usd_total{agent="clerk"} 0.0014' in lines


async def test_at_the_limit_the_terms_are_asked_for_and_an_approval_is_kept(desk: Desk) -> None:
    await desk.budget.count(RUN, an_answer(200_000, 0))
    reached = await desk.budget.reached(RUN)
    assert reached is not None
    assert (reached.limit, reached.terms) == ("tokens", "{}")
    assert desk.asked == [replace(reached, terms="")]
    await desk.budget.extend(RUN, reached)
    await desk.budget.extend(RUN, reached)
    assert await desk.budget.reached(RUN) is None
    assert (await desk.use()).turn_allowed == 400_000
    stopped = 'countersign_limits_reached_total{agent="clerk",limit="tokens"} 1.0'
    assert stopped in desk.metrics.text().decode().splitlines()


async def test_yesterday_does_not_count(desk: Desk) -> None:
    await desk.budget.count(RUN, an_answer(0, 500_000))
    await desk.budget.count(f"{THREAD_ID}#4", an_answer())
    assert await desk.budget.reached(f"{THREAD_ID}#4") is not None
    tomorrow = replace(desk.budget, clock=lambda: NOON + 86_400_000)
    assert await tomorrow.reached(f"{THREAD_ID}#4") is None


async def test_the_day_begins_in_the_time_zone_of_the_policy(desk: Desk) -> None:
    desk.zone = "Pacific/Auckland"
    await desk.budget.count(RUN, an_answer())
    assert (await desk.use()).day == "2026-11-30"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (an_answer(0, 0), "secret-1 doesn't say what it uses, so it can't be limited."),
        (
            an_answer(usage=RequestUsage(input_tokens=5, unmeasured_requests=1)),
            "secret-1 doesn't say what it uses, so it can't be limited.",
        ),
    ],
)
async def test_an_answer_that_cannot_be_counted_ends_the_turn(
    desk: Desk, answer: ModelResponse, words: str
) -> None:
    with pytest.raises(UncountedError) as refused:
        await desk.budget.count(RUN, answer)
    assert explain(refused.value) == f"What happened: {words}"


def test_the_thread_is_told_what_was_used_at_a_limit() -> None:
    error = LimitReachedError("cost", "This thread has used 5.12 of 5.00 USD today.")
    words = "This thread has used 5.12 of 5.00 USD today. No one approved more."
    assert explain(error) == words


async def test_an_answer_without_a_price_ends_the_turn_if_cost_is_limited(desk: Desk) -> None:
    desk.limits = ModelLimits.model_validate({"cost": "5 USD per thread and day"})
    with pytest.raises(UncountedError, match="no known price"):
        await desk.budget.count(RUN, an_answer())
    desk.limits = ModelLimits.model_validate({"tokens": "5k per turn"})
    await desk.budget.count(RUN, an_answer())
    assert await desk.use() == USE.changed(turn_tokens=150)
