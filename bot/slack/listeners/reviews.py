"""The review modal: open it, change pages, approve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from bot.approvals.disclosure import Opened, Surface, guesses, has_opened, pages_read
from bot.approvals.grants import Grants
from bot.approvals.service import Approvals
from bot.audit.report import in_order
from bot.errors import (
    DirectoryError,
    InvalidInputError,
    NotApproverError,
    OutdatedCardError,
    RefusalError,
    UserFacingError,
)
from bot.layout.action_ids import ActionId, Reference
from bot.layout.blocks import Block
from bot.layout.modals import Errors, Values
from bot.people.approvers import next_step_ms
from bot.people.break_glass import glass_of, why_not_break
from bot.people.viewer import Viewers
from bot.policy.refusals import RefusalCode
from bot.ports.people import Actor
from bot.ports.process import Spawn
from bot.questions.call import CallQuestion
from bot.questions.drawing import DecisionDraft, drawn_question
from bot.questions.reasons import REASON
from bot.questions.yes import Proof
from bot.records.approval import Approval, CastVote, Kind, Status
from bot.records.terms import Group
from bot.slack.cards.details import details_modal, history_blocks
from bot.slack.cards.footer import who_line
from bot.slack.cards.grants import read_next_time
from bot.slack.cards.review import (
    HISTORY,
    REQUEST,
    FormReader,
    count_pages,
    page_number,
    review_modal,
    text_page,
)
from bot.slack.decisions import Decisions, create_grant
from bot.slack.destinations import approvers_text
from bot.slack.handlers import Click, FormNotice, Handlers
from bot.stores import Stores
from bot.words import say
from bot.words.mrkdwn import clock, mention

MOST_ENTRIES = 500
"""Maximum number of audit entries to read for a history."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewServices:
    """Use cases for the review."""

    storage: Stores
    approvals: Approvals
    decisions: Decisions
    viewers: Viewers
    grants: Grants
    spawn: Spawn


async def open_review(services: ReviewServices, click: Click) -> None:
    """Open the review for a person who sees the card."""
    approval = await _shown_approval(services, click.about, click.actor)
    view = review_modal(approval, await reader_of(services, approval, click.actor))
    await click.window.show(view)
    await _note_shown(services, approval, click.actor, REQUEST)


async def turn_page(services: ReviewServices, click: Click) -> None:
    """Show another page in the same modal; values are kept."""
    approval = await _shown_approval(services, click.about, click.actor)
    if not approval.digest.startswith(click.about.shown):
        raise OutdatedCardError(approval.approval_id)
    number, of = page_number(click.about.page), count_pages(approval)
    # The call may have fewer pages since an edit, or the value was forged.
    if number > of:
        raise InvalidInputError("this page")
    view = await _page(services, approval, click.actor, click.about.page, click.window.typed)
    await click.window.replace(view)
    await _note_shown(services, approval, click.actor, click.about.page)


async def reveal(services: ReviewServices, click: Click) -> None:
    """Reveal everything except declared secrets, to a possible approver."""
    approval = await services.approvals.get_decidable(
        click.about.approval_id, click.actor, shown=click.about.shown
    )
    question = await services.decisions.question(click.about, click.actor, what="this button")
    reader = await reader_of(services, approval, click.actor)
    is_call = isinstance(question, CallQuestion) and reader.can_approve
    agrees = question.yes_inputs() if is_call and isinstance(question, CallQuestion) else []

    async def show() -> None:
        await click.window.show(details_modal(approval, agrees=agrees))

    await services.approvals.reveal(approval, click.actor.user_id, show)


