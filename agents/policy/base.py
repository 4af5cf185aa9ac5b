"""Policies: rules that allow a call, deny it, or require approval.

A policy is evaluated once per call, before anything else. Its result is stored with the interrupt,
so a later change of the policy does not affect pending calls. A policy that fails denies the call.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal, Protocol, TypeAlias, get_args

from agents.core.calls import Risk
from agents.core.codec import Json, register
from agents.core.component.exits import contained
from agents.core.errors import AgentConfigError
from agents.core.pending import InterruptSignal

logger = logging.getLogger(__name__)

AskKind = Literal["approval", "review"]
GATE_RULE = "gate"
"""Name of the rule of a gate in code without a rule name."""
UNNAMED = "policy"
"""Name of a rule that requires approval and has no name."""
TIME_LIMIT = 5.0
"""Maximum time for a policy in code to decide about a call, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyCall:
    """A call that a policy evaluates. Changes to this object do not affect the call.

    Attributes:
        tool: Name of the tool.
        arguments: Validated arguments with defaults filled in.
        call_id: Id of the call in the model's answer.
        address: Address of the call, as text.
        thread: Checkpoint id; empty if the run is not stored.
        why: The model's text beside the call; may be empty. Untrusted.
        tags: Kinds of the tool, according to its author.
        risk: The harm that a call can do, according to the tool's author.
        gated: Whether code has put a gate around the tool that requires approval. A policy gate in
            code does not count.
        secret: Names of arguments that people never see.
        shown: Names of arguments that look secret but are not.
        idempotent: Whether a second run of the same call has no further effect.
        session: Values shared by the agents and tools of the run; read-only.
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
    """The call may run without approval. Stored: version 1, must stay readable.

    Attributes:
        rule: Name of the rule that allows it, for the audit; may be empty.
        terms: Terms in the application's own form, for people to decide if the call is in doubt;
            empty leaves this to the application.
        grant: Name of the standing grant that allows it; empty if a rule allows it.
    """

    rule: str = ""
    terms: str = ""
    grant: str = ""


@dataclass(frozen=True, slots=True)
class Deny:
    """The call must not run, and cannot be approved.

    Attributes:
        reason: Reason for the model.
        rule: Name of the rule that denies it, for the audit; may be empty.
        failed: Whether a failure denies the call, not a rule: the policy raised an error, timed out
            or returned no ruling. A call that is pending may stay pending.
        asks: Rulings that ask different people. The policy of an application can require all of
            them; the runtime alone denies the call.
    """

    reason: str = ""
    rule: str = ""
    failed: bool = False
    asks: tuple[Ask, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """The call may run if people approve it.

    Attributes:
        kind: Whether approvers can only approve and reject (`approval`), or also edit (`review`).
        rule: Name of the rule; part of the digest; never empty.
        title: Title instead of the tool's own; empty keeps the tool's.
        reason: Why approval is required. Shown beside the model's own text.
        approvers: Who may decide; empty leaves the choice to the application.
        expires_in: Time to expiry; None leaves it to the application.
        remind_in: Time to the reminder; None leaves it to the application.
        escalate_in: Time to the escalation; None leaves it to the application.
        backups: Additional approvers after an escalation; empty leaves the choice to the
            application.
        exclude_editors: Whether a person who edits the arguments cannot approve them.
        terms: The complete terms in the application's own form. The runtime stores them with the
            request and never reads them.
        bound: What a decision is bound to, such as a digest of the terms. If given, it replaces all
            other parts of the ruling.
        asks: The rulings that `strictest` merged into this one. The policy of an application
            requires all of them, each with its own people; the runtime alone asks for one person
            whom all name.
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
    asks: tuple[Ask, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in get_args(AskKind):
            raise AgentConfigError(
                f"people cannot be asked for {self.kind!r}; use {' or '.join(get_args(AskKind))}"
            )
        if not self.rule:
            raise AgentConfigError("a rule that asks needs a name; give it: `Ask(rule=…)`")

    def to_text(self, *, kind: str = "") -> str:
        """Write the ruling in canonical form, which a decision is bound to.

        The title is left out, because it derives from the arguments, which are in the digest. The
        times of reminders are left out, because no decision depends on them.

        Args:
            kind: Name of the gate, if no policy asks.
        """
        name = {"effect": "ask", "kind": kind or self.kind, "rule": self.rule}
        rest = {"bound": self.bound} if self.bound else self._parts()
        return json.dumps({**name, **rest}, sort_keys=True, separators=(",", ":"))

    def _parts(self) -> dict[str, object]:
        """Return the parts that a decision is bound to, if `bound` is empty."""
        return {
            "reason": self.reason,
            "approvers": list(self.approvers),
            "backups": list(self.backups),
            "expires_in": _seconds(self.expires_in),
            "escalate_in": _seconds(self.escalate_in),
            "exclude_editors": self.exclude_editors,
        }


Ruling: TypeAlias = Allow | Deny | Ask
"""Result of a policy for a call."""


class Policy(Protocol):
    """Decides for each call whether it may run.

    A policy may have further methods, by which its faults are found when an agent is created:

    - `check_names(known)` raises `AgentConfigError` if it names a tool that is not `known`;
    - `check_tags(known)` raises it for a tag that no tool has;
    - `check_tool(tool)` raises it for an argument or a tag that the tool does not have;
    - `rule_names()` returns the names of the rules that ask; a name of two rules is listed twice;
    - `people()` returns all approvers and backup approvers.
    """

    async def evaluate(self, call: PolicyCall) -> Ruling:
        """Return the ruling for a call. Runs nothing and asks people nothing.

        Called once per call, and again only for edited arguments. An error, a timeout or any other
        return value denies the call.
        """
        ...


async def ruling_of(policy: Policy, call: PolicyCall, *, time_limit: float = TIME_LIMIT) -> Ruling:
    """Evaluate a policy for a call. Any failure denies the call.

    Args:
        policy: The policy.
        call: The call.
        time_limit: Maximum time in seconds. Does not stop code that blocks the event loop or
            catches the cancellation.
    """
    return await in_time(lambda: policy.evaluate(call), call.tool, time_limit=time_limit)


async def in_time(
    judge: Callable[[], Awaitable[object]], tool: str, *, time_limit: float
) -> Ruling:
    """Wait for a ruling, at most `time_limit` seconds. Any failure denies the call."""
    limit = asyncio.timeout(time_limit)
    try:
        async with limit:
            with contained():
                ruling = await judge()
    except InterruptSignal:
        return _failed("the policy tried to ask people itself; it has to return `Ask`")
    except Exception as error:  # noqa: BLE001 - after any failure, the call must not run
        # Only `expired` tells our timeout from a `TimeoutError` of the policy.
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
    """Allows only these tools.

    Attributes:
        names: Names of tools.
    """

    names: Collection[str]

    def __post_init__(self) -> None:
        _check_collection(self.names)

    async def evaluate(self, call: PolicyCall) -> Ruling:
        """Allow the tools on the list; see `Policy.evaluate`."""
        return Allow() if call.tool in self.names else Deny("the tool is not on the list")

    def check_names(self, known: Collection[str]) -> None:
        """Refuse names of unknown tools; see `Policy`."""
        _check_known("allow-list", self.names, known)


@dataclass(frozen=True, slots=True)
class BlockList:
    """Allows every tool except these.

    Attributes:
        names: Names of tools.
        reason: Reason for the model.
    """

    names: Collection[str]
    reason: str = "the tool is blocked"

    def __post_init__(self) -> None:
        _check_collection(self.names)

    async def evaluate(self, call: PolicyCall) -> Ruling:
        """Deny the tools on the list; see `Policy.evaluate`."""
        return Deny(self.reason) if call.tool in self.names else Allow()

    def check_names(self, known: Collection[str]) -> None:
        """Refuse names of unknown tools; see `Policy`."""
        _check_known("block-list", self.names, known)


def _seconds(time: timedelta | None) -> float | None:
    return time.total_seconds() if time is not None else None


def _check_collection(names: object) -> None:
    # "pay" in "payroll" is true: a text instead of a list would allow parts of names.
    if isinstance(names, str) or not isinstance(names, Collection):
        raise AgentConfigError(f"a list of tools is needed, not {names!r}; write [{names!r}]")


def _check_known(what: str, names: Collection[str], known: Collection[str]) -> None:
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise AgentConfigError(
            f"the {what} names {', '.join(map(repr, unknown))}, and there is no such tool; "
            f"tools that exist: {', '.join(sorted(known)) or 'none'}"
        )
