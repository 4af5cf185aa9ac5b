"""Small print of a card: requester, approvers, votes, expiry."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import reduce

from bot.layout.blocks import Block, literal, quote, rich
from bot.layout.parts import MOST_PEOPLE, approvers_words, asked_by, members
from bot.layout.text import own_words, show
from bot.people.named_terms import approvers_of, backups_of, named_by
from bot.people.recipient_ids import requirement_words
from bot.people.terms_of import VoteProgress, ends_then, progress_of, requesters_of
from bot.policy.eligibility import REQUESTERS
from bot.policy.tally import Tally
from bot.records.approval import APPROVE, Approval, CastVote, Kind, Status
from bot.records.terms import Requirement, Stage
from bot.redaction.mask import mask_text
from bot.words import say
from bot.words.mrkdwn import channel, clock, date, mention, moment

_NAME = 100
_LATER = 100
"""Characters of the people of a later stage; longer ones are replaced by the stage's name."""
_MOST_LINES = 20
_MOST_NOTES, _NOTE = 3, 160
_MOST_SNOOZING = 5
_PERSON = re.compile(r"<@[UW][A-Z0-9]{1,30}>")


def small_print(
    approval: Approval,
    approvers_text: str,
    who_can: Callable[[str], str],
    lead: Sequence[str] = (),
) -> list[str]:
    """Return the lines of small print of a pending card, in mrkdwn."""
    votes = [*vote_lines(approval)]
    requested = say("line.requested", who=asked_by(approval))
    given = progress_of(approval).votes
    is_begun = any(one.stage == approval.stage for one in given)
    is_begun |= bool(given) and not approval.escalation.steps  # missing votes are listed above
    who = "" if is_begun or approval.stuck else who_line(approval, approvers_text, who_can)
    requested = _approved(approval) or requested
    lines = [*votes, *(lead or [f"{requested} {who}".strip()]), stage_line(approval)]
    lines += _backup_line(approval, lines)
    return [*lines, *_left_in_peace(approval, "\n".join(lines)), _deadline(approval)]


def _approved(approval: Approval) -> str:
    """Describe who had approved a call in doubt, and when; empty if unknown."""
    known = approval.prior_approval
    if known is None:
        return ""
    people = ", ".join(map(mention, known.by[:MOST_PEOPLE]))
    time = moment(known.at_ms, since_ms=approval.created_ms)
    return say("line.doubt_asked", who=people, time=time)


def _backup_line(approval: Approval, lines: Sequence[str]) -> list[str]:
    """Describe who can decide since the escalation, unless a line does."""
    if not approval.escalation.steps or approval.stuck or approval.kind is Kind.QUESTION:
        return []
    backups = _backups(approval, ())
    since = moment(approval.escalation.begun_ms, since_ms=approval.created_ms)
    if not backups or since in "\n".join(lines):
        return []
    key = "line.backup_doubt_since" if approval.kind is Kind.DOUBT else "line.backup_since"
    return [say(key, time=since, backup=backups)]


def _left_in_peace(approval: Approval, lines: str) -> list[str]:
    """Describe who is reminded later, unless they are named above."""
    values = [
        {"who": mention(one), "time": clock(until)} for one, until in approval.snoozes.items()
    ]
    hidden = [one for one in values if say("line.snoozed", **one) not in lines]
    return [say("line.snoozed_alone", **one) for one in hidden[:_MOST_SNOOZING]]


def who_line(approval: Approval, approvers_text: str, who_can: Callable[[str], str]) -> str:
    """Describe who may decide or answer."""
    names = [own_words(one.strip(), _NAME) for one in approvers_text.split(",") if one.strip()]
    if approval.kind is Kind.QUESTION:
        people = joined([_part(approval, one) for one in names]) or say("line.somebody")
        return who_can(_begun(people))
    if approval.kind is Kind.APPROVAL and (needed := _needed(approval, names)):
        return needed
    who = _decide(approval, names)
    later = _backups(approval, names)
    if not later or not approval.escalation.steps:
        return who
    since = moment(approval.escalation.begun_ms, since_ms=approval.created_ms)
    first = joined([_part(approval, one) for one in names]) or say("line.somebody")
    key = "line.backup_doubt" if approval.kind is Kind.DOUBT else "line.backup"
    return say(key, who=_begun(first), time=since, backup=later)


def joined(names: Sequence[str]) -> str:
    """Join names: “a, b or c”; of many, the first and the number of others."""
    if left := len(names) - MOST_PEOPLE:
        names = [*names[:MOST_PEOPLE], say("line.more_people", n=left)] if left > 0 else names
    if len(names) < 2:
        return "".join(names)
    return say("line.or", a=", ".join(names[:-1]), b=names[-1])


