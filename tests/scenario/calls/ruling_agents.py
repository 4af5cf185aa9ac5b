"""Small agents whose rules name different people for different amounts; see `agents`."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass

from pydantic_ai.messages import ModelMessage, ToolReturnPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

from agents import Agent, ChatModelAgent, tool
from agents.core.asking.answers import ApprovalResult
from agents.core.tools import Tool
from agents.gates.approval import approval_gate, policy_gate, review_edit_gate
from agents.graph import START, GraphAgent, StateGraph, node_interrupt
from agents.policy import Allow, Ask, Condition, Deny, Rule, RulePolicy, all_of
from agents.prebuilt import create_react_agent
from tests.scenario.asking import State

RAN: list[int] = []
"""What was paid; a test that looks at it clears it first."""
ADA, BEN, MIA = "U0ADALINDQ", "U0BENOKAFO", "U0MIACHENF"


@tool(title="Pay {amount} EUR")
def pay(amount: int) -> str:
    """Pay.

    Args:
        amount: In EUR.
    """
    RAN.append(amount)
    return f"paid {amount}"


LIMITS = RulePolicy(
    rules=(
        Rule(when=(Condition("amount", ">", 100_000),), then=Deny("nobody pays that much")),
        Rule(when=(Condition("amount", ">", 100),), then=Ask(rule="big", approvers=(MIA,))),
        Rule(when=(Condition("amount", ">", 1),), then=Ask(kind="review", rule="small")),
    ),
    default=Allow(),
)


@dataclass(frozen=True)
class Pays:
    """An agent that wants to pay once, and says when that is done."""

    tool: Tool
    amount: int = 5

    def __call__(self, _: Model) -> Agent:
        model = FunctionModel(stream_function=self._next)
        return ChatModelAgent(name="clerk", model=model, tools=[self.tool])

    async def _next(
        self, messages: list[ModelMessage], _: AgentInfo
    ) -> AsyncIterator[str | DeltaToolCalls]:
        """Know from what was said how far it is: it may be another process by now."""
        if any(isinstance(part, ToolReturnPart) for part in messages[-1].parts):
            yield "All done."
            return
        arguments = json.dumps({"amount": self.amount})
        yield {0: DeltaToolCall(name="pay", json_args=arguments, tool_call_id="c1")}


small = Pays(policy_gate(pay, LIMITS))
big = Pays(policy_gate(pay, LIMITS), 500)
nested = Pays(policy_gate(approval_gate(pay), LIMITS))
around_review = Pays(
    policy_gate(
        review_edit_gate(pay),
        RulePolicy(
            rules=(
                Rule(when=(Condition("amount", ">", 100),), then=Ask(rule="big", approvers=(MIA,))),
            ),
            default=Allow(),
        ),
    )
)


def node(_: Model) -> Agent:
    """An agent whose node asks for an approval, and pays."""

    def pays(_: State) -> State:
        if node_interrupt("Pay 5 EUR?", response_type=ApprovalResult).approved:
            RAN.append(5)
        return {"output": "All done."}

    graph = StateGraph(State).add_node("pay", pays).add_edge(START, "pay")
    return GraphAgent(graph.compile(), "clerk")


def before(_: Model) -> Agent:
    """An agent that stops before the node that pays."""

    def pays(_: State) -> State:
        RAN.append(5)
        return {"output": "All done."}

    graph = StateGraph(State).add_node("pay", pays).add_edge(START, "pay")
    return GraphAgent(graph.compile(interrupt_before=["pay"]), "clerk")


def stage(_: Model) -> Agent:
    """An agent that stops before its tools."""
    model = FunctionModel(stream_function=Pays(pay)._next)
    return create_react_agent(model, [pay], name="clerk", interrupt_before=["tools"])


def _asks(rule: str, *people: str) -> RulePolicy:
    return RulePolicy(rules=(), default=Ask(rule=rule, approvers=people))


of_two = Pays(policy_gate(pay, all_of(_asks("finance", MIA), _asks("owner", ADA))))
of_shared = Pays(policy_gate(pay, all_of(_asks("finance", MIA, BEN), _asks("owner", MIA, ADA))))
