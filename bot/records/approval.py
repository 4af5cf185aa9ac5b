"""The approval document: the request, the votes, the decision, the execution, and its messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, Self

from pydantic import model_validator

from bot.records.origin import AgentRun, Asker, ProgramCall, RequestOrigin, RequestPlace
from bot.records.switch import Freeze
from bot.records.terms import StoredTerms
from storage.documents import FreeJson, FreeObject, Index, Part, Spec, Text, Where, WorkDocument
from storage.thread_ids import ThreadId, team_of, turn_id_of

APPROVE = "approve"
"""The choice that permits the call."""
REJECT = "reject"
"""The choice that ends the request."""
AGAIN = "again"
"""For a call in doubt: run it again."""
RAN = "ran"
"""For a call in doubt: it ran, with this result."""
GIVE_UP = "give_up"
"""For a call in doubt: do not run it again. Requires as many votes as a rejection."""
STOPS = frozenset({REJECT, GIVE_UP})
"""Choices after which the call does not run. They require fewer votes."""

CARD = "card"
"""Key and kind of the card in the thread. `card:` begins the keys of its copies."""
BATCH = "batch"
"""Key and kind of a batch card in the thread. `batch:` begins the keys of its copies."""
OWN = "own:"
"""Prefix of keys of copies that are sent by direct message as a preference."""

CLAIM_MS = 30 * 60_000
"""Longest time for which a person can claim a request, in milliseconds."""


class Status(StrEnum):
    """The status of an approval. Stored: version 1, must stay readable."""

    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"
    ANSWERED = "answered"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    WITHDRAWN = "withdrawn"  # by a requester
    UNDECIDABLE = "undecidable"  # had no possible approver when it was requested
    SUPERSEDED = "superseded"  # another approval replaces it, or its run is over
    DENIED = "denied"  # the current policy denies the call


class Kind(StrEnum):
    """The kind of answer that an approval asks for. Stored: version 1, must stay readable."""

    APPROVAL = "approval"  # may this call run?
    QUESTION = "question"  # the agent asks people for information
    DOUBT = "doubt"  # the outcome of a call is unknown: it ran, run it again, or give up?


class ExecutionMode(StrEnum):
    """How often an approved call may run. Stored: version 1, must stay readable."""

    ONCE = "once"
    IDEMPOTENT = "idempotent"  # again after a crash: a second run has no further effect
    NONE = "none"  # a program acts on the decision, and does not tell the start


class ExecutionState(StrEnum):
    """State of an execution. Stored: version 1, must stay readable."""

    READY = "ready"  # not started; also while nobody has decided
    STARTED = "started"  # allowed to begin; the run's journal tells whether it did
    ENDED = "ended"
    FAILED = "failed"
    DOUBT = "doubt"  # began, outcome unknown
    LAPSED = "lapsed"  # the decision does not let it start any more


class ParkedCall(Part):
    """A freeze that keeps an approved call from starting. Stored: version 1, must stay readable."""

    freeze: str
    """Id of the freeze."""
    by: str
    """Slack user id of the person who froze, `cli:user@host`, or `file`."""
    why: Text
    since_ms: int
    """Time of the first try to start the call."""
    may_have_run: bool = False
    """Whether the call is in doubt, and people decided that it runs again."""


class ProgramRun(Part):
    """The run of an approved call by a program. Stored: version 1, must stay readable."""

    generation: int = 0
    """Number of the newest start; the first is 1. 0 before."""
    attempt: str = ""
    """SHA-256 of the attempt that started it, in hexadecimal; empty before."""
    token: str = ""
    """SHA-256 of the token that proves the start, in hexadecimal; empty before."""
    deadline_ms: int = 0
    """Time until which the program tells the result; 0 before the start."""
    is_consumed: bool = False
    """Whether a third service has used the token."""
    is_delivered: bool = False
    """Whether the program has handed the result over."""
    is_not_run: bool = False
    """Whether the program refused to run what it had started."""
    asked: str = ""
    """Id of the approval that asks people for the outcome; empty without one."""
    rerun_ms: int = 0
    """Time at which people last let it run again; 0 before. The decision is as new as that."""
    rerun_by: str = ""
    """Id of the approval by which they let it; empty before."""


class Execution(Part):
    """The execution of an approved call. `bot.approvals.execution` has its rules.

    Stored: version 1, must stay readable.
    """

    mode: ExecutionMode = ExecutionMode.ONCE
    state: ExecutionState = ExecutionState.READY
    number: int = 0
    """Start number, taken from the switch of the workspace; 0 before the first start."""
    runner: str = ""
    """Name of the process that started the call; empty before."""
    started_ms: int = 0
    """Time of the newest start; 0 before."""
    fence: int = 0
    """Fencing token of the thread's lease under which it was last written; 0 before, and for
    programs. A process with an older lease writes nothing."""
    at_ms: int = 0
    """Time of the present state; 0 for a call that is ready."""
    text: Text = ""
    """The result, the error, or why the call did not start; masked and shortened."""
    is_cancellable: bool = False
    """Whether a stop of the agent cancels the running call."""
    program: ProgramRun = ProgramRun()
    """The run by a program; only for its requests."""
    parked: ParkedCall | None = None
    """The freeze that the call waits for, or waited for when people took it back; None for other
    calls. A parked call is ready."""


class ProgramEventType(StrEnum):
    """A kind of event that programs are told. Stored: version 1, must stay readable."""

    CREATED = "request.created"
    UPDATED = "request.updated"  # a vote, an edit, a stage, an escalation, or to be run again
    DECIDED = "request.decided"
    STARTED = "execution.started"
    ENDED = "execution.ended"
    UNKNOWN = "execution.unknown"
    THREAD_ENDED = "thread.ended"  # of a turn of a thread that the program started


class ProgramEvent(Part):
    """A change of a program's request that its endpoints may not have been told.

    It is stored by the write that makes the change. Stored: version 1, must stay readable.
    """

    type: ProgramEventType
    sequence: int
    """The `shown_revision` of the change; it rises with each event."""
    at_ms: int
    status: Status
    """The status after the change."""
    execution: Execution
    """The execution after the change."""


class Emergency(Part):
    """The reasons of a break-glass decision."""

    what: Text
    """The emergency, in the words of the person who decided."""
    why_now: Text
    """The reason why the call cannot wait."""


class PriorApproval(Part):
    """The earlier approval of a call that is now in doubt."""

    by: tuple[str, ...]
    """Slack user ids of the approvers; never empty."""
    at_ms: int


class LastEdit(Part):
    """The last edit, stored so that the audit can still record it after a crash."""

    at_ms: int
    shown: str
    """Digest of the call that the editor saw."""
    note: Text = ""
    """The editor's reason, if no vote of the editor has it."""
    arguments_before: FreeObject | None = None
    """The arguments before the edit; None if they were those of the original request."""


