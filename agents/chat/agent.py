"""The chat model agent: a loop of model calls and tool calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from copy import copy
from functools import partial
from typing import NoReturn, cast

from pydantic_ai.messages import (
    InstructionPart,
    ModelResponse,
    TextPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from agents.agent import ActionEvent, AgentEvent, AgentInput, MessageEvent, TextDelta, header
from agents.chat.explaining import explain
from agents.chat.instruction import Instruction, render, settle
from agents.chat.state import (
    ChatInterruptInfo,
    ChatResumeData,
    ChatRun,
    ChatState,
    Ending,
    results_message,
    run_local_values,
    share_conversation,
    use_values,
)
from agents.core.calls import Exit
from agents.core.cancel import CancelInfo, stop
from agents.core.codec import Json, well_formed
from agents.core.component.context import publish
from agents.core.component.state import get_interrupt_state, get_resume_context
from agents.core.errors import (
    AgentChangedError,
    AgentConfigError,
    AgentError,
    ArgumentError,
    CheckpointDecodeError,
    DuplicateNameError,
    InvalidArgumentsError,
    ResumeDataError,
    StepLimitError,
)
from agents.core.interrupt import (
    InterruptSignal,
    composite_interrupt,
    keep_waiting,
    stateful_interrupt,
)
from agents.core.journal import MODEL
from agents.core.messages import (
    PlannedCall,
    call_ids,
    cut_of,
    planned_calls,
    repaired,
    text_of,
)
from agents.core.observers import ToolOutcome
from agents.core.scope import current_scope
from agents.core.tools import Tool
from agents.middlewares.base import (
    HistoryProcessor,
    MessagesFunction,
    Middleware,
    ModelCall,
    TextStream,
)
from agents.middlewares.chain import Chain
from agents.models import model_error
from agents.runs.hook_answers import use_answers
from agents.runs.topology import Component, Key, tool_component
from agents.tools.batch import ToolBatch, call_address

__all__ = [
    "ChatInterruptInfo",
    "ChatModelAgent",
    "ChatResumeData",
    "ChatState",
    "run_local_values",
]

_MODELS_FAULT = {ToolOutcome.FAILED, ToolOutcome.REFUSED}


class ChatModelAgent:
    """An agent that calls a model, runs the tools it requests, and repeats.

    Args:
        name: Unique among its siblings; part of addresses.
        model: The model.
        instruction: System prompt: a text, in which `{name}` stands for a session value, or a
            function of the session values. Evaluated once per run.
        tools: Tools that the model may call, wrapped in gates where calls need approval.
        description: What the agent is good at, for models that may call it.
        max_iterations: Maximum number of model calls in a run, resumes included.
        sequential_tools: Whether the calls of one answer run one after the other.
        middlewares: Hooks around the model and the tools, the outermost first.
        return_directly: Names of tools whose result is the final answer, also if people rejected
            the call. After an error the model is called again.
        output_key: The session value that stores the final answer; empty for none.
        history_modifier: Changes what the model reads; the innermost middleware.

    Raises:
        AgentConfigError: The model, a tool or a middleware is of another type, two tools share a
            name, a named tool does not exist, or `max_iterations` is not positive.
    """

    def __init__(  # noqa: PLR0913 - the documented names, all given by keyword
        self,
        *,
        name: str,
        model: Model,
        instruction: Instruction = "",
        tools: Sequence[Tool] = (),
        description: str = "",
        max_iterations: int = 20,
        sequential_tools: bool = False,
        middlewares: Sequence[Middleware] = (),
        return_directly: Collection[str] = (),
        output_key: str = "",
        history_modifier: MessagesFunction | None = None,
    ) -> None:
        self.name = name
        self.description = description
        if not isinstance(model, Model):
            raise AgentConfigError(
                f"agent {name!r} has the model {model!r}, which is no model; make one with "
                "`resolve_model('openai:gpt-5')`"
            )
        if max_iterations < 1:
            raise AgentConfigError(
                f"agent {name!r} would never call its model; `max_iterations` is at least 1"
            )
        self._model = model
        self._instruction = instruction
        inner = [HistoryProcessor(history_modifier)] if history_modifier else []
        self._chain = Chain([*middlewares, *inner])
        self._tools = _by_name(name, self._chain.wrap(tools))
        self._components: Mapping[Key, Component] | None = None
        self._max_iterations = max_iterations
        self._sequential_tools = sequential_tools
        self._return_directly = _known(name, return_directly, self._tools)
        self._output_key = output_key

    def with_tools(self, *tools: Tool) -> ChatModelAgent:
        """Return a copy of the agent with more tools behind the same middlewares.

        Raises:
            DuplicateNameError: The agent already has a tool of that name.
        """
        existing, more = list(self._tools.values()), self._chain.wrap_more(tools)
        other = copy(self)
        other._tools = _by_name(self.name, [*existing, *more])  # noqa: SLF001 - its own kind
        other._components = None  # noqa: SLF001 - as above
        return other

    def components(self) -> Mapping[Key, Component]:
        """The tools; see `agents.runs.topology`."""
        if self._components is None:
            self._components = dict(tool_component(tool) for tool in self._tools.values())
        return self._components

    @property
    def idempotent(self) -> bool:
        """True: hooks and calls are journaled one by one; see `Agent`."""
        return True

    def validate_call(self, tool: str, arguments: Mapping[str, object]) -> dict[str, Json]:
        """Validate edited arguments and return them in the tool's canonical form.

        The tool does not run.

        Args:
            tool: Name of the tool.
            arguments: All of its arguments.

        Raises:
            InvalidArgumentsError: The arguments are invalid, or the tool is unknown.
        """
        known_tool = self._tools.get(tool)
        if known_tool is None:
            raise InvalidArgumentsError([ArgumentError((), f"there is no tool {tool!r} any more")])
        return known_tool.validate(arguments)

    async def explain(self, about: str, question: str) -> str:
        """Answer a question about a pending call, without any tool; see `Explains`."""
        return await explain(
            self.name, self._model, self._instruction, about=about, question=question
        )

    def run(self, input: AgentInput) -> AsyncGenerator[AgentEvent, None]:  # noqa: A002 - see Agent
        """Answer the messages; see `Agent.run`."""
        return self._work(input, ChatRun)

    def resume(self, input: AgentInput) -> AsyncGenerator[AgentEvent, None]:  # noqa: A002 - see Agent
        """Resume the calls that were answered; see `Agent.resume`."""
        return self._work(input, self._thawed)

    def _thawed(self) -> ChatRun:
        _, has_state, state = get_interrupt_state(ChatState)
        if not has_state or state is None:
            raise CheckpointDecodeError(f"agent {self.name!r} has lost what it was doing")
        work = ChatRun.thaw(state)
        self._check_unchanged(work)
        _, _, data = get_resume_context(ChatResumeData)
        work.said += data.messages if data else ()
        return work

    async def _work(
        self,
        input: AgentInput,  # noqa: A002 - see Agent
        begin: Callable[[], ChatRun],
    ) -> AsyncGenerator[AgentEvent, None]:
        work = begin()
        use_values(work.values)
        use_answers(work.hooks)
        with self._keeping(work):
            input = await self._chain.before_agent(input)  # noqa: A001 - see Agent
            share_conversation((*input.history, *input.messages), work.messages)
            if work.instruction is None:
                session = current_scope("ChatModelAgent").run.session
                work.instruction = await settle(self.name, self._instruction, session)
            while work.ending is None:
                answer = work.answer
                step = (
                    self._ask(input, work)
                    if answer is None
                    else self._run_tools(answer, planned_calls(answer), work)
                )
                async with aclosing(step) as events:
                    async for event in events:
                        yield event
            await self._end(work, work.ending)
            if work.ending.action is not None:
                key = f"{current_scope('ChatModelAgent').address}/a{work.rounds}"
                yield ActionEvent(**header(key), action=work.ending.action)

    @contextmanager
    def _keeping(self, work: ChatRun) -> Iterator[None]:
        """Store the progress of the run if a hook interrupts in the body."""
        address = current_scope("ChatModelAgent").address
        try:
            yield
        except InterruptSignal as signal:
            if (signal.point.address, signal.point.slot) == (address, ""):
                raise
            work.hooks.keep_early(self._chain.slots)
            self._wait(work, signal, *_kept_waiting(work))

    async def _end(self, work: ChatRun, ending: Ending) -> None:
        if self._output_key:
            current_scope("ChatModelAgent").run.session[self._output_key] = ending.text
        await self._chain.after_agent(ending.text)
        publish(*work.messages)

    async def _ask(self, input: AgentInput, work: ChatRun) -> AsyncGenerator[AgentEvent, None]:  # noqa: A002 - see Agent
        """Call the model, or read its answer from the journal."""
        scope = current_scope("ChatModelAgent")
        journal, number = scope.run.journal, work.rounds + 1
        at, key = f"{scope.address}#{number}", f"{scope.address}/m{number}"
        known = journal.find(MODEL, at)
        if known is not None:
            work.recall(known, scope.run.session)
        else:
            if work.draft is None:
                async with aclosing(self._request(input, key, work)) as deltas:
                    async for delta in deltas:
                        yield delta
            draft = cast("ModelResponse", work.draft)
            answer = await self._chain.after_model(draft)
            # Only the original draft is repaired; a hook may have replaced it or changed it in
            # place.
            work.add_answer(answer, is_repaired=not self._chain.has("after_model"))
            if journal.every_step:
                await journal.append(MODEL, at, work.note(scope.run.session))
        work.hooks.passed("before_model", "around_model", "after_model")
        answer = cast("ModelResponse", work.answer)
        calls = tuple(planned.call for planned in planned_calls(answer))
        is_kept = journal.every_step
        yield MessageEvent(
            **header(key),
            text=text_of(answer),
            tool_calls=calls,
            is_kept=is_kept,
            cut=cut_of(answer),
        )
        if calls and scope.run.cancel.wants("after_model"):
            self._stop_here("after_model", work)

    async def _request(
        self,
        input: AgentInput,  # noqa: A002 - see Agent
        key: str,
        work: ChatRun,
    ) -> AsyncGenerator[AgentEvent, None]:
        """Call the model in a cancellable task, and store its answer as the draft."""
        run = current_scope("ChatModelAgent").run
        if work.rounds >= self._max_iterations:
            raise StepLimitError(self.name, self._max_iterations)
        await run.journal.depend_on(run.cancel.check_halted())
        if run.cancel.wants("now") or (work.rounds and run.cancel.wants("after_tools")):
            self._stop_here("after_tools" if work.rounds else "now", work)
        messages = await self._chain.before_model([*input.history, *input.messages, *work.messages])
        pieces: asyncio.Queue[str | None] = asyncio.Queue()
        stream = TextStream(pieces.put_nowait) if run.streaming else None
        call = ModelCall(
            model=self._model, messages=messages, parameters=self._offer(work), stream=stream
        )
        request = asyncio.create_task(self._chain.around_model(call))
        request.add_done_callback(lambda _: pieces.put_nowait(None))
        try:
            with run.cancel.calling(partial(pieces.put_nowait, None)):
                while (piece := await pieces.get()) is not None:
                    yield TextDelta(**header(key), text=piece)
            if not request.done():
                self._stop_here("now", work)
            work.draft = repaired(self._answer(request), call_ids(work.messages))
        finally:
            await stop(request)

    def _answer(self, asked: asyncio.Task[ModelResponse]) -> ModelResponse:
        try:
            return asked.result()
        except AgentError:
            raise
        except Exception as error:
            # An error of the application, such as of its store, is no error of the model.
            current_scope("ChatModelAgent").run.journal.raise_failure()
            raise model_error(f"the model of agent {self.name!r}", error) from error

    async def _run_tools(
        self, answer: ModelResponse, calls: list[PlannedCall], work: ChatRun
    ) -> AsyncGenerator[AgentEvent, None]:
        if not calls:
            work.ending = Ending(text_of(answer))
            return
        batch = ToolBatch(
            calls,
            self._tools,
            work.results,
            why=text_of(answer),
            is_sequential=self._sequential_tools,
        )
        async with aclosing(batch.run()) as events:
            async for event in events:
                yield event
        if batch.signals:
            waiting = [planned.call for planned in calls if planned.call.id in batch.signals]
            gates = {name: self._gates_of(name) for name in {call.name for call in waiting}}
            work.gates = {call.id: gates[call.name] for call in waiting}
            self._wait(work, *batch.waiting())
        message = await self._chain.after_tools(results_message(calls, work))
        ending, is_told = self._ending(calls, work)
        work.add_results(message)
        work.hooks.passed("after_tools")
        if ending is None:
            return
        work.ending = ending
        if is_told:
            work.messages.append(ModelResponse(parts=[TextPart(ending.text)]))
            address = current_scope("ChatModelAgent").address
            yield MessageEvent(**header(f"{address}/d{work.rounds}"), text=ending.text)

    def _ending(self, calls: list[PlannedCall], work: ChatRun) -> tuple[Ending | None, bool]:
        """Return the ending that results cause, and whether a result is the final answer."""
        done = [(planned.call.name, work.results[planned.call.id]) for planned in calls]
        ran = [result for _, result in done if result.action and result.outcome is ToolOutcome.RAN]
        direct = [
            result
            for name, result in done
            if name in self._return_directly and result.outcome not in _MODELS_FAULT
        ]
        direct += [result for result in ran[:1] if isinstance(result.action, Exit) and result.text]
        if not ran and not direct:
            return None, False
        text = well_formed(direct[0].text) if direct else ""
        return Ending(text, ran[0].action if ran else None), bool(direct)

    def _wait(self, work: ChatRun, *signals: InterruptSignal) -> NoReturn:
        composite_interrupt(ChatInterruptInfo(agent_name=self.name), work.freeze(), *signals)

    def _stop_here(self, mode: str, work: ChatRun) -> NoReturn:
        stateful_interrupt(CancelInfo(mode=mode), work.freeze())

    def _gates_of(self, name: str) -> list[str]:
        tool = self._tools.get(name)
        return list(tool.definition.gates) if tool else ["(no such tool)"]

    def _check_unchanged(self, work: ChatRun) -> None:
        """Refuse to resume if the gate or the middleware that interrupted is gone."""
        scope = current_scope("ChatModelAgent")
        calls = planned_calls(work.answer) if work.answer else []
        gates = {
            name: self._gates_of(name)
            for name in {planned_call.call.name for planned_call in calls}
        }
        for planned in calls:
            before, now = work.gates.get(planned.call.id), gates[planned.call.name]
            if before is None or before == now:
                continue
            address = call_address(planned.call)
            if scope.run.untouched(address) is None:
                was, current = (", ".join(gates) or "no gate" for gates in (before, now))
                keep_waiting(AgentChangedError(str(address), was, current))
        known = self._chain.slots | self._chain.doubt_slots
        for child in scope.point.children if scope.point else ():
            if child.address == scope.address and child.slot not in known:
                was = f"the hook {child.slot!r}"
                keep_waiting(AgentChangedError(str(child.address), was, "no such hook"))

    def _offer(self, work: ChatRun) -> ModelRequestParameters:
        definitions = [
            ToolDefinition(
                name=tool.definition.name,
                description=tool.definition.description,
                parameters_json_schema=dict(tool.definition.schema),
            )
            for tool in self._tools.values()
        ]
        text = render(self._instruction, work.instruction)
        parts = [InstructionPart(content=text)] if text else None
        return ModelRequestParameters(function_tools=definitions, instruction_parts=parts)


def _by_name(agent_name: str, tools: Sequence[Tool]) -> Mapping[str, Tool]:
    tools_by_name: dict[str, Tool] = {}
    for tool in tools:
        name = tool.definition.name
        if name in tools_by_name:
            raise DuplicateNameError(agent_name, "tool", name)
        tools_by_name[name] = tool
    return tools_by_name


def _known(agent_name: str, names: Collection[str], tools: Mapping[str, Tool]) -> frozenset[str]:
    wanted = {names} if isinstance(names, str) else set(names)
    unknown = sorted(wanted - set(tools))
    if unknown:
        raise AgentConfigError(
            f"agent {agent_name!r} shall return the result of {unknown[0]!r} directly, and has no "
            f"such tool; its tools are: {', '.join(sorted(tools)) or 'none'}"
        )
    return frozenset(wanted)


def _kept_waiting(work: ChatRun) -> Iterator[InterruptSignal]:
    """Return the interrupts of pending calls, unchanged, while a hook interrupts."""
    run = current_scope("ChatModelAgent").run
    for planned in planned_calls(work.answer) if work.answer else ():
        point = run.topmost(call_address(planned.call))
        if point is None or planned.call.id in work.results:
            continue
        fault = "a middleware of its agent asks people first; answer that, then this again"
        refusals = (ResumeDataError(f"{point.address} waits on: {fault}", target=point.id),)
        yield InterruptSignal(point, refusals if run.is_live(point) else ())
