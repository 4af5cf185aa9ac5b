"""Requests about a call, with the answers that fit them.

An info checks its answers (`check_answer`) before anything runs. Its other methods (`approve`,
`reject`, `edit`, …) create answers that fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import ClassVar, TypeAlias

from agents.core.asking.answers import (
    ApprovalResult,
    Cancelled,
    Expired,
    InDoubtResult,
    ReviewEditResult,
)
from agents.core.codec import Json, register
from agents.core.digest import call_digest, rule_in
from agents.core.errors import ResumeDataError, ToolError


class RuntimeInfo:
    """Base of infos that only a part of the runtime asks with.

    This part checks the approval when the approved work starts. With the same info, another
    component would get an approval that nothing checks.

    Attributes:
        asked_in: Pattern of the state slots of the part.
        use_instead: What another component uses instead.
    """

    __slots__ = ()
    asked_in: ClassVar[str]
    use_instead: ClassVar[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallInfo(RuntimeInfo):
    """A pending call: what every gate shows.

    Attributes:
        tool_name: Name of the tool.
        arguments: Validated arguments with defaults filled in.
        call_id: Id of the call in the model's answer.
        title: Verb and object, one line.
        why: The model's text beside the call; may be empty. Untrusted.
        preview: The expected effect, from the tool's author; may be empty.
        schema: JSON schema of the arguments.
        digest: Digest of thread, address, tool, arguments, rule and terms; see `call_digest`.
        rule: Name of the rule that requires approval.
        thread: Checkpoint id of the run.
        address: Address of the call, as text.
        reason: Reason of the policy for the request; may be empty.
        approvers: Approvers that the policy names; empty leaves the choice to the application.
        expires_in: Time to expiry by policy; None leaves it to the application.
        remind_in: Time to the reminder by policy; None leaves it to the application.
        escalate_in: Time to the escalation by policy; None leaves it to the application.
        backups: Additional approvers after an escalation by policy; empty leaves the choice to the
            application.
        ruling: The complete terms, as `Ask.to_text` writes them.
        exclude_editors: Whether a person who edits the call cannot approve it.
        counted: Voters of another gate or rule of this call. They cannot decide here.
        edited_by: Who edited these arguments last; empty if the model wrote them or the editor is
            unknown.
        editors: Everyone who made earlier edits of the arguments.
        original: Arguments of the first request; None if they were never edited.
        asked_again: Why approval is requested again; empty for the first request.
        secret: Names of arguments that people never see; see `ToolSpec`.
        shown: Names of arguments that look secret, but are not.
        terms: The complete terms in the application's own form; see `Ask.terms`. Empty without a
            policy of the application.
        named: Names of the arguments that the title contains; see `CallText`.
        leaves: Whether people outside of the company see the effect; see `EXTERNAL`.
    """

    asked_in: ClassVar[str] = r"gate(\d+|\.house)"
    use_instead: ClassVar[str] = (
        'a gate around the tool, as in @tool(gate="approval"), or in a node '
        "node_interrupt(..., response_type=ApprovalResult)"
    )

    tool_name: str
    arguments: dict[str, Json]
    call_id: str
    title: str
    why: str
    preview: str
    schema: dict[str, Json]
    digest: str
    rule: str
    thread: str
    address: str
    reason: str = ""
    approvers: tuple[str, ...] = ()
    expires_in: timedelta | None = None
    remind_in: timedelta | None = None
    escalate_in: timedelta | None = None
    backups: tuple[str, ...] = ()
    ruling: str = ""
    exclude_editors: bool = False
    counted: tuple[str, ...] = ()
    edited_by: str = ""
    editors: tuple[str, ...] = ()
    original: dict[str, Json] | None = None
    asked_again: str = ""
    secret: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    terms: str = ""
    named: tuple[str, ...] = ()
    leaves: bool = False

    def __str__(self) -> str:
        return f"{self.title}: may this call of {self.tool_name!r} run?"

    def digest_of(self, arguments: Mapping[str, Json], *, ruling: str | None = None) -> str:
        """Return the digest of this call with other arguments.

        Args:
            arguments: All arguments.
            ruling: Other terms. None uses the terms of this request.

        Raises:
            ResumeDataError: The arguments are not JSON data.
        """
        try:
            return call_digest(
                thread=self.thread,
                address=self.address,
                tool=self.tool_name,
                arguments=arguments,
                rule=rule_in(ruling) if ruling else self.rule,
                ruling=ruling or self.ruling,
            )
        except ToolError as error:
            raise ResumeDataError(f"{self.tool_name!r} cannot run with these: {error}") from error

    def check_digest(self, given: str | None, expected: str) -> None:
        """Refuse a decision without this digest."""
        if not given or given != expected:
            raise ResumeDataError(
                f"the decision about {self.tool_name!r} is not bound to what was shown: "
                f"expected digest {expected[:12]}…, got {(given or 'none')[:12]}; "
                "make the answer by the request, as in `request.info.approve(by=…)`"
            )


@register("countersign.approval_info/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalInfo(CallInfo):
    """Requests approval of a call. Stored: version 1, must stay readable."""

    def approve(self, *, by: str | None = None) -> ApprovalResult:
        """Approve the call as shown."""
        return ApprovalResult(approved=True, digest=self.digest, by=by)

    def reject(self, reason: str | None = None, *, by: str | None = None) -> ApprovalResult:
        """Reject the call."""
        return ApprovalResult(approved=False, reason=reason, digest=self.digest, by=by)

    def check_answer(self, answer: object) -> None:
        """Refuse an answer that does not fit this request.

        Raises:
            ResumeDataError: The answer has the wrong type or approves another call.
        """
        match answer:
            case ApprovalResult(approved=True):
                self.check_digest(answer.digest, self.digest)
            case ApprovalResult() | Expired() | Cancelled():
                pass
            case _:
                raise wrong_answer(self.tool_name, answer, "ApprovalResult")


@register("countersign.review_info/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewEditInfo(CallInfo):
    """Requests approval of a call that may be edited.

    Stored: version 1, must stay readable.
    """

    def accept(self, *, by: str | None = None) -> ReviewEditResult:
        """Approve the call as shown."""
        return ReviewEditResult(no_need_to_edit=True, digest=self.digest, by=by)

    def edit(self, arguments: dict[str, Json], *, by: str | None = None) -> ReviewEditResult:
        """Approve the call with these arguments. Include unchanged ones."""
        digest = self.digest_of(arguments)
        return ReviewEditResult(edited_arguments=arguments, digest=digest, by=by)

    def reject(self, reason: str | None = None, *, by: str | None = None) -> ReviewEditResult:
        """Reject the call."""
        return ReviewEditResult(
            disapproved=True, disapprove_reason=reason, digest=self.digest, by=by
        )

    def check_answer(self, answer: object) -> None:
        """Refuse an answer that does not fit this request.

        The gate checks whether edited arguments fit the tool.

        Raises:
            ResumeDataError: The answer has the wrong type, contains no choice, or its digest fits
                neither the shown nor the edited arguments.
        """
        match answer:
            case Expired() | Cancelled() | ReviewEditResult(disapproved=True):
                pass
            case ReviewEditResult(no_need_to_edit=True):
                self.check_digest(answer.digest, self.digest)
            case ReviewEditResult(edited_arguments=dict() as edited):
                self.check_digest(answer.digest, self.digest_of(edited, ruling=answer.ruling))
            case ReviewEditResult():
                raise ResumeDataError(
                    f"the review of {self.tool_name!r} chooses nothing; set edited_arguments, "
                    "no_need_to_edit, or disapproved"
                )
            case _:
                raise wrong_answer(self.tool_name, answer, "ReviewEditResult")


@register("countersign.follow_up_info/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class FollowUpInfo:
    """Asks people a question. The answer is a text, or this info with `user_answer`.

    Stored: version 1, must stay readable.

    Attributes:
        questions: At least one.
        user_answer: One answer to all questions; empty in a request.
        about: Subject in a few words; may be empty.
    """

    questions: tuple[str, ...]
    user_answer: str = ""
    about: str = ""

    def __str__(self) -> str:
        numbered = (f"{at}. {question}" for at, question in enumerate(self.questions, 1))
        return "\n".join(["The agent needs to know:", *numbered])

    def answer(self, text: str) -> FollowUpInfo:
        """Return this info with an answer."""
        return FollowUpInfo(questions=self.questions, user_answer=text, about=self.about)

    def check_answer(self, answer: object) -> None:
        """Refuse an empty answer.

        Raises:
            ResumeDataError: The answer is empty or has the wrong type.
        """
        text = answer.user_answer if isinstance(answer, FollowUpInfo) else answer
        if isinstance(text, str):
            if not text.strip():
                raise ResumeDataError("the answer is empty; give a text, or `Expired`")
        elif not isinstance(answer, Expired | Cancelled):
            raise wrong_answer("the question", answer, "FollowUpInfo or a text")


@register("countersign.parked_info/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class ParkedInfo:
    """A call that may run, and that the application lets wait; people are asked nothing.

    The application resumes it with True, and its start is judged again. Stored: version 1, must
    stay readable.

    Attributes:
        tool_name: Name of the tool.
        title: Verb and object, one line.
        tags: Tags of the tool.
        why: Why it waits, for people.
        kept: Data of the application; see `agents.core.scope.Park`.
    """

    tool_name: str
    title: str
    tags: tuple[str, ...] = ()
    why: str
    kept: dict[str, Json] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.title}: it waits. {self.why}"

    def check_answer(self, answer: object) -> None:
        """Refuse an answer that does not fit this request.

        Raises:
            ResumeDataError: The answer has the wrong type.
        """
        is_no = isinstance(answer, ApprovalResult) and not answer.approved
        if answer is not True and not is_no and not isinstance(answer, Expired | Cancelled):
            raise wrong_answer(self.tool_name, answer, "True or a rejection")


@register("countersign.in_doubt_info/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class InDoubtInfo:
    """Asks for the outcome of an approved call that started and did not finish.

    Its process died while it ran, or it reached its limit of time.

    Stored: version 1, must stay readable.

    Attributes:
        tool_name: Name of the tool.
        arguments: The approved arguments of the call.
        title: Verb and object, one line.
        call_id: Id of the call in the model's answer.
        frozen: Data that the application stored at the start of the call, such as its approvers;
            may be empty. See `Runner`, `before_start`.
        asked_again: Why people are asked again; empty for the first request.
        secret: Names of arguments that people never see; see `ToolSpec`.
        shown: Names of arguments that look secret, but are not.
        limit: The limit of time that the call reached; None if its process died or was stopped.
    """

    tool_name: str
    arguments: dict[str, Json]
    title: str
    call_id: str
    frozen: dict[str, Json] = field(default_factory=dict)
    asked_again: str = ""
    secret: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    limit: timedelta | None = None

    def __str__(self) -> str:
        if self.limit is not None:
            seconds = self.limit.total_seconds()
            return f"{self.title}: it did not finish within {seconds:g} seconds. What happened?"
        return f"{self.title}: it was started, and nobody knows whether it ran. What happened?"

    def check_answer(self, answer: object) -> None:
        """Refuse an answer that does not fit this request.

        Raises:
            ResumeDataError: The answer has the wrong type.
        """
        if not isinstance(answer, InDoubtResult | Expired | Cancelled):
            raise wrong_answer(self.tool_name, answer, "InDoubtResult")


Answer: TypeAlias = (
    ApprovalResult | ReviewEditResult | FollowUpInfo | InDoubtResult | Expired | Cancelled | str
)
"""All types that answer an info of this module."""


def wrong_answer(about: str, answer: object, expected: str) -> ResumeDataError:
    """Return the error for an answer of the wrong type."""
    return ResumeDataError(
        f"cannot go on with {about}: expected {expected}, Expired or Cancelled, "
        f"got {type(answer).__name__}; nothing ran; a method of `request.info` makes an answer "
        "that fits"
    )
