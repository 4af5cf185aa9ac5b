"""Home's first list has everything that its reader can answer now, also for their own agent."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.layout.action_ids import ActionId
from bot.words import say
from slack_sandbox.workspace.people import ADA, BEN, FINANCE, ROSA
from tests.support.stage import a_stage


@pytest.mark.parametrize("room", ["ops", "direct"])
async def test_a_question_of_my_own_agent_waits_for_me(tmp_path: Path, room: str) -> None:
    agent = "tests.scenario.asking:plain"
    async with a_stage(tmp_path, "socket", COUNTERSIGN_AGENT=agent) as stage:
        where = stage.channel if room == "ops" else stage.sandbox.dm_id(ROSA)
        await stage.sandbox.say(ROSA, where, "@countersign hello")
        await stage.until(lambda: ActionId.ANSWER in str(stage.sandbox.messages(where)), within=20)
        for user, waits in ((ROSA, True), (ADA, room == "ops"), (BEN, room == "ops")):
            home = await stage.home(user)
            head = home["blocks"][0]["text"]["text"]
            assert (head == say("home.waiting", n=1)) is waits
            assert str(home).count("'What is your name?") == (1 if waits else 0)


async def test_i13_who_left_a_private_channel_answers_no_question_of_their_agent_there(
    tmp_path: Path,
) -> None:
    agent = "tests.scenario.asking:plain"
    async with a_stage(tmp_path, "socket", COUNTERSIGN_AGENT=agent) as stage:
        stage.room = "finance"
        stage.sandbox.workspace.channels[FINANCE].is_private = True
        await stage.say("Ada", "@countersign hello")
        await stage.until(lambda: ActionId.ANSWER in str(stage.messages()))
        home = await stage.home(ADA, ActionId.ANSWER)
        await stage.sandbox.click_in_view(ADA, home, ActionId.ANSWER)
        form = await stage.modal("Ada")
        stage.sandbox.leave(ADA, FINANCE)
        await stage.sandbox.idle()
        stage.clock.forward(minutes=2)

        await stage.sandbox.submit(ADA, form, {"answer_0": "Mia"})
        assert say("refuse.not_member_here") in str(await stage.modal("Ada"))
        stage.sandbox.open_home(ADA)
        await stage.until(lambda: say("home.waiting", n=1) not in str(stage.sandbox.home(ADA)))
        assert "What is your name?" not in str(stage.sandbox.home(ADA))
        assert ActionId.ANSWER in str(stage.messages())
