"""Clicks on a card that needs several people."""

from __future__ import annotations

import json
from typing import Any

from bot.audit.report import story
from bot.layout.action_ids import ActionId
from bot.records.approval import Approval
from tests.support.force import Forced
from tests.support.stores import SqliteStores
from tests.unit.bot.approvals.test_votes import CLEO, LIA, MIA, TWO, asked
from tests.unit.bot.counter_stage import Counter, a_click, a_submission, picked, typed
from tests.unit.bot.office import ADA


def an_edit(approval: Approval, amount: str, by: str) -> dict[str, Any]:
    """The form of the call with another amount."""
    how = {"type": "static_select", "selected_option": {"value": "0"}}
    form = {
        **typed("argument_0", "Mia"),
        "argument_1": {"countersign:value": {"type": "number_input", "value": amount}},
        "argument_2": {"countersign:value": how},
    }
    return a_submission(approval, ActionId.EDIT_MODAL, form, by)


REASONS: dict[str, Any] = {**TWO, "reason": {"approve": "required", "reject": "required"}}


async def a_counter(storage: SqliteStores, ask: dict[str, Any]) -> tuple[Counter, Approval]:
    office = await asked(storage, ask)
    return Counter.on(office), await office.the_approval()


async def test_a_click_leaves_all_the_evidence_of_its_vote(storage: SqliteStores) -> None:
    """A103, by a signed payload of Slack; also where the file changed since it was asked."""
    counter, approval = await a_counter(storage, TWO)
    click = a_click(approval, ActionId.APPROVE, MIA)
    trigger = "5012345678901.1234567890123.0a1b2c3d4e5f60718293a4b5c6d7e8f9"
    office = counter.office
    assert isinstance(office.policy, Forced)
    office.policy.file_hash = "f2"
    office.clock.forward(seconds=7)
    await counter.send({**click, "trigger_id": trigger})
    entries = await story(storage, approval_id=approval.approval_id)
    (entry,) = [record for record in entries if record.action == "voted"]
    assert (entry.actor_id, entry.for_id, entry.at_ms) == (MIA, "", office.clock())
    assert entry.detail == {
        "choice": "approve",
        "payload": trigger,
        "person": {
            "user": MIA,
            "name": office.directory.people[MIA].name,
            "team": "T1",
            "is_bot": False,
            "is_guest": False,
            "is_external": False,
            "is_deleted": False,
        },
        "groups": ["security"],
        "groups_read_ms": office.clock(),
        "shown": approval.digest,
        "digest": approval.digest,
        "ruling": approval.terms.digest,
        "file": "f2",
    }


async def test_a_rejection_without_its_reason_is_refused(storage: SqliteStores) -> None:
    counter, approval = await a_counter(storage, REASONS)
    await counter.send(a_click(approval, ActionId.REJECT, CLEO))
    blocks = [block for block in counter.views.opened[-1]["blocks"] if block["type"] == "input"]
    assert [(block["block_id"], block["optional"]) for block in blocks] == [
        ("canned", False),
        ("reason", False),
    ]
    sent = a_submission(approval, ActionId.REJECT_MODAL, typed("reason", " "), CLEO)
    assert "needs a reason" in str((await counter.send(sent)).body)
    for value in ("later", "fix", "never", "other"):
        values = {**picked("canned", value), **typed("reason", " ")}
        sent = a_submission(approval, ActionId.REJECT_MODAL, values, CLEO)
        answer = json.loads((await counter.send(sent)).body)
        assert "needs a reason" in answer["errors"]["reason"]
    assert (await counter.office.the_approval()).votes == ()


async def test_an_edit_says_what_its_maker_was_shown(storage: SqliteStores) -> None:
    counter, approval = await a_counter(storage, TWO)
    assert (await counter.send(an_edit(approval, "7", ADA))).body == ""
    changed = await counter.office.the_approval()
    entries = await story(storage, approval_id=approval.approval_id)
    (entry,) = [record for record in entries if record.action == "voted"]
    assert changed.digest != approval.digest
    assert (entry.detail["shown"], entry.detail["digest"]) == (approval.digest, changed.digest)
    assert entry.detail["payload"] == "1.2.3"


async def test_values_that_do_not_fit_are_on_record_as_refused(storage: SqliteStores) -> None:
    """E052: the card and its votes stay as they are."""
    counter, approval = await a_counter(storage, TWO)
    answer = await counter.send(an_edit(approval, "many", ADA))
    assert json.loads(answer.body)["response_action"] == "errors"
    counter.office.clock.forward(seconds=1)
    await counter.send(an_edit(approval, "many", LIA))
    entries = await story(storage, approval_id=approval.approval_id)
    refusals = [(entry.action, entry.actor_id, entry.detail["code"]) for entry in entries[1:]]
    assert refusals == [("edit_refused", ADA, "invalid_arguments"), ("refused", LIA, "not_editor")]
    assert await counter.office.the_approval() == approval
