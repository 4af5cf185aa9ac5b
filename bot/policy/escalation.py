"""The ladder: what a waiting request does at which moment, while nobody decides (section 5).

Pure: the terms and what was done so far go in; what is due comes out, as one message at most. To
whom it goes depends on look-ups, and is not said here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from bot.policy.hours import add_working, quiet_end
from bot.policy.rotation import next_handover
from bot.policy.terms import QuietHours, Rotation, Terms


class Notice(StrEnum):
    """The kind of a message of the ladder; of several due at one moment the first one is sent."""

    ESCALATION = "escalation"
    HANDOVER = "handover"
    REMINDER = "reminder"
    MENTION = "mention"
    SNOOZE_OVER = "snooze_over"


@dataclass(frozen=True, slots=True, kw_only=True)
class EscalationState:
    """The course of a waiting request: all that its ladder has done so far.

    Attributes:
        since_ms: Since when reminders and steps count: the request, an edit that waits, or a new
            stage (5.11).
        deadline_ms: When it expires.
        reminders: So many were sent, or were not worth a message, since then.
        steps: So many escalation steps began since then: their people may decide.
        told: So many of these steps were told to their people.
        is_announced: Whether the people that are asked since then were mentioned.
        claimed_ms: Since when somebody sees to it; 0 without a claim.
        claim_until_ms: Until when.
        snoozes: By Slack user id, until when that person is not mentioned.
        duties: The rotations whose people may decide now.
        duty_ms: Until when hand-overs were told; 0 for not since `since_ms`.
        is_deserted: Whether all who could decide are away, without a delegate (6.3).
    """

    since_ms: int
    deadline_ms: int
    reminders: int = 0
    steps: int = 0
    told: int = 0
    is_announced: bool = True
    claimed_ms: int = 0
    claim_until_ms: int = 0
    snoozes: Mapping[str, int] = field(default_factory=dict)
    duties: tuple[Rotation, ...] = ()
    duty_ms: int = 0
    is_deserted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """All that is due at a moment.

    Attributes:
        course: As it is when that is done.
        expires: The deadline is reached: then nothing else is due.
        begun: So many escalation steps have begun by it, whether or not anybody is told.
        notice: The message that is sent; None for none.
        announces: Whether it mentions whoever is asked, as they were not mentioned before.
        reminds: Whether reminders came due: also where another message takes their place.
        tells: The steps, by their number from 0, whose people it tells.
        relieved: The rotations whose new people it tells.
        awake: Whose snooze is over; they are mentioned in it, or get a direct message.
    """

    course: EscalationState
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
        """Whether there is anything to do."""
        return self.expires or self.begun > 0 or self.notice is not None


def deadline(terms: Terms, at_ms: int) -> int:
    """When what is asked at a moment expires (5.8).

    Working time that never comes does not make a request wait for ever: then all time counts.
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
    """The course of what is asked now: in quiet hours, nobody is mentioned yet (5.7)."""
    quiet_ms = quiet_end(_quiet(terms), at_ms)
    return EscalationState(
        since_ms=at_ms,
        deadline_ms=deadline(terms, at_ms) if deadline_ms is None else deadline_ms,
        is_announced=quiet_ms == at_ms or not terms.mention,
        snoozes=snoozes or {},
        duty_ms=at_ms,
    )


def tells_nobody(terms: Terms, course: EscalationState) -> bool:
    """Whether quiet hours outlast the deadline, so that nobody is told in time (5.7)."""
    if course.is_announced:
        return False
    told_ms = quiet_end(_quiet(terms), course.since_ms)
    return told_ms is None or told_ms >= course.deadline_ms


def steps_begun(terms: Terms, course: EscalationState, now_ms: int) -> int:
    """How many steps have begun by now: their people may decide, though nobody was told yet.

    A step that has begun stays begun.
    """
    begun = course.steps
    for at_ms in _begins(terms, course)[course.steps :]:
        if at_ms is None or at_ms > now_ms:
            break
        begun += 1
    return begun


