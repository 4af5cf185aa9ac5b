"""Small agents whose rules name different people for different amounts; see `agents`."""

from __future__ import annotations

from collections.abc import Callable

from pydantic_ai.messages import ModelMessage, ModelResponsePart
from pydantic_ai.models import Model

from agents import Agent, ChatModelAgent, tool
from agents.core.asking.answers import ApprovalResult
from agents.core.tools import Tool
from agents.gates.approval import approval_gate, policy_gate, review_edit_gate
from agents.graph import START, GraphAgent, StateGraph, node_interrupt
from agents.models import AnsweringModel, call, say
from agents.policy import Allow, Ask, Condition, Deny, Rule, RulePolicy, all_of
from agents.prebuilt import create_react_agent
from slack_sandbox.workspace.people import ADA, BEN, MIA
from tests.scenario.agents import has_results
from tests.scenario.asking import State

RAN: list[int] = []
"""What was paid; a test that looks at it clears it first."""


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


def _model(amount: int) -> AnsweringModel:
    """Wants to pay once; it knows from what was said how far it is, maybe in another process."""

    def answer(messages: list[ModelMessage]) -> list[ModelResponsePart]:
        if has_results(messages):
            return [say("All done.")]
        return [call("pay", {"amount": amount}, id="c1")]

    return AnsweringModel(answer, name="clerk")


def _pays(gated: Tool, amount: int = 5) -> Callable[[Model], Agent]:
    """An agent that wants to pay once, and says when that is done."""
    return lambda _: ChatModelAgent(name="clerk", model=_model(amount), tools=[gated])


small = _pays(policy_gate(pay, LIMITS))
big = _pays(policy_gate(pay, LIMITS), 500)
nested = _pays(policy_gate(approval_gate(pay), LIMITS))
around_review = _pays(
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
    model = _model(5)
    return create_react_agent(model, [pay], name="clerk", interrupt_before=["tools"])


def _asks(rule: str, *people: str) -> RulePolicy:
    return RulePolicy(rules=(), default=Ask(rule=rule, approvers=people))


of_two = _pays(policy_gate(pay, all_of(_asks("finance", MIA), _asks("owner", ADA))))
of_shared = _pays(policy_gate(pay, all_of(_asks("finance", MIA, BEN), _asks("owner", MIA, ADA))))
