"""Buttons and modals of batch cards, and the result for each approval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bot.approvals.batches import MOST_CARDS, Batches, BatchResult, Chosen, not_in_batch
from bot.approvals.disclosure import Surface
from bot.approvals.due.batch_cards import stays
from bot.approvals.secondary_actions import SecondaryActions
from bot.approvals.service import Approvals
from bot.errors import (
    ApprovalClosedError,
    InvalidInputError,
    LeftOutError,
    RefusalError,
    UnknownApprovalError,
    UserFacingError,
)
from bot.layout.action_ids import ActionId, Reference
from bot.layout.modals import Errors, Values, read_text
from bot.layout.sentences import spoken_title
from bot.people.access import Access
from bot.people.lookup import DelegationCache, LookupOnce
from bot.people.viewer import Viewers
from bot.policy.refusals import RefusalCode
from bot.ports.people import Actor
from bot.ports.process import Clock, Spawn
from bot.questions.reasons import REASON, read_reason, rejection_errors
from bot.records.approval import APPROVE, REJECT, Approval, Status
from bot.records.approval_queries import of_turn
from bot.slack.cards.batch import (
    ask_one_modal,
    batch_modal,
    list_modal,
    read_asked,
    read_batch,
    read_listed,
    read_ticked,
    reject_all_modal,
    withdraw_all_modal,
)
from bot.slack.cards.batch_card import MOST_LISTED
from bot.slack.cards.listed import is_listed
from bot.slack.cards.secondary_actions import PERSON, read_question
from bot.slack.decisions import Decisions
from bot.slack.destinations import ClickedMessage
from bot.slack.handlers import Click, FormNotice, Handlers
from bot.stores import Stores
from bot.words import say
from storage.errors import RecordNotFoundError

_MOST_WORDS = 2_900


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchServices:
    """Use cases for batch cards."""

    storage: Stores
    approvals: Approvals
    decisions: Decisions
    viewers: Viewers
    secondary_actions: SecondaryActions
    clock: Clock
    spawn: Spawn


async def open_batch(services: BatchServices, click: Click) -> None:
    """Open the batch modal for a possible approver of the card."""
    about, actor = await _waiting_like(services, click.about), click.actor
    approval = (await services.decisions.question(about, actor, what="this button")).approval
    cards = await _batches(services).batch_of(approval)
    if not any(map(is_listed, cards)):
        raise not_in_batch()
    await services.approvals.check(approval, actor, choice=APPROVE)
    title = await _title_of(services, cards) if approval.is_batched else ""
    await click.window.show(batch_modal(approval, cards, title))


async def count_ticked(services: BatchServices, click: Click) -> None:
    """Say in the open form how many cards are selected, and what they come to."""
    first = await _read(services, click.about)
    await services.viewers.check_can_see(first, click.actor)
    turn = await of_turn(services.storage.approvals, first.checkpoint_id)
    listed, ticked = read_listed(click.window.typed, turn)
    names = {card.approval_id for card in listed}
    if first.status is Status.PENDING:  # those that are too long to list are counted again
        names |= {card.approval_id for card in await _batches(services).batch_of(first)}
    cards = [card for card in turn if card.approval_id in names]
    title = await _title_of(services, cards) if first.is_batched else ""
    chosen = await _title_of(services, ticked) if ticked else ""
    if listed:
        await click.window.replace(batch_modal(first, cards, title, ticked=ticked, chosen=chosen))


async def approve_all(services: BatchServices, click: Click) -> None:
    """Approve exactly what the card listed, with one vote each.

    Raises:
        UserFacingError: Some or all votes do not count.
    """
    if click.about.approval_id in {other.approval_id for other in click.about.others}:
        raise InvalidInputError("this button")
    services = _at_once(services)
    first = await _read(services, click.about)
    batches = _batches(services)
    targets = (click.about, *click.about.others)
    turn = await of_turn(services.storage.approvals, first.checkpoint_id)
    known = {approval.approval_id: approval for approval in turn}
    listed = _lines_of(first, turn, click.message)

    async def cast(card: Chosen) -> Approval:
        reference, seen = _reference(card), known.get(card.approval_id)
        question = await services.decisions.question(
            reference, click.actor, what="this button", known=seen
        )
        batches.check(question.approval, first)
        surface = Surface.LINE if card.approval_id in listed else Surface.ELSEWHERE
        return await services.decisions.record(
            question.approval, question.draft(), click.actor, surface=surface
        )

    chosen = [Chosen(approval_id=target.approval_id, shown=target.shown) for target in targets]
    votes = await batches.vote(chosen, cast)
    _follow_up(services, votes)
    if votes.dropped:
        raise await _left_out(services, first, click.actor, votes)


async def submit_batch(
    services: BatchServices, about: Reference, actor: Actor, values: Values
) -> Errors | FormNotice:
    """Approve the selected cards, reject the others if chosen; report dropped ones."""
    services = _at_once(services)
    batches, reason = _batches(services), read_text(values, REASON)
    first = await services.storage.approvals.get(about.approval_id)
    choice = read_batch(first, values)
    if isinstance(choice, dict):
        return choice
    known = await _known(services, first, MOST_CARDS if choice.rejects else len(choice.ticked))

    async def cast(card: Chosen, status: Status | None = None) -> Approval:
        reference, seen = _reference(card), known.get(card.approval_id)
        question = await services.decisions.question(reference, actor, what="this form", known=seen)
        batches.check(question.approval, first)
        draft = replace(question.draft(status=status), reason=reason)
        return await services.decisions.record(
            question.approval, draft, actor, surface=Surface.LISTED
        )

    async def reject(card: Chosen) -> Approval:
        return await cast(card, Status.REJECTED)

    yes = await batches.vote(choice.ticked, cast)
    turn = await of_turn(services.storage.approvals, first.checkpoint_id) if choice.rejects else []
    no = await batches.vote(choice.left(turn), reject)
    _follow_up(services, yes, no)
    return await _notice_of(
        services, first, actor, _counted(len(yes.recorded), len(no.recorded)), yes, no
    )


async def open_reject(services: BatchServices, click: Click) -> None:
    """Open the modal that rejects several; requesters get the withdrawal instead."""
    waiting = await _waiting(services, click.about)
    if await services.approvals.withdrawals.is_own(waiting[0].approval_id, click.actor):
        await open_withdrawal(services, click)
        return
    await services.approvals.check(waiting[0], click.actor, choice=REJECT)
    await click.window.show(reject_all_modal(waiting, await _title_of(services, waiting)))


async def submit_rejection(
    services: BatchServices, about: Reference, actor: Actor, values: Values
) -> Errors | FormNotice:
    """Reject the selected cards; report dropped ones."""
    services = _at_once(services)
    batches = _batches(services)
    first = await _read(services, about)
    ticked = read_ticked(values)
    faults = rejection_errors(first, values)
    if isinstance(ticked, dict) or faults:
        return ticked if isinstance(ticked, dict) else faults
    reason = read_reason(first, values)
    known = await _known(services, first, len(ticked))

    async def cast(card: Chosen) -> Approval:
        reference, seen = _reference(card), known.get(card.approval_id)
        question = await services.decisions.question(reference, actor, what="this form", known=seen)
        batches.check(question.approval, first)
        draft = replace(question.draft(status=Status.REJECTED), reason=reason)
        return await services.decisions.record(
            question.approval, draft, actor, surface=Surface.LISTED
        )

    votes = await batches.vote(ticked, cast)
    _follow_up(services, votes)
    return await _notice_of(services, first, actor, _counted(0, len(votes.recorded)), votes)


async def open_withdrawal(services: BatchServices, click: Click) -> None:
    """Open the modal that withdraws several, for their requesters."""
    waiting = await _waiting(services, click.about)
    await services.approvals.withdrawals.get_withdrawable(waiting[0].approval_id, click.actor)
    await services.viewers.check_can_see(waiting[0], click.actor)
    await click.window.show(withdraw_all_modal(waiting, await _title_of(services, waiting)))


async def submit_withdrawal(
    services: BatchServices, about: Reference, actor: Actor, values: Values
) -> Errors | FormNotice:
    """Withdraw the selected cards; report dropped ones."""
    first = await _read(services, about)
    ticked, reason = read_ticked(values), read_text(values, REASON)
    if isinstance(ticked, dict):
        return ticked

    async def withdraw(card: Chosen) -> Approval:
        return await services.approvals.withdrawals.withdraw(card.approval_id, actor, reason=reason)

    done = await _batches(services).vote(ticked, withdraw)
    _follow_up(services, done)
    head = say("form.skipped_withdrawn", n=len(done.recorded))
    return await _notice_of(services, first, actor, head, done)


async def open_question(services: BatchServices, click: Click) -> None:
    """Open the modal that asks about one of several."""
    waiting = await _waiting(services, click.about)
    first = waiting[0]
    await services.secondary_actions.check_question(
        first.approval_id, click.actor, shown=first.digest
    )
    await click.window.show(ask_one_modal(waiting, await _title_of(services, waiting)))


async def submit_question_on_one(
    services: BatchServices, _: Reference, actor: Actor, values: Values
) -> Errors:
    """Ask about the selected approval, which then gets its own card."""
    chosen = read_asked(values)
    if isinstance(chosen, dict):
        return chosen
    asked = read_question(values)
    if isinstance(asked, dict):
        return asked
    text, to = asked
    secondary_actions, name = services.secondary_actions, chosen.approval_id
    try:
        approval = await secondary_actions.ask(name, actor, shown=chosen.shown, text=text, to=to)
    except RefusalError as error:
        if error.code != RefusalCode.NOT_HERE:
            raise
        return {PERSON: RefusalCode.NOT_HERE.words}
    services.spawn(services.approvals.follow_up(approval))
    return {}


async def show_all(services: BatchServices, click: Click) -> None:
    """Show the state of each approval to people who may see the card."""
    approval = await _read(services, click.about)
    await services.viewers.check_can_see(approval, click.actor)
    items = await _items(services, approval)
    await click.window.show(list_modal(items, await _title_of(services, items)))


async def split(services: BatchServices, click: Click) -> None:
    """Give each pending approval its own card, for its approvers and requesters."""
    waiting = await _waiting(services, click.about)
    if not await services.approvals.withdrawals.is_own(waiting[0].approval_id, click.actor):
        await services.approvals.check(waiting[0], click.actor, choice=REJECT)
    shared = services.approvals.attendance.shared
    if shared is None:
        raise InvalidInputError("this button")
    services.spawn(_post_each(services, await shared.split(waiting[0])))


async def _post_each(services: BatchServices, names: Sequence[str]) -> None:
    """Post the cards one by one; a pass for due work that comes between may post some first."""
    for name in names:
        await services.approvals.attendance.attend(name)


async def _notice_of(
    services: BatchServices, first: Approval, actor: Actor, head: str, *votes: BatchResult
) -> Errors | FormNotice:
    """List dropped approvals below the counted ones; None if all count."""
    dropped = [refusal for each in votes for refusal in each.dropped]
    if not dropped:
        return {}
    words = "\n".join([head, *await _named(services, first, actor, dropped)])
    return FormNotice(title=say("form.left_out_title"), words=words[:_MOST_WORDS])


def _counted(approved: int, rejected: int) -> str:
    """Describe how many were approved and rejected."""
    if not approved and not rejected:
        return say("form.skipped_all")
    if not rejected:
        return say("form.left_out", n=approved)
    if not approved:
        return say("form.skipped_rejected", n=rejected)
    return say("form.left_out_too", n=approved, rejected=rejected)


async def _left_out(
    services: BatchServices, first: Approval, actor: Actor, votes: BatchResult
) -> UserFacingError:
    """Return the common reason why no vote counts, or the list of reasons."""
    errors = {str(error): error for _, error in votes.dropped}
    if not votes.recorded and len(errors) == 1:
        return next(iter(errors.values()))
    head = _counted(len(votes.recorded), 0)
    named = await _named(services, first, actor, votes.dropped)
    return LeftOutError("\n".join([head, *named])[:_MOST_WORDS])


async def _named(
    services: BatchServices,
    first: Approval,
    actor: Actor,
    dropped: Sequence[tuple[str, UserFacingError]],
) -> list[str]:
    """Name dropped requests and say why; only those of this card that the person may see now."""
    lines: list[str] = []
    for approval_id, why in dropped:
        try:
            approval = await services.storage.approvals.get(approval_id)
        except RecordNotFoundError:
            approval = None
        is_known = approval is not None and approval.checkpoint_id == first.checkpoint_id
        if approval is None or not is_known or await services.viewers.is_withheld(approval, actor):
            lines.append(f"• {say('form.left_out_hidden', why=say('refuse.withheld'))}")
        else:
            lines.append(f"• {spoken_title(approval)}: {why}")
    return lines


def _follow_up(services: BatchServices, *ballots: BatchResult) -> None:
    recorded = [stored for votes in ballots for stored in votes.recorded]
    if recorded:
        services.spawn(_followed(services, recorded))


async def _followed(services: BatchServices, recorded: Sequence[Approval]) -> None:
    """Notify the threads together, then follow up each approval."""
    await services.approvals.tell(recorded)
    for stored in recorded:
        services.spawn(services.approvals.attendance.attend_decided(stored))


def _at_once(services: BatchServices) -> BatchServices:
    """Return use cases that share one look-up for the whole batch."""
    access = Access(LookupOnce(services.approvals.access.directory))
    powers = DelegationCache(services.storage.delegations)
    approvals = replace(services.approvals, access=access, powers=powers)
    return replace(
        services,
        approvals=approvals,
        decisions=replace(services.decisions, approvals=approvals),
        viewers=replace(services.viewers, directory=access.directory),
    )


def _reference(card: Chosen) -> Reference:
    return Reference(approval_id=card.approval_id, shown=card.shown)


async def _known(services: BatchServices, first: Approval, count: int) -> dict[str, Approval]:
    """Read all approvals of a turn at once, by id; each write checks its revision."""
    # A single approval is read by its own id.
    if count < 2:
        return {}
    turn = await of_turn(services.storage.approvals, first.checkpoint_id)
    return {approval.approval_id: approval for approval in turn}


def _lines_of(first: Approval, turn: Sequence[Approval], clicked: ClickedMessage) -> frozenset[str]:
    """Return ids of the lines of the clicked batch card, if any."""
    items = [approval for approval in turn if approval.shares_batch(first) and stays(approval)]
    holder = next(
        (approval for approval in turn if approval.approval_id == first.batch.owner_id), None
    )
    if holder is None or len(items) > MOST_LISTED or not clicked.is_batch_card_of(holder):
        return frozenset()
    return frozenset(approval.approval_id for approval in items)


def _batches(services: BatchServices) -> Batches:
    return Batches(services.storage.approvals, services.clock)


async def _read(services: BatchServices, about: Reference) -> Approval:
    try:
        return await services.storage.approvals.get(about.approval_id)
    except RecordNotFoundError as error:
        raise UnknownApprovalError from error


async def _items(services: BatchServices, approval: Approval) -> list[Approval]:
    """Return the approvals of a card, including former ones.

    Raises:
        InvalidInputError: The approval was never on a batch card.
    """
    if not approval.batch.owner_id:
        raise InvalidInputError("this button")
    turn = await of_turn(services.storage.approvals, approval.checkpoint_id)
    return [other for other in turn if other.shares_batch(approval)]


async def _waiting(services: BatchServices, about: Reference) -> list[Approval]:
    """Return the pending approvals of a card.

    Raises:
        ApprovalClosedError: None is pending.
        InvalidInputError: The card does not exist.
    """
    approval = await _read(services, about)
    items = [other for other in await _items(services, approval) if stays(other)]
    now = services.clock()
    waiting = [
        other for other in items if other.status is Status.PENDING and other.expires_ms > now
    ]
    if not waiting:
        raise ApprovalClosedError(approval)
    return waiting


async def _waiting_like(services: BatchServices, about: Reference) -> Reference:
    """Return the reference; if it is decided, one to a pending approval of its card."""
    approval = await _read(services, about)
    if not stays(approval) or approval.status is Status.PENDING:
        return about
    first = (await _waiting(services, about))[0]
    return Reference(approval_id=first.approval_id, shown=first.digest)


async def _title_of(services: BatchServices, items: Sequence[Approval]) -> str:
    batches = services.approvals.attendance.batches
    return await batches.title_of(items) if batches is not None else ""


def register(handlers: Handlers, services: BatchServices) -> None:
    """Register the buttons and modals."""
    handlers.add(
        services,
        clicks={
            ActionId.BATCH: open_batch,
            ActionId.VALUE: count_ticked,
            ActionId.APPROVE_ALL: approve_all,
            ActionId.BATCH_REJECT: open_reject,
            ActionId.BATCH_DETAILS: show_all,
            ActionId.BATCH_SPLIT: split,
            ActionId.BATCH_ASK: open_question,
            ActionId.BATCH_WITHDRAW: open_withdrawal,
        },
        forms={
            ActionId.BATCH_MODAL: submit_batch,
            ActionId.BATCH_REJECT_MODAL: submit_rejection,
            ActionId.BATCH_ASK_MODAL: submit_question_on_one,
            ActionId.BATCH_WITHDRAW_MODAL: submit_withdrawal,
        },
    )