class StoredEdits(Part):
    """The edits of a call by people.

    Stored: version 1, must stay readable.
    """

    original: FreeObject | None = None
    """The arguments of the original request; None if no edit changed them."""
    by: str = ""
    """Slack user id of the last editor; empty without an edit."""
    earlier: tuple[str, ...] = ()
    """Slack user ids of the earlier editors: a part of the call is theirs."""
    voided: tuple[str, ...] = ()
    """Slack user ids of the people whose votes were voided by edits."""
    last: LastEdit | None = None
    """The last edit, for the audit; None without an edit of this approval."""

    @property
    def editors(self) -> tuple[str, ...]:
        """All people who edited the call, the latest last."""
        return tuple(dict.fromkeys((*self.earlier, *([self.by] if self.by else []))))


class GrantRequest(Part):
    """An approver's request for a standing grant, made together with an approval."""

    for_s: int
    """Duration in seconds."""
    uses: int
    """Maximum number of calls."""
    vary: tuple[str, ...] | None = None
    """Paths of arguments that may differ between calls: a part of the paths that the rule permits.
    None for all of the rule's paths."""


class Decision(Part):
    """The result of an approval. It is made once: later votes cannot change it.

    Only a call that a freeze keeps from starting can still be withdrawn or rejected.
    """

    status: Status
    """Any status but `PENDING`."""
    by: str
    """Slack user id of the person who decided; empty when no person did, such as at the expiry."""
    at_ms: int
    reason: Text = ""
    arguments: FreeObject | None = None
    """All arguments of the edited call; None without an edit."""
    answer: FreeJson = None
    """The answer; None for a plain yes or no.

    For a question, a list with one answer per question. For other forms, an object with `feedback`,
    `accepted`, `selected` (ids of options) or `values`. For a call in doubt, an object with the
    choice (`ran`, `again` or `give_up`) and the reported result."""
    digest: str = ""
    """Digest of the decided call: of the arguments on the card, or of the edited arguments."""
    title: Text = ""
    """Verb and object of the edited or completed call, written by its tool. Empty if people did not
    change the arguments, or the tool has no title for them."""
    preview: Text = ""
    """The effect of the edited call, written by the tool's author; empty when `title` is."""
    emergency: Emergency | None = None
    """The reasons for a break-glass decision; None in all other decisions."""
    rule: str = ""
    """Name of the rule that allows the edited call without an approval; empty in all other
    decisions."""
    grant: str = ""
    """Id of the standing grant that allows a program's call; empty in all other decisions."""
    allowance: GrantRequest | None = None
    """The standing grant that the approver requested with this approval; None without one."""


