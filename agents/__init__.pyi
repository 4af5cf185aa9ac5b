# At most 60 names: what an author uses daily. `agents/__init__.py` loads each at its first use,
# and type checkers read the same lines. All other public names are in `__all__` of their modules.
# The imports are relative, as lazy_loader wants them.

from .agent import (
    Agent as Agent,
    AgentEvent as AgentEvent,
    AgentInput as AgentInput,
    InterruptEvent as InterruptEvent,
    MessageEvent as MessageEvent,
    TextDelta as TextDelta,
    ToolDelta as ToolDelta,
    ToolEvent as ToolEvent,
    function_agent as function_agent,
    make_message as make_message,
)
from .chat.agent import (
    ChatModelAgent as ChatModelAgent,
)
from .conversation import (
    Conversation as Conversation,
)
from .core.address import (
    Address as Address,
)
from .core.calls import (
    ToolReturn as ToolReturn,
)
from .core.cancel import (
    CancelToken as CancelToken,
)
from .core.checkpoint import (
    CheckpointStore as CheckpointStore,
)
from .core.codec import (
    register as register,
)
from .core.component.context import (
    idempotency_key as idempotency_key,
    report_progress as report_progress,
    session_values as session_values,
)
from .core.component.state import (
    address_segment as address_segment,
    get_interrupt_state as get_interrupt_state,
    get_resume_context as get_resume_context,
)
from .core.errors import (
    AgentConfigError as AgentConfigError,
    AgentError as AgentError,
    CheckpointClosedError as CheckpointClosedError,
    CheckpointError as CheckpointError,
    ResumeDataError as ResumeDataError,
    ResumeError as ResumeError,
    RunCancelledError as RunCancelledError,
    ToolError as ToolError,
)
from .core.interrupt import (
    composite_interrupt as composite_interrupt,
    interrupt as interrupt,
    stateful_interrupt as stateful_interrupt,
)
from .core.observers import (
    ToolOutcome as ToolOutcome,
)
from .core.pending import (
    InterruptContext as InterruptContext,
)
from .gates import (
    ApprovalInfo as ApprovalInfo,
    ApprovalResult as ApprovalResult,
    Cancelled as Cancelled,
    Choice as Choice,
    Expired as Expired,
    FollowUpInfo as FollowUpInfo,
    InDoubtInfo as InDoubtInfo,
    InDoubtResult as InDoubtResult,
    ReviewEditInfo as ReviewEditInfo,
    ReviewEditResult as ReviewEditResult,
    approval_gate as approval_gate,
    choose_argument as choose_argument,
    fill_arguments as fill_arguments,
    follow_up_tool as follow_up_tool,
    policy_gate as policy_gate,
    review_edit_gate as review_edit_gate,
    tool as tool,
)
from .memory import (
    MemoryCheckpointStore as MemoryCheckpointStore,
    MemoryMessageLog as MemoryMessageLog,
)
from .models import (
    AnsweringModel as AnsweringModel,
    ScriptedModel as ScriptedModel,
    resolve_model as resolve_model,
)
from .runner import (
    Runner as Runner,
)
from .runs.answers import (
    ResumeParams as ResumeParams,
)
from .tools import (
    Tool as Tool,
)
