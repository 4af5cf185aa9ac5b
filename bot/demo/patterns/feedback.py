"""Pattern 3, feedback loop: a writer and a reviewer take turns until people like the text."""

from __future__ import annotations

import re

from pydantic_ai.models import Model

from agents.agent import Agent
from agents.chat.agent import ChatModelAgent
from agents.prebuilt.review import CONTENT_KEY, ReviewAgent
from agents.tools.actions import EXIT_NAME, exit_tool
from agents.workflows.sequential import LoopAgent
from bot.demo.patterns.rules import CurrentRequest, Reply, call, first_group, hint, voice

EXAMPLE = "write a short poem about potatoes"
INSTRUCTION = """\
You write short texts. When somebody says what should be different, write the whole text again.
Answer with the text alone. If you are not asked for a text, call `exit` and say what you can do.
"""
_REVIEWER = "ReviewerAgent"
_LINES = (
    "Oh {topic}, plain and good,",
    "you do what others never would:",
    "you wait in silence, calm and round,",
    "and make us happy, pound for pound.",
)


def build(model: Model) -> Agent:
    """Make `WriterLoop`: it ends when nothing is to change, or when nobody answers."""
    writer = ChatModelAgent(
        name="WriterAgent",
        description="Writes a text, and writes it again with feedback.",
        model=voice(model, write),
        instruction=INSTRUCTION,
        tools=[exit_tool()],
        output_key=CONTENT_KEY,
    )
    return LoopAgent(
        "WriterLoop",
        [writer, ReviewAgent(_REVIEWER)],
        description="Writes texts with people's feedback.",
    )


def write(current: CurrentRequest) -> Reply:
    """Write a poem; each feedback since changes it a little."""
    topic = first_group(
        r"\babout\s+(?:an?\s+|the\s+)?([\w' -]{1,40}?)\s*(?:[,.!]|\bin\b|$)", current.request
    )
    if not topic:
        return Reply("", (call(EXIT_NAME, final_result=hint(EXAMPLE)),))
    title, lines = "", [line.format(topic=topic) for line in _LINES]
    for wish in (text for who, text in current.statements if who == _REVIEWER):
        if re.search(r"\btitle\b", wish, re.IGNORECASE):
            title = f"To {topic}\n\n"
        elif re.search(r"\bshort", wish, re.IGNORECASE):
            lines = lines[: max(2, len(lines) // 2)]
        else:
            lines.append(f"(And, as you wished: {' '.join(wish.split())})")
    return Reply(title + "\n".join(lines))
