"""An approval: what people must decide or answer, and all that becomes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from storage.documents import Index, Part, Spec, Text, Where, WorkDocument

UNKNOWN_TS = "?"
"""In place of a message's `ts`: a post was begun, and nobody knows whether it was made."""

APPROVE = "approve"
"""The choice that permits the call."""
REJECT = "reject"
"""The choice that ends the request."""
AGAIN = "again"
"""For a call in doubt: run it again."""
RAN = "ran"
"""For a call in doubt: it ran, with this result."""
GIVE_UP = "give_up"
"""For a call in doubt: leave it. Requires as many votes as a rejection."""
STOPS = frozenset({REJECT, GIVE_UP})
"""Choices by which nothing runs. They require fewer votes."""

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
    WITHDRAWN = "withdrawn"  # by somebody who asked for it
    UNDECIDABLE = "undecidable"  # nobody could have decided it when it was made
    SUPERSEDED = "superseded"  # asked anew, under another approval; or its run is over
    DENIED = "denied"  # the policy in force denies by now what people were asked


class Kind(StrEnum):
    """The kind of answer that an approval asks for. Stored: version 1, must stay readable."""

    APPROVAL = "approval"  # may this call run?
    QUESTION = "question"  # what only people know
    DOUBT = "doubt"  # a call may have run or not: ran, run again, give up?


class RunState(StrEnum):
    """State of an execution. Stored: version 1, must stay readable."""

    RUNNING = "running"
    RAN = "ran"
    FAILED = "failed"
    STOPPED = "stopped"  # another condition prevented the start
    DOUBT = "doubt"  # started, outcome unknown


class Run(Part):
    """The execution of an approved call: its state, and its result."""

    state: RunState
    at_ms: int
    text: Text = ""


class Emergency(Part):
    """The reasons of a break-glass decision."""

    what: Text
    """The emergency, in the words of the person who decided."""
    why_now: Text
    """The reason why the call cannot wait."""


class PriorApproval(Part):
    """The approval of a call that is in doubt now."""

    by: tuple[str, ...]
    """Slack user ids; never empty."""
    at_ms: int


class LastEdit(Part):
    """The state that the last edit found: for the audit, whose writer may have died."""

    at_ms: int
    shown: str
    """Digest of the call that the editor saw."""
    note: Text = ""
    """The reason that the editor gave, where no vote of theirs keeps it."""
    arguments_before: str = ""
    """The arguments before the edit, as canonical JSON; empty where they were those first asked
    for."""


class GrantRequest(Part):
    """An approver's request to allow later calls, too."""

    for_s: int
    """Duration in seconds."""
    uses: int
    """Maximum number of calls."""
    vary: tuple[str, ...] | None = None
    """Paths of arguments that may differ, among those that the rule permits; None for all of
    these."""


class Decision(Part):
    """A person's (or the clock's) choice. Part of an approval; a decision is made once."""

    status: Status
    """Any but pending."""
    by: str
    """Slack user id; empty when the clock decided."""
    at_ms: int
    reason: Text = ""
    arguments_json: str = ""
    """The edited arguments, whole; empty when nothing was edited."""
    answer_json: str = ""
    """For a question: JSON list of answers, one per question; or a JSON object with `feedback`,
    `accepted`, `selected` (ids of options) or `values`, by the form of the approval. For a doubt:
    `ran`, `again`, or `give_up`, and the result that a person gave, as a JSON object."""
    digest: str = ""
    """The digest that this decision covers: of the shown, or of the edited arguments."""
    title: Text = ""
    """Verb and object of what runs when people changed or completed its arguments, in the words of
    its tool; empty when nothing was changed, or the tool has no words for it."""
    preview: Text = ""
    """The effect of that, in the words of the tool's author; empty as `title` is."""
    emergency: Emergency | None = None
    """The reasons of somebody who let it run without those who should decide; None in any other
    decision."""
    rule: str = ""
    """Name of the rule that allows the call as somebody edited it, so that nobody had to approve
    it; empty in any other decision."""
    allowance: GrantRequest | None = None
    """How much of the same whoever approved it allows, too, from which the grant is made; None
    where they allow no more than this."""


class SideMessage(Part):
    """A message of an approval beside the one in its thread: another card of it, or a nudge."""

    key: str
    """Its name among the messages of its approval."""
    kind: str
    """`card`, or why it is sent: `reminder`, `escalation`, `mention`, `handover`, `snooze_over`,
    `quiet`, `alert`; `batch` for a copy of a batch card."""
    user: str = ""
    """Slack user id of the reader of a direct message; empty for a channel."""
    channel: str = ""
    """Id of the channel; empty where it is the one of the cards, or not known yet."""
    mentions: tuple[str, ...] = ()
    """Ids of the people and user groups that it notifies."""
    ts: str = ""
    """`ts` of the message; empty before it is posted, `UNKNOWN_TS` while nobody knows."""
    since_ms: int = 0
    """The time since which its readers are asked."""

    @property
    def moment(self) -> str:
        """The part of the key that all messages of one moment share."""
        return self.key.split("@")[0]

    @property
    def is_posted(self) -> bool:
        """Whether the message is known to be in Slack."""
        return self.ts not in {"", UNKNOWN_TS}