class StoredCard(Part):
    """The revision that the card of an approval shows, or why Slack rejected the card.

    Stored: version 1, must stay readable.
    """

    revision: int = 0
    """The `shown_revision` that the card shows; 0 before the first card."""
    error: Text = ""
    """Slack's error code for a rejected card; empty when Slack accepted the card."""


class StoredBatch(Part):
    """The batch card that an approval is on, or was on.

    Stored: version 1, must stay readable.
    """

    owner_id: str = ""
    """Id of the approval that owns the batch card, which may be this one. Empty for an approval
    that never shared a card."""
    left: bool = False
    """Whether the approval left the batch card, and has its own card."""


class ApprovalMessage(Part):
    """A message about an approval in Slack: a card, a reminder, an escalation.

    The message is stored before it is posted. A process that finds it without a `ts` searches for
    it in Slack before it posts.
    """

    key: str
    """Name of the message, unique within the approval."""
    kind: str
    """`card`, `batch`, or the reason for the message: `reminder`, `escalation`, `mention`,
    `handover`, `snooze_over`, `quiet`, `alert`."""
    user: str = ""
    """Slack user id of the recipient of a direct message; empty for a message in a channel."""
    channel: str = ""
    """Id of the channel; empty for the channel of the cards, or while the id is not known."""
    mentions: tuple[str, ...] = ()
    """Ids of the people and user groups that the message notifies."""
    ts: str = ""
    """`ts` of the message; empty while the message is not known to be in Slack."""
    since_ms: int = 0
    """Start of the schedule of reminders and escalation when the message was planned."""

    @property
    def moment(self) -> str:
        """The key without the recipient: the same for all messages of one step."""
        return self.key.split("@")[0]

    @property
    def is_posted(self) -> bool:
        """Whether the message is known to be in Slack."""
        return bool(self.ts)

    @property
    def is_card(self) -> bool:
        """Whether the message shows the approval or its batch, with buttons."""
        return self.key.startswith((CARD, BATCH, OWN))