def stage_words(approval: Approval) -> str:
    """Describe the number of the pending stage; empty if there is only one."""
    count = len(approval.terms.stages)
    if count < 2 or approval.kind is not Kind.APPROVAL:
        return ""
    return say("status.stage", n=approval.stage + 1, of=count)


def stage_line(approval: Approval) -> str:
    """Describe the pending stage and who is asked after it; empty if no stage follows."""
    stage, later = stage_words(approval), approval.terms.stages[approval.stage + 1 :]
    if not stage or not later or approval.status is not Status.PENDING:
        return ""
    name = own_words(approval.terms.stages[approval.stage].name, _NAME)
    parts = [_later(approval, one) for one in later]
    who = reduce(lambda a, b: say("line.stage_after", a=a, b=b), parts)
    return say("line.stage", stage=stage, name=name, who=who)


def _later(approval: Approval, stage: Stage) -> str:
    """Name the people of a later stage."""
    words = all_of([_asked_later(approval, one) for one in stage.approve])
    return words if len(words) <= _LATER else own_words(stage.name, _NAME)


def _asked_later(approval: Approval, requirement: Requirement) -> str:
    names = [own_words(approvers_words([one]), _NAME) for one in _able(approval, requirement)]
    people = joined([_part(approval, one) if one == members() else one for one in names])
    group = _group(approval, requirement) or people or say("line.somebody")
    if requirement.count == 1:
        return group
    return say("line.so_many", n=requirement.count, group=group)


def vote_lines(approval: Approval) -> list[str]:
    """Describe given and missing votes; empty if the first vote decides."""
    found = progress_of(approval)
    if found.is_plain:
        return []
    if approval.kind is Kind.DOUBT:
        return [_told(one) for one in found.votes]
    lines = [_voted(one) for one in _earlier(approval, found)]
    left = [one for one in found.votes if one.stage == approval.stage]
    requirements = _requirements(approval)
    for requirement, tally in zip(requirements, found.tallies, strict=False):
        votes = [one for one in left if _counts(one, requirement)][: tally.have]
        left = [one for one in left if one not in votes]
        lines += [_voted(one) for one in votes]
        if tally.have < tally.need and found.votes:
            words = _open(approval, requirement, tally)
            if votes and len(requirements) == 1:  # one line suffices
                lines[-1] = f"{lines[-1]}. {words}"
            else:
                lines.append(f"⏳ {words}")
    lines += [_voted(one) for one in left]
    lines = lines[-_MOST_LINES:]
    if found.rejections > 1:
        lines.append(say("line.rejections", n=found.rejections))
    return lines


def _earlier(approval: Approval, found: VoteProgress) -> list[CastVote]:
    """Return the votes of completed stages."""
    return [one for one in found.votes if one.stage != approval.stage]


def _counts(vote: CastVote, requirement: Requirement) -> bool:
    return vote.choice == APPROVE and bool({*vote.groups} & {*requirement.groups})


def _voted(vote: CastVote) -> str:
    who, time = _person(vote), clock(vote.at_ms)
    if vote.is_stop:
        return f"⛔ {say('line.vote_no', who=who, time=time)}"
    return f"✅ {say('line.vote_yes', who=who, time=time)}"


def _told(vote: CastVote) -> str:
    """Describe a vote on a call in doubt."""
    who, time = _person(vote), clock(vote.at_ms)
    match vote.choice:
        case "ran":
            return f"✅ {say('line.vote_ran', who=who, time=time)}"
        case "again":
            return f"🔁 {say('line.vote_again', who=who, time=time)}"
        case _:
            return f"⏹️ {say('line.vote_leave', who=who, time=time)}"


def _person(vote: CastVote) -> str:
    who = mention(vote.by)
    if not vote.on_behalf_of:
        return who
    return say("line.for_whom", who=who, owner=mention(vote.on_behalf_of))


def _open(approval: Approval, requirement: Requirement, tally: Tally) -> str:
    """Describe how many votes a requirement lacks, and whose."""
    return say(
        "line.vote_left",
        n=tally.need - tally.have,
        who=_group(approval, requirement) or joined(_fillers(approval, requirement)),
    )


def _group(approval: Approval, requirement: Requirement) -> str:
    """Return the title of a requirement's groups; empty if one has none."""
    terms = approval.terms
    has_titles = all(terms.groups[one].title for one in requirement.groups)
    return requirement_words(terms, requirement) if has_titles else ""


def _fillers(approval: Approval, requirement: Requirement) -> list[str]:
    """Return who can fill a requirement, in our own words."""
    names = _able(approval, requirement)
    words = [own_words(approvers_words([one]), _NAME) for one in names]
    return [_snoozing(approval, _part(approval, one)) for one in words]


def _able(approval: Approval, requirement: Requirement) -> list[str]:
    """Return who can still fill a requirement: no voters and no requesters."""
    own = requesters_of(approval) if REQUESTERS in approval.terms.exclude else ()
    gone = {*own, *(one for vote in progress_of(approval).votes for one in vote.persons)}
    return [one for one in _named(approval, requirement) if one not in gone]


