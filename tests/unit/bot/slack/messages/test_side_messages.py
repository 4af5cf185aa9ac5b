"""Cards beside the first, and nudges, in a stand-in for Slack: posted once, and found again."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pytest

from bot.errors import DeliveryError
from bot.ports.threads import BatchWords
from bot.records.approval import Approval, ApprovalMessage, Status
from bot.records.terms import Group, Requirement, Stage, Terms
from bot.slack.messages.notices import SlackBatchCards, SlackNotices
from tests.unit.bot.slack.cards.batch_samples import an_item
from tests.unit.bot.slack.messages.test_notifier import REMINDER, Scene, no, reading, scene, yes

__all__ = ["scene"]


def card_for_ben(scene: Scene) -> ApprovalMessage:
    ben = scene.sandbox.user_id("Ben")
    return ApprovalMessage(key=f"card:{ben}", kind="card", user=ben)


async def posted(scene: Scene, approval: Approval, *, look_first: bool = False) -> ApprovalMessage:
    copy, newest = card_for_ben(scene), reading(approval)
    return await scene.notifier.post_card(approval, copy, look_first=look_first, newest=newest)


@pytest.mark.parametrize(
    ("key", "group", "why"),
    [
        ("own:", Group(usergroups=("S0SRE",)), "you're in <!subteam^S0SRE>."),
        ("card:", Group(usergroups=("S0SRE",)), ""),  # nobody has looked it up
        ("own:", Group(usergroups=("S0SRE", "S0OPS")), ""),
        ("own:", Group(usergroups=("S0SRE",), here=True), ""),
        ("card:", Group(users=("U0BENOKAFO",)), "you're listed by name."),
    ],
)
async def test_a_card_by_direct_message_says_why_it_is_here_where_that_is_certain(
    scene: Scene, key: str, group: Group, why: str
) -> None:
    stage = Stage(approve=(Requirement(name="sre", groups=("sre",)),))
    terms = Terms(rules=("big",), groups={"sre": group}, stages=(stage,))
    approval = scene.approval.changed(terms=terms)
    copy = card_for_ben(scene).changed(key=f"{key}UBEN")
    sent = await scene.notifier.post_card(
        approval, copy, look_first=False, newest=reading(approval)
    )
    words = str(scene.sandbox.messages(sent.channel)[0]["blocks"])
    assert "|Open the thread>" in words
    assert f"You can decide because {why}" in words if why else "because" not in words


async def test_the_address_of_a_message_is_asked_for_once(scene: Scene) -> None:
    approval = scene.approval.with_card_ts(await scene.post_card())
    first = await scene.notifier.link(approval)
    scene.sandbox.fail("chat.getPermalink", error="internal_error")
    assert (await scene.notifier.link(approval), bool(first)) == (first, True)


async def test_a_card_whose_answer_was_lost_is_found_in_the_direct_message(scene: Scene) -> None:
    scene.sandbox.fail("chat.postMessage", drop=True)
    with pytest.raises(DeliveryError):
        await posted(scene, scene.approval)
    sent = await posted(scene, scene.approval, look_first=True)
    assert [message["ts"] for message in scene.sandbox.messages(sent.channel)] == [sent.ts]


async def test_a_card_that_is_gone_says_so(scene: Scene) -> None:
    sent = await posted(scene, scene.approval)
    gone = sent.changed(ts="1.000001")
    assert not await scene.notifier.update_card(gone, newest=reading(scene.approval))
    scene.sandbox.fail("chat.update", error="is_archived")
    with pytest.raises(DeliveryError):
        await scene.notifier.update_card(sent, newest=reading(scene.approval))


async def test_a_nudge_stands_below_the_card_and_mentions_people_once(scene: Scene) -> None:
    ada = scene.sandbox.user_id("Ada")
    await scene.post_card()
    message = REMINDER.changed(mentions=(ada,))
    sent = await scene.notifier.nudge(scene.approval, message, look_first=True, may_post=yes)
    assert sent is not None
    shown = scene.sandbox.messages(scene.thread.channel_id)[-1]
    assert (shown["thread_ts"], shown["ts"]) == (scene.thread.thread_ts, sent.ts)
    assert str(shown["blocks"]).count(ada) == 1
    again = await scene.notifier.nudge(scene.approval, message, look_first=True, may_post=no)
    assert again == sent
    later = message.changed(key="reminder:6")
    assert await scene.notifier.nudge(scene.approval, later, look_first=True, may_post=no) is None


async def test_a_nudge_by_direct_message_links_to_the_card_there(scene: Scene) -> None:
    copy = await posted(scene, scene.approval)
    approval = scene.approval.changed(messages=(copy,))
    message = REMINDER.changed(user=copy.user, mentions=(copy.user,))
    sent = await scene.notifier.nudge(approval, message, look_first=False, may_post=yes)
    assert sent is not None
    assert sent.channel == copy.channel
    shown = scene.sandbox.messages(copy.channel)[-1]
    assert copy.channel in str(shown["blocks"])


async def test_a_nudge_is_removed_or_says_that_it_is_over(scene: Scene) -> None:
    sent = await scene.notifier.nudge(scene.approval, REMINDER, look_first=False, may_post=yes)
    other = REMINDER.changed(key="escalation:5", kind="escalation")
    assert sent is not None
    assert await scene.notifier.nudge(scene.approval, other, look_first=False, may_post=yes)
    over = scene.approval.changed(status=Status.CANCELLED)
    await scene.notifier.close(over, other)  # found by its key
    await scene.notifier.remove(over, sent)
    await scene.notifier.remove(over, sent)
    assert [text.startswith("No longer needed: ") for text in scene.texts()] == [True]
    await scene.notifier.remove(over, REMINDER.changed(key="never"))
    await scene.notifier.close(over, REMINDER.changed(key="never"))
    assert len(scene.texts()) == 1


async def test_where_the_cards_are_elsewhere_the_thread_has_a_line(scene: Scene) -> None:
    approval = scene.approval.changed(elsewhere="C0X", messages=(card_for_ben(scene),))
    await scene.post_card(approval)
    line = scene.sandbox.messages(scene.thread.channel_id)[-1]
    assert line["metadata"]["event_type"] == "countersign_line"
    assert "Withdraw…" in str(line["blocks"])
    assert "Approve" not in str(line["blocks"])
    assert scene.sandbox.user_id("Ben") in str(line["blocks"])


async def test_an_alert_that_is_there_keeps_who_has_seen_it(scene: Scene) -> None:
    """A process that cannot know whether it was sent sends it once more."""
    ben = scene.sandbox.user_id("Ben")
    approval = scene.approval.with_card_ts(await scene.post_card())
    notices = SlackNotices(scene.notifier)
    await notices.alert(approval, to=ben)
    place = scene.sandbox.dm_id(ben)
    (alert,) = scene.sandbox.messages(place)
    await notices.show_seen(approval, [ben], channel_id=place, ts=alert["ts"])
    await notices.alert(approval, to=ben)

    (left,) = scene.sandbox.messages(place)
    assert f"Seen by <@{ben}>" in left["text"]


async def no_words(_: Sequence[Approval]) -> BatchWords:
    return BatchWords()


def refunds(scene: Scene) -> list[Approval]:
    return [an_item(scene.approval, number, "9.90") for number in range(3)]


def batch_for_ben(scene: Scene) -> ApprovalMessage:
    ben = scene.sandbox.user_id("Ben")
    return ApprovalMessage(key=f"batch:{ben}", kind="batch", user=ben)


async def test_a_card_of_several_by_direct_message_is_posted_once_and_redrawn(scene: Scene) -> None:
    items = refunds(scene)
    first, cards = items[0], SlackBatchCards(scene.notifier, no_words)

    async def newest() -> Sequence[Approval]:
        return items

    post = partial(cards.post_batch, first, batch_for_ben(scene), items=newest)
    scene.sandbox.fail("chat.postMessage", drop=True)
    with pytest.raises(DeliveryError):
        await post(look_first=False)
    sent = await post(look_first=True)
    (message,) = scene.sandbox.messages(sent.channel)
    assert (message["ts"], sent.channel[0]) == (sent.ts, "D")
    words = str(message["blocks"])
    assert f"> in <#{first.channel_id}>. <http" in words
    assert "Approve all 3" in words
    items[:] = [approval.changed(status=Status.CANCELLED) for approval in items]
    assert await cards.update_batch(sent, items=newest)
    assert "Approve all 3" not in str(scene.sandbox.messages(sent.channel)[0]["blocks"])
    assert not await cards.update_batch(sent.changed(ts="1.000001"), items=newest)
