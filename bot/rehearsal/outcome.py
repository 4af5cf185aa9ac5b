"""The outcome of an event, in the words of cases: messages, records, and the agent's results."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bot.approvals.execution import can_take_back, execution_of
from bot.policy.progress import ballot_of
from bot.records.approval import Approval, ExecutionState, Kind, Status
from bot.rehearsal.scripted_agents import RAN
from bot.rehearsal.simulation import Simulation
from bot.slack.calls import BATCH_EVENT
from bot.slack.messages.texts import TEXT_EVENT
from bot.threads.halts import HALTED
from bot.words import catalogue
from slack_sandbox.workspace.records import SlackMessage, called_in
from storage.audit import AuditEntry

ACTIONS = frozenset(
    {
        "requested",
        "allowed",
        "denied",
        "undecidable",
        "voted",
        "vote_dropped",
        "taken_back",
        "edited",
        "edit_refused",
        "refused",
        "claimed",
        "claim_ended",
        "snoozed",
        "asked_back",
        "reminded",
        "handed_over",
        "escalated",
        "decided",
        "expired",
        "withdrawn",
        "superseded",
        "lapsed",
        "started",
        "executed",
        "doubted",
        "delegated",
        "delegation_ended",
        "away",
        "granted",
        "grant_used",
        "grant_ended",
        "revealed",
        "broke_glass",
        "policy_loaded",
        "policy_refused",
        "unusable",
        "checkpoint",
        "frozen",
        "unfrozen",
        "parked",
    }
)
"""The actions that cases name. The bot's audit has some more."""
KINDS = {
    "countersign_card": "card",
    BATCH_EVENT: "card",
    "countersign_reminder": "reminder",
    "countersign_escalation": "escalation",
    "countersign_mention": "mention",
    "countersign_line": "line in the thread",
    "countersign_handover": "handover",
    "countersign_snooze_over": "snooze_over",
    "countersign_alert": "alert",
    "countersign_question": "question",
    "countersign_quiet": "nobody will be told in time",
    "countersign_freeze": "freeze",
    "countersign_unfrozen": "unfrozen",
}
"""Kinds of messages, by the event type of their metadata."""
_OF_A_CHANNEL = frozenset({"freeze", "unfrozen"})
"""Kinds of messages that mention nobody: cases name their channel."""
_PERSON = re.compile(r"<@([UW][A-Z0-9]+)>")
_GROUP = re.compile(r"<!subteam\^(S[A-Z0-9]+)")
_HEARD: tuple[tuple[str, str], ...] = (
    ("rejected", "Rejected by a person"),
    ("denied", "The rules here do not allow"),
    ("denied", "A rule denies this request by now"),
    ("expired", "Nobody answered in time"),
    ("undecidable", "Nobody can decide this request"),
    ("withdrawn", "The request was withdrawn"),
    ("edited", "A person changed the arguments"),
    ("gave up", "People gave up"),
    ("frozen", "The call was frozen by people"),
)


