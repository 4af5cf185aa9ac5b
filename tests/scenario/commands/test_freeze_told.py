"""A freeze by a command in Slack: its alert, its cards, and its lifting by a form (11.23)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bot.layout.action_ids import ActionId
from slack_sandbox.workspace.people import ADA, OPS
from tests.scenario import agents
from tests.scenario.commands.test_freeze_held import asked, type_in
from tests.scenario.people.test_commands import listed
from tests.support.stage import APPROVE, Stage, a_stage, write_policy

AGENT = "tests.scenario.agents:ordering"
POLICY = f"""version: 1
groups: {{us: {{users: [{ADA}]}}}}
defaults: {{approve: [{{from: [us]}}]}}
freeze: {{alert: {OPS}}}
rules: []
default: {{ask: {{}}}}
"""


def alerts(stage: Stage) -> list[dict[str, Any]]:
    return [
        message
        for message in stage.messages()
        if (message.get("metadata") or {}).get("event_type") == "countersign_freeze"
    ]


async def lifted_by_form(stage: Stage) -> None:
    view = await stage.modal("Mia")
    values = {"why": {str(ActionId.VALUE): {"type": "plain_text_input", "value": "It is open."}}}
    await stage.sandbox.submit(stage.user("Mia"), view, values)


async def test_a_freeze_is_told_until_a_form_lifts_it(tmp_path: Path) -> None:
    async with a_stage(tmp_path, "http", COUNTERSIGN_AGENT=AGENT) as stage:
        card = await asked(stage)
        answer = await listed(stage, "Mia", "freeze The *shop* is closed.")
        assert answer["text"].endswith("No approved call is still running.")
        await stage.card(word="nothing starts. You can still decide.")
        await stage.until(lambda: bool(alerts(stage)))
        (alert,) = alerts(stage)
        assert "The *shop* is closed." in str(alert["blocks"])
        await stage.click("Ada", card, APPROVE)
        await stage.card(word="frozen, nothing starts")
        await stage.rest()

        await stage.click("Ada", alert, ActionId.LIFT)  # is no admin
        await stage.whispered("Ada", "Only admins of this workspace can do that.")
        await stage.click("Mia", alert, ActionId.LIFT)
        assert "Calls of 1 thread wait." in str(await stage.modal("Mia"))
        await lifted_by_form(stage)
        await stage.until(lambda: "lifted the freeze of everything" in str(alerts(stage)))
        await stage.tick()
        await stage.until(lambda: bool(agents.RAN))
        await stage.rest()
        assert (len(agents.RAN), len(alerts(stage))) == (1, 1)
        assert ActionId.LIFT not in str(alerts(stage))


async def test_a_freeze_of_the_command_line_is_told_in_the_policys_channel(
    tmp_path: Path,
) -> None:
    path = write_policy(tmp_path, POLICY)
    environ = {"COUNTERSIGN_POLICY": path, "COUNTERSIGN_AGENT": AGENT}
    async with a_stage(tmp_path, "socket", **environ) as stage:
        await type_in(tmp_path / "data", "freeze", "The shop is closed.")
        for _ in range(2):
            await stage.tick()
            await stage.rest()
        await stage.restart_bot()
        await stage.tick()
        await stage.rest()
        (alert,) = alerts(stage)
        assert "The shop is closed." in str(alert["blocks"])
        await stage.command("Mia", "unfreeze")
        await lifted_by_form(stage)
        await stage.until(lambda: "lifted the freeze of everything" in str(alerts(stage)))
        assert len(alerts(stage)) == 1
