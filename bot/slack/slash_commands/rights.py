"""Commands for absences, delegations and quiet hours."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import time

from bot.layout.short_ids import short_id
from bot.records.people import DelegationRecord, PersonRecord
from bot.slack.home.times import TimeReader
from bot.slack.slash_commands.answers import (
    Asker,
    TypedAnswer,
    TypoError,
    is_person,
    person_named,
    quoted,
    when,
)
from bot.words import say
from bot.words.mrkdwn import date, escape, mention


async def away(asker: Asker, words: Sequence[str]) -> TypedAnswer:
    """`away until Fri for @ben`, `away for 3 days`, `away off`: no mentions; Ben decides."""
    if _is_off(words):
        return await _present(asker)
    who, rest = _who(words)
    if not rest or rest[0].lower() not in {"until", "for"}:
        raise TypoError(say("command.date", text=quoted(" ".join(rest))) if rest else when())
    until_ms = await asker.moment(rest)
    actor, team_id = asker.actor, asker.team_id
    if who:
        old = await asker.delegating.ending(actor, team_id=team_id)
        made = await asker.delegating.hand_over(
            actor, team_id=team_id, delegate_id=who, until_ms=until_ms
        )
        await asker.delegating.go_away(actor, team_id=team_id, until_ms=until_ms)
        asker.changed()
        values = {"who": mention(who), "when": date(made.until_ms)}
        return TypedAnswer(text=_instead(say("command.away", **values), old, who))
    absent = await asker.delegating.go_away(actor, team_id=team_id, until_ms=until_ms)
    asker.changed()
    return TypedAnswer(text=say("command.away_alone", when=date(absent.until_ms)))


async def back(asker: Asker, _: Sequence[str]) -> TypedAnswer:
    """`back`: mentions return, and the delegation of `away` ends."""
    ended = await asker.delegating.end(asker.actor, team_id=asker.team_id)
    was_away = await asker.delegating.come_back(asker.actor, team_id=asker.team_id)
    asker.changed()
    if not ended and not was_away:
        return TypedAnswer(text=say("command.not_away"))
    return TypedAnswer(text=say("command.back"))


async def delegate(asker: Asker, words: Sequence[str]) -> TypedAnswer:
    """`delegate @ben until Fri for sre`, `delegate off`: lend approvals; alone, list them."""
    if not words:
        return await _list(asker)
    if _is_off(words):
        return await _end(asker)
    who = person_named(words[0])
    if len(words) < 2 or words[1].lower() not in {"until", "for"}:
        raise TypoError(when())
    time, group = _with_group(words[1:])
    until_ms = await asker.moment(time)
    actor, team_id = asker.actor, asker.team_id
    old = await asker.delegating.ending(actor, team_id=team_id, group=group)
    made = await asker.delegating.hand_over(
        actor, team_id=team_id, delegate_id=who, until_ms=until_ms, group=group
    )
    asker.changed()
    values = {"who": mention(who), "right": _right(made), "when": date(made.until_ms)}
    return TypedAnswer(text=_instead(say("command.handed", **values), old, who))


def _instead(words: str, old: Sequence[str], new: str) -> str:
    """Add whose delegation a new one has ended."""
    others = [mention(delegate_id) for delegate_id in old if delegate_id != new]
    if not others:
        return words
    return f"{words} {say('command.handed_instead', who=', '.join(others))}"


async def _present(asker: Asker) -> TypedAnswer:
    was_away = await asker.delegating.come_back(asker.actor, team_id=asker.team_id)
    asker.changed()
    return TypedAnswer(text=say("command.here") if was_away else say("command.not_away"))


async def _list(asker: Asker) -> TypedAnswer:
    own = await asker.delegating.own(asker.actor, team_id=asker.team_id)
    others = await asker.delegating.handed_to(asker.actor, team_id=asker.team_id)
    lines = [
        say(
            "command.handed_by_you",
            who=mention(delegation.delegate_id),
            right=_right(delegation),
            when=date(delegation.until_ms),
        )
        for delegation in own
    ]
    lines += [_from(delegation) for delegation in others]
    return TypedAnswer(text="\n".join(lines) or say("command.handed_nothing"))


async def _end(asker: Asker) -> TypedAnswer:
    ended = await asker.delegating.end(asker.actor, team_id=asker.team_id)
    asker.changed()
    if not ended:
        return TypedAnswer(text=say("command.nothing_handed"))
    people = ", ".join(dict.fromkeys(mention(delegation.delegate_id) for delegation in ended))
    return TypedAnswer(text=say("command.handed_ended", who=people))


def _is_off(words: Sequence[str]) -> bool:
    return [word.lower() for word in words] == ["off"]


def _who(words: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Split at the last `for`: the person behind it, and the words before."""
    places = [place for place, word in enumerate(words[:-1]) if word.lower() == "for"]
    if places and is_person(words[places[-1] + 1]):
        return person_named(" ".join(words[places[-1] + 1 :])), words[: places[-1]]
    if any(map(is_person, words)):
        raise TypoError(say("command.away_form"))
    return "", words


