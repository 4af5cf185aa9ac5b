"""What an interrupted agent stores: small, readable by old and new programs, and valid text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic_ai.messages import (
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
)

from agents import (
    ChatModelAgent,
    MemoryCheckpointStore,
    MemoryMessageLog,
    Runner,
    ScriptedModel,
    ToolReturn,
    approval_gate,
)
from agents.chat.state import ChatRun, ChatState
from agents.core.checkpoint import CheckpointStatus
from agents.core.codec import Json, decode, encode
from agents.core.errors import AgentChangedError
from agents.core.messages import dump_messages, repaired
from agents.models import Turn, call, say
from tests.unit.agents.support import CountingStore, Plain, World, brief, collect, contexts, yes

DATA = Path(__file__).parents[3] / "data"
HALF = "\ud83d"


def test_an_answer_with_half_a_character_is_repaired() -> None:
    arguments = {f"k{HALF}": [f"v{HALF}", {"x": HALF}, 1, None, True]}
    parts: list[ModelResponsePart] = [
        TextPart(f"text {HALF}"),
        ThinkingPart(f"hm {HALF}", signature=HALF),
        ToolCallPart(f"pay{HALF}", arguments, tool_call_id=f"c{HALF}"),
        ToolCallPart("pay", f'{{"x": "{HALF}", "y": "\\ud83d", "z": "\\ud83d\\ude00"}}'),
        ToolCallPart("pay", f"no json {HALF}"),
    ]

    done = repaired(ModelResponse(parts=parts), ())

    text = json.dumps(dump_messages([done]), ensure_ascii=False)
    assert text.encode()
    assert done.parts[0] == TextPart("text \ufffd")
    call_part = done.parts[2]
    assert isinstance(call_part, ToolCallPart)
    assert (call_part.tool_name, call_part.tool_call_id) == ("pay\ufffd", "c\ufffd")
    assert call_part.args == {"k\ufffd": ["v\ufffd", {"x": "\ufffd"}, 1, None, True]}
    assert isinstance(done.parts[3], ToolCallPart)
    assert done.parts[3].args == {"x": "\ufffd", "y": "\ufffd", "z": "😀"}


async def test_every_record_of_such_a_run_is_text() -> None:
    store = CountingStore()
    tool = approval_gate(Plain("pay", lambda _: f"result {HALF}"))
    script: list[Turn] = [
        [say(f"why {HALF}"), call("pay", {"x": HALF}, id=f"c{HALF}")],
        call("pay", id="c2"),
        say(f"end {HALF}"),
    ]
    world = World(script, [tool], store=store)

    (first,) = contexts(await world.run(log=("l", 1))).values()
    (second,) = contexts(await world.resume({first.id: yes(first)})).values()
    events = await world.resume({second.id: yes(second)})

    assert brief(events)[-1] == "says end \ufffd"
    for saved in [*store.saved, *await world.log.load("l", before_turn=2)]:
        assert HALF not in saved
        assert "\\ud83d" not in saved
        assert saved.encode()
    assert "tool-return:result \ufffd" in world.last_input


def test_a_state_of_version_1_is_read() -> None:
    old = encode(ChatState(messages=[], rounds=2, results={"c": ["x", "ran"]}, gates={}, said=[]))
    assert isinstance(old, dict)
    value = old["value"]
    assert isinstance(value, dict)
    for name in ("draft", "ending", "instruction", "values"):
        del value[name]

    state = decode(old)

    assert isinstance(state, ChatState)
    work = ChatRun.thaw(state)
    assert work.results == {"c": ToolReturn("x")}
    assert (work.draft, work.ending, work.instruction, dict(work.values)) == (None, None, None, {})


async def test_i11_a_state_does_not_grow_with_the_history() -> None:
    store = CountingStore()
    world = World([], [approval_gate(Plain("pay"))], store=store)
    sizes: list[int] = []
    for turn in range(1, 4):
        world.script += [call("pay", id="c1"), say("y" * 2000)]
        name = f"l#{turn}"
        (context,) = contexts(await world.run(name, log=("l", turn))).values()
        sizes.append(len(store.saved[-1]))
        await world.resume({context.id: yes(context)}, name)

    assert max(sizes) < 4096
    assert max(sizes) - min(sizes) < 40


async def test_i11_a_hundred_calls_one_by_one() -> None:
    """How long it takes is measured by the benchmarks."""
    calls: list[Json] = []
    pay = Plain("pay", lambda arguments: calls.append(arguments["x"]))
    script: list[Turn] = [
        [call("pay", {"x": n}, id=f"c{n}") for n in range(100)],
        say("done"),
    ]
    world = World(script, [approval_gate(pay)])
    pending = list(contexts(await world.run()).values())
    events = []
    for context in pending:
        events = await world.resume({context.id: yes(context)})

    assert brief(events)[-1] == "says done"
    assert calls == list(range(100))
    assert sum(model.calls for model in world.models) == 2


@pytest.mark.parametrize("change", ["no gate", "removed"])
async def test_a_gate_that_is_gone_is_noticed_without_a_topology(change: str) -> None:
    """Where the topology is empty, the agent's own state knows the gates."""
    stored = json.loads((DATA / "checkpoint-v1.json").read_text(encoding="utf-8"))
    store = MemoryCheckpointStore()
    pending = CheckpointStatus.PENDING
    await store.save("t#1", stored["data"], status=pending, expected_version=0)
    pay = Plain("pay")
    tools = [Plain("look"), *([pay] if change == "no gate" else [])]
    agent = ChatModelAgent(name="clerk", model=ScriptedModel([]), tools=tools)
    log = MemoryMessageLog()
    runner = Runner(agent, checkpoint_store=store, message_log=log)
    (first, _) = await runner.pending("t#1")

    with pytest.raises(AgentChangedError, match="was interrupted with approval"):
        await collect(runner.resume("t#1", {first.id: yes(first)}))

    assert pay.calls == []
    assert (await runner.pending("t#1"))[0].id == first.id
