"""The chat model agent: its model loop, its state, and its instruction."""

from agents.chat.agent import ChatInterruptInfo, ChatModelAgent, ChatResumeData
from agents.chat.explaining import Explains
from agents.chat.instruction import Instruction
from agents.chat.state import ChatState, run_local_values

__all__ = [
    "ChatInterruptInfo",
    "ChatModelAgent",
    "ChatResumeData",
    "ChatState",
    "Explains",
    "Instruction",
    "run_local_values",
]
