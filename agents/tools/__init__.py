"""Tools: definition, execution of calls, and the functions that tools use."""

from agents.core.calls import ToolCall, ToolReturn
from agents.core.component.context import (
    current_checkpoint_id,
    current_why,
    event_key,
    idempotency_key,
    publish,
    report_progress,
    session_values,
    stream_text,
)
from agents.core.observers import ToolOutcome
from agents.core.starts import granted_arguments, start_call
from agents.core.tools import CallText, Tool, ToolSpec, with_tags
from agents.tools.actions import ActionTool, break_loop_tool, exit_tool, transfer_tool
from agents.tools.function import FunctionTool
from agents.tools.schema import Multiline, Parameters, parameters

__all__ = [
    "ActionTool",
    "CallText",
    "FunctionTool",
    "Multiline",
    "Parameters",
    "Tool",
    "ToolCall",
    "ToolOutcome",
    "ToolReturn",
    "ToolSpec",
    "break_loop_tool",
    "current_checkpoint_id",
    "current_why",
    "event_key",
    "exit_tool",
    "granted_arguments",
    "idempotency_key",
    "parameters",
    "publish",
    "report_progress",
    "session_values",
    "start_call",
    "stream_text",
    "transfer_tool",
    "with_tags",
]
