"""Which agent works where: by name, by id, everywhere, nowhere; and a turn keeps its agent."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from agents import (
    Agent,
    ChatModelAgent,
    MemoryCheckpointStore,
    MessageEvent,
    Runner,
    ScriptedModel,
    tool,
)
from agents.agent import function_agent
from agents.core.checkpoint import CheckpointStatus, StoredCheckpoint
from agents.core.errors import CheckpointDecodeError, InvalidArgumentsError
from agents.models import call
from agents.workflows import AgentTool
from bot.errors import DirectoryError
from bot.ports.threads import BatchWords, CheckedCall
from bot.records.approval import Approval, Status
from bot.records.thread import Thread
from bot.threads.agents import Catalog, nobody
from tests.contract.builders import an_approval
from tests.support.named import asked_at


@tool(gate="review")
def pay(amount: int) -> str:
    """Pay.

    Args:
        amount: How much.
    """
    return f"paid {amount}"


def an_agent(name: str, *turns: object) -> ChatModelAgent:
    return ChatModelAgent(name=name, model=ScriptedModel(list(turns)), tools=[pay])  # type: ignore[arg-type]


def a_thread(channel_id: str = "C1", turn: int = 1) -> Thread:
    return Thread(
        thread_id=f"T1:{channel_id}:1.0",
        requester_id="UROSA",
        created_ms=1,
        turn=turn,
        turn_open=True,
    )


@dataclass
class Town:
    """Channels with names, and catalogs of several processes on one store."""

    names: dict[str, str] = field(default_factory=dict)
    store: MemoryCheckpointStore = field(default_factory=MemoryCheckpointStore)
    asked: list[str] = field(default_factory=list)
    is_down: bool = False

    def catalog(self, **agents: Agent) -> Catalog:
        keys = {"every": "*", "finance": "#finance"}
        return Catalog(
            {keys.get(key, key): agent for key, agent in agents.items()},
            make_runner=self.runner,
            checkpoints=self.store,
            channel_name=self.name,
        )

    def runner(self, agent: Agent) -> Runner:
        return Runner(agent, checkpoint_store=self.store)

    async def name(self, channel_id: str) -> str:
        self.asked.append(channel_id)
        if self.is_down:
            raise DirectoryError("conversations.info: no answer")
        return self.names.get(channel_id, "")

    async def wait(self, catalog: Catalog, thread: Thread) -> str:
        """Let the agent of a thread run to its question; give its name."""
        runner = await catalog.runner(thread)
        events = [e async for e in runner.query("hi", checkpoint_id=thread.checkpoint_id)]
        return events[-1].agent_name


@pytest.fixture
def town() -> Town:
    return Town(names={"C1": "finance", "C2": "random"})


@pytest.mark.parametrize(
    ("channel", "name"), [("C1", "money"), ("C2", "rest"), ("C3", "third"), ("D1", "rest")]
)
async def test_agents_by_name_by_id_and_for_the_rest(town: Town, channel: str, name: str) -> None:
    turn = call("pay", {"amount": 1})
    catalog = town.catalog(
        finance=an_agent("money", turn), C3=an_agent("third", turn), every=an_agent("rest", turn)
    )
    assert await town.wait(catalog, a_thread(channel)) == name


async def test_without_a_default_nobody_works_and_says_so(town: Town) -> None:
    catalog = town.catalog(finance=an_agent("money"))
    runner = await catalog.runner(a_thread("C2"))
    (event,) = [event async for event in runner.query("hi", checkpoint_id="T1:C2:1.0#1")]
    assert isinstance(event, MessageEvent)
    assert event.text == "There's no agent here. Ask whoever runs me to add one."
    assert "finance" not in event.text
    assert nobody().description


async def test_a_failed_look_up_picks_no_agent(town: Town) -> None:
    town.is_down = True
    catalog = town.catalog(finance=an_agent("money"), every=an_agent("rest"))
    with pytest.raises(DirectoryError):
        await catalog.runner(a_thread())


@pytest.mark.parametrize("is_restarted", [False, True])
async def test_a_turn_keeps_its_agent_when_its_channel_is_renamed(
    town: Town, is_restarted: bool
) -> None:
    def made() -> Catalog:
        turn = call("pay", {"amount": 1})
        return town.catalog(finance=an_agent("money", turn), every=an_agent("rest", turn))

    catalog = made()
    assert await town.wait(catalog, a_thread()) == "money"
    town.names["C1"] = "finance-old"
    if is_restarted:
        catalog = made()
        town.is_down = True  # the checkpoint alone tells
    runner = await catalog.runner(a_thread())
    assert len(await runner.pending(a_thread().checkpoint_id)) == 1
    resumed = [e async for e in runner.resume(a_thread().checkpoint_id)]
    assert resumed[-1].agent_name == "money"
    town.is_down = False
    assert await town.wait(catalog, a_thread(turn=2)) == "rest"


async def test_an_agent_that_is_gone_is_not_guessed(town: Town) -> None:
    turn = call("pay", {"amount": 1})
    await town.wait(town.catalog(finance=an_agent("money", turn), every=an_agent("r")), a_thread())
    runner = await town.catalog(C7=an_agent("other"), every=an_agent("r")).runner(a_thread())
    with pytest.raises(Exception, match="'money'"):
        _ = [event async for event in runner.resume(a_thread().checkpoint_id)]


class BrokenStore(MemoryCheckpointStore):
    """Holds something that is no checkpoint."""

    async def load(self, checkpoint_id: str) -> StoredCheckpoint | None:
        return StoredCheckpoint(
            data="{", version=1, base=1, status=CheckpointStatus.PENDING, claim="", journal=()
        )


async def test_a_checkpoint_that_cannot_be_read(town: Town) -> None:
    town.store = BrokenStore()
    catalog = town.catalog(C3=an_agent("a"), every=an_agent("b"))
    with pytest.raises(CheckpointDecodeError):
        await catalog.runner(a_thread())


async def test_what_is_remembered_has_a_bound(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.threads.agents._KEPT", 2)
    catalog = town.catalog(finance=an_agent("money"), every=an_agent("rest"))
    for number in range(1, 6):
        await catalog.runner(a_thread(turn=number))
    assert len(catalog._begun) <= 2


def an_edit(address: str, tool_name: str = "pay") -> Approval:
    return an_approval(tool=tool_name, address=address, thread_id="T1:C1:1.0")


@pytest.mark.parametrize(
    "address", ["agent:boss;tool:pay:c1", "agent:boss;tool:worker:w;agent:worker;tool:pay:c1"]
)
async def test_edited_arguments_are_checked_by_the_tool_itself(town: Town, address: str) -> None:
    boss = ChatModelAgent(
        name="boss", model=ScriptedModel([]), tools=[pay, AgentTool(an_agent("worker"))]
    )
    catalog = town.catalog(finance=boss, every=an_agent("rest"))
    checked = await catalog.check_call(an_edit(address), {"amount": 5})
    assert checked == CheckedCall(arguments={"amount": 5}, title="Pay")
    with pytest.raises(InvalidArgumentsError):
        await catalog.check_call(an_edit(address), {"amount": "many"})


def _broken(amount: int) -> str:
    raise RuntimeError(f"no words for {amount}")


async def test_a_tool_that_fails_at_its_own_words_takes_the_edit_without_them(
    town: Town, caplog: pytest.LogCaptureFixture
) -> None:
    @tool(title="Pay {amount}", preview=_broken)
    def transfer(amount: int) -> str:
        """Transfer."""
        return str(amount)

    boss = ChatModelAgent(name="boss", model=ScriptedModel([]), tools=[transfer])
    edit = an_edit("agent:boss;tool:transfer:c1", "transfer")
    checked = await town.catalog(every=boss).check_call(edit, {"amount": 7})
    assert checked == CheckedCall(arguments={"amount": 7})
    assert "'transfer' has no title: RuntimeError" in caplog.text


async def test_a_tool_that_is_gone_takes_no_edit(town: Town) -> None:
    catalog = town.catalog(every=an_agent("boss"))
    with pytest.raises(InvalidArgumentsError, match="no tool 'fly'"):
        await catalog.check_call(an_edit("agent:boss;tool:fly:c1", "fly"), {"amount": 5})


async def test_what_is_no_call_and_what_nobody_describes_is_left_to_the_runtime(town: Town) -> None:
    plain = function_agent("plain", nobody().run)
    catalog = town.catalog(finance=plain, every=an_agent("rest"))
    for approval in (
        an_edit("agent:plain;tool:pay:c1"),
        an_edit("agent:plain;runnable:g;node:n", tool_name=""),
    ):
        given: dict[str, object] = {"x": [1]}
        checked = await catalog.check_call(approval, given)
        assert checked == CheckedCall(arguments={"x": [1]})
        assert checked.arguments["x"] is not given["x"]  # records share their values


async def test_the_facts_of_an_agent_are_those_of_its_channel(town: Town) -> None:
    catalog = town.catalog(finance=an_agent("money"), every=an_agent("rest"))
    facts = await catalog.facts("C1")
    assert (facts.name, facts.free, facts.gated) == ("money", (), ("pay",))
    assert (await catalog.facts("C2")).name == "rest"
    alone = await town.catalog(finance=an_agent("money")).facts("C2")
    assert (alone.name, alone.free, alone.gated) == ("nobody", (), ())


@tool(
    gate="approval",
    title="Refund {amount} with {pin}",
    secret=["pin"],
    batch_title="{n} refunds of {amount:sum} with {pin}",
    batch_key="amount",
)
def refund(amount: int, pin: str) -> str:
    """Refund.

    Args:
        amount: How much.
        pin: Of the till.
    """
    return f"{amount} {len(pin)}"


def a_refund(number: int, amount: int, **changes: object) -> Approval:
    arguments = {"amount": amount, "pin": "4711-secret"}
    fields: dict[str, object] = {
        "approval_id": f"apr_{number}",
        "tool": "refund",
        "address": f"agent:A;tool:refund:c{number}",
        "arguments": arguments,
    }
    return an_approval(**{**fields, **changes})


async def test_a_tool_says_what_several_calls_do_and_which_are_largest() -> None:
    catalog = Town().catalog(
        every=ChatModelAgent(name="A", model=ScriptedModel([]), tools=[refund])
    )
    over = a_refund(3, 100, status=Status.REJECTED)
    words = await catalog.batch_words([a_refund(1, 5), a_refund(2, 20), over])
    assert words.largest == ("apr_2", "apr_1")
    assert words.title.startswith("3 refunds of 125 with ")
    assert words.rest.startswith("2 refunds of 25 with ")
    assert "4711" not in f"{words.title} {words.rest}"


async def test_a_tool_without_such_words_or_that_is_gone_says_nothing() -> None:
    catalog = Town().catalog(every=an_agent("A"))
    assert await catalog.batch_words([an_approval(address="agent:A;tool:pay:c1")]) == BatchWords()
    assert await catalog.batch_words([a_refund(1, 5)]) == BatchWords()
    agent = ChatModelAgent(name="A", model=ScriptedModel([]), tools=[refund])
    broken = a_refund(1, 5, arguments={})
    assert await Town().catalog(every=agent).batch_words([broken]) == BatchWords()


async def test_the_agent_of_a_turn_explains_where_it_can() -> None:
    flow = nobody()
    catalog = Town(names={"C1": "finance"}).catalog(finance=flow, every=an_agent("rest"))
    waiting = an_approval(thread_id="T1:C1:1.0")
    assert await catalog.explainer(waiting) is None
    other = await catalog.explainer(asked_at(waiting, thread_id="T1:C2:1.0"))
    assert isinstance(other, ChatModelAgent)
    assert other.name == "rest"
