"""Graphs that ask people: one small graph per example, and one graph that picks among them.

The first word of a message says which: `delete`, `onboard`, `newsletter`, `slogan` or `release`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from operator import add
from typing import Annotated, Literal, TypedDict, TypeVar

from pydantic import BaseModel, Field

from agents.agent import Agent
from agents.core.asking.answers import ApprovalResult
from agents.graph import (
    END,
    START,
    CompiledGraph,
    GraphAgent,
    NotAnsweredError,
    StateGraph,
    node_interrupt,
)
from agents.graph.state.channels import Values

EXAMPLE = "delete record 42"
EXAMPLES = (
    EXAMPLE,
    "onboard Nora",
    "newsletter about our new office",
    "slogan for a bakery",
    "release 2.0.0",
)
T = TypeVar("T")
S = TypeVar("S")


class Talk(TypedDict, total=False):
    """The state that all the graphs share.

    Attributes:
        input: What people wrote.
        output: What they are told at the end.
    """

    input: str
    output: str


class Equipment(BaseModel):
    """A new colleague's equipment: one form with three fields."""

    laptop: Literal["13 inch", "16 inch"] = Field(description="Which size people prefer.")
    monitors: int = Field(ge=0, le=3, description="How many monitors.")
    first_day: date = Field(description="The first day at work.")


class Onboarding(Talk, total=False):
    """The state of the form.

    Attributes:
        equipment: What was chosen.
        mentor: Who helps.
    """

    equipment: dict[str, str]
    mentor: str


class Newsletter(Talk, total=False):
    """The state that people see, and may change, before the newsletter is sent.

    Attributes:
        subject: Its first line.
        recipients: How many people get it.
    """

    subject: str
    recipients: int


class Slogan(Talk, total=False):
    """The state of the loop.

    Attributes:
        draft: The newest slogan.
        wishes: What people wanted to be different.
    """

    draft: str
    wishes: Annotated[list[str], add]


class Release(Talk, total=False):
    """The state of the release.

    Attributes:
        verdicts: What each department said.
    """

    verdicts: Annotated[list[str], add]


def build(_: object = None) -> Agent:
    """Make `graph_examples`: graphs need no model."""
    graph = StateGraph(Talk)
    for name, example in (
        ("delete", deletion()),
        ("onboard", onboarding()),
        ("newsletter", newsletter()),
        ("slogan", slogan()),
        ("release", release()),
    ):
        graph.add_node(name, example).add_edge(name, END)
    graph.add_node("help", _help).add_edge("help", END)
    graph.add_conditional_edges(START, _which)
    return GraphAgent(
        graph.compile(name="examples"), "graph_examples", description="Graphs that ask people."
    )


def deletion() -> CompiledGraph:
    """An approval node: it asks, and does what was decided."""

    def confirm(state: Talk) -> dict[str, object]:
        record = _subject(state, "record")
        verdict = _ask(f"Delete the record {record}?", ApprovalResult, None)
        done = "is deleted" if _agrees(verdict) else "stays, as nobody agreed to delete it"
        return {"output": f"The record {record} {done}."}

    return _line(StateGraph(Talk), "deletion", confirm=confirm)


def onboarding() -> CompiledGraph:
    """Several questions of one node: a form with three fields, then one more question."""

    def ask(state: Onboarding) -> dict[str, object]:
        name = _subject(state)
        equipment = _ask(f"What does {name} need?", Equipment, None)
        if equipment is None:
            return {"output": f"Nobody said what {name} needs, so nothing is ordered."}
        mentor = _ask(f"Who is the mentor of {name}?", str, "nobody yet")
        fields = {key: str(value) for key, value in equipment.model_dump(mode="json").items()}
        return {"equipment": fields, "mentor": mentor}

    def order(state: Onboarding) -> dict[str, object]:
        if "equipment" not in state:
            return {}
        lines = [f"- {key}: {value}" for key, value in state["equipment"].items()]
        lines.append(f"- mentor: {state['mentor']}")
        return {"output": "\n".join([f"Ordered for {_subject(state)}:", *lines])}

    return _line(StateGraph(Onboarding), "onboarding", ask=ask, order=order)


