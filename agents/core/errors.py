"""All errors of the runtime. The interrupt signal is in `pending.py`.

AgentError
  AgentConfigError               the agent is configured wrongly
    UnstorableValueError         a value would not come back unchanged
      UnregisteredTypeError      a value has an unregistered type
    NoCheckpointStoreError       a resume needs a store
    OutsideRunError              called outside of a run
    DuplicateNameError           two agents or tools share a name that addresses need
  CheckpointError
    CheckpointNotFoundError      (also LookupError)
    CheckpointDecodeError        the stored text is damaged
    CheckpointVersionError       the stored version is newer or unknown
    CheckpointConflictError      another process wrote first
    CheckpointBusyError          the run is in progress
    CheckpointClosedError        the run has ended
  ResumeError
    NothingPendingError          no interrupt is pending
    UnknownInterruptError        the target is not pending
    AmbiguousTargetError         the target fits several interrupts
    ResumeDataError              the answer has the wrong type; nothing ran
    UnusedAnswerError            no interrupt used the answer
    AgentChangedError            the tool or its gates changed
  ToolError                      a tool failed; keeps __cause__
    InvalidArgumentsError        the arguments do not fit the tool's schema
    SwallowedInterruptError      a tool caught the interrupt signal
    NotAnsweredError             a request expired or was cancelled
    LeftInDoubtError             an agent or hook may have run and must not run again
  ModelError                     the model failed; keeps __cause__
    ModelRefusedError            the provider refuses; a retry does not help
    ModelTimeoutError            the model sent nothing for too long
    ModelAnswerError             the model's answer is unreadable
  StepLimitError                 the model asked for too many rounds
  TransferLimitError             agents transferred too often
  RunCancelledError              the run was cancelled; it can be resumed
ProcessExitError                 an agent's code raised `SystemExit` or the like
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

__all__ = [
    "AgentChangedError",
    "AgentConfigError",
    "AgentError",
    "AmbiguousTargetError",
    "ArgumentError",
    "CheckpointBusyError",
    "CheckpointClosedError",
    "CheckpointConflictError",
    "CheckpointDecodeError",
    "CheckpointError",
    "CheckpointNotFoundError",
    "CheckpointVersionError",
    "DuplicateNameError",
    "InvalidArgumentsError",
    "LeftInDoubtError",
    "LimitReachedError",
    "ModelAnswerError",
    "ModelError",
    "ModelRefusedError",
    "ModelTimeoutError",
    "NoCheckpointStoreError",
    "NotAnsweredError",
    "NothingPendingError",
    "OutsideRunError",
    "ProcessExitError",
    "ResumeDataError",
    "ResumeError",
    "RunCancelledError",
    "StepLimitError",
    "SwallowedInterruptError",
    "ToolError",
    "TransferLimitError",
    "UnknownInterruptError",
    "UnregisteredTypeError",
    "UnstorableValueError",
    "UnusedAnswerError",
]


class AgentError(Exception):
    """Base of all errors of the runtime."""


class AgentConfigError(AgentError):
    """The agent is set up wrongly. The error is raised before any model is called."""


class UnstorableValueError(AgentConfigError):
    """A value cannot be stored and read back unchanged. Nothing was stored."""

    def __init__(self, kind: str, fault: str) -> None:
        super().__init__(f"a value of type {kind!r} cannot be stored; {fault}")
        self.kind = kind
        self.fault = fault


class UnregisteredTypeError(UnstorableValueError):
    """A value has a type that is not registered with `register`. Nothing was stored."""

    def __init__(self, kind: str) -> None:
        super().__init__(
            kind,
            "use JSON data, or make the type known before it is used in an interrupt or a session "
            'value: with `@register("a.name/1")`, or a type of a library with `types.add`',
        )


class NoCheckpointStoreError(AgentConfigError):
    """The runner has no store, so a run cannot be kept or resumed."""

    def __init__(self) -> None:
        super().__init__(
            "this runner has no store; give it one: `Runner(agent, checkpoint_store=…)`"
        )


class OutsideRunError(AgentConfigError):
    """A function of the run context was called outside of a run."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} works only inside a run; call it in a tool or an agent of a runner, and in a "
            "thread only by asyncio.to_thread(), which knows the run; run_in_executor() does not"
        )
        self.what = what


class DuplicateNameError(AgentConfigError):
    """Two parts of one agent have the same name, so their addresses would be equal."""

    def __init__(self, owner: str, kind: str, name: str) -> None:
        super().__init__(
            f"{owner!r} has two {kind}s {name!r}; rename one: their interrupts could not be told "
            "apart"
        )
        self.owner = owner
        self.kind = kind
        self.name = name


class CheckpointError(AgentError):
    """A checkpoint cannot be used."""


class CheckpointNotFoundError(CheckpointError, LookupError):
    """The store has no checkpoint with this id."""

    def __init__(self, checkpoint_id: str) -> None:
        super().__init__(f"there is no checkpoint {checkpoint_id!r}; check the id and the store")
        self.checkpoint_id = checkpoint_id


