"""Shapes of the HTTP API: the bodies that programs send, and the answers.

Field descriptions are published in the OpenAPI document. Names there have no `Api` in front.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self, TypeAlias, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    PlainSerializer,
    RootModel,
    Strict,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)

from bot.clock import milliseconds

T = TypeVar("T")

_EPOCH = datetime.fromtimestamp(0, UTC)


def instant(ms: int) -> str:
    """Return a time as the API writes it: RFC 3339 in UTC, with milliseconds.

    Args:
        ms: Milliseconds since the epoch.
    """
    seconds, rest = divmod(ms, 1000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:03d}Z"


def _from_instant(value: object) -> object:
    if not isinstance(value, str):
        return value
    with suppress(ValueError, OverflowError):
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is not None:
            return milliseconds(moment.astimezone(UTC) - _EPOCH)
    raise ValueError("is no time with its zone, such as 2026-11-23T10:00:00Z")


Instant: TypeAlias = Annotated[
    int,
    BeforeValidator(_from_instant),
    PlainSerializer(instant, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
"""Milliseconds since the epoch; RFC 3339 text on the wire."""

Several: TypeAlias = Annotated[tuple[T, ...], Strict(strict=False)]
"""A list on the wire."""

RequestKind: TypeAlias = Literal["approval", "edit", "question", "choice", "form"]
RequestStatus: TypeAlias = Literal[
    "pending", "approved", "rejected", "answered", "expired", "cancelled", "failed"
]
RunMode: TypeAlias = Literal["once", "idempotent", "none"]
RunState: TypeAlias = Literal[
    "waiting", "ready", "started", "ran", "failed", "not_run", "unknown", "lapsed"
]
ApiRisk: TypeAlias = Literal["low", "medium", "high", "critical"]
FailureCode: TypeAlias = Literal[
    "nobody-can-decide", "cannot-be-shown", "channel-gone", "policy-unreadable"
]
ThreadStatus: TypeAlias = Literal[
    "queued", "working", "waiting", "done", "failed", "stopped", "expired"
]

_OPEN = frozenset({"pending", "queued", "working", "waiting"})

ENDPOINT_ID = r"^whe_[0-9a-f]{24}$"
REQUEST_ID = r"^apr_[0-9a-f]{32}$"
THREAD_ID = r"^thr_[0-9a-f]{32}$"
MOST_TEXT = 12_000
"""Longest input of a thread that no person starts, in characters."""
TRIGGER = r"^[a-z][a-z0-9-]{0,39}$"
DIGEST = r"^sha256:[0-9a-f]{64}$"

RequestId: TypeAlias = Annotated[str, StringConstraints(pattern=REQUEST_ID)]
Digest: TypeAlias = Annotated[str, StringConstraints(pattern=DIGEST)]
UserId: TypeAlias = Annotated[
    str, StringConstraints(min_length=2, max_length=32, pattern=r"^[UW][A-Z0-9]+$")
]
UserOrGroupId: TypeAlias = Annotated[
    str, StringConstraints(min_length=2, max_length=32, pattern=r"^[UWS][A-Z0-9]+$")
]
ChannelId: TypeAlias = Annotated[
    str, StringConstraints(min_length=2, max_length=32, pattern=r"^[CGD][A-Z0-9]+$")
]
Metadata: TypeAlias = dict[
    Annotated[str, StringConstraints(max_length=40, pattern=r"^[A-Za-z0-9_.-]+$")],
    Annotated[str, StringConstraints(max_length=500)],
]
OneLine: TypeAlias = Annotated[
    str,
    StringConstraints(
        min_length=1, max_length=150, pattern=r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]*$"
    ),
]
WebUrl: TypeAlias = Annotated[
    str, StringConstraints(max_length=2000, pattern=r"^https?://[^\s\x00-\x1f]+$")
]


class _Asked(BaseModel):
    """A body that a program sends: unknown members are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class _Answered(BaseModel):
    """An answer: members may be added to it, and programs must ignore unknown ones."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        populate_by_name=True,
        json_schema_extra={"additionalProperties": True},
    )


class ApiOption(_Asked):
    """One answer of a choice."""

    value: str = Field(
        min_length=1, max_length=100, description="What the program gets back. Unique in the list."
    )
    label: str = Field(min_length=1, max_length=75, description="What people see.")
    description: str | None = Field(
        default=None, max_length=200, description="A line below the label."
    )


class ApiPreview(_Asked):
    """Effect of the call, as the program tells it. Shown as text, marked as the program's words."""

    format: Literal["text", "diff", "table"] = "text"
    text: str | None = Field(default=None, max_length=32_768, description="For `text` and `diff`.")
    columns: Several[Annotated[str, StringConstraints(max_length=75)]] | None = Field(
        default=None, max_length=10, description="For `table`."
    )
    rows: (
        Several[
            Annotated[
                Several[Annotated[str, StringConstraints(max_length=500)]], Field(max_length=10)
            ]
        ]
        | None
    ) = Field(default=None, max_length=200, description="For `table`.")

    @model_validator(mode="after")
    def _has_its_own_members(self) -> Self:
        is_table = self.format == "table"
        has = (self.text is not None, self.columns is not None, self.rows is not None)
        if has != (not is_table, is_table, is_table):
            raise ValueError("`table` has `columns` and `rows`, other formats have `text`")
        if any(len(row) != len(self.columns or ()) for row in self.rows or ()):
            raise ValueError("each row has as many cells as `columns`")
        return self


