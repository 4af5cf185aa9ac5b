"""Gates: wrappers of tools that require people's approval before a call runs."""

from agents.core.asking.answers import (
    ApprovalResult,
    Cancelled,
    Denied,
    Expired,
    InDoubtResult,
    NoApprovers,
    Reasked,
    ReviewEditResult,
    Withdrawn,
)
from agents.core.asking.infos import (
    ApprovalInfo,
    CallInfo,
    FollowUpInfo,
    InDoubtInfo,
    ReviewEditInfo,
)
from agents.gates.approval import (
    Gate,
    PolicyGate,
    approval_gate,
    policy_gate,
    review_edit_gate,
)
from agents.gates.base import CallGate
from agents.gates.choice import CHOOSE_NAME, ChooseTool, choose_argument, choose_tool
from agents.gates.complete import fill_arguments
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
    "CallChoiceInfo",
    "CallGate",
    "CallInfo",
    "Cancelled",
    "Choice",
    "ChoiceInfo",
    "ChoiceResult",
    "ChooseTool",
    "Denied",
    "Expired",
    "FeedbackInfo",
    "FollowUpInfo",
    "FollowUpTool",
    "Gate",
    "GateState",
    "HumanInterrupt",
    "HumanInterruptConfig",
    "HumanResponse",
    "InDoubtInfo",
    "InDoubtResult",
    "Judgement",
    "NoApprovers",
    "ParametersInfo",
    "ParametersResult",
    "PolicyGate",
    "Reasked",
    "ReviewEditInfo",
    "ReviewEditResult",
    "Withdrawn",
    "accept",
    "approval_gate",
    "choose_argument",
    "choose_tool",
    "edit",
    "fill_arguments",
    "follow_up_tool",
    "human_gate",
    "ignore",
    "policy_gate",
    "respond",
    "review_edit_gate",
    "tool",
]
