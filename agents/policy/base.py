"""Policies: rules that say, for each call of a tool, whether it may run, and who must be asked.

A policy is asked once for each call, before anything else. What it says is frozen into the
interrupt; changing the policy later changes nothing about calls that wait. A policy that fails
denies: nothing is allowed by accident.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal, Protocol, TypeAlias, get_args, runtime_checkable

from agents.core.calls import Risk
from agents.core.codec import Json, register
from agents.core.component.exits import contained
from agents.core.errors import AgentConfigError
from agents.core.pending import InterruptSignal

logger = logging.getLogger(__name__)

AskKind = Literal["approval", "review"]
GATE_RULE = "gate"
"""The name of the rule of a gate in code that has none of its own."""
UNNAMED = "policy"
"""The name of a rule that asks and was given none."""
TIME_LIMIT = 5.0
"""Longest time in which a policy in code decides about a call, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyCall:
    """A call that a policy judges. What the policy does to it changes nothing about the call.

    Attributes:
        tool: Name of the tool.
        arguments: Canonical arguments.
        call_id: Id of the call in the model's answer.
        address: Where in the run the call stands, as text.
        thread: Id of the checkpoint; empty when nothing is kept.
        why: The model's own words beside the call; may be empty. Untrusted.
        tags: What the tool's author says about its kind.
        risk: What the tool's author says about the harm that a call can do.
        gated: Whether code puts a gate around the tool by which people agree to its calls; one
            that only a policy in code stands in is none.
        secret: Names of arguments that people are never shown.
        shown: Names of arguments that are no secrets, whatever they look like.
        idempotent: Whether the tool may run twice with the same effect as once.
        session: Values that all agents and tools of the run share; for reading.
    """

    tool: str
    arguments: Mapping[str, Json]
    call_id: str = ""
    address: str = ""
    thread: str = ""
    why: str = ""
    tags: tuple[str, ...] = ()
    risk: Risk = "medium"
    gated: bool = False
    secret: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    idempotent: bool = False
    session: Mapping[str, object] = field(default_factory=dict)


@register("countersign.allow/1")
@dataclass(frozen=True, slots=True)
class Allow:
    """The call may run; nobody is asked. Stored: version 1, must stay readable.

    Attributes:
        rule: Name of the rule that allows it, for who keeps a record; may be empty.
        terms: Who decides if nobody knows whether it ran, in the application's own form; empty
            leaves it to the application.
        grant: Name of the standing grant by which nobody is asked; empty where a rule allows it.
    """

    rule: str = ""
    terms: str = ""
    grant: str = ""


@dataclass(frozen=True, slots=True)
class Deny:
    """The call must not run; nobody can let it.

    Attributes:
        reason: Why; the model is told.
        rule: Name of the rule that denies it, for who keeps a record; may be empty.
        failed: Whether no rule says so: a policy failed, was late, or gave no ruling. The call does
            not run either way; what waits for people may wait on.
    """

    reason: str = ""
    rule: str = ""
    failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """The call may run when people agree.

    Attributes:
        kind: Whether they can only approve and reject (`approval`), or also edit (`review`).
        rule: Name of the rule that asks, never empty; a part of the digest.
        title: What people read in place of the tool's own title; empty keeps that.
        reason: Why they are asked; it stands beside the model's own words, not in their place.
        approvers: Who should decide; empty leaves it to the application.
        expires_in: How long to wait; None leaves it to the application.
        remind_in: When to remind; None leaves it to the application.
        escalate_in: When to ask the backup people, too; None leaves it to the application.
        backups: Who should decide, too, once nobody has for so long; empty leaves it to the
            application.
        exclude_editors: Whether who edits the arguments cannot approve them, too: somebody else
            has to.
        terms: All that is asked, in the application's own form; the runtime carries it to whoever
            shows the question, frozen with it, and never reads it.
        bound: What a decision under these terms is bound to, such as a digest of them. Where it is
            given, it stands for all the rest of the ruling.
    """

    kind: AskKind = "approval"
    rule: str = UNNAMED
    title: str = ""
    reason: str = ""
    approvers: tuple[str, ...] = ()
    expires_in: timedelta | None = None
    remind_in: timedelta | None = None
    escalate_in: timedelta | None = None
    backups: tuple[str, ...] = ()
    exclude_editors: bool = False
    terms: str = ""
    bound: str = ""

    def __post_init__(self) -> None:
        if self.kind not in get_args(AskKind):
            raise AgentConfigError(
                f"people cannot be asked for {self.kind!r}; use {' or '.join(get_args(AskKind))}"
            )
        if not self.rule:
            raise AgentConfigError("a rule that asks needs a name; give it: `Ask(rule=…)`")

    def to_text(self, *, kind: str = "") -> str:
        """Write the whole ruling in its one form: what a decision is made under, and bound to.

        The title is not in it: it is made of the arguments, which a digest has anyway. Nor is the
        time of reminders: nobody may decide, or not, because of them.

        Args:
            kind: Name of the gate that asks, where no policy does.
        """
        name = {"effect": "ask", "kind": kind or self.kind, "rule": self.rule}
        rest = {"bound": self.bound} if self.bound else self._parts()
        return json.dumps({**name, **rest}, sort_keys=True, separators=(",", ":"))

    def _parts(self) -> dict[str, object]:
        """The parts that a decision is bound to, where nothing stands for them."""
        return {
            "reason": self.reason,
            "approvers": list(self.approvers),
            "backups": list(self.backups),
            "expires_in": _seconds(self.expires_in),
            "escalate_in": _seconds(self.escalate_in),
            "exclude_editors": self.exclude_editors,
        }