class StoredEscalation(Part):
    """The progress of reminders and escalation, beyond the fields of the approval itself."""

    since_ms: int
    """Start of the schedule."""
    told: int = 0
    """Number of steps whose people were notified."""
    announced: bool = True
    """Whether the people asked since then were mentioned."""
    duty_ms: int = 0
    """Time up to which rotation changes were announced."""
    noted: int = 0
    """Number of steps in the audit."""
    digest: str = ""
    """Digest of the request."""
    stage: int = 0
    """The stage."""
    deserted: bool = False
    """Whether all possible approvers are away without a delegate (6.3)."""


_FLAGS = ("is_bot", "is_guest", "is_external", "is_deleted")


@dataclass(frozen=True, slots=True, kw_only=True)
class Right:
    """A right to fill a slot, of the voter or of the owner who delegated it.

    Attributes:
        owner: Slack user id of the owner.
        group: The only group by which the right counts; empty for all.
    """

    owner: str
    group: str = ""


class Grounds(Part):
    """Evidence of a vote (7.5), stored with it because it cannot be looked up later.

    Stored: version 1, must stay readable.
    """

    payload: str = ""
    """Id of the Slack payload with the click."""
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
    """The call digest that the vote is bound to (3.7)."""
    on_behalf_of: str = ""
    """Owner of a delegated right; empty for the voter's own."""
    stage: int = 0
    """The stage of the vote, whose slots it fills."""
    steps: int = 0
    """Number of escalation steps at that time."""
    group: str = ""
    """The only group by which a delegated right counts; empty for all."""
    note: Text = ""
    """The reason given."""
    result: Text = ""
    """For a call in doubt, the reported result, which all voters must agree on."""
    groups: tuple[str, ...] = ()
    """Names of the groups by which the vote counted: shown as evidence."""
    grounds: Grounds = Grounds()
    """Further evidence."""

    @property
    def right(self) -> Right:
        """The right that the vote uses."""
        return Right(owner=self.on_behalf_of or self.by, group=self.group)

    @property
    def persons(self) -> frozenset[str]:
        """The voter and the owner of the right; both count as one person (6.1)."""
        return frozenset({self.by, self.right.owner})

    @property
    def aim(self) -> tuple[str, str]:
        """The choice and the result. Different results are different choices (3.12)."""
        return self.choice, self.result

    @property
    def is_stop(self) -> bool:
        """Whether the choice ends the request."""
        return self.choice in STOPS


class CardClaim(Part):
    """A claim (5.9). Stored: version 1, must stay readable."""

    by: str = ""
    """Slack user id of the claimant; empty without a claim."""
    since_ms: int = 0
    """Start of the claim; 0 for never."""
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
    """A question about a pending approval, and its answer (6.9)."""

    by: str
    """Slack user id of the person who asks."""
    text: Text
    """The question, masked and shortened."""
    at_ms: int
    """Time of the question."""
    ts: str = ""
    """`ts` of the message; empty until it is known to be posted."""
    answer: Text = ""
    """Like `text`; empty while open."""
    answered_by: str = ""
    """Slack user id of the person who answered, or `AGENT`."""
    answer_ts: str = ""
    """`ts` of the answer's message; `AGENT` without one."""
    to: str = ""
    """Slack user id of the only recipient, or `AGENT`; empty for the requesters."""
    closed: bool = False
    """Whether the message says that no answer is needed any more."""

    @property
    def is_open(self) -> bool:
        """Whether the question has no answer."""
        return not self.answer_ts

    def key(self, approval: Approval) -> str:
        """Return the key of the question's message, to find it in Slack."""
        return f"{approval.approval_id}:{self.by}:{self.at_ms}"


class Said(Part):
    """A requester's message while an approval is pending."""

    by: str
    text: Text
    """The message, masked and shortened."""
    at_ms: int
    """Time of the message; with `by`, it identifies the message."""


class SeenPart(Part):
    """A part of a call that its card does not show, and that a person has opened."""

    by: str
    digest: str
    """Digest of the call: an edit hides the content again."""
    what: str = ""
    """An `Opened`; empty for pages."""
    page: int = 0
    """The last page shown, and with it all pages before; 0 for no page."""


