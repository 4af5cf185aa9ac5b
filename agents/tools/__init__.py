"""Tools: what a model may call, and the gates around it."""

from agents.tools.base import CallText, Tool, ToolSpec
from agents.tools.digest import call_digest, canonical_json
from agents.tools.followup import FOLLOW_UP_NAME, FollowUpTool, follow_up_tool
from agents.tools.function import FunctionTool, tool
from agents.tools.gates import Gate, approval_gate, review_edit_gate
from agents.tools.infos import (
    ApprovalInfo,
    ApprovalResult,
    CallInfo,
    Cancelled,
    DoubtInfo,
    DoubtResult,
    Expired,
    FollowUpInfo,
    ReviewEditInfo,
    ReviewEditResult,
)
from agents.tools.schema import Multiline, Parameters, parameters

__all__ = [
    "FOLLOW_UP_NAME",
    "ApprovalInfo",
    "ApprovalResult",
    "CallInfo",
    "CallText",
    "Cancelled",
    "DoubtInfo",
    "DoubtResult",
    "Expired",
    "FollowUpInfo",
    "FollowUpTool",
    "FunctionTool",
    "Gate",
    "Multiline",
    "Parameters",
    "ReviewEditInfo",
    "ReviewEditResult",
    "Tool",
    "ToolSpec",
    "approval_gate",
    "call_digest",
    "canonical_json",
    "follow_up_tool",
    "parameters",
    "review_edit_gate",
    "tool",
]
