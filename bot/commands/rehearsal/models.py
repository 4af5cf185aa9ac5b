"""The form of a file of cases: every key that may be written, and its type.

A key that does not exist is an error, and so is a person, a channel, a tool or a policy that the
file does not have. Nothing is left out silently: a case that is accepted is played as written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Annotated, Any, Literal, Protocol, TypeAlias, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic_core import ErrorDetails

from bot.errors import BotError

Data: TypeAlias = dict[str, Any]
"""YAML as it is read."""
_USED_ALWAYS = frozenset({"at", "expect"})


class CaseError(BotError):
    """A file of cases cannot be played as it is written."""


class Places(Protocol):
    """The names that the world of a case has."""

    @property
    def people(self) -> Mapping[str, object]:
        """By Slack user id."""
        ...

    @property
    def channels(self) -> Mapping[str, object]:
        """By id."""
        ...

    @property
    def usergroups(self) -> Mapping[str, object]:
        """By id."""
        ...

    @property
    def tools(self) -> Mapping[str, object]:
        """By name."""
        ...

    @property
    def agents(self) -> tuple[str, ...]:
        """Names."""
        ...


@dataclass(frozen=True, slots=True)
class Known:
    """The names that a case may use.

    Attributes:
        world: The world of the case.
        policies: Names of policies in the file.
    """

    world: Places
    policies: frozenset[str]


def _known(name: str, names: Mapping[str, object] | tuple[str, ...], place: str) -> str:
    if name not in names:
        told = ", ".join(names) or "nothing"
        raise ValueError(
            f"{name!r} is not in the world of the case; add it under {place}, or use one of: {told}"
        )
    return name


def _person(name: str, info: ValidationInfo) -> str:
    return _known(name, info.context.world.people, "world.people") if info.context else name


def _channel(name: str, info: ValidationInfo) -> str:
    return _known(name, info.context.world.channels, "world.channels") if info.context else name


def _tool(name: str, info: ValidationInfo) -> str:
    return _known(name, info.context.world.tools, "world.tools") if info.context else name


def _agent(name: str, info: ValidationInfo) -> str:
    return _known(name, info.context.world.agents, "world.agents") if info.context else name


def _policy(given: str | Data, info: ValidationInfo) -> str | Data:
    if isinstance(given, str) and info.context and given not in info.context.policies:
        told = ", ".join(sorted(info.context.policies)) or "none"
        raise ValueError(f"there is no policy {given!r} under policies; there are: {told}")
    return given


UserId: TypeAlias = Annotated[str, AfterValidator(_person)]
ChannelId: TypeAlias = Annotated[str, AfterValidator(_channel)]
ToolName: TypeAlias = Annotated[str, AfterValidator(_tool)]
AgentName: TypeAlias = Annotated[str, AfterValidator(_agent)]
PolicyEntry: TypeAlias = Annotated[str | Data, AfterValidator(_policy)]
_SHORT, _LONG = "a text", "a mapping"


def _form(value: object) -> str:
    return _SHORT if isinstance(value, str) else _LONG


Time: TypeAlias = Annotated[str, Field(pattern=r"^\+(?:\d+d)?(?:\d+h)?(?:\d+m)?(?:\d+s)?$")]
"""A time since the start of the case, such as `+1h30m`."""


class Written(BaseModel):
    """A part of a file of cases."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


# ---- the world -----------------------------------------------------------------------------------


class PersonEntry(Written):
    """Somebody in the workspace; without flags, an active full member."""

    guest: bool = False
    external: bool = False
    bot: bool = False
    deactivated: bool = False


class ChannelEntry(Written):
    """A channel of which only the size matters."""

    size: int


class ToolEntry(Written):
    """A tool. Without a schema it takes any arguments."""

    schema_: Data = Field(default={}, alias="schema")
    tags: list[str] = []
    risk: Literal["low", "medium", "high", "critical"] = "medium"
    gate: Literal["none", "approval", "review"] = "none"


class WorldEntry(Written):
    """People, user groups, channels, agents and tools."""

    people: dict[str, PersonEntry] = {}
    usergroups: dict[str, list[str]] = {}
    channels: dict[str, list[str] | ChannelEntry] = {}
    bot_in: list[str] = []
    agents: list[str] = []
    tools: dict[str, ToolEntry] = {}


class FileEntry(Written):
    """The whole file."""

    world: WorldEntry | None = None
    policies: dict[str, Data] = {}
    strict: bool = False
    cases: list[Data]


# ---- calls ---------------------------------------------------------------------------------------


class CodeEntry(Written):
    """The ruling of a policy in code: a denial, an allowance, a failure, or a question."""

    rule: str = ""
    deny: str | None = None
    allow: bool = False
    fails: bool = False
    approvers: list[str] = []
    expires: str | None = None

    @model_validator(mode="after")
    def _says_something(self) -> CodeEntry:
        if self.deny is None and not self.allow and not self.fails and not self.rule:
            raise ValueError("write deny, allow, fails, or the name of the rule that asks")
        return self


