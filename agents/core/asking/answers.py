"""Answers to requests about a call: decisions of people, expiry and cancellation."""

from __future__ import annotations

from dataclasses import dataclass
from types import UnionType
from typing import Annotated, ClassVar, Literal, TypeGuard, Union, get_args, get_origin

from agents.core.codec import Json, register

DoubtChoice = Literal["ran", "again", "give_up"]


@register("countersign.expired/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class Expired:
    """Answer to a request that expired. The call does not run.

    Fits every info of `agents.core.asking.infos`. Stored: version 1, must stay readable.

    Attributes:
        waited: How long the request was pending, in words; may be empty.
    """

    waited: str = ""

    def __post_init__(self) -> None:
        check_texts(self, "waited")

    def __str__(self) -> str:
        return f"nobody answered in time{f' ({self.waited})' if self.waited else ''}"


@register("countersign.cancelled/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelled:
    """Answer to a request that was cancelled. The call does not run.

    Fits every info of `agents.core.asking.infos`. Stored: version 1, must stay readable.

    Attributes:
        fact: What happened, as a sentence without its full stop.
        by: Who cancelled it; may be empty.
        reason: Why; may be empty.
    """

    fact: ClassVar[str] = "The request was cancelled"
    by: str = ""
    reason: str = ""

    def __post_init__(self) -> None:
        check_texts(self, "by", "reason")

    def __str__(self) -> str:
        fact = f"{self.fact[0].lower()}{self.fact[1:]}"
        return f"{fact}: {self.reason.strip()}" if self.reason.strip() else fact


@register("countersign.withdrawn/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawn(Cancelled):
    """The requester withdrew the request. Stored: version 1, must stay readable."""

    fact: ClassVar[str] = "The request was withdrawn by the requester"


@register("countersign.not_started/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class NotStarted(Cancelled):
    """The call waited too long for its start. Stored: version 1, must stay readable."""

    fact: ClassVar[str] = "The call was frozen by people"


@register("countersign.no_approvers/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class NoApprovers(Cancelled):
    """No approver exists, so no request was sent.

    Stored: version 1, must stay readable.

    The reason names the missing approvers and what people can do.
    """

    fact: ClassVar[str] = "Nobody can decide this request, so nobody was asked"


@register("countersign.denied/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class Denied(Cancelled):
    """A new rule denies the pending request. Stored: version 1, must stay readable.

    The reason is that of the rule.
    """

    fact: ClassVar[str] = "A rule denies this request by now"


@register("countersign.reasked/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class Reasked(Cancelled):
    """Approval is requested again under current rules.

    A gate requests approval at once or follows the current rules. For any other request this is the
    same as `Cancelled`. The reason says why. Stored: version 1, must stay readable.
    """

    fact: ClassVar[str] = "The request was called off, to be asked anew"


@register("countersign.approval_result/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalResult:
    """Whether a call may run. Stored: version 1, must stay readable.

    Attributes:
        approved: Only True allows the call.
        reason: Why it was rejected.
        digest: Digest of the call that the approver saw. `ApprovalInfo.approve` fills it in. An
            approval without it is refused: the arguments could have changed since they were shown.
        by: Who decided.
        voters: All counted voters, if more than one vote was required.
    """

    approved: bool
    reason: str | None = None
    digest: str | None = None
    by: str | None = None
    voters: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_voters(self.voters)
        check_bools(self, "approved")
        check_texts(self, "reason", "digest", "by", optional=True)


@register("countersign.review_result/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewEditResult:
    """Whether a call may run, and with which arguments.

    Stored: version 1, must stay readable.

    `disapproved` takes precedence over `no_need_to_edit`, which takes precedence over the rest.

    Attributes:
        edited_arguments: All arguments, as edited by the approver.
        no_need_to_edit: The call may run as shown.
        disapproved: The call must not run.
        disapprove_reason: Why it must not run.
        digest: Digest of the shown or of the edited arguments, whichever was decided.
        by: Who decided.
        ruling: Terms under which the edited arguments were approved, if they differ from the
            request's terms; see `CallInfo.ruling`.
        edited_by: Who edited last, if another person decided.
        voters: All counted voters, if more than one vote was required.
        editors: Everyone who made earlier edits of the arguments.
    """

    edited_arguments: dict[str, Json] | None = None
    no_need_to_edit: bool = False
    disapproved: bool = False
    disapprove_reason: str | None = None
    digest: str | None = None
    by: str | None = None
    ruling: str | None = None
    edited_by: str | None = None
    voters: tuple[str, ...] = ()
    editors: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_voters(self.voters)
        check_voters(self.editors, "editors")
        check_bools(self, "no_need_to_edit", "disapproved")
        texts = ("disapprove_reason", "digest", "by", "ruling", "edited_by")
        check_texts(self, *texts, optional=True)
        if self.edited_arguments is not None and not isinstance(self.edited_arguments, dict):
            raise TypeError("edited_arguments must be a dict or None")


@register("countersign.in_doubt_result/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class InDoubtResult:
    """A person's statement about a call in doubt: it ran, run it again, or give up.

    Stored: version 1, must stay readable.

    Attributes:
        choice: The call `ran`; run it `again`; or `give_up`.
        result: The call's result, if it ran and the result is known.
        by: Who decided.
        voters: All counted voters, if more than one vote was required.
    """

    choice: DoubtChoice
    result: str | None = None
    by: str | None = None
    voters: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_voters(self.voters)
        if self.choice not in get_args(DoubtChoice):
            known = ", ".join(get_args(DoubtChoice))
            raise ValueError(f"no such choice: {self.choice!r}; use {known}")
        check_texts(self, "result", "by", optional=True)


ANY_OUTCOME: object = object | Expired | Cancelled
"""Type of all answers and outcomes, for callers that ask for `object`."""


def is_unanswered(answer: object) -> TypeGuard[Expired | Cancelled]:
    """Whether the request ended without an answer."""
    return isinstance(answer, Expired | Cancelled)


def names_outcome(kind: object, outcome: Expired | Cancelled) -> bool:
    """Whether a type includes this outcome by name; `object` and `Any` do not."""
    if get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if get_origin(kind) in {Union, UnionType}:
        return any(names_outcome(member, outcome) for member in get_args(kind))
    if not isinstance(kind, type) or not issubclass(kind, Expired | Cancelled):
        return False
    return isinstance(outcome, kind)


def without_outcomes(kind: object) -> object:
    """Return the part of a type that people can answer, or None if nothing is left."""
    if get_origin(kind) not in {Union, UnionType}:
        named = isinstance(kind, type) and issubclass(kind, Expired | Cancelled)
        return None if named else kind
    left = [member for member in get_args(kind) if without_outcomes(member) is not None]
    return Union[tuple(left)] if left else None  # noqa: UP007 - the members are only known at run time


def check_bools(record: object, *names: str) -> None:
    """Refuse a record if one of the named fields is not exactly True or False."""
    # Stored answers are read without type checks, and the text "no" is true in Python.
    for name in names:
        if not isinstance(getattr(record, name), bool):
            raise TypeError(f"{name} must be True or False")


def check_voters(voters: object, name: str = "voters") -> None:
    """Refuse voters without a name: an unknown voter could vote twice."""
    is_fit = isinstance(voters, tuple) and all(isinstance(voter, str) and voter for voter in voters)
    if not is_fit:
        raise TypeError(f"{name} must be a tuple of names")


def check_texts(record: object, *names: str, optional: bool = False) -> None:
    """Refuse a record if one of the named fields is not text (or None, if `optional`)."""
    for name in names:
        value = getattr(record, name)
        if not isinstance(value, str) and not (optional and value is None):
            raise TypeError(f"{name} must be a text{' or None' if optional else ''}")
