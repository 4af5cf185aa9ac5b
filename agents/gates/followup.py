"""The follow-up tool: the model asks people for information."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, cast

from pydantic import Field

from agents.core.asking.answers import ANY_OUTCOME, Cancelled, Expired
from agents.core.asking.infos import FollowUpInfo
from agents.core.calls import ToolReturn
from agents.core.codec import Json
from agents.core.component.state import get_interrupt_state, get_resume_context
from agents.core.interrupt import check_answer, interrupt
from agents.core.observers import ToolOutcome
from agents.core.tools import CallText, Tool, ToolSpec
from agents.tools.schema import Parameters, parameters
from agents.tools.texts import unanswered_text

FOLLOW_UP_NAME = "ask_people"
_DESCRIPTION = (
    "Asks people what only they know. Ask everything that is missing at once, never guess, and "
    "do not ask for permission: tools that need it ask by themselves."
)
_Question = Annotated[str, Field(min_length=1, max_length=300, pattern=r"\S")]


@dataclass(frozen=True, slots=True)
class FollowUpTool:
    """A tool that asks people questions and returns their answer."""

    definition: ToolSpec
    parameters: Parameters

    def validate(self, arguments: Mapping[str, object]) -> dict[str, Json]:
        """Validate arguments; see `Tool.validate`."""
        return self.parameters.canonical(arguments)

    def describe(self, arguments: Mapping[str, Json]) -> CallText:
        """Describe a call for people; see `Tool.describe`."""
        count = len(cast("list[str]", arguments["questions"]))
        return CallText(title=f"Answer {count} {'question' if count == 1 else 'questions'}")

    async def call(self, arguments: dict[str, Json]) -> ToolReturn:
        """Ask people and return their answer; see `Tool.call`.

        Raises:
            InterruptSignal: People are asked.
        """
        questions = tuple(cast("list[str]", arguments["questions"]))
        info = FollowUpInfo(questions=questions, about=str(arguments.get("about") or ""))
        was_interrupted, _, _ = get_interrupt_state(object)
        is_target, _, answer = get_resume_context(ANY_OUTCOME)
        if not (was_interrupted and is_target):
            interrupt(info)
        check_answer(info, answer)
        match answer:
            case Expired():
                return ToolReturn(unanswered_text(answer), ToolOutcome.EXPIRED)
            case Cancelled():
                return ToolReturn(unanswered_text(answer), ToolOutcome.CANCELLED)
            case FollowUpInfo(user_answer=text):
                return ToolReturn(text, ToolOutcome.ANSWERED)
            case _:
                return ToolReturn(cast("str", answer), ToolOutcome.ANSWERED)


def follow_up_tool(name: str = FOLLOW_UP_NAME, description: str = _DESCRIPTION) -> Tool:
    """Make a tool by which the model asks people up to five questions at once.

    Args:
        name: Name of the tool for the model.
        description: What the tool does, for the model.
    """
    signature = _parameters()
    return FollowUpTool(
        ToolSpec(name=name, description=description, schema=signature.schema, idempotent=True),
        signature,
    )


@cache
def _parameters() -> Parameters:
    return parameters(_questions)


def _questions(
    questions: Annotated[list[_Question], Field(min_length=1, max_length=5)],
    about: Annotated[str, Field(max_length=60)] = "",
) -> None:
    """Only its signature is used.

    Args:
        questions: One thing each, in the order in which people should answer.
        about: What several questions are about, as in "2 questions about …": a few words.
    """