class CallEntry(Written):
    """A call of a tool."""

    tool: ToolName
    args: Data = {}
    said: list[UserId] | None = None
    channel: ChannelId | None = None
    agent: AgentName | None = None
    code: list[CodeEntry] = []


class RequestEntry(CallEntry):
    """Somebody writes, and the agent makes a call."""

    thread: str = "t1"
    note: str = ""
    crash_on_run: bool = False
    masked: bool = False
    nested: list[CodeEntry] = []


# ---- events --------------------------------------------------------------------------------------


class GrantEntry(Written):
    """A standing grant that somebody gives with their approval."""

    time: str = ""
    uses: int | str = ""
    vary: list[str] | None = None


class ApproveEvent(Written):
    """An approval with more than a click."""

    by: UserId
    digest: Literal["old"] | None = None
    grant: GrantEntry | None = None
    reason: str = ""


class ReasonEvent(Written):
    """A person, and the reason that they give."""

    by: UserId
    reason: str = ""


class EditEvent(Written):
    """A person changes arguments."""

    by: UserId
    args: Data


class DoubtEntry(Written):
    """A person says what became of a call whose process died."""

    by: UserId
    choice: Literal["again", "ran", "give_up"]
    result: str = ""


class SnoozeEntry(Written):
    """A person pauses their reminders."""

    by: UserId
    for_: str = Field(alias="for")


class AskBackEntry(Written):
    """A person asks a question about a request."""

    by: UserId
    text: str


class BreakGlassEvent(Written):
    """A person uses the emergency override."""

    by: UserId
    reasons: Annotated[list[str], Field(min_length=2, max_length=2)]


class BatchEntry(Written):
    """A person approves several cards of one turn; some of them change meanwhile."""

    by: UserId
    cards: Annotated[list[int], Field(min_length=1)]
    changed: list[int] = []


class SayEntry(Written):
    """A person writes in the thread."""

    by: UserId


class ChangeEntry(Written):
    """People who join or leave a user group or a channel."""

    add: list[UserId] = []
    remove: list[UserId] = []


class DelegateEntry(Written):
    """A person delegates their right, of one group or of all."""

    from_: UserId = Field(alias="from")
    to: UserId
    until: str
    for_: str | None = Field(default=None, alias="for")


class AwayEntry(Written):
    """A person is away."""

    by: UserId
    until: str


class Nothing(Written):
    """An event without anything to say about it."""


class FlowExpect(Written):
    """The outcome of an event; what is not named here is compared in strict files alone."""

    rules: str | None = None
    audit: list[str] | None = None
    state: str | None = None
    states: list[str] | None = None
    messages: list[Any] | None = None
    votes: Data | None = None
    told: str | Data | None = None
    agent: str | None = None
    runs: list[Data] | None = None
    reason: str | None = None
    stage: int | None = None
    stuck: bool | None = None
    only_after_escalation: bool | None = None
    run_ends: bool | None = None
    on_behalf_of: str | None = None
    grant: str | None = None


class EventEntry(Written):
    """One event of a flow: a time, one thing that happens, and what is expected of it."""

    at: Time
    expect: FlowExpect | None = None
    request: RequestEntry | None = None
    approve: (
        Annotated[
            Annotated[UserId, Tag(_SHORT)] | Annotated[ApproveEvent, Tag(_LONG)],
            Discriminator(_form),
        ]
        | None
    ) = None
    reject: (
        Annotated[
            Annotated[UserId, Tag(_SHORT)] | Annotated[ReasonEvent, Tag(_LONG)],
            Discriminator(_form),
        ]
        | None
    ) = None
    withdraw: ReasonEvent | None = None
    take_back: UserId | None = None
    edit: EditEvent | None = None
    reveal: UserId | None = None
    doubt: DoubtEntry | None = None
    claim: UserId | None = None
    let_go: UserId | None = None
    snooze: SnoozeEntry | None = None
    ask_back: AskBackEntry | None = None
    break_glass: BreakGlassEvent | None = None
    revoke: UserId | None = None
    batch: BatchEntry | None = None
    say: SayEntry | None = None
    turn: Nothing | None = None
    members: dict[str, ChangeEntry] | None = None
    person: dict[UserId, PersonEntry] | None = None
    lookups: Literal["fail", "work", "ok"] | None = None
    file: PolicyEntry | None = None
    clock: Nothing | None = None
    hold: Literal[True] | None = None
    start: Nothing | None = None
    run_ended: Nothing | None = None
    reask: Nothing | None = None
    delegate: DelegateEntry | None = None
    end_delegation: UserId | None = None
    away: AwayEntry | None = None

    @model_validator(mode="after")
    def _is_one(self) -> EventEntry:
        named = self.model_fields_set - _USED_ALWAYS
        if len(named) != 1:
            told = ", ".join(sorted(named)) or "nothing"
            raise ValueError(f"an event is one thing that happens; found: {told}")
        return self


