"""Judges calls of programs by the policy in force."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from agents import ApprovalInfo, ReviewEditInfo
from agents.core.asking.infos import CallInfo
from agents.core.codec import Json
from agents.core.digest import call_digest
from agents.core.errors import ArgumentError, InvalidArgumentsError
from agents.gates.rulings import Judgement
from agents.policy.base import Ask
from bot.api.schema_subset import misfits
from bot.people.narrowing import narrowed
from bot.policy.evaluation.context import Members, PolicyQuestion, ProgramFacts, ToolFacts
from bot.policy.evaluation.merge import Permit, Refusal
from bot.ports.people import Directory
from bot.questions.form import ask_of
from bot.records.approval import Approval
from bot.records.origin import ProgramCall, RequestOrigin
from bot.records.terms import Risk, Terms
from bot.threads.runs.application_policy import InForce

Ruled: TypeAlias = CallInfo | Permit | Refusal
"""The request that people must decide, or the rule that allows or denies the call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOfProgram:
    """A call that a program wants to make.

    Attributes:
        turn_id: The turn in the digest: the id of the group, with the number 0.
        address: Digest of the idempotency key: the place in the digest.
        tool: Name of the tool, as the program gives it.
        arguments: The arguments.
        schema: JSON schema of the arguments; empty if people cannot edit them.
        title: Verb and object.
        why: The program's reason; may be empty.
        preview: The effect, in the program's words; may be empty.
        tags: Tags that the program gives.
        risk: The risk that the program gives.
        secret: Names of arguments that people never see.
        people: The only people and user groups to ask, of those whom the policy names; empty for
            all.
        requesters: Slack user ids, the owner first.
        channel: Id of the channel of the card.
        origin: The door and the program.
        is_trusted: Whether tags and risk are true.
    """

    turn_id: str
    address: str
    tool: str
    arguments: dict[str, Json]
    schema: dict[str, Json]
    title: str
    requesters: tuple[str, ...]
    channel: str
    origin: RequestOrigin
    why: str = ""
    preview: str = ""
    tags: tuple[str, ...] = ()
    risk: Risk = "medium"
    secret: tuple[str, ...] = ()
    people: tuple[str, ...] = ()
    is_trusted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramPolicy:
    """Judges calls of programs by the policy in force.

    Args:
        in_force: Returns the policy in force, without waiting.
        members: Looks groups up, for conditions on requesters.
        directory: Looks people up.
    """

    in_force: Callable[[], InForce]
    members: Members
    directory: Directory

    async def rule(self, call: CallOfProgram) -> Ruled:
        """Return what the policy requires for a call.

        Raises:
            DirectoryError: The call names people, and a group could not be looked up.
        """
        origin = call.origin
        claimed = {origin.requested_for} - {""} if origin.claimed else set()
        facts = ProgramFacts(
            name=origin.program_name, is_trusted=call.is_trusted, claimed=frozenset(claimed)
        )
        question = PolicyQuestion(
            tool=ToolFacts(
                name=call.tool,
                tags=call.tags,
                risk=call.risk,
                gate="review" if call.schema else "approval",
                schema=call.schema,
            ),
            arguments=call.arguments,
            requesters=call.requesters,
            channel=call.channel,
            agent=origin.program_name,
            gated=True,
            door=origin.door,
            program=facts,
        )
        judged = await self.in_force().rulebook.judge(question, self.members)
        ruling = judged.ruling
        if not isinstance(ruling, Terms):
            return ruling
        if call.people:
            ruling = await narrowed(ruling, call.people, self.directory, channel_id=call.channel)
        return _asking(call, ruling)

    async def judge(self, approval: Approval, arguments: dict[str, Json]) -> Judgement:
        """Judge the pending call of a program with other arguments.

        Raises:
            InvalidArgumentsError: They do not fit the schema of the program.
        """
        if faults := misfits(ask_of(approval).schema or {}, arguments):
            raise InvalidArgumentsError(
                [ArgumentError(path=(fault.pointer,), message=fault.detail) for fault in faults]
            )
        return judgement(arguments, await self.rule(call_of(approval, arguments)))


def judgement(arguments: dict[str, Json], ruled: Ruled) -> Judgement:
    """Return a decision of the policy in the form in which agents' gates give theirs."""
    match ruled:
        case Refusal():
            return Judgement(arguments=arguments, denied=ruled.reason, failed=ruled.failed)
        case Permit():
            return Judgement(arguments=arguments, rule=" + ".join(ruled.names))
        case _:
            return Judgement(arguments=arguments, info=ruled)


def call_of(approval: Approval, arguments: Mapping[str, Json]) -> CallOfProgram:
    """Return the call of a stored approval, with these arguments.

    Raises:
        TypeError: The approval is not a program's.
    """
    asker = approval.asker
    if not isinstance(asker, ProgramCall):
        raise TypeError(f"{approval.approval_id} was not requested by a program")
    ask = ask_of(approval)
    return CallOfProgram(
        turn_id=approval.checkpoint_id,
        address=approval.address,
        tool=approval.tool,
        arguments=dict(arguments),
        schema=dict(ask.schema or {}),
        title=approval.title,
        why=approval.why,
        preview=approval.preview,
        tags=asker.tags,
        risk=asker.risk,
        secret=ask.secret,
        people=asker.people,
        requesters=approval.requesters,
        channel=approval.channel_id,
        origin=approval.origin,
        is_trusted=asker.is_trusted,
    )


def _asking(call: CallOfProgram, terms: Terms) -> CallInfo:
    """Return the request for people, as a gate of an agent would make it."""
    may_edit = bool(call.schema) and terms.edit != "no"
    ask = Ask(
        kind="review" if may_edit else "approval",
        rule=terms.rule or "policy",
        reason=terms.reason,
        terms=terms.text,
        bound=terms.digest,
    )
    ruling = ask.to_text()
    kind = ReviewEditInfo if may_edit else ApprovalInfo
    return kind(
        tool_name=call.tool,
        arguments=call.arguments,
        call_id=call.address,
        title=call.title,
        why=call.why,
        preview=call.preview,
        schema=call.schema,
        digest=call_digest(
            thread=call.turn_id,
            address=call.address,
            tool=call.tool,
            arguments=call.arguments,
            rule=ask.rule,
            ruling=ruling,
        ),
        rule=ask.rule,
        thread=call.turn_id,
        address=call.address,
        reason=ask.reason,
        ruling=ruling,
        secret=call.secret,
        terms=terms.text,
    )
