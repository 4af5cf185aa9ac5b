"""What the play takes for a loss, and what not."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.records.approval import Approval, Execution, ExecutionState, Status
from bot.records.thread import Thread
from tests.chaos.play import Play
from tests.chaos.test_chaos import on_sqlite
from tests.contract.builders import a_decision, an_approval
from tests.support.stores import SqliteStores

LOST = "pay job-0-1 (approved): it happened 0 times"


def approved(approval_id: str, **changes: object) -> Approval:
    arguments = {"ref": "job-0-1", "amount": 10}
    parts = {"status": Status.APPROVED, "decision": a_decision(), **changes}
    return an_approval(approval_id=approval_id, tool="pay", arguments=arguments, **parts)


LAPSED = approved("apr_1", execution=Execution(state=ExecutionState.LAPSED))
ANEW = {"created_ms": 2_000, "asked_again": "People have frozen this."}


@pytest.mark.parametrize(
    ("approvals", "wrong"),
    [
        ([approved("apr_1")], [LOST]),
        ([LAPSED], [LOST]),
        ([LAPSED, approved("apr_2", status=Status.REJECTED, **ANEW)], []),
        ([LAPSED, approved("apr_2", **ANEW)], [LOST]),
    ],
    ids=["never ran", "lapsed", "lapsed and rejected", "lapsed and lost"],
)
async def test_of_a_call_that_people_were_asked_about_again_the_last_word_counts(
    tmp_path: Path, storage: SqliteStores, approvals: list[Approval], wrong: list[str]
) -> None:
    play = Play(on_sqlite(tmp_path))
    play.jobs = {0: ("C1", "1.000001")}
    thread_id = f"{play.sandbox.workspace.team_id}:C1:1.000001"
    await storage.threads.add(Thread(thread_id=thread_id, requester_id="U1", created_ms=1))
    mine = [approval.changed(thread_id=thread_id) for approval in approvals]
    await storage.approvals.insert(*mine)
    report = await play.check(storage)
    assert [line for line in report.wrong if "happened" in line] == wrong
