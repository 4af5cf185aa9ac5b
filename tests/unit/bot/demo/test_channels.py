"""What the patterns have in common: hints, channels, rules in place of a model."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart

from bot.commands.demo import TOPICS, welcome
from bot.demo import PATTERNS, POLICY, RULES, DemoModel, DemoRule, channels
from bot.demo.commands import PlannedToolCall
from bot.demo.patterns import graphs, programs
from bot.demo.patterns.rules import CurrentRequest, Reply, RuleModel, read
from slack_sandbox.workspace.people import first_cast
from tests.unit.bot.demo.pattern_room import EXAMPLES, Room

ALSO = {"#graph": graphs.EXAMPLES[1:], "#programs": programs.EXAMPLES[1:]}
"""What else to write in channels with several examples."""


@pytest.mark.parametrize("channel", [*EXAMPLES])
async def test_other_words_get_a_hint(channel: str) -> None:
    room = Room(channel)
    for number, text in enumerate(("hello", "?", "plan", "to", "analyse", "delete", "project"), 1):
        await room.play(text=text)
        assert len(room.texts) == number
        assert EXAMPLES[channel] in room.texts[-1]


@pytest.mark.parametrize("channel", [*EXAMPLES])
def test_the_sandbox_has_the_channel_and_says_what_to_write(channel: str) -> None:
    cast = first_cast("countersign")
    (room,) = [cast_channel for cast_channel in cast.channels if f"#{cast_channel.name}" == channel]
    others = [f", or: {text}" for text in ALSO.get(channel, ())]
    assert room.topic == "".join([f"Write: @countersign {EXAMPLES[channel]}", *others])
    assert len(room.topic) <= 250
    assert set(room.members) == {person.id for person in cast.people}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.channel)
def test_the_topic_of_a_rule_says_what_to_write_and_what_follows(rule: DemoRule) -> None:
    rooms = {f"#{room.name}": room for room in first_cast("countersign").channels}
    words = ", then: ".join((rule.example, *rule.then))
    assert rooms[rule.channel].topic == f"Write: @countersign {words}"
    assert len(rooms[rule.channel].topic) <= 250


def test_the_page_names_every_channel() -> None:
    page = (Path(__file__).parents[4] / "docs" / "reference" / "sandbox.md").read_text(
        encoding="utf-8"
    )
    for room in (*PATTERNS, *RULES):
        assert f"| {room.channel} | `{room.example}` |" in page
    for channel, examples in ALSO.items():
        for example in examples:
            assert f"| {channel} | `{example}` |" in page


def test_the_guide_is_for_the_demo_as_it_is() -> None:
    url = "http://127.0.0.1:8900"
    assert f"The policy is in\n{POLICY}\n" in welcome(url, policy=POLICY)
    assert "Ada" not in welcome(url, policy=Path("mine.yaml"))
    assert "Ada" not in welcome(url, policy=POLICY, model="openai:gpt-5")


def test_topics_of_the_demo_name_what_its_policy_says() -> None:
    groups = {f"@{group.handle}" for group in first_cast("countersign").groups}
    rooms = {room.name for room in first_cast("countersign").channels}
    assert TOPICS.keys() <= rooms
    assert groups == set(re.findall(r"@(?!countersign)\w+", " ".join(TOPICS.values())))
    assert max(map(len, TOPICS.values())) <= 250


def test_ids_and_names_are_unique() -> None:
    rooms = first_cast("countersign").channels
    assert len({room.id for room in rooms}) == len(rooms)
    agents = channels(DemoModel())
    assert len({agent.name for agent in agents.values()}) == len(agents)


@pytest.mark.parametrize(
    "channel", sorted({*EXAMPLES} - {"#feedback", "#follow-up", "#graph", "#limit", "#programs"})
)
async def test_the_first_card_has_a_reason(channel: str) -> None:
    """A text for review and questions say themselves what is wanted."""
    room = Room(channel)
    await room.say()
    reason = getattr(room.info, "why", room.texts[-1])
    assert len(reason.split()) > 5
    assert not re.search(r"You asked|rule-based|The next step", reason)


@pytest.mark.parametrize("channel", [*EXAMPLES])
def test_every_agent_says_what_it_does(channel: str) -> None:
    assert channels(DemoModel())[channel].description


async def test_a_rule_streams_what_it_says() -> None:
    def rule(seen: CurrentRequest) -> Reply:
        return Reply(f"You said {seen.request}", (PlannedToolCall("f", {}, ""),))

    model, messages = RuleModel(rule), [user("a"), user("b")]
    whole = await model_request(model, messages)
    async with model_request_stream(model, messages) as stream:
        async for _ in stream:
            pass
    assert stream.get().text == whole.text == "You said a\nb"
    assert [tool_call.tool_call_id for tool_call in whole.tool_calls] == ["demo-1"]


def user(*texts: str) -> ModelMessage:
    return ModelRequest(parts=[UserPromptPart(text) for text in texts])


def test_only_what_came_since_the_last_request_counts() -> None:
    seen = read(
        [
            user("first"),
            ModelResponse(parts=[TextPart("done")]),
            user("second", "For context: [A] said: hello."),
            user("It is your turn again. Go on with the task."),
        ]
    )
    assert (seen.request, seen.statements, seen.done) == ("second", [("A", "hello.")], [])
    assert (seen.words_of("A"), seen.words_of("B")) == ("hello.", "")


def test_the_welcome_of_your_own_agent_names_it_and_warns_of_the_rules() -> None:
    url = "http://127.0.0.1:8900"
    text = welcome(url, agent="wifi:build", model="openai:gpt-5")
    assert "wifi:build" in text
    assert url in text
    assert "#approval" not in text
    assert "COUNTERSIGN_MODEL" not in text
    assert "No key is needed" in welcome(url, agent="wifi:build")
