"""Workflow agents: in sequence, in parallel, in a loop, as a tool, by transfer."""

from agents.workflows.agenttool import AgentTool, AgentToolInfo
from agents.workflows.parallel import ParallelAgent, ParallelInfo
from agents.workflows.sequential import LoopAgent, LoopInfo, SequentialAgent, SequentialInfo
from agents.workflows.transfer import TransferAgent, transfer_tool_to, with_sub_agents

__all__ = [
    "AgentTool",
    "AgentToolInfo",
    "LoopAgent",
    "LoopInfo",
    "ParallelAgent",
    "ParallelInfo",
    "SequentialAgent",
    "SequentialInfo",
    "TransferAgent",
    "transfer_tool_to",
    "with_sub_agents",
]