def missing(approval: Approval, found: VoteProgress) -> str:
    """Name the people whose votes are missing, for notifications."""
    open_ones = zip(_requirements(approval), found.tallies, strict=False)
    names = [joined(_fillers(approval, one)) for one, tally in open_ones if tally.have < tally.need]
    return all_of([one for one in names if one]) or say("line.somebody")


def _requirements(approval: Approval) -> tuple[Requirement, ...]:
    return approval.terms.stages[approval.stage].approve


def _needed(approval: Approval, names: Sequence[str]) -> str:
    """Describe how many approvals are needed, if more than one."""
    found = _requirements(approval)
    count = sum(one.count for one in found)
    if count < 2:
        return ""
    if len(found) == 1 and names:
        return say("line.quorum", n=count, groups=all_of([_part(approval, one) for one in names]))
    return say("line.quorum", n=count, groups=all_of([_so_many(approval, one) for one in found]))


def all_of(names: Sequence[str]) -> str:
    """Join names that are all needed."""
    if len(names) < 2:
        return "".join(names)
    return say("line.and", a=", ".join(names[:-1]), b=names[-1])


def _so_many(approval: Approval, requirement: Requirement) -> str:
    """Describe how many of which people a requirement needs."""
    if requirement.count == 1:
        return joined(_fillers(approval, requirement))
    title = _group(approval, requirement)
    names = [own_words(approvers_words([one]), _NAME) for one in _able(approval, requirement)]
    return say("line.so_many", n=requirement.count, group=title or joined(names))


def _named(approval: Approval, requirement: Requirement) -> tuple[str, ...]:
    return named_by(approval.terms, requirement)


def _decide(approval: Approval, names: Sequence[str]) -> str:
    if approval.kind is Kind.DOUBT:
        people = joined([_part(approval, one) for one in names])
        return say("line.doubt_who", who=_begun(people or say("line.somebody")))
    if len(names) == 1:
        return _alone(approval, names[0])
    parts = [_snoozing(approval, _part(approval, one)) for one in names]
    if not parts:
        return say("line.named")
    if len(parts) == 2:
        return _begun(say("line.two", a=parts[0], b=parts[1]))
    return _begun(say("line.many", a=parts[0], b=parts[1], n=len(parts) - 2))


def _alone(approval: Approval, name: str) -> str:
    if name == members():
        place = channel(approval.channel_id) or say("line.this_channel")
        if _is_left_out(approval):
            return say("line.anyone_else", channel=place)
        return say("line.anyone", channel=place)
    if _PERSON.fullmatch(name):
        return say("line.one", who=_snoozing(approval, name))
    return say("line.group", group=name)


def _part(approval: Approval, name: str) -> str:
    if name == members():
        place = channel(approval.channel_id) or say("line.this_channel")
        return say("line.anyone_of", group=place)
    return name if _PERSON.fullmatch(name) else say("line.anyone_of", group=name)


def _snoozing(approval: Approval, name: str) -> str:
    until = approval.snoozes.get(name.strip("<@>"))
    return say("line.snoozed", who=name, time=clock(until)) if until else name


def _begun(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def _is_left_out(approval: Approval) -> bool:
    """Whether the requester belongs to the approving channel but cannot decide."""
    members = approval.members
    known = None if members is None else {one for names in members.values() for one in names}
    is_member = known is None or any(one in known for one in requesters_of(approval))
    return is_member and REQUESTERS in approval.terms.exclude


def _backups(approval: Approval, names: Sequence[str]) -> str:
    asked, later = approvers_of(approval), backups_of(approval)
    words = [own_words(approvers_words([one]), _NAME) for one in later if one not in asked]
    return joined([_part(approval, one) for one in words if one not in names])


def _deadline(approval: Approval) -> str:
    when = date(approval.expires_ms)
    if approval.kind is Kind.DOUBT:
        return say("line.expires_doubt", when=when)
    if approval.kind is Kind.QUESTION and not approval.tool.strip():
        return say("line.expires_answer", when=when)
    return say("line.expires_end" if ends_then(approval) else "line.expires_run", when=when)


def notes_given(approval: Approval) -> list[str]:
    """Return the notes of the votes, oldest first."""
    return [one.note for one in progress_of(approval).votes if one.note.strip()]


def note_quotes(notes: Sequence[str]) -> list[Block]:
    """Render the newest notes verbatim."""
    views = [show(mask_text(one), _NOTE, lines=3) for one in notes[-_MOST_NOTES:]]
    quotes = [quote(literal(f"“{one.text}{'…' if one.hidden else ''}”")) for one in views]
    return [rich(*quotes)] if quotes else []