def newsletter() -> CompiledGraph:
    """A breakpoint before the node that sends: people see the state, and may change it."""

    def prepare(state: Newsletter) -> dict[str, object]:
        return {"subject": f"News {_subject(state)}", "recipients": 250}

    def send(state: Newsletter) -> dict[str, object]:
        return {"output": f"Sent “{state['subject']}” to {state['recipients']} people."}

    graph = StateGraph(Newsletter)
    return _line(graph, "newsletter", stop_before="send", prepare=prepare, send=send)


def slogan() -> CompiledGraph:
    """A loop of a draft and its review, until somebody says that it is good."""

    def draft(state: Slogan) -> dict[str, object]:
        wishes = "".join(f", {' '.join(wish.split())}" for wish in state.get("wishes", []))
        name = _subject(state, "for", "a", "an", "the")
        return {"draft": f"The best {name}{wishes}!"}

    def review(state: Slogan) -> dict[str, object]:
        question = f"{state['draft']} Write “good”, or what to add."
        wish = _ask(question, str, "good")
        if re.fullmatch(r"\W*(good|fine|ok|okay|yes)\W*", wish, re.IGNORECASE):
            return {"output": f"The slogan is: {state['draft']}"}
        return {"wishes": [wish]}

    graph = StateGraph(Slogan).add_node("draft", draft).add_node("review", review)
    graph.add_edge(START, "draft").add_edge("draft", "review")
    graph.add_conditional_edges("review", lambda state: END if state.get("output") else "draft")
    return graph.compile(name="slogan")


def release() -> CompiledGraph:
    """Approvals side by side: three departments decide in any order, then it goes on."""

    def department(name: str) -> Callable[[Release], dict[str, object]]:
        def decide(state: Release) -> dict[str, object]:
            question = f"{name}: may {_subject(state)} be released?"
            agrees = _agrees(_ask(question, ApprovalResult, None))
            return {"verdicts": [f"{name}: {'yes' if agrees else 'no'}"]}

        return decide

    def conclude(state: Release) -> dict[str, object]:
        is_out = all(verdict.endswith(": yes") for verdict in state["verdicts"])
        outcome = "is released" if is_out else "is not released"
        verdicts = "; ".join(sorted(state["verdicts"]))
        return {"output": f"{_subject(state)} {outcome} ({verdicts})."}

    names = ("Quality", "Security", "Legal")
    graph = StateGraph(Release).add_node("conclude", conclude)
    for name in names:
        graph.add_node(name.lower(), department(name)).add_edge(START, name.lower())
    graph.add_edge([name.lower() for name in names], "conclude").add_edge("conclude", END)
    return graph.compile(name="release")


def _help(_: Talk) -> dict[str, object]:
    return {"output": "\n".join(["I understand these messages:", *(f"- {e}" for e in EXAMPLES)])}


def _which(state: Values) -> str:
    word, _, rest = str(state["input"]).strip().partition(" ")
    known = {example.partition(" ")[0] for example in EXAMPLES}
    return word.lower() if word.lower() in known and rest.strip() else "help"


def _subject(state: Talk, *noise: str) -> str:
    """Return the subject of the message: all but its first word."""
    words = state["input"].split()[1:]
    return " ".join(word for word in words if word.lower() not in noise) or "it"


def _agrees(verdict: ApprovalResult | None) -> bool:
    """Whether somebody said yes; silence is none."""
    return verdict is not None and verdict.approved


def _ask(question: str, kind: type[T], silence: S) -> T | S:
    """Ask; silence is an answer of its own, and never a yes to anything that matters."""
    try:
        return node_interrupt(question, response_type=kind)
    except NotAnsweredError:
        return silence


def _line(
    graph: StateGraph,
    name: str,
    *,
    stop_before: str = "",
    **nodes: Callable[..., dict[str, object]],
) -> CompiledGraph:
    """Compile a graph of nodes one after the other."""
    before = START
    for node, function in nodes.items():
        graph.add_node(node, function).add_edge(before, node)
        before = node
    graph.add_edge(before, END)
    return graph.compile(name=name, interrupt_before=[stop_before] if stop_before else [])