class StoredEscalation(Part):
    """The schedule of reminders and escalation, and what was done of it.

    Stored: version 1, must stay readable.
    """

    since_ms: int = 0
    """Time at which the schedule restarted: at an edit, a new stage, or a restore. 0 if it began
    with the request."""
    steps: int = 0
    """Number of escalation steps begun. The people of a begun step may decide."""
    mentioned: tuple[str, ...] = ()
    """Ids of the people and user groups that were mentioned, to mention each only once."""
    reminders: int = 0
    """Number of reminders sent or skipped."""
    begun_ms: int = 0
    """Time since which the people of the first step may decide; 0 before that step."""
    told: int = 0
    """Number of steps whose people were notified."""
    announced: bool = True
    """Whether the first approvers of this schedule were mentioned."""
    duty_ms: int = 0
    """Time up to which rotation changes were announced; 0 for `since_ms`."""
    noted: int = 0
    """Number of steps that the audit has recorded."""
    digest: str = ""
    """Digest of the call when the schedule last advanced. After an edit, it is another one."""
    deserted: bool = False
    """Whether all possible approvers are away without a delegate. The first step then comes early.
    """

    def restarted(self, now_ms: int, *, is_back: bool = False) -> StoredEscalation:
        """Return the schedule, begun again for an edited call or another stage.

        Args:
            now_ms: The time now.
            is_back: Whether an earlier stage waits again after a vote was dropped. Its people are
                not mentioned twice.
        """
        return StoredEscalation(
            since_ms=now_ms,
            mentioned=self.mentioned,
            announced=is_back and self.announced,
            digest=self.digest,
        )


_FLAGS = ("is_bot", "is_guest", "is_external", "is_deleted")


@dataclass(frozen=True, slots=True, kw_only=True)
class Right:
    """A right to vote: the voter's own, or one that its owner delegated to the voter.

    Attributes:
        owner: Slack user id of the owner.
        group: Name of the only group for which the right counts; empty for all groups.
    """

    owner: str
    group: str = ""


class Grounds(Part):
    """Evidence for a vote, stored with the vote because Slack cannot tell it later.

    Stored: version 1, must stay readable.
    """

    payload: str = ""
    """Id of the Slack payload that carried the click."""
    name: Text = ""
    """Name of the voter, as looked up."""
    team: str = ""
    """Home workspace of the voter, as looked up."""
    read_ms: int = 0
    """Time of the look-up of the voter and their groups."""
    shown: str = ""
    """Digest of the call as the voter saw it."""
    file: str = ""
    """Hash of the policy file in effect; empty if there was none."""

    def person(self, user_id: str) -> dict[str, object]:
        """Return the voter's identity, as looked up."""
        flags = dict.fromkeys(_FLAGS, False)
        return {"user": user_id, "name": self.name, "team": self.team, **flags}


class CastVote(Part):
    """A present vote. Stored: version 1, must stay readable."""

    by: str
    """Slack user id of the voter."""
    choice: str
    """`APPROVE`, `REJECT`, or a choice for a call in doubt."""
    at_ms: int
    """Time of the click."""
    digest: str
    """Digest of the call that the vote is for. The vote does not count for an edited call."""
    on_behalf_of: str = ""
    """Slack user id of the owner of a delegated right; empty for the voter's own right."""
    stage: int = 0
    """Number of the stage that the vote counts for; the first is 0."""
    steps: int = 0
    """Number of escalation steps begun at that time."""
    group: str = ""
    """Name of the only group for which a delegated right counts; empty for all groups."""
    note: Text = ""
    """The voter's reason; may be empty."""
    result: Text = ""
    """For a call in doubt, the reported result. Only votes with the same result count together."""
    groups: tuple[str, ...] = ()
    """Names of the groups for which the vote counted, shown as evidence."""
    grounds: Grounds = Grounds()
    """Further evidence."""

    @property
    def right(self) -> Right:
        """The right that the vote uses."""
        return Right(owner=self.on_behalf_of or self.by, group=self.group)

    @property
    def persons(self) -> frozenset[str]:
        """The voter and the owner of the right; both count as one person."""
        return frozenset({self.by, self.right.owner})

    @property
    def aim(self) -> tuple[str, str]:
        """The choice and the result. Different results are different choices."""
        return self.choice, self.result

    @property
    def is_stop(self) -> bool:
        """Whether the choice ends the request without running the call."""
        return self.choice in STOPS


