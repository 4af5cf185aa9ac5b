"""Common parts of cards: reason, content, small print, notes, outcome."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from bot.layout.arguments import Listed
from bot.layout.blocks import (
    Block,
    line,
    literal,
    quote,
    rich,
)
from bot.layout.text import more, own_words, show
from bot.people.approvers import backups_of, next_step_ms
from bot.policy.progress import progress_of
from bot.ports.people import CHANNEL
from bot.records.approval import Approval, Status
from bot.records.origin import RequestDoor, RequestOrigin
from bot.redaction.call import mask_call, written
from bot.redaction.mask import REDACTED, mask_text
from bot.redaction.masks import has_guess
from bot.words import say
from bot.words.mrkdwn import date, escape, is_person, mention

_NO_PROGRAM = frozenset({RequestDoor.TRIGGER, RequestDoor.SCHEDULE})
REASON = 500
APPROVERS = 400
_NAME = 100
MOST_PEOPLE = 10
"""The maximum number of mentioned requesters; others are counted."""
TEXT = 1_200
"""The maximum number of characters of the text for notifications."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """The content of a card.

    Attributes:
        blocks: In order.
        hidden: Number of hidden characters.
        masked: Whether a secret was masked.
        altered: Whether invisible or look-alike characters were spelled out.
        guessed: Whether a value was masked only because it looks like a secret.
        turned: Whether there is right-to-left text.
    """

    blocks: tuple[Block, ...]
    hidden: int
    masked: bool
    altered: bool
    guessed: bool = False
    turned: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether it shows everything, and masks nothing by a guess."""
        return not (self.hidden or self.guessed)

    @property
    def is_plain(self) -> bool:
        """Whether it shows everything as it is, so that a form of several can list it."""
        return self.is_whole and not (self.altered or self.turned)


def person_words(label: str, text: str, most: int) -> Listed:
    """Return a person's words below a label, or nothing if there are none."""
    return worded(label, mask_text(text), most)


def agreed(label: str, text: str, most: int) -> Listed:
    """Return words that people approve, below a label; marks masked guesses."""
    words = mask_call(text)
    return replace(worded(label, written(words), most), guessed=has_guess(words))


def worded(label: str, clean: str, most: int) -> Listed:
    """Return a masked text below a label, or nothing if there is none."""
    if not clean.strip():
        return Listed()
    view = show(clean, most, lines=30)
    parts = [literal(view.text or "…")]
    if view.hidden:
        parts.append(literal(f" {more(view.hidden)}", "italic"))
    return Listed(
        elements=(line(literal(label, "bold")), quote(*parts)),
        hidden=view.hidden,
        masked=REDACTED in clean,
        altered=view.altered,
        turned=view.turned,
    )


def body(parts: Iterable[Listed]) -> Body:
    """Combine parts, one rich text block each."""
    listed = list(parts)
    return Body(
        blocks=tuple(rich(*part.elements) for part in listed if part.elements),
        hidden=sum(part.hidden for part in listed),
        masked=any(part.masked for part in listed),
        altered=any(part.altered for part in listed),
        guessed=any(part.guessed for part in listed),
        turned=any(part.turned for part in listed),
    )


def frozen_by(actor: str) -> str:
    """Return who froze: a person of Slack as a mention, a user of the command line by name."""
    return mention(actor) if is_person(actor) else f"`{escape(actor)}`"


def frozen_words(approval: Approval) -> str:
    """Return which freeze keeps a call from starting, and that people may decide; or nothing."""
    freeze = approval.frozen
    if freeze is None:
        return ""
    return say("line.frozen", who=frozen_by(freeze.by), time=date(freeze.since_ms))


def stuck_words(approval: Approval) -> str:
    """Return why a request cannot be decided now, and who can decide later."""
    words = own_words(approval.stuck, REASON * 2)
    later_ms = next_step_ms(approval)
    if later_ms is None:
        return words
    names = own_words(approvers_words(backups_of(approval)), APPROVERS)
    return f"{words} {say('line.stuck_later', time=date(later_ms), who=names)}"


def asked_by(approval: Approval) -> str:
    """Name all requesters, the most recent first; or the program that asks, then the others."""
    origin = approval.origin
    people = [_asker(origin, user_id) for user_id in approval.all_requesters]
    if origin.program:
        named = (origin.owner, origin.requested_for)
        others = (name for name in approval.all_requesters if name not in named)
        people = [started_by(origin), *(_asker(origin, user_id) for user_id in others)]
    if len(people) > MOST_PEOPLE:
        people[MOST_PEOPLE:] = [say("line.more_people", n=len(people) - MOST_PEOPLE)]
    if len(people) == 1:
        return people[0]
    return say("line.and", a=", ".join(people[:-1]), b=people[-1])


def started_by(origin: RequestOrigin) -> str:
    """Name the program, the trigger or the schedule, with its owner and who it asks for."""
    key = "line.by_personal" if origin.is_personal else "line.by_program"
    key = f"line.by_{origin.door}" if origin.door in _NO_PROGRAM else key
    key = "line.by_program_for" if origin.requested_for else key
    owner, who = mention(origin.owner), _asker(origin, origin.requested_for)
    program = escape(origin.program_name.rpartition("/")[2])
    return say(key, program=program, owner=owner, who=who)


def _asker(origin: RequestOrigin, user_id: str) -> str:
    """Mention a requester; name one of whom only a program says so, without a mention."""
    if user_id not in origin.claims:
        return mention(user_id)
    return escape(show(origin.claims[user_id], _NAME, one_line=True).text)


def members() -> str:
    """Return the words for “all members of the channel”."""
    return say("line.members")


def approvers_words(names: Sequence[str]) -> str:
    """Describe who may decide.

    Args:
        names: As frozen in a record: user ids, user group ids, or `channel`.

    Returns:
        Words with mentions, for `approvers_text`.
    """
    people = [members() if name == CHANNEL else mention(name) for name in names]
    return ", ".join(people) or say("line.nobody")


_BY_VOTES = frozenset({Status.APPROVED, Status.ANSWERED, Status.REJECTED})
"""Statuses that are decided by votes."""


def spoken(*sentences: str) -> str:
    """Join sentences for notifications and screen readers."""
    return " ".join(sentence for sentence in sentences if sentence)


def deciders_names(approval: Approval, person: Callable[[str], str] = mention) -> str:
    """Name the deciders in the order of their votes: the last voter, and all who voted alike.

    Args:
        approval: The approval.
        person: Names a person by their Slack user id.
    """
    decision = approval.decision
    if decision is not None and decision.grant:
        return say("line.by_grant")
    if decision is None or not decision.by:
        return ""
    names = {
        vote.by: say("line.for_whom", who=person(vote.by), owner=person(vote.on_behalf_of))
        if vote.on_behalf_of
        else person(vote.by)
        for vote in progress_of(approval).votes
        if vote.is_stop == (approval.status is Status.REJECTED)
    }
    last = names.pop(decision.by, person(decision.by))
    others = list(names.values()) if approval.status in _BY_VOTES else []
    return ", ".join([*others[:MOST_PEOPLE], last])
