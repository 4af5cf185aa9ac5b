"""A request as the server tells it, its decision, and the errors that say how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from countersign_client.canonical import digest
from countersign_client.errors import CountersignError

Status = (
    Literal["pending", "approved", "rejected", "answered", "expired", "cancelled", "failed"] | str
)
ExecutionMode = Literal["once", "idempotent", "none"]

NOT_USABLE = "not-usable"
"""Code of `DecisionLapsed` where no start was refused, because the request has none."""


class _Record(BaseModel):
    """A part of an answer: frozen, and with members that this version does not know."""

    model_config = ConfigDict(frozen=True, extra="allow")


class Person(_Record):
    """A person, by Slack's user id, with the name that Slack showed at that time."""

    id: str
    name: str


class Change(_Record):
    """An argument that people changed; `path` is a JSON pointer into the arguments."""

    path: str
    before: Any = None
    after: Any = None


class Decision(_Record):
    """The decision of people, or of a rule. `arguments` are complete: run these and no others.

    Attributes:
        outcome: What was decided.
        source: Who decided: people, a rule of the policy, a standing grant, or break-glass.
        by: Everybody whose vote counted; empty for a rule.
        at: When, aware.
        rule: The rule of the policy that asked, allowed or denied.
        reason: What the people wrote, if they wrote something.
        tool: The tool; None for a question.
        arguments: The arguments to run; None for a question.
        edited: Whether people changed arguments.
        changes: What they changed.
        answer: Text, the value of an option or a list of them, or the object of a form.
        digest: See `countersign_client.digest`.
        usable_until: When the decision lapses, aware.
        usable: Whether it might be acted on when it was read.
    """

    outcome: Literal["approved", "rejected", "answered"] | str
    source: Literal["people", "policy", "grant", "break_glass"] | str
    by: tuple[Person, ...]
    at: datetime
    rule: str | None = None
    reason: str | None = None
    tool: str | None = None
    arguments: dict[str, Any] | None = None
    edited: bool = False
    changes: tuple[Change, ...] = ()
    answer: Any = None
    digest: str | None = None
    usable_until: datetime | None = None
    usable: bool = False


class Execution(_Record):
    """The execution of an approved call.

    Attributes:
        mode: `once`, `idempotent`, or `none` if there is no start.
        state: waiting, ready, started, ran, failed, not_run, unknown or lapsed.
        execution_id: The same over repeated starts: hand it on as idempotency key.
        generation: Counts the starts.
        summary: What the program reported.
        deadline: When people are asked what happened, unless something is reported; aware.
    """

    mode: ExecutionMode | str
    state: str
    execution_id: str | None = None
    generation: int = 0
    summary: str | None = None
    deadline: datetime | None = None


class Failure(_Record):
    """Why people could not be asked; `code` is a stable word such as `nobody-can-decide`."""

    code: str = "unknown"
    detail: str = ""


class Request(_Record):
    """A question of a program, as it stood when the server answered.

    Attributes:
        id: `apr_` and 32 hexadecimal digits.
        kind: approval, edit, question, choice or form.
        status: pending, or how it ended. A status that this version does not know is an end, and
            no approval.
        revision: Rises with each change.
        url: A page for people; it shows, and never decides.
        title: As asked.
        tool: As asked.
        arguments: As asked; those to run are in the decision.
        created_at: When it was asked, aware; None if the server did not say.
        expires_at: When it ends without a decision, aware.
        decision: None until it is decided, and if nobody decided.
        execution: What became of the call.
        failure: Why people could not be asked; None if they were.
        state: The program's own text, as it was given.
        metadata: The program's own texts by name.
    """

    id: str
    kind: str
    status: Status
    revision: int
    url: str
    title: str
    tool: str | None = None
    arguments: dict[str, Any] | None = None
    created_at: datetime | None = None
    expires_at: datetime
    decision: Decision | None = None
    execution: Execution
    failure: Failure | None = None
    state: str | None = None
    metadata: dict[str, str] = Field(default_factory=dict)

    @property
    def is_over(self) -> bool:
        """Whether nothing but its execution can change; also for a status that is unknown here."""
        return self.status != "pending"

    def not_approved(self) -> NotApproved:
        """Make the error of a request that ended without an approval or an answer."""
        return _END.get(self.status, NotApproved)(self)

    def approved(self) -> Decision:
        """Give the decision of an approved request.

        Returns:
            The decision.

        Raises:
            NotApproved: It is not approved: Rejected, Expired, Cancelled, Failed or StillPending.
            DecisionLapsed: It is approved and has no start, and could not be acted on any more
                when it was read.
        """
        decision = self.decision
        if self.status != "approved" or decision is None or decision.outcome != "approved":
            raise self.not_approved()
        if self.execution.mode == "none" and not decision.usable:
            raise DecisionLapsed(NOT_USABLE, self)
        return decision

    def answered(self) -> Decision:
        """Give the decision of an answered question.

        Returns:
            The decision; `answer` is what people said.

        Raises:
            NotApproved: Nobody answered: Expired, Cancelled, Failed or StillPending.
        """
        decision = self.decision
        if self.status != "answered" or decision is None or decision.outcome != "answered":
            raise self.not_approved()
        return decision

    def check(self, tool: str, arguments: Mapping[str, Any]) -> None:
        """Compare what is about to run with what was approved.

        Args:
            tool: The tool that is about to run.
            arguments: Its arguments, all of them.

        Raises:
            NotApproved: As `approved`.
            DigestMismatch: Something else was approved.
        """
        if digest(self.id, tool, arguments) != self.approved().digest:
            raise DigestMismatch("digest-mismatch", self)