async def submit_review(
    services: ReviewServices, about: Reference, actor: Actor, values: Values
) -> Errors | FormNotice:
    """Approve, or show the next page that must be read first."""
    question = await services.decisions.question(about, actor, what="this form")
    approval = question.approval
    if approval.kind is not Kind.APPROVAL or not _has_yes(question):
        raise InvalidInputError("this form")
    # The first page shows everything if it is the only one.
    is_whole = about.page == REQUEST and not count_pages(approval)
    surface = Surface.REVIEW if is_whole else Surface.ELSEWHERE
    unread = services.approvals.unseen(approval, actor.user_id, surface)
    if unread is not None and not guesses(approval):
        return await _next_page(services, approval, actor, values)
    result = question.submit(ActionId.REVIEW_MODAL, values)
    if not isinstance(result, DecisionDraft):
        errors = result if isinstance(result, dict) else {}
        return await _without_reason(services, approval, actor, errors)
    allowance = read_next_time(approval, values)
    try:
        decided = await services.decisions.record(
            approval, result, actor, surface=surface, allowance=allowance
        )
    except RefusalError as error:
        if error.code != RefusalCode.REASON_REQUIRED:
            raise
        return {REASON: say("refuse.reason")}
    services.spawn(services.approvals.follow_up(decided))
    return await create_grant(services.grants, decided, allowance, services.spawn)


async def _next_page(
    services: ReviewServices, approval: Approval, actor: Actor, values: Values
) -> FormNotice:
    """Show the first unread page of the full text; the last can approve."""
    number, of = pages_read(approval, actor.user_id) + 1, count_pages(approval)
    page = text_page(number) if of else REQUEST
    view = await _page(services, approval, actor, page, values)
    await _note_shown(services, approval, actor, page)
    return FormNotice(view=view)


async def _without_reason(
    services: ReviewServices, approval: Approval, actor: Actor, errors: Errors
) -> Errors:
    """Record an approval without its required reason; return the input errors."""
    if REASON not in errors:
        return errors
    code = RefusalCode.REASON_REQUIRED
    # Raised only to be recorded as a refusal.
    with suppress(RefusalError):
        async with services.approvals.noting(approval, actor):
            raise RefusalError(code.value, code.words)
    return {**errors, REASON: say("refuse.reason")}


async def reader_of(services: ReviewServices, approval: Approval, actor: Actor) -> FormReader:
    """Return what a person can do with an approval now; records nothing."""
    if approval.status is not Status.PENDING or approval.kind is Kind.QUESTION:
        return FormReader()
    user_id, votes = actor.user_id, services.approvals.votes
    has_vote = any(vote.by == user_id for vote in approval.votes)
    unread = services.approvals.unseen(approval, user_id, Surface.ELSEWHERE)
    is_clear = has_opened(approval, user_id, Opened.CLEAR)
    reader = FormReader(
        pages=pages_read(approval, user_id),
        has_read=unread is None,
        is_masked=bool(guesses(approval)) and not is_clear,
        is_requester=user_id in approval.all_requesters,
        has_vote=has_vote,
        has_claim=approval.claim.by == user_id,
        can_override=await _can_override(services, approval, actor),
    )
    try:
        vote = await votes.right_of(approval, actor)
    except UserFacingError as error:
        can_reject = await _can_reject(services, approval, actor)
        return replace(reader, why=_why_not(approval, error), can_reject=can_reject)
    why = why_you(approval, vote)
    has_yes = approval.kind is Kind.APPROVAL and _has_yes(drawn_question(approval))
    return replace(reader, can_approve=has_yes, can_reject=True, why=why)


def why_you(approval: Approval, vote: CastVote) -> str:
    """Return why a person can decide, as escaped mrkdwn; empty if obvious."""
    if vote.on_behalf_of:
        return say("line.why_you_delegate", who=mention(vote.on_behalf_of))
    known = approval.terms.groups
    groups = [known[name] for name in vote.groups if name in known]
    return next((words for group in groups if (words := _by_group(approval, group, vote.by))), "")


def _by_group(approval: Approval, group: Group, user_id: str) -> str:
    if user_id in group.users:
        return say("line.why_you_named")
    if group.usergroups:
        return say("line.why_you", group=mention(group.usergroups[0]))
    if group.here:
        return say("line.why_you", group=f"<#{approval.channel_id}>")
    if group.channels:
        return say("line.why_you", group=f"<#{group.channels[0]}>")
    return say("line.why_you_duty") if group.rotation is not None else ""


