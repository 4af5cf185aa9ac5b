"""Tools: what a model may call, and the gates around it."""

from agents.tools.asking import CallGate
from agents.tools.base import CallText, Tool, ToolSpec
from agents.tools.choice import CHOOSE_NAME, ChooseTool, choice_gate, choose_tool
from agents.tools.complete import complete_gate
from agents.tools.decorator import tool
from agents.tools.digest import call_digest, canonical_json
from agents.tools.followup import FOLLOW_UP_NAME, FollowUpTool, follow_up_tool
from agents.tools.function import FunctionTool
from agents.tools.gates import Gate, approval_gate, review_edit_gate
from agents.tools.guard import PolicyGate, guard, policy_gate
from agents.tools.human import (
    ActionRequest,
    HumanInterrupt,
    HumanInterruptConfig,
    HumanResponse,
    accept,
    edit,
    human_gate,
    ignore,
    respond,
)
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
    Undecidable,
    Withdrawn,
)
from agents.tools.questions import (
    CallChoiceInfo,
    Choice,
    ChoiceInfo,
    ChoiceResult,
    FeedbackInfo,
    ParametersInfo,
    ParametersResult,
)
from agents.tools.rulings import GateState
from agents.tools.schema import Multiline, Parameters, parameters
from agents.tools.tagged import tagged

__all__ = [
    "CHOOSE_NAME",
    "FOLLOW_UP_NAME",
    "ActionRequest",
    "ApprovalInfo",
    "ApprovalResult",
    "CallChoiceInfo",
    "CallGate",
    "CallInfo",
    "CallText",
    "Cancelled",
    "Choice",
    "ChoiceInfo",
    "ChoiceResult",
    "ChooseTool",
    "DoubtInfo",
    "DoubtResult",
    "Expired",
    "FeedbackInfo",
    "FollowUpInfo",
    "FollowUpTool",
    "FunctionTool",
    "Gate",
    "GateState",
    "HumanInterrupt",
    "HumanInterruptConfig",
    "HumanResponse",
    "Multiline",
    "Parameters",
    "ParametersInfo",
    "ParametersResult",
    "PolicyGate",
    "ReviewEditInfo",
    "ReviewEditResult",
    "Tool",
    "ToolSpec",
    "Undecidable",
    "Withdrawn",
    "accept",
    "approval_gate",
    "call_digest",
    "canonical_json",
    "choice_gate",
    "choose_tool",
    "complete_gate",
    "edit",
    "follow_up_tool",
    "guard",
    "human_gate",
    "ignore",
    "parameters",
    "policy_gate",
    "respond",
    "review_edit_gate",
    "tagged",
    "tool",
]
