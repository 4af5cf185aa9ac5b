"""The demo model with an agent of one's own: a message names a tool and its arguments."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.tools import ToolDefinition

LEAD = """\
I am a rule-based demo, not a language model, so no key is needed. I call the tools that you type:
"""
ASK_A_MODEL = """
To let a language model choose them, set COUNTERSIGN_MODEL and its key."""
_ARGUMENT = re.compile(r"(\w+)=(\"[^\"]*\"|\S+)")
_EXAMPLES = {"string": '"…"', "integer": "1", "number": "1.5", "boolean": "true"}


def answer(
    messages: Sequence[ModelMessage], tools: Sequence[ToolDefinition]
) -> list[ModelResponsePart]:
    """Call the tool that the last message names; else say how one is called."""
    newest = messages[-1]
    parts = newest.parts if isinstance(newest, ModelRequest) else ()
    results = [str(one.content) for one in parts if isinstance(one, ToolReturnPart)]
    if results:
        return [TextPart(content="\n".join(results))]
    typed = [one.content for one in parts if isinstance(one, UserPromptPart)]
    number = sum(len(one.tool_calls) for one in messages if isinstance(one, ModelResponse)) + 1
    for text in (one for one in reversed(typed) if isinstance(one, str)):
        for tool in tools:
            if text.split()[:1] == [tool.name]:
                return [_call(tool, text, number)]
    return [TextPart(content=help_text(tools))]


def help_text(tools: Sequence[ToolDefinition]) -> str:
    """Say how each tool is called."""
    return LEAD + "\n".join(f"- {_example(one)}" for one in tools) + ASK_A_MODEL


def _call(tool: ToolDefinition, text: str, number: int) -> ToolCallPart:
    fields = _fields(tool)
    given = {
        name: _value(value.strip('"'), fields.get(name, {}))
        for name, value in _ARGUMENT.findall(text)
    }
    return ToolCallPart(tool.name, given, tool_call_id=f"demo-{number}")


def _value(text: str, field: Mapping[str, object]) -> object:
    """The value of an argument: a text where the schema says so, else JSON where it is some."""
    if field.get("type") == "string":
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _example(tool: ToolDefinition) -> str:
    fields, schema = _fields(tool), tool.parameters_json_schema
    words = [
        f"{name}={_EXAMPLES.get(str(fields[name].get('type')), '…')}"
        for name in schema.get("required", fields)
        if name in fields
    ]
    return " ".join([tool.name, *words])


def _fields(tool: ToolDefinition) -> Mapping[str, Mapping[str, object]]:
    found = tool.parameters_json_schema.get("properties")
    return found if isinstance(found, dict) else {}
