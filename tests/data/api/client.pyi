"""countersign_client: a decision of people in Slack, for any Python program. Needs httpx and pydantic. Python 3.10+.

Ten lines:

    from countersign_client import gate

    @gate(tool="deploy", title="Deploy {service} to {env}")
    def deploy(service: str, env: str) -> str:
        return run(f"./deploy.sh {service} {env}")

    deploy("payments", "production")   # asks, waits, runs what was approved, reports; raises Rejected, Expired ...
"""

from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Generic, Literal, ParamSpec, Self, TypeVar, overload
import httpx
from pydantic import BaseModel

P = ParamSpec("P")
R = TypeVar("R")
M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")
Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]
Seconds = float | timedelta
Status = (
    Literal["pending", "approved", "rejected", "answered", "expired", "cancelled", "failed"] | str
)
ExecutionMode = Literal["once", "idempotent", "none"]

# ---- results: pydantic, frozen, unknown members kept -------------------------------------------
class Person(BaseModel):
    id: str
    name: str

class Change(BaseModel):
    path: str
    before: Any
    after: Any

class Decision(BaseModel):
    """What people decided. `arguments` are complete: run these and no others."""

    outcome: Literal["approved", "rejected", "answered"]
    source: Literal["people", "policy", "grant", "break_glass"]
    by: tuple[Person, ...]
    at: datetime
    rule: str | None
    reason: str | None
    tool: str | None
    arguments: dict[str, Any] | None
    edited: bool
    changes: tuple[Change, ...]
    answer: Any
    digest: str | None
    usable_until: datetime | None
    usable: bool  # may be acted on at the moment of that read

class Execution(BaseModel):
    mode: ExecutionMode
    state: str
    execution_id: str | None
    generation: int
    summary: str | None

class Request(BaseModel):
    id: str
    kind: str
    status: Status
    revision: int
    url: str
    title: str
    tool: str | None
    arguments: dict[str, Any] | None
    expires_at: datetime
    decision: Decision | None
    execution: Execution
    state: str | None
    metadata: dict[str, str]
    @property
    def is_over(self) -> bool:
        """Whether nothing but its execution can change any more; true also for a status that this version does not know."""
    def approved(self) -> Decision:
        """The decision if it is approved; else raises what its end is (Rejected, Expired, Cancelled, Failed, StillPending)."""
    def check(self, tool: str, arguments: Mapping[str, Any]) -> None:
        """Raise DigestMismatch unless exactly this was approved; made from these values, not from the decision's digest."""

# ---- errors -----------------------------------------------------------------------------------
class CountersignError(Exception):
    """Root of all."""

class NotApproved(CountersignError):
    """People (or silence) did not agree. `except NotApproved` is all that most programs need."""

    request: Request

class Rejected(NotApproved):
    """Somebody said no, or a rule did (`request.decision.source`)."""

    reason: str | None

class Expired(NotApproved):
    """Nobody answered in time. Not a rejection."""

class Cancelled(NotApproved):
    """Withdrawn by the program or by who asked."""

class Failed(NotApproved):
    """People could not be asked: `code` says why."""

    code: str

class StillPending(NotApproved):
    """`wait` ended before the request did. The request lives; `resume(id)`."""

class NotStarted(CountersignError):
    """The start was refused."""

    code: str
    request: Request

class AlreadyStarted(NotStarted):
    """Another process began it: whether it ran, only people or its log know."""

class DecisionLapsed(NotStarted):
    """Approved, but too long ago. Ask again with a new key."""

class Frozen(NotStarted):
    """Everything is frozen by an admin."""

class DigestMismatch(NotStarted):
    """What is to run is not what was approved."""

class Unreachable(CountersignError):
    """No answer within `patience`. Nothing was approved."""

class ApiError(CountersignError):
    """A problem (RFC 9457)."""

    status: int
    code: str
    detail: str | None
    errors: tuple[tuple[str, str], ...]

class KeyRefused(ApiError):
    """401 or 403."""

class InvalidRequest(ApiError):
    """400, 413, 422: a fault of the program."""

class Busy(ApiError):
    """429 or 503, after all retries."""

    retry_after: float | None

