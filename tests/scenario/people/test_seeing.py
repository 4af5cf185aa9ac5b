"""Who may see a request: people who can read its channel now, or who are asked by name now."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bot.layout.action_ids import ActionId
from bot.layout.short_ids import short_id
from bot.records.approval_queries import open_of
from bot.words import say
from slack_sandbox.workspace.people import ADA, BEN, FINANCE, MIA, ONCALL, OPS, ROSA
from tests.scenario.people.payers import RAN, asked
from tests.support.stage import APPROVE, EDIT, Stage

GROUPS = {"team": f"usergroups: [{ONCALL}]", "boss": f"users: [{MIA}]"}


@asynccontextmanager
async def in_private(tmp_path: Path, ask: str) -> AsyncIterator[Stage]:
    """A bot that works in a private channel of Ada and Mia."""
    async with asked(tmp_path, ask, GROUPS, words="") as stage:
        stage.room = "finance"
        stage.sandbox.workspace.channels[FINANCE].is_private = True
        yield stage


async def typed(stage: Stage, user: str, words: str) -> str:
    """Type a word of the command elsewhere, and give what is answered in private."""
    doing = stage.sandbox.command(user, OPS, "/countersign", words)
    return str(await stage.answered(user, doing))


def direct(stage: Stage, user: str) -> list[dict[str, Any]]:
    """The bot's direct messages to somebody."""
    return stage.sandbox.messages(stage.sandbox.dm_id(user))


async def open_id(stage: Stage) -> str:
    (approval,) = await open_of(stage.storage.approvals, stage.thread_id())
    return approval.approval_id


async def test_a_former_member_sees_the_id_of_their_own_request_and_can_withdraw(
    tmp_path: Path,
) -> None:
    async with in_private(tmp_path, "approve: [{from: [boss]}], exclude: [editors]") as stage:
        root = await stage.say("Ada", "@countersign hello")
        await stage.click("Mia", await stage.card(word="Pay 10 to acme"), APPROVE)
        await stage.said("All done")
        stage.sandbox.leave(ADA, FINANCE)
        await stage.say("Mia", "@countersign and now ACQUISITION-OF-ACME", thread_ts=root)
        await stage.card(number=2, word=APPROVE)
        name = short_id(await open_id(stage))

        shown = await stage.home(ADA, name)
        assert ActionId.WITHDRAW in str(shown)
        lists = [await typed(stage, ADA, words) for words in ("mine", f"show {name}", "decided")]
        assert name in lists[0]
        assert name in lists[1]
        stop = await typed(stage, ADA, "stop")
        for text in (str(shown), *lists, stop):
            assert "Pay 10" not in text
            assert "ACQUISITION" not in text
            assert ActionId.DETAILS not in text

        await stage.sandbox.click_in_view(ADA, shown, ActionId.WITHDRAW)
        assert "Pay 10" not in str(await stage.modal("Ada"))
        assert "errors" not in await stage.fill("Ada")
        await stage.card(number=2, word="ithdrawn")
    assert RAN == [("acme", 10)]


async def test_a_stranger_to_a_private_channel_sees_nothing_of_its_requests(
    tmp_path: Path,
) -> None:
    async with in_private(tmp_path, "approve: [{from: [boss]}]") as stage:
        await stage.say("Ada", "@countersign pay")
        await stage.card(word="Pay 10 to acme")
        name = short_id(await open_id(stage))
        for user in (ROSA, BEN):
            assert "to acme" not in await typed(stage, user, f"show {name}")
        assert "to acme" in await typed(stage, ADA, f"show {name}")
        assert "to acme" in await typed(stage, MIA, f"show {name}")


async def test_a_copy_of_somebody_who_lost_the_right_says_only_that_it_is_over(
    tmp_path: Path,
) -> None:
    ask = "approve: [{from: [team]}], edit: true, route: dm"
    async with in_private(tmp_path, ask) as stage:
        await stage.say("Mia", "@countersign pay")
        await stage.until(lambda: APPROVE in str(direct(stage, BEN)))
        (copy,) = [message for message in direct(stage, ADA) if APPROVE in str(message)]
        (lost,) = [message for message in direct(stage, BEN) if APPROVE in str(message)]
        stage.sandbox.leave_group(BEN, ONCALL)

        await stage.choose(BEN, lost, ActionId.DETAILS)
        await stage.until(
            lambda: (
                say("refuse.withheld") in str(stage.sandbox.open_views(BEN))
                or say("refuse.withheld") in str(stage.sandbox.ephemerals(BEN))
            )
        )
        assert "to acme" not in str(stage.sandbox.open_views(BEN))

        await stage.click(ADA, copy, EDIT)
        assert "errors" not in await stage.fill(ADA, to="NEWSECRETPAYEE")
        await stage.until(lambda: "NEWSECRETPAYEE" in str(direct(stage, ADA)))
        await stage.until(lambda: say("line.withheld") in str(direct(stage, BEN)))
        assert "NEWSECRETPAYEE" not in str(direct(stage, BEN))
        assert "to acme" not in str(direct(stage, BEN))
        assert APPROVE not in str(direct(stage, BEN))


async def test_everybody_of_the_workspace_sees_what_is_asked_in_a_public_channel(
    tmp_path: Path,
) -> None:
    async with in_private(tmp_path, "approve: [{from: [boss]}]") as stage:
        stage.sandbox.workspace.channels[FINANCE].is_private = False
        await stage.say("Ada", "@countersign pay")
        await stage.card(word="Pay 10 to acme")
        stage.sandbox.leave(ADA, FINANCE)
        shown = await stage.home(ADA, "Pay 10 to acme")
        await stage.sandbox.click_in_view(ADA, shown, ActionId.DETAILS)
        assert "to acme" in str(await stage.modal("Ada"))