class CheckpointDecodeError(CheckpointError):
    """The stored text is damaged, or is not a checkpoint."""

    def __init__(self, detail: str) -> None:
        super().__init__(f"the checkpoint cannot be read: {detail}")
        self.detail = detail


class CheckpointVersionError(CheckpointError):
    """The checkpoint was stored by a newer or unknown version."""

    def __init__(self, version: object, known: int) -> None:
        super().__init__(
            f"the checkpoint has schema version {version!r}, this program reads up to {known}; "
            "run the version that wrote it, or a newer one"
        )
        self.version = version
        self.known = known


class CheckpointConflictError(CheckpointError):
    """Another writer changed the checkpoint first, or its id is in use."""

    def __init__(
        self, checkpoint_id: str, detail: str = "another process wrote first; load it again"
    ) -> None:
        super().__init__(f"checkpoint {checkpoint_id!r}: {detail}")
        self.checkpoint_id = checkpoint_id
        self.detail = detail


class CheckpointBusyError(CheckpointError):
    """Another run uses this checkpoint, or its process died."""

    def __init__(self, checkpoint_id: str) -> None:
        super().__init__(
            f"checkpoint {checkpoint_id!r} is being worked on; wait for it, "
            "or call `recover` when its process is gone"
        )
        self.checkpoint_id = checkpoint_id


class CheckpointClosedError(CheckpointError):
    """The run has ended and cannot be resumed."""

    def __init__(self, checkpoint_id: str) -> None:
        super().__init__(
            f"checkpoint {checkpoint_id!r} is already resolved; a new run needs a new id"
        )
        self.checkpoint_id = checkpoint_id


class ResumeError(AgentError):
    """A resume was refused. All pending interrupts are still pending.

    Attributes:
        target: Id or address of the interrupt; empty if unknown or if there is none.
    """

    target: str = ""


class NothingPendingError(ResumeError):
    """No interrupt is pending."""

    def __init__(self, checkpoint_id: str) -> None:
        super().__init__(
            f"nothing is pending in checkpoint {checkpoint_id!r}: there is no question to answer; "
            "begin with a new message or input"
        )
        self.checkpoint_id = checkpoint_id


class UnknownInterruptError(ResumeError):
    """The target is not pending: it does not exist, or it was answered."""

    def __init__(self, target: str, pending: Sequence[str] = ()) -> None:
        waiting = ", ".join(pending) or "none"
        super().__init__(f"no interrupt {target!r} is pending; pending are: {waiting}")
        self.target = target
        self.pending = tuple(pending)


class AmbiguousTargetError(ResumeError):
    """A target fits several interrupts, or two targets mean the same interrupt."""

    def __init__(self, target: str, pending: Sequence[str]) -> None:
        super().__init__(
            f"the target {target!r} is not the only way to read {', '.join(pending)}; "
            "name each interrupt once, by its id"
        )
        self.target = target
        self.pending = tuple(pending)


class ResumeDataError(ResumeError):
    """The answer is missing, has the wrong type, or does not fit. Nothing ran."""

    def __init__(self, message: str, *, target: str = "") -> None:
        super().__init__(message)
        self.target = target


class UnusedAnswerError(ResumeError):
    """No interrupt used an accepted answer. Results of calls that ran are stored."""

    def __init__(self, address: str, *, target: str = "") -> None:
        super().__init__(
            f"nobody used the answer for {address}: what asked there is not there any more, or has "
            "not looked at it; what ran instead is stored: look at that, and ask again if need be"
        )
        self.address = address
        self.target = target


class AgentChangedError(ResumeError):
    """A tool or its gate changed after people were asked."""

    def __init__(self, address: str, was: str, now: str) -> None:
        super().__init__(
            f"{address} was interrupted with {was}, now there is {now}; "
            "start the version that asked, or cancel and ask again"
        )
        self.address = address
        self.was = was
        self.now = now


class ProcessExitError(Exception):
    """An agent's code raised an exception that ends a process, such as `SystemExit`.

    Not an `AgentError`: callers treat it like any other error of the agent's code.

    Attributes:
        kind: Name of the exception, such as `SystemExit`.
    """

    def __init__(self, error: BaseException) -> None:
        self.kind = type(error).__name__
        description = f"{self.kind}: {error}".rstrip(": ")
        super().__init__(f"it raised {description}, which would have ended the process")


class ToolError(AgentError):
    """A tool failed. The model is told, and the run continues."""


@dataclass(frozen=True, slots=True)
class ArgumentError:
    """One fault in the arguments of a call; part of `InvalidArgumentsError`.

    Attributes:
        path: Field names and list positions; empty for the arguments as a whole.
        message: What is wrong.
    """

    path: tuple[str | int, ...]
    message: str


class InvalidArgumentsError(ToolError):
    """The arguments of a call do not fit the tool's schema. Nothing ran."""

    def __init__(self, errors: Sequence[ArgumentError]) -> None:
        problems = "; ".join(f"{_path(error.path)}: {error.message}" for error in errors)
        super().__init__(f"the arguments do not fit: {problems}")
        self.errors = tuple(errors)


