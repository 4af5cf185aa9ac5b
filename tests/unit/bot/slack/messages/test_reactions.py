"""Signs at the roots of threads, in a stand-in for Slack."""

from __future__ import annotations

from typing import Any

import pytest

from bot.approvals.due.thread_reactions import STARTS, WAITS
from bot.errors import DeliveryError
from bot.records.approval import Approval, Decision, Status
from bot.records.origin import RequestPlace
from bot.slack.messages.reactions import SlackReactions
from tests.support.named import under_lists
from tests.unit.bot.slack.messages.test_notifier import Scene, scene

__all__ = ["scene"]


def on_root(scene: Scene) -> list[str]:
    root = scene.sandbox.messages(scene.thread.channel_id)[0]
    return [reaction["name"] for reaction in root.get("reactions", ())]


async def test_a_reaction_shows_that_it_waits_and_another_how_it_ended(scene: Scene) -> None:
    signs, approval = SlackReactions(scene.notifier), scene.approval
    await signs.put(approval, WAITS)
    assert on_root(scene) == ["hourglass_flowing_sand"]
    await signs.put(approval, STARTS, was=WAITS)
    await signs.remove(approval, WAITS)
    assert on_root(scene) == ["gear"]
    calls = len(scene.methods())
    await signs.put(approval, "running", was=STARTS)  # looks the same
    assert len(scene.methods()) == calls
    await signs.put(approval, "ran", was="running")
    assert on_root(scene) == ["white_check_mark"]
    await signs.put(approval, "failed", was="ran")
    await signs.remove(approval, "nobody", keep="failed")  # the same, again
    assert on_root(scene) == ["warning"]
    assert scene.texts() == []


@pytest.mark.parametrize(
    "reason", ["already_reacted", "message_not_found", "is_archived", "unknown_method"]
)
async def test_what_slack_never_takes_is_left(scene: Scene, reason: str) -> None:
    scene.sandbox.fail("reactions.add", error=reason)
    await SlackReactions(scene.notifier).put(scene.approval, WAITS)
    assert scene.texts() == []


@pytest.mark.parametrize(
    "fault",
    [{"error": "ratelimited", "retry_after": 60}, {"drop": True}, {"error": "token_revoked"}],
)
async def test_what_may_pass_is_an_error(scene: Scene, fault: dict[str, Any]) -> None:
    scene.sandbox.fail("reactions.add", **fault)
    with pytest.raises(DeliveryError):
        await SlackReactions(scene.notifier).put(scene.approval, WAITS)


def for_ada(scene: Scene) -> Approval:
    """A card that not the whole channel sees."""
    return under_lists(scene.approval, approvers=(scene.sandbox.user_id("Ada"),))


def rejected(scene: Scene) -> Approval:
    decision = Decision(status=Status.REJECTED, by=scene.sandbox.user_id("Ada"), at_ms=1_000)
    return for_ada(scene).changed(status=Status.REJECTED, decision=decision)


async def test_without_the_scope_one_line_in_the_channel_is_edited_at_the_end(scene: Scene) -> None:
    scene.sandbox.scopes.discard("reactions:write")
    signs = SlackReactions(scene.notifier)
    approval = for_ada(scene).with_card_ts(await scene.post_card())
    await signs.put(approval, WAITS)
    (_, line) = scene.sandbox.messages(scene.thread.channel_id)[1:]
    assert "thread_ts" not in line
    assert "needs approval" in line["text"]
    assert f"'url': '{await scene.notifier.link(approval)}'" in str(line["blocks"])
    await signs.put(rejected(scene), "rejected", was=WAITS, look_first=True)
    assert "Rejected by <@U0ADA" in scene.texts()[1]
    assert len(scene.texts()) == 2
    assert scene.methods().count("reactions.add") == 1  # it is not asked for again


async def test_a_line_of_another_process_is_found_and_edited(scene: Scene) -> None:
    scene.sandbox.scopes.discard("reactions:write")
    await SlackReactions(scene.notifier).put(for_ada(scene), WAITS)
    await SlackReactions(scene.notifier).put(
        rejected(scene), "rejected", was=WAITS, look_first=True
    )
    (line,) = scene.texts()
    assert "Rejected by" in line


async def test_nobody_is_told_of_an_end_who_was_not_told_that_it_waits(scene: Scene) -> None:
    scene.sandbox.scopes.discard("reactions:write")
    await SlackReactions(scene.notifier).put(
        rejected(scene), "rejected", was=WAITS, look_first=True
    )
    assert scene.texts() == []


@pytest.mark.parametrize(
    "changes",
    [
        {"place": RequestPlace(channel_id="D0ROSA", thread_ts="1.1")},
        {"elsewhere": "C0OTHER"},
    ],
    ids=["a direct message", "cards elsewhere"],
)
async def test_no_line_stands_where_a_card_does(scene: Scene, changes: dict[str, Any]) -> None:
    scene.sandbox.fail("reactions.add", error="missing_scope")
    await SlackReactions(scene.notifier).put(for_ada(scene).changed(**changes), WAITS)
    assert scene.texts() == []
    assert "chat.postMessage" not in scene.methods()