# ---- cases ---------------------------------------------------------------------------------------


class CaseEntry(Written):
    """The keys of every case."""

    id: str
    kind: str
    covers: list[str] = []
    about: str = ""
    world: WorldEntry | None = None
    at: str | None = None
    strict: bool | None = None


class CheckEntry(CaseEntry):
    """A policy file, and the faults that the check finds."""

    text: str
    lookups: Literal["fail"] | None = None
    expect: Data


class ExplainExpect(Written):
    """The ruling of a policy on a call; keys that are not named are not compared."""

    effect: Literal["ask", "allow", "deny"] | None = None
    names: list[str] | None = None
    rules: Data | None = None
    reason: str | None = None
    requirements: list[Any] | None = None
    risk: str | None = None
    confirm: bool | None = None
    edit: bool | Data | None = None
    expires: str | None = None
    exclude: list[str] | None = None
    undecidable: str | None = None
    clock: str | None = None
    urgent: bool | None = None
    remind_s: int | None = None
    remind_times: int | None = None
    escalate: list[Any] | None = None
    route: Any = None
    grants: Data | None = None
    break_glass: Data | None = None
    always_ask: bool | None = None
    delegation: bool | None = None
    approve_reason: bool | None = None
    reject_reason: bool | None = None


class ExplainEntry(CaseEntry):
    """A call, and what the policy makes of it."""

    policy: PolicyEntry
    call: CallEntry
    expect: ExplainExpect


class FlowEntry(CaseEntry):
    """A conversation: its events in order."""

    policy: PolicyEntry
    timeline: Annotated[list[EventEntry], Field(min_length=1)]
    demo: bool = False


class SettingsEntry(CaseEntry):
    """Variables of the environment, and whether the bot starts with them."""

    environ: dict[str, str]
    command: str = ""
    expect: Data


class CommandEntry(CaseEntry):
    """A command line, its exit code and its words."""

    args: list[Any]
    given: list[Any] = []
    expect: Data


class AuditCase(CaseEntry):
    """Entries of the audit, and what `audit verify` says."""

    entries: list[Data]
    key_hex: str = ""
    head: Data | None = None
    expect: Data


class AppendCase(CaseEntry):
    """The state of the audit log after entries are appended."""

    expect: Data


KINDS: Mapping[str, type[CaseEntry]] = {
    "check": CheckEntry,
    "explain": ExplainEntry,
    "flow": FlowEntry,
    "settings": SettingsEntry,
    "cli": CommandEntry,
    "audit": AuditCase,
    "append": AppendCase,
}


# ---- faults --------------------------------------------------------------------------------------


def check(model: type[Written], data: object, place: str, known: Known | None = None) -> None:
    """Compare data with its model.

    Args:
        model: The form that it has to have.
        data: As it was read.
        place: Where it is, in words for people, such as `case production`.
        known: The names that it may use; None where they do not matter.

    Raises:
        CaseError: It differs. All faults, a line each, with their places.
    """
    try:
        model.model_validate(data, context=known)
    except ValidationError as error:
        lines = dict.fromkeys(_line(one, place, model) for one in error.errors())
        raise CaseError("\n".join(lines)) from error


def _line(fault: ErrorDetails, place: str, model: type[Written]) -> str:
    steps = [one for one in fault["loc"] if one not in _TAGS]
    path = "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in steps).lstrip(".")
    where = f"{place}, {path}" if path else place
    match fault["type"]:
        case "extra_forbidden":
            near = get_close_matches(str(steps[-1]), _keys_at(model, steps[:-1]), n=1)
            hint = f"did you mean {near[0]}?" if near else "remove it"
            return f"{where}: there is no such key; {hint}"
        case "missing":
            return f"{where}: is missing"
        case "value_error":
            return f"{where}: {fault['ctx']['error']}"
        case "string_pattern_mismatch":
            return f"{where}: {fault['input']!r} is no time since the start; write it as +1h30m"
        case _:
            told = fault["msg"].removeprefix("Input ")
            return f"{where}: {told}, not {fault['input']!r}"


_TAGS = frozenset({_SHORT, _LONG, "str", "dict[str,any]", "list[str]", "ChannelEntry"})
"""Steps of a place that pydantic adds, and nobody has written."""


def _keys_at(annotation: Any, steps: Sequence[str | int]) -> list[str]:
    """The keys that may stand at a place: those of the models that its annotation names."""
    if not (isinstance(annotation, type) and issubclass(annotation, Written)):
        rest = steps[1:] if get_origin(annotation) in {list, dict} else steps
        return [key for one in get_args(annotation) for key in _keys_at(one, rest)]
    fields = {field.alias or name: field for name, field in annotation.model_fields.items()}
    if not steps:
        return [*fields]
    field = fields.get(str(steps[0]))
    return _keys_at(field.annotation, steps[1:]) if field is not None else []
