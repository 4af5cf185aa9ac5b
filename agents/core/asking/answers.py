"""Answers to questions about a call: decisions of people, and the ends that nobody decided."""

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

    Answers any of the infos here. Stored: version 1, must stay readable.

    Attributes:
        waited: How long, in words; may be empty.
    """

    waited: str = ""

    def __post_init__(self) -> None:
        check_texts(self, "waited")

    def __str__(self) -> str:
        return f"nobody answered in time{f' ({self.waited})' if self.waited else ''}"


@register("countersign.cancelled/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelled:
    """Answer to a request that was called off. The call does not run.

    Answers any of the infos here. Stored: version 1, must stay readable.

    Attributes:
        fact: What happened, as a sentence without its full stop.
        by: Who called it off; may be empty.
        reason: Why; may be empty.
    """

    fact: ClassVar[str] = "The request was cancelled"
    by: str = ""
    reason: str = ""

    def __post_init__(self) -> None:
        check_texts(self, "by", "reason")

    def __str__(self) -> str:
        told = f"{self.fact[0].lower()}{self.fact[1:]}"
        return f"{told}: {self.reason.strip()}" if self.reason.strip() else told


@register("countersign.withdrawn/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawn(Cancelled):
    """Somebody who asked for it took it back. Stored: version 1, must stay readable."""

    fact: ClassVar[str] = "The request was withdrawn by the requester"


@register("countersign.no_approvers/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class NoApprovers(Cancelled):
    """There is nobody who may decide, so nobody was asked. Stored: version 1, must stay readable.

    The reason says who would be needed, and what people can do.
    """

    fact: ClassVar[str] = "Nobody can decide this request, so nobody was asked"


@register("countersign.denied/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class Denied(Cancelled):
    """A rule came into force that denies it. Stored: version 1, must stay readable.

    The reason is that of the rule.
    """

    fact: ClassVar[str] = "A rule denies this request by now"


@register("countersign.reasked/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class Reasked(Cancelled):
    """People are to be asked anew, under the rules of now. Stored: version 1, must stay readable.

    A gate asks at once, or does what the rules of now say; for any other question it is `Cancelled`
    and no more. The reason says why.
    """

    fact: ClassVar[str] = "The request was called off, to be asked anew"


@register("countersign.approval_result/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalResult:
    """Whether a call may run. Stored: version 1, must stay readable.

    Attributes:
        approved: Exactly True lets the call run.
        reason: Why it was rejected.
        digest: What the person was shown; an approval without it is refused.
        by: Who decided.
        voters: All who were counted for it, where several had to be.
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
    """Whether a call may run, and with which arguments. Stored: version 1, must stay readable.

    When several are set, `disapproved` wins over `no_need_to_edit`, which wins over the rest.

    Attributes:
        edited_arguments: All arguments, as the person wants them.
        no_need_to_edit: The call may run as it was shown.
        disapproved: The call must not run.
        disapprove_reason: Why not.
        digest: What the decision covers: the digest of the shown, or of the edited arguments.
        by: Who decided.
        ruling: The ruling that the edited arguments were approved under, when it is another than
            that of the question; see `CallInfo.ruling`.
        edited_by: Who edited last, when somebody else decided.
        voters: All who were counted for it, where several had to be.
        editors: Who edited before that, and so made a part of the arguments.
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
        choice: It `ran`; run it `again`; or `give_up`.
        result: What it reported, when it ran and somebody knows.
        by: Who decided.
        voters: All who were counted for it, where several had to be.
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
"""The kind of all answers and of all outcomes without one, for who asks with `object`."""


def is_unanswered(answer: object) -> TypeGuard[Expired | Cancelled]:
    """Whether this is the end of a question that nobody answered."""
    return isinstance(answer, Expired | Cancelled)


def names_outcome(kind: object, outcome: Expired | Cancelled) -> bool:
    """Whether a kind of answers names this outcome by its type; `object` and `Any` name none."""
    if get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if get_origin(kind) in {Union, UnionType}:
        return any(names_outcome(one, outcome) for one in get_args(kind))
    if not isinstance(kind, type) or not issubclass(kind, Expired | Cancelled):
        return False
    return isinstance(outcome, kind)


def without_outcomes(kind: object) -> object:
    """Return the part of a kind that people can give; None when there is none."""
    if get_origin(kind) not in {Union, UnionType}:
        named = isinstance(kind, type) and issubclass(kind, Expired | Cancelled)
        return None if named else kind
    left = [one for one in get_args(kind) if without_outcomes(one) is not None]
    return Union[tuple(left)] if left else None  # noqa: UP007 - made of what was given


def check_bools(record: object, *names: str) -> None:
    """Refuse a record whose fields of these names are not True or False.

    Raises:
        TypeError: One is something else.
    """
    # Stored answers come back without type checks, and a text "no" would count as true.
    for name in names:
        if not isinstance(getattr(record, name), bool):
            raise TypeError(f"{name} must be True or False")


def check_voters(voters: object, name: str = "voters") -> None:
    """Refuse people who are no names: whoever is not known cannot be kept from a second vote.

    Args:
        voters: The people.
        name: Of the field that has them.

    Raises:
        TypeError: They are no tuple of texts that are not empty.
    """
    is_fit = isinstance(voters, tuple) and all(isinstance(one, str) and one for one in voters)
    if not is_fit:
        raise TypeError(f"{name} must be a tuple of names")


def check_texts(record: object, *names: str, optional: bool = False) -> None:
    """Refuse a record whose fields of these names are not texts (or None, when `optional`).

    Raises:
        TypeError: One is something else.
    """
    for name in names:
        value = getattr(record, name)
        if not isinstance(value, str) and not (optional and value is None):
            raise TypeError(f"{name} must be a text{' or None' if optional else ''}")