@dataclass(slots=True)
class Watcher:
    """Returns what is new since the last step.

    Attributes:
        stage: The simulation.
        start_ms: Start of the case, to which times are relative.
    """

    stage: Simulation
    start_ms: int
    _seen_messages: set[tuple[str, str]] = field(default_factory=set)
    _seen_entries: set[str] = field(default_factory=set)

    async def entries(
        self, thread_ids: Iterable[str], *, only: Approval | None = None
    ) -> list[AuditEntry]:
        """Return new audit entries of some threads, and of no thread, in order.

        Args:
            thread_ids: Ids of threads.
            only: Return only the entries of this approval; others stay new.
        """
        entries = [
            entry
            for entry in await self.stage.entries(thread_ids)
            if entry.entry_id not in self._seen_entries
            and entry.action in ACTIONS
            and (only is None or entry.approval_id == only.approval_id)
        ]
        self._seen_entries.update(entry.entry_id for entry in entries)
        return entries

    def messages(self, *, only: Approval | None = None) -> list[list[Any]]:
        """Return new messages, each as `[time, kind, mentioned]`, with `{dm: people}` if direct.

        Args:
            only: Return only the messages about this approval; others stay new.
        """
        new: list[SlackMessage] = []
        batch = only.batch.owner_id if only is not None else ""
        for message in self.stage.posted:
            key = (message.channel, message.ts)
            is_other = only is not None and _record_of(message) != only.approval_id
            is_shared = bool(batch) and _record_of(message, BATCH_EVENT) == batch
            if only is not None and is_shared:
                # A batch card counts as a card of each of its approvals.
                key, is_other = (only.approval_id, message.ts), False
            if key in self._seen_messages or is_other:
                continue
            self._seen_messages |= {key, (message.channel, message.ts)}
            if _kind(message):
                new.append(message)
        return _merged(
            [self._as_posted(posted) for posted in sorted(new, key=lambda posted: posted.ts)]
        )

    async def card(self, approval: Approval | None) -> dict[str, Any]:
        """Return an approval's rules, stage and votes, and whether it can be decided."""
        if approval is None or approval.kind is Kind.DOUBT:
            return {}
        state: dict[str, Any] = {"rules": approval.rule, "stage": approval.stage + 1}
        if approval.status is Status.PENDING:
            ballot = ballot_of(approval)
            tallies = ballot.progress(await self.stage.snapshot_of(approval, ballot))
            state["votes"] = {tally.name: f"{tally.have}/{tally.need}" for tally in tallies}
            state["stuck"] = await self.stage.is_stuck(approval)
            state["only_after_escalation"] = bool(approval.stuck)
        state["grant"] = await self._grant(approval)
        return state

    def lines(self, approval: Approval | None, keys: Sequence[str]) -> list[str]:
        """Return those of some keys of texts whose words the card of an approval shows."""
        if approval is None:
            return []
        channel, ts = self.stage.card_of(approval, "")
        card = self.stage.sandbox.workspace.message(channel, ts)
        shown = _plain(f"{card.text} {json.dumps(card.blocks, ensure_ascii=False)}")
        texts = catalogue("en").texts
        return [key for key in keys if re.search(_pattern(texts[key]), shown)]

    async def _grant(self, approval: Approval) -> str:
        """Return the counter of a thread's newest standing grant; empty without one."""
        now, grants = self.stage.clock(), self.stage.storage.grants
        current = await grants.current(approval.thread_id, now_ms=now)
        if not current:
            return ""
        return f"{len(current[-1].uses)} of {current[-1].max_uses}"

    def _as_posted(self, message: SlackMessage) -> tuple[str, str, list[str], list[str]]:
        at_ms = round(float(message.ts) * 1_000)
        seconds = round((at_ms - self.start_ms) / 1_000)
        minutes, rest = divmod(seconds, 60)
        time = f"+{seconds}s" if rest else f"+{minutes}m"
        channel = self.stage.sandbox.workspace.channels[message.channel]
        mentioned = _mentions(message, is_direct=channel.kind == "im")
        if _kind(message) in _OF_A_CHANNEL:
            return time, _kind(message), [channel.id], []
        if channel.kind == "im" and channel.id not in self.stage.world.channels:
            people = [
                user for user in channel.members if user != self.stage.sandbox.workspace.bot_user
            ]
            if _kind(message) == "snooze_over":  # this kind of message is always direct
                return time, _kind(message), people, []
            return time, _kind(message), [], people
        return time, _kind(message), mentioned, []


def _pattern(text: str) -> str:
    """Return a regular expression for a text of the catalogue with any values."""
    return ".+?".join(map(re.escape, re.split(r"\{[a-z_]+\}", _plain(text))))


def _plain(text: str) -> str:
    """Return a text without bold type and wide spaces, which depend on its place."""
    return " ".join(text.replace("*", "").split())


def _merged(messages: Iterable[tuple[str, str, list[str], list[str]]]) -> list[list[Any]]:
    """Join messages of the same time and kind into one, with the recipients of direct ones."""
    recipients: dict[tuple[str, str], tuple[list[str], list[str]]] = {}
    for time, kind, mentioned, people in messages:
        known = recipients.setdefault((time, kind), ([], []))
        known[0].extend(mentioned)
        known[1].extend(people)
    return [
        [time, kind, mentioned, *([{"dm": sorted(people)}] if people else [])]
        for (time, kind), (mentioned, people) in recipients.items()
    ]


