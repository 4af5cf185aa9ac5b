"""The prebuilt agent: scenarios 76 to 98 of part H, and people between its stages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from pydantic_ai.messages import ModelResponse, ToolCallPart, ToolReturnPart, UserPromptPart

from agents.agent import AgentEvent, InterruptEvent
from agents.chat.agent import ChatModelAgent, ChatResumeData
from agents.core.asking.answers import Cancelled, Expired
from agents.core.codec import decode, encode
from agents.core.errors import (
    AgentConfigError,
    AmbiguousTargetError,
    ResumeDataError,
    UnknownInterruptError,
)
from agents.core.pending import InterruptContext
from agents.gates import HumanInterruptConfig, accept, ignore, tool
from agents.memory import MemoryCheckpointStore
from agents.middlewares.retry import ToolRetryMiddleware
from agents.models import ScriptedModel, Turn, call, say
from agents.prebuilt.react import (
    PendingToolCall,
    create_react_agent,
    pending_tool_calls,
    targets_by_call,
)
from agents.prebuilt.stages import StageInfo, StageMiddleware, StageResult
from agents.runner import Runner
from tests.unit.agents.support import brief, collect, tamper

ALL = HumanInterruptConfig()
YES_NO = HumanInterruptConfig(allow_respond=False, allow_edit=False)
BOTH: Turn = [call("send", {"to": "alice"}, id="1"), call("rm", {"path": "x"}, id="2")]
CONFIGS = {"send": ALL, "rm": YES_NO}


@dataclass
class Office:
    """An agent with two tools that people decide about, and what outlives its process."""

    script: list[Turn] = field(default_factory=lambda: [BOTH, say("done")])
    human: HumanInterruptConfig | Mapping[str, HumanInterruptConfig] | None = field(
        default_factory=lambda: dict(CONFIGS)
    )
    options: dict[str, object] = field(default_factory=dict)
    store: MemoryCheckpointStore = field(default_factory=MemoryCheckpointStore)
    ran: list[str] = field(default_factory=list)
    models: list[ScriptedModel] = field(default_factory=list)
    faults: list[Exception] = field(default_factory=list)

    async def send(self, to: str, n: int = 1, cc: str | None = None) -> str:
        if self.faults:
            raise self.faults.pop()
        self.ran.append(f"send {to} {n} {cc}")
        return f"sent to {to}"

    async def rm(self, path: str) -> str:
        self.ran.append(f"rm {path}")
        return f"{path} is gone"

    async def look(self, at: str) -> str:
        self.ran.append(f"look {at}")
        return f"{at} is fine"

    def agent(self) -> ChatModelAgent:
        asked = sum(model.calls for model in self.models)
        self.models.append(ScriptedModel(self.script[asked:]))
        return create_react_agent(
            self.models[-1],
            [tool(idempotent=True)(self.send), tool(self.rm), tool(self.look)],
            human_interrupt=self.human,
            **self.options,  # type: ignore[arg-type]
        )

    def runner(self) -> Runner:
        return Runner(self.agent(), checkpoint_store=self.store)

    async def begin(self) -> list[AgentEvent]:
        return await collect(self.runner().query("hi", checkpoint_id="1"))

    async def pending(self) -> tuple[PendingToolCall, ...]:
        return pending_tool_calls(await self.runner().pending("1"))

    async def resume(self, targets: Mapping[str, object]) -> list[AgentEvent]:
        return await collect(self.runner().resume("1", targets))

    async def answer(self, **by_call: object) -> list[AgentEvent]:
        """Answer calls: `c1=accept()`."""
        responses = {key.removeprefix("c"): response for key, response in by_call.items()}
        return await self.resume(targets_by_call(await self.pending(), responses))

    @property
    def results(self) -> list[str]:
        """What the model was told last about calls, in order."""
        last = [model for model in self.models if model.calls][-1].inputs[-1]
        parts = [part for message in last for part in message.parts]
        return [
            f"{part.tool_call_id}: {part.content}"
            for part in parts
            if isinstance(part, ToolReturnPart)
        ]


async def test_g076_each_call_is_a_question_and_nothing_runs() -> None:
    office = Office()
    await office.begin()
    first, second = await office.pending()
    assert (first.call_id, first.name) == ("1", "send")
    assert first.args == {"to": "alice", "n": 1, "cc": None}
    assert first.request.allowed == ("accept", "ignore", "response", "edit")
    assert (second.call_id, second.name, second.args) == ("2", "rm", {"path": "x"})
    assert second.request.allowed == ("accept", "ignore")
    assert second.request.description == (
        'Tool execution requires approval\n\nTool: rm\nArgs: {"path": "x"}'
    )
    assert first.interrupt_id != second.interrupt_id
    assert office.ran == []


@pytest.mark.parametrize("order", [("1", "2"), ("2", "1")])
async def test_g082_results_keep_the_order_of_the_calls(order: Sequence[str]) -> None:
    office = Office()
    await office.begin()
    answers = {"1": accept(), "2": ignore()}
    for call_id in order:
        targets = targets_by_call(await office.pending(), {call_id: answers[call_id]})
        await office.resume(targets)
    assert [text.split(":")[0] for text in office.results] == ["1", "2"]
    messages = office.models[-1].inputs[-1]
    assert isinstance(messages[-2], ModelResponse)
    wanted = [p.tool_call_id for p in messages[-2].parts if isinstance(p, ToolCallPart)]
    assert wanted == ["1", "2"]


async def test_g089_call_without_an_answer_waits_on() -> None:
    office = Office()
    await office.begin()
    before = {pending_call.call_id: pending_call for pending_call in await office.pending()}
    await office.answer(c2=accept())
    assert office.ran == ["rm x"]
    assert await office.pending() == (before["1"],)


async def test_g094_failed_call_is_tried_again_without_asking() -> None:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    office = Office([call("send", {"to": "alice"}, id="1"), say("done")])
    office.options["middlewares"] = [
        ToolRetryMiddleware(sleep=sleep, backoff=lambda _: timedelta(seconds=1))
    ]
    office.faults = [OSError("away"), OSError("away")]
    await office.begin()
    events = await office.answer(c1=accept())
    assert office.ran == ["send alice 1 None"]
    assert office.results == ["1: sent to alice"]
    assert pauses == [1, 1]
    assert not any(isinstance(event, InterruptEvent) for event in events)


async def test_g095_call_without_an_id_gets_one() -> None:
    office = Office([[call("rm", {"path": "x"}, id=""), call("rm", {"path": "y"}, id="")], say("")])
    await office.begin()
    first, second = await office.pending()
    assert "" not in {first.call_id, second.call_id}
    assert first.call_id != second.call_id
    await office.resume({first.interrupt_id: accept(), second.interrupt_id: ignore()})
    assert office.ran == ["rm x"]


async def test_g097_message_while_calls_wait_reaches_the_model_after_them() -> None:
    office = Office()
    await office.begin()
    contexts = await office.runner().pending("1")
    parent = contexts[0].parent
    assert parent is not None
    events = await office.resume({parent.id: ChatResumeData(messages=("hurry",))})
    assert [type(event) for event in events] == [InterruptEvent]
    assert office.ran == []
    await office.answer(c1=accept(), c2=ignore())
    last = office.models[-1].inputs[-1][-1]
    assert [type(part) for part in last.parts] == [ToolReturnPart, ToolReturnPart, UserPromptPart]


def test_configuration_for_no_tool_is_a_mistake() -> None:
    with pytest.raises(AgentConfigError, match="'sned', and has no such tool; it has: send"):
        Office(human={"sned": ALL}).agent()
    with pytest.raises(AgentConfigError, match="it has: none"):
        create_react_agent(ScriptedModel([]), [], human_interrupt={"sned": ALL})


def test_model_can_be_named() -> None:
    with pytest.raises(AgentConfigError, match="not the name of a model"):
        create_react_agent("gpt", [])


async def test_targets_are_found_by_call_id() -> None:
    office = Office()
    await office.begin()
    pending = await office.pending()
    with pytest.raises(UnknownInterruptError, match="'7'"):
        targets_by_call(pending, {"7": accept()})
    with pytest.raises(AmbiguousTargetError):
        targets_by_call([*pending, *pending], {"1": accept()})


async def test_other_questions_are_no_pending_calls() -> None:
    office = Office(options={"interrupt_before": ["agent"]})
    await office.begin()
    assert await office.pending() == ()


async def waiting(office: Office) -> tuple[InterruptContext, StageInfo]:
    (context,) = await office.runner().pending("1")
    assert isinstance(context.info, StageInfo)
    return context, context.info


async def stage(office: Office, **options: object) -> tuple[InterruptContext, StageInfo]:
    office.options, office.human = options, None
    await office.begin()
    return await waiting(office)


async def test_stage_before_the_agent() -> None:
    office = Office()
    context, info = await stage(office, interrupt_before=["agent"])
    assert str(info) == "'agent' stopped before its agent. May it go on?"
    assert sum(model.calls for model in office.models) == 0
    await office.resume({context.id: info.go_on(by="U1")})
    assert sorted(office.ran) == ["rm x", "send alice 1 None"]
    context, info = await waiting(office)  # each time it gets there
    events = await office.resume({context.id: info.go_on()})
    assert brief(events) == ["says done"]


@pytest.mark.parametrize(
    "options", [{"interrupt_before": ["tools"]}, {"interrupt_after": ["agent"]}]
)
async def test_stage_before_tools_and_after_the_agent(options: dict[str, object]) -> None:
    office = Office([BOTH, say("done")])
    context, info = await stage(office, **options)
    assert [planned_call["name"] for planned_call in info.calls] == ["send", "rm"]
    assert info.calls[0]["args"] == {"to": "alice"}
    assert "It wants to call: send, rm. May it go on?" in str(info)
    assert decode(encode(info)) == info
    assert office.ran == []
    await office.resume({context.id: info.go_on()})
    assert sorted(office.ran) == ["rm x", "send alice 1 None"]


async def test_stage_after_tools() -> None:
    office = Office()
    context, info = await stage(office, interrupt_after=["tools"])
    assert sorted(office.ran) == ["rm x", "send alice 1 None"]
    assert (info.stage, info.when, info.calls) == ("tools", "after", ())
    events = await office.resume({context.id: info.go_on()})
    assert brief(events) == ["says done"]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (StageResult(proceed=False), "Stopped by a person."),
        (StageResult(proceed=False, reason="not now"), "Stopped by a person: not now"),
        (Expired(), "Stopped: nobody answered in time. This is not a rejection."),
        (Cancelled(), "Stopped: the request was cancelled. This is not a rejection."),
    ],
)
@pytest.mark.parametrize(
    "options",
    [
        {"interrupt_before": ["agent"]},
        {"interrupt_before": ["tools"]},
        {"interrupt_after": ["agent"]},
    ],
)
async def test_stage_that_people_stop_runs_nothing(
    options: dict[str, object], answer: object, text: str
) -> None:
    office = Office()
    context, _ = await stage(office, **options)
    events = await office.resume({context.id: answer})
    assert brief(events) == [f"says {text}"]
    assert office.ran == []


@pytest.mark.parametrize(
    "answer", ["yes", True, StageResult(proceed=True), StageResult(proceed=True, digest="0" * 64)]
)
async def test_wrong_answer_to_a_stage_runs_nothing(answer: object) -> None:
    office = Office()
    context, info = await stage(office, interrupt_before=["tools"])
    with pytest.raises(ResumeDataError):
        await office.resume({context.id: answer})
    assert office.ran == []
    events = await office.resume({context.id: info.stop("no")})
    assert brief(events) == ["says Stopped by a person: no"]


async def test_stage_without_an_answer_asks_again() -> None:
    office = Office()
    context, info = await stage(office, interrupt_before=["tools"])
    await collect(office.runner().resume("1"))
    again, same = await waiting(office)
    assert same == info
    assert again.id != context.id
    assert office.ran == []


async def test_stage_and_gate_ask_one_after_the_other() -> None:
    office = Office(options={"interrupt_before": ["tools"]}, human=YES_NO)
    await office.begin()
    context, info = await waiting(office)
    await office.resume({context.id: info.go_on()})
    assert office.ran == []
    assert [pending_call.call_id for pending_call in await office.pending()] == ["1", "2"]
    await office.answer(c1=accept(), c2=ignore())
    assert office.ran == ["send alice 1 None"]


async def test_stage_with_other_calls_than_shown_runs_nothing() -> None:
    office = Office()
    context, info = await stage(office, interrupt_before=["tools"])
    await tamper(office.store, lambda text: text.replace(info.digest, "0" * 64))
    context, info = await waiting(office)
    with pytest.raises(ResumeDataError, match="changed since people were asked; start the version"):
        await office.resume({context.id: info.go_on()})
    assert office.ran == []


def test_stage_that_does_not_exist_is_a_mistake() -> None:
    with pytest.raises(AgentConfigError, match="no stage 'tool'; use agent or tools"):
        StageMiddleware("tool", "before")  # type: ignore[arg-type]
    with pytest.raises(AgentConfigError, match="write"):
        create_react_agent(ScriptedModel([]), [], interrupt_before="tools")  # type: ignore[arg-type]


@pytest.mark.parametrize("fields", [{"proceed": "yes"}, {"proceed": True, "by": 5}])
def test_stored_stage_result_is_checked(fields: dict[str, object]) -> None:
    with pytest.raises(TypeError):
        StageResult(**fields)  # type: ignore[arg-type]
