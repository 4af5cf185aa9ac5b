"""Questions about a call, and the answers that fit them.

An info refuses answers that do not belong to it (`check_answer`), before anything runs. Its own
methods (`approve`, `reject`, `edit`, …) make answers that fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeAlias

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


@dataclass(frozen=True, slots=True, kw_only=True)
class CallInfo:
    """A call that waits for people: what every gate shows.

    Attributes:
        tool_name: The tool.
        arguments: Canonical arguments.
        call_id: Id of the call in the model's answer.
        title: Verb and object, one line.
        why: The model's own words beside the call; may be empty. Untrusted.
        preview: What will happen, from the tool's author; may be empty.
        schema: JSON schema of the arguments.
        digest: Digest of thread, address, tool, arguments, rule and ruling; see `call_digest`.
        rule: Name of the rule that asks.
        thread: Id of the checkpoint.
        address: Where in the run the call stands, as text.
        reason: Why people are asked, in the words of a policy; may be empty.
        approvers: Who should decide, by a policy; empty leaves it to the application.
        expires_in: How long to wait, by a policy; None leaves it to the application.
        remind_in: When to remind, by a policy; None leaves it to the application.
        escalate_in: When to ask the backup people, by a policy; None leaves it to the application.
        backups: Who should decide, too, once it has escalated, by a policy; empty leaves it to the
            application.
        ruling: All of the ruling that people are asked under, as `Ask.to_text` writes it. Empty in
            what was asked before there was one: it can be answered as it is shown, not edited.
        exclude_editors: Whether who edits the call cannot approve it, too.
        counted: Who was counted for the call already, in a gate around this one or under another
            rule of it: they cannot decide here.
        edited_by: Who made these arguments; empty when the model did, or nobody is named.
        editors: Who edited them before that, and so made a part of them.
        original: The arguments as people were first asked about them; None when nobody changed any.
        asked_again: Why people are asked anew; empty when they are not.
        secret: Names of arguments that people are never shown; see `ToolSpec`.
        shown: Names of arguments that are no secrets, whatever they look like.
        terms: All that is asked, in the application's own form; see `Ask.terms`. Empty where no
            policy of the application judges, and in what was asked before there was one.
        named: Names of the arguments that stand in the title; see `CallText`.
        leaves: Whether people outside of the company see what it does; see `EXTERNAL`.
    """

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
        """Compute the digest of this call with other arguments.

        Args:
            arguments: All of them.
            ruling: Another ruling that it is about; None is the one of this question.

        Raises:
            ResumeDataError: They are not JSON data.
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
        """Refuse a decision that is not bound to the call with this digest.

        Raises:
            ResumeDataError: It names none, or another.
        """
        if not given or given != expected:
            raise ResumeDataError(
                f"the decision about {self.tool_name!r} is not bound to what was shown: "
                f"expected digest {expected[:12]}…, got {(given or 'none')[:12]}; "
                "show the call again and decide again"
            )


@register("countersign.approval_info/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalInfo(CallInfo):
    """Asks whether a call may run. Stored: version 1, must stay readable."""

    def approve(self, *, by: str | None = None) -> ApprovalResult:
        """Let the call run as it is shown here."""
        return ApprovalResult(approved=True, digest=self.digest, by=by)

    def reject(self, reason: str | None = None, *, by: str | None = None) -> ApprovalResult:
        """Refuse the call."""
        return ApprovalResult(approved=False, reason=reason, digest=self.digest, by=by)

    def check_answer(self, answer: object) -> None:
        """Refuse an answer that does not belong to this question.

        Raises:
            ResumeDataError: It is of the wrong type, or approves something else than was shown.
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
    """Asks whether a call may run, as it is or edited. Stored: version 1, must stay readable."""

    def accept(self, *, by: str | None = None) -> ReviewEditResult:
        """Let the call run as it is shown here."""
        return ReviewEditResult(no_need_to_edit=True, digest=self.digest, by=by)

    def edit(self, arguments: dict[str, Json], *, by: str | None = None) -> ReviewEditResult:
        """Let the call run with these arguments; all must be given, changed or not."""
        digest = self.digest_of(arguments)
        return ReviewEditResult(edited_arguments=arguments, digest=digest, by=by)

    def reject(self, reason: str | None = None, *, by: str | None = None) -> ReviewEditResult:
        """Refuse the call."""
        return ReviewEditResult(
            disapproved=True, disapprove_reason=reason, digest=self.digest, by=by
        )

    def check_answer(self, answer: object) -> None:
        """Refuse an answer that does not belong to this question.

        Whether edited arguments fit the tool is checked by the gate.

        Raises:
            ResumeDataError: It is of the wrong type, chooses nothing, or does not cover what was
                shown or edited.
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
        user_answer: The answer to all of them; empty in a question.
        about: What they are about, in a few words; may be empty.
    """

    questions: tuple[str, ...]
    user_answer: str = ""
    about: str = ""

    def __str__(self) -> str:
        numbered = (f"{at}. {question}" for at, question in enumerate(self.questions, 1))
        return "\n".join(["The agent needs to know:", *numbered])

    def answer(self, text: str) -> FollowUpInfo:
        """Make the answer."""
        return FollowUpInfo(questions=self.questions, user_answer=text, about=self.about)

    def check_answer(self, answer: object) -> None:
        """Refuse an answer that says nothing.

        Raises:
            ResumeDataError: It is empty or of the wrong type.
        """
        text = answer.user_answer if isinstance(answer, FollowUpInfo) else answer
        if isinstance(text, str):
            if not text.strip():
                raise ResumeDataError("the answer is empty; give a text, or `Expired`")
        elif not isinstance(answer, Expired | Cancelled):
            raise wrong_answer("the question", answer, "FollowUpInfo or a text")


@register("countersign.in_doubt_info/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class InDoubtInfo:
    """Asks what became of an approved call whose process died while it ran.

    Stored: version 1, must stay readable.

    Attributes:
        tool_name: The tool.
        arguments: The approved arguments that it started with.
        title: Verb and object, one line.
        call_id: Id of the call in the model's answer.
        frozen: What the application noted when the call started, such as who may decide about it;
            empty when it noted nothing. See `Runner`, `before_start`.
        asked_again: Why people are asked anew; empty when they are not.
        secret: Names of arguments that people are never shown; see `ToolSpec`.
        shown: Names of arguments that are no secrets, whatever they look like.
    """

    tool_name: str
    arguments: dict[str, Json]
    title: str
    call_id: str
    frozen: dict[str, Json] = field(default_factory=dict)
    asked_again: str = ""
    secret: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.title}: it was started, and nobody knows whether it ran. What happened?"

    def check_answer(self, answer: object) -> None:
        """Refuse an answer that does not belong to this question.

        Raises:
            ResumeDataError: It is of the wrong type.
        """
        if not isinstance(answer, InDoubtResult | Expired | Cancelled):
            raise wrong_answer(self.tool_name, answer, "InDoubtResult")


Answer: TypeAlias = (
    ApprovalResult | ReviewEditResult | FollowUpInfo | InDoubtResult | Expired | Cancelled | str
)
"""Everything that answers one of the infos here."""


def wrong_answer(about: str, answer: object, expected: str) -> ResumeDataError:
    """Make the error for an answer of the wrong type."""
    return ResumeDataError(
        f"cannot go on with {about}: expected {expected}, Expired or Cancelled, "
        f"got {type(answer).__name__}; nothing ran"
    )
