"""Prebuilt agents: deep agents, plan and execute, ReAct, review, supervisor."""

from agents.prebuilt.deep import Todo, deep_agent, task_tool, write_todos_tool
from agents.prebuilt.files import Shell, execute_tool, file_tools, file_values, read_files
from agents.prebuilt.plan_execute import (
    executor_agent,
    plan_execute,
    plan_tool,
    planner_agent,
    replanner_agent,
    respond_tool,
)
from agents.prebuilt.planning import ExecutedStep, Plan
from agents.prebuilt.react import (
    PendingToolCall,
    create_react_agent,
    pending_tool_calls,
    targets_by_call,
)
from agents.prebuilt.review import ReviewAgent
from agents.prebuilt.stages import StageInfo, StageResult
from agents.prebuilt.supervisor import supervisor

__all__ = [
    "ExecutedStep",
    "PendingToolCall",
    "Plan",
    "ReviewAgent",
    "Shell",
    "StageInfo",
    "StageResult",
    "Todo",
    "create_react_agent",
    "deep_agent",
    "execute_tool",
    "executor_agent",
    "file_tools",
    "file_values",
    "pending_tool_calls",
    "plan_execute",
    "plan_tool",
    "planner_agent",
    "read_files",
    "replanner_agent",
    "respond_tool",
    "supervisor",
    "targets_by_call",
    "task_tool",
    "write_todos_tool",
]
