"""What one person sees where much waits for others: nothing of theirs is hidden behind it (I14)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bot.records.approval import Approval
from bot.records.approval_queries import waiting
from bot.records.terms import Terms
from bot.stores import Stores
from bot.words import say
from slack_sandbox.workspace.people import ADA, BEN
from tests.contract.spoiling import spoil
from tests.support.halves import later
from tests.support.mongo import MongoServer
from tests.support.named import asked_at
from tests.support.stage import Stage, a_stage

ASK = "@countersign deploy payments 1.4.2 to production"
OF_BEN, OF_ADA = 600, 30


@pytest.fixture(params=["sqlite", pytest.param("mongo", marks=[pytest.mark.mongo, later])])
def environ(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    if request.param == "sqlite":
        return {"COUNTERSIGN_DATA_DIR": str(tmp_path / "data")}
    server: MongoServer = request.getfixturevalue("mongo_server")
    return {"MONGODB_URI": server.new_uri()}


def a_copy(first: Approval, number: int, *, decider: str, requester: str) -> Approval:
    """Another request like the first, with a later deadline."""

    def named(text: str) -> str:
        return text.replace(ADA, decider)

    return asked_at(
        first,
        approval_id=f"apr_{number:032x}",
        interrupt_id=f"{number:016x}",
        position=number,
        title=f"Deploy {number}",
        terms=Terms.from_text(named(first.terms.text)),
        requester_id=requester,
        requesters=(requester,),
        expires_ms=first.expires_ms + number,
        due_ms=None,
    )


async def with_many(stage: Stage, fill: Callable[[Stores, Approval], Any]) -> None:
    """Ask once, and put the rest on record while the bot is stopped."""
    await stage.asked(ASK, word="countersign:approve")
    await stage.rest()
    await stage.stop_bot()
    storage = stage.settings().make_storage()
    await storage.open()
    try:
        (first,), _ = await waiting(storage.approvals, now_ms=stage.clock(), limit=9)
        await fill(storage, first)
    finally:
        await storage.close()
    await stage.start_bot()


async def test_i14_what_waits_for_others_or_cannot_be_read_hides_nobodys_own(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    async def fill(storage: Stores, first: Approval) -> None:
        many = [a_copy(first, at, decider=BEN, requester="UELSE") for at in range(1, OF_BEN + 1)]
        many += [
            a_copy(first, OF_BEN + at, decider=ADA, requester=BEN) for at in range(1, OF_ADA + 1)
        ]
        for start in range(0, len(many), 50):  # a slow server has a time limit for each command
            await storage.approvals.insert(*many[start : start + 50])
        for number in (2, 3, 50, 150):  # of a newer release, and damaged
            harm = {"v": 2} if number % 2 else {"position": "x"}
            await spoil(storage, "approvals", f"apr_{number:032x}", **harm)

    async with a_stage(tmp_path, "socket", COUNTERSIGN_APPROVERS=ADA, **environ) as stage:
        await with_many(stage, fill)

        await stage.home(ADA, say("home.waiting", n=OF_ADA + 1))
        assert f"Deploy {OF_BEN + 1}" in str(await stage.home(BEN, say("home.mine")))