# ---- clients ----------------------------------------------------------------------------------
class Countersign:
    """A client for programs without an event loop. Threads may share it.

    cs = Countersign()                                  # COUNTERSIGN_URL, COUNTERSIGN_KEY
    done = cs.approve("Delete 3 backups", tool="backups.delete", arguments={"ids": ids}, key=f"clean-{day}")
    with cs.execute(done) as run:                        # starts once
        delete(**run.arguments)                          # leaves: reports ran; raises: reports failed
    """
    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        patience: Seconds = 60,
        http: httpx.Client | None = None,
        source: str | None = None,
        user_agent: str | None = None,
    ) -> None:
        """`patience`: how long an unreachable server is tried within one call (a wait goes on over any outage). https is required, but for loopback; redirects are never followed; the key never appears in repr or errors."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self, a: type[BaseException] | None, b: BaseException | None, c: TracebackType | None
    ) -> None: ...
    def close(self) -> None: ...
    # ask
    def create(
        self,
        title: str,
        *,
        key: str,
        kind: str = "approval",
        tool: str | None = None,
        arguments: Mapping[str, Any] | BaseModel | None = None,
        why: str | None = None,
        preview: str | Mapping[str, Any] | None = None,
        schema: Mapping[str, Any] | type[BaseModel] | None = None,
        options: Sequence[str | Mapping[str, str]] | None = None,
        multiple: bool = False,
        secret: Sequence[str] = (),
        tags: Sequence[str] = (),
        risk: str | None = None,
        execution: ExecutionMode = "once",
        run_timeout: Seconds = 900,
        channel: str | None = None,
        group: str | None = None,
        group_title: str | None = None,
        people: Sequence[str] = (),
        requested_for: str | None = None,
        expires_in: Seconds | None = None,
        repeat: Literal["same", "after_use"] = "same",
        callback_url: str | None = None,
        state: str | None = None,
        metadata: Mapping[str, str] | None = None,
        source: Mapping[str, str] | None = None,
    ) -> Request:
        """Ask, and return at once. Safe to call again with the same key: the same request."""
    def approve(
        self,
        title: str,
        *,
        key: str,
        tool: str,
        arguments: Mapping[str, Any] | BaseModel,
        wait: Seconds | None = None,
        **more: Any,
    ) -> Request:
        """Ask and wait for a yes. Returns an approved request; raises NotApproved for each other end, StillPending after `wait` (None: as long as the request lives)."""
    def edit(
        self,
        title: str,
        *,
        key: str,
        tool: str,
        arguments: Mapping[str, Any] | BaseModel,
        schema: Mapping[str, Any] | type[BaseModel] | None = None,
        wait: Seconds | None = None,
        **more: Any,
    ) -> Request:
        """As approve; people may change arguments. Those of the decision are validated against `schema` (or the model of `arguments`) before they are returned."""
    @overload
    def ask(
        self,
        question: str,
        *,
        key: str,
        options: Sequence[str],
        multiple: Literal[False] = False,
        wait: Seconds | None = None,
        **more: Any,
    ) -> str: ...
    @overload
    def ask(
        self,
        question: str,
        *,
        key: str,
        options: Sequence[str],
        multiple: Literal[True],
        wait: Seconds | None = None,
        **more: Any,
    ) -> list[str]: ...
    @overload
    def ask(
        self, question: str, *, key: str, answer: type[M], wait: Seconds | None = None, **more: Any
    ) -> M:
        """Ask what only people know: free text, one of `options`, or a form made from a pydantic model.

        region = cs.ask("Which region first?", key=f"region-{run}", options=["eu", "us"])
        """
    @overload
    def ask(self, question: str, *, key: str, wait: Seconds | None = None, **more: Any) -> str: ...
    # wait, resume
    def get(self, id: str) -> Request: ...
    def find(self, key: str) -> Request | None:
        """The request of a key of this program, also after a restart of everything. Computed by the server; None if it was never made."""
    def wait(self, request: Request | str, timeout: Seconds | None = None) -> Request:
        """Until it is over. Goes on over outages, restarts and shutdowns of the server. Raises StillPending at the timeout; nothing is cancelled. KeyboardInterrupt leaves the request."""
    def updates(self, request: Request | str) -> Iterator[Request]:
        """Each visible change until it is over; states may be merged."""
    def list(
        self,
        *,
        status: Sequence[Status] = (),
        group: str | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> Iterator[Request]: ...
    def cancel(self, request: Request | str, reason: str | None = None) -> Request: ...
    # run
    def start(
        self,
        request: Request | str,
        *,
        tool: str,
        arguments: Mapping[str, Any],
        runner: str | None = None,
    ) -> "Run":
        """The last call before acting. The digest is made from these arguments."""
    def execute(self, request: Request, *, runner: str | None = None) -> "Run":
        """Start what was decided; a context manager. Leaving it reports `ran`, an exception reports `failed` and goes on; KeyboardInterrupt and SystemExit report `unknown`."""
    def report(
        self,
        request: Request | str,
        outcome: Literal["running", "ran", "failed", "not_run", "unknown"],
        summary: str | None = None,
        *,
        token: str | None = None,
    ) -> Request: ...
    def introspect(
        self,
        token: str,
        *,
        tool: str,
        request: str,
        arguments: Mapping[str, Any],
        consume: bool = True,
    ) -> bool:
        """For the service that acts: is this start real, for this call, unused?"""
    def gate(self, **options: Any) -> Callable[[Callable[P, R]], Callable[P, R]]:
        """As the module's `gate`, with this client."""

