"""Small agents that ask people in every way there is; named by COUNTERSIGN_AGENT as in `agents`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, TypedDict

from pydantic_ai.models import Model

from agents import (
    Agent,
    AgentEvent,
    AgentInput,
    ApprovalResult,
    ChatModelAgent,
    Expired,
    ScriptedModel,
    interrupt,
    make_message,
    register,
    tool,
)
from agents.agent import function_agent
from agents.core.component.state import address_segment, get_resume_context
from agents.core.errors import ResumeDataError
from agents.core.tools import Tool
from agents.gates.approval import approval_gate, policy_gate
from agents.gates.choice import choose_argument, choose_tool
from agents.gates.complete import fill_arguments
from agents.gates.human import HumanInterruptConfig
from agents.gates.questions import Choice
from agents.graph import END, START, Send, StateGraph, node_interrupt
from agents.graph.agent import GraphAgent
from agents.models import Turn, call, say
from agents.policy import Ask, PolicyCall, Ruling
from agents.prebuilt.react import create_react_agent
from agents.prebuilt.review import ReviewAgent
from agents.workflows.sequential import LoopAgent
from slack_sandbox import BEN

RAN: list[object] = []
"""What the tools and nodes did; a test that looks at it clears it first."""


@tool(title="Book {seats} seats to {place}")
def book(place: str, seats: int, meals: list[str] | None = None, window: bool = False) -> str:
    """Book seats.

    Args:
        place: Where to.
        seats: How many.
        meals: What to eat.
        window: At the window.
    """
    RAN.append(("book", place, seats, meals, window))
    return f"booked {seats} to {place}"


@tool(title="Deploy to {environment}")
def deploy(environment: Literal["staging", "production"]) -> str:
    """Deploy.

    Args:
        environment: Where to.
    """
    RAN.append(("deploy", environment))
    return f"deployed to {environment}"


def chat(*turns: Turn, tools: list[Tool]) -> Callable[[Model], Agent]:
    """An agent with a script, made anew for each bot."""
    return lambda _: ChatModelAgent(name="asking", model=ScriptedModel(turns), tools=tools)


def feedback(_: Model) -> Agent:
    """Writes, asks for feedback, and writes again, until nothing is to change."""
    turns = [say("First *draft* <!channel>"), say("Second draft"), say("Third draft")]
    writer = ChatModelAgent(
        name="writer", model=ScriptedModel(turns), output_key="content_to_review"
    )
    return LoopAgent("loop", [writer, ReviewAgent("reviewer")], max_iterations=3)


def _options(*labels: str) -> list[dict[str, str]]:
    return [{"label": label, "description": f"About {label}."} for label in labels]


CITIES = ("Rome", "Oslo", "Lima")
MANY = tuple(f"City {number}" for number in range(1, 9))
choose = chat(
    call("choose", {"question": "Where to?", "options": _options(*CITIES)}, id="c1"),
    say("Good."),
    tools=[choose_tool()],
)
choose_host = chat(
    call("choose", {"question": "Which host?", "options": _options("acme.example", "b.example")}),
    say("Good."),
    tools=[choose_tool()],
)
choose_many = chat(
    call("choose", {"question": "Where to?", "options": _options(*MANY)}, id="c1"),
    say("Good."),
    tools=[choose_tool()],
)
choose_several = chat(
    call(
        "choose",
        {"question": "Which ones?", "options": _options(*CITIES), "multiple": True},
        id="c1",
    ),
    say("Good."),
    tools=[choose_tool()],
)
choose_place = chat(
    call("deploy", {}, id="c1"),
    say("Done."),
    tools=[
        choose_argument(
            deploy,
            parameter="environment",
            options=[
                Choice(id="s", label="Staging", value="staging"),
                Choice(id="p", label="Production", value="production"),
            ],
        )
    ],
)
complete = chat(
    call("book", {"place": "Rome"}, id="c1"),
    say("Booked."),
    tools=[fill_arguments(book, ["seats", "meals"])],
)
complete_approved = chat(
    call("book", {"place": "Rome"}, id="c1"),
    say("Booked."),
    tools=[approval_gate(fill_arguments(book, ["seats", "meals"]))],
)


def human(*, config: HumanInterruptConfig) -> Callable[[Model], Agent]:
    """An agent whose tool people accept, ignore, respond to or edit, as far as that is allowed."""

    def make(_: Model) -> Agent:
        model = ScriptedModel([call("deploy", {"environment": "staging"}, id="c1"), say("Done.")])
        return create_react_agent(model, [deploy], human_interrupt=config, name="asking")

    return make


human_all = human(config=HumanInterruptConfig())
human_strict = human(
    config=HumanInterruptConfig(allow_accept=False, allow_edit=False, allow_ignore=False)
)


def staged(_: Model) -> Agent:
    """Stops before its tools run."""
    model = ScriptedModel([call("deploy", {"environment": "staging"}, id="c1"), say("Done.")])
    return create_react_agent(model, [deploy], interrupt_before=["tools"], name="asking")


class State(TypedDict, total=False):
    input: str
    amount: int
    place: Literal["Rome", "Oslo"]
    tags: list[str]
    output: str


class Sending(TypedDict, total=False):
    input: str
    to: str
    note: str
    parts: dict[str, int]
    pair: tuple[str, ...]
    output: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trip:
    place: str
    days: int
    tags: list[str]
    direct: bool = True


def graph(question: object, response_type: object = None) -> Callable[[Model], Agent]:
    """A graph with one node that asks."""

    def ask(_: State) -> State:
        answer = node_interrupt(question, response_type=response_type)
        RAN.append(answer)
        return {"output": f"You said {answer!r}."}

    def make(_: Model) -> Agent:
        made = StateGraph(State).add_node("ask", ask)
        made.add_edge(START, "ask").add_edge("ask", END)
        return GraphAgent(made.compile(), "asking")

    return make


graph_text = graph({"question": "How shall it be called?", "draft": "Untitled", "token": "xyz"})
graph_yes = graph("Shall it be **bold**?", bool)
graph_number = graph("How many?", int)
graph_few = graph("Which size?", Literal["S", "M", "L"])
graph_trip = graph("Which trip?", Trip)
graph_list = graph("Who comes?", list[str])
graph_verdict = graph("May the money leave?", ApprovalResult)


def graph_break(_: Model) -> Agent:
    """A graph that stops before it pays."""

    def plan(state: State) -> State:
        return {**state, "amount": 5, "place": "Rome", "tags": ["a", "b"]}

    def pay(state: State) -> State:
        RAN.append(("pay", state["amount"], state["place"], state["tags"]))
        return {"output": f"Paid {state['amount']} in {state['place']}."}

    made = StateGraph(State).add_node("plan", plan).add_node("pay", pay)
    made.add_edge(START, "plan").add_edge("plan", "pay").add_edge("pay", END)
    return GraphAgent(made.compile(interrupt_before=["pay"]), "asking")


def graph_sends(_: Model) -> Agent:
    """A graph that stops before two of its nodes' calls, which are sent what to pay."""

    def plan(state: Sending) -> Sending:
        return {**state, "note": "rent", "parts": {"a": 1}, "pair": ("x", "y")}

    def pay(sent: Sending) -> Sending:
        RAN.append(sent["to"])
        return {}

    def done(state: Sending) -> Sending:
        return {"output": f"Paid for {state['note']}."}

    def each(_: Sending) -> list[Send]:
        return [Send("pay", {"to": "Rosa"}), Send("pay", {"to": "Mia"})]

    made = StateGraph(Sending).add_node("plan", plan).add_node("pay", pay).add_node("done", done)
    made.add_edge(START, "plan").add_conditional_edges("plan", each)
    made.add_edge("pay", "done").add_edge("done", END)
    return GraphAgent(made.compile(interrupt_before=["pay"]), "asking")


