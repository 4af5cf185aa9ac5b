"""Signs at the roots of threads, as Slack is asked for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from bot.approvals.due.thread_reactions import STARTS, WAITS
from bot.errors import DeliveryError
from bot.layout.blocks import Card
from bot.records.approval import Approval, Decision, Status
from bot.slack.calls import Putting
from bot.slack.destinations import Spot
from bot.slack.messages.reactions import SlackReactions
from tests.unit.bot.slack.cards.samples import an_approval


@dataclass
class SlackOfSigns:
    """Takes calls, or refuses them."""

    fault: DeliveryError | None = None
    calls: list[tuple[str, str]] = field(default_factory=list)
    lines: dict[str, Card] = field(default_factory=dict)
    found: str = ""

    async def try_call(
        self, method: str, channel_id: str, arguments: Mapping[str, Any]
    ) -> dict[str, Any]:
        assert arguments["channel"] == channel_id
        assert arguments["timestamp"]
        self.calls.append((method, arguments["name"]))
        if self.fault is not None:
            raise self.fault
        return {"ok": True}

    async def put(self, putting: Putting, card: Card) -> str:
        assert not putting.thread_ts
        ts = putting.ts or f"1.{len(self.lines)}"
        self.lines[ts] = card
        return ts

    async def link(self, approval: Approval) -> str:
        return "https://acme.example/p1"

    async def find_message(self, place: Spot, event: str, record_id: str) -> str:
        return self.found


def refusal(reason: str) -> DeliveryError:
    return DeliveryError("reactions.add", reason, took_no_effect=True)


NO_SCOPE = refusal("missing_scope")


async def test_a_reaction_shows_that_it_waits_and_another_how_it_ended() -> None:
    slack = SlackOfSigns()
    signs = SlackReactions(slack)
    await signs.put(an_approval(), WAITS)
    await signs.put(an_approval(), STARTS, was=WAITS)
    await signs.remove(an_approval(), WAITS)
    await signs.put(an_approval(), "running", was=STARTS)  # looks the same
    await signs.put(an_approval(), "ran", was="running")
    await signs.put(an_approval(), "failed", was="ran")
    await signs.remove(an_approval(), "nobody", keep="failed")  # the same, again
    assert slack.calls == [
        ("reactions.add", "hourglass_flowing_sand"),
        ("reactions.add", "gear"),
        ("reactions.remove", "hourglass_flowing_sand"),
        ("reactions.add", "white_check_mark"),
        ("reactions.remove", "gear"),
        ("reactions.add", "warning"),
        ("reactions.remove", "white_check_mark"),
    ]
    assert not slack.lines


@pytest.mark.parametrize(
    "reason", ["already_reacted", "message_not_found", "is_archived", "unknown_method"]
)
async def test_what_slack_never_takes_is_left(reason: str) -> None:
    slack = SlackOfSigns(refusal(reason))
    await SlackReactions(slack).put(an_approval(), WAITS)
    assert not slack.lines


@pytest.mark.parametrize(
    "error",
    [
        DeliveryError("reactions.add", "ratelimited", retry_after=timedelta(seconds=1)),
        DeliveryError("reactions.add", "no answer in time"),
        refusal("token_revoked"),
    ],
)
async def test_what_may_pass_is_an_error(error: DeliveryError) -> None:
    with pytest.raises(DeliveryError):
        await SlackReactions(SlackOfSigns(error)).put(an_approval(), WAITS)


async def test_without_the_scope_one_line_in_the_channel_is_edited_at_the_end() -> None:
    slack = SlackOfSigns(NO_SCOPE)
    signs = SlackReactions(slack)
    await signs.put(an_approval(approvers=("U0ADA",)), WAITS)
    assert "needs approval" in slack.lines["1.0"].text
    assert "'url': 'https://acme.example/p1'" in str(slack.lines["1.0"].blocks)
    await signs.put(rejected(), "rejected", was=WAITS, look_first=True)
    assert "Rejected by <@U0ADA>" in slack.lines["1.0"].text
    assert len(slack.lines) == len(slack.calls) == 1  # it is not asked for again


async def test_a_line_of_another_process_is_found_and_edited() -> None:
    slack = SlackOfSigns(NO_SCOPE, found="1.7")
    await SlackReactions(slack).put(rejected(), "rejected", was=WAITS, look_first=True)
    assert list(slack.lines) == ["1.7"]


async def test_nobody_is_told_of_an_end_who_was_not_told_that_it_waits() -> None:
    slack = SlackOfSigns(NO_SCOPE)
    await SlackReactions(slack).put(rejected(), "rejected", was=WAITS, look_first=True)
    assert not slack.lines


@pytest.mark.parametrize("changes", [{"thread_id": "T1:D0ROSA:1.1"}, {"elsewhere": "C0OTHER"}])
async def test_no_line_stands_where_a_card_does(changes: dict[str, Any]) -> None:
    slack = SlackOfSigns(NO_SCOPE)
    await SlackReactions(slack).put(an_approval(**changes), WAITS)
    assert not slack.lines


def rejected() -> Approval:
    decision = Decision(status=Status.REJECTED, by="U0ADA", at_ms=1_000)
    return an_approval(approvers=("U0ADA",)).changed(status=Status.REJECTED, decision=decision)
