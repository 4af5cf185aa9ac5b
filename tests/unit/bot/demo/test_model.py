"""The demo model by itself: messages in, one answer out."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.messages import (
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from agents import ChatModelAgent
from bot.demo import DemoModel
from bot.demo.model import HELP
from bot.demo.replies import Done, brief_report, report

DEPLOY = ToolCallPart(
    "deploy",
    {"service": "payments", "version": "1.4.2", "environment": "staging", "replicas": 3},
    tool_call_id="c1",
)


def user(*parts: str | ModelRequestPart) -> ModelRequest:
    return ModelRequest(
        parts=[UserPromptPart(part) if isinstance(part, str) else part for part in parts]
    )


def result(text: str, name: str = "deploy", call_id: str = "c1") -> ToolReturnPart:
    return ToolReturnPart(name, text, tool_call_id=call_id)


async def answer(*messages: ModelMessage) -> ModelResponse:
    whole = await model_request(DemoModel(), messages)
    async with model_request_stream(DemoModel(), messages) as stream:
        async for _ in stream:
            pass
        streamed = stream.get()
    assert streamed.text == whole.text
    assert calls(streamed) == calls(whole)
    return whole


def calls(response: ModelResponse) -> list[tuple[str, dict[str, object], str]]:
    return [
        (part.tool_name, part.args_as_dict(), part.tool_call_id) for part in response.tool_calls
    ]


async def after(*texts: str, call: ToolCallPart = DEPLOY, before: str = "go") -> str:
    said = ModelResponse(parts=[TextPart("I do."), call])
    results = [result(text, call.tool_name) for text in texts]
    return (await answer(user(before), said, user(*results))).text or ""


@pytest.mark.parametrize("request_", [user("help"), user(""), ModelRequest(parts=[])])
async def test_what_is_no_command_gets_help(request_: ModelRequest) -> None:
    assert (await answer(request_)).text == HELP


async def test_call_ids_go_on_through_the_thread() -> None:
    first = await answer(user("deploy a 1.0.0 and b 1.0.0 to staging"))
    assert [call_id for _, _, call_id in calls(first)] == ["demo-1", "demo-2"]
    second = await answer(user("x"), first, user("status of a"))
    assert [call_id for _, _, call_id in calls(second)] == ["demo-3"]


async def test_text_beside_a_picture_is_read() -> None:
    prompt = UserPromptPart(["status of a", ImageUrl("http://localhost/x.png")])
    assert calls(await answer(user(prompt))) == [("get_status", {"service": "a"}, "demo-1")]


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        ("a 1.0.0 is live", "Done. To go back: “roll back payments in staging”."),
        ("The tool failed: OSError: disk", "did not work: OSError: disk."),
        ("The call to 'deploy' was refused, nothing ran: x.", "was not possible, and nothing ran"),
        ("There is no tool 'deploy'; nothing ran.", "was not possible, and nothing ran"),
        ("'deploy' was started, and the process stopped before it finished. It", "please check"),
    ],
)
async def test_results_are_told_truthfully(outcome: str, said: str) -> None:
    assert said in await after(outcome)


async def test_call_of_another_model_is_named() -> None:
    call = ToolCallPart("dance", {}, tool_call_id="c1")
    said = await after("There is no tool 'dance'; nothing ran.", call=call)
    assert said.startswith("The call to dance was not possible")


async def test_what_the_cards_say_is_not_said_again() -> None:
    call = ToolCallPart("refund_order", {"order_id": "7"}, tool_call_id="c1")
    assert await after("5.00 EUR were refunded for order 7", call=call) == "Done."
    done = Done("restart", {"service": "a", "day": "2026-12-01"}, "the restart of a is planned")
    assert brief_report([done, done]) == "Both are done."
    assert brief_report([done, done, done]) == "All 3 are done."
    failed = Done("restart", done.arguments, "The tool failed: OSError: disk")
    assert brief_report([done, failed]) == (
        "This is how it ended:\n- The restart of a on 2026-12-01: done.\n"
        "- The restart of a on 2026-12-01 did not work: OSError: disk."
    )


def test_edit_of_what_the_model_left_out() -> None:
    outcome = (
        'A person changed the arguments to {"at": null, "replicas": 5, "service": "a", '
        '"version": "2"}. The tool ran with these. Result: ok'
    )
    done = Done("deploy", {"service": "a", "version": "1"}, outcome)
    assert report([done]) == (
        "Done, as a person changed it (replicas 5, version 2 instead of 1): ok."
    )
    assert brief_report([done]) == "Done, as a person changed it: ok."
    named = Done("deploy", DEPLOY.args_as_dict(), outcome)
    assert (
        brief_report([named, named]).splitlines()[1:]
        == ["- The deployment of payments 1.4.2 to staging: done, as a person changed it: ok."] * 2
    )


async def test_long_values_are_cut() -> None:
    call = ToolCallPart("announce", {"message": "", "channels": ["x" * 90]}, tool_call_id="c1")
    said = await after("The tool failed: OSError", call=call)
    assert f"The announcement in {'x' * 59}… did not work" in said


async def test_result_of_an_unknown_call_is_left_alone() -> None:
    said = ModelResponse(parts=[TextPart("I do."), DEPLOY])
    assert (await answer(user("go"), said, user(result("ok", call_id="c9")))).text == HELP


ASK = ToolCallPart("ask_people", {"questions": ["?"]}, tool_call_id="c1")


async def test_answer_to_what_was_never_asked_does_nothing() -> None:
    assert await after("1.4.2", call=ASK, before="hello") == HELP


async def test_refused_question_is_told() -> None:
    said = await after("The call to 'ask_people' was refused, nothing ran: x.", call=ASK)
    assert said.startswith("My question was not possible")


async def thread(*rounds: Sequence[str]) -> ModelResponse:
    """Play a thread: each round has prompts, after the answer to the last question."""
    messages: list[ModelMessage] = []
    last = ModelResponse(parts=[])
    for texts in rounds:
        reply, *prompts = texts
        parts: list[str | ModelRequestPart] = [
            result(reply, "ask_people", call.tool_call_id) for call in last.tool_calls
        ]
        messages.append(user(*parts, *prompts))
        last = await answer(*messages)
        messages.append(last)
    return last


async def test_message_beside_an_answer_does_not_mix_with_it() -> None:
    last = await thread(["", "deploy a"], ["1.0.0 staging", "deploy b"])
    assert [name for name, _, _ in calls(last)] == ["deploy", "ask_people"]
    assert calls(last)[0][1]["service"] == "a"


async def test_new_question_waits_while_an_old_one_is_open() -> None:
    last = await thread(["", "deploy a"], ["staging", "deploy b"])
    ((name, arguments, _),) = calls(last)
    assert name == "ask_people"
    assert arguments == {"questions": ["Which version of a do you want to deploy?"]}
    assert "tell me about b again later" in (last.text or "")


async def test_next_question_begins_anew() -> None:
    last = await thread(["", "deploy a"], ["dunno"], ["dunno"], ["", "deploy b"], ["dunno"])
    assert "ask once more" in (last.text or "")


async def test_the_model_says_what_a_call_that_waits_would_do() -> None:
    agent = ChatModelAgent(name="oncall", model=DemoModel())
    about = "Title: Deploy payments 1.4.2\nPreview: Replaces 1.4.1.\nArguments: {}"
    said = await agent.explain(about, "Title: nothing?")
    assert said == "The call would do this: Deploy payments 1.4.2. Replaces 1.4.1."
    assert "no more" in await agent.explain("", "why?")