class ApiSource(_Asked):
    """Where in the program the request arose. Shown small; decides nothing."""

    framework: str | None = Field(default=None, max_length=60)
    agent: str | None = Field(default=None, max_length=120)
    run: str | None = Field(default=None, max_length=200)
    call: str | None = Field(default=None, max_length=200)
    url: WebUrl | None = Field(
        default=None, description="A page of the program about it. Shown as text, with its host."
    )


class ApiWhere(_Asked):
    """Where the card stands. The policy's `route` outranks it."""

    channel: ChannelId | None = Field(
        default=None, description="A channel of the key. Absent: the first channel of the key."
    )
    group: str | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        description="Requests of one program, channel and group stand in one Slack thread.",
    )
    group_title: OneLine | None = Field(
        default=None,
        description="First message of that thread; the first request of a group sets it.",
    )


class ApiCreateRequest(_Asked):
    """Ask people."""

    kind: RequestKind = Field(
        default="approval",
        description="approval: yes or no. edit: yes, no, or yes with changes. question: free text. "
        "choice: one or several of `options`. form: an object that fits `schema`.",
    )
    title: OneLine = Field(description="Verb and object, one line. No control characters.")
    why: str | None = Field(
        default=None, max_length=3000, description="Why, in the program's words; marked as such."
    )
    preview: ApiPreview | None = None
    tool: (
        Annotated[
            str,
            StringConstraints(
                min_length=1, max_length=128, pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.:/-]*$"
            ),
        ]
        | None
    ) = Field(
        default=None,
        description="Name that the policy judges. Required for approval and edit; must fit a tool "
        "pattern of the key.",
    )
    arguments: dict[str, JsonValue] | None = Field(
        default=None,
        description="What will run, whole. At most 64 KiB as canonical JSON, depth 16, 1,000 "
        "members in all, integers within ±(2^53-1). Required for approval and edit.",
    )
    secret: Several[Annotated[str, StringConstraints(min_length=1, max_length=200)]] = Field(
        default=(), max_length=50, description="Paths (dots) of arguments that nobody is shown."
    )
    options: Several[ApiOption] | None = Field(
        default=None, min_length=2, max_length=20, description="For choice."
    )
    multiple: bool = Field(default=False, description="For choice: several may be picked.")
    call_schema: dict[str, JsonValue] | None = Field(
        default=None,
        alias="schema",
        description="JSON Schema 2020-12, at most 32 KiB, a subset: of the arguments (edit), or of "
        "the answer (form).",
    )
    tags: Several[
        Annotated[str, StringConstraints(max_length=40, pattern=r"^[a-z][a-z0-9-]*$")]
    ] = Field(
        default=(),
        max_length=20,
        description="Claims about the call. They make a condition of the policy undecided, not "
        "true, unless the key is trusted for tags.",
    )
    risk: ApiRisk | None = Field(
        default=None, description="Can only raise the risk that the policy gives."
    )
    execution: RunMode = Field(
        default="once",
        description="once: `start` must be called, and works once. idempotent: `start` may be "
        "repeated, always with the same execution_id. none: there is no `start`. Questions, "
        "choices and forms have none.",
    )
    run_timeout: int = Field(
        default=900,
        ge=10,
        le=86_400,
        description="Seconds from `start` until, with nothing reported, the outcome is unknown and "
        "people are asked.",
    )
    where: ApiWhere = ApiWhere()
    people: Several[UserOrGroupId] = Field(
        default=(),
        max_length=20,
        description="Approval and edit: only these of the people that the policy names. Else: who "
        "may answer. Needs the key's permission.",
    )
    requested_for: UserId | None = Field(
        default=None,
        description="The person whose wish this is. Becomes a requester, so cannot approve. Needs "
        "the key's permission.",
    )
    expires_in: int | None = Field(
        default=None,
        ge=60,
        le=2_592_000,
        description="Seconds. Can only shorten the time of the policy; absent: the policy's.",
    )
    repeat: Literal["same", "after_use"] = Field(
        default="same",
        description="same: the idempotency key names one request for ever. after_use: it names the "
        "newest one, until that was used: reported as delivered, or read once if it has no start; "
        "or has lapsed or ended; a rejection counts for 10 minutes.",
    )
    callback_url: (
        Annotated[str, StringConstraints(max_length=2000, pattern=r"^https://[^\s\x00-\x1f]+$")]
        | None
    ) = Field(
        default=None, description="Gets this request's events, signed. Needs a host of the key."
    )
    state: str | None = Field(
        default=None, max_length=8192, description="Echoed in answers and events; never shown."
    )
    metadata: Metadata = Field(
        default={}, max_length=16, description="Echoed; can be listed by. Shown to nobody."
    )
    source: ApiSource = ApiSource()

    @model_validator(mode="before")
    @classmethod
    def _questions_run_nothing(cls, body: Any) -> Any:
        if isinstance(body, dict) and body.get("kind") in ("question", "choice", "form"):
            return {"execution": "none", **body}
        return body

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Self:
        is_call = self.kind in ("approval", "edit")
        call = (self.tool, self.arguments, self.secret or None)
        values = [option.value for option in self.options or ()]
        faults = {
            "approval and edit need `tool` and `arguments`": is_call and None in call[:2],
            "only approval and edit have `tool`, `arguments` and `secret`": not is_call
            and call != (None, None, None),
            "`execution` of a question is `none`": not is_call and self.execution != "none",
            "a choice, and nothing else, has `options`": (self.options is None)
            is (self.kind == "choice"),
            "only a choice has `multiple`": self.multiple and self.kind != "choice",
            "a form needs `schema`": self.kind == "form" and self.call_schema is None,
            "only edit and form have `schema`": self.call_schema is not None
            and self.kind not in ("edit", "form"),
            "each `value` of `options` stands once": len(set(values)) < len(values),
        }
        if wrong := [text for text, is_wrong in faults.items() if is_wrong]:
            raise ValueError("; ".join(wrong))
        return self


