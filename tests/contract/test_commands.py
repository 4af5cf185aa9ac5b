"""How many commands each call brings to the database: what a turn costs is made of these."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

import pytest

from agents.core.checkpoint import CheckpointStatus
from bot.records.approval_queries import get_all, open_of
from bot.stores import Stores
from tests.contract.builders import (
    APPROVAL_ID,
    DIGEST,
    THREAD_ID,
    a_decision,
    a_message,
    a_post,
    a_thread,
    an_approval,
    an_entry,
)
from tests.cost.counting import counting, watching
from tests.support.decided import decide

CHECKPOINT_ID = f"{THREAD_ID}#1"
RUN_ID = f"{THREAD_ID}#2"
MANY = [an_approval(approval_id=f"apr_{n}", position=n, open=False) for n in range(100)]
ENTRIES = [an_entry(f"entry-{n}") for n in range(100)]
MESSAGE_ID = a_message().message_id

Call = Callable[[Stores], Awaitable[object]]

CALLS: Mapping[str, tuple[int, Call]] = {
    "insert": (1, lambda s: s.approvals.insert(*MANY)),
    "append to the audit": (1, lambda s: s.audit.append(*ENTRIES)),
    "get_all": (1, lambda s: get_all(s.approvals, [APPROVAL_ID])),
    "open_of": (1, lambda s: open_of(s.approvals, THREAD_ID)),
    "decide": (1, lambda s: decide(s.approvals, APPROVAL_ID, a_decision(), digest=DIGEST)),
    "claim": (1, lambda s: s.threads.claim(THREAD_ID, owner="a", now_ms=10, until_ms=20)),
    "ensure": (2, lambda s: s.threads.ensure(a_thread(thread_id="T1:C1:new"))),
    "take": (1, lambda s: s.inbox.take([MESSAGE_ID], turn=1)),
    "add_or_get": (2, lambda s: s.posts.add_or_get(a_post("new"))),
    "finish": (1, lambda s: s.posts.finish("post-1", ts="1.2", text="All.")),
    "load": (1, lambda s: s.checkpoints.load(CHECKPOINT_ID)),
    "append": (1, lambda s: s.checkpoints.append(RUN_ID, "c", base=1, index=2)),
    "close": (1, lambda s: s.checkpoints.close(CHECKPOINT_ID, expected_version=1)),
}


@pytest.fixture
async def filled(new_storage: Callable[[], Stores]) -> AsyncIterator[Stores]:
    """A storage whose commands are seen, with one of everything."""
    with watching():
        storage = new_storage()
        await storage.open()
        await storage.threads.ensure(a_thread(due_ms=1))
        await storage.inbox.add(a_message())
        await storage.posts.add(a_post(text=""))
        await storage.approvals.insert(an_approval())
        for checkpoint_id in (CHECKPOINT_ID, RUN_ID):
            await storage.checkpoints.save(
                checkpoint_id, "{}", status=CheckpointStatus.RUNNING, expected_version=0
            )
            for index, entry in enumerate(["a", "b"]):
                await storage.checkpoints.append(checkpoint_id, entry, base=1, index=index)
        yield storage
        await storage.close()


@pytest.mark.parametrize("name", CALLS)
async def test_a_call_costs_no_more_commands_than_it_has_to(filled: Stores, name: str) -> None:
    most, call = CALLS[name]

    with counting() as count:
        result = await call(filled)

    assert result is not False
    assert 1 <= count.total <= most, count.lines()
