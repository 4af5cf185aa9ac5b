"""The summary of a thread: each request in a line, in words and symbols, within Slack's limits."""

from __future__ import annotations

import pytest

from bot.records.approval import Approval, Execution, ExecutionState, Status, StoredEdits
from bot.slack.side_messages.notices import summary_card
from slack_sandbox.blockkit.rules import message_errors
from tests.unit.bot.slack.cards.reading import seen, symbols
from tests.unit.bot.slack.cards.samples import DECIDED, an_approval, decided

HOUR_MS = 3_600_000


def ran(state: ExecutionState = ExecutionState.ENDED, **changes: object) -> Approval:
    done = decided(an_approval(), Status.APPROVED, **changes)
    return done.changed(execution=Execution(state=state, at_ms=DECIDED, text=""))


def after(approval: Approval, lasted_ms: int) -> Approval:
    return approval.changed(
        execution=approval.execution.changed(at_ms=approval.created_ms + lasted_ms)
    )


def test_it_counts_the_ends_and_has_a_line_for_each() -> None:
    expired = an_approval().changed(status=Status.EXPIRED)
    over = [ran(), ran(ExecutionState.FAILED), decided(an_approval(), Status.REJECTED), expired]
    card = summary_card([*over[:3], over[3].changed(title="Refund order 1262")])
    assert card.text == "Summary: 1 ran, 1 failed, 1 rejected, 1 expired."
    text = seen(card)
    assert "4 requests" in str(card.blocks[0])
    assert "Deploy payments 1.4.2 to production, rejected, " in text
    assert text.splitlines()[-1].strip().endswith("Refund order 1262, expired")
    assert symbols(card) == ["white_check_mark", "warning", "no_entry", "alarm_clock"]
    assert message_errors({"text": card.text, "blocks": card.blocks}) == []


@pytest.mark.parametrize(
    ("lasted_ms", "words"),
    [
        (0, "2 minutes, "),
        (42 * 60_000, "42 minutes, "),
        (5 * HOUR_MS, "5 hours, "),
        (72 * HOUR_MS, "3 days, "),
    ],
)
def test_it_says_how_long_it_took(lasted_ms: int, words: str) -> None:
    card = summary_card([ran(), ran(), after(ran(), lasted_ms)])  # the others took 2 minutes
    assert f"*Summary*  ·  {words}3 requests" in str(card.blocks[0])


def edited(**arguments: object) -> Approval:
    """Approved with other arguments."""
    asked = an_approval(arguments={"service": "payments", "version": "1.4.2"})
    made = decided(asked, Status.APPROVED, arguments=arguments, title="Deploy 1.4.3")
    run = Execution(state=ExecutionState.ENDED, at_ms=made.created_ms, text="")
    return made.changed(execution=run)


def test_an_edited_request_says_what_ran_and_what_changed() -> None:
    card = summary_card([edited(service="payments", version="1.4.3")])
    assert seen(card).splitlines()[-1].strip().endswith("(Version 1.4.2 → 1.4.3)")
    assert "Deploy 1.4.3, ran, " in seen(card)


def test_of_many_changes_two_are_said_and_secrets_are_masked() -> None:
    card = summary_card(
        [edited(api_key="sk-zyxwvutsrqponmlkjih", version="1.4.3", service="search")]
    )
    line = seen(card).splitlines()[-1]
    assert "(Service payments → search; Version 1.4.2 → 1.4.3; and 1 more change)" in line
    card = summary_card(
        [edited(api_key="sk-zyxwvutsrqponmlkjih", version="1.4.2", service="payments")]
    )
    assert "zyxw" not in seen(card)
    assert "→ •••• redacted" in seen(card)
    card = summary_card([edited(version="9" * 500, service="payments")])
    assert len(seen(card).splitlines()[-1]) < 400


def test_an_edit_before_the_approval_is_one_too() -> None:
    before = {"service": "payments", "version": "1.4.2"}
    after = {"service": "payments", "version": "1.4.3"}
    made = decided(
        an_approval(arguments=after, edits=StoredEdits(original={**before})), Status.APPROVED
    )
    card = summary_card([made])
    assert symbols(card) == ["pencil2"]
    assert "(Version 1.4.2 → 1.4.3)" in seen(card)
    assert "→" not in seen(summary_card([made.changed(status=Status.REJECTED)]))


def test_of_many_the_newest_are_named_and_the_others_counted() -> None:
    card = summary_card([ran()] * 50)
    assert "And 30 earlier" in seen(card)
    assert len(symbols(card)) == 20
    assert card.text == "Summary: 50 ran."
    assert message_errors({"text": card.text, "blocks": card.blocks}) == []
