"""Agents made of agents: one after the other, side by side, again and again."""

from agents.workflows.loop import LoopAgent, LoopInfo
from agents.workflows.parallel import ParallelAgent, ParallelInfo
from agents.workflows.sequential import SequentialAgent, SequentialInfo

__all__ = [
    "LoopAgent",
    "LoopInfo",
    "ParallelAgent",
    "ParallelInfo",
    "SequentialAgent",
    "SequentialInfo",
]