def _why_not(approval: Approval, error: UserFacingError) -> str:
    """Return why a person cannot decide, in one or two sentences."""
    if isinstance(error, DirectoryError):
        return say("refuse.lookup")
    if error.code == RefusalCode.OWN_REQUEST:
        who = who_line(approval, approvers_text(approval), str)
        return say("refuse.own", who=who)
    if error.code == RefusalCode.NOT_YOUR_TURN and (at_ms := _backup_ms(approval)):
        return say("refuse.backup", time=clock(at_ms))
    return error.reason if isinstance(error, NotApproverError) else str(error)


def _backup_ms(approval: Approval) -> int:
    """Return when only the backups are asked; 0 if unknown."""
    terms = approval.terms
    is_plain = len(terms.stages) == 1 == len(terms.escalate)
    return (next_step_ms(approval) or 0) if is_plain else 0


async def _can_reject(services: ReviewServices, approval: Approval, actor: Actor) -> bool:
    """Whether a person can reject although they cannot approve."""
    try:
        await services.approvals.votes.check(approval, actor)
    except UserFacingError:
        return False
    return True


async def _can_override(services: ReviewServices, approval: Approval, actor: Actor) -> bool:
    """Whether the person may break glass; False if a look-up fails."""
    if glass_of(approval) is None:
        return False
    try:
        return await why_not_break(services.approvals.votes.lookup, approval, actor) is None
    except DirectoryError:
        return False


def _has_yes(question: object) -> bool:
    """Whether plain approval is an answer."""
    return isinstance(question, CallQuestion) and any(question.agree(Proof(is_whole=True)))


async def _shown_approval(services: ReviewServices, about: Reference, actor: Actor) -> Approval:
    approval = await services.storage.approvals.get(about.approval_id)
    await services.approvals.access.check_person(actor, team_id=approval.team_id)
    await services.viewers.check_can_see(approval, actor)
    return approval


async def _page(
    services: ReviewServices, approval: Approval, actor: Actor, page: str, values: Values
) -> dict[str, Any]:
    reader = await reader_of(services, approval, actor)
    history: Sequence[Block] = await _history(services, approval) if page == HISTORY else ()
    return review_modal(approval, reader, page=page, values=values, history=history)


async def _history(services: ReviewServices, approval: Approval) -> list[Block]:
    entries = await services.storage.audit.of_thread(approval.thread_id, limit=MOST_ENTRIES)
    here = {"checkpoint": approval.checkpoint_id, "address": approval.address}
    return history_blocks(
        in_order(
            entry
            for entry in entries
            if entry.approval_id == approval.approval_id
            or (not entry.approval_id and _is_of(entry.detail, here))
        ),
        approval,
    )


def _is_of(detail: Mapping[str, object], here: Mapping[str, str]) -> bool:
    return all(detail.get(name) == value for name, value in here.items())


async def _note_shown(
    services: ReviewServices, approval: Approval, actor: Actor, page: str
) -> None:
    """Store that a person was shown a page; a single page is everything."""
    number, of = page_number(page), count_pages(approval)
    if number:
        await services.approvals.note_page(approval, actor.user_id, number, of=of)
    elif page == REQUEST and not of:
        await services.approvals.note_details(approval, actor.user_id)


def register(handlers: Handlers, services: ReviewServices) -> None:
    """Register the buttons and modals."""
    handlers.add(
        services,
        clicks={
            ActionId.DETAILS: open_review,
            ActionId.REVEAL: reveal,
            ActionId.PAGE: turn_page,
            ActionId.PAGE_BACK: turn_page,
            ActionId.PAGE_NEXT: turn_page,
        },
        forms={ActionId.REVIEW_MODAL: submit_review},
    )
