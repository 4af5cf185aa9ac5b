"""Items of lists: title, expiry, risk, requester, and one button.

Titles and names are untrusted and therefore plain text.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from bot.approvals.outcome import ended_ms
from bot.approvals.overview import GrantWithOrigin, HealthSummary
from bot.errors import DirectoryError
from bot.layout.action_ids import ActionId, encode
from bot.layout.blocks import Block, button, context, plain
from bot.layout.sentences import title_of
from bot.layout.short_ids import short_id
from bot.layout.text import clip
from bot.policy.progress import progress_of
from bot.ports.people import Directory
from bot.questions.shown import shown_question, what_runs
from bot.records.approval import Approval, Kind
from bot.records.programs import ProgramKeyRecord, ProgramRecord
from bot.slack.cards.buttons import way_in
from bot.slack.cards.footer import stage_words
from bot.slack.cards.status import final_status
from bot.slack.home.times import TimeReader
from bot.words import say

_TITLE = 200
_NAME = 60
_MOST_KEYS = 5
_SEPARATOR = " · "
_RISKS = {"high": "🔺", "critical": "🛑"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownNames:
    """Names of people and channels; ids if unknown.

    Attributes:
        people: Names by Slack user id.
        channels: Names by id, with `#`; empty for a direct message.
    """

    people: Mapping[str, str]
    channels: Mapping[str, str]

    def person(self, user_id: str) -> str:
        """Return a person's name."""
        return clip(self.people.get(user_id, user_id), _NAME)

    def channel(self, channel_id: str) -> str:
        """Return a channel's name; empty for a direct message."""
        return clip(self.channels.get(channel_id, channel_id), _NAME)


async def names_of(
    approvals: Iterable[Approval],
    directory: Directory,
    channel_name: Callable[[str], Awaitable[str]],
    *,
    people: Iterable[str] = (),
    places: Iterable[str] = (),
) -> ShownNames:
    """Look up the names that items need.

    Args:
        approvals: The items.
        directory: Looks people up; results may be a minute old.
        channel_name: Returns a channel's name, without `#`.
        people: Further Slack user ids.
        places: Further channel ids.
    """
    shown = list(approvals)
    known: dict[str, str] = {}
    channels: dict[str, str] = {}

    async def person(user_id: str) -> None:
        with suppress(DirectoryError):
            known[user_id] = (await directory.person(user_id)).name

    async def channel(channel_id: str) -> None:
        with suppress(DirectoryError):
            name = await channel_name(channel_id)
            channels[channel_id] = f"#{name}" if name else ""

    named = {*people, *(person_id for approval in shown for person_id in _people(approval))} - {""}
    where = {*places, *(approval.channel_id for approval in shown)}
    await asyncio.gather(*map(person, sorted(named)), *map(channel, sorted(where)))
    return ShownNames(people=known, channels=channels)


def waiting_item(approval: Approval, names: ShownNames, reader: TimeReader) -> list[Block]:
    """Render an approval that waits for the reader."""
    parts = [
        _risk(approval),
        say("home.expires", when=reader.moment(approval.expires_ms)),
        stage_words(approval),
        _asked_by(approval, names),
    ]
    claim = approval.claim
    if claim.holds(reader.now_ms):
        parts.append(f"👀 {say('status.claimed', who=names.person(claim.by))}")
    return item(approval, parts, *_way(approval))


def own_item(
    approval: Approval, names: ShownNames, reader: TimeReader, *, is_withheld: bool = False
) -> list[Block]:
    """Render the reader's own pending request.

    Args:
        approval: The request.
        names: Names of people and channels.
        reader: The reader's time format.
        is_withheld: Whether they may not see it any more, but can withdraw it.
    """
    if is_withheld:
        name = short_id(approval.approval_id)
        value = encode(approval.approval_id, approval.digest)
        back = button(say("button.withdraw"), ActionId.WITHDRAW, value, of=name)
        text = plain(say("home.withheld", id=name))
        return [{"type": "section", "text": text, "accessory": back}]
    if approval.kind is Kind.QUESTION:
        progress, way = f"💬 {say('home.needs_answer')}", _way(approval)
    else:
        progress, way = f"⏳ {_progress(approval)}", (say("button.open"), ActionId.DETAILS)
    place = names.channel(approval.channel_id)
    begins = say("home.expires", when=reader.moment(approval.expires_ms))
    return item(approval, [begins, progress, place], *way)


def ended_item(
    approval: Approval, names: ShownNames, reader: TimeReader, *, by: str
) -> list[Block]:
    """Render an ended approval."""
    words = ended_words(approval, names, reader, by=by)
    return item(approval, [words], say("button.open"), ActionId.DETAILS)


def ended_words(approval: Approval, names: ShownNames, reader: TimeReader, *, by: str) -> str:
    """Describe how an approval ended, as its card does: sign, outcome, people, and time."""

    def person(user_id: str) -> str:
        return say("home.you") if user_id == by else names.person(user_id)

    status = final_status(shown_question(approval), person=person, when=reader.moment)
    words, time = f"{status.symbol} {status.words}", reader.moment(ended_ms(approval))
    return words if time in words else f"{words}{_SEPARATOR}{time}"


