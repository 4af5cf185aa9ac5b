"""Buttons and modals of secondary actions: claim, release, snooze, ask, delegate."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from bot.approvals.delegation import Delegating
from bot.approvals.secondary_actions import SecondaryActions
from bot.approvals.service import Approvals
from bot.errors import DirectoryError, RefusalError
from bot.layout.action_ids import ActionId, Reference
from bot.layout.modals import Errors, Values
from bot.layout.sentences import title_of
from bot.layout.text import clip_mrkdwn
from bot.people.viewer import Viewer
from bot.policy.eligibility import REQUESTERS
from bot.policy.refusals import LONGEST_MS, RefusalCode
from bot.ports.people import Actor
from bot.ports.process import Clock, Spawn
from bot.records.approval import Approval, Kind
from bot.records.terms import Group
from bot.slack.cards.secondary_actions import (
    DAY,
    PERSON,
    TO,
    Handing,
    Here,
    OwnRights,
    hand_over_modal,
    question_modal,
    read_handing,
    read_question,
    read_snooze,
    snooze_modal,
    snoozed_in,
)
from bot.slack.handlers import Click, FormNotice, Handlers
from bot.slack.home.homes import Composer
from bot.slack.home.times import zone_for
from bot.words import say
from bot.words.mrkdwn import date, mention

_TITLE = 150


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondaryActionServices:
    """Use cases for the secondary actions."""

    approvals: Approvals
    secondary_actions: SecondaryActions
    delegating: Delegating
    composer: Composer
    clock: Clock
    spawn: Spawn


async def claim(services: SecondaryActionServices, click: Click) -> None:
    """Claim an approval."""
    approval = await services.secondary_actions.claim(
        click.about.approval_id, click.actor, shown=click.about.shown
    )
    services.spawn(services.approvals.follow_up(approval))


async def let_go(services: SecondaryActionServices, click: Click) -> None:
    """Release the person's claim."""
    approval = await services.secondary_actions.let_go(
        click.about.approval_id, click.actor, shown=click.about.shown
    )
    services.spawn(services.approvals.follow_up(approval))


async def open_snooze(services: SecondaryActionServices, click: Click) -> None:
    """Open the snooze modal."""
    approval = await services.secondary_actions.check_snooze(
        click.about.approval_id, click.actor, shown=click.about.shown
    )
    await click.window.show(snooze_modal(approval, await _here(services, click.actor)))


async def submit_snooze(
    services: SecondaryActionServices, about: Reference, actor: Actor, values: Values
) -> Errors:
    """Handle the snooze modal."""
    for_s = read_snooze(values, now_ms=services.clock())
    if not isinstance(for_s, int):
        return for_s
    try:
        approval = await services.secondary_actions.snooze(
            about.approval_id, actor, shown=about.shown, for_s=for_s
        )
    except RefusalError as error:
        if error.code != RefusalCode.BEYOND_DEADLINE:
            raise
        return {snoozed_in(values): say("refuse.beyond")}
    services.spawn(services.approvals.follow_up(approval))
    return {}


async def open_question(services: SecondaryActionServices, click: Click) -> None:
    """Open the question modal."""
    approval = await services.secondary_actions.check_question(
        click.about.approval_id, click.actor, shown=click.about.shown
    )
    has_agent = await services.secondary_actions.explains(approval)
    await click.window.show(question_modal(approval, has_agent=has_agent))


async def submit_question(
    services: SecondaryActionServices, about: Reference, actor: Actor, values: Values
) -> Errors:
    """Handle the question modal."""
    asked = read_question(values)
    if isinstance(asked, dict):
        return asked
    text, to = asked
    try:
        approval = await services.secondary_actions.ask(
            about.approval_id, actor, shown=about.shown, text=text, to=to
        )
    except RefusalError as error:
        if error.code != RefusalCode.NOT_HERE:
            raise
        return {PERSON: error.reason}
    services.spawn(services.approvals.follow_up(approval))
    return {}


async def open_hand_over(services: SecondaryActionServices, click: Click) -> None:
    """Open the delegation modal for a possible approver."""
    approval = await services.approvals.get_pending(
        click.about.approval_id, click.actor, shown=click.about.shown
    )
    vote = await services.approvals.votes.right_of(approval, click.actor)
    known = services.approvals.policy.groups() or {}
    groups = {
        name: await _called(services, known[name])
        for name in vote.groups
        if name in known and not vote.on_behalf_of
    }
    overview = await services.composer.overview(click.actor)
    rights = OwnRights(
        groups=groups,
        waiting=await _own_right(services, click.actor, overview.waiting),
        handed=overview.handed,
    )
    view = hand_over_modal(approval, rights, await _here(services, click.actor))
    await click.window.show(view)