class ApiCancel(_Asked):
    """Withdraw a request."""

    reason: str | None = Field(default=None, max_length=500)


class ApiStart(_Asked):
    """The last write before the program acts."""

    digest: Digest = Field(
        description="Made by the program from what it is about to run, not copied."
    )
    attempt: str = Field(
        min_length=16,
        max_length=64,
        pattern=r"^[A-Za-z0-9_-]+$",
        description="Random, new for each process that may run it, kept in memory only. The same "
        "one again gets the same answer.",
    )
    runner: OneLine = Field(max_length=120, description="Host, job or process; on the card.")
    run_timeout: int | None = Field(default=None, ge=10, le=86_400)


class ApiResult(_Asked):
    """Outcome of a start; or that it still runs."""

    outcome: Literal["running", "ran", "failed", "not_run", "unknown"] | None = Field(
        default=None, description="Absent only with delivered: true."
    )
    delivered: bool | None = Field(
        default=None,
        description="true: the caller has the result; with repeat: after_use the key is used up.",
    )
    summary: str | None = Field(
        default=None, max_length=3000, description="Text; masked like the log, shown on the card."
    )
    url: WebUrl | None = None
    token: str | None = Field(
        default=None,
        min_length=1,
        max_length=100,
        description="Of the start; required after a second start. Without it, the card says so.",
    )

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.outcome is None and not self.delivered:
            raise ValueError("needs `outcome`, or `delivered: true`")
        return self