class SwallowedInterruptError(ToolError):
    """A tool caught the interrupt signal. Its result is not used."""

    def __init__(self, address: str) -> None:
        super().__init__(
            f"{address} caught the interrupt signal; it must pass through: "
            "use `except Exception`, or raise it again"
        )
        self.address = address


class NotAnsweredError(ToolError):
    """A request has no answer: it expired or was cancelled.

    Raised when the answer is read, unless the reader's type includes the outcome:
    `get_resume_context(str | Expired)`, `node_interrupt(…, response_type=str | Cancelled)`.

    Attributes:
        asked: Name of the node, or address, that asked.
        outcome: An `Expired` or a `Cancelled`.
    """

    def __init__(self, asked: str, outcome: object) -> None:
        super().__init__(f"the question of {asked} has no answer: {outcome}")
        self.asked = asked
        self.outcome = outcome


class LeftInDoubtError(ToolError):
    """An agent or a hook had started with an answer when its process died.

    People decided not to run it again.
    """

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name!r} was started with an answer, and the process stopped before it finished; "
            "nobody knows whether it took effect, and it does not run again"
        )
        self.name = name


class ModelError(AgentError):
    """The model did not answer, or its answer cannot be used.

    Attributes:
        retry_after: Seconds that the provider asks to wait; 0 if it does not say.
    """

    def __init__(self, text: str, *, retry_after: float = 0) -> None:
        super().__init__(text)
        self.retry_after = retry_after


class ModelTimeoutError(ModelError):
    """The model sent nothing within the time limit.

    Attributes:
        seconds: The time limit.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the model sent nothing for {seconds:g} seconds")
        self.seconds = seconds


class ModelAnswerError(ModelError):
    """The model's answer is empty or unreadable."""


ModelFault = Literal["key", "model", "quota", "length", "filter", "request"]
"""Why a provider refuses: the key, the model's name, the account's quota, the
length of the input, the content, or the request itself."""


class ModelRefusedError(ModelError):
    """The provider refused the request. A retry does not help.

    The error text contains nothing that the provider sent, because that may repeat a key or the
    conversation.

    Attributes:
        fault: What the provider refuses.
        model: The model's name; may be empty.
        said: The model's own words when it declines; usually empty. Untrusted.
    """

    def __init__(self, fault: ModelFault, model: str = "", *, said: str = "") -> None:
        what = _REFUSED[fault]
        super().__init__(f"the provider of the model{f' {model!r}' if model else ''} {what}")
        self.fault: ModelFault = fault
        self.model = model
        self.said = said


_REFUSED: Mapping[ModelFault, str] = {
    "key": "does not accept the key, or does not let it use this model; check both",
    "model": "knows no such model; check its name, and the address if it is one of your own",
    "quota": "says that the account may use no more; raise its limit, or pay its bill",
    "length": "says that the conversation is too long for it; begin a new one",
    "filter": "declines to answer this: its content filter, or the model, stops it",
    "request": "refuses what it was sent; check that the model takes tools and these settings",
}


class StepLimitError(AgentError):
    """The model asked for more rounds than `max_iterations` allows."""

    def __init__(self, agent_name: str, limit: int) -> None:
        super().__init__(
            f"agent {agent_name!r} used all {limit} rounds and still wants to call tools; "
            "raise `max_iterations`, or give it a smaller task"
        )
        self.agent_name = agent_name
        self.limit = limit


class LimitReachedError(AgentError):
    """A limit of what models may use is reached, and no one let the run go on.

    Attributes:
        limit: Name of the limit.
        used: What was used, one sentence.
    """

    def __init__(self, limit: str, used: str) -> None:
        super().__init__(f"the limit of {limit} is reached: {used}")
        self.limit = limit
        self.used = used


class TransferLimitError(AgentError):
    """Agents transferred to each other too often."""

    def __init__(self, agent_name: str, limit: int) -> None:
        super().__init__(
            f"agent {agent_name!r} would hand over once more, and {limit} agents have done so "
            "already; tell them in their instructions who has to end the task"
        )
        self.agent_name = agent_name
        self.limit = limit


class RunCancelledError(AgentError):
    """The run was cancelled at a safe point. It can be resumed if it has a checkpoint.

    Attributes:
        checkpoint_id: Empty if the run is not stored and cannot be resumed.
        contexts: All pending interrupts (`InterruptContext`), among them one with a `CancelInfo`
            where the run was cancelled.
    """

    def __init__(self, checkpoint_id: str, contexts: Sequence[Any]) -> None:
        super().__init__(
            f"the run was stopped; `resume_with_params({checkpoint_id!r}, ResumeParams())` goes on,"
            " with answers or without"
            if checkpoint_id
            else "the run was stopped and cannot go on, as nothing was kept; give the runner a "
            "store, and the run a checkpoint id"
        )
        self.checkpoint_id = checkpoint_id
        self.contexts = tuple(contexts)


def _path(path: tuple[str | int, ...]) -> str:
    return ".".join(str(step) for step in path) or "arguments"