class CardClaim(Part):
    """An approver's claim: the approver is looking into the request.

    Stored: version 1, must stay readable.
    """

    by: str = ""
    """Slack user id of the claimant; empty without a claim."""
    since_ms: int = 0
    """Start of the newest claim; 0 if the request was never claimed."""
    until_ms: int = 0
    """End of the claim."""
    past: tuple[str, ...] = ()
    """Slack user ids of all claimants so far. Each person can claim once."""

    def holds(self, at_ms: int) -> bool:
        """Whether the claim is valid at a time."""
        return bool(self.by) and self.since_ms <= at_ms < self.until_ms

    def ended(self, at_ms: int) -> CardClaim:
        """Return the claim, ended: by a vote, an edit, or a release."""
        return self.changed(by="", until_ms=min(self.until_ms, at_ms))

    def taken(self, user_id: str, at_ms: int) -> CardClaim:
        """Return a new claim of this person."""
        past = (*self.past, user_id)
        return CardClaim(by=user_id, since_ms=at_ms, until_ms=at_ms + CLAIM_MS, past=past)


class Comment(Part):
    """A question that an approver asks back about a pending approval, and its answer."""

    by: str
    """Slack user id of the person who asks."""
    text: Text
    """The question, masked and shortened."""
    at_ms: int
    """Time of the question."""
    ts: str = ""
    """`ts` of the message; empty until it is known to be posted."""
    answer: Text = ""
    """The answer, masked and shortened; empty without an answer."""
    answered_by: str = ""
    """Slack user id of the person who answered, or `AGENT`."""
    answer_ts: str = ""
    """`ts` of the message with the answer; `AGENT` for an answer that is not a message. Empty
    without an answer."""
    to: str = ""
    """Slack user id of the only recipient, or `AGENT`; empty for the requesters."""
    closed: bool = False
    """Whether the question needs no further message: its message says that no answer is needed,
    or Slack rejected it."""

    @property
    def is_open(self) -> bool:
        """Whether the question has no answer."""
        return not self.answer_ts

    def is_same(self, other: Comment) -> bool:
        """Whether both are states of one question."""
        return (self.by, self.at_ms) == (other.by, other.at_ms)

    def key(self, approval: Approval) -> str:
        """Return the key of the question's message, to find it in Slack."""
        return f"{approval.approval_id}:{self.by}:{self.at_ms}"


class UnrecordedAct(Part):
    """An action of a person that the audit may not have yet.

    It is written together with what it changes. The worker records it, and then drops it.
    """

    act: str
    """The kind of the audit entry, a `bot.audit.acts.Act`."""
    by: str
    """Slack user id of the person, or `AGENT`."""
    at_ms: int
    digest: str
    """Digest of the call at that time."""
    revision: int
    """The `shown_revision` that the action made; part of the id of the audit entry."""
    until_ms: int | None = None
    """End of a claim or a snooze; None for other actions."""
    question: Text = ""
    reply: Text = ""
    vote: CastVote | None = None
    """The vote that was taken back; None for other actions."""


class RequesterMessage(Part):
    """A requester's message while an approval is pending."""

    by: str
    text: Text
    """The message, masked and shortened."""
    at_ms: int
    """Time of the message; with `by`, it identifies the message."""


class Restored(Part):
    """The effects of a restore of the database on a request.

    Stored: version 1, must stay readable.
    """

    to_ms: int = 0
    """Time of the backup. The approval may have been decided, and its call may have run, after that
    time. 0 if the request does not belong to a turn that waited for people in the backup."""
    at_ms: int = 0
    """Time at which the request was repeated after the restore; the expiry counts from it. 0 if it
    was not repeated."""
    epoch: int = 0
    """Epoch of the restore that brought this request back. 0 if the request was made, or repeated,
    after the last restore."""


class SeenPart(Part):
    """A part of a call that its card does not show, and that a person opened in a modal."""

    by: str
    digest: str
    """Digest of the call. After an edit, the person must open the part again."""
    what: str = ""
    """The opened part, an `Opened`; empty for pages."""
    page: int = 0
    """Number of the last page that the person opened, after all pages before it; 0 for none."""


