"""What people do with messages: edits, deletions, files, stop, and the shortcut of a message."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bot.layout.action_ids import ActionId
from bot.slack.home.settings import TEST_YES
from bot.slack.home.view import AWAY, TEST
from bot.words import say
from slack_sandbox.workspace.people import BOT_USER, ROSA
from tests.scenario.people.payers import RAN, asked
from tests.support.stage import Stage, a_stage

PAY = "pay acme"
ASK_ABOUT = "countersign:ask_about"


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    RAN.clear()
    agent = "tests.scenario.people.payers:once"
    async with a_stage(tmp_path, "http", COUNTERSIGN_AGENT=agent) as opened:
        yield opened


async def whispers(stage: Stage, user: str, *texts: str) -> None:
    """Wait until a person has been told these privately."""
    await stage.until(
        lambda: (
            set(texts)
            <= {message["text"] for message in stage.sandbox.ephemerals(stage.user(user))}
        )
    )


async def shown(stage: Stage, words: str, *, hides: str = "") -> None:
    """Wait until the card shows these words, and not others."""
    await stage.until(
        lambda: words in str(stage.cards()[0]) and not (hides and hides in str(stage.cards()[0]))
    )


def event(stage: Stage, **changes: Any) -> None:
    """Send an event about a message of the channel."""
    base = {"type": "message", "channel": stage.channel, "channel_type": "channel"}
    stage.sandbox.emit(base | {"ts": f"{stage.clock() / 1000:.6f}", **changes})


async def test_an_edit_counts_while_the_message_is_unread(stage: Stage) -> None:
    root = await stage.say("Rosa", f"@countersign {PAY}")
    await stage.card(word=ActionId.APPROVE)
    said = await stage.say("Rosa", "pay 11", thread_ts=root)
    await shown(stage, "pay 11")
    await stage.sandbox.edit(ROSA, stage.channel, said, "pay 12")
    await shown(stage, "pay 12", hides="pay 11")
    await stage.sandbox.edit(ROSA, stage.channel, root, f"@countersign {PAY} at once")
    await whispers(stage, "Rosa", say("message.edited_late"))
    before = next(message for message in stage.messages() if message["ts"] == said)
    texts = len(stage.sandbox.ephemerals(ROSA))
    event(
        stage,
        subtype="message_deleted",
        hidden=True,
        deleted_ts=said,
        previous_message={**before, "channel": stage.channel},
    )
    await shown(stage, ActionId.APPROVE, hides="pay 12")
    assert len(stage.sandbox.ephemerals(ROSA)) == texts


async def test_an_edit_that_names_the_agent_speaks_to_it(stage: Stage) -> None:
    ts = await stage.say("Rosa", PAY)
    await stage.sandbox.edit(ROSA, stage.channel, ts, f"@countersign {PAY}")
    await stage.card(word=ActionId.APPROVE)


async def test_files_are_left_out_with_a_word(stage: Stage) -> None:
    for text, key in (("", "refuse.files_alone"), (PAY, "refuse.files")):
        ts = await stage.say("Rosa", "look at this")
        words = f"<@{BOT_USER}> {text}".strip()
        event(stage, subtype="file_share", user=ROSA, ts=ts, text=words, files=[{"id": "F1"}])
        await whispers(stage, "Rosa", say(key))
    await stage.card(word=ActionId.APPROVE)
    assert len(stage.cards()) == 1


async def test_who_may_stop_and_what_is_no_stop(stage: Stage) -> None:
    root = await stage.say("Rosa", f"@countersign {PAY}")
    await stage.card(word=ActionId.APPROVE)
    await stage.say("Rosa", "never mind", thread_ts=root)
    await whispers(stage, "Rosa", say("refuse.to_withdraw"))
    await stage.say("Gus", "@countersign stop", thread_ts=root)
    await whispers(stage, "Gus", say("refuse.stop"))
    await shown(stage, ActionId.APPROVE)
    await stage.say("Ben", "@countersign stop", thread_ts=root)
    await stage.said("topped")
    await stage.rest()
    await stage.say("Ben", "@countersign stop", thread_ts=root)
    await whispers(stage, "Ben", say("message.stop_nothing"))


async def test_an_agent_is_asked_about_a_message(stage: Stage) -> None:
    async def ask(user: str, ts: str, refusal: str = "") -> None:
        person = stage.user(user)
        await stage.sandbox.shortcut(person, ASK_ABOUT, channel=stage.channel, ts=ts)
        if refusal:
            await whispers(stage, user, say(refusal))

    ts = await stage.say("Rosa", PAY)
    await ask("Ada", ts)
    card = await stage.card(word=ActionId.APPROVE)
    await ask("Ben", ts, "refuse.about_busy")
    for user in ("Ada", "Rosa"):  # who asked, and who wrote the message
        await stage.click(user, card, ActionId.APPROVE)
        await stage.whispered(user, "can't approve your own request")
    assert RAN == []
    await stage.click("Ben", card, ActionId.APPROVE)
    await stage.said("All done")
    assert RAN == [("acme", 10)]
    await stage.rest()
    await ask("Ada", await stage.say("Ada", "@countersign"), "refuse.about_nothing")
    stage.sandbox.workspace.channels[stage.channel].members.remove(BOT_USER)
    await ask("Rosa", ts, "refuse.about_elsewhere")
    await ask("Gus", ts)
    await stage.whispered("Gus", "Guests can't")


def direct_messages(stage: Stage, user: str) -> str:
    """What the bot wrote to a person in a direct message."""
    return str(stage.sandbox.messages(stage.sandbox.dm_id(user)))


async def test_i7_a_word_waits_for_its_turn(stage: Stage) -> None:
    root = await stage.say("Rosa", f"@countersign {PAY}")
    await stage.card(word=ActionId.APPROVE)
    stage.sandbox.fail("chat.postEphemeral", error="ratelimited", times=3, retry_after=2)
    await stage.say("Ada", "@countersign help", thread_ts=root)
    help_text = say("command.help")
    await stage.until_retried(
        lambda: (
            help_text
            in [message["text"] for message in stage.sandbox.ephemerals(stage.user("Ada"))]
        )
    )


async def test_i7_an_agent_is_asked_about_a_message_in_a_busy_channel(stage: Stage) -> None:
    ts = await stage.say("Rosa", PAY)
    stage.sandbox.fail("chat.postMessage", error="ratelimited", times=1, retry_after=1)
    await stage.sandbox.shortcut(stage.user("Ada"), ASK_ABOUT, channel=stage.channel, ts=ts)
    await stage.card(word=ActionId.APPROVE)
    await stage.said("asked an agent about this message")


async def test_i7_a_form_that_home_cannot_open_is_told_in_a_direct_message(stage: Stage) -> None:
    ada = stage.user("Ada")
    home = await stage.home(ada)
    stage.sandbox.fail("views.open", error="ratelimited", times=1, retry_after=1)
    await stage.sandbox.click_in_view(ada, home, AWAY)
    await stage.until(lambda: say("error.slack_form") in direct_messages(stage, ada))


async def test_i7_a_test_message_waits_for_its_turn(stage: Stage) -> None:
    ada = stage.user("Ada")
    home = await stage.home(ada)
    stage.sandbox.fail("chat.postMessage", error="ratelimited", times=1, retry_after=1)
    await stage.sandbox.click_in_view(ada, home, TEST)
    await stage.until(lambda: TEST_YES in direct_messages(stage, ada))


async def delete(stage: Stage, ts: str) -> None:
    workspace = stage.sandbox.workspace
    workspace.remove(workspace.message(stage.channel, ts))
    await stage.sandbox.idle()


async def test_who_deletes_the_message_that_asked_is_told_what_still_waits(stage: Stage) -> None:
    root = await stage.say("Rosa", f"@countersign {PAY}")
    await stage.card(word=ActionId.APPROVE)
    await delete(stage, root)
    await whispers(stage, "Rosa", say("message.ask_deleted"))
    message = stage.sandbox.ephemerals(ROSA)[-1]
    assert ActionId.WITHDRAW in str(message)
    assert not message.get("thread_ts")
    await shown(stage, say("line.ask_deleted", who=f"*<@{ROSA}>*"))
    await shown(stage, ActionId.APPROVE)
    assert RAN == []


async def test_who_edits_the_message_that_asked_can_withdraw(stage: Stage) -> None:
    root = await stage.say("Rosa", f"@countersign {PAY}")
    await stage.card(word=ActionId.APPROVE)
    await stage.sandbox.edit(ROSA, stage.channel, root, f"@countersign {PAY} at once")
    await whispers(stage, "Rosa", say("message.edited_late"))
    assert ActionId.WITHDRAW in str(stage.sandbox.ephemerals(ROSA))


async def test_the_card_says_that_its_requester_left(stage: Stage) -> None:
    await stage.asked(f"@countersign {PAY}", word=ActionId.APPROVE)
    scene = stage.sandbox
    left = say("line.left_channel", who=f"*<@{ROSA}>*", channel=f"<#{stage.channel}>")
    gone = say("line.left_workspace", who=f"*<@{ROSA}>*")
    scene.leave(ROSA, stage.channel)
    await shown(stage, left)
    scene.join(ROSA, stage.channel)
    await shown(stage, ActionId.APPROVE, hides=left)
    scene.deactivate(ROSA)
    await shown(stage, gone)
    scene.deactivate(ROSA, gone=False)
    await shown(stage, ActionId.APPROVE, hides=gone)
    assert RAN == []


async def test_a_deleted_message_withdraws_where_the_policy_says_so(tmp_path: Path) -> None:
    ask = "approve: [{from: [team]}], on_delete: withdraw"
    async with asked(tmp_path, ask, words="") as stage:
        root = await stage.say("Rosa", f"@countersign {PAY}")
        await stage.card(word=ActionId.APPROVE)
        await delete(stage, root)
        await whispers(stage, "Rosa", say("message.ask_deleted_withdrawn"))
        card = await stage.card(word="ithdrawn")
        assert say("message.ask_deleted_reason") in str(card)
    assert RAN == []