class ApiIntrospect(_Asked):
    """The question of a third service whether a start is real."""

    token: str = Field(min_length=1, max_length=100)
    digest: Digest
    consume: bool = Field(
        default=False, description="A service that acts on it marks it used: true works once."
    )


class ApiQuery(BaseModel):
    """A query: its members are texts, and unknown ones are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ApiWaitQuery(ApiQuery):
    """How long to hold a call."""

    wait: int = Field(
        default=0,
        ge=0,
        le=55,
        description="Seconds to hold the answer until it is over; then the present state.",
    )


class ApiGetQuery(ApiWaitQuery):
    """When to answer."""

    after: int | None = Field(
        default=None,
        ge=0,
        description="With wait: until the revision is greater than this.",
    )


class ApiListQuery(ApiQuery):
    """Conditions of a list of requests."""

    status: tuple[RequestStatus, ...] = Field(default=(), description="One or several.")
    execution: tuple[RunState, ...] = Field(default=(), description="One or several.")
    group: str | None = Field(default=None, max_length=200, description="Of where.group.")
    key: str | None = Field(
        default=None,
        max_length=200,
        description="Of this idempotency key: the newest generation, or none.",
    )
    metadata: str | None = Field(
        default=None,
        max_length=541,
        pattern=r"^[A-Za-z0-9_.-]+=.*$",
        description="name=value, exactly.",
    )
    created_after: Instant | None = None
    limit: int = Field(default=20, ge=1, le=100, description="Items of a page.")
    cursor: str | None = Field(
        default=None,
        max_length=500,
        description="From next_cursor; opaque; bound to the other parameters.",
    )


class ApiPerson(_Answered):
    """A person of the workspace."""

    id: str
    name: str = Field(description="As Slack shows it at that time; never for decisions.")


class ApiProgram(_Answered):
    """A program that asks."""

    id: str
    name: str


class ApiPlace(_Answered):
    """Where the card stands."""

    channel: str | None = None
    thread_ts: str | None = None
    permalink: str | None = None


class ApiRequirement(_Answered):
    """One requirement of the present stage."""

    name: str
    have: int
    need: int


class ApiProgress(_Answered):
    """How far the decision is. Names nobody who voted before it is decided."""

    stage: int = 1
    stages: int = 1
    requirements: Several[ApiRequirement] = ()
    escalated: bool = False
    reminders: int = 0


class ApiChange(_Answered):
    """One change of an edited call."""

    path: str = Field(description="JSON pointer into arguments.")
    before: JsonValue = None
    after: JsonValue = None


class ApiDecision(_Answered):
    """Decision of people, or of a rule."""

    outcome: Literal["approved", "rejected", "answered"]
    source: Literal["people", "policy", "grant", "break_glass"] = Field(
        description="people at this card; a rule that allows or denies; a standing grant; "
        "break-glass."
    )
    by: Several[ApiPerson] = Field(description="All whose vote counted; empty for a rule.")
    at: Instant
    rule: str | None = None
    reason: str | None = None
    tool: str | None = None
    arguments: dict[str, JsonValue] | None = Field(
        default=None, description="Complete; these run, no others."
    )
    edited: bool = False
    changes: Several[ApiChange] = ()
    answer: JsonValue = Field(
        default=None, description="question: text. choice: value, or a list of them. form: object."
    )
    digest: Digest | None = Field(
        default=None,
        description="SHA-256 over RFC 8785 JSON of {v, request, tool, arguments}; v is "
        "countersign.call/3.",
    )
    usable_until: Instant | None = Field(default=None, description="`start` works until then.")
    usable: bool = Field(
        default=False,
        description="Whether it may be acted on at this moment: approved, in time, not frozen, not "
        "denied since, who decided still entitled. Worked out at each read; what a program with "
        "execution none must look at.",
    )


class ApiExecution(_Answered):
    """The execution of an approved call."""

    mode: RunMode
    state: RunState
    execution_id: str | None = Field(
        default=None,
        description="Stays the same over repeated starts: hand it on as idempotency key.",
    )
    generation: int = 0
    runner: str | None = None
    started_at: Instant | None = None
    deadline: Instant | None = None
    ended_at: Instant | None = None
    summary: str | None = None
    asked: RequestId | None = Field(
        default=None, description="The question to people about an unknown outcome."
    )


class ApiFailure(_Answered):
    """Why people could not be asked."""

    code: FailureCode
    detail: str


class ApiRequest(_Answered):
    """A request, its decision, and what came of it."""

    id: RequestId
    kind: RequestKind
    status: RequestStatus
    revision: int = Field(
        description="Rises with each change that a reader of this resource can see."
    )
    url: str = Field(description="Page for people; shows, never decides.")
    title: str
    why: str | None = None
    tool: str | None = None
    arguments: dict[str, JsonValue] | None = Field(
        default=None, description="As asked; what runs is decision.arguments."
    )
    call_schema: dict[str, JsonValue] | None = Field(default=None, alias="schema")
    options: Several[ApiOption] | None = None
    program: ApiProgram
    requested_for: str | None = None
    requesters: Several[str] = Field(
        description="User ids that cannot approve because their words led to it."
    )
    place: ApiPlace
    risk: ApiRisk | None = None
    rules: Several[str] = ()
    created_at: Instant
    updated_at: Instant
    expires_at: Instant
    decided_at: Instant | None = None
    progress: ApiProgress | None = None
    decision: ApiDecision | None = None
    execution: ApiExecution
    failure: ApiFailure | None = None
    generation: int = Field(
        default=1, description="Of its idempotency key, with repeat: after_use."
    )
    state: str | None = None
    metadata: dict[str, str] = {}
    source: ApiSource | None = None


class ApiCreateThread(_Asked):
    """Let an agent of this bot work on something, without a person's message."""

    agent: str | None = Field(
        default=None, min_length=1, max_length=80, description="By name; absent: the channel's."
    )
    channel: ChannelId | None = Field(
        default=None, description="A channel of the key. Absent: the first channel of the key."
    )
    title: OneLine = Field(description="First message of the thread.")
    text: str = Field(
        min_length=1,
        max_length=MOST_TEXT,
        description="What the agent gets. Marked as data of a program, not as a person's words.",
    )
    requested_for: UserId | None = Field(
        default=None, description="The person for whom the program asks. Only excludes that person."
    )
    expires_in: int = Field(
        default=86_400, ge=60, le=2_592_000, description="Seconds until the thread is stopped."
    )
    metadata: Metadata = Field(default={}, max_length=16, description="Echoed. Shown to nobody.")


