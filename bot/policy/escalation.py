"""Escalation of a pending request: reminders, more approvers, expiry.

Pure functions of the terms and the state so far. At most one message is due at a time. Its
recipients depend on look-ups and are determined elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from bot.policy.hours import add_working, quiet_end
from bot.policy.rotation import next_handover
from bot.records.terms import QuietHours, Rotation, Terms


class Notice(StrEnum):
    """The kind of a message. If several are due at once, only the first is sent."""

    ESCALATION = "escalation"
    HANDOVER = "handover"
    REMINDER = "reminder"
    MENTION = "mention"
    SNOOZE_OVER = "snooze_over"


@dataclass(frozen=True, slots=True, kw_only=True)
class EscalationState:
    """The progress of a pending request's escalation.

    Attributes:
        since_ms: Start of the times of reminders and steps: the request, an edit, or a new
            stage.
        deadline_ms: Time of expiry.
        reminders: Number of reminders sent or skipped since then.
        steps: Number of escalation steps begun since then: their people may decide.
        notified_steps: Number of these steps whose people were notified.
        is_announced: Whether the first approvers were mentioned.
        claimed_ms: Start of the claim; 0 without a claim.
        claim_until_ms: End of the claim.
        snoozes: End of each person's snooze, by Slack user id.
        duties: Names of the rotations whose people may decide now.
        duty_ms: Time up to which hand-overs were notified; 0 means `since_ms`.
        is_deserted: Whether all possible approvers are absent without a delegate.
        is_frozen: Whether a freeze covers the call. Steps begin, and messages wait for its lifting.
    """

    since_ms: int
    deadline_ms: int
    reminders: int = 0
    steps: int = 0
    notified_steps: int = 0
    is_announced: bool = True
    claimed_ms: int = 0
    claim_until_ms: int = 0
    snoozes: Mapping[str, int] = field(default_factory=dict)
    duties: tuple[Rotation, ...] = ()
    duty_ms: int = 0
    is_deserted: bool = False
    is_frozen: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """The work that is due at a time.

    Attributes:
        state: The state after the work.
        expires: Whether the deadline is reached. Then no other work is due.
        begun: Number of escalation steps that begin, whether or not people are notified.
        notice: The message to send, or None.
        announces: Whether the message mentions the first approvers, who were not mentioned before.
        reminds: Whether reminders are due, even if another message replaces them.
        tells: Numbers, from 0, of the steps whose people are notified.
        relieved: Names of the rotations whose new people are notified.
        awake: People whose snooze is over; they are mentioned or get a direct message.
    """

    state: EscalationState
    expires: bool = False
    begun: int = 0
    notice: Notice | None = None
    announces: bool = False
    reminds: bool = False
    tells: range = range(0)
    relieved: tuple[Rotation, ...] = ()
    awake: tuple[str, ...] = ()

    @property
    def is_any(self) -> bool:
        """Whether any work is due."""
        return self.expires or self.begun > 0 or self.notice is not None


def deadline(terms: Terms, at_ms: int) -> int:
    """Return the expiry time of a request made at a time.

    If working time never comes, all time counts, so that the request does not wait forever.
    """
    due_ms = _after(terms, at_ms, terms.expires_s)
    return at_ms + terms.expires_s * 1_000 if due_ms is None else due_ms


def begin(
    terms: Terms,
    at_ms: int,
    *,
    deadline_ms: int | None = None,
    snoozes: Mapping[str, int] | None = None,
) -> EscalationState:
    """Return the initial escalation state. Mentions wait for quiet hours to end."""
    quiet_ms = quiet_end(_quiet(terms), at_ms)
    return EscalationState(
        since_ms=at_ms,
        deadline_ms=deadline(terms, at_ms) if deadline_ms is None else deadline_ms,
        is_announced=quiet_ms == at_ms or not terms.mention,
        snoozes=snoozes or {},
        duty_ms=at_ms,
    )


def tells_nobody(terms: Terms, state: EscalationState) -> bool:
    """Whether quiet hours outlast the deadline, so that no approver is notified."""
    if state.is_announced:
        return False
    told_ms = quiet_end(_quiet(terms), state.since_ms)
    return told_ms is None or told_ms >= state.deadline_ms


def steps_begun(terms: Terms, state: EscalationState, now_ms: int) -> int:
    """Return the number of begun steps, even if their people were not notified.

    A step that has begun stays begun.
    """
    begun = state.steps
    for at_ms in _begins(terms, state)[state.steps :]:
        if at_ms is None or at_ms > now_ms:
            break
        begun += 1
    return begun


def next_begin(terms: Terms, state: EscalationState) -> int | None:
    """Return when the next step begins; None if none begins before the deadline.

    Raises:
        TermsError: A time zone is unknown on this machine.
    """
    return next(iter(_begins(terms, state)[state.steps :]), None)


def due(terms: Terms, state: EscalationState, now_ms: int) -> Due:
    """Return the work that is due now, with at most one message.

    Raises:
        TermsError: A time zone is unknown on this machine.
    """
    if now_ms >= state.deadline_ms:
        return Due(state=state, expires=True)
    steps = steps_begun(terms, state, now_ms)
    coming = _moments(terms, replace(state, steps=steps), now_ms)
    # Overdue messages are merged into one, so that people get no burst after a pause.
    passed = [moment for moment in coming if moment[0] <= now_ms]
    reminders = sum(1 for _, kind, _ in passed if kind is Notice.REMINDER)
    tells = [key for _, kind, key in passed if kind is Notice.ESCALATION]
    awake = tuple(str(key) for _, kind, key in passed if kind is Notice.SNOOZE_OVER)
    duties = [key for _, kind, key in passed if kind is Notice.HANDOVER]
    kinds = {kind for _, kind, _ in passed}
    after = replace(
        state,
        reminders=state.reminders + reminders,
        steps=steps,
        notified_steps=state.notified_steps + len(tells),
        is_announced=state.is_announced or Notice.MENTION in kinds,
        duty_ms=now_ms if duties or tells else state.duty_ms,
        snoozes={who: until for who, until in state.snoozes.items() if who not in awake},
    )
    return Due(
        state=after,
        begun=steps - state.steps,
        notice=next((kind for kind in Notice if kind in kinds), None),
        announces=Notice.MENTION in kinds,
        reminds=reminders > 0,
        tells=range(state.notified_steps, state.notified_steps + len(tells)),
        relieved=tuple(state.duties[int(key)] for key in duties),
        awake=awake,
    )


def next_moment(terms: Terms, state: EscalationState, now_ms: int) -> int:
    """Return the next time at which work is due; `now_ms` or earlier if it is overdue.

    Raises:
        TermsError: A time zone is unknown on this machine.
    """
    begins = _begins(terms, state)[state.steps :]
    soon = [at_ms for at_ms in begins if at_ms is not None]
    soon += [at_ms for at_ms, _, _ in _moments(terms, state, now_ms)]
    return min([state.deadline_ms, *soon])


Moment = tuple[int, Notice, int | str]
"""Time and kind of a message, and its step, rotation or person."""


def _moments(terms: Terms, state: EscalationState, now_ms: int) -> Iterator[Moment]:
    """Yield all future messages before the deadline.

    A late message is treated as due now, so it also waits for the end of quiet hours.
    """
    if state.is_frozen or not terms.mention:
        return
    for at_ms, kind, key in (*_asked_again(terms, state), *_news(terms, state)):
        waits = kind in {Notice.REMINDER, Notice.ESCALATION}
        settled = _settled(terms, state, max(at_ms, now_ms), waits=waits)
        if settled is not None and settled < state.deadline_ms:
            yield settled, kind, key


def _asked_again(terms: Terms, state: EscalationState) -> Iterator[Moment]:
    """Yield the future reminders, without delays."""
    for number, after_s in enumerate(terms.reminders_s):
        at_ms = _after(terms, state.since_ms, after_s) if number >= state.reminders else None
        if at_ms is not None:
            yield at_ms, Notice.REMINDER, number


def _news(terms: Terms, state: EscalationState) -> Iterator[Moment]:
    """Yield all other future messages, without delays."""
    if not state.is_announced:
        yield state.since_ms, Notice.MENTION, ""
    begins = _begins(terms, state)
    for number in range(state.notified_steps, state.steps):
        yield begins[number] or state.since_ms, Notice.ESCALATION, number
    for number, rotation in enumerate(state.duties):
        after_ms = state.duty_ms or state.since_ms
        handover = next_handover(rotation, after_ms=after_ms, before_ms=state.deadline_ms)
        if handover is not None:
            yield handover.at_ms, Notice.HANDOVER, number
    for user_id, until_ms in state.snoozes.items():
        yield until_ms, Notice.SNOOZE_OVER, user_id


def _begins(terms: Terms, state: EscalationState) -> list[int | None]:
    """Return the start of each step, or None if it is not before the deadline."""
    result: list[int | None] = []
    for number, step in enumerate(terms.escalate):
        at_ms = _after(terms, state.since_ms, step.after_s)
        # All approvers are absent, so the first step need not wait for its time.
        if state.is_deserted and number == 0:
            at_ms = state.since_ms
        at_ms = None if at_ms is None else _unclaimed(state, at_ms)
        result.append(at_ms if at_ms is not None and at_ms < state.deadline_ms else None)
    return result


def _settled(terms: Terms, state: EscalationState, at_ms: int, *, waits: bool) -> int | None:
    """Return the time at which a due message is sent: after quiet hours and any claim."""
    moment: int | None = at_ms
    while moment is not None:
        # The end of a claim can be in quiet hours, and their end in another claim.
        free = _unclaimed(state, moment) if waits else moment
        later = quiet_end(_quiet(terms), free)
        if later == moment:
            return moment
        moment = later
    return None


def _unclaimed(state: EscalationState, at_ms: int) -> int:
    """Return the end of the claim if the time is within it."""
    is_claimed = state.claimed_ms <= at_ms < state.claim_until_ms
    return state.claim_until_ms if is_claimed else at_ms


def _after(terms: Terms, at_ms: int, seconds: int) -> int | None:
    """Return the time after some seconds by the clock of the terms, or None."""
    quiet = terms.quiet if terms.clock == "working" else None
    return add_working(quiet, at_ms, seconds * 1_000)


def _quiet(terms: Terms) -> QuietHours | None:
    """Return the quiet hours that apply, if any."""
    return None if terms.urgent else terms.quiet
