"""A middleware that does the same in each of its hooks."""

from __future__ import annotations

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse

from agents.agent import AgentInput
from agents.middlewares.base import CallNext, Middleware, ModelCall

HOOKS = (
    "before_agent",
    "before_model",
    "around_model",
    "after_model",
    "after_tools",
    "after_agent",
)


class InEachHook(Middleware):
    """Calls `at` with the name of each hook, and changes nothing."""

    def at(self, hook: str) -> None:
        """Do what a test wants done in this hook."""

    async def before_agent(self, input: AgentInput) -> AgentInput:  # noqa: A002
        self.at("before_agent")
        return await super().before_agent(input)

    async def before_model(self, messages: list[ModelMessage]) -> list[ModelMessage]:
        self.at("before_model")
        return await super().before_model(messages)

    async def around_model(self, call: ModelCall, call_next: CallNext) -> ModelResponse:
        self.at("around_model")
        return await super().around_model(call, call_next)

    async def after_model(self, response: ModelResponse) -> ModelResponse:
        self.at("after_model")
        return await super().after_model(response)

    async def after_tools(self, message: ModelRequest) -> ModelRequest:
        self.at("after_tools")
        return await super().after_tools(message)

    async def after_agent(self, text: str) -> None:
        self.at("after_agent")
        await super().after_agent(text)