@register("tests.asking.free/1")
@dataclass(frozen=True, slots=True)
class Free:
    """An info that takes anything."""

    text: str

    def __str__(self) -> str:
        return self.text


@register("tests.asking.machine/1")
@dataclass(frozen=True, slots=True)
class Machine:
    """An info that takes nothing that a person could write."""

    text: str

    def __str__(self) -> str:
        return self.text

    def check_answer(self, answer: object) -> None:
        if isinstance(answer, str):
            raise ResumeDataError("expected a Measurement, got a text")


def custom(info: object) -> Callable[[Model], Agent]:
    """An agent of one function, with an info of its own."""

    async def work(_input: AgentInput) -> AsyncGenerator[AgentEvent, None]:
        is_answered, has_answer, answer = get_resume_context(object)
        if not (is_answered and has_answer):
            interrupt(info)
        RAN.append(answer)
        yield make_message(f"Got {answer}")

    return lambda _: function_agent("asking", work)


free = custom(Free("What colour?"))
machine = custom(Machine("Measure the temperature."))
plain = custom("What is your name?")


async def _asked(place: str) -> None:
    with address_segment("place", place):
        _, has_answer, answer = get_resume_context(str | Expired)
        if not has_answer:
            interrupt(Free(f"Which day to {place}?"))
        RAN.append((place, answer))


def grouped(_: Model) -> Agent:
    """An agent that asks two questions in one task group."""

    async def work(_input: AgentInput) -> AsyncGenerator[AgentEvent, None]:
        async with asyncio.TaskGroup() as group:
            for place in ("Rome", "Oslo"):
                group.create_task(_asked(place))
        yield make_message("Both are known.")

    return function_agent("asking", work)


class _Named:
    """A policy that names who decides, and how long it may take."""

    async def evaluate(self, call: PolicyCall) -> Ruling:
        return Ask(
            rule="deployments",
            reason=f"{call.tool} changes what customers see",
            approvers=("UBEN", BEN),  # in an office, and in the sandbox
            expires_in=timedelta(minutes=30),
            remind_in=timedelta(minutes=5),
        )


policy = chat(
    call("deploy", {"environment": "staging"}, id="c1"),
    say("Done."),
    tools=[policy_gate(deploy, _Named())],
)
