"""The shop's agent with a small function in place of a model: try it without a key.

In the sandbox, write: `@countersign refund A-1 20`.
"""

import re

from pydantic_ai.messages import ModelMessage, ModelResponsePart, ToolReturnPart, UserPromptPart
from pydantic_ai.models import Model
from shop import build as build_shop

from agents import Agent
from agents.models import AnsweringModel, call, say


def answer(messages: list[ModelMessage]) -> list[ModelResponsePart]:
    """Refund what the last message names, and repeat the result."""
    last = messages[-1].parts[-1]
    if isinstance(last, ToolReturnPart):
        return [say(str(last.content))]
    text = str(last.content) if isinstance(last, UserPromptPart) else ""
    match = re.search(r"refund (\S+) ([0-9.]+)", text)
    if match is None:
        return [say("Write: refund A-1 20")]
    refund = {"order": match[1], "amount": float(match[2]), "reason": "The parcel was empty."}
    return [call("refund", refund)]


def build(model: Model) -> Agent:
    """Build the agent; the model of COUNTERSIGN_MODEL is not used."""
    return build_shop(AnsweringModel(answer, name="example"))