PENDING: Where = {"status": Status.PENDING.value}
"""Query condition: pending approvals."""
ENDED: Where = {"status": {"$ne": Status.PENDING.value}}
"""Query condition: approvals that are not pending any more."""


class Approval(WorkDocument):
    """The durable record of one interrupt that people must decide or answer.

    Stored: version 1, must stay readable.
    """

    spec = Spec(
        name="approvals",
        noun="approval",
        key="approval_id",
        indexes=(
            Index(("expires_ms",), PENDING),
            Index(("requester_id", "expires_ms"), PENDING),
            Index(("requester_id", "created_ms"), ENDED),
            Index(("decision.by", "created_ms"), ENDED),
            Index(("thread_id", "created_ms", "position")),
            Index(("thread_id", "created_ms", "position"), {"open": True}),
            Index(where={"open": True}),
            Index(("thread_id", "turn", "created_ms", "position")),
            Index(("card.error", "created_ms"), {"card.error": {"$gt": ""}}),
            Index(("asker.program", "shown_ms"), {"asker.program": {"$gt": ""}}),
            Index(("asker.program", "created_ms"), {"asker.program": {"$gt": ""}}),
            Index(
                ("asker.program", "asker.key_digest", "created_ms"), {"asker.program": {"$gt": ""}}
            ),
            Index(("asker.program", "expires_ms"), PENDING),
            Index(("root_ts",), {"root_ts": {"$gt": ""}}),
            Index(("execution.program.token",), {"execution.program.token": {"$gt": ""}}),
        ),
        content=frozenset(
            {
                "arguments",
                "asker",
                "created_ms",
                "digest",
                "edits",
                "form",
                "kind",
                "members",
                "origin",
                "place",
                "policy_file",
                "position",
                "preview",
                "requester_id",
                "requesters",
                "rule",
                "ruling",
                "terms",
                "thread_id",
                "title",
                "tool",
                "turn",
                "why",
            }
        ),
    )

    approval_id: str
    """`apr_` and hexadecimal digits: unguessable, one per interrupt or per program's call."""
    kind: Kind
    origin: RequestOrigin = RequestOrigin()
    """The door and the program that the request comes from."""
    asker: Asker
    """The run or the program that waits for the end."""
    thread_id: ThreadId
    """Id of the thread, or of the group of a program's requests."""
    turn: int
    """Number of the turn in its thread; the first is 1. 0 for a program's request."""
    position: int
    """Number of the interrupt within its turn; the first is 0. 0 for a program's request."""
    place: RequestPlace
    """Its place in Slack."""
    requester_id: str
    """Slack user id of the first requester. For a program's request, the owner."""
    tool: str
    """Name of the gated tool; for a question, name of the tool that asks it."""
    rule: str
    """Name of the rule that requires this approval; part of the digest. Empty for a question."""
    title: Text
    """Verb and object, in words: `Deploy payments 1.4.2 to production`."""
    why: Text
    """The agent's reason for the call, untrusted; empty without a reason."""
    preview: Text
    """The effect of the call, written by the tool's author; may be empty."""
    arguments: FreeObject
    """The call's arguments, or the questions (`{"questions": [...]}`), or the state that is shown;
    in the order in which they are shown."""
    form: FreeObject | None
    """The form for an answer, as `bot.questions.form` writes it: the JSON schema of editable
    arguments, or an object that names another form. None for the plain form of the kind: a yes or
    no without an edit, or a text per question."""
    digest: str
    """Digest of thread, address, tool, arguments and rule: everything that an approval covers."""
    terms: StoredTerms
    """The terms under which people decide, frozen with the interrupt. A record without readable
    terms is damaged: nobody can decide it."""
    created_ms: int
    expires_ms: int
    status: Status = Status.PENDING
    decision: Decision | None = None
    open: bool = True
    """Whether the approval is pending, or is decided and its thread has not resumed yet."""
    shown_revision: int = 1
    """Counts changes that people can see. A vote or edit judged on an older number is refused."""
    shown_ms: int = 0
    """Time of the last such change; 0 before the first one."""
    card: StoredCard = StoredCard()
    """The revision that the card shows. `messages` has the place of the card."""
    attempts: int = 0
    """Number of failed passes in a row, for the back-off."""
    requesters: tuple[str, ...] = ()
    """Slack user ids of all people whose messages led to the request, as known when it was made."""
    members: Mapping[str, tuple[str, ...]] | None = None
    """Slack user ids by channel id: the members of each channel that decides, as looked up for the
    request. A channel that is too large has no members. None when no channel decides."""
    ruling: FreeObject | None = None
    """The ruling that requires this approval, as `Ask.to_text` writes it; part of the digest. None
    if no gate asks, such as for a question."""
    edits: StoredEdits = StoredEdits()
    """The edits of the call by people, if any."""
    counted: tuple[str, ...] = ()
    """Slack user ids of the people who approved this call in another gate or under another rule.
    They cannot approve it here: each gate requires another person."""
    seen: tuple[SeenPart, ...] = ()
    """Hidden parts of the call that people opened, newest last."""
    said: tuple[RequesterMessage, ...] = ()
    """Messages that requesters wrote while the approval was pending, oldest first."""
    ask_deleted: str = ""
    """Author of a deleted message that asked for this; empty while the message stands."""
    requester_gone: Literal["", "workspace", "channel"] = ""
    """The place that the first requester has left while this was pending; empty if none."""
    execution: Execution = Execution()
    """The execution of the approved call."""
    frozen: Freeze | None = None
    """The freeze that the card names while people decide: the call would not start. None without
    one. The switch decides what starts, never this field."""
    stopped_by: str = ""
    """Slack user id of the person who stopped the agent after the approval, before the end of the
    call; empty without such a stop."""
    stuck: Text = ""
    """Why no approver can decide at present, written by this program; empty if one can."""
    asked_again: str = ""
    """Why this request repeats one that was decided before; empty if it does not."""
    restored: Restored = Restored()
    """The effects of restores of the database on this request."""
    policy_file: str = ""
    """Hash of the policy file in effect at the request; empty without a policy file."""
    votes: tuple[CastVote, ...] = ()
    """The current votes, in the order in which they were stored. A person has at most one vote."""
    stage: int = 0
    """Number of the stage that waits for votes; the first is 0."""
    claim: CardClaim = CardClaim()
    """The current claim, if any, and the people who claimed the request before."""
    snoozes: Mapping[str, int] = {}
    """End of each person's snooze, by Slack user id. The person is not mentioned before."""
    events: tuple[ProgramEvent, ...] = ()
    """Changes of a program's request that its endpoints may not have been told, oldest first."""
    acts: tuple[UnrecordedAct, ...] = ()
    """Actions that the audit may not have yet, oldest first."""
    dialog: tuple[Comment, ...] = ()
    """Questions asked on the card, with their answers, oldest first."""
    elsewhere: str = ""
    """Where the cards are if the policy sends them elsewhere: the id of a channel, or `dm` for
    direct messages to the approvers. The thread then has one line instead of the card. Empty for
    the thread."""
    messages: tuple[ApprovalMessage, ...] = ()
    """The messages about the approval: cards, reminders, other messages of the escalation. Only the
    holder of the lease changes them. An approval on the batch card of another approval has no card
    of its own here."""
    root_ts: str = ""
    """`ts` of the first message of the thread of a program's request, once its card is posted."""
    escalation: StoredEscalation = StoredEscalation()
    """The schedule of reminders and escalation."""
    why_said: bool = False
    """Whether the agent's last text, directly above the card, already has the reason."""
    newer_ts: str = ""
    """`ts` of the card of the request that replaces this one, in the same channel; empty without
    such a card."""
    prior_approval: PriorApproval | None = None
    """For a call in doubt: who approved the call, and when. None if no person did, or if unknown.
    """
    sign: str = ""
    """Name of the approval's reaction on the root message of the thread, such as `waits` or
    `rejected`; empty for none. See `bot.approvals.due.thread_reactions`."""
    batch: StoredBatch = StoredBatch()
    """The batch card that the approval is on, or was on."""

    @model_validator(mode="after")
    def _stage_exists(self) -> Self:
        stages = 1 if self.kind is Kind.DOUBT else len(self.terms.stages)
        if not 0 <= self.stage < stages:
            raise ValueError("the terms have no such stage")
        return self

    @property
    def team_id(self) -> str:
        """Slack id of the workspace."""
        return team_of(self.thread_id)

    @property
    def channel_id(self) -> str:
        """Slack id of the channel."""
        return self.place.channel_id

    @property
    def thread_ts(self) -> str:
        """`ts` of the first message of the thread; empty before that message is posted."""
        return self.place.thread_ts or self.thread_card.ts

    @property
    def all_requesters(self) -> tuple[str, ...]:
        """Slack user ids of all people whose words may have caused the request; first the first.

        The agent has read their messages. A rule may forbid that any of them approves.
        """
        return tuple(dict.fromkeys((self.requester_id, *self.requesters)))

    @property
    def interrupt_id(self) -> str:
        """Id of the agent's interrupt; empty for a program's request."""
        return self.asker.interrupt_id if isinstance(self.asker, AgentRun) else ""

    @property
    def caller_program(self) -> str:
        """Id of the program that makes the call itself; empty for a call of an agent."""
        return self.asker.program if isinstance(self.asker, ProgramCall) else ""

    @property
    def address(self) -> str:
        """Address of the call within its asker, as text; part of the digest."""
        return self.asker.address

    @property
    def checkpoint_id(self) -> str:
        """Id of the turn, which is the id of its checkpoint."""
        return turn_id_of(self.thread_id, self.turn)

    def answered(self, name: str) -> object:
        """Return a field of the decision's answer, or None if the answer has no such field."""
        answer = self.decision.answer if self.decision else None
        return answer.get(name) if isinstance(answer, dict) else None

    def message(self, key: str) -> ApprovalMessage | None:
        """Return the message of a key, or None."""
        return next((message for message in self.messages if message.key == key), None)

    @property
    def thread_card(self) -> ApprovalMessage:
        """The card in the thread; without a `ts` before the first post."""
        new = ApprovalMessage(key=CARD, kind=CARD, channel=self.channel_id)
        return self.message(CARD) or new

    @property
    def batch_card(self) -> ApprovalMessage:
        """The batch card in the thread that the approval keeps; without a `ts` before the post."""
        new = ApprovalMessage(key=BATCH, kind=BATCH, channel=self.channel_id)
        return self.message(BATCH) or new

    @property
    def copies(self) -> tuple[ApprovalMessage, ...]:
        """Further cards, in direct messages and other channels."""
        return tuple(
            message
            for message in self.messages
            if message.is_card and message.key not in {CARD, BATCH}
        )

    @property
    def reminders(self) -> tuple[ApprovalMessage, ...]:
        """Reminders and other messages of the escalation."""
        return tuple(message for message in self.messages if not message.is_card)

    def with_message(self, message: ApprovalMessage) -> Approval:
        """Return the approval with a message, which replaces the one of the same key."""
        if self.message(message.key) is None:
            return self.changed(messages=(*self.messages, message))
        messages = (message if other.key == message.key else other for other in self.messages)
        return self.changed(messages=tuple(messages))

    def with_card_ts(self, ts: str) -> Approval:
        """Return the approval with its card at another message."""
        return self.with_message(self.thread_card.changed(ts=ts))

    @property
    def schedule_ms(self) -> int:
        """The start of the schedule of reminders and steps."""
        return self.escalation.since_ms or self.created_ms

    @property
    def is_batched(self) -> bool:
        """Whether the approval is on a batch card."""
        return bool(self.batch.owner_id) and not self.batch.left

    def shares_batch(self, other: Approval) -> bool:
        """Whether both approvals are, or were, on one batch card."""
        return bool(self.batch.owner_id) and self.batch.owner_id == other.batch.owner_id
