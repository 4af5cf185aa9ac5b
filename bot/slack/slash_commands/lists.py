"""Commands for lists: pending, own and ended requests, grants, health."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bot.approvals.overview import MOST_ENDED, GrantWithOrigin, StoppableThread
from bot.layout.action_ids import ActionId
from bot.layout.blocks import Block, button, context, header, plain
from bot.layout.sentences import title_of
from bot.layout.short_ids import prefix_of, short_id
from bot.layout.text import clip, clip_mrkdwn
from bot.questions.shown import what_runs
from bot.records.approval import Approval, Status
from bot.redaction.mask import mask_text
from bot.slack.home.items import (
    ShownNames,
    ended_item,
    grant_item,
    grant_title,
    health_lines,
    names_of,
    own_item,
    waiting_item,
)
from bot.slack.home.state import PAGE
from bot.slack.home.times import TimeReader
from bot.slack.slash_commands.answers import Asker, TypedAnswer, TypoError, quoted
from bot.words import say

_MOST_FOUND = 5
_TITLE = 150


async def waiting(asker: Asker, _: Sequence[str]) -> TypedAnswer:
    """`list`: the requests that the person can decide."""
    count, items = await asker.composer.waiting_items(asker.actor)
    if not count:
        return TypedAnswer(text=say("command.none"))
    blocks = [header(say("home.waiting", n=count)), *items]
    return TypedAnswer(text=say("home.waiting", n=count), blocks=[*blocks, *_rest(count)])


async def mine(asker: Asker, _: Sequence[str]) -> TypedAnswer:
    """`mine`: the undecided requests of the person."""
    overview = await asker.composer.overview(asker.actor)
    if not overview.mine:
        return TypedAnswer(text=say("home.nothing_mine"))
    reader, approvals = await asker.reader(), overview.mine[:PAGE]
    names = await _names(asker, approvals)
    blocks = [header(say("home.mine"))]
    for approval in approvals:
        is_withheld = approval.approval_id in overview.withheld
        blocks += own_item(approval, names, reader, is_withheld=is_withheld)
    blocks += _rest(len(overview.mine))
    return TypedAnswer(text=say("home.show_mine", n=len(overview.mine)), blocks=blocks)


async def decided(asker: Asker, _: Sequence[str]) -> TypedAnswer:
    """`decided`: the last 20 requests that the person decided or made."""
    reader, overviews = await asker.reader(), asker.composer.overviews
    approvals = await overviews.ended(asker.actor, team_id=asker.team_id, limit=MOST_ENDED)
    if not approvals:
        return TypedAnswer(text=say("home.nothing_decided"))
    names, by = await _names(asker, approvals), asker.actor.user_id
    items = [
        block for approval in approvals for block in ended_item(approval, names, reader, by=by)
    ]
    return TypedAnswer(text=say("home.decided"), blocks=[header(say("home.decided")), *items])


async def show(asker: Asker, words: Sequence[str]) -> TypedAnswer:
    """`show 4F2K`: one request, with a button that opens it."""
    typed = " ".join(words)
    if not typed:
        raise TypoError(say("command.which_request"))
    prefix, overviews = prefix_of(typed), asker.composer.overviews
    reader = await asker.reader()
    approvals: list[Approval] = []
    own: list[Approval] = []
    if prefix:
        approvals, own = await overviews.named(prefix, asker.actor, team_id=asker.team_id)
    if not approvals and own:
        names = await _names(asker, ())
        rows = (own_item(request, names, reader, is_withheld=True) for request in own[:_MOST_FOUND])
        blocks = [block for row in rows for block in row]
        return TypedAnswer(text=short_id(own[0].approval_id), blocks=blocks)
    if not approvals:
        raise TypoError(say("command.no_request", id=quoted(typed)))
    names = await _names(asker, approvals)
    blocks = []
    for approval in approvals[:_MOST_FOUND]:
        blocks += _shown(approval, names, reader, asker.actor.user_id)
        blocks.append(context(plain(short_id(approval.approval_id))))
    title = clip_mrkdwn(title_of(what_runs(approvals[0])), _TITLE)
    return TypedAnswer(text=f"{short_id(approvals[0].approval_id)}: {title}", blocks=blocks)


async def grants(asker: Asker, _: Sequence[str]) -> TypedAnswer:
    """`permissions` or `grants`: the standing permissions."""
    reader, permissions = await asker.reader(), await _grants(asker)
    if not permissions:
        return TypedAnswer(text=say("command.grants_none"))
    blocks = [header(say("command.grants_title"))]
    blocks += [
        grant_item(permission, reader, number)
        for number, permission in enumerate(permissions[:PAGE], 1)
    ]
    return TypedAnswer(text=say("command.grants", n=len(permissions)), blocks=blocks)


async def revoke(asker: Asker, words: Sequence[str]) -> TypedAnswer:
    """`stop 2` or `revoke 2`: end the standing permission with this number."""
    typed = " ".join(words)
    permissions = await _grants(asker)
    number = int(typed) if typed.isascii() and typed.isdigit() and len(typed) < 5 else 0
    if not 0 < number <= len(permissions):
        raise TypoError(say("command.no_grant", n=quoted(typed) or "…"))
    given = permissions[number - 1]
    ended = await asker.grants.revoke(given.grant.approval_id, asker.actor)
    asker.spawn(asker.grants.show_later(ended.grant_id))
    asker.changed()
    title = clip_mrkdwn(grant_title(given), _TITLE)
    return TypedAnswer(text=say("command.revoked", title=title))


async def stop(asker: Asker, words: Sequence[str]) -> TypedAnswer:
    """`stop`: the threads in which an agent works for the person, each with a button *Stop*.

    With a number, end the standing permission with this number.
    """
    if words:
        return await revoke(asker, words)
    composer = asker.composer
    await composer.check(asker.actor)
    threads = await composer.overviews.stoppable(asker.actor, team_id=asker.team_id, limit=PAGE)
    if not threads.count:
        return TypedAnswer(text=say("command.stop_nothing"))
    places = {stoppable.thread.channel_id for stoppable in threads.shown}
    directory = composer.overviews.directory
    names = await names_of((), directory, composer.channel_name, places=places)
    key = "command.stop_many" if threads.is_partial else "command.stop"
    words = say(key, n=threads.count)
    rows = (_running(stoppable, names) for stoppable in threads.shown)
    return TypedAnswer(text=words, blocks=[header(words), *rows, *_rest(threads.count)])


def _running(stoppable: StoppableThread, names: ShownNames) -> Block:
    text = mask_text(" ".join(stoppable.text.split()))
    state = say("command.stop_waits") if stoppable.is_waiting else say("command.stop_works")
    where = names.channel(stoppable.thread.channel_id)
    lines = clip(text, _TITLE), clip(" · ".join(filter(None, (state, where))), _TITLE)
    return {
        "type": "section",
        "text": plain("\n".join(filter(None, lines))),
        "accessory": button(
            say("button.stop_agent"), ActionId.STOP_AGENT, stoppable.thread.thread_id, of=text
        ),
    }


async def health(asker: Asker, _: Sequence[str]) -> TypedAnswer:
    """`health`: the state of the system, for admins."""
    composer = asker.composer
    person, reader = await composer.check(asker.actor), await asker.reader()
    if not person.is_admin:
        raise TypoError(say("command.admin"))
    vitals = await composer.overviews.vitals(has_slack=composer.has_slack())
    return TypedAnswer(text="\n".join(health_lines(vitals, reader)))


async def _grants(asker: Asker) -> list[GrantWithOrigin]:
    overviews = asker.composer.overviews
    await asker.composer.check(asker.actor)
    return await overviews.grants(asker.actor, team_id=asker.team_id)


async def _names(asker: Asker, approvals: Iterable[Approval]) -> ShownNames:
    composer = asker.composer
    return await names_of(approvals, composer.overviews.directory, composer.channel_name)


def _shown(approval: Approval, names: ShownNames, reader: TimeReader, by: str) -> list[Block]:
    if approval.status is not Status.PENDING:
        return ended_item(approval, names, reader, by=by)
    if approval.requester_id == by:
        return own_item(approval, names, reader)
    return waiting_item(approval, names, reader)


def _rest(count: int) -> list[Block]:
    """Return the line that says that there are more."""
    if count <= PAGE:
        return []
    words = say("home.range", **{"from": 1, "to": PAGE, "all": count})
    return [context(plain(words))]
