"""An agent's answer to who it is."""

from __future__ import annotations

import pytest

from bot.slack.slash_commands.introduction import asks_who, introduction
from bot.threads.agents import AgentFacts

FACTS = AgentFacts(
    name="deployer",
    description="Puts <!channel> services live.",
    free=("get_status",),
    gated=("deploy", "roll_back"),
)


@pytest.mark.parametrize(
    "words",
    ["who are you", "Who are you?", "what can you do?", "hi, who are you?!", "What are you"],
)
def test_a_question_about_the_agent(words: str) -> None:
    assert asks_who(words)


@pytest.mark.parametrize(
    "words", ["who are you waiting for", "what can you do about it", "", "you"]
)
def test_any_other_question_is_for_the_agent(words: str) -> None:
    assert not asks_who(words)


def test_it_says_what_it_does_alone_and_what_it_asks_about() -> None:
    text = introduction(FACTS, terms=None, at_ms=1)
    assert text.splitlines() == [
        "I'm *deployer*: Puts &lt;!channel&gt; services live.",
        "Without asking, I can: get status.",
        "With approval, I can: deploy, roll back.",
        "To stop me, type *stop*.",
    ]


def test_an_agent_without_words_of_its_own_has_a_name() -> None:
    text = introduction(AgentFacts(name="A"), terms=None, at_ms=1)
    assert text.splitlines() == ["I'm *A*.", "To stop me, type *stop*."]


def test_many_tools_are_cut() -> None:
    many = AgentFacts(name="A", free=tuple(f"t{number}" for number in range(30)))
    assert "t19…" in introduction(many, terms=None, at_ms=1)