class ApiThread(_Answered):
    """A thread that no person started."""

    id: str
    status: ThreadStatus
    revision: int
    url: str = Field(description="Leads to the thread in Slack.")
    agent: str
    place: ApiPlace
    program: ApiProgram
    requesters: Several[str] = Field(
        description="User ids that cannot approve what comes of it: the owner, and requested_for."
    )
    created_at: Instant
    expires_at: Instant
    pending: Several[RequestId] = Field(default=(), description="Undecided requests of the agent.")
    last_text: str | None = Field(
        default=None, description="What the agent said last: up to 4,000 characters, masked."
    )
    failure: str | None = Field(default=None, description="Why no thread began.")
    depth: int = Field(default=1, description="How many starts without a person led to it.")
    metadata: dict[str, str] = {}


def has_news(state: ApiRequest | ApiThread, after: int | None) -> bool:
    """Whether a program that waits gets this state now.

    Args:
        state: The present state.
        after: The revision that the program knows; None if it waits for the end.
    """
    return state.status not in _OPEN if after is None else state.revision > after


class ApiRequestList(_Answered):
    """One page of requests, newest first."""

    items: Several[ApiRequest]
    next_cursor: str | None = None


class ApiStarted(_Answered):
    """A start that was allowed."""

    token: str = Field(description="cst_…; proves this start. Kept hashed.")
    execution_id: str
    generation: int
    deadline: Instant
    replayed: bool
    arguments: dict[str, JsonValue]