def due(terms: Terms, course: EscalationState, now_ms: int) -> Due:
    """Find what is due by now, as one message at most (5.3).

    Raises:
        TermsError: A zone is not known here.
    """
    if now_ms >= course.deadline_ms:
        return Due(course=course, expires=True)
    steps = steps_begun(terms, course, now_ms)
    coming = _moments(terms, replace(course, steps=steps), now_ms)
    passed = [one for one in coming if one[0] <= now_ms]
    reminders = sum(1 for _, kind, _ in passed if kind is Notice.REMINDER)
    tells = [key for _, kind, key in passed if kind is Notice.ESCALATION]
    awake = tuple(str(key) for _, kind, key in passed if kind is Notice.SNOOZE_OVER)
    duties = [key for _, kind, key in passed if kind is Notice.HANDOVER]
    kinds = {kind for _, kind, _ in passed}
    after = replace(
        course,
        reminders=course.reminders + reminders,
        steps=steps,
        told=course.told + len(tells),
        is_announced=course.is_announced or Notice.MENTION in kinds,
        duty_ms=now_ms if duties or tells else course.duty_ms,
        snoozes={who: until for who, until in course.snoozes.items() if who not in awake},
    )
    return Due(
        course=after,
        begun=steps - course.steps,
        notice=next((kind for kind in Notice if kind in kinds), None),
        announces=Notice.MENTION in kinds,
        reminds=reminders > 0,
        tells=range(course.told, course.told + len(tells)),
        relieved=tuple(course.duties[int(key)] for key in duties),
        awake=awake,
    )


def next_moment(terms: Terms, course: EscalationState, now_ms: int) -> int:
    """The next moment at which anything is due; `now_ms`, or before, when it is due already.

    Raises:
        TermsError: A zone is not known here.
    """
    begins = _begins(terms, course)[course.steps :]
    soon = [at_ms for at_ms in begins if at_ms is not None]
    soon += [at_ms for at_ms, _, _ in _moments(terms, course, now_ms)]
    return min([course.deadline_ms, *soon])


Moment = tuple[int, Notice, int | str]
"""When a message is due, of which kind, and about which step, rotation or person."""


def _moments(terms: Terms, course: EscalationState, now_ms: int) -> Iterator[Moment]:
    """All messages that are still to be sent before the deadline.

    One that is late is as if it were due only now: it is not sent in quiet hours, either.
    """
    if not terms.mention:
        return
    for at_ms, kind, key in (*_asked_again(terms, course), *_news(terms, course)):
        waits = kind in {Notice.REMINDER, Notice.ESCALATION}
        settled = _settled(terms, course, max(at_ms, now_ms), waits=waits)
        if settled is not None and settled < course.deadline_ms:
            yield settled, kind, key


def _asked_again(terms: Terms, course: EscalationState) -> Iterator[Moment]:
    """The reminders that are still to come, as if nothing delayed them."""
    for number, after_s in enumerate(terms.reminders_s):
        at_ms = _after(terms, course.since_ms, after_s) if number >= course.reminders else None
        if at_ms is not None:
            yield at_ms, Notice.REMINDER, number


def _news(terms: Terms, course: EscalationState) -> Iterator[Moment]:
    """All other messages that are still to come, as if nothing delayed them."""
    if not course.is_announced:
        yield course.since_ms, Notice.MENTION, ""
    begins = _begins(terms, course)
    for number in range(course.told, course.steps):
        yield begins[number] or course.since_ms, Notice.ESCALATION, number
    for number, rotation in enumerate(course.duties):
        after_ms = course.duty_ms or course.since_ms
        handover = next_handover(rotation, after_ms=after_ms, before_ms=course.deadline_ms)
        if handover is not None:
            yield handover.at_ms, Notice.HANDOVER, number
    for user_id, until_ms in course.snoozes.items():
        yield until_ms, Notice.SNOOZE_OVER, user_id


def _begins(terms: Terms, course: EscalationState) -> list[int | None]:
    """When each step begins, in order; None for never: rights do not begin at the deadline."""
    result: list[int | None] = []
    for number, step in enumerate(terms.escalate):
        at_ms = _after(terms, course.since_ms, step.after_s)
        if course.is_deserted and number == 0:
            at_ms = course.since_ms
        at_ms = None if at_ms is None else _unclaimed(course, at_ms)
        result.append(at_ms if at_ms is not None and at_ms < course.deadline_ms else None)
    return result


def _settled(terms: Terms, course: EscalationState, at_ms: int, *, waits: bool) -> int | None:
    """When a message is sent that is due at a moment: not in quiet hours, nor during a claim."""
    moment: int | None = at_ms
    while moment is not None:
        free = _unclaimed(course, moment) if waits else moment
        later = quiet_end(_quiet(terms), free)
        if later == moment:
            return moment
        moment = later
    return None


def _unclaimed(course: EscalationState, at_ms: int) -> int:
    """The end of the claim, if the moment is within it (5.9)."""
    is_claimed = course.claimed_ms <= at_ms < course.claim_until_ms
    return course.claim_until_ms if is_claimed else at_ms


def _after(terms: Terms, at_ms: int, seconds: int) -> int | None:
    """The moment so many seconds later, by the clock of the terms (5.8); None for never."""
    quiet = terms.quiet if terms.clock == "working" else None
    return add_working(quiet, at_ms, seconds * 1_000)


def _quiet(terms: Terms) -> QuietHours | None:
    """The hours in which nobody is told."""
    return None if terms.urgent else terms.quiet