class NotApproved(CountersignError):
    """People did not agree, or nobody answered. Most programs catch this one alone.

    Attributes:
        request: The request as it ended.
    """

    request: Request
    _ended = "is not approved (its status is {status})"

    def __init__(self, request: Request) -> None:
        self.request = request
        text = self._ended.format(status=request.status)
        super().__init__(f"{request.title!r} {text}{self._more()}; see {request.url}")

    def _more(self) -> str:
        return ""


class Rejected(NotApproved):
    """Somebody said no, or a rule did; `request.decision.source` tells which.

    Attributes:
        reason: What they wrote; None if they wrote nothing.
    """

    _ended = "was rejected"
    reason: str | None

    def __init__(self, request: Request) -> None:
        self.reason = request.decision.reason if request.decision else None
        super().__init__(request)

    def _more(self) -> str:
        return f": {self.reason}" if self.reason else ""


class Expired(NotApproved):
    """Nobody answered in time. This is no rejection."""

    _ended = "expired: nobody answered in time"


class Cancelled(NotApproved):
    """The program, or the person for whom it asked, withdrew it."""

    _ended = "was cancelled"


class Failed(NotApproved):
    """People could not be asked.

    Attributes:
        code: Why, a stable word such as `nobody-can-decide`.
    """

    _ended = "failed: people could not be asked"
    code: str

    def __init__(self, request: Request) -> None:
        self._failure = request.failure or Failure()
        self.code = self._failure.code
        super().__init__(request)

    def _more(self) -> str:
        return f" ({self.code}): {self._failure.detail}".rstrip(": ")


class StillPending(NotApproved):
    """The wait ended before the request did. The request lives: `wait(request.id)` goes on."""

    _ended = "is still pending"


_END: dict[str, type[NotApproved]] = {
    "pending": StillPending,
    "rejected": Rejected,
    "expired": Expired,
    "cancelled": Cancelled,
    "failed": Failed,
}


class NotStarted(CountersignError):
    """The start of an approved call was refused. Nothing ran.

    Attributes:
        code: Why, a stable word such as `decider-not-entitled`.
        request: The request as it stands.
    """

    code: str
    request: Request
    _refused = "must not start"
    _remedy = ""

    def __init__(self, code: str, request: Request, detail: str | None = None) -> None:
        self.code = code
        self.request = request
        more = f": {detail.rstrip('.')}" if detail else ""
        sentence = f"{request.title!r} {self._refused} ({code}){more}; see {request.url}"
        super().__init__(sentence + self._remedy)


class AlreadyStarted(NotStarted):
    """Another process began it. Only people or its log know whether it ran."""

    _refused = "was started before"
    _remedy = " for whether it ran. To run it again, ask with another key"


class DecisionLapsed(NotStarted):
    """It was approved, but too long ago, or a freeze or the policy forbids it now."""

    _refused = "was approved, but may not run now"


class Frozen(NotStarted):
    """An admin has frozen all starts."""

    _refused = "cannot start, because an admin has frozen all starts"


class DigestMismatch(NotStarted):
    """The call that is about to run is not the one that was approved."""

    _refused = "was approved for another call than this one"


_REFUSED: dict[str, type[NotStarted]] = {
    "already-started": AlreadyStarted,
    "decision-lapsed": DecisionLapsed,
    "frozen": Frozen,
    "digest-mismatch": DigestMismatch,
}


def not_started(code: str, request: Request, detail: str | None = None) -> NotStarted:
    """Make the error of a refused start.

    Args:
        code: The code of the server's answer.
        request: The request as it stands.
        detail: What the server says about it.
    """
    return _REFUSED.get(code, NotStarted)(code, request, detail)