def grant_item(given: GrantWithOrigin, reader: TimeReader, number: int | None = None) -> Block:
    """Render a standing grant with a button that revokes it.

    Args:
        given: The grant.
        reader: The reader's time format.
        number: Its number in the list, or None.
    """
    grant, title = given.grant, grant_title(given)
    lead = f"{number}. " if number is not None else ""
    words = say(
        "home.grant",
        used=len(grant.uses),
        of=grant.max_uses,
        when=reader.moment(grant.until_ms),
    )
    block: Block = {
        "type": "section",
        "text": plain(f"{lead}{clip(title, _TITLE)}\n🔑 {words}"),
    }
    if given.approval is not None:
        value = encode(grant.approval_id, grant.ruling)
        end = button(say("button.stop"), ActionId.REVOKE, value, of=title)
        end["confirm"] = {
            "title": plain(say("confirm.stop_title")),
            "text": plain(
                say("confirm.stop_program" if given.grant.program else "confirm.stop_text")
            ),
            "confirm": plain(say("button.stop_agent")),
            "deny": plain(say("confirm.no")),
        }
        block["accessory"] = end
    return block


REVOKE_KEY = "countersign:home_revoke_key"


def key_item(program: ProgramRecord, key: ProgramKeyRecord, reader: TimeReader) -> Block:
    """Render a key of the reader's own program, with a button that revokes it."""
    name = program.name.rpartition("/")[2]
    when = reader.moment(key.ends_ms)
    words = say("home.own_key", program=name, key=key.public_id, when=when)
    return {
        "type": "section",
        "text": plain(f"🔑 {words}"),
        "accessory": {
            "type": "button",
            "action_id": REVOKE_KEY,
            "text": plain(say("button.revoke")),
            "value": key.id,
            "confirm": {
                "title": plain(say("confirm.revoke_title")),
                "text": plain(say("confirm.revoke_text")),
                "confirm": plain(say("confirm.revoke_yes")),
                "deny": plain(say("confirm.no")),
            },
        },
    }


def grant_title(given: GrantWithOrigin) -> str:
    """Return the name of a standing grant for its reader: only the id if it is withheld."""
    if given.is_withheld:
        return say("home.grant_withheld", id=short_id(given.grant.approval_id))
    return title_of(given.approval) if given.approval is not None else given.grant.tool


def item(approval: Approval, parts: Iterable[str], label: str, action: str) -> list[Block]:
    """Render a title with one button, and the details in small print below."""
    title = title_of(what_runs(approval))
    small = _SEPARATOR.join(part for part in parts if part)
    value = encode(approval.approval_id, approval.digest)
    way = button(label, action, value, of=title)
    head = {"type": "section", "text": plain(clip(title, _TITLE) or "…"), "accessory": way}
    return [head, context(plain(small))]


def health_lines(vitals: HealthSummary, reader: TimeReader) -> list[str]:
    """Describe the bot's health, one line per part."""
    good, bad = "✅", "⚠️"
    lines = [
        f"{good} {say('home.slack_good')}" if vitals.has_slack else f"{bad} {say('home.slack_bad')}"
    ]
    if vitals.database_ms is None:
        return [*lines, f"{bad} {say('home.database_bad')}"]
    lines.append(f"{good} {say('home.database_good', ms=vitals.database_ms)}")
    lines.append(f"{good} {say('home.pending', n=vitals.pending)}")
    if vitals.first_ms:
        lines[-1] += f" {say('home.first', when=reader.moment(vitals.first_ms))}"
    if vitals.unreadable:
        lines.append(f"{bad} {say('home.unreadable', n=vitals.unreadable)}")
    for program, ends_ms in vitals.ending[:_MOST_KEYS]:
        lines.append(f"{bad} {say('home.key', program=program, when=reader.moment(ends_ms))}")
    return lines


def _risk(approval: Approval) -> str:
    risk = approval.terms.risk if approval.kind is Kind.APPROVAL else ""
    if risk == "low":
        return say("risk.low")
    if risk not in _RISKS:
        return ""
    words = say("risk.critical" if risk == "critical" else "risk.high")
    return f"{_RISKS[risk]} {words}"


def _asked_by(approval: Approval, names: ShownNames) -> str:
    who, place = names.person(approval.requester_id), names.channel(approval.channel_id)
    return say("home.asked_in", who=who, channel=place) if place else who


def _progress(approval: Approval) -> str:
    progress = progress_of(approval)
    if progress.is_plain or not progress.tallies:
        return say("status.doubt" if approval.kind is Kind.DOUBT else "status.needs_approval")
    have, need = (sum(values) for values in zip(*_counts(approval), strict=True))
    stage = stage_words(approval)
    votes = "" if stage and need == 1 else say("status.votes", have=have, need=need)
    return _SEPARATOR.join(filter(None, (stage, votes)))


def _counts(approval: Approval) -> list[tuple[int, int]]:
    return [(tally.have, tally.need) for tally in progress_of(approval).tallies]


def _way(approval: Approval) -> tuple[str, str]:
    """Return label and action of an item's button.

    A question opens its own form. Everything else, including questions answered by buttons, opens
    the review.
    """
    block = way_in(shown_question(approval))
    return block["text"]["text"], block["action_id"]


def _people(approval: Approval) -> list[str]:
    decided = approval.decision.by if approval.decision is not None else ""
    voters = [voter for vote in approval.votes for voter in (vote.by, vote.on_behalf_of)]
    return [approval.requester_id, decided, approval.claim.by, approval.edits.by, *voters]
