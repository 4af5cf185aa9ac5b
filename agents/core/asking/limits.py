"""A limit of what models may use: the port that counts, and the request to go on beyond it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from pydantic_ai.messages import ModelResponse

from agents.core.asking.answers import ApprovalResult, Cancelled, Expired
from agents.core.asking.infos import wrong_answer
from agents.core.codec import register
from agents.core.digest import call_digest
from agents.core.errors import ResumeDataError

__all__ = ["LimitInfo", "ModelBudget"]


@register("countersign.limit_info/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class LimitInfo:
    """Asks whether a run may go on beyond a limit of what its models use.

    Stored: version 1, must stay readable.

    Attributes:
        limit: Name of the limit, such as `tokens` or `cost`.
        period: The period that it counts, such as a day; an approval is for this period alone.
        used: What was used in the period, in the unit of the limit.
        allowed: What may be used in the period.
        more: What an approval adds.
        title: What an approval permits, one line.
        text: What was used, one sentence.
        terms: The terms of the request in the application's own form; may be empty.
        digest: Digest of the request; the runtime sets it.
    """

    limit: str
    period: str
    used: int
    allowed: int
    more: int
    title: str
    text: str
    terms: str = ""
    digest: str = ""

    def __str__(self) -> str:
        return f"{self.text} {self.title}?"

    def bound(self, *, thread: str, address: str) -> LimitInfo:
        """Return the request with its digest, as the runtime asks it."""
        digest = call_digest(
            thread=thread,
            address=address,
            tool=f"(limit of {self.limit})",
            arguments={"period": self.period, "allowed": self.allowed, "more": self.more},
            rule="limit",
            ruling=self.terms,
        )
        return replace(self, digest=digest)

    def approve(self, *, by: str | None = None) -> ApprovalResult:
        """Let the run go on with the further amount."""
        return ApprovalResult(approved=True, digest=self.digest, by=by)

    def reject(self, reason: str | None = None, *, by: str | None = None) -> ApprovalResult:
        """End the run."""
        return ApprovalResult(approved=False, reason=reason, digest=self.digest, by=by)

    def check_answer(self, answer: object) -> None:
        """Refuse an answer that does not fit this request.

        Raises:
            ResumeDataError: The answer has the wrong type, or approves another request.
        """
        match answer:
            case ApprovalResult(approved=True):
                if answer.digest != self.digest:
                    raise ResumeDataError("the decision is not bound to what was shown; look again")
            case ApprovalResult() | Expired() | Cancelled():
                pass
            case _:
                raise wrong_answer(f"the limit of {self.limit}", answer, "ApprovalResult")


class ModelBudget(Protocol):
    """Counts what the models of a run use, and says when a limit is reached.

    An error of any method stops the run.
    """

    async def reached(self, checkpoint_id: str) -> LimitInfo | None:
        """Return the request for more before a model is asked; None below all limits.

        Raises:
            LimitReachedError: The limit is reached, and no one may extend it.
        """
        ...

    async def extend(self, checkpoint_id: str, approved: LimitInfo) -> None:
        """Record an approval: the period may use `allowed` and `more`.

        Called again with the same request after a crash, which must not add a second time.
        """
        ...

    async def count(self, checkpoint_id: str, response: ModelResponse) -> None:
        """Count what a model used for an answer. Called once for each answer."""
        ...
