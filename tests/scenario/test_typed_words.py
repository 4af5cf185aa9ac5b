"""People type addresses and emoji; the agent gets them as typed, by each way in."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scenario.asking import RAN
from tests.scenario.test_every_question import ANSWER, fill, final
from tests.support.stage import a_stage

ASKING = "tests.scenario.asking"
WORDS = [
    "bob@acme.example",
    "launch 🚀 👋🏽",
    "call +1 555 123 4567, see https://acme.example/a?b=1&c=2 & acme.example <b>",
]


@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize("way", ["reply", "form"])
async def test_an_answer_arrives_as_it_was_typed(tmp_path: Path, way: str, words: str) -> None:
    RAN.clear()
    agent = f"{ASKING}:graph_text"
    async with a_stage(tmp_path, "socket", COUNTERSIGN_AGENT=agent) as stage:
        ts = await stage.say("Rosa", "@countersign go")
        card = await stage.card(word="How shall it be called?")
        if way == "reply":
            await stage.say("Rosa", words, thread_ts=ts)
        else:
            await stage.click("Rosa", card, ANSWER)
            view = await stage.modal("Rosa")
            (field,) = [block["block_id"] for block in view["blocks"] if block["type"] == "input"]
            await fill(stage, "Rosa", {field: words})
        await stage.until(lambda: [words] == RAN)


async def test_an_option_is_chosen_by_its_name(tmp_path: Path) -> None:
    agent = f"{ASKING}:choose_host"
    async with a_stage(tmp_path, "socket", COUNTERSIGN_AGENT=agent) as stage:
        ts = await stage.say("Rosa", "@countersign go")
        await stage.card(word="Which host?")
        await stage.say("Rosa", "acme.example", thread_ts=ts)
        await stage.said("Good")
        assert "acme.example" in str(await final(stage, "Chosen"))
