"""Answers that fit every standard question, and the question about a call in doubt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from agents.codec import Json, register
from agents.errors import ResumeDataError


@register("countersign.expired/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class Expired:
    """Nobody answered in time. It is not a rejection, and nothing runs.

    Attributes:
        waited: How long, in words; may be empty.
    """

    waited: str = ""


@register("countersign.cancelled/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelled:
    """The question was taken back. Nothing runs.

    Attributes:
        by: Who took it back; may be empty.
        reason: Why; may be empty.
    """

    by: str = ""
    reason: str = ""


@register("countersign.doubt_result/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class DoubtResult:
    """What people say about a call of which nobody knew whether it ran.

    Attributes:
        choice: It ran; run it again; or leave it, unknown.
        result: What it gave back, when it ran.
        by: Who says so.
    """

    choice: Literal["ran", "again", "give_up"]
    result: str | None = None
    by: str | None = None


@register("countersign.doubt_info/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class DoubtInfo:
    """An approved call had started when its process died: did it run?

    Attributes:
        tool_name: Which tool.
        arguments: What it was started with.
        title: The call in words.
        call_id: Of the call.
    """

    tool_name: str
    arguments: Mapping[str, Json] = field(default_factory=dict)
    title: str = ""
    call_id: str = ""

    def check_answer(self, answer: object) -> None:
        """Take a `DoubtResult` with a known choice, or the end of the question.

        Raises:
            ResumeDataError: It is something else.
        """
        if isinstance(answer, Expired | Cancelled):
            return
        if not isinstance(answer, DoubtResult) or answer.choice not in {"ran", "again", "give_up"}:
            raise ResumeDataError(
                f"the question whether {self.tool_name!r} ran needs a DoubtResult with the choice "
                "'ran', 'again' or 'give_up'; nothing ran"
            )
