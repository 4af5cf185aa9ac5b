"""The human gate: what is not allowed, missing or malformed runs nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agents.core.asking.answers import ApprovalResult
from agents.core.calls import ToolReturn
from agents.core.codec import Json, decode, encode
from agents.core.errors import AgentConfigError, ResumeDataError
from agents.core.observers import ToolOutcome
from agents.gates import (
    ActionRequest,
    HumanInterrupt,
    HumanInterruptConfig,
    HumanResponse,
    accept,
    edit,
    human_gate,
    ignore,
    respond,
    tool,
)
from agents.policy import PolicyCall
from tests.unit.agents.stage import Stage
from tests.unit.agents.support import Plain

ALL = HumanInterruptConfig()


async def asked(config: HumanInterruptConfig = ALL) -> tuple[Stage, HumanInterrupt, Plain]:
    send = Plain("send")
    stage = Stage(human_gate(send, config), {"x": 1})
    assert await stage.run() is None
    return stage, stage.question(HumanInterrupt), send


async def test_question_shows_the_request() -> None:
    stage, info, send = await asked()
    assert info.action_request == ActionRequest(action="send", args={"x": 1})
    assert info.config == replace(ALL, description=info.description)
    assert info.description == 'Tool execution requires approval\n\nTool: send\nArgs: {"x": 1}'
    assert str(info) == f"{info.description}\n\nAnswer with one of: accept, ignore, response, edit."
    assert decode(encode(info)) == info
    assert stage.tool.definition.gates == ("human",)
    assert send.calls == []


@pytest.mark.parametrize(
    ("description", "shown"),
    [
        ("Really send?", "Really send?"),
        (lambda call: f"Send {call.arguments['x']}?", "Send 1?"),
        (lambda call: call.arguments["y"], "Tool execution requires approval"),
        (lambda _: None, "Tool execution requires approval"),
    ],
)
async def test_description_can_be_given(description: object, shown: str) -> None:
    _, info, _ = await asked(HumanInterruptConfig(description=description))  # type: ignore[arg-type]
    assert info.description.startswith(shown)


@pytest.mark.parametrize(
    ("answers", "ran", "outcome", "text"),
    [
        (
            [
                accept(),
                {"type": "accept"},
                {"type": "accept", "args": None},
                {"type": "accept", "args": {"action": "send", "args": {"x": 1}}},
            ],
            [{"x": 1}],
            ToolOutcome.RAN,
            'send ok {"x": 1}',
        ),
        (
            [
                edit({"x": 2}),
                edit({"x": 2}, action="send"),
                {"type": "edit", "args": {"action": "send", "args": {"x": 2}}},
            ],
            [{"x": 2}],
            ToolOutcome.RAN,
            (
                'A person changed the arguments to {"x": 2}. '
                'The tool ran with these. Result: send ok {"x": 2}'
            ),
        ),
        (
            [ignore(), {"type": "ignore"}],
            [],
            ToolOutcome.REJECTED,
            "A person ignored the call to 'send'; it did not run. Go on without it.",
        ),
        (
            [respond("not now"), {"type": "response", "args": "not now"}],
            [],
            ToolOutcome.ANSWERED,
            "not now",
        ),
    ],
    ids=["accept", "edit", "ignore", "response"],
)
async def test_an_answer_may_be_made_by_a_function_or_be_json(
    answers: list[object], ran: list[object], outcome: ToolOutcome, text: str
) -> None:
    for answer in answers:
        stage, info, send = await asked()
        info.check_answer(answer)
        result = await stage.result(answer)
        assert result.outcome is outcome
        assert result.text == text
        assert send.calls == ran
        assert stage.started is bool(ran)


async def test_methods_bind_answers_to_what_was_shown() -> None:
    stage, info, send = await asked()
    assert info.accept(by="U1") == accept(digest=info.digest, by="U1")
    assert info.edit({"x": 2}).digest == info.digest_of({"x": 2})
    assert (info.ignore(by="U1"), info.respond("no", by="U1")) == (
        ignore(by="U1"),
        respond("no", by="U1"),
    )
    assert await stage.answer(info.edit({"x": 2})) is not None
    assert send.calls == [{"x": 2}]


MALFORMED: list[object] = [
    None,
    True,
    "yes",
    [],
    [{"type": "accept"}],
    {},
    {"args": None},
    {"type": None},
    {"type": "approve"},
    {"type": ["accept"]},
    {"type": "accept", "args": "yes"},
    {"type": "accept", "args": {"action": "send"}},
    {"type": "accept", "args": {"action": "send", "args": {"x": 2}}},
    {"type": "accept", "more": 1},
    {"type": "ignore", "args": "why"},
    {"type": "response"},
    {"type": "response", "args": " "},
    {"type": "response", "args": 5},
    {"type": "edit"},
    {"type": "edit", "args": {"x": 2}},
    {"type": "edit", "args": {"args": {"x": 2}}},
    {"type": "edit", "args": {"action": 5, "args": {}}},
    {"type": "edit", "args": {"action": "send", "args": []}},
    {"type": "edit", "args": {"action": "send", "args": {5: 1}}},
    {"type": "edit", "args": {"action": "send", "args": {}, "id": 1}},
    {"type": "edit", "args": {"action": "send", "args": {"x": float("nan")}}},
    {"type": "edit", "args": {"action": "other", "args": {"x": 1}}},
    accept(digest="0" * 64),
    edit({"x": 2}, digest="0" * 64),
    edit({"x": 2}, action="other"),
    ApprovalResult(approved=True),
]


@pytest.mark.parametrize("answer", MALFORMED, ids=repr)
async def test_g085_malformed_answer_runs_nothing_and_can_be_repeated(answer: object) -> None:
    stage, info, send = await asked()
    if answer is not None:
        with pytest.raises(ResumeDataError):
            info.check_answer(answer)
    assert isinstance(await stage.refused(answer), ResumeDataError)
    assert send.calls == []
    assert await stage.answer(info.accept()) is not None
    assert send.calls == [{"x": 1}]


@pytest.mark.parametrize(
    ("config", "answer", "kind", "allowed"),
    [
        (replace(ALL, allow_accept=False), accept(), "accept", "ignore, response, edit"),
        (replace(ALL, allow_ignore=False), ignore(), "ignore", "accept, response, edit"),
        (replace(ALL, allow_respond=False), respond("a"), "response", "accept, ignore, edit"),
        (replace(ALL, allow_edit=False), edit({"x": 2}), "edit", "accept, ignore, response"),
    ],
)
async def test_g083_g091_what_is_not_allowed_is_refused(
    config: HumanInterruptConfig, answer: object, kind: str, allowed: str
) -> None:
    stage, info, send = await asked(config)
    before = stage.asked
    assert await stage.answer(answer) is None
    message = f"{kind!r} is not allowed for 'send'; allowed are: {allowed}; nothing ran"
    assert str(stage.refusals[0]) == message
    assert send.calls == []
    assert stage.asked == before
    other = info.ignore() if kind == "accept" else info.accept()
    assert await stage.answer(other) is not None


def test_config_has_to_allow_something() -> None:
    with pytest.raises(AgentConfigError, match="at least one"):
        HumanInterruptConfig(
            allow_accept=False, allow_ignore=False, allow_respond=False, allow_edit=False
        )
    # A text is not True: it must not allow by accident.
    with pytest.raises(AgentConfigError, match="at least one"):
        HumanInterruptConfig(
            allow_accept="no",  # type: ignore[arg-type]
            allow_ignore=False,
            allow_respond=False,
            allow_edit=False,
        )


@pytest.mark.parametrize(("make", "args"), [(respond, ""), (respond, 5)])
def test_response_that_makes_no_sense(make: type, args: Json) -> None:
    with pytest.raises(ValueError, match="takes as args"):
        make(args)


def test_stored_response_is_checked() -> None:
    assert decode(encode(edit({"x": 1}, by="U1"))) == edit({"x": 1}, by="U1")
    assert accept().request is None
    with pytest.raises(TypeError):
        HumanResponse(type="accept", by=5)  # type: ignore[arg-type]


class Watched:
    """A predicate that says what it is told to say, and counts."""

    def __init__(self, answer: object) -> None:
        self.answer = answer
        self.calls: list[PolicyCall] = []

    def __call__(self, call: PolicyCall) -> bool:
        self.calls.append(call)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer  # type: ignore[return-value]


async def test_g077_call_that_nobody_need_see_runs_at_once() -> None:
    when, send = Watched(False), Plain("send")
    stage = Stage(human_gate(send, HumanInterruptConfig(when=when)), {"x": 1})
    assert await stage.run() == ToolReturn('send ok {"x": 1}')
    assert [dict(call.arguments) for call in when.calls] == [{"x": 1}]


@pytest.mark.parametrize("answer", [True, None, 0, "no", ValueError()])
async def test_predicate_that_fails_asks(answer: object) -> None:
    _, _, send = await asked(HumanInterruptConfig(when=Watched(answer)))
    assert send.calls == []


async def test_g092_predicate_is_asked_once() -> None:
    when = Watched(True)
    stage, info, send = await asked(HumanInterruptConfig(when=when))
    when.answer = False
    assert await stage.run(reenter=True) is None
    result = await stage.result(info.ignore())
    assert result.outcome is ToolOutcome.REJECTED
    assert send.calls == []
    assert len(when.calls) == 1


async def test_g079_edit_replaces_all_arguments() -> None:
    sent: list[tuple[str, int, str | None]] = []

    async def send(to: str, n: int = 1, cc: str | None = None) -> str:
        sent.append((to, n, cc))
        return "sent"

    stage = Stage(human_gate(tool(send), ALL), {"to": "alice", "cc": "carol"})
    await stage.run()
    await stage.answer(stage.question(HumanInterrupt).edit({"to": "bob", "n": 2}))
    assert sent == [("bob", 2, None)]


@pytest.mark.parametrize(
    ("args", "fault"), [({"to": "bob", "n": "two"}, "n:"), ({"n": 2}, "to:"), ({"to": "b"}, "n")]
)
async def test_g086_edit_that_does_not_fit_is_refused_with_its_path(
    args: dict[str, Json], fault: str
) -> None:
    sent: list[str] = []

    async def send(to: str, n: int = 1) -> str:
        sent.append(to)
        return "sent"

    stage = Stage(human_gate(tool(send), ALL), {"to": "alice"})
    await stage.run()
    before = stage.asked
    assert fault in str(await stage.refused(stage.question(HumanInterrupt).edit(args)))
    assert (sent, stage.asked) == ([], before)
