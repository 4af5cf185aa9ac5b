"""Limits of what an agent's models may use, as the file of agents states them, and prices."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import ROUND_CEILING, Decimal
from typing import Annotated, Self

from pydantic import BeforeValidator, model_validator
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import Model
from pydantic_ai.usage import RequestUsage

from bot.policy.entries import Filled
from bot.policy.values import refuse, wrong_type

MICRO = 1_000_000
"""Millionths in a US dollar, and tokens to which an explicit price applies."""
_TOKENS = re.compile(r"([0-9][0-9_,]{0,14})([kM]?) per turn")
_COST = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?) USD per thread and day")
_PRICE = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,6})?) USD")
_UNITS = {"": 1, "k": 1_000, "M": 1_000_000}


class UnknownPriceError(ValueError):
    """A model's answer cannot be priced. The text names the model."""


def _tokens(value: object) -> int:
    match = _matched(_TOKENS, value, "200k per turn")
    number = int(re.sub("[_,]", "", match[1])) * _UNITS[match[2]]
    return _positive(number, value, "200k per turn")


def _cost(value: object) -> int:
    match = _matched(_COST, value, "5 USD per thread and day")
    return _positive(int(Decimal(match[1]) * MICRO), value, "5 USD per thread and day")


def _price(value: object) -> Decimal:
    return Decimal(_matched(_PRICE, value, "2.50 USD")[1])


def _matched(form: re.Pattern[str], value: object, example: str) -> re.Match[str]:
    if not isinstance(value, str):
        wrong_type(value, f"a text such as {example}")
    match = form.fullmatch(" ".join(value.split()))
    if match is None:
        refuse("bad_value", f"{value!r} isn't in the right format", f"write it as {example}")
    return match


def _positive(number: int, value: object, example: str) -> int:
    if number <= 0:
        refuse("bad_value", f"{value!r} permits nothing", f"write more than 0, such as {example}")
    return number


class PriceEntry(Filled):
    """The price of a million tokens, for models without a known price."""

    input: Annotated[Decimal, BeforeValidator(_price)]
    output: Annotated[Decimal, BeforeValidator(_price)]


class ModelLimits(Filled):
    """The limits of an agent's models; at least one.

    Attributes:
        tokens: Of a turn, those read and those written.
        cost: Of a thread on one day, in millionths of a US dollar.
        price: Price of all models of the agent; None uses known prices.
    """

    tokens: Annotated[int, BeforeValidator(_tokens)] | None = None
    cost: Annotated[int, BeforeValidator(_cost)] | None = None
    price: PriceEntry | None = None

    @model_validator(mode="after")
    def _limits_something(self) -> Self:
        if self.tokens is None and self.cost is None:
            remedy = "write tokens: 200k per turn, or cost: 5 USD per thread and day"
            refuse("bad_value", "it limits nothing", remedy)
        return self

    def cost_of(self, response: ModelResponse) -> int:
        """Return the cost of an answer in millionths of a US dollar, rounded up.

        Raises:
            UnknownPriceError: The model has no known price.
        """
        usage = response.usage
        if self.price is None:
            return _known_cost(response)
        read, written = (
            self.price.input * usage.input_tokens,
            self.price.output * usage.output_tokens,
        )
        return _up((read + written) / MICRO)

    def words(self) -> Iterator[str]:
        """Yield each limit as the file states it."""
        if self.tokens is not None:
            yield f"{self.tokens:,} tokens per turn"
        if self.cost is not None:
            yield f"{money(self.cost)} per thread and day"


def has_price(model: Model) -> bool:
    """Whether the price of a model is known."""
    usage = RequestUsage(input_tokens=1, output_tokens=1)
    answer = ModelResponse(
        parts=[], usage=usage, model_name=model.model_name, provider_name=model.system
    )
    try:
        _known_cost(answer)
    except UnknownPriceError:
        return False
    return True


def money(micro: int) -> str:
    """Write an amount in US dollars, with its unit."""
    return f"{dollars(micro)} USD"


def dollars(micro: int) -> str:
    """Write an amount in US dollars: two decimals, and more below ten cents."""
    places = Decimal("0.01") if micro >= MICRO // 10 else Decimal("0.000001")
    text = f"{(Decimal(micro) / MICRO).quantize(places)}"
    whole, _, part = text.partition(".")
    return f"{whole}.{part.rstrip('0').ljust(2, '0')}"


def _known_cost(response: ModelResponse) -> int:
    try:
        return _up(response.cost().total_price)
    except (LookupError, ValueError, AssertionError) as error:
        raise UnknownPriceError(response.model_name or "?") from error


def _up(dollars: Decimal) -> int:
    return int((dollars * MICRO).to_integral_value(ROUND_CEILING))
