"""State slots of the runtime: a component of an application cannot ask in them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from agents import (
    AgentConfigError,
    ApprovalInfo,
    ApprovalResult,
    ChatModelAgent,
    MemoryCheckpointStore,
    Runner,
    ScriptedModel,
    tool,
)
from agents.agent import AgentEvent, AgentInput, TextDelta, function_agent
from agents.core.asking.answers import InDoubtResult
from agents.core.asking.infos import InDoubtInfo
from agents.core.component.state import get_resume_context, state_slot
from agents.core.interrupt import interrupt
from agents.models import call, say
from agents.policy.base import Allow, Ask, Deny, PolicyCall, Ruling
from tests.support.calls import OWN_CALL

DOUBT = InDoubtInfo(tool_name="delete", arguments={"id": 99}, title="Delete record 1", call_id="c1")
RESERVED = ["gate", "gate0", "gate17", "gate.house", "doubt", "question", "before_agent:x", "a/b"]


@pytest.mark.parametrize("gate", [None, "approval"])
async def test_i1_a_tool_cannot_have_itself_run_with_other_arguments(gate: str | None) -> None:
    """As the doubt about a call that had started would do it."""
    acted: list[int] = []
    options = {} if gate is None else {"gate": gate}

    @tool(**options)  # type: ignore[call-overload, untyped-decorator, unused-ignore]
    def delete(id: int) -> str:  # noqa: A002
        """Delete."""
        if id == 1:
            with state_slot("doubt"):
                interrupt(DOUBT)
        acted.append(id)
        return "deleted"

    model = ScriptedModel([call("delete", {"id": 1}, id="c1"), say("It is gone.")])
    agent = ChatModelAgent(name="clerk", model=model, tools=[delete])
    runner = Runner(agent, checkpoint_store=MemoryCheckpointStore())

    async def play() -> None:
        async for _ in runner.query("go", checkpoint_id="t"):
            pass
        for _ in range(3):
            (asked, *_) = [
                context for context in await runner.pending("t") if context.is_root_cause
            ]
            answer: object = InDoubtResult(choice="again")
            if isinstance(asked.info, ApprovalInfo):
                answer = ApprovalResult(approved=True, digest=asked.info.digest)
            targets = {asked.id: answer}
            async for _ in runner.resume("t", targets):
                pass

    with pytest.raises(AgentConfigError, match="'doubt'"):
        await play()
    assert acted == []


def asking(slot: str, info: object) -> Runner:
    """A runner of an agent that asks in a slot, unless it has an approval there."""

    async def run(given: AgentInput) -> AsyncIterator[AgentEvent]:
        with state_slot(slot):
            _, _, answer = get_resume_context(ApprovalResult)
            if answer is None:
                interrupt(info)
        yield TextDelta(agent_name="clerk", run_path=("clerk",), key="k", text="deleted")

    return Runner(function_agent("clerk", run), checkpoint_store=MemoryCheckpointStore())


@pytest.mark.parametrize("name", ["", *RESERVED])
async def test_a_slot_of_the_runtime_is_refused(name: str) -> None:
    with pytest.raises(AgentConfigError, match="use another"):
        async for _ in asking(name, "May I?").query("go", checkpoint_id="t"):
            pass


async def test_i1_a_slot_that_is_called_like_a_gate_gives_no_approval() -> None:
    with pytest.raises(AgentConfigError, match="cannot ask with ApprovalInfo"):
        async for _ in asking("gatekeeper", OWN_CALL).query("go", checkpoint_id="t"):
            pass


async def test_a_policy_without_all_methods_is_refused_before_anything_runs() -> None:
    class Short:
        allows_ungated = False

        async def rule(self, call: PolicyCall, code: Ruling | None, *, inside: bool) -> Ruling:
            return Ask(rule="r")

        async def note(self, call: PolicyCall, ruling: Allow | Deny) -> None:
            pass

    agent = ChatModelAgent(name="clerk", model=ScriptedModel([say("Hello.")]), tools=[])
    with pytest.raises(AgentConfigError, match="Short has no grant, wait"):
        async for _ in Runner(agent, policy=Short()).query("go"):  # type: ignore[arg-type]
            pass
