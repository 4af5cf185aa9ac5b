"""A graph of LangGraph asks people (checks 58 and 12 of the doors)."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, TypedDict

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import UnknownInterruptError
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from pydantic import BaseModel

from countersign_client import Expired, InvalidRequest, Rejected, StillPending
from countersign_client.adapters import langgraph
from countersign_client.adapters.frameworks import AdapterError
from countersign_client.adapters.langchain import review
from tests.support.programs.server import Record
from tests.support.programs.world import VirtualWorld

THREAD: dict[str, Any] = {"configurable": {"thread_id": "t1"}}
SILENT = "Not run: nobody answered within 8 h. This is no rejection."
INPUT = {"messages": [("user", "Refund.")]}


class Model(GenericFakeChatModel):
    """A model that says what a script has."""

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self


class Shop:
    """An agent that refunds each of these orders in one turn, and what it did."""

    def __init__(self, *orders: dict[str, Any], middleware: Any = None) -> None:
        self.ran: list[tuple[int, float]] = []

        @tool
        def refund(order: int, amount: float = 10.0, note: str | None = None) -> str:
            """Refund an order."""
            self.ran.append((order, amount))
            return f"refunded {amount}"

        calls = [{"name": "refund", "args": order, "id": f"c{n}"} for n, order in enumerate(orders)]
        model = Model(messages=iter([AIMessage("", tool_calls=calls), AIMessage("Done.")]))
        self.graph: Any = create_agent(
            model,
            [refund],
            middleware=[middleware or review("refund", edit=["refund"])],
            checkpointer=InMemorySaver(),
        )

    async def run(self, world: VirtualWorld, **more: Any) -> list[str]:
        """Run to the end; give what the model reads of its calls."""
        given = {"input": INPUT, "client": world.async_client(), **more}
        state = await langgraph.run(self.graph, config=THREAD, **given)
        assert state["messages"][-1].content == "Done."
        return [str(m.content) for m in state["messages"] if isinstance(m, ToolMessage)]


def of_order(world: VirtualWorld, order: int) -> Record:
    records = world.server.records.values()
    return next(record for record in records if record.shown["arguments"]["order"] == order)


def plain(node: Any, **more: Any) -> Any:
    """A graph of one node."""

    class State(TypedDict, total=False):
        said: Any

    graph = StateGraph(State)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    graph.add_edge("node", END)
    return graph.compile(**{"checkpointer": InMemorySaver(), **more})


@pytest.mark.parametrize("mode", ["batched", "per_call"])
async def test_two_cards_decided_in_reverse(async_world: VirtualWorld, mode: str) -> None:
    world = async_world
    shop = Shop({"order": 1}, {"order": 2}, middleware=review("refund", mode=mode))
    world.after(60, lambda: world.server.approve(of_order(world, 2)))
    world.after(90, lambda: world.server.reject(of_order(world, 1), "Friday."))
    first, second = await shop.run(world)
    assert "Rejected by Ada: Friday." in first
    assert (second, shop.ran) == ("refunded 10.0", [(2, 10.0)])
    assert {record.shown["kind"] for record in world.server.records.values()} == {"approval"}


@pytest.mark.parametrize("mode", ["batched", "per_call"])
async def test_one_rejected_and_one_edited(async_world: VirtualWorld, mode: str) -> None:
    world = async_world
    middleware = review("refund", edit=["refund"], mode=mode)
    shop = Shop({"order": 1}, {"order": 2}, middleware=middleware)
    world.after(60, lambda: world.server.reject(of_order(world, 1)))
    world.after(90, lambda: world.server.approve(of_order(world, 2), {"order": 2, "amount": 5.0}))
    first, second = await shop.run(world)
    assert "Rejected by Ada." in first
    assert second.endswith("refunded 5.0")
    assert shop.ran == [(2, 5.0)]
    keys = sorted(record.key for record in world.server.records.values())
    assert all(key.startswith("lg/t1//") for key in keys)
    positions = [key.rpartition("/")[2] for key in keys]
    assert positions == (["0", "1"] if mode == "batched" else ["0", "0"])


async def test_an_edit_that_does_not_fit_the_tool_resumes_nothing(
    async_world: VirtualWorld,
) -> None:
    world = async_world
    shop = Shop({"order": 1}, {"order": 2})
    world.after(60, lambda: world.server.approve(of_order(world, 1)))
    world.after(90, lambda: world.server.approve(of_order(world, 2), {"order": "two"}))
    with pytest.raises(InvalidRequest, match="arguments-do-not-fit"):
        await shop.run(world)
    assert shop.ran == []
    assert len((await shop.graph.aget_state(THREAD)).interrupts) == 2


@pytest.mark.parametrize("mode", ["batched", "per_call"])
@pytest.mark.parametrize(
    ("end", "text"),
    [
        ("expire", SILENT),
        ("cancel", "Not run: the request was withdrawn. This is no rejection."),
        ("fail", "Not run: people could not be asked (nobody-can-decide). This is no rejection."),
    ],
)
async def test_no_other_end_is_told_as_a_rejection(
    async_world: VirtualWorld, mode: str, end: str, text: str
) -> None:
    world = async_world
    shop = Shop({"order": 1}, middleware=review("refund", mode=mode))
    world.end(end)
    assert (await shop.run(world), shop.ran) == ([text], [])


async def test_another_middleware_takes_a_rejection_alone_and_the_log_warns(
    async_world: VirtualWorld, caplog: pytest.LogCaptureFixture
) -> None:
    only: Any = {"refund": {"allowed_decisions": ["approve", "reject"]}}
    shop = Shop({"order": 1}, middleware=HumanInTheLoopMiddleware(interrupt_on=only))
    with caplog.at_level(logging.WARNING, "countersign_client"):
        (read,) = await shop.run(async_world)
    assert SILENT in read
    assert "refund was not rejected" in caplog.text


async def test_a_tool_that_only_people_answer_is_a_question(async_world: VirtualWorld) -> None:
    world = async_world
    only: Any = {"refund": {"allowed_decisions": ["respond"]}}
    for mode in ("batched", "per_call"):
        middleware: Any = HumanInTheLoopMiddleware(interrupt_on=only, interrupt_mode=mode)
        shop = Shop({"order": 1}, middleware=middleware)
        world.server.records.clear()
        world.after(60, lambda: world.server.reply(world.request, "I did it."))
        assert (await shop.run(world), shop.ran) == (["I did it."], [])


async def test_a_restarted_program_gets_the_decision(async_world: VirtualWorld) -> None:
    world = async_world
    shop = Shop({"order": 1})
    with pytest.raises(StillPending):
        await shop.run(world, wait=60)
    with pytest.raises(AdapterError, match="input None"):
        await shop.run(world)
    world.server.approve(world.request)
    assert await shop.run(world, input=None) == ["refunded 10.0"]
    assert (len(world.server.records), shop.ran) == (1, [(1, 10.0)])


async def test_two_runs_of_a_thread_resume_it_once(async_world: VirtualWorld) -> None:
    world = async_world
    shop = Shop({"order": 1})
    await shop.graph.ainvoke(INPUT, THREAD)
    world.after(60, lambda: world.server.approve(world.request))
    await asyncio.gather(shop.run(world, input=None), shop.run(world, input=None))
    assert shop.ran == [(1, 10.0)]


async def test_a_program_that_is_called_back_resumes_once(async_world: VirtualWorld) -> None:
    world, client = async_world, async_world.async_client()
    shop = Shop({"order": 1})
    await shop.graph.ainvoke(INPUT, THREAD)
    (asked,) = await langgraph.pending(shop.graph, THREAD, client=client, state="mine")
    assert (asked.status, asked.state) == ("pending", "mine")
    with pytest.raises(StillPending):
        await langgraph.resume(shop.graph, THREAD, client=client)
    world.server.approve(world.request)
    for _ in range(2):
        state = await langgraph.resume(shop.graph, THREAD, client=client)
        assert state["messages"][-1].content == "Done."
    assert shop.ran == [(1, 10.0)]
    assert await langgraph.pending(shop.graph, THREAD, client=client) == []


async def test_equal_questions_of_one_node_are_asked_one_by_one(async_world: VirtualWorld) -> None:
    world = async_world
    graph = plain(lambda _: {"said": [interrupt("Go on?"), interrupt("Go on?")]})
    answers = iter(["yes", "no"])

    def reply() -> None:
        (open_,) = (r for r in world.server.records.values() if not r.is_over)
        world.server.reply(open_, next(answers))

    world.after(60, reply)
    world.after(120, reply)
    state = await langgraph.run(graph, {}, THREAD, client=world.async_client())
    assert (state["said"], len(world.server.records)) == (["yes", "no"], 2)


async def test_a_late_answer_is_refused_and_writes_nothing(async_world: VirtualWorld) -> None:
    graph = plain(lambda _: {"said": [interrupt("First?"), interrupt("Second?")]})
    await graph.ainvoke({}, THREAD)
    (first,) = (await graph.aget_state(THREAD)).interrupts
    strict = {"configurable": {**THREAD["configurable"], **langgraph._STRICT}}
    await graph.ainvoke(Command(resume={first.id: "1"}), strict)
    with pytest.raises(UnknownInterruptError):
        await graph.ainvoke(Command(resume={first.id: "1"}), strict)
    (second,) = (await graph.aget_state(THREAD)).interrupts
    assert second.value == "Second?"


class Size(BaseModel):
    count: int
    colour: str | None = None


@pytest.mark.parametrize(
    ("value", "options", "answer", "kind", "title"),
    [
        ("Which customer?", {}, "Kiel", "question", "Which customer?"),
        ({"question": "Which?", "options": ["a", "b"]}, {}, "b", "choice", "Which?"),
        ({"amount": 7}, {}, "fine", "question", '{"amount": 7}'),
        ("Line one\n" * 50, {}, "read", "question", "The agent asks a question"),
        ("How many?", {"response_schema": Size}, {"count": 3}, "form", "How many?"),
    ],
)
async def test_a_plain_interrupt_becomes_a_question(
    async_world: VirtualWorld, value: Any, options: Any, answer: Any, kind: str, title: str
) -> None:
    world = async_world
    graph = plain(lambda _: {"said": interrupt(value, **options)})
    world.after(60, lambda: world.server.reply(world.request, answer))
    state = await langgraph.run(graph, {}, THREAD, client=world.async_client())
    said = state["said"]
    assert (said.model_dump(exclude_none=True) if isinstance(said, Size) else said) == answer
    shown = world.request.shown
    assert (shown["kind"], shown["title"]) == (kind, title)


@pytest.mark.parametrize("decided", [None, {"order": 1, "amount": 5.0}])
async def test_a_plain_interrupt_about_a_tool_gets_the_arguments_to_run(
    async_world: VirtualWorld, decided: dict[str, Any] | None
) -> None:
    world = async_world
    call = {"order": 1, "amount": 10.0}
    graph = plain(lambda _: {"said": interrupt(call)})
    world.after(60, lambda: world.server.approve(world.request, decided))
    state = await langgraph.run(
        graph,
        {},
        THREAD,
        client=world.async_client(),
        tool=lambda value: f"refund-{value['order']}",
    )
    assert state["said"] == (decided or call)
    assert world.request.shown["tool"] == "refund-1"


async def test_a_plain_interrupt_about_a_tool_raises_for_a_rejection(
    async_world: VirtualWorld,
) -> None:
    world = async_world
    graph = plain(lambda _: {"said": interrupt({"order": 1})})
    world.after(60, lambda: world.server.reject(world.request))
    with pytest.raises(Rejected):
        await langgraph.run(graph, {}, THREAD, client=world.async_client(), tool="refund")
    assert len((await graph.aget_state(THREAD)).interrupts) == 1


async def test_a_plain_interrupt_without_an_answer_raises_and_resumes_nothing(
    async_world: VirtualWorld,
) -> None:
    graph = plain(lambda _: {"said": interrupt("Which?")})
    with pytest.raises(Expired):
        await langgraph.run(graph, {}, THREAD, client=async_world.async_client())
    assert len((await graph.aget_state(THREAD)).interrupts) == 1


@pytest.mark.parametrize("answer", [{"count": "three"}, {}, "three"])
async def test_a_form_that_does_not_fit_resumes_nothing(
    async_world: VirtualWorld, answer: Any
) -> None:
    world = async_world
    graph = plain(lambda _: {"said": interrupt("How many?", response_schema=Size)})
    world.after(60, lambda: world.server.reply(world.request, answer))
    with pytest.raises(InvalidRequest, match="answer-does-not-fit"):
        await langgraph.run(graph, {}, THREAD, client=world.async_client())
    assert len((await graph.aget_state(THREAD)).interrupts) == 1


def inbox(order: int, *allowed: str) -> dict[str, Any]:
    return {
        "action_request": {"action": "refund", "args": {"order": order}},
        "config": {f"allow_{word}": word in allowed for word in WORDS},
        "description": "A customer waits.",
    }


WORDS = ("accept", "edit", "respond", "ignore")


async def test_all_four_answers_of_an_agent_inbox(async_world: VirtualWorld) -> None:
    world, server = async_world, async_world.server
    asked = [inbox(n, *WORDS) for n in (1, 2, 3, 4)] + [inbox(5, "respond")]
    graph = plain(lambda _: {"said": interrupt(asked)})
    world.after(60, lambda: server.reject(of_order(world, 3), "Friday."))
    world.after(61, lambda: server.approve(of_order(world, 2), {"order": 22}))
    world.after(62, lambda: server.approve(of_order(world, 1)))

    def reply() -> None:
        (question,) = (r for r in server.records.values() if r.shown["kind"] == "question")
        server.reply(question, "Ask Kiel.")

    world.after(63, reply)
    # An approval lapses after 15 minutes, and nobody answers the fourth: it ends sooner.
    state = await langgraph.run(graph, {}, THREAD, client=world.async_client(), expires_in=600)
    assert state["said"] == [
        {"type": "accept", "args": None},
        {"type": "edit", "args": {"action": "refund", "args": {"order": 22}}},
        {"type": "response", "args": "Rejected by Ada: Friday."},
        {"type": "ignore", "args": None},
        {"type": "response", "args": "Ask Kiel."},
    ]


CALL = {"name": "refund", "args": {"order": 1}}
CONFIG = {"action_name": "refund", "allowed_decisions": ["approve", "reject"]}


@pytest.mark.parametrize(
    "value",
    [
        {"action_requests": [CALL, CALL], "review_configs": [CONFIG]},
        {"action_requests": [CALL], "review_configs": [{**CONFIG, "action_name": "pay"}]},
        {"action_requests": [CALL], "review_configs": [{**CONFIG, "allowed_decisions": ["edit"]}]},
        {
            "action_requests": [CALL],
            "review_configs": [{**CONFIG, "allowed_decisions": ["approve"]}],
        },
        {"action_requests": [], "review_configs": []},
        {"action_requests": [{"name": "refund"}], "review_configs": [CONFIG]},
        {"type": "tool_approval", **CALL},
        [inbox(1, "accept")],
        [{"action_request": {"action": "refund"}}],
    ],
)
async def test_a_form_that_does_not_fit_itself_reaches_nobody(
    async_world: VirtualWorld, value: Any
) -> None:
    graph = plain(lambda _: {"said": interrupt(value)})
    with pytest.raises(AdapterError):
        await langgraph.run(graph, {}, THREAD, client=async_world.async_client())
    assert async_world.server.records == {}


async def test_an_answer_that_people_cannot_give_is_refused(async_world: VirtualWorld) -> None:
    graph = plain(lambda _: {"said": interrupt("Go?", response_schema={"type": "boolean"})})
    with pytest.raises(AdapterError, match="response_schema"):
        await langgraph.run(graph, {}, THREAD, client=async_world.async_client())


@pytest.mark.parametrize(
    ("options", "config"),
    [
        ({"checkpointer": None}, THREAD),
        ({}, {"configurable": {}}),
        ({}, {"configurable": {"thread_id": "t1", "checkpoint_id": "1f1"}}),
    ],
)
async def test_a_graph_that_cannot_be_resumed_does_not_begin(
    async_world: VirtualWorld, options: Any, config: Any
) -> None:
    ran: list[int] = []
    graph = plain(lambda _: ran.append(1), **options)
    with pytest.raises(AdapterError, match="nothing ran"):
        await langgraph.run(graph, {}, config, client=async_world.async_client())
    assert ran == []


def test_a_review_edits_none_but_its_own_tools() -> None:
    with pytest.raises(ValueError, match="none but those"):
        review("refund", edit=["pay"])
    with pytest.raises(ValueError, match="name the tools"):
        review()
