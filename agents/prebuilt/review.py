"""The reviewer of a feedback loop: people request changes or accept the text."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace

from agents.agent import AgentEvent, AgentInput, make_action, make_message
from agents.core.asking.answers import ANY_OUTCOME, Cancelled, Expired
from agents.core.calls import BreakLoop, Exit
from agents.core.component.context import session_values
from agents.core.component.state import get_interrupt_state, get_resume_context
from agents.core.errors import AgentConfigError, CheckpointDecodeError
from agents.core.interrupt import check_answer, stateful_interrupt
from agents.gates.questions import FeedbackInfo

CONTENT_KEY = "content_to_review"


class ReviewAgent:
    """Shows people a text of another agent and returns their feedback.

    Put the agent behind the writer in a loop. The writer stores its text in a session value
    (`output_key`), people are asked with `FeedbackInfo`, and the writer reads their feedback in the
    next round. The loop ends when people accept the text. If the request expires or is cancelled,
    the loop also ends, and the agent says that nobody approved the text.

    Args:
        name: Unique among its siblings; part of addresses.
        content_key: The session value with the text.
        when_done: `Exit()` ends all enclosing workflows, as in Eino's example; `BreakLoop()` ends
            only the loop.
        description: What the agent is good at, for models that may call it.
        title: Title of the text for people; may be empty.
    """

    def __init__(
        self,
        name: str = "ReviewerAgent",
        *,
        content_key: str = CONTENT_KEY,
        when_done: Exit | BreakLoop | None = None,
        description: str = "Asks people for feedback on a text.",
        title: str = "",
    ) -> None:
        self.name = name
        self.description = description
        self._content_key = content_key
        self._when_done = when_done or Exit()
        self._title = title

    def run(self, input: AgentInput) -> AsyncGenerator[AgentEvent, None]:  # noqa: A002, ARG002 - see Agent
        """Request feedback; see `Agent.run`.

        Raises:
            AgentConfigError: The session value with the text is empty.
        """
        return self._review()

    @property
    def idempotent(self) -> bool:
        """True: the agent only returns feedback; see `Agent`."""
        return True

    def resume(self, input: AgentInput) -> AsyncGenerator[AgentEvent, None]:  # noqa: A002, ARG002 - see Agent
        """Return people's feedback; see `Agent.resume`."""
        return self._review()

    async def _review(self) -> AsyncGenerator[AgentEvent, None]:
        was_interrupted, _, info = get_interrupt_state(FeedbackInfo)
        if not was_interrupted:
            asked = self._asked()
            stateful_interrupt(asked, asked)
        if info is None:
            raise CheckpointDecodeError(f"agent {self.name!r} has lost what it asked")
        is_target, _, answer = get_resume_context(ANY_OUTCOME)
        if not is_target:
            stateful_interrupt(info, info)
        check_answer(info, answer)
        text = _text_for_agents(answer)
        self._remember(info, text if _is_feedback(answer) else None)
        if text:
            yield make_message(text, is_heard=_is_feedback(answer))
        if not _is_feedback(answer):
            yield make_action(self._when_done)

    def _asked(self) -> FeedbackInfo:
        """Return the next request; after round one with the last text and feedback."""
        info = FeedbackInfo(original_content=self._content(), title=self._title)
        last = session_values().get(self._round_key)
        if not isinstance(last, FeedbackInfo):
            return info
        return replace(
            info,
            version=last.version + 1,
            previous=last.original_content,
            wanted=last.feedback,
        )

    def _remember(self, info: FeedbackInfo, wish: str | None) -> None:
        """Store the round for the next one, or delete it when the loop ends."""
        values = session_values()
        if wish is not None:
            values[self._round_key] = replace(info, feedback=wish, previous=None, wanted=None)
        else:
            values.pop(self._round_key, None)

    @property
    def _round_key(self) -> str:
        return f"{self._content_key}.round"

    def _content(self) -> str:
        content = session_values().get(self._content_key)
        if not isinstance(content, str) or not content.strip():
            raise AgentConfigError(
                f"agent {self.name!r} finds no text in the session value {self._content_key!r}; "
                f"give the writer `output_key={self._content_key!r}`"
            )
        return content


def _is_feedback(answer: object) -> bool:
    match answer:
        case Expired() | Cancelled() | FeedbackInfo(no_need_to_edit=True):
            return False
        case _:
            return True


def _text_for_agents(answer: object) -> str:
    match answer:
        case Expired():
            return "Nobody gave feedback in time. Nobody has agreed to the text, either."
        case Cancelled(fact=fact):
            return f"{fact}. Nobody has agreed to the text."
        case FeedbackInfo(no_need_to_edit=True):
            return ""
        case FeedbackInfo(feedback=text):
            return text or ""
        case _:
            return str(answer)
