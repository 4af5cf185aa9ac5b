"""The uses of a standing grant by several processes at once, on each database (6.6)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from agents.policy import PolicyCall
from bot.approvals.due.worker import ApprovalWorker
from bot.approvals.grants import Grants, a_grant
from bot.approvals.service import Approvals
from bot.people.access import Access
from bot.records.approval import APPROVE, Approval, CastVote, Decision, GrantRequest, Status
from bot.records.people import Grant
from bot.records.terms import GrantTerms, Group, Requirement, Stage, Terms
from bot.stores import Stores
from bot.threads.runs.grant_uses import GrantCheck, NewCall
from tests.contract.builders import an_approval
from tests.support.fakes import FakeClock, FakeDirectory, FakeNotices, FakeNotifier, Queue

TERMS = Terms(
    rules=("default",),
    stages=(Stage(approve=(Requirement(name="sre", groups=("sre",)),)),),
    groups={"sre": Group(users=("UADA",))},
    grants=GrantTerms(max_time_s=3_600, max_uses=5, vary=("host",)),
)
AT_MS = FakeClock().now_ms


def an_approved() -> Approval:
    vote = CastVote(by="UADA", choice=APPROVE, at_ms=AT_MS, digest="d1" * 32)
    return an_approval(
        address="agent:A;agent:clerk;tool:restart:c1",
        tool="restart",
        arguments={"host": "a"},
        digest="d1" * 32,
        requester_id="UROSA",
        requesters=("UROSA",),
        terms=TERMS,
        votes=(vote,),
        status=Status.APPROVED,
        decision=Decision(status=Status.APPROVED, by="UADA", at_ms=AT_MS, digest="d1" * 32),
    )


def a_process(storage: Stores) -> GrantCheck:
    directory, clock = FakeDirectory(), FakeClock()
    for name in ("UADA", "UROSA"):
        directory.add(name)
    attendance = ApprovalWorker(
        storage=storage,
        directory=directory,
        notifier=FakeNotifier(),
        clock=clock,
        owner="process",
        wake=lambda _: None,
    )
    approvals = Approvals(
        storage=storage,
        access=Access(directory),
        clock=clock,
        shows=lambda _, __: True,
        attendance=attendance,
    )
    grants = Grants(
        storage=storage, notices=FakeNotices(), clock=clock, votes=lambda: approvals.votes
    )
    return GrantCheck(grants)


def a_call(number: int) -> NewCall:
    call = PolicyCall(
        tool="restart",
        arguments={"host": f"h{number}"},
        address=f"agent:A;agent:clerk;tool:restart:c{number}",
    )
    approval = an_approved()
    return NewCall(
        call=call,
        terms=TERMS,
        thread_id=approval.thread_id,
        requesters=("UROSA",),
        key=f"call {number}",
    )


def an_allowance(uses: int) -> GrantRequest:
    return GrantRequest(for_s=3_600, uses=uses, vary=("host",))


async def given(storage: Stores, *, uses: int) -> str:
    approval = an_approved()
    await storage.approvals.insert(approval)
    grant = a_grant(approval, an_allowance(uses))
    await storage.grants.add(grant)
    return grant.grant_id


async def use(process: GrantCheck, call: NewCall) -> Grant | None:
    """Find a grant, and use it, as a call does that starts."""
    grant = await process.find_grant(call)
    if grant is None:
        return None
    return await process.grants.storage.grants.use(grant, call=call.key, now_ms=AT_MS)


async def race(processes: Sequence[GrantCheck], calls: Sequence[NewCall]) -> int:
    used = await asyncio.gather(
        *(use(processes[at % len(processes)], call) for at, call in enumerate(calls))
    )
    Queue.drop_all()
    return len([grant for grant in used if grant is not None])


async def test_of_many_calls_at_once_just_as_many_run_as_were_allowed(storage: Stores) -> None:
    grant_id = await given(storage, uses=3)
    calls = [a_call(number) for number in range(8)]
    assert await race([a_process(storage), a_process(storage)], calls) == 3
    assert len((await storage.grants.get(grant_id)).uses) == 3


async def test_two_processes_share_the_last_use(two_processes: list[Stores]) -> None:
    first, second = two_processes
    grant_id = await given(first, uses=1)
    processes = [a_process(first), a_process(second)]
    assert await race(processes, [a_call(1), a_call(2)]) == 1
    assert len((await first.grants.get(grant_id)).uses) == 1


async def test_a_call_is_counted_once_however_often_it_comes(storage: Stores) -> None:
    grant_id = await given(storage, uses=2)
    process = a_process(storage)
    assert await race([process], [a_call(1), a_call(1), a_call(1)]) == 3
    assert len((await storage.grants.get(grant_id)).uses) == 1


async def test_after_its_end_nothing_starts_by_it(storage: Stores) -> None:
    grant_id = await given(storage, uses=5)
    process = a_process(storage)

    async def end() -> int:
        ended = await storage.grants.end(grant_id, by="UADA", now_ms=AT_MS)
        assert ended is not None
        return len(ended.uses)

    ended, *used = await asyncio.gather(end(), *(use(process, a_call(n)) for n in range(4)))
    Queue.drop_all()
    stored = await storage.grants.get(grant_id)
    assert len((stored).uses) == ended == len([grant for grant in used if grant is not None])
    assert await use(process, a_call(9)) is None


async def test_a_grant_that_nobodys_vote_stands_behind_lets_nothing_run(storage: Stores) -> None:
    grant_id = await given(storage, uses=5)
    other = an_approved()
    lone = a_grant(other, an_allowance(5))
    await storage.grants.end(grant_id, by="", now_ms=AT_MS)
    for name, changes in (("a", {"granter_id": "UBEN"}), ("b", {"approval_id": "apr_" + "0" * 32})):
        await storage.grants.add(lone.changed(grant_id=name, **changes))
    assert await use(a_process(storage), a_call(1)) is None


async def test_of_two_who_find_a_grant_missing_it_is_given_once(
    two_processes: list[Stores],
) -> None:
    """Whoever allowed it died between the vote, which says so, and the grant."""
    approval = an_approved()
    assert approval.decision is not None
    decided = approval.changed(decision=approval.decision.changed(allowance=an_allowance(2)))
    await two_processes[0].approvals.insert(decided)
    processes = [a_process(stores) for stores in two_processes]

    async def complete(process: GrantCheck, storage: Stores) -> None:
        stored = await storage.approvals.get(approval.approval_id)
        assert await process.grants.complete(stored) is None

    pairs = [*zip(processes, two_processes, strict=True)] * 2
    await asyncio.gather(*(complete(*pair) for pair in pairs))

    expected = a_grant(approval, an_allowance(2))
    assert await two_processes[1].grants.current(approval.thread_id, now_ms=AT_MS) == [expected]
    entries = await two_processes[1].audit.of_thread(approval.thread_id, limit=99)
    assert [entry.action for entry in entries].count("granted") == 1
    assert await race(processes, [a_call(1), a_call(2), a_call(3)]) == 2