def _record_of(message: SlackMessage, event: str = "") -> str:
    """Return the id of a message's record; empty if the message has another event type."""
    metadata = message.metadata or {}
    payload: Mapping[str, Any] = metadata.get("event_payload") or {}
    return str(payload.get("id", "")) if event in {"", metadata.get("event_type")} else ""


def _kind(message: SlackMessage) -> str:
    if f"/{HALTED}/" in _record_of(message, TEXT_EVENT):
        return "halted"
    return KINDS.get(str((message.metadata or {}).get("event_type")), "")


def _mentions(message: SlackMessage, *, is_direct: bool) -> list[str]:
    """Return the mentioned people and groups: the recipients in their order, then all others.

    Slack does not notify people who are mentioned in a direct message to another person.
    """
    payload: Mapping[str, Any] = (message.metadata or {}).get("event_payload") or {}
    meant = [str(mention["id"]) for mention in payload.get("mentions") or ()]
    text = f"{message.text} {called_in(message)}"
    really = {*_PERSON.findall(text), *_GROUP.findall(text)}
    mentioned = [name for name in meant if name in really or name.startswith("C")]
    return mentioned if is_direct else [*mentioned, *sorted(really - {*meant})]


def last_result(results: Sequence[str]) -> str:
    """Return the last result that the agent received, in the words of cases; `ran` if it ran."""
    if not results:
        return ""
    text = results[-1]
    return next((word for word, beginning in _HEARD if text.startswith(beginning)), text)


def agent_heard(word: str, approval: Approval | None, entries: Sequence[AuditEntry]) -> str:
    """Return what the agent received, with the reason: empty if no one was asked."""
    if approval is not None and approval.kind is Kind.DOUBT and word:
        return _after_doubt(word, approval)
    if word != RAN:
        return word
    actions = {entry.action for entry in entries}
    if "broke_glass" in actions:
        return "approved (break-glass)"
    if approval is None or actions & {"allowed", "grant_used"}:
        return ""
    return "approved"


def _after_doubt(word: str, approval: Approval) -> str:
    """Return the result of a call in doubt: of the second run, a person's text, or none."""
    match approval.answered("choice"):
        case "again":
            return "result" if word == RAN else word
        case "ran":
            return f"result: {word}"
        case _:
            return "gave up" if "It is unknown whether it took effect" in word else word


def state_of(approval: Approval | None, entries: Sequence[AuditEntry] = ()) -> str:
    """Return the state of an approval in the words of cases.

    Args:
        approval: The newest approval, or None.
        entries: New audit entries: of calls without a request, and of approved calls that a rule
            denied before their start.
    """
    actions = {entry.action for entry in entries}
    if approval is None:
        return next((state for act, state in _UNASKED.items() if act in actions), "")
    is_new = "requested" in actions and approval.status is Status.PENDING  # after an allowed call
    if "grant_used" in actions or (
        "allowed" in actions and "doubted" not in actions and not is_new
    ):
        return "allowed"
    if can_take_back(approval):
        return "parked"
    if approval.kind is Kind.DOUBT:
        return _state_of_doubt(approval)
    run = execution_of(approval)
    is_stopped = run is not None and run.state is ExecutionState.LAPSED
    return "denied" if is_stopped and "denied" in actions else str(approval.status)


_UNASKED = {
    "parked": "parked",
    "grant_used": "allowed",
    "allowed": "allowed",
    "denied": "denied",
    "started": "allowed",
}
"""The state of a call that nobody is asked about, by an act that the audit receives."""


def _state_of_doubt(approval: Approval) -> str:
    if approval.status is Status.PENDING:
        return "in doubt"
    if approval.status not in {Status.APPROVED, Status.ANSWERED}:
        return "given up"
    return {"again": "approved", "ran": "ran"}.get(str(approval.answered("choice")), "given up")
