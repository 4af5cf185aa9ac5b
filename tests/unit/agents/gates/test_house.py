"""The application's policy judges each call of each tool, and both it and code must agree (I13)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Literal

import pytest
from pydantic_ai.direct import model_request

from agents import (
    ChatModelAgent,
    FollowUpInfo,
    InDoubtInfo,
    InDoubtResult,
    MemoryCheckpointStore,
    ReviewEditInfo,
    Runner,
    ScriptedModel,
    follow_up_tool,
)
from agents.core.asking.infos import ApprovalInfo
from agents.core.codec import Json
from agents.core.errors import AgentConfigError
from agents.core.journal import Journal
from agents.core.scope import RunContext, Scope, entered
from agents.gates import approval_gate, fill_arguments, human_gate, policy_gate, review_edit_gate
from agents.gates.approval import Gate
from agents.gates.decorator import tool as decorated
from agents.gates.human import HumanInterrupt, HumanInterruptConfig
from agents.gates.questions import ParametersInfo
from agents.gates.rulings import GateState
from agents.graph import (
    END,
    START,
    CompiledGraph,
    MessagesState,
    StateGraph,
    ToolsNode,
    tools_condition,
)
from agents.graph.agent import GraphAgent
from agents.models import Turn, call, say
from agents.policy import Allow, AllowList, Ask, Deny, PolicyCall, Ruling
from agents.policy.house import House, current_house
from agents.workflows.agenttool import AgentTool
from tests.unit.agents.house import FILE, ByAmount, TestHouse, always, asked, by_amount, world
from tests.unit.agents.support import (
    Died,
    Plain,
    Watchman,
    brief,
    collect,
    contexts,
    die,
    dies_in,
    yes,
)

EDITS = Ask(rule="file", kind="review")
SMALL = Allow(rule="small", terms="who decides about doubts")


async def test_a_call_without_a_gate_is_asked_about_with_the_terms_of_the_house() -> None:
    pay, house = Plain("pay"), TestHouse(always(FILE))
    made, context = await asked(pay, house)
    info = context.info
    assert isinstance(info, ApprovalInfo)
    assert (info.rule, info.terms, pay.calls) == ("file", "terms of file", [])
    assert '"bound":"bound to file"' in info.ruling
    assert house.judged == [("pay", {"x": 5}, None, False)]
    assert not house.calls[0].gated
    await made.resume({context.id: info.approve(by="UADA")})
    assert pay.calls == [{"x": 5}]
    assert house.noted == []


@pytest.mark.parametrize("kind", ["approval", "review"])
async def test_the_house_sees_all_that_code_wants_of_people(
    kind: Literal["approval", "review"],
) -> None:
    code = Ask(
        kind=kind,
        rule="dear",
        title="Pay Ben",
        reason="It is more than usual.",
        approvers=("UMIA", "UADA"),
        expires_in=timedelta(hours=4),
        remind_in=timedelta(hours=1),
        escalate_in=timedelta(hours=2),
        backups=("UBEN",),
        exclude_editors=True,
        terms="as written in code",
    )
    house = TestHouse(always(FILE))
    await world(policy_gate(Plain("pay"), ByAmount({5: code})), house).run()
    assert house.judged == [("pay", {"x": 5}, code, False)]


async def test_the_rules_know_what_a_tool_says_of_itself() -> None:
    @decorated(risk="critical", tags=["money"], secret=["pin"], shown=["account"], idempotent=True)
    def pay(account: str, pin: str) -> str:
        """Pay."""
        return account

    house = TestHouse(always(Deny("No.", "no")))
    await world(pay, house, [call("pay", {"account": "7", "pin": "1"}), say("well")]).run()

    (policy_call,) = house.calls
    assert (policy_call.tool, policy_call.risk, policy_call.idempotent) == ("pay", "critical", True)
    assert (set(policy_call.tags), set(policy_call.secret), set(policy_call.shown)) == (
        {"money"},
        {"pin"},
        {"account"},
    )


async def test_a_house_that_allows_all_ungated_calls_is_not_asked_about_them() -> None:
    pay, house = Plain("pay"), TestHouse(always(FILE), allows_ungated=True)
    await world(pay, house).run()
    assert (pay.calls, house.judged, house.noted) == ([{"x": 5}], [], [])
    gated = world(approval_gate(pay), house)
    assert isinstance(contexts(await gated.run())["c1"].info, ApprovalInfo)


@pytest.mark.parametrize(
    ("gate", "said", "kind"),
    [
        (approval_gate, EDITS, ApprovalInfo),
        (review_edit_gate, EDITS, ReviewEditInfo),
        (review_edit_gate, FILE, ApprovalInfo),
        (approval_gate, Allow(), ApprovalInfo),
        (review_edit_gate, Allow(), ReviewEditInfo),
    ],
)
async def test_one_card_asks_for_file_and_gate_and_edits_only_where_both_let(
    gate: object, said: Ruling, kind: type
) -> None:
    pay, house = Plain("pay"), TestHouse(always(said))
    made = world(gate(pay), house)  # type: ignore[operator]
    context = contexts(await made.run())["c1"]
    assert isinstance(context.info, ApprovalInfo | ReviewEditInfo)
    assert type(context.info) is kind
    names = "gate" if isinstance(said, Allow) else "file + gate"
    assert context.info.rule == names
    (_, _, code, inside) = house.judged[0]
    assert isinstance(code, Ask)
    assert (code.rule, inside, house.calls[0].gated) == ("gate", False, True)
    await made.resume({context.id: yes(context, by="UADA")})
    assert pay.calls == [{"x": 5}]


async def test_what_code_denies_stays_denied_whatever_the_house_says() -> None:
    pay = Plain("pay")

    @dataclass
    class Lenient(TestHouse):
        async def rule(self, call: PolicyCall, code: Ruling | None, *, inside: bool) -> Ruling:
            return Allow(rule="all")

    house = Lenient(always(Allow()))
    await world(policy_gate(pay, ByAmount({5: Deny("not today")})), house).run()
    assert pay.calls == []
    assert house.acts == ["deny pay "]


async def test_what_code_denies_is_no_failure_when_the_house_fails() -> None:
    def fail(_: PolicyCall) -> Ruling:
        raise RuntimeError

    guarded = House(TestHouse(fail), guard=lambda tool, **_: tool)
    call = PolicyCall(tool="pay", arguments={})
    says = [await guarded.ruling(call, code, inside=False) for code in (Deny("no"), Allow())]
    assert says == [Deny("no"), Deny("the policy failed", failed=True)]


async def test_a_gate_inside_asks_for_itself_and_other_people() -> None:
    pay, house = Plain("pay"), TestHouse(always(FILE))
    inner = policy_gate(pay, ByAmount({5: Ask(rule="second")}))
    made = world(policy_gate(inner, AllowList(["pay"])), house)
    first = contexts(await made.run())["c1"]
    assert isinstance(first.info, ApprovalInfo)
    assert first.info.rule == "file"
    yes = replace(first.info.approve(by="UADA"), voters=("UADA", "UBEN"))
    second = contexts(await made.resume({first.id: yes}))["c1"]
    assert isinstance(second.info, ApprovalInfo)
    assert (second.info.rule, second.info.counted) == ("second", ("UADA", "UBEN"))
    assert house.judged[1][3] is True
    await made.resume({second.id: second.info.approve(by="UMIA")})
    assert (pay.calls, house.noted) == ([{"x": 5}], [])


async def test_a_guard_that_allows_what_the_file_allows_lets_it_run_on_record() -> None:
    pay, house = Plain("pay"), TestHouse(always(SMALL))
    await world(policy_gate(pay, AllowList(["pay"])), house).run()
    assert (pay.calls, house.acts) == ([{"x": 5}], ["allow pay small"])
    assert house.judged == [("pay", {"x": 5}, Allow(), False)]
    assert not house.calls[0].gated


async def test_a_human_gate_that_need_not_ask_still_has_the_house_judge() -> None:
    pay, house = Plain("pay"), TestHouse(always(FILE))
    config = HumanInterruptConfig(when=lambda _: False)
    made, context = await asked(human_gate(pay, config), house)
    assert isinstance(context.info, ApprovalInfo)
    assert house.judged == [("pay", {"x": 5}, Allow(), False)]
    assert house.calls[0].gated
    await made.resume({context.id: context.info.reject("no", by="UADA")})
    assert pay.calls == []


async def test_a_human_gate_asks_in_its_own_way_under_the_ruling_of_the_house() -> None:
    pay, house = Plain("pay"), TestHouse(always(FILE))
    made, context = await asked(human_gate(pay, HumanInterruptConfig()), house)
    info = context.info
    assert isinstance(info, HumanInterrupt)
    assert (info.rule, info.allowed) == ("file + gate", ("accept", "ignore", "response"))
    await made.resume({context.id: info.accept(by="UADA")})
    assert pay.calls == [{"x": 5}]


async def test_the_house_judges_what_people_have_filled_in() -> None:
    pay = Plain("pay")
    house = TestHouse(by_amount(3, below=SMALL, above=FILE))
    made = world(fill_arguments(pay, ["x"]), house, [call("pay", {}, id="c1"), say("done")])
    asked = contexts(await made.run())["c1"]
    assert isinstance(asked.info, ParametersInfo)
    assert house.judged == []
    events = await made.resume({asked.id: asked.info.complete({"x": 9}, by="UROSA")})
    card = contexts(events)["c1"]
    assert isinstance(card.info, ApprovalInfo)
    assert (card.info.arguments, pay.calls) == ({"x": 9}, [])
    assert house.judged == [("pay", {"x": 9}, None, False)]
    await made.resume({card.id: card.info.approve(by="UADA")})
    assert pay.calls == [{"x": 9}]


@pytest.mark.parametrize(
    ("x", "allows_ungated", "acts"), [(1, False, ["allow pay small"]), (9, True, [])]
)
async def test_what_people_have_filled_in_runs_where_the_house_lets_it(
    x: int, allows_ungated: bool, acts: list[str]
) -> None:
    pay = Plain("pay")
    house = TestHouse(by_amount(3, below=SMALL, above=FILE), allows_ungated=allows_ungated)
    made = world(fill_arguments(pay, ["x"]), house, [call("pay", {}, id="c1"), say("done")])
    asked = contexts(await made.run())["c1"]
    assert isinstance(asked.info, ParametersInfo)
    await made.resume({asked.id: asked.info.complete({"x": x}, by="UROSA")})
    assert (pay.calls, house.acts, bool(house.judged)) == ([{"x": x}], acts, not allows_ungated)


# ---- edits (2.8, 2.9) ----------------------------------------------------------------------------


async def test_an_edit_that_a_rule_allows_runs_and_is_on_record() -> None:
    pay, house = Plain("pay"), TestHouse(by_amount(3, below=SMALL, above=EDITS))
    made, context = await asked(pay, house)
    assert isinstance(context.info, ReviewEditInfo)
    await made.resume({context.id: context.info.edit({"x": 1}, by="UADA")})
    assert (pay.calls, house.acts) == ([{"x": 1}], ["allow pay small"])
    assert house.noted[0][1] == {"x": 1}


# ---- the last word (2.11) ------------------------------------------------------------------------


@pytest.mark.parametrize("gate", [None, approval_gate])
async def test_a_denial_that_came_into_force_meanwhile_stops_an_approved_call(
    gate: object,
) -> None:
    pay, house = Plain("pay"), TestHouse(always(FILE))
    made = world(gate(pay) if gate else pay, house)  # type: ignore[operator]
    context = contexts(await made.run())["c1"]
    house.rules = always(Deny("closed", "no-pay"))
    events = brief(await made.resume({context.id: yes(context, by="UADA")}))
    assert any("refused" in line and "closed" in line for line in events)
    assert (pay.calls, house.acts) == ([], ["deny pay no-pay"])


async def test_what_a_rule_allowed_is_asked_about_when_the_rules_change_before_it_starts() -> None:
    pay, house = Plain("pay"), TestHouse(by_amount(3, below=SMALL, above=EDITS))
    inner = policy_gate(pay, ByAmount({5: Allow(), 1: Allow(), 2: Ask(rule="inner")}))

    class Turning(TestHouse):
        async def rule(self, call: PolicyCall, code: Ruling | None, *, inside: bool) -> Ruling:
            ruling = await super().rule(call, code, inside=inside)
            if call.arguments == {"x": 1}:
                self.rules = always(EDITS)
            return ruling

    house = Turning(by_amount(3, below=SMALL, above=EDITS))
    made, context = await asked(inner, house)
    assert isinstance(context.info, ReviewEditInfo)
    events = await made.resume({context.id: context.info.edit({"x": 1}, by="UADA")})
    again = contexts(events)["c1"]
    assert pay.calls == []
    assert isinstance(again.info, ReviewEditInfo)
    assert again.info.asked_again == "the rules have changed since it was allowed"
    await made.resume({again.id: again.info.accept(by="UADA")})
    assert pay.calls == [{"x": 1}]


# ---- failures ------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", [None, "allow", True, RuntimeError("x")])
async def test_a_house_that_fails_or_answers_nonsense_denies(answer: object) -> None:
    pay = Plain("pay")

    class Broken(TestHouse):
        async def rule(self, call: PolicyCall, code: Ruling | None, *, inside: bool) -> Ruling:
            if isinstance(answer, Exception):
                raise answer
            return answer  # type: ignore[return-value]

    events = brief(await world(pay, Broken(always(Allow()))).run())
    assert pay.calls == []
    assert any("refused" in line for line in events)


@dataclass
class Faulty(TestHouse):
    """Fails for a while, once people have agreed; waits some times before it is asked again."""

    fails: int = 0
    patience: int = 0
    waits: list[tuple[int, int]] = field(default_factory=list)

    async def rule(self, call: PolicyCall, code: Ruling | None, *, inside: bool) -> Ruling:
        ruling = await super().rule(call, code, inside=inside)
        if self.fails and len(self.judged) > 1:
            self.fails -= 1
            raise RuntimeError("x")
        return ruling

    async def wait(self, decisions: Sequence[str], tries: int) -> bool:
        self.waits.append((len(decisions), tries))
        return tries < self.patience


@pytest.mark.parametrize(("fails", "runs"), [(1, 1), (3, 1), (4, 0)])
async def test_a_failure_right_before_the_start_makes_an_approved_call_wait(
    fails: int, runs: int
) -> None:
    pay, house = Plain("pay"), Faulty(always(FILE), fails=fails, patience=3)
    made, context = await asked(pay, house)
    events = brief(await made.resume({context.id: yes(context, by="UADA")}))
    assert len(pay.calls) == runs
    assert any("refused" in line for line in events) is not bool(runs)
    assert house.waits == [(1, tries) for tries in range(fails)]


async def test_a_denial_ends_the_wait() -> None:
    pay, house = Plain("pay"), Faulty(always(FILE), fails=1, patience=3)
    made, context = await asked(pay, house)
    house.rules = always(Deny("closed", "no-pay"))
    await made.resume({context.id: yes(context, by="UADA")})
    assert (pay.calls, house.acts, len(house.waits)) == ([], ["deny pay no-pay"], 1)


async def test_a_failure_at_the_request_waits_for_nobody() -> None:
    pay, house = Plain("pay"), Faulty(always(FILE), fails=9, patience=3)
    house.judged.append(("before", {}, None, False))
    assert any("refused" in line for line in brief(await world(pay, house).run()))
    assert (pay.calls, house.waits) == ([], [])


async def test_what_cannot_be_put_on_record_does_not_start_and_ends_the_run() -> None:
    pay = Plain("pay")

    class Full(TestHouse):
        async def note(self, call: PolicyCall, ruling: Allow | Deny) -> None:
            raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        await world(pay, Full(always(SMALL))).run()
    assert pay.calls == []


def test_a_run_carries_a_house_or_nothing() -> None:
    run = RunContext(
        checkpoint_id="1", new_id=str, journal=Journal(None, "1"), house="no house at all"
    )
    with entered(Scope(run=run)), pytest.raises(AgentConfigError, match="Runner\\(policy="):
        current_house()


# ---- crashes (3.12) ------------------------------------------------------------------------------


async def test_a_call_that_a_rule_allowed_is_in_doubt_when_its_process_dies() -> None:
    pay, house = Plain("pay"), TestHouse(always(SMALL))
    made = world(pay, house)

    await dies_in(pay, made.run())
    doubt = contexts(await made.recover())["c1"]
    assert isinstance(doubt.info, InDoubtInfo)
    assert doubt.info.frozen == {"terms": "who decides about doubts"}
    await made.resume({doubt.id: InDoubtResult(choice="again", voters=("UADA",))})
    assert len(pay.calls) == 2
    assert house.acts == ["allow pay small"]


async def test_a_doubt_is_not_run_again_against_a_denial_in_force() -> None:
    pay, house = Plain("pay"), TestHouse(always(SMALL))
    made = world(pay, house)

    await dies_in(pay, made.run())
    doubt = contexts(await made.recover())["c1"]
    house.rules = always(Deny("closed", "no-pay"))
    await made.resume({doubt.id: InDoubtResult(choice="again")})
    assert len(pay.calls) == 1
    assert house.acts == ["allow pay small", "deny pay no-pay"]


# ---- several calls, agents in tools --------------------------------------------------------------


async def test_calls_of_an_agent_in_a_tool_are_judged_and_so_is_the_agent() -> None:
    pay, house = Plain("pay"), TestHouse(always(SMALL))

    def rules(policy_call: PolicyCall) -> Ruling:
        return FILE if policy_call.tool == "pay" else Allow(rule=policy_call.tool)

    house.rules = rules
    model = ScriptedModel([call("pay", {"x": 5}, id="i1"), say("inner")])
    inner = ChatModelAgent(name="helper", description="Helps.", model=model, tools=[pay])
    made = world(
        AgentTool(inner), house, [call("helper", {"request": "pay"}, id="c1"), say("done")]
    )
    context = contexts(await made.run())["i1"]
    assert house.acts == ["allow helper helper"]
    await made.resume({context.id: yes(context, by="UADA")})
    assert pay.calls == [{"x": 5}]
    assert house.acts == ["allow helper helper"]


async def test_a_call_that_asks_for_itself_goes_on_after_the_house_allowed_it() -> None:
    house = TestHouse(always(SMALL))
    script: list[Turn] = [call("ask_people", {"questions": ["Where?"]}, id="c1"), say("done")]
    made, context = await asked(follow_up_tool(), house, script)
    assert isinstance(context.info, FollowUpInfo)
    house.rules = always(FILE)
    events = brief(await made.resume({context.id: "here"}))
    assert "tool ask_people#c1 answered: here" in events
    assert house.acts == ["allow ask_people small"]


async def test_what_the_house_asked_is_refused_when_there_is_no_house_any_more() -> None:
    pay, house = Plain("pay"), TestHouse(always(FILE))
    made, context = await asked(pay, house)
    made.policy = None
    with pytest.raises(Exception, match=r"gate\.house"):
        await made.resume({context.id: yes(context, by="UADA")})
    assert pay.calls == []


async def test_what_the_house_asked_is_settled_though_it_allows_all_ungated_calls_by_now() -> None:
    pay, house = Plain("pay"), TestHouse(always(FILE))
    made, context = await asked(pay, house)
    assert isinstance(context.info, ApprovalInfo)
    house.allows_ungated = True
    await made.resume({context.id: context.info.reject("no", by="UADA")})
    assert pay.calls == []


async def test_calls_in_flight_do_not_share_what_the_house_said() -> None:
    pay = Plain("pay")
    gate = asyncio.Event()

    class Slow(TestHouse):
        async def rule(self, call: PolicyCall, code: Ruling | None, *, inside: bool) -> Ruling:
            if call.arguments == {"x": 1}:
                await gate.wait()
            else:
                gate.set()
            return await super().rule(call, code, inside=inside)

    calls = [call("pay", {"x": 1}, id="c1"), call("pay", {"x": 9}, id="c9")]
    made = world(pay, Slow(by_amount(3, below=SMALL, above=FILE)), [calls, say("done")])
    assert set(contexts(await made.run())) == {"c9"}
    assert pay.calls == [{"x": 1}]


# ---- rules of code have names of their own (2.5) -------------------------------------------------


@dataclass(frozen=True)
class Named:
    """A policy that says by which names it asks."""

    names: tuple[str, ...]

    async def evaluate(self, call: PolicyCall) -> Ruling:
        return Allow()

    def rule_names(self) -> tuple[str, ...]:
        return self.names


@pytest.mark.parametrize(
    ("names", "fault"), [(("policy",), "without a name"), (("a", "a"), "'a'"), (("a", "b"), "")]
)
def test_rules_of_code_have_names_of_their_own_where_a_house_judges(
    names: tuple[str, ...], fault: str
) -> None:
    house = TestHouse(always(Allow()))
    guarded = policy_gate(Plain("pay"), Named(names))
    world(guarded, None).runner()
    if not fault:
        world(guarded, house).runner()
        return
    with pytest.raises(AgentConfigError, match=fault):
        world(guarded, house).runner()


# ---- graphs --------------------------------------------------------------------------------------


def conversation(model: ScriptedModel, pay: Plain) -> CompiledGraph:
    """A graph of a model and its tool."""

    async def ask_model(state: MessagesState) -> object:
        return {"messages": await model_request(model, state["messages"])}

    graph = StateGraph(MessagesState)
    graph.add_node("model", ask_model)
    graph.add_node("tools", ToolsNode([pay]))
    graph.add_edge(START, "model").add_conditional_edges("model", tools_condition, ["tools", END])
    return graph.add_edge("tools", "model").compile()


async def test_calls_of_a_tools_node_are_judged() -> None:
    pay, house = Plain("pay"), TestHouse(by_amount(3, below=SMALL, above=FILE))
    model = ScriptedModel(
        [[call("pay", {"x": 1}, id="c1"), call("pay", {"x": 9}, id="c9")], say("Done.")]
    )
    compiled = conversation(model, pay)
    agent = GraphAgent(
        compiled, "g", to_input=lambda _: {"messages": "pay"}, to_text=lambda _: "done"
    )
    runner = Runner(agent, checkpoint_store=MemoryCheckpointStore(), policy=house)
    events = [event async for event in runner.query("hi", checkpoint_id="1")]
    waiting = contexts(events)
    assert (set(waiting), pay.calls, house.acts) == ({"c9"}, [{"x": 1}], ["allow pay small"])
    info = waiting["c9"].info
    assert isinstance(info, ApprovalInfo)
    await collect(runner.resume("1", {waiting["c9"].id: info.approve(by="UADA")}))
    assert pay.calls == [{"x": 1}, {"x": 9}]


async def test_a_graph_that_a_tool_runs_by_itself_is_judged_too() -> None:
    pay, house = Plain("pay"), TestHouse(always(Deny("no", "stop")))

    def rules(policy_call: PolicyCall) -> Ruling:
        return Deny("no", "stop") if policy_call.tool == "pay" else Allow(rule="outer")

    house.rules = rules
    model = ScriptedModel([call("pay", {"x": 1}, id="i1"), say("Done.")])
    compiled = conversation(model, pay)

    async def work(_: dict[str, Json]) -> str:
        await compiled.invoke({"messages": "pay"})
        return "worked"

    await world(Plain("worker", work), house, [call("worker", {}, id="c1"), say("ok")]).run()
    assert (pay.calls, house.acts) == ([], ["allow worker outer", "deny pay stop"])


# ---- decisions that have become too old ----------------------------------------------------------


@pytest.mark.parametrize(
    ("then", "runs", "acts"),
    [
        (SMALL, 1, ["allow pay small"]),
        (Deny("closed", "no-pay"), 0, ["deny pay "]),
        (Ask(rule="newer"), 0, []),
    ],
)
async def test_a_lapsed_decision_is_ruled_anew(then: Ruling, runs: int, acts: list[str]) -> None:
    pay, rulings = Plain("pay"), [FILE, FILE, then]
    house = TestHouse(lambda _: rulings.pop(0) if len(rulings) > 1 else rulings[0])
    made, context = await asked(pay, house)
    made.before_start = Watchman(["it is too old"])
    events = await made.resume({context.id: yes(context, by="UADA")})
    assert (len(pay.calls), house.acts) == (runs, acts)
    if isinstance(then, Ask):
        info = contexts(events)["c1"].info
        assert isinstance(info, ApprovalInfo)
        assert (info.rule, info.asked_again) == ("newer", "it is too old")


async def test_a_rule_that_allows_what_has_lapsed_says_who_decides_about_a_doubt() -> None:
    pay, rulings = Plain("pay"), list[Ruling]([FILE, FILE, SMALL])
    house = TestHouse(lambda _: rulings.pop(0) if len(rulings) > 1 else rulings[0])
    made = world(pay, house)
    made.before_start, pay.body = Watchman(["it is too old"]), die
    context = contexts(await made.run())["c1"]
    with pytest.raises(Died):
        await made.resume({context.id: yes(context, by="UADA")})
    doubt = contexts(await made.recover())["c1"].info
    assert isinstance(doubt, InDoubtInfo)
    assert doubt.frozen == {"terms": "who decides about doubts"}


async def test_a_gate_that_demands_nothing_lets_nothing_run_without_the_house() -> None:
    @dataclass(frozen=True, slots=True)
    class SilentGate(Gate):
        async def demand(
            self, arguments: dict[str, Json], before: GateState, *, inside: bool
        ) -> None:
            return None

    pay, house = Plain("pay"), TestHouse(always(FILE))
    made, context = await asked(SilentGate(pay, "approval"), house)
    made.before_start = Watchman(["it is too old"])
    events = brief(await made.resume({context.id: yes(context, by="UADA")}))
    assert pay.calls == []
    assert any("no rule lets this call" in line for line in events)


async def test_a_policy_around_a_gate_that_always_asks_leaves_the_one_card_to_it() -> None:
    pay, house = Plain("pay"), TestHouse(always(FILE))
    made = world(policy_gate(approval_gate(pay), AllowList(["pay"])), house)
    context = contexts(await made.run())["c1"]
    assert isinstance(context.info, ApprovalInfo)
    assert context.info.rule == "file + gate"
    await made.resume({context.id: context.info.approve(by="UADA")})
    assert pay.calls == [{"x": 5}]
