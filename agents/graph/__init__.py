"""Graphs: nodes that share one state and can interrupt at any point."""

from agents.core.errors import NotAnsweredError
from agents.graph.agent import GraphAgent, GraphTool, graph_tool
from agents.graph.builder import CompileOptions, NodeOptions, StateGraph
from agents.graph.commands import END, START, Command, MultipleAnswers, Send, StateUpdate
from agents.graph.compiled import CompiledGraph, StreamMode
from agents.graph.errors import (
    AlreadyAnsweredError,
    GotoError,
    GraphBuildError,
    GraphMismatchError,
    GraphStepLimitError,
    NoCheckpointerError,
    NodeFailedError,
    NodeRefusedError,
    OutsideNodeError,
    QuestionChangedError,
    SeveralPendingError,
    StateChangedError,
    StateUpdateError,
    ThreadBusyError,
)
from agents.graph.messages import (
    MessagesState,
    NothingToCallError,
    ToolsNode,
    ToolsNodeInfo,
    add_messages,
    tools_condition,
)
from agents.graph.nodes.function import NodeContext, task
from agents.graph.nodes.questions import Question, node_interrupt
from agents.graph.state.place import GraphInfo
from agents.graph.state.plan import RetryPolicy
from agents.graph.threads.answers import Resume
from agents.graph.threads.snapshot import GraphResult, Interrupt, StateSnapshot, Task

__all__ = [
    "END",
    "START",
    "AlreadyAnsweredError",
    "Command",
    "CompileOptions",
    "CompiledGraph",
    "GotoError",
    "GraphAgent",
    "GraphBuildError",
    "GraphInfo",
    "GraphMismatchError",
    "GraphResult",
    "GraphStepLimitError",
    "GraphTool",
    "Interrupt",
    "MessagesState",
    "MultipleAnswers",
    "NoCheckpointerError",
    "NodeContext",
    "NodeFailedError",
    "NodeOptions",
    "NodeRefusedError",
    "NotAnsweredError",
    "NothingToCallError",
    "OutsideNodeError",
    "Question",
    "QuestionChangedError",
    "Resume",
    "RetryPolicy",
    "Send",
    "SeveralPendingError",
    "StateChangedError",
    "StateGraph",
    "StateSnapshot",
    "StateUpdate",
    "StateUpdateError",
    "StreamMode",
    "Task",
    "ThreadBusyError",
    "ToolsNode",
    "ToolsNodeInfo",
    "add_messages",
    "graph_tool",
    "node_interrupt",
    "task",
    "tools_condition",
]