async def _called(services: SecondaryActionServices, group: Group) -> str:
    """Return a group's title, or the names of its members."""
    if group.title:
        return group.title
    composer, names = services.composer, list[str]()
    for slack_id in (*group.usergroups, *group.users, *group.channels)[:_MOST_CALLED]:
        with suppress(DirectoryError):
            if slack_id[:1] in {"C", "G"}:
                names.append(f"#{await composer.channel_name(slack_id)}")
            else:
                names.append(await composer.name_of(slack_id))
    return ", ".join(filter(None, names)) or say("line.members")


_MOST_CALLED = 3


async def _own_right(
    services: SecondaryActionServices, actor: Actor, waiting: Sequence[Approval]
) -> list[Approval]:
    """Return the requests that a person decides by their own right."""
    decided = services.approvals.votes
    viewer = Viewer(
        decided.lookup.directory,
        replace(decided.lookup, delegations=None),
        actor,
        (),
        services.clock(),
    )
    calls = [approval for approval in waiting if approval.kind is not Kind.QUESTION]
    return [approval for approval in await viewer.decidable(calls) if approval.terms.delegation]


async def submit_hand_over(
    services: SecondaryActionServices, about: Reference, actor: Actor, values: Values
) -> Errors | FormNotice:
    """Delegate the person's own right for the request."""
    approval = await services.approvals.get_pending(about.approval_id, actor, shown=about.shown)
    longest = services.clock() + LONGEST_MS
    handing = read_handing(
        values, await _here(services, actor), ends_ms=min(approval.expires_ms, longest)
    )
    if isinstance(handing, dict):
        return handing
    if errors := _handing_errors(approval, handing, actor, now_ms=services.clock()):
        return errors
    delegating = services.delegating
    team_id, group = approval.team_id, handing.group
    name = approval.approval_id if handing.is_this else ""
    try:
        old = await delegating.ending(actor, team_id=team_id, group=group, approval_id=name)
        made = await delegating.hand_over(
            actor,
            team_id=team_id,
            delegate_id=handing.to,
            until_ms=handing.until_ms,
            group=group,
            approval_id=name,
        )
    except RefusalError as error:
        if error.code != RefusalCode.BAD_DELEGATE:
            raise
        return {TO: error.reason}
    others = ", ".join(
        mention(delegate_id) for delegate_id in old if delegate_id != made.delegate_id
    )
    words = _handed(approval, mention(made.delegate_id), date(made.until_ms), others, handing)
    return FormNotice(title=say("form.handed"), words=words)


def _handing_errors(approval: Approval, handing: Handing, actor: Actor, *, now_ms: int) -> Errors:
    """Return input errors of the delegation modal."""
    if handing.to == actor.user_id:
        return {TO: say("refuse.delegate_self")}
    if handing.to in approval.all_requesters and REQUESTERS in approval.terms.exclude:
        return {TO: say("refuse.delegate_own")}
    return {DAY: say("refuse.time_long")} if handing.until_ms - now_ms > LONGEST_MS else {}


def _handed(approval: Approval, who: str, when: str, others: str, handing: Handing) -> str:
    """Describe who can now decide what."""
    if handing.is_this:
        return say("form.handed_this", who=who, title=clip_mrkdwn(title_of(approval), _TITLE))
    if others:
        return say("form.handed_instead", who=who, when=when, old=others)
    return say("form.handed_words", who=who, when=when)


async def _here(services: SecondaryActionServices, actor: Actor) -> Here:
    person = await services.approvals.access.directory.person(actor.user_id)
    zone = zone_for(person, services.approvals.policy.timezone)
    return Here(now_ms=services.clock(), zone=zone)


def register(handlers: Handlers, services: SecondaryActionServices) -> None:
    """Register the buttons and modals."""
    handlers.add(
        services,
        clicks={
            ActionId.CLAIM: claim,
            ActionId.LET_GO: let_go,
            ActionId.SNOOZE: open_snooze,
            ActionId.ASK_BACK: open_question,
            ActionId.HAND_OVER: open_hand_over,
        },
        forms={
            ActionId.SNOOZE_MODAL: submit_snooze,
            ActionId.ASK_BACK_MODAL: submit_question,
            ActionId.HAND_OVER_MODAL: submit_hand_over,
        },
    )
