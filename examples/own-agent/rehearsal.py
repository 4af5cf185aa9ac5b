"""The shop's agent with a rule in place of a model: to try it without a key.

As anybody in the sandbox, write: `@countersign refund A-1 20`.
"""

import json
import re
from collections.abc import AsyncIterator

from pydantic_ai.messages import ModelMessage, ToolReturnPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel
from shop import build as build_shop

from agents import Agent


async def answer(
    messages: list[ModelMessage], info: AgentInfo
) -> AsyncIterator[str | DeltaToolCalls]:
    """Call `refund` for the last words of people, and tell what came of it."""
    last = messages[-1].parts[-1]
    found = re.search(r"refund (\S+) ([0-9.]+)", str(last.content))
    if isinstance(last, ToolReturnPart):
        yield str(last.content)
    elif found is None:
        yield "Write: refund A-1 20"
    else:
        refund = {"order": found[1], "amount": float(found[2]), "reason": "The parcel was empty."}
        yield {0: DeltaToolCall("refund", json.dumps(refund))}


def build(model: Model) -> Agent:
    """The agent; the model of COUNTERSIGN_MODEL is not asked."""
    return build_shop(FunctionModel(stream_function=answer))
