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
from tests.scenario.test_main_job import APPROVE, EDIT, REJECT, values_of
from tests.support.decided import decide
from tests.support.stage import PATIENCE_S, Stage, a_stage, buttons
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
    view = await stage.modal(user)
    return await stage.sandbox.submit(stage.user(user), view, values_of(view, amount=amount))


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
    assert stage.bot is not None
    storage = stage.bot.storage
    approval = await storage.approvals.get(approval_id(stage.cards()[0]))
    entries = await storage.audit.of_thread(approval.thread_id, limit=100)
    return [(entry.action, entry.actor_id) for entry in entries]


async def test_f1_edit_into_another_rule_asks_its_people_on_the_same_card(opened: Open) -> None:
    async with opened("small") as stage:
        card = await asked(stage)
        assert "errors" not in await edit(stage, "Ada", card, "50000")
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


async def test_f1_edit_into_another_rule_survives_a_restart(opened: Open) -> None:
    async with opened("small") as stage:
        await edit(stage, "Ada", await asked(stage), "500")
        await changed(stage, "Pay 500 EUR")
        await stage.stop_bot()
        await stage.start_bot()
        await stage.click("Mia", await changed(stage, "Pay 500 EUR"), APPROVE)
        await stage.said("All done")
        assert RAN == [500]


async def test_f1_edit_into_another_rule_can_be_rejected(opened: Open) -> None:
    async with opened("small") as stage:
        await edit(stage, "Ada", await asked(stage), "500")
        await stage.click("Mia", await changed(stage, "Pay 500 EUR"), REJECT)
        view = await stage.modal("Mia")
        await stage.sandbox.submit(
            stage.user("Mia"), view, values_of(view, **{"in your own words": "no"})
        )
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


@pytest.mark.parametrize("amount", ["7", "1"])
async def test_edit_within_the_rule_or_into_what_is_allowed_runs(opened: Open, amount: str) -> None:
    async with opened("small") as stage:
        await edit(stage, "Ada", await asked(stage), amount)
        await stage.said("All done")
        assert [int(amount)] == RAN
        noted = [action for action, _ in await acts(stage)]
        is_allowed = amount == "1"  # nobody had to approve it: the rule is on record, once
        assert (noted.count("allowed"), noted.count("decided")) == (is_allowed, not is_allowed)


async def test_editors_can_be_excluded(opened: Open) -> None:
    async with opened("small", COUNTERSIGN_EXCLUDE_EDITORS="yes") as stage:
        await edit(stage, "Ada", await asked(stage), "7")
        card = await changed(stage, "Pay 7 EUR")
        await stage.click("Ada", card, APPROVE)
        await stage.whispered("Ada", "You edited this")
        assert RAN == []
        await stage.click("Ben", card, APPROVE)
        await stage.said("All done")
        assert RAN == [7]


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
async def test_f7_an_old_yes_to_a_step_starts_nothing_and_people_are_asked_anew(
    opened: Open, agent: str
) -> None:
    async with opened(agent) as stage:
        card = await asked(stage)
        await decided_while_stopped(stage, card, "Ada", later_ms=30 * DAY_MS)
        again = await stage.card(number=2, word=APPROVE)
        assert "didn't start within 15m" in str(again)
        assert RAN == []
        await stage.click("Ada", again, APPROVE)
        await stage.said("All done")
        assert RAN == [5]


@pytest.mark.parametrize("agent", ["node", "before", "stage"])
async def test_f7_a_yes_to_a_step_of_who_may_not_decide_any_more_starts_nothing(
    opened: Open, agent: str
) -> None:
    async with opened(agent, COUNTERSIGN_APPROVERS="channel") as stage:
        card = await asked(stage)
        stage.sandbox.deactivate(stage.user("Ada"))
        await decided_while_stopped(stage, card, "Ada", later_ms=61 * 1000)
        again = await stage.card(number=2, word=APPROVE)
        assert RAN == []
        await stage.click("Ben", again, APPROVE)
        await stage.said("All done")
        assert RAN == [5]


# ---- a policy file ------------------------------------------------------------------------------


async def test_a_denied_call_does_not_run_and_needs_no_card(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "version: 1\n"
        "rules:\n"
        "  - name: quiet\n"
        "    when: {tool: get_status}\n"
        "    then: {deny: Nobody looks today.}\n"
        "default: {deny: Nothing else either.}\n"
    )
    async with a_stage(tmp_path, "socket", COUNTERSIGN_POLICY=str(policy)) as stage:
        await stage.say("Rosa", "@countersign status of payments")
        said = await stage.said("Nobody looks today")
        assert said
        assert stage.cards() == []


@pytest.mark.parametrize("agent", ["of_two", "of_shared"])
@pytest.mark.parametrize("policy", ["settings", "file"])
async def test_two_policies_in_code_each_get_their_own_person(
    opened: Open, tmp_path: Path, agent: str, policy: str
) -> None:
    settings = {}
    if policy == "file":
        file = tmp_path / "policy.yaml"
        file.write_text(
            "version: 1\ngroups: {leads: {users: [U0BENOKAFO]}}\n"
            "defaults: {approve: [{from: [leads]}]}\nrules: []\ndefault: allow\n"
        )
        settings = {"COUNTERSIGN_POLICY": str(file)}
    async with opened(agent, **settings) as stage:
        await stage.click("Mia", await asked(stage), APPROVE)
        card = await changed(stage, "1 of 2")
        assert RAN == []
        await stage.click("Ada", card, APPROVE)
        await stage.said("All done")
        assert RAN == [5]