def _with_group(words: Sequence[str]) -> tuple[Sequence[str], str]:
    """Split at `for`: the words before, and the group behind it; empty without one.

    Raises:
        TypoError: The group is not one name.
    """
    lowered = [word.lower() for word in words]
    if "for" not in lowered[1:]:
        return words, ""
    place = lowered.index("for", 1)
    names = words[place + 1 :]
    if len(names) != 1:
        raise TypoError(say("command.group"))
    return words[:place], names[0]


def _right(delegation: DelegationRecord) -> str:
    if delegation.approval_id:
        return say("command.your_right_request", id=short_id(delegation.approval_id))
    if delegation.group_name:
        return say("command.your_right_in", group=escape(delegation.group_name))
    return say("command.your_right")


def _from(delegation: DelegationRecord) -> str:
    who, when = mention(delegation.owner_id), date(delegation.until_ms)
    if delegation.approval_id:
        name = short_id(delegation.approval_id)
        return say("command.handed_to_you_request", who=who, id=name, when=when)
    if delegation.group_name:
        group = escape(delegation.group_name)
        return say("command.handed_to_you_in", who=who, group=group, when=when)
    return say("command.handed_to_you", who=who, when=when)


_CLOCK = r"(\d{1,2})(?::(\d{2}))? ?(am|pm)?"
_HOURS = re.compile(f"(?:from )?{_CLOCK} ?(?:-|\N{EN DASH}|\N{EM DASH}|to|until|till) ?{_CLOCK}")
_OFF = frozenset({"off", "none", "never", "stop", "end"})


async def quiet(asker: Asker, words: Sequence[str]) -> TypedAnswer:
    """`quiet 22:00-07:00`, `quiet off`: mute direct messages; alone, show the setting."""
    reader, typed = await asker.reader(), " ".join(words).lower()
    if not typed:
        person = await asker.preferences.of(asker.actor.user_id, team_id=asker.team_id)
        return TypedAnswer(text=hours_text(person, reader) or say("command.quiet_none"))
    hours = ("", "") if typed in _OFF else read_hours(typed, reader)
    person = await asker.preferences.set(asker.actor, team_id=asker.team_id, quiet=hours)
    asker.changed()
    return TypedAnswer(text=hours_text(person, reader) or say("command.quiet_off"))


def read_hours(typed: str, reader: TimeReader) -> tuple[str, str]:
    """Parse quiet hours into start and end, as `22:00` and `07:00`.

    Args:
        typed: Such as `22:00-07:00`, `22-7`, or `10pm to 7am`; in lower case.
        reader: The person's time format.

    Raises:
        TypoError: The input is invalid.
    """
    match = _HOURS.fullmatch(typed)
    times = [] if match is None else [_clock(*match.groups()[:3]), _clock(*match.groups()[3:])]
    start, until = [*times, None, None][:2]
    if start is None or until is None:
        raise TypoError(say("command.quiet_time", text=quoted(typed)))
    if start == until:
        raise TypoError(say("command.quiet_same", time=reader.wall(start)))
    return start, until


def hours_text(person: PersonRecord, reader: TimeReader) -> str:
    """Describe a person's quiet hours; empty without any."""
    if not person.quiet_from:
        return ""
    times = {"from": reader.wall(person.quiet_from), "to": reader.wall(person.quiet_until)}
    return say("command.quiet", **times)


def _clock(hour: str, minute: str | None, half: str | None) -> str | None:
    """Return a time of day as `22:00`; None if invalid."""
    number = int(hour)
    if half is not None:
        if not 1 <= number <= 12:
            return None
        number = number % 12 + (12 if half == "pm" else 0)
    if number == 24 and int(minute or 0) == 0:
        number = 0
    try:
        return f"{time(number, int(minute or 0)):%H:%M}"
    except ValueError:
        return None
