"""A question about a call that waits: the model gets words, no tool, and nothing of the run."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from pydantic_ai.messages import ModelRequest, UserPromptPart

from agents import ChatModelAgent, ScriptedModel, tool
from agents.chat.explaining import EXPLAIN, is_explaining
from agents.chat.instruction import Instruction
from agents.core.errors import ModelError
from agents.models import call, say


@tool(gate="approval")
def pay(amount: int) -> str:
    """Pay.

    Args:
        amount: How much.
    """
    raise AssertionError(amount)


def an_agent(model: ScriptedModel, instruction: Instruction = "You pay.") -> ChatModelAgent:
    return ChatModelAgent(name="A", model=model, instruction=instruction, tools=[pay])


async def test_the_model_answers_without_any_tool() -> None:
    model = ScriptedModel([say(" It pays 5. ")])
    assert await an_agent(model).explain("Title: Pay 5", "why?") == "It pays 5."
    ((request,),) = model.inputs
    assert isinstance(request, ModelRequest)
    assert request.instructions == f"You pay.\n\n{EXPLAIN}"
    (part,) = request.parts
    assert isinstance(part, UserPromptPart)
    assert part.content == "Title: Pay 5\n\nThe approver's question: why?"
    assert model.tools == [()]


async def test_a_call_in_the_answer_is_no_call() -> None:
    model = ScriptedModel([[say("I pay."), call("pay", {"amount": 5})]])
    assert await an_agent(model).explain("Title: Pay 5", "why?") == "I pay."
    assert model.calls == 1


def _of_values(values: Mapping[str, object]) -> str:
    raise AssertionError(values)


@pytest.mark.parametrize("instruction", ["", "You pay for {who}.", _of_values])
async def test_what_depends_on_the_run_is_left_out(instruction: Instruction) -> None:
    model = ScriptedModel([say("It pays.")])
    await an_agent(model, instruction).explain("Title: Pay 5", "why?")
    ((request,),) = model.inputs
    assert isinstance(request, ModelRequest)
    assert request.instructions == EXPLAIN


async def test_a_model_that_fails_is_told_so() -> None:
    with pytest.raises(ModelError, match="the model of agent 'A' failed"):
        await an_agent(ScriptedModel([RuntimeError("down")])).explain("Title: Pay 5", "why?")


async def test_only_a_request_to_explain_is_one() -> None:
    model = ScriptedModel([say("It pays.")])
    await an_agent(model).explain("Title: Pay 5", "why?")
    assert is_explaining(model.inputs[0])
    assert not is_explaining([])
    assert not is_explaining([ModelRequest(parts=[], instructions="You pay.")])
