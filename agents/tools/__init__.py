"""Tools: what a model may call, how a call is checked and run, and a batch of calls."""

from agents.tools.base import CallText, Tool, ToolSpec
from agents.tools.function import FunctionTool
from agents.tools.schema import Multiline, Parameters, parameters
from agents.tools.tagged import tagged

__all__ = [
    "CallText",
    "FunctionTool",
    "Multiline",
    "Parameters",
    "Tool",
    "ToolSpec",
    "parameters",
    "tagged",
]
