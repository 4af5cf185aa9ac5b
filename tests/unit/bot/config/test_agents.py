"""The agent and the model that settings name: every fault is a sentence, not a traceback."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.models import ScriptedModel
from bot.config.agents import load_agents, load_model
from bot.demo.model import DemoModel
from bot.errors import SettingsError

MODULE = """
from agents import ChatModelAgent, ScriptedModel

made = []

def build(model):
    made.append(model)
    return ChatModelAgent(name="mine", model=model)

def fails(model):
    raise RuntimeError("no database")

def nothing(model):
    return None

def needs_two(model, more):
    return None

def several(model):
    money = ChatModelAgent(name="money", model=model)
    return {"#finance": money, "C0123ABC": money, "*": ChatModelAgent(name="rest", model=model)}

def twins(model):
    return {"#a": build(model), "#b": build(model)}

number = 5
Agent = ChatModelAgent
no_agents = {}
mine = ChatModelAgent(name="mine", model=ScriptedModel([]))
table = {"#a": 5}
places = {"finance": mine}
shouting = {"#Finance": mine}
numbers = {7: mine}
"""
BROKEN = {
    "countersign_gate": """from agents import tool


# The mistake is in the next line.
@tool(gate="reveiw")
def rotate(name: str) -> str:
    \"\"\"Rotate.\"\"\"
    return name
""",
    "countersign_title": """from agents import tool


# The mistake is in the next line.
@tool(title="Rotate {nmae}")
def rotate(name: str) -> str:
    \"\"\"Rotate.\"\"\"
    return name
""",
    "countersign_raises": "raise RuntimeError('at import')",
    "countersign_syntax": "def (",
    "countersign_needs": "\nimport countersign_no_such_package",
    "countersign_name": "from json import nothing",
    "countersign_exits": "raise SystemExit(3)",
}


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "countersign_mine.py").write_text(MODULE)
    for name, text in BROKEN.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    for name in [*BROKEN, "countersign_mine"]:
        sys.modules.pop(name, None)


@pytest.mark.usefixtures("modules")
def test_a_function_gets_the_model() -> None:
    model = ScriptedModel([])
    agents = load_agents("countersign_mine:build", model)
    assert {channel: agent.name for channel, agent in agents.items()} == {"*": "mine"}
    assert sys.modules["countersign_mine"].made == [model]


@pytest.mark.usefixtures("modules")
def test_agents_by_channel() -> None:
    agents = load_agents("countersign_mine:several", ScriptedModel([]))
    assert [*agents] == ["#finance", "C0123ABC", "*"]
    assert agents["#finance"] is agents["C0123ABC"]
    assert agents["*"].name == "rest"


@pytest.mark.usefixtures("modules")
@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("countersign_nowhere:agent", "no module 'countersign_nowhere'; use module:attribute"),
        ("countersign_nowhere.deep:agent", "no module 'countersign_nowhere'; use module"),
        ("countersign_needs:agent", "needs 'countersign_no_such_package', which isn't installed"),
        ("countersign_needs:agent", "countersign_needs.py:2; install it beside Countersign"),
        ("countersign_raises:agent", "RuntimeError('at import'), at "),
        ("countersign_raises:agent", "countersign_raises.py:1; fix the module"),
        ("countersign_gate:agent", "countersign_gate.py:5; fix the module"),
        ("countersign_title:agent", "countersign_title.py:5; fix the module"),
        ("countersign_syntax:agent", "invalid syntax, at "),
        ("countersign_syntax:agent", "countersign_syntax.py:1; fix the module"),
        ("countersign_name:agent", "cannot import name 'nothing' from 'json'"),
        ("countersign_name:agent", "countersign_name.py:1; fix the module"),
        ("countersign_exits:agent", "SystemExit(3)"),
        ("countersign_mine:missing", "has no 'missing'"),
        ("countersign_mine:number", "isn't an agent"),
        ("countersign_mine:Agent", "countersign_mine:Agent"),
        ("countersign_mine:nothing", "isn't an agent"),
        ("countersign_mine:fails", "no database"),
        ("countersign_mine:fails", "countersign_mine.py:"),
        ("countersign_mine:needs_two", "failed"),
        ("countersign_mine:twins", "two agents named 'mine'"),
        ("countersign_mine:no_agents", "has no agents"),
        ("countersign_mine:table", "for #a isn't an agent"),
        ("countersign_mine:places", "'finance', which is no channel"),
        ("countersign_mine:shouting", "'#Finance', which is no channel"),
        ("countersign_mine:numbers", "7, which is no channel"),
        ("countersign_mine", "COUNTERSIGN_AGENT"),
        ("countersign_mine:", "COUNTERSIGN_AGENT"),
        (":agent", "COUNTERSIGN_AGENT"),
        ("", "COUNTERSIGN_AGENT"),
        (".relative:agent", "COUNTERSIGN_AGENT"),
        ("a..b:agent", "COUNTERSIGN_AGENT"),
    ],
)
def test_every_fault_names_the_setting(path: str, words: str) -> None:
    with pytest.raises(SettingsError) as raised:
        load_agents(path, ScriptedModel([]))
    assert raised.value.variable == "COUNTERSIGN_AGENT"
    assert words in str(raised.value)


def test_the_demo_model() -> None:
    assert isinstance(load_model("demo"), DemoModel)


@pytest.mark.parametrize("name", ["", "gpt", "nobody:gpt", ":", "openai:", "mistral:large"])
def test_a_model_that_cannot_be_used(name: str) -> None:
    with pytest.raises(SettingsError) as raised:
        load_model(name)
    assert raised.value.variable == "COUNTERSIGN_MODEL"


def test_a_model_without_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(SettingsError, match="OPENAI_API_KEY"):
        load_model("openai:gpt-5")
