"""Small print of a card: requester, approvers, votes, expiry."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import reduce

from bot.layout.blocks import Block, context, literal, plain, quote, rich
from bot.layout.parts import MOST_PEOPLE, approvers_words, asked_by, members
from bot.layout.text import clip, own_words, show
from bot.people.approvers import approvers_of, backups_of, named_by, requirement_words
from bot.policy.demands import ends_run
from bot.policy.eligibility import REQUESTERS
from bot.policy.progress import VoteProgress, progress_of
from bot.policy.tally import Tally
from bot.records.approval import APPROVE, Approval, CastVote, Kind, Status
from bot.records.origin import ProgramCall
from bot.records.terms import Requirement, Stage
from bot.redaction.mask import mask_text
from bot.words import say
from bot.words.mrkdwn import channel, clock, date, mention, moment

_NAME = 100
_LATER = 100
"""Characters of the people of a later stage; longer ones are replaced by the stage's name."""
_SOURCE = 160
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
    is_begun = any(vote.stage == approval.stage for vote in given)
    is_begun |= bool(given) and not approval.escalation.steps  # missing votes are listed above
    who = "" if is_begun or approval.stuck else who_line(approval, approvers_text, who_can)
    requested = _approved(approval) or requested
    lines = [*votes, *(lead or [f"{requested} {who}".strip()]), stage_line(approval)]
    lines += _narrowed(approval)
    lines += _backup_line(approval, lines)
    return [*lines, *_left_in_peace(approval, "\n".join(lines)), _deadline(approval)]


def source_line(approval: Approval) -> list[Block]:
    """Render where in the program the request arose, as the program says."""
    text = clip(mask_text(source_words(approval)), _SOURCE)
    return [context(plain(say("line.source", source=text)))] if text else []


def source_words(approval: Approval, *names: str) -> str:
    """Join what a program says of where its request arose; empty if it says nothing.

    Args:
        approval: The approval.
        names: Members of the source to add to those of the card.
    """
    source = approval.origin.source
    if source is None:
        return ""
    texts = (getattr(source, name) for name in ("framework", "agent", "run", *names, "url"))
    return " · ".join(filter(None, texts))


def _narrowed(approval: Approval) -> list[str]:
    """Name the only people whom the program let be asked; nothing without a choice of its."""
    asker = approval.asker
    if not isinstance(asker, ProgramCall) or not asker.people:
        return []
    return [say("line.narrowed", who=approvers_words(asker.people))]


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
        {"who": mention(user_id), "time": clock(until)}
        for user_id, until in approval.snoozes.items()
    ]
    hidden = [value for value in values if say("line.snoozed", **value) not in lines]
    return [say("line.snoozed_alone", **value) for value in hidden[:_MOST_SNOOZING]]


def who_line(approval: Approval, approvers_text: str, who_can: Callable[[str], str]) -> str:
    """Describe who may decide or answer."""
    names = [own_words(name.strip(), _NAME) for name in approvers_text.split(",") if name.strip()]
    if approval.kind is Kind.QUESTION:
        people = joined([_part(approval, name) for name in names]) or say("line.somebody")
        return who_can(_begun(people))
    if approval.kind is Kind.APPROVAL and (needed := _needed(approval, names)):
        return needed
    who = _decide(approval, names)
    later = _backups(approval, names)
    if not later or not approval.escalation.steps:
        return who
    since = moment(approval.escalation.begun_ms, since_ms=approval.created_ms)
    first = joined([_part(approval, name) for name in names]) or say("line.somebody")
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
    parts = [_later(approval, later_stage) for later_stage in later]
    who = reduce(lambda a, b: say("line.stage_after", a=a, b=b), parts)
    return say("line.stage", stage=stage, name=name, who=who)


def _later(approval: Approval, stage: Stage) -> str:
    """Name the people of a later stage."""
    words = all_of([_asked_later(approval, requirement) for requirement in stage.approve])
    return words if len(words) <= _LATER else own_words(stage.name, _NAME)


def _asked_later(approval: Approval, requirement: Requirement) -> str:
    names = [own_words(approvers_words([name]), _NAME) for name in _able(approval, requirement)]
    people = joined([_part(approval, name) if name == members() else name for name in names])
    group = _group(approval, requirement) or people or say("line.somebody")
    if requirement.count == 1:
        return group
    return say("line.so_many", n=requirement.count, group=group)


def vote_lines(approval: Approval) -> list[str]:
    """Describe given and missing votes; empty if the first vote decides."""
    progress = progress_of(approval)
    if progress.is_plain:
        return []
    if approval.kind is Kind.DOUBT:
        return [_doubt_vote(vote) for vote in progress.votes]
    lines = [_voted(vote) for vote in _earlier(approval, progress)]
    left = [vote for vote in progress.votes if vote.stage == approval.stage]
    requirements = _requirements(approval)
    for requirement, tally in zip(requirements, progress.tallies, strict=False):
        votes = [vote for vote in left if _counts(vote, requirement)][: tally.have]
        left = [vote for vote in left if vote not in votes]
        lines += [_voted(vote) for vote in votes]
        if tally.have < tally.need and progress.votes:
            words = _open(approval, requirement, tally)
            if votes and len(requirements) == 1:  # one line suffices
                lines[-1] = f"{lines[-1]}. {words}"
            else:
                lines.append(f"⏳ {words}")
    lines += [_voted(vote) for vote in left]
    lines = lines[-_MOST_LINES:]
    if progress.rejections > 1:
        lines.append(say("line.rejections", n=progress.rejections))
    return lines


