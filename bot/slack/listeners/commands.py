"""The slash command: hand one's right on, and be away. Nothing is approved by a command."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any
from zoneinfo import ZoneInfo

from slack_bolt.async_app import AsyncApp
from slack_bolt.context.ack.async_ack import AsyncAck
from slack_bolt.context.async_context import AsyncBoltContext

from bot.core.decisions.delegating import Delegating
from bot.errors import InvalidInputError, UserFacingError
from bot.people.until import read_until
from bot.policy.localtime import zone_of
from bot.policy.terms import TermsError
from bot.ports import Actor
from bot.slack.listeners.context import ListenerContext, actor_of
from bot.words.mrkdwn import date, escape, mention
from storage.records import DelegationRecord

COMMAND = "/countersign"
MOST_TYPED = 500
_PERSON = re.compile(r"<@(?P<id>[UW][A-Z0-9]{1,30})(\|[^>]*)?>")
_UTC = "Etc/UTC"
HELP = (
    f"`{COMMAND} delegate @person until fri 18:00` hands your right to decide to somebody, for 30 "
    "days at most; with `for group` at its end, only that of one group\n"
    f"`{COMMAND} delegate` lists what is handed on, `{COMMAND} delegate off` ends it\n"
    f"`{COMMAND} away until mon 9:00` keeps you from being mentioned, `{COMMAND} away off` ends "
    "that; you can still decide\n"
    "Nothing is approved by a command: requests are decided on their cards."
)
_WHO = (
    f"Please name somebody of this workspace: `{COMMAND} delegate @person until fri 18:00`, and "
    "choose the person from the list that Slack shows behind the @."
)
_WHEN = "Please say until when: `{0} until fri 18:00`."


class _TypoError(UserFacingError):
    """A command that cannot be read; says how it is written."""


def register(app: AsyncApp, desk: ListenerContext) -> None:
    """Bind one listener for the command."""

    @app.command(COMMAND)
    async def on_command(body: dict[str, Any], ack: AsyncAck, context: AsyncBoltContext) -> None:
        try:
            words = await desk.in_time(answer(desk, body, actor_of(context, body)))
        except UserFacingError as error:
            words = str(error)
        await ack(text=words, response_type="ephemeral")


async def answer(desk: ListenerContext, body: dict[str, Any], actor: Actor) -> str:
    """Do what somebody typed; return what they read.

    Raises:
        UserFacingError: It was not done, and why.
    """
    team_id, text = body.get("team_id"), body.get("text")
    if not isinstance(team_id, str) or not team_id or not actor.user_id:
        raise InvalidInputError("this command")
    typed = (text if isinstance(text, str) else "")[:MOST_TYPED].split()
    if not typed or typed[0].lower() == "help":
        return HELP
    work = _WORDS.get(typed[0].lower())
    if work is None:
        return f"I don't know “{escape(typed[0][:40])}”.\n{HELP}"
    return await work(desk, actor, team_id, typed[1:])


async def _delegation(
    desk: ListenerContext, actor: Actor, team_id: str, words: Sequence[str]
) -> str:
    if not words:
        return await _list(desk, actor, team_id)
    if [word.lower() for word in words] == ["off"]:
        return await _end(desk, actor, team_id)
    return await _delegate(desk, actor, team_id, words)


async def _absence(desk: ListenerContext, actor: Actor, team_id: str, words: Sequence[str]) -> str:
    if [word.lower() for word in words] == ["off"]:
        return await _come_back(desk, actor, team_id)
    if [word.lower() for word in words[:1]] == ["until"]:
        return await _go_away(desk, actor, team_id, words[1:])
    raise _TypoError(_WHEN.format(f"{COMMAND} away"))


async def _delegate(desk: ListenerContext, actor: Actor, team_id: str, words: Sequence[str]) -> str:
    who = _PERSON.fullmatch(words[0])
    if who is None:
        raise _TypoError(_WHO)
    if len(words) < 2 or words[1].lower() != "until":
        raise _TypoError(_WHEN.format(f"{COMMAND} delegate @person"))
    until, group = _with_group(words[2:])
    until_ms = await _moment(desk, actor, until)
    made = await _delegating(desk).hand_over(
        actor, team_id=team_id, delegate_id=who["id"], until_ms=until_ms, group=group
    )
    words_of = _right(made)
    return (
        f"Until {date(made.until_ms)}, {mention(made.delegate_id)} may use {words_of}. Both names "
        "stand on each card and on record. It counts where the rule lets it, and you are one "
        f"person for each request. `{COMMAND} delegate off` ends it."
    )


async def _list(desk: ListenerContext, actor: Actor, team_id: str) -> str:
    delegating = _delegating(desk)
    own = await delegating.own(actor, team_id=team_id)
    others = await delegating.handed_to(actor, team_id=team_id)
    lines = [
        f"{mention(one.delegate_id)} may use {_right(one)} until {date(one.until_ms)}"
        for one in own
    ]
    lines += [
        f"You may use {_right(one, whose='the right')} of {mention(one.owner_id)} until "
        f"{date(one.until_ms)}"
        for one in others
    ]
    return "\n".join(lines) or "Nothing is handed on, by you or to you."


async def _end(desk: ListenerContext, actor: Actor, team_id: str) -> str:
    ended = await _delegating(desk).end(actor, team_id=team_id)
    if not ended:
        return "You have handed nothing on."
    people = ", ".join(dict.fromkeys(mention(one.delegate_id) for one in ended))
    return f"Ended: {people} can't use your right any more. Votes are checked again at the next."


async def _go_away(desk: ListenerContext, actor: Actor, team_id: str, words: Sequence[str]) -> str:
    until_ms = await _moment(desk, actor, words)
    made = await _delegating(desk).go_away(actor, team_id=team_id, until_ms=until_ms)
    return (
        f"You are not mentioned until {date(made.until_ms)}; you can still decide. To let somebody "
        f"decide in your place: `{COMMAND} delegate @person until …`. `{COMMAND} away off` ends it."
    )


async def _come_back(desk: ListenerContext, actor: Actor, team_id: str) -> str:
    was_away = await _delegating(desk).come_back(actor, team_id=team_id)
    return "Welcome back: you are mentioned again." if was_away else "You are not away."


def _delegating(desk: ListenerContext) -> Delegating:
    approvals = desk.approvals
    return Delegating(desk.storage, approvals.access, approvals.policy, desk.clock)


async def _moment(desk: ListenerContext, actor: Actor, words: Sequence[str]) -> int:
    """The time that somebody typed, by the clock on their wall."""
    zone = await _zone(desk, actor)
    try:
        return read_until(words, now_ms=desk.clock(), zone=zone)
    except ValueError as error:
        raise _TypoError(str(error)) from error


async def _zone(desk: ListenerContext, actor: Actor) -> ZoneInfo:
    """The zone of a person, as Slack knows it; else that of the policy."""
    approvals = desk.approvals
    person = await approvals.access.directory.person(actor.user_id)
    for name in (person.timezone, approvals.policy.timezone):
        try:
            return zone_of(name)
        except TermsError:
            continue
    return zone_of(_UTC)


def _with_group(words: Sequence[str]) -> tuple[Sequence[str], str]:
    """Words before `for`, and the group behind it; empty where there is none.

    Raises:
        UserFacingError: It is not one name.
    """
    lowered = [word.lower() for word in words]
    if "for" not in lowered:
        return words, ""
    place = lowered.index("for")
    names = words[place + 1 :]
    if len(names) != 1:
        raise _TypoError("Behind “for” stands the name of one group of the policy, such as `sre`.")
    return words[:place], names[0]


def _right(one: DelegationRecord, *, whose: str = "your right") -> str:
    return f"{whose} in the group “{escape(one.group_name)}”" if one.group_name else whose


_Work = Callable[[ListenerContext, Actor, str, Sequence[str]], Awaitable[str]]

_WORDS: Mapping[str, _Work] = {"delegate": _delegation, "away": _absence}
"""The first words of commands."""
