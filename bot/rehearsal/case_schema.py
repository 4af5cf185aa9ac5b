"""The keys of a file of cases, and the type of each.

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
from bot.policy.model import DoorName

Data: TypeAlias = dict[str, Any]
"""Parsed YAML."""
_USED_ALWAYS = frozenset({"at", "expect"})


class CaseError(BotError):
    """A file of cases cannot be run as written."""


class Places(Protocol):
    """The names in the world of a case."""

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
        known = ", ".join(names) or "nothing"
        raise ValueError(
            f"{name!r} is not in the world of the case; add it under {place}, "
            f"or use one of: {known}"
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
        known = ", ".join(sorted(info.context.policies)) or "none"
        raise ValueError(f"there is no policy {given!r} under policies; there are: {known}")
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

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True
    )


# ---- the world -----------------------------------------------------------------------------------


class PersonEntry(Written):
    """A person of the workspace; without flags, an active full member."""

    guest: bool = False
    """The person is a guest."""
    external: bool = False
    """The person belongs to another workspace."""
    bot: bool = False
    """The person is an app."""
    deactivated: bool = False
    """The account is deactivated."""
    admin: bool = False
    """The person is an admin of the workspace."""


class ChannelEntry(Written):
    """A channel of which only the size matters."""

    size: int
    """Number of members."""


class ToolEntry(Written):
    """A tool."""

    schema_: Data = Field(default={}, alias="schema")
    """JSON schema of the arguments. Without a schema, all arguments are accepted."""
    tags: list[str] = []
    """Tags of the tool."""
    risk: Literal["low", "medium", "high", "critical"] = "medium"
    """Risk of the tool."""
    gate: Literal["none", "approval", "review"] = "none"
    """Gate in code: `approval` asks, `review` also permits edits."""


class WorldEntry(Written):
    """The workspace: people, user groups, channels, agents and tools."""

    people: dict[str, PersonEntry] = {}
    """People by user id. An empty map is an active full member."""
    usergroups: dict[str, list[str]] = {}
    """Members of user groups, by user group id."""
    channels: dict[str, list[str] | ChannelEntry] = {}
    """Members of channels by channel id, or only their number."""
    bot_in: list[str] = []
    """Channels of which the bot is a member."""
    agents: list[str] = []
    """Names of agents."""
    limits: dict[str, Data] = {}
    """Limits of agents by name, as in a file of agents. Each answer of a model uses 50 tokens or
    a few more."""
    tools: dict[str, ToolEntry] = {}
    """Tools by name."""


class FileEntry(Written):
    """The whole file."""

    world: WorldEntry | None = None
    """The workspace and the tools of all cases."""
    policies: dict[str, Data] = {}
    """Policies by name, for cases that name one."""
    strict: bool = False
    """Whether all cases must name everything that happens."""
    cases: Annotated[list[Data], Field(min_length=1)]
    """The cases."""


# ---- calls ---------------------------------------------------------------------------------------


class CodeEntry(Written):
    """The decision of a policy in code."""

    rule: str = ""
    """Name of the rule in code."""
    deny: str | None = None
    """Reason of a denial."""
    allow: bool = False
    """The policy allows the call."""
    fails: bool = False
    """The policy raises an error."""
    approvers: list[str] = []
    """User ids of the approvers that the policy names."""
    expires: str | None = None
    """Time until the expiry, such as `30m`."""

    @model_validator(mode="after")
    def _says_something(self) -> CodeEntry:
        if self.deny is None and not self.allow and not self.fails and not self.rule:
            raise ValueError("write deny, allow, fails, or the name of the rule that asks")
        return self


class CallEntry(Written):
    """A call of a tool."""

    tool: ToolName
    """Name of the tool."""
    args: Data = {}
    """Arguments of the call."""
    said: list[UserId] | None = None
    """User ids of the requesters."""
    channel: ChannelId | None = None
    """Channel of the thread."""
    agent: AgentName | None = None
    """Name of the agent."""
    code: list[CodeEntry] = []
    """Decisions of policies in code."""


class ProgramEntry(Written):
    """A program that makes the call."""

    name: str
    """Name of the program."""
    trusted: bool = False
    """Whether its tags and its risk are true; otherwise it claims them."""
    claimed: list[UserId] = []
    """User ids of requesters that the program alone has named."""


class JudgedEntry(CallEntry):
    """A call of an agent or of a program."""

    origin: DoorName | None = None
    """The way by which the call comes. Default: `slack`, and `api` for a program."""
    program: ProgramEntry | None = None
    """The program that makes the call; none for a call of an agent."""


class RequestEntry(CallEntry):
    """A person writes, and the agent makes a call."""

    thread: str = "t1"
    """Name of the thread."""
    agents: list[AgentName] = []
    """Names of the agents in the address of the call, outermost first, instead of `agent`."""
    note: str = ""
    """Reason that the agent gives."""
    slow: bool = False
    """The call runs until `finish`."""
    crash_on_run: bool = False
    """The process dies while the call runs."""
    masked: bool = False
    """The card masks a part of the call."""
    nested: list[CodeEntry] = []
    """Decisions of inner gates."""


# ---- events --------------------------------------------------------------------------------------


class GrantEntry(Written):
    """A standing grant that an approver gives with their approval."""

    time: str = ""
    """How long later calls are allowed."""
    uses: int | str = ""
    """Number of later calls."""
    vary: list[str] | None = None
    """Arguments that may differ."""


class ApproveEvent(Written):
    """An approval with more than a click."""

    by: UserId
    """User id of the approver."""
    digest: Literal["old"] | None = None
    """`old` approves a card that is out of date."""
    grant: GrantEntry | None = None
    """Standing grant that the approver gives."""
    reason: str = ""
    """Reason of the approval."""


class ReasonEvent(Written):
    """A person and their reason."""

    by: UserId
    """User id of the person."""
    reason: str = ""
    """Reason that the person gives."""


class EditEvent(Written):
    """A person edits the arguments."""

    by: UserId
    """User id of the editor."""
    args: Data
    """All arguments after the edit."""


class DoubtEntry(Written):
    """A person answers whether a call ran before its process crashed."""

    by: UserId
    """User id of the person."""
    choice: Literal["again", "ran", "give_up"]
    """`again` runs the call again, `ran` gives its result, `give_up` ends it."""
    result: str = ""
    """Result of the call, with `ran`."""


class SnoozeEntry(Written):
    """A person pauses their reminders."""

    by: UserId
    """User id of the person."""
    for_: str = Field(alias="for")
    """Length of the pause."""


class AskBackEntry(Written):
    """A person asks a question about a request."""

    by: UserId
    """User id of the person."""
    text: str
    """The question."""


class BreakGlassEvent(Written):
    """A person uses the emergency override."""

    by: UserId
    """User id of the person."""
    reasons: Annotated[list[str], Field(min_length=2, max_length=2)]
    """The two reasons."""


class BatchEntry(Written):
    """A person approves several cards of one turn; some of them change meanwhile."""

    by: UserId
    """User id of the approver."""
    cards: Annotated[list[int], Field(min_length=1)]
    """Numbers of the cards, from 1."""
    changed: list[int] = []
    """Numbers of the cards that change before the click."""


class SayEntry(Written):
    """A person writes in the thread."""

    by: UserId
    """User id of the writer."""


class ScopeEntry(Written):
    """The scope of a freeze: one of these."""

    agent: str | None = None
    """Name of an agent."""
    tool: str | None = None
    """Name of a tool."""
    tag: str | None = None
    """Tag of tools."""
    channel: ChannelId | None = None
    """Id of a channel."""

    @model_validator(mode="after")
    def _is_one(self) -> ScopeEntry:
        if len(self.model_fields_set) != 1:
            raise ValueError("write one of agent, tool, tag, channel; or scope: all")
        return self


class FreezeEvent(Written):
    """A person freezes starts of calls."""

    by: UserId
    """User id of the person."""
    why: str
    """Reason."""
    scope: Annotated[
        Annotated[Literal["all"], Tag(_SHORT)] | Annotated[ScopeEntry, Tag(_LONG)],
        Discriminator(_form),
    ] = "all"
    """`all`, or one agent, tool, tag or channel."""
    turns: bool = False
    """Whether turns of agents stop, too."""
    channel: ChannelId | None = None
    """Channel of the command."""


class UnfreezeEvent(Written):
    """A person lifts a freeze."""

    by: UserId
    """User id of the person."""
    why: str
    """Reason."""
    id: str = ""
    """Id such as `f1`; without one, the only freeze in force."""


class ChangeEntry(Written):
    """People who join or leave a user group or a channel."""

    add: list[UserId] = []
    """User ids of people who join."""
    remove: list[UserId] = []
    """User ids of people who leave."""


class DelegateEntry(Written):
    """A person delegates their right, for one group or for all."""

    from_: UserId = Field(alias="from")
    """User id of the person who delegates."""
    to: UserId
    """User id of the delegate."""
    until: str
    """End of the delegation."""
    for_: str | None = Field(default=None, alias="for")
    """Name of a group, if the delegation is for one group."""


class AwayEntry(Written):
    """A person is away."""

    by: UserId
    """User id of the person."""
    until: str
    """End of the absence."""


class Nothing(Written):
    """An event without keys, written as `{}`."""


class FlowExpect(Written):
    """The expected outcome of an event. Absent keys are compared only in strict files."""

    rules: str | None = None
    """Name of the rule on the card."""
    audit: list[str] | None = None
    """Acts that the audit receives, in order."""
    state: str | None = None
    """State of the newest request, such as `pending`, `approved` or `parked`; `allowed`, `denied`,
    `parked` or `not started` without one."""
    states: list[str] | None = None
    """States of all requests."""
    messages: list[Any] | None = None
    """Messages of this step: time, kind, and who is mentioned."""
    votes: Data | None = None
    """Votes per requirement of the stage, such as `{sre: 1/2}`."""
    told: str | Data | None = None
    """Answer to the person: `counted`, or the code of a refusal."""
    agent: str | None = None
    """Result that the agent receives."""
    runs: list[Data] | None = None
    """Arguments of the calls that ran."""
    reason: str | None = None
    """Reason of the denial."""
    stage: int | None = None
    """Number of the stage, if it changed."""
    stuck: bool | None = None
    """Whether no person can complete the request."""
    only_after_escalation: bool | None = None
    """Whether only people of an escalation step can decide."""
    run_ends: bool | None = None
    """Whether the run ends."""
    on_behalf_of: str | None = None
    """User id of the person whose right the delegate used."""
    grant: str | None = None
    """State of the standing grant."""
    frozen: list[str] | None = None
    """Ids of the freezes in force, oldest first."""
    parked: Literal["freeze"] | None = None
    """`freeze` if the newest call waits for the end of a freeze."""
    line: list[str] | None = None
    """Keys of texts in `bot/words` that the newest card shows."""
    running: list[str] | None = None
    """Tools of running calls that the answer to a freeze names."""
    turn: Data | None = None
    """People whose messages the agent read in this step, as `said`."""


class EventEntry(Written):
    """One event of a flow: a time, one thing that happens, and the expected outcome."""

    at: Time
    """Time since the start, such as `+1h30m`."""
    expect: FlowExpect | None = None
    """Expected outcome."""
    request: RequestEntry | None = None
    """The agent makes a call."""
    approve: (
        Annotated[
            Annotated[UserId, Tag(_SHORT)] | Annotated[ApproveEvent, Tag(_LONG)],
            Discriminator(_form),
        ]
        | None
    ) = None
    """A person approves."""
    reject: (
        Annotated[
            Annotated[UserId, Tag(_SHORT)] | Annotated[ReasonEvent, Tag(_LONG)],
            Discriminator(_form),
        ]
        | None
    ) = None
    """A person rejects."""
    withdraw: ReasonEvent | None = None
    """A requester withdraws the request."""
    take_back: UserId | None = None
    """A person withdraws their vote."""
    edit: EditEvent | None = None
    """A person edits the call."""
    reveal: UserId | None = None
    """A person reads a masked value."""
    doubt: DoubtEntry | None = None
    """A person answers whether a call ran."""
    claim: UserId | None = None
    """A person claims the request."""
    let_go: UserId | None = None
    """A person ends their claim."""
    snooze: SnoozeEntry | None = None
    """A person pauses their reminders."""
    ask_back: AskBackEntry | None = None
    """A person asks about the request."""
    break_glass: BreakGlassEvent | None = None
    """A person uses the emergency override."""
    revoke: UserId | None = None
    """A person ends a standing grant."""
    batch: BatchEntry | None = None
    """A person approves several cards at once."""
    say: SayEntry | None = None
    """A person writes in the thread."""
    turn: Nothing | None = None
    """The agent reads the kept messages."""
    freeze: FreezeEvent | None = None
    """A person freezes starts."""
    unfreeze: UnfreezeEvent | None = None
    """A person lifts a freeze, or confirms its lifting."""
    freeze_file: Literal["present", "absent", "unreadable"] | None = None
    """State of the freeze file of the process."""
    finish: Nothing | None = None
    """The slow call ends."""
    members: dict[str, ChangeEntry] | None = None
    """Members of user groups or channels change, by id."""
    person: dict[UserId, PersonEntry] | None = None
    """People change, by user id."""
    lookups: Literal["fail", "work", "ok"] | None = None
    """Look-ups in Slack `fail`, or `work` again."""
    file: PolicyEntry | None = None
    """Another policy comes into force."""
    clock: Nothing | None = None
    """Time passes."""
    hold: Literal[True] | None = None
    """The process stops between decision and start."""
    start: Nothing | None = None
    """The process continues."""
    run_ended: Nothing | None = None
    """The run ends."""
    reask: Nothing | None = None
    """An operator runs `countersign pending reask`."""
    delegate: DelegateEntry | None = None
    """A person delegates their right."""
    end_delegation: UserId | None = None
    """A person ends their delegation."""
    away: AwayEntry | None = None
    """A person is away."""

    @model_validator(mode="after")
    def _is_one(self) -> EventEntry:
        named = self.model_fields_set - _USED_ALWAYS
        if len(named) != 1:
            event_names = ", ".join(sorted(named)) or "nothing; write clock: {} to let time pass"
            raise ValueError(f"an event is one thing that happens; found: {event_names}")
        return self


# ---- cases ---------------------------------------------------------------------------------------


class CaseEntry(Written):
    """The keys of every case."""

    id: str
    """Name of the case, used once."""
    kind: str
    """`check`, `explain` or `flow`."""
    covers: list[str] = []
    """Numbers or names that the case covers; free text."""
    about: str = ""
    """Description of the case."""
    world: WorldEntry | None = None
    """Parts of the world that differ in this case."""
    at: str | None = None
    """Local time of the start, in Berlin."""
    strict: bool | None = None
    """Whether this case must name everything that happens."""


class CheckEntry(CaseEntry):
    """A policy file and the errors that `policy check` finds."""

    text: str
    """Text of a policy file."""
    lookups: Literal["fail"] | None = None
    """`fail`: Slack does not answer."""
    expect: Data
    """Expected `errors`, each with `code`, `key` and `line`."""


class ExplainExpect(Written):
    """The expected decision of the policy. Keys that are not named are not compared."""

    effect: Literal["ask", "allow", "deny"] | None = None
    """Effect of the policy."""
    names: list[str] | None = None
    """Names of the rules that decide."""
    rules: Data | None = None
    """Result of each rule."""
    reason: str | None = None
    """Reason of a denial."""
    requirements: list[Any] | None = None
    """Requirements of each stage."""
    risk: str | None = None
    """Risk on the card."""
    confirm: bool | None = None
    """Whether Slack asks before an approval."""
    edit: bool | Data | None = None
    """Whether the call can be edited, and by whom."""
    expires: str | None = None
    """Time until the expiry."""
    exclude: list[str] | None = None
    """People who cannot approve."""
    undecidable: str | None = None
    """Reason why no person can decide."""
    clock: str | None = None
    """Time that counts."""
    urgent: bool | None = None
    """Whether quiet hours are ignored."""
    remind_s: int | None = None
    """Seconds until the first reminder."""
    remind_times: int | None = None
    """Number of reminders."""
    escalate: list[Any] | None = None
    """Escalation steps."""
    route: Any = None
    """Place of the card."""
    grants: Data | None = None
    """Limits of standing grants."""
    break_glass: Data | None = None
    """Emergency override."""
    always_ask: bool | None = None
    """Whether grants, break-glass and batches are off."""
    delegation: bool | None = None
    """Whether delegates can approve."""
    approve_reason: bool | None = None
    """Whether an approval needs a reason."""
    reject_reason: bool | None = None
    """Whether a rejection needs a reason."""


class ExplainEntry(CaseEntry):
    """A call and the decision of the policy."""

    policy: PolicyEntry
    """Name of a policy under `policies`, or a policy."""
    call: JudgedEntry
    """The call."""
    expect: ExplainExpect
    """Expected decision."""


class FlowEntry(CaseEntry):
    """A conversation: its events in order."""

    policy: PolicyEntry
    """Name of a policy under `policies`, or a policy."""
    timeline: Annotated[list[EventEntry], Field(min_length=1)]
    """The events, in order."""
    demo: bool = False
    """Whether `here` is allowed everywhere, as in the demo."""


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
    """Validate data by its model.

    Args:
        model: The model.
        data: The parsed data.
        place: Location of the data for people, such as `case production`.
        known: The names that the data may use; None skips this check.

    Raises:
        CaseError: The data is invalid. The text lists all faults with their locations, one per
            line.
    """
    try:
        model.model_validate(data, context=known)
    except ValidationError as error:
        lines = dict.fromkeys(_line(fault, place, model) for fault in error.errors())
        raise CaseError("\n".join(lines)) from error


def _line(fault: ErrorDetails, place: str, model: type[Written]) -> str:
    steps = [step for step in fault["loc"] if step not in _TAGS]
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).lstrip(
        "."
    )
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
            return f"{where}: {fault['input']!r} isn't a time since the start; write it as +1h30m"
        case "too_short":
            return f"{where}: is empty; write at least one"
        case kind:
            wanted = fault["msg"].removeprefix("Input should be ")
            return f"{where}: should be {_TYPES.get(kind, wanted)}, not {fault['input']!r}"


_TYPES = {
    "model_type": "a map",
    "model_attributes_type": "a map",
    "dict_type": "a map",
    "list_type": "a list",
    "tuple_type": "a list",
    "string_type": "a text",
    "bool_type": "true or false",
    "int_type": "a whole number",
}
"""Words for the type that a fault expects, by pydantic's name of the fault."""
_TAGS = frozenset({_SHORT, _LONG, "str", "dict[str,any]", "list[str]", "ChannelEntry"})
"""Path segments of a fault that pydantic adds and the file does not have."""


def _keys_at(annotation: Any, steps: Sequence[str | int]) -> list[str]:
    """Return the keys that are permitted at a path, from the models in its annotation."""
    if not (isinstance(annotation, type) and issubclass(annotation, Written)):
        rest = steps[1:] if get_origin(annotation) in {list, dict} else steps
        return [key for argument in get_args(annotation) for key in _keys_at(argument, rest)]
    fields = {field.alias or name: field for name, field in annotation.model_fields.items()}
    if not steps:
        return [*fields]
    field = fields.get(str(steps[0]))
    return _keys_at(field.annotation, steps[1:]) if field is not None else []