class AsyncCountersign:
    """The same with await; `ask`, `approve`, `wait` ... are coroutines, `updates` and `list` async iterators, `execute` an async context manager. Cancelling a task leaves the request."""
    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        patience: Seconds = 60,
        http: httpx.AsyncClient | None = None,
    ) -> None: ...
    async def approve(
        self,
        title: str,
        *,
        key: str,
        tool: str,
        arguments: Mapping[str, Any] | BaseModel,
        wait: Seconds | None = None,
        **more: Any,
    ) -> Request: ...
    async def wait(self, request: Request | str, timeout: Seconds | None = None) -> Request: ...

class Run:
    """A started execution. `arguments` are those to run; hand `execution_id` on as idempotency key."""

    request: Request
    arguments: dict[str, Any]
    token: str
    execution_id: str
    generation: int
    deadline: datetime
    summary: str | None
    def __enter__(self) -> Self: ...
    def __exit__(
        self, a: type[BaseException] | None, b: BaseException | None, c: TracebackType | None
    ) -> bool | None: ...
    def progress(self, text: str) -> None:
        """Still running; moves the deadline. At most one in 5 s is sent."""
    def ran(self, summary: str | None = None) -> None: ...
    def failed(self, summary: str | None = None) -> None: ...

def gate(
    function: Callable[P, R] | None = None,
    *,
    tool: str | None = None,
    title: str | None = None,
    edit: bool = False,
    execution: ExecutionMode = "once",
    key: Callable[..., str] | str | None = None,
    why: Callable[..., str] | str | None = None,
    preview: Callable[..., str] | None = None,
    secret: Sequence[str] = (),
    wait: Seconds | None = None,
    on_reject: Literal["raise", "return"] = "raise",
    client: "Countersign | AsyncCountersign | None" = None,
    **request: Any,
) -> Any:
    """Put people before a function, sync or async.

    Its arguments are bound to names, validated by its annotations (pydantic) and become the request's arguments; its schema is made from
    the signature. It runs with the decided arguments (validated again), at most once, and its end is reported. *args and **kwargs are
    refused at decoration, as is an argument that is no JSON after validation: nobody can approve what cannot be shown.

    key: what makes two calls the same. None: a new random key for each call (a restarted program asks again); a text with {names} of
        arguments ("deploy-{build}") or a function: a restarted program finds the request, and gets the stored result summary by AlreadyStarted.
    on_reject="return": the function returns NotApproved instead of raising it, for agents' tools that hand the text to a model.

        @gate(tool="refund", title="Refund {amount} € to {customer}", edit=True, key="refund-{order}")
        async def refund(order: str, customer: str, amount: float) -> str: ...
    """

def digest(request_id: str, tool: str, arguments: Mapping[str, Any]) -> str:
    """sha256 over RFC 8785."""

def canonical(value: Json) -> bytes:
    """RFC 8785."""

def verify_webhook(
    body: bytes,
    headers: Mapping[str, str],
    secrets: str | Iterable[str],
    *,
    tolerance: Seconds = 300,
) -> "Event":
    """Raise WebhookInvalid, or return the event. Own 30 lines of hmac: no further dependency."""

class Event(BaseModel):
    type: str
    timestamp: datetime
    data: dict[str, Any]

class WebhookInvalid(CountersignError): ...

def text_for_model(error: NotApproved | NotStarted) -> str:
    """One sentence for an agent: rejected with the reason by people / nobody answered within 8 h, this is no rejection / could not be asked."""