Ruling: TypeAlias = Allow | Deny | Ask
"""A policy's ruling on a call."""


class Policy(Protocol):
    """Says for each call whether it may run."""

    async def evaluate(self, call: PolicyCall) -> Ruling:
        """Judge a call; runs nothing, and asks nobody.

        It is called once for a call, and not again after people were asked; when a person edits
        the arguments, it is called for the edited call. An error, a time-out, or anything but a
        ruling denies the call.
        """
        ...


@runtime_checkable
class NamesPeople(Protocol):
    """A policy that can say beforehand whom it may ask."""

    def people(self) -> tuple[str, ...]:
        """Approvers and backup people of all that it may ask."""
        ...


def people_of(*policies: object) -> tuple[str, ...]:
    """Return all people that policies, or rulings, may ask, each once.

    Policies that cannot name them are left out.
    """
    found: dict[str, None] = {}
    for one in policies:
        if isinstance(one, Ask):
            found.update(dict.fromkeys((*one.approvers, *one.backups)))
        elif isinstance(one, NamesPeople):
            found.update(dict.fromkeys(one.people()))
    return tuple(found)


async def ruling_of(policy: Policy, call: PolicyCall, *, time_limit: float = TIME_LIMIT) -> Ruling:
    """Ask a policy about a call; whatever goes wrong denies it.

    Args:
        policy: The policy.
        call: The call.
        time_limit: How long it may take, in seconds. Code that blocks the event loop, or catches
            cancellation, is not stopped by it.
    """
    return await in_time(lambda: policy.evaluate(call), call.tool, time_limit=time_limit)


async def in_time(
    judge: Callable[[], Awaitable[object]], tool: str, *, time_limit: float
) -> Ruling:
    """Wait for a ruling; whatever goes wrong denies.

    Args:
        judge: Gives the ruling.
        tool: Name of the tool, for the log.
        time_limit: How long it may take, in seconds.
    """
    limit = asyncio.timeout(time_limit)
    try:
        async with limit:
            with contained():
                ruling = await judge()
    except InterruptSignal:
        return _failed("the policy tried to ask people itself; it has to return `Ask`")
    except Exception as error:  # noqa: BLE001 - whatever it is, the call must not run
        if limit.expired():
            return _failed(f"the policy did not answer within {time_limit:g} seconds")
        kind = type(error).__name__
        logger.warning("policy raised %s; the call of %r is blocked", kind, tool)
        return _failed("the policy failed")
    if not isinstance(ruling, Allow | Deny | Ask):
        return _failed(f"the policy answered with {type(ruling).__name__}, which is no ruling")
    return ruling


def _failed(reason: str) -> Deny:
    return Deny(reason, failed=True)


@dataclass(frozen=True, slots=True)
class AllowList:
    """Lets only these tools run.

    Attributes:
        names: Of tools.
    """

    names: Collection[str]

    def __post_init__(self) -> None:
        _check_collection(self.names)

    async def evaluate(self, call: PolicyCall) -> Ruling:
        """Allow what is on the list; see `Policy.evaluate`."""
        return Allow() if call.tool in self.names else Deny("the tool is not on the list")

    def check_names(self, known: Collection[str]) -> None:
        """Refuse names of tools that do not exist; see `NamesTools`."""
        _check_known("allow-list", self.names, known)


@dataclass(frozen=True, slots=True)
class BlockList:
    """Lets every tool run but these.

    Attributes:
        names: Of tools.
        reason: Why they must not run.
    """

    names: Collection[str]
    reason: str = "the tool is blocked"

    def __post_init__(self) -> None:
        _check_collection(self.names)

    async def evaluate(self, call: PolicyCall) -> Ruling:
        """Deny what is on the list; see `Policy.evaluate`."""
        return Deny(self.reason) if call.tool in self.names else Allow()

    def check_names(self, known: Collection[str]) -> None:
        """Refuse names of tools that do not exist; see `NamesTools`."""
        _check_known("block-list", self.names, known)


def _seconds(time: timedelta | None) -> float | None:
    return time.total_seconds() if time is not None else None


def _check_collection(names: object) -> None:
    # "pay" in "payroll" is true: a text in place of a list would allow parts of names.
    if isinstance(names, str) or not isinstance(names, Collection):
        raise AgentConfigError(f"a list of tools is needed, not {names!r}; write [{names!r}]")


def _check_known(what: str, names: Collection[str], known: Collection[str]) -> None:
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise AgentConfigError(
            f"the {what} names {', '.join(map(repr, unknown))}, and there is no such tool; "
            f"tools that exist: {', '.join(sorted(known)) or 'none'}"
        )