def _earlier(approval: Approval, progress: VoteProgress) -> list[CastVote]:
    """Return the votes of completed stages."""
    return [vote for vote in progress.votes if vote.stage != approval.stage]


def _counts(vote: CastVote, requirement: Requirement) -> bool:
    return vote.choice == APPROVE and bool({*vote.groups} & {*requirement.groups})


def _voted(vote: CastVote) -> str:
    who, time = _person(vote), clock(vote.at_ms)
    if vote.is_stop:
        return f"⛔ {say('line.vote_no', who=who, time=time)}"
    return f"✅ {say('line.vote_yes', who=who, time=time)}"


def _doubt_vote(vote: CastVote) -> str:
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
    has_titles = all(terms.groups[name].title for name in requirement.groups)
    return requirement_words(terms, requirement) if has_titles else ""


def _fillers(approval: Approval, requirement: Requirement) -> list[str]:
    """Return who can fill a requirement, in our own words."""
    names = _able(approval, requirement)
    words = [own_words(approvers_words([name]), _NAME) for name in names]
    return [_snoozing(approval, _part(approval, name)) for name in words]


def _able(approval: Approval, requirement: Requirement) -> list[str]:
    """Return who can still fill a requirement: no voters and no requesters."""
    own = approval.all_requesters if REQUESTERS in approval.terms.exclude else ()
    gone = {*own, *(person for vote in progress_of(approval).votes for person in vote.persons)}
    return [name for name in _named(approval, requirement) if name not in gone]


def missing(approval: Approval, progress: VoteProgress) -> str:
    """Name the people whose votes are missing, for notifications."""
    open_ones = zip(_requirements(approval), progress.tallies, strict=False)
    names = [
        joined(_fillers(approval, requirement))
        for requirement, tally in open_ones
        if tally.have < tally.need
    ]
    return all_of([name for name in names if name]) or say("line.somebody")


def _requirements(approval: Approval) -> tuple[Requirement, ...]:
    return approval.terms.stages[approval.stage].approve


def _needed(approval: Approval, names: Sequence[str]) -> str:
    """Describe how many approvals are needed, if more than one."""
    requirements = _requirements(approval)
    count = sum(requirement.count for requirement in requirements)
    if count < 2:
        return ""
    if len(requirements) == 1 and names:
        return say("line.quorum", n=count, groups=all_of([_part(approval, name) for name in names]))
    return say(
        "line.quorum",
        n=count,
        groups=all_of([_so_many(approval, requirement) for requirement in requirements]),
    )


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
    names = [own_words(approvers_words([name]), _NAME) for name in _able(approval, requirement)]
    return say("line.so_many", n=requirement.count, group=title or joined(names))


def _named(approval: Approval, requirement: Requirement) -> tuple[str, ...]:
    return named_by(approval.terms, requirement)


def _decide(approval: Approval, names: Sequence[str]) -> str:
    if approval.kind is Kind.DOUBT:
        people = joined([_part(approval, name) for name in names])
        return say("line.doubt_who", who=_begun(people or say("line.somebody")))
    if len(names) == 1:
        return _alone(approval, names[0])
    parts = [_snoozing(approval, _part(approval, name)) for name in names]
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
    known = (
        None if members is None else {user_id for names in members.values() for user_id in names}
    )
    is_member = known is None or any(user_id in known for user_id in approval.all_requesters)
    return is_member and REQUESTERS in approval.terms.exclude


def _backups(approval: Approval, names: Sequence[str]) -> str:
    asked, later = approvers_of(approval), backups_of(approval)
    words = [own_words(approvers_words([name]), _NAME) for name in later if name not in asked]
    return joined([_part(approval, name) for name in words if name not in names])


def _deadline(approval: Approval) -> str:
    when = date(approval.expires_ms)
    if approval.kind is Kind.DOUBT:
        return say("line.expires_doubt", when=when)
    if approval.kind is Kind.QUESTION and not approval.tool.strip():
        return say("line.expires_answer", when=when)
    return say("line.expires_end" if ends_run(approval) else "line.expires_run", when=when)


def notes_given(approval: Approval) -> list[str]:
    """Return the notes of the votes, oldest first."""
    return [vote.note for vote in progress_of(approval).votes if vote.note.strip()]


def note_quotes(notes: Sequence[str]) -> list[Block]:
    """Render the newest notes verbatim."""
    views = [show(mask_text(note), _NOTE, lines=3) for note in notes[-_MOST_NOTES:]]
    quotes = [quote(literal(f"“{view.text}{'…' if view.hidden else ''}”")) for view in views]
    return [rich(*quotes)] if quotes else []