class ApiIntrospection(_Answered):
    """Whether a start is real."""

    active: bool
    request: RequestId | None = None
    program: ApiProgram | None = None
    execution_id: str | None = None
    deadline: Instant | None = None
    consumed: bool | None = None


class ApiMe(_Answered):
    """Rights of a key."""

    program: ApiProgram
    owner: ApiPerson
    key: str
    scopes: Several[str]
    tools: Several[str]
    channels: Several[str]
    people: str
    requester: str
    expires_at: Instant | None = None
    limits: dict[str, int]
    callback_secret: str | None = Field(
        default=None,
        description="whsec_…; signs the events that go to a `callback_url`. Only for keys with "
        "callback hosts.",
    )


EventType: TypeAlias = Literal[
    "request.created",
    "request.updated",
    "request.decided",
    "execution.started",
    "execution.ended",
    "execution.unknown",
    "thread.ended",
]


class ApiEvent(_Answered):
    """Body of a webhook."""

    type: EventType
    timestamp: Instant
    data: dict[str, JsonValue] = Field(
        description="`sequence`, which rises per request, and `request`: id, status, revision, "
        "kind, tool, metadata, state, url, decision, execution and failure. `thread.ended` has "
        "`thread` instead: id, status, revision, url, agent, metadata, failure and last_text."
    )


class ApiEndpoint(_Asked):
    """An address to which events are sent."""

    url: Annotated[
        str,
        StringConstraints(min_length=1, max_length=2000, pattern=r"^https?://[^\s\x00-\x1f]+$"),
    ] = Field(description="https, and a host of the key; http in a network of the operator.")
    events: Several[EventType] = Field(default=(), max_length=10, description="Empty: all.")
    description: str | None = Field(default=None, max_length=200)


class ApiEndpointOut(_Answered):
    """An endpoint."""

    id: str
    url: str
    events: Several[str]
    description: str | None = None
    status: Literal["on", "paused", "off"] = Field(
        description="paused: it failed for five days. off: its receiver answered 410."
    )
    created_at: Instant
    secret: str | None = Field(
        default=None,
        description="whsec_…; in the answer to its creation and rotation only.",
    )
    last_error: str | None = None


class ApiEndpointList(RootModel[tuple[ApiEndpointOut, ...]]):
    """The endpoints of a program."""


class ApiDelivery(_Answered):
    """An event at an endpoint."""

    id: str = Field(description="The webhook-id.")
    endpoint: str
    event: str
    request: str
    sequence: int
    status: Literal["waiting", "delivered", "given_up"]
    attempts: int
    next_at: Instant | None = None
    last_status: int | None = None
    last_error: str | None = None


class ApiDeliveryList(_Answered):
    """A page of deliveries: what waits first, then the newest."""

    items: Several[ApiDelivery]
    next_cursor: str | None = None


class ApiDeliveryQuery(ApiQuery):
    """Conditions of a list of deliveries."""

    status: Literal["waiting", "delivered", "given_up"] | None = None
    limit: int = Field(default=20, ge=1, le=100, description="Items of a page.")
    cursor: str | None = Field(default=None, max_length=500, description="From next_cursor.")


class ApiRedrive(_Asked):
    """The events to send again."""

    since: Instant | None = Field(
        default=None, description="All since then; absent: those that were given up."
    )


class ApiItem(_Answered):
    """One fault of a body."""

    pointer: str
    detail: str


class ApiProblemBody(_Answered):
    """RFC 9457."""

    type: str
    title: str
    status: int
    detail: str | None = None
    instance: str | None = None
    code: str
    errors: Several[ApiItem] | None = None
    request: str | None = None
    retry_after: int | None = None
