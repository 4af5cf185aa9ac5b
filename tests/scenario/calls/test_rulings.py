"""Who decides after an edit, in two gates, and when a decision is old (F1, F6, F7)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from bot.approvals.votes import Votes
from bot.records.approval import Approval, Decision, Status
from storage.errors import StoreUnavailableError
from tests.scenario.calls.ruling_agents import RAN
from tests.support.decided import decide
from tests.support.stage import (
    APPROVE,
    EDIT,
    PATIENCE_S,
    REJECT,
    Stage,
    a_stage,
    buttons,
    values_of,
    write_policy,
)
from tests.support.stores import SqliteStores

DAY_MS = 24 * 3600 * 1000
Open = Callable[..., AbstractAsyncContextManager[Stage]]


@pytest.fixture
def opened(tmp_path: Path) -> Open:
    """Starts a bot with one of the agents; Ada and Ben decide, and Mia where a rule names her."""

    def open_one(agent: str, **settings: str) -> AbstractAsyncContextManager[Stage]:
        RAN.clear()
        path = f"tests.scenario.calls.ruling_agents:{agent}"
        if "COUNTERSIGN_POLICY" not in settings:
            settings = {"COUNTERSIGN_APPROVERS": "U0ADALINDQ,U0BENOKAFO", **settings}
        return a_stage(tmp_path, "socket", COUNTERSIGN_AGENT=path, **settings)

    return open_one


async def asked(stage: Stage) -> dict[str, Any]:
    await stage.say("Rosa", "@countersign pay")
    return await stage.card(word=APPROVE)


async def edit(stage: Stage, user: str, card: dict[str, Any], amount: str) -> dict[str, Any]:
    await stage.click(user, card, EDIT)
    return await stage.fill(user, amount=amount)


async def changed(stage: Stage, word: str, *, number: int = 1) -> dict[str, Any]:
    """Wait for a card with a word, and live buttons."""
    card = await stage.card(number=number, word=word)
    assert APPROVE in buttons(card)
    return card


def approval_id(card: dict[str, Any]) -> str:
    payload = card["metadata"]["event_payload"]
    (name,) = [value for value in payload.values() if str(value).startswith("apr_")]
    return str(name)


async def decided_while_stopped(
    stage: Stage, card: dict[str, Any], user: str, *, later_ms: int
) -> None:
    """The process dies right after a decision was recorded, and is started again much later."""
    await stage.stop_bot()
    storage = SqliteStores(Path(stage.environ["COUNTERSIGN_DATA_DIR"]))
    await storage.open()
    approval = await storage.approvals.get(approval_id(card))
    decision = Decision(
        status=Status.APPROVED,
        by=stage.user(user),
        at_ms=stage.clock.now_ms,
        digest=approval.digest,
    )
    await decide(storage.approvals, approval.approval_id, decision, digest=approval.digest)
    await storage.close()
    stage.clock.now_ms += later_ms
    await stage.start_bot()


async def acts(stage: Stage) -> list[tuple[str, str]]:
    entries = await stage.storage.audit.of_thread(stage.thread_id(), limit=100)
    return [(entry.action, entry.actor_id) for entry in entries]


async def test_f1_edit_into_another_rule_asks_its_people_on_the_same_card(opened: Open) -> None:
    async with opened("small") as stage:
        card = await asked(stage)
        assert "errors" not in await edit(stage, "Ada", card, "50000")
        await changed(stage, "Pay 50000 EUR")
        await stage.restart_bot()
        card = await changed(stage, "Pay 50000 EUR")
        assert len(stage.cards()) == 1
        assert EDIT not in buttons(card)
        await stage.click("Ada", card, APPROVE)
        await stage.whispered("Ada", "not an approver for this")
        assert RAN == []
        # Mia is told at once.
        await stage.said(stage.user("Mia"))
        await stage.click("Mia", card, APPROVE)
        await stage.said("All done")
        assert RAN == [50000]
        assert ("edited", stage.user("Ada")) in await acts(stage)
        final = await stage.card(word="pproved")
        assert buttons(final) == []


async def test_f1_edit_into_another_rule_can_be_rejected(opened: Open) -> None:
    async with opened("small") as stage:
        await edit(stage, "Ada", await asked(stage), "500")
        await stage.click("Mia", await changed(stage, "Pay 500 EUR"), REJECT)
        await stage.fill("Mia", in_your_own_words="no")
        await stage.said("All done")
        assert RAN == []


async def test_f1_what_the_rules_deny_is_refused_at_the_form(opened: Open) -> None:
    async with opened("small") as stage:
        card = await asked(stage)
        outcome = await edit(stage, "Ada", card, "200000")
        assert "nobody pays that much" in str(outcome["errors"])
        await stage.click("Ada", card, APPROVE)
        await stage.said("All done")
        assert RAN == [5]


async def test_edit_into_what_is_allowed_runs(opened: Open) -> None:
    async with opened("small") as stage:
        await edit(stage, "Ada", await asked(stage), "1")
        await stage.said("All done")
        assert RAN == [1]
        noted = [action for action, _ in await acts(stage)]
        # Nobody had to approve it: the rule is on record, once.
        assert (noted.count("allowed"), noted.count("decided")) == (1, 0)


async def test_f1_gate_inside_of_a_policy_asks_the_people_of_the_policy(opened: Open) -> None:
    async with opened("around_review") as stage:
        await edit(stage, "Ada", await asked(stage), "500")
        card = await changed(stage, "Pay 500 EUR", number=2)
        assert RAN == []
        await stage.click("Ada", card, APPROVE)
        await stage.whispered(
            "Ada", "You.ve been counted|You.ve already|You.ve approved|not an approver|own request"
        )
        await stage.click("Mia", card, APPROVE)
        await stage.said("All done")
        assert RAN == [500]


async def test_old_card_decides_nothing_after_an_edit(opened: Open) -> None:
    async with opened("small") as stage:
        before = await asked(stage)
        await stage.click("Ben", before, EDIT)
        late = await stage.modal("Ben")
        await edit(stage, "Ada", before, "500")
        await changed(stage, "Pay 500 EUR")
        outcome = await stage.sandbox.submit(stage.user("Ben"), late, values_of(late, amount="6"))
        assert "changed after you opened it" in str(outcome)
        assert RAN == []


async def test_f6_two_gates_need_two_people(opened: Open) -> None:
    async with opened("nested") as stage:
        await stage.click("Ada", await asked(stage), APPROVE)
        inner = await changed(stage, "Pay 5 EUR", number=2)
        await stage.click("Ada", inner, APPROVE)
        await stage.whispered("Ada", "Each person counts once")
        assert RAN == []
        await stage.click("Ben", inner, APPROVE)
        await stage.said("All done")
        assert RAN == [5]


async def test_f7_old_decision_starts_nothing_and_people_are_asked_anew(opened: Open) -> None:
    async with opened("big") as stage:
        card = await asked(stage)
        await decided_while_stopped(stage, card, "Mia", later_ms=30 * DAY_MS)
        again = await changed(stage, "Pay 500 EUR", number=2)
        assert "didn't start within 15m" in str(again)
        assert RAN == []
        await stage.card(word="Asked again")
        assert "lapsed" in [action for action, _ in await acts(stage)]
        await stage.click("Mia", again, APPROVE)
        await stage.said("All done")
        assert RAN == [500]


async def test_f7_decision_in_time_starts_after_a_restart(opened: Open) -> None:
    async with opened("big") as stage:
        card = await asked(stage)
        await decided_while_stopped(stage, card, "Mia", later_ms=14 * 60 * 1000)
        await stage.said("All done")
        assert RAN == [500]


async def test_f7_who_may_not_decide_any_more_starts_nothing(opened: Open) -> None:
    async with opened("big") as stage:
        card = await asked(stage)
        stage.sandbox.deactivate(stage.user("Mia"))
        await decided_while_stopped(stage, card, "Mia", later_ms=61 * 1000)
        # Nobody is left who could be asked anew, and the card of the decision says why it lapsed.
        await stage.card(number=1, word="can no longer approve it")
        await stage.said("No one can decide this")
        assert RAN == []


async def test_i4_a_fault_of_the_database_right_before_a_start_keeps_the_decision(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_failed = asyncio.Event()
    look = Votes.gone_since

    async def fails_once(votes: Votes, approval: Approval) -> bool:
        if not has_failed.is_set():
            has_failed.set()
            raise StoreUnavailableError("connection reset")
        return await look(votes, approval)

    monkeypatch.setattr(Votes, "gone_since", fails_once)
    async with opened("big") as stage:
        card = await asked(stage)
        await decided_while_stopped(stage, card, "Mia", later_ms=61 * 1000)
        await asyncio.wait_for(has_failed.wait(), PATIENCE_S)
        await stage.rest()
        assert RAN == []
        await stage.later(minutes=1)
        await stage.said("All done")
        assert RAN == [500]
        assert len(stage.cards()) == 1


@pytest.mark.parametrize("agent", ["node", "before", "stage"])
@pytest.mark.parametrize("is_old", [True, False], ids=["old", "of somebody who left"])
async def test_f7_a_yes_to_a_step_that_holds_no_more_starts_nothing_and_people_are_asked_anew(
    opened: Open, agent: str, *, is_old: bool
) -> None:
    async with opened(agent, COUNTERSIGN_APPROVERS="channel") as stage:
        card = await asked(stage)
        if not is_old:
            stage.sandbox.deactivate(stage.user("Ada"))
        later_ms = 30 * DAY_MS if is_old else 61 * 1000
        await decided_while_stopped(stage, card, "Ada", later_ms=later_ms)
        again = await stage.card(number=2, word=APPROVE)
        assert ("didn't start within 15m" in str(again)) == is_old
        assert RAN == []
        await stage.click("Ben", again, APPROVE)
        await stage.said("All done")
        assert RAN == [5]


# ---- a policy file ------------------------------------------------------------------------------


@pytest.mark.parametrize("agent", ["of_two", "of_shared"])
@pytest.mark.parametrize("policy", ["settings", "file"])
async def test_two_policies_in_code_each_get_their_own_person(
    opened: Open, tmp_path: Path, agent: str, policy: str
) -> None:
    settings = {}
    if policy == "file":
        text = (
            "version: 1\ngroups: {leads: {users: [U0BENOKAFO]}}\n"
            "defaults: {approve: [{from: [leads]}]}\nrules: []\ndefault: allow\n"
        )
        settings = {"COUNTERSIGN_POLICY": write_policy(tmp_path, text)}
    async with opened(agent, **settings) as stage:
        await stage.click("Mia", await asked(stage), APPROVE)
        card = await changed(stage, "1 of 2")
        assert RAN == []
        await stage.click("Ada", card, APPROVE)
        await stage.said("All done")
        assert RAN == [5]