PENDING: Where = {"status": Status.PENDING.value}
"""The condition of approvals that nobody has decided."""
ENDED: Where = {"status": {"$ne": Status.PENDING.value}}
"""The condition of all others."""


class Approval(WorkDocument):
    """The durable form of one interrupt that people must decide or answer.

    `shown_revision` counts changes that people can see; `drawn_revision` is the one on the card.
    Stored: version 1, must stay readable.
    """

    spec = Spec(
        name="approvals",
        noun="approval",
        key="approval_id",
        indexes=(
            Index(("expires_ms", "id"), PENDING),
            Index(("requester_id", "expires_ms", "id"), PENDING),
            Index(("requester_id", "created_ms"), ENDED),
            Index(("decision.by", "created_ms"), ENDED),
            Index(("thread_id", "created_ms", "position")),
            Index(("thread_id", "created_ms", "position"), {"open": True}),
            Index(("id",), {"open": True}),
            Index(("checkpoint_id", "created_ms", "position")),
            Index(("undeliverable", "created_ms"), {"undeliverable": {"$gt": ""}}),
        ),
        content=frozenset(
            {
                "address",
                "approvers",
                "arguments_json",
                "backups",
                "channel_id",
                "checkpoint_id",
                "created_ms",
                "digest",
                "form_json",
                "interrupt_id",
                "kind",
                "members",
                "original_json",
                "policy_file",
                "position",
                "preview",
                "requester_id",
                "requesters",
                "rule",
                "ruling_json",
                "self_approval",
                "team_id",
                "terms_json",
                "thread_id",
                "thread_ts",
                "title",
                "tool",
                "why",
            }
        ),
    )

    approval_id: str
    """`apr_` and the hexadecimal id of the interrupt: unguessable, one per interrupt."""
    kind: Kind
    thread_id: str
    checkpoint_id: str
    interrupt_id: str
    position: int
    """Order among the interrupts of one turn; the first is 0."""
    team_id: str
    channel_id: str
    thread_ts: str
    requester_id: str
    address: str
    """The place in the run where it waits, as text; part of the digest."""
    tool: str
    """Name of the gated tool; for a question, of the tool that asks."""
    rule: str
    """The rule that asked for this approval; part of the digest. Empty for a question."""
    title: Text
    """Verb and object, in words: `Deploy payments 1.4.2 to production`."""
    why: Text
    """The agent's own words; empty when it gave none. Untrusted."""
    preview: Text
    """The effect of the call, in the words of the tool's author; empty when there are none."""
    arguments_json: str
    """Canonical JSON object of the call's arguments; else of what is asked, such as
    `{"questions": [...]}`, or of the state that is shown."""
    form_json: str
    """The form of its answers, as `bot.questions.form` writes it: a JSON schema of arguments that
    can be edited, empty when they cannot; or an object that names another form."""
    digest: str
    """Digest of thread, address, tool, arguments and rule: what the card shows."""
    approvers: tuple[str, ...]
    """User ids, user group ids, or `channel`; frozen when the approval is made."""
    self_approval: bool
    """Whether the requester may decide."""
    created_ms: int
    expires_ms: int
    remind_ms: int | None
    """The time of the next reminder; None when there is no more."""
    reminders: int = 0
    status: Status = Status.PENDING
    decision: Decision | None = None
    open: bool = True
    """Whether the thread has yet to be told: pending, or decided and not resumed."""
    shown_revision: int = 1
    drawn_revision: int = 0
    card_ts: str = ""
    """`ts` of the card; empty while it is not known to be posted."""
    post_tried: bool = False
    """Whether a post of the card was begun: look for it before posting again."""
    attempts: int = 0
    """Counts the attendances in a row that ended in a fault that may pass."""
    undeliverable: Text = ""
    """Why Slack does not take the card, and will not when asked again; empty while it does."""
    backups: tuple[str, ...] = ()
    """Those who may decide, too, once it has escalated: as `approvers`, and frozen with them.
    Nobody who asked for it is among them, unless the requester may decide."""
    escalate_ms: int | None = None
    """The time when those are asked, unless it is decided before; None when they will not be."""
    escalated_ms: int | None = None
    """The time since which they may decide; None when it has not escalated."""
    escalation_told: bool = False
    """Whether the message that asks them is in the thread."""
    requesters: tuple[str, ...] = ()
    """User ids: everybody whose words led to this; frozen when it is made."""
    members: Mapping[str, tuple[str, ...]] | None = None
    """User ids by channel: who was a member of a channel that decides, when it was asked; nobody of
    a channel that is too large. None when no channel decides."""
    ruling_json: str = ""
    """The ruling that people are asked under, as canonical JSON; empty for a question."""
    original_json: str = ""
    """The arguments as first asked for, when an edit has bound the card to others; else empty."""
    edited_by: str = ""
    """Slack user id of who made that edit; empty when there is none."""
    editors_excluded: bool = False
    """Whether who made that edit cannot approve it, too."""
    editors: tuple[str, ...] = ()
    """User ids: who edited it before that, and wrote a part of it."""
    last_edit: LastEdit | None = None
    """The last edit of it; None while there is none."""
    voided: tuple[str, ...] = ()
    """User ids: whose votes an edit made void, as they were for another call."""
    counted: tuple[str, ...] = ()
    """User ids: who has agreed to this call in another gate of it, or under another rule, and so
    cannot agree to it here."""
    seen: tuple[SeenPart, ...] = ()
    """Parts that the card does not show, by who has opened them; the newest last."""
    said: tuple[Said, ...] = ()
    """Messages that requesters wrote while it waits, oldest first."""
    run: Run | None = None
    """The progress of the approved call; None until it starts."""
    stuck: Text = ""
    """Why nobody can decide it now, in our own words; empty while somebody can."""
    asked_again: str = ""
    """Why people are asked anew about a call that was decided before; empty when they are not."""
    restored_to_ms: int = 0
    """The moment to which the database went back: it may have been decided after that, and its call
    may have run; 0 when it did not."""
    restored_ms: int = 0
    """When people were asked again after that; its times count from then. 0 when they were not."""
    restored_epoch: int = 0
    """The epoch that began when the database went back to a copy that had this as it stands; 0 when
    it was asked, or asked again, since."""
    reminder_ts: str = ""
    """`ts` of the newest reminder, or `UNKNOWN_TS`; empty while there is none that has to be edited
    when this is decided."""
    escalation_ts: str = ""
    """`ts` of the message to the backup people; empty while there is none that has to be edited."""
    terms_json: str = ""
    """The terms under which people decide, as `bot.policy.terms.Terms` writes them; frozen with the
    interrupt. Empty for a question, and where nothing gave any."""
    policy_file: str = ""
    """Hash of the policy that was in force when people were asked; empty where none was."""
    votes: tuple[CastVote, ...] = ()
    """The present votes, in order of writing. A person has one vote at most."""
    stage: int = 0
    """The stage of its terms that waits for people; the first is 0."""
    steps: int = 0
    """So many steps of its escalation are done."""
    ladder_ms: int = 0
    """The time since which reminders and escalation count: an edit and a new stage begin them anew.
    0 for since it was made."""
    mentioned: tuple[str, ...] = ()
    """Ids: who was mentioned about it, so that nobody is where once is enough."""
    claim: CardClaim = CardClaim()
    """The claim of somebody who sees to it, and all claims before."""
    snoozes: Mapping[str, int] = {}
    """By user id, until when that person is not mentioned."""
    dialog: tuple[Comment, ...] = ()
    """Questions asked back on the card, oldest first."""
    cards: tuple[SideMessage, ...] = ()
    """Its cards beside the first, in direct messages and other channels."""
    place: str = ""
    """Where its cards are, when not in its thread: the id of a channel, or `dm` for direct messages
    to whoever can decide. Then the thread has a line in place of the first card."""
    messages: tuple[SideMessage, ...] = ()
    """Its reminders and other messages of its escalation, beside the cards."""
    escalation: StoredEscalation | None = None
    """The progress of its escalation; None before the first step."""
    why_said: bool = False
    """Whether the agent's text in the thread, right above the card, says why."""
    newer_ts: str = ""
    """`ts` of the card of the request that replaces this one, in the same channel; empty where
    there is none yet."""
    prior_approval: PriorApproval | None = None
    """Of a call in doubt: who approved it, and when; None where nobody did, or that is not
    known."""
    sign: str = ""
    """The reaction on the root message of the thread; see `bot.approvals.due.thread_reactions`.

    It says that something waits, or how it ended; empty for none."""
    batch: str = ""
    """Id of the approval that keeps the one card of several, this among them; empty where each has
    a card of its own."""
    batch_left: bool = False
    """Whether it is not on that card any more, and has one of its own."""
    batch_ts: str = ""
    """Of the approval that keeps such a card: its `ts`, or `UNKNOWN_TS` while nobody knows whether
    it was posted; empty for all others."""

    @property
    def is_batched(self) -> bool:
        """Whether it is on a card with others."""
        return bool(self.batch) and not self.batch_left

    @property
    def next_ms(self) -> int:
        """The next time a pending approval needs attention: its reminder, escalation or expiry."""
        soon = (self.remind_ms, self.escalate_ms, self.expires_ms)
        return min(time_ms for time_ms in soon if time_ms is not None)
