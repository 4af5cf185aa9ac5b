"""The tools of the demo agent, through the runner: each kind of argument, and what can go wrong."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pydantic_ai.models import Model

from agents import Agent
from agents.core.asking.infos import ApprovalInfo, ReviewEditInfo
from agents.core.codec import Json
from agents.core.observers import ToolOutcome
from agents.runs.topology import Described
from agents.tools.function import FunctionTool
from agents.tools.several import describer_in
from bot.demo import PATTERNS, DemoModel, build
from bot.demo.agent import DemoServices
from tests.unit.bot.talk import Talk

DEPLOY = "deploy payments 1.4.2 to production"


@pytest.fixture(params=[False, True], ids=["whole", "streamed"])
def talk(request: pytest.FixtureRequest) -> Talk:
    return Talk(streaming=request.param)


async def test_refund_is_exact_to_the_cent(talk: Talk) -> None:
    await talk.say("refund order 1234 120.50")
    info = talk.question(ReviewEditInfo)
    assert info.arguments == {
        "order_id": "1234",
        "amount": "120.50",
        "reason": "customer request",
        "notify": True,
    }
    assert info.title == "Refund 120.50 EUR for order 1234"
    assert info.preview == ""  # all of it is in the title and in the arguments
    await talk.decide(
        info.edit({**info.arguments, "reason": "faulty goods", "notify": False, "amount": "99"})
    )
    assert talk.done == [
        "99.00 EUR were refunded for order 1234 (faulty goods); the customer was not told"
    ]


async def test_quiet_refund_for_another_reason() -> None:
    talk = Talk()
    await talk.say("refund order 9 5 quietly, it was a duplicate charge")
    info = talk.question(ReviewEditInfo)
    assert info.arguments["reason"] == "duplicate charge"
    assert info.arguments["notify"] is False


async def test_refund_of_nothing_is_refused_before_anybody_is_asked() -> None:
    talk = Talk()
    said = await talk.say("refund order 1234 0")
    assert talk.asked == ()
    assert talk.outcomes == [ToolOutcome.REFUSED]
    assert "was not possible, and nothing ran" in said


async def test_restart_at_a_time() -> None:
    talk = Talk()
    await talk.say("restart cache on 2026-12-01 at 9:30")
    info = talk.question(ReviewEditInfo)
    assert info.preview == "It is away for about a minute."
    await talk.decide(info.accept())
    assert talk.done == ["the restart of cache is planned for 2026-12-01 at 09:30"]


async def test_restart_on_a_day_that_does_not_exist() -> None:
    talk = Talk()
    said = await talk.say("restart cache on 2026-13-01")
    assert talk.asked == ()
    assert "day" in said


async def test_tool_that_fails_is_told_truthfully() -> None:
    talk = Talk()
    await talk.say("restart cache on 2026-12-01 at 9:30")
    info = talk.question(ReviewEditInfo)
    said = await talk.decide(info.edit({**info.arguments, "day": "2026-12-02"}))
    assert talk.outcomes == [ToolOutcome.FAILED]
    assert "did not work" in said
    assert "is not on the day 2026-12-02" in said
    assert talk.effects == []


async def test_unknown_service_fails_in_words() -> None:
    said = await Talk().say("status of nothing")
    assert "did not work: LookupError: there is no service 'nothing'" in said
    assert "cache, payments, search" in said


async def test_announcement_has_lines_and_channels(talk: Talk) -> None:
    await talk.say("announce to status and support:\npayments is back\nsorry for that")
    info = talk.question(ReviewEditInfo)
    assert info.arguments == {
        "channels": ["status", "support"],
        "message": "payments is back\nsorry for that",
    }
    assert info.title == "Announce in status, support"
    assert info.preview == ""
    said = await talk.decide(info.edit({**info.arguments, "channels": ["engineering"]}))
    assert said.startswith("Done, as a person changed it: the message ")  # its card says how
    assert talk.done == ["the message of 31 characters is in engineering"]


async def test_roll_back_can_only_be_approved_or_rejected(talk: Talk) -> None:
    await talk.say(DEPLOY)
    await talk.decide(talk.question(ReviewEditInfo).accept())
    await talk.say("roll back payments in production")
    info = talk.question(ApprovalInfo)
    assert info.title == "Roll back payments in production"
    assert info.preview == "1.4.1 runs again, in place of 1.4.2."
    await talk.decide(info.approve())
    assert talk.done[-1] == "payments went back from 1.4.2 to 1.4.1 in production"


async def test_roll_back_needs_an_earlier_version() -> None:
    talk = Talk()
    await talk.say("rollback cache")
    said = await talk.decide(talk.question(ApprovalInfo).approve())
    assert "cache has no earlier version in production" in said


async def test_message_with_markup_is_only_text(talk: Talk) -> None:
    text = "<!channel> `rm -rf` *bold* <@U1> {service} {0}"
    await talk.say(f"announce {text}")
    assert talk.question(ReviewEditInfo).arguments["message"] == text
    await talk.decide(talk.question(ReviewEditInfo).accept())
    assert talk.done == [f"the message of {len(text)} characters is in status"]


async def test_roll_back_of_nothing_gets_an_example() -> None:
    assert "For example" in await Talk().say("roll back")


async def test_new_service_is_the_first_release() -> None:
    talk = Talk()
    await talk.say("deploy mailer 0.1.0 to staging with 1 replica")
    info = talk.question(ReviewEditInfo)
    assert info.preview == "The first release there, all at once."
    await talk.decide(info.accept())
    assert "mailer is healthy: 0.1.0 in staging with 1 replica" in await talk.say("status mailer")


def asking_tools(root: object) -> list[object]:
    """All tools that people are asked about, of an agent and of the agents that work for it."""
    parts, tools = [root], list[object]()
    for part in parts:  # it grows
        inside = part.components() if isinstance(part, Described) else {}
        tools += [
            component.inner
            for key, component in inside.items()
            if key[0] == "tool" and component.kind != "no gate"
        ]
        parts += [component.inner for component in inside.values() if component.inner not in parts]
    return tools


@pytest.mark.parametrize("make", [build, *(pattern.build for pattern in PATTERNS)])
def test_each_tool_that_asks_has_words_for_many(make: Callable[[Model], Agent]) -> None:
    tools = [describer_in(tool) for tool in asking_tools(make(DemoModel()))]
    functions = [tool for tool in tools if isinstance(tool, FunctionTool)]
    assert [function.definition.name for function in functions if not function.batch.title] == []


def test_several_deployments_are_told_with_their_places() -> None:
    (deploy,) = [
        demo_tool
        for demo_tool in DemoServices(print).tools()
        if demo_tool.definition.name == "deploy"
    ]
    tool = describer_in(deploy)
    assert tool is not None
    calls: list[dict[str, Json]] = [
        {"service": service, "version": "1.4.2", "environment": place, "replicas": number}
        for number, (service, place) in enumerate(
            [("payments", "staging"), ("search", "production"), ("cache", "staging")], 1
        )
    ]
    assert tool.describe_several(calls).title == "3 deployments to staging and production"
    assert [*tool.describe_several(calls).sizes] == [1, 2, 3]
