"""Several hooks that ask people, at one place: each is asked once there, and all of it ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse

from agents import (
    ApprovalInfo,
    address_segment,
    approval_gate,
    get_interrupt_state,
    get_resume_context,
    interrupt,
    stateful_interrupt,
)
from agents.agent import AgentEvent
from agents.chat.state import ChatRun, ChatState
from agents.core.errors import CheckpointDecodeError, ModelError
from agents.middlewares import ModelRetryMiddleware
from agents.middlewares.base import CallNext, Middleware, ModelCall
from tests.support.hooks import HOOKS, InEachHook
from tests.unit.agents.support import Plain, World, brief, collect, contexts, hooked, yes


@dataclass
class Budget(InEachHook):
    """Asks each time, in one hook, and remembers nothing itself: as in the guide."""

    label: str
    hook: str
    ask: Callable[[str], object] | None = None
    answers: list[object] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.label

    def at(self, hook: str) -> None:
        if hook != self.hook:
            return
        if self.ask is not None:
            self.answers.append(self.ask(self.label))
            return
        _, has_data, answer = get_resume_context(str)
        if not has_data:
            stateful_interrupt(f"{self.label}?", f"state of {self.label}")
        _, _, state = get_interrupt_state(str)
        assert state == f"state of {self.label}"
        self.answers.append(answer)


async def play(world: World, *, most: int = 20) -> tuple[list[str], list[AgentEvent]]:
    """Answer question after question, each in a new process; give them, and the last events."""
    asked: list[str] = []
    events = await world.run()
    while (waiting := await world.pending()) and len(asked) < most:
        asked.append(str(waiting[0].info))
        answer = yes(waiting[0]) if isinstance(waiting[0].info, ApprovalInfo) else "yes"
        events = await world.resume({waiting[0].id: answer})
    return asked, events


ONE_PLACE = {"before_agent": 1, "before_model": 2, "around_model": 2, "after_model": 2}
"""How often an agent whose model is asked twice is at the place of a hook; the others once."""


@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.parametrize("durability", ["interrupt", "step"])
async def test_hooks_that_ask_one_after_the_other_come_to_an_end(
    hook: str, durability: str
) -> None:
    three = [Budget(label, hook) for label in "abc"]
    world = hooked(three, durability=durability)

    asked, events = await play(world)

    times = ONE_PLACE.get(hook, 1)
    order = ["a?", "b?", "c?"] if hook.startswith(("before", "around")) else ["c?", "b?", "a?"]
    assert asked == order * times
    assert events == [] or brief(events)[-1] == "says done"
    assert all(set(budget.answers) == {"yes"} for budget in three)
    assert sum(model.calls for model in world.models) == 2


async def test_hooks_around_one_call_of_the_model_all_end() -> None:
    hooks = ("before_model", "around_model", "after_model")
    world = hooked([Budget(f"{name} {hook}", hook) for hook in hooks for name in "ab"])

    asked, _ = await play(world)

    once = [f"{name} {hook}?" for hook in hooks for name in ("ba" if "after" in hook else "ab")]
    assert asked == [*once, *once]


async def test_a_question_before_the_agent_is_asked_once_whatever_asks_after_it() -> None:
    """A gate asks after it: with the answer to that, the hook runs again, and finds its own."""
    pay = Plain("t")
    world = hooked([Budget("a", "before_agent")], approval_gate(pay))

    asked, events = await play(world)

    assert asked == ["a?", "Do t: may this call of 't' run?"]
    assert brief(events)[-1] == "says done"
    assert len(pay.calls) == 1


def in_segments(label: str) -> object:
    """Ask two things, each in a segment of its own."""
    answers = []
    for part in ("x", "y"):
        with address_segment("process", f"{label}{part}"):
            _, has_data, answer = get_resume_context(str)
            if not has_data:
                interrupt(f"{label}{part}?")
            answers.append(answer)
    return answers


async def test_questions_in_segments_of_a_hook_are_asked_once() -> None:
    world = hooked([Budget(label, "before_model", in_segments) for label in "ab"])

    asked, events = await play(world)

    assert asked == ["ax?", "ay?", "bx?", "by?"] * 2
    assert brief(events)[-1] == "says done"


async def test_a_hook_that_asks_twice_finds_its_newest_answer() -> None:
    def twice(label: str) -> object:
        _, _, count = get_interrupt_state(int)
        _, _, answer = get_resume_context(str)
        if count != 2:
            stateful_interrupt(f"{label}{(count or 0) + 1}?", (count or 0) + 1)
        return answer

    world = hooked([Budget(label, "after_tools", twice) for label in "ab"])

    asked, _ = await play(world)

    assert asked == ["b1?", "b2?", "a1?", "a2?"]


async def test_a_retry_asks_nobody_what_was_answered() -> None:
    class FailsOnce(Middleware):
        calls = 0

        async def around_model(self, call: ModelCall, call_next: CallNext) -> ModelResponse:
            FailsOnce.calls += 1
            if FailsOnce.calls == 1:
                raise ModelError("busy")
            return await call_next(call)

    async def no_sleep(_: float) -> None:
        return

    retry = ModelRetryMiddleware(sleep=no_sleep, backoff=lambda _: timedelta(0))
    world = hooked([retry, Budget("a", "around_model"), FailsOnce()])

    asked, events = await play(world)

    assert asked == ["a?", "a?"]  # for each of the two times that the model is asked
    assert brief(events)[-1] == "says done"


async def test_a_call_that_a_hook_makes_runs_once_for_each_approval() -> None:
    """What people agreed to is used once, whoever asks after it."""
    pay = Plain("pay")
    gated = approval_gate(pay)

    class Paying(Middleware):
        async def before_model(self, messages: list[ModelMessage]) -> list[ModelMessage]:
            with address_segment("tool", "pay", "h1"):
                await gated.call({"x": 1})
            return messages

    world = hooked([Paying(), Budget("b", "before_model")])
    (first,) = contexts(await world.run()).values()

    (second,) = contexts(await world.resume({first.id: yes(first)})).values()
    assert (second.info, len(pay.calls)) == ("b?", 1)
    (third,) = contexts(await world.resume({second.id: "yes"})).values()

    assert isinstance(third.info, ApprovalInfo)
    assert len(pay.calls) == 1
    events = await world.resume({third.id: yes(third)})
    assert brief(events)[0] == "calls t#c1"  # what was answered too early counts all the same
    assert len(pay.calls) == 2


async def test_what_a_tool_in_a_hook_was_answered_is_asked_again() -> None:
    """Only the hook's own questions are kept: nobody knows what a tool does with its answer."""
    plain = Plain("t", lambda _: "ok" if get_resume_context(str)[1] else interrupt("tool?"))

    class Calling(Middleware):
        async def before_model(self, messages: list[ModelMessage]) -> list[ModelMessage]:
            with address_segment("tool", "t", "h1"):
                await plain.call({})
            return messages

    world = hooked([Calling(), Budget("b", "before_model")])

    asked, _ = await play(world, most=3)

    assert asked == ["tool?", "b?", "tool?"]


async def test_everything_may_be_entered_without_answers_in_between() -> None:
    world = hooked([Budget(label, "before_model") for label in "ab"])
    (first,) = contexts(await world.run()).values()
    (second,) = contexts(await world.resume({first.id: "yes"})).values()

    (again,) = contexts(await collect(world.runner().resume("1"))).values()

    assert (second.info, again.info) == ("b?", "b?")
    assert again.id != second.id
    asked, events = [], await world.resume({again.id: "yes"})
    while waiting := await world.pending():
        asked.append(waiting[0].info)
        events = await world.resume({waiting[0].id: "yes"})
    assert asked == ["a?", "b?"]  # the next time that the model is asked
    assert brief(events)[-1] == "says done"


@pytest.mark.parametrize("hooks", [{"a": [1]}, {"a": [[{}, {}]]}, {"a": [[1, 2, 3]]}])
async def test_damaged_answers_of_hooks_are_a_typed_error(hooks: dict[str, list[object]]) -> None:

    state = ChatState(messages=[], rounds=0, results={}, gates={}, said=[], hooks=hooks)
    with pytest.raises(CheckpointDecodeError, match="damaged"):
        ChatRun.thaw(state)
