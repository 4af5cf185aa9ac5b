"""An agent of one's own in the demo: its tools can be tried without a language model."""

from __future__ import annotations

from pathlib import Path

from pydantic_ai.models import Model

from agents import Agent, ChatModelAgent, tool
from bot.layout.action_ids import ActionId
from tests.support.stage import a_stage


@tool(title="Rotate the key {name}", gate="approval")
def rotate(name: str, days: int = 30) -> str:
    """Rotate a key.

    Args:
        name: Of the key.
        days: How long it lasts.
    """
    return f"{name} lasts {days} days"


def build(model: Model) -> Agent:
    return ChatModelAgent(name="keys", model=model, instruction="Help.", tools=[rotate])


async def test_a_tool_is_called_as_it_is_typed(tmp_path: Path) -> None:
    path = "tests.scenario.demo.test_own_agent:build"
    async with a_stage(tmp_path, "socket", COUNTERSIGN_AGENT=path) as stage:
        await stage.say("Rosa", "@countersign hello")
        text = await stage.said("no key is needed")
        assert 'rotate name="…"' in text
        card = await stage.asked(
            '@countersign rotate name="the office" days=7', word=ActionId.APPROVE
        )
        assert "Rotate the key the office" in str(card)
        await stage.click("Ada", card, ActionId.APPROVE)
        await stage.said("the office lasts 7 days")
