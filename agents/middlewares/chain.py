"""The chain of an agent's middlewares: runs their hooks in order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TypeVar, cast

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse

from agents.agent import AgentInput
from agents.core.asking.limits import ModelBudget
from agents.core.component.doubts import begin_answered, has_new_answer
from agents.core.component.exits import contained
from agents.core.component.state import runtime_slot
from agents.core.errors import AgentConfigError
from agents.core.interrupt import ungrouped
from agents.core.scope import current_scope
from agents.core.tools import Tool, check_tool
from agents.middlewares.base import CallNext, Middleware, ModelCall, ask_model
from agents.middlewares.limits import LIMIT_SLOT, keep_within
from agents.runs.hook_answers import hook_answers

T = TypeVar("T")
_HOOKS = (
    "before_agent",
    "before_model",
    "around_model",
    "after_model",
    "after_tools",
    "after_agent",
)


class Chain:
    """Runs the hooks of several middlewares, each hook in its own state slot.

    Attributes:
        slots: Slots of all hooks. Another slot in a stored state belongs to a removed middleware.
        doubt_slots: Slots of the questions whether a hook ran.
    """

    def __init__(self, middlewares: Sequence[Middleware]) -> None:
        self._all = tuple(middlewares)
        for middleware in self._all:
            if not isinstance(middleware, Middleware):
                raise AgentConfigError(
                    f"{middleware!r} is no middleware; give an instance of a class that derives "
                    "from `Middleware`"
                )
        named = list(zip(_names(middlewares), middlewares, strict=True))
        self._hooks = {
            hook: [
                (f"{hook}:{name}", middleware)
                for name, middleware in named
                if _overrides(middleware, hook)
            ]
            for hook in _HOOKS
        }
        hooks = {slot for hooks in self._hooks.values() for slot, _ in hooks}
        self.slots = {*hooks, LIMIT_SLOT}
        self.doubt_slots = {_doubt_of(slot) for slot in hooks}

    def has(self, hook: str) -> bool:
        """Whether a middleware overrides this hook."""
        return bool(self._hooks[hook])

    def wrap(self, tools: Iterable[Tool]) -> list[Tool]:
        """Wrap each tool in all middlewares."""
        given = list(tools)
        for tool in given:
            check_tool(tool)
        names = {tool.definition.name for tool in given}
        tags = {tag for tool in given for tag in tool.definition.tags}
        for middleware in self._all:
            middleware.check_tools(names)
            middleware.check_tags(tags)
        return self.wrap_more(given)

    def wrap_more(self, tools: Iterable[Tool]) -> list[Tool]:
        """Wrap additional tools in all middlewares."""
        return [self._wrapped(tool) for tool in tools]

    async def before_agent(self, input: AgentInput) -> AgentInput:  # noqa: A002 - see Agent
        """See `Middleware.before_agent`."""
        for slot, middleware in self._hooks["before_agent"]:
            with _hook(slot):
                if await _begins(slot, middleware):
                    input = _checked(slot, await middleware.before_agent(input), AgentInput)  # noqa: A001
        return input

    async def before_model(self, messages: list[ModelMessage]) -> list[ModelMessage]:
        """See `Middleware.before_model`."""
        for slot, middleware in self._hooks["before_model"]:
            with _hook(slot):
                if await _begins(slot, middleware):
                    messages = _checked(slot, await middleware.before_model(messages), list)
        return messages

    async def around_model(self, call: ModelCall) -> ModelResponse:
        """See `Middleware.around_model`."""
        ask: CallNext = _ask_within_limits
        # Built from the inside, so that the first middleware is the outermost.
        for slot, middleware in reversed(self._hooks["around_model"]):
            ask = partial(_around, slot, middleware, ask)
        with contained():
            return await ask(call)

    async def after_model(self, response: ModelResponse) -> ModelResponse:
        """See `Middleware.after_model`."""
        for slot, middleware in reversed(self._hooks["after_model"]):
            with _hook(slot):
                if await _begins(slot, middleware):
                    response = _checked(slot, await middleware.after_model(response), ModelResponse)
        return response

    async def after_tools(self, message: ModelRequest) -> ModelRequest:
        """See `Middleware.after_tools`."""
        for slot, middleware in reversed(self._hooks["after_tools"]):
            with _hook(slot):
                if await _begins(slot, middleware):
                    message = _checked(slot, await middleware.after_tools(message), ModelRequest)
        return message

    async def after_agent(self, text: str) -> None:
        """See `Middleware.after_agent`."""
        for slot, middleware in reversed(self._hooks["after_agent"]):
            with _hook(slot):
                if await _begins(slot, middleware):
                    await middleware.after_agent(text)

    def _wrapped(self, tool: Tool) -> Tool:
        check_tool(tool)
        for middleware in reversed(self._all):
            tool = middleware.wrap_tool(tool)
        return tool


@contextmanager
def _hook(slot: str) -> Iterator[None]:
    """Run a hook in its state slot. A repeated hook finds its answer there again."""
    with hook_answers().found_again(slot), runtime_slot(slot), ungrouped(), contained():
        yield


async def _around(
    slot: str, middleware: Middleware, ask: CallNext, call: ModelCall
) -> ModelResponse:
    with _hook(slot):
        if not await _begins(slot, middleware):
            return await ask(call)
        return _checked(slot, await middleware.around_model(call, ask), ModelResponse)


async def _ask_within_limits(call: ModelCall) -> ModelResponse:
    """Call the model, unless a limit is reached; count each answer, also those of retries."""
    run = current_scope("a model request").run
    if run.budget is None:
        return await ask_model(call)
    budget = cast("ModelBudget", run.budget)
    with _hook(LIMIT_SLOT):
        await keep_within(budget)
    answer = await ask_model(call)
    await run.journal.depend_on(budget.count(run.checkpoint_id, answer))
    return answer


async def _begins(slot: str, middleware: Middleware) -> bool:
    """Record that a hook starts with a new answer.

    Returns False if people say that the hook ran before a crash.
    """
    if middleware.idempotent:
        return True
    scope = current_scope("a hook")
    hook, name = slot.split(":", 1)
    return await begin_answered(
        name,
        f"Hook “{hook}” of “{name}”",
        at=f"{scope.address}/{slot}",
        slot=_doubt_of(slot),
        has_answer=has_new_answer(scope.run, scope.point),
        keeps_answers=True,
    )


def _doubt_of(slot: str) -> str:
    return f"{slot}/doubt"


def _checked(slot: str, value: object, kind: type[T]) -> T:
    """Refuse a hook's result of the wrong type, such as after a forgotten `return`."""
    if not isinstance(value, kind):
        hook, name = slot.split(":", 1)
        raise AgentConfigError(
            f"{hook} of middleware {name!r} gave back {type(value).__name__}, "
            f"expected {kind.__name__}; return what it got when nothing is to change"
        )
    return value


def _names(middlewares: Sequence[Middleware]) -> list[str]:
    """Return a unique name for each middleware, numbered where several share a name."""
    seen: Counter[str] = Counter()
    names = []
    for middleware in middlewares:
        seen[middleware.name] += 1
        names.append(
            middleware.name
            if seen[middleware.name] == 1
            else f"{middleware.name}#{seen[middleware.name]}"
        )
    return names


def _overrides(middleware: Middleware, hook: str) -> bool:
    return getattr(type(middleware), hook) is not getattr(Middleware, hook)
