"""Gates: what stands between a call and its tool until people have agreed."""

from agents.core.asking.answers import (
    ApprovalResult,
    AskedAnew,
    Cancelled,
    Denied,
    DoubtResult,
    Expired,
    ReviewEditResult,
    Undecidable,
    Withdrawn,
)
from agents.core.asking.infos import ApprovalInfo, CallInfo, DoubtInfo, FollowUpInfo, ReviewEditInfo
from agents.gates.approval import Gate, approval_gate, review_edit_gate
from agents.gates.base import CallGate
from agents.gates.choice import CHOOSE_NAME, ChooseTool, choice_gate, choose_tool
from agents.gates.complete import complete_gate
from agents.gates.decorator import tool
from agents.gates.followup import FOLLOW_UP_NAME, FollowUpTool, follow_up_tool
from agents.gates.human import (
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
from agents.gates.policy import PolicyGate, guard, policy_gate
from agents.gates.questions import (
    CallChoiceInfo,
    Choice,
    ChoiceInfo,
    ChoiceResult,
    FeedbackInfo,
    ParametersInfo,
    ParametersResult,
)
from agents.gates.rulings import GateState, Judgement

__all__ = [
    "CHOOSE_NAME",
    "FOLLOW_UP_NAME",
    "ActionRequest",
    "ApprovalInfo",
    "ApprovalResult",
    "AskedAnew",
    "CallChoiceInfo",
    "CallGate",
    "CallInfo",
    "Cancelled",
    "Choice",
    "ChoiceInfo",
    "ChoiceResult",
    "ChooseTool",
    "Denied",
    "DoubtInfo",
    "DoubtResult",
    "Expired",
    "FeedbackInfo",
    "FollowUpInfo",
    "FollowUpTool",
    "Gate",
    "GateState",
    "HumanInterrupt",
    "HumanInterruptConfig",
    "HumanResponse",
    "Judgement",
    "ParametersInfo",
    "ParametersResult",
    "PolicyGate",
    "ReviewEditInfo",
    "ReviewEditResult",
    "Undecidable",
    "Withdrawn",
    "accept",
    "approval_gate",
    "choice_gate",
    "choose_tool",
    "complete_gate",
    "edit",
    "follow_up_tool",
    "guard",
    "human_gate",
    "ignore",
    "policy_gate",
    "respond",
    "review_edit_gate",
    "tool",
]
