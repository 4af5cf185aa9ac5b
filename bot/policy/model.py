"""Models of the policy file: rules, groups, terms of requests.

The models check each value and each entry alone; `bot.policy.parser` checks entries against each
other. Keys have the names of the file; `from`, `for`, `in` and `as` end in an underscore here.
Absent fields of `ask` are None, and are taken from `defaults`.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from bot.policy.entries import (
    BreakGlassEntry,
    EditEntry,
    Entry,
    Expires,
    Filled,
    GrantsEntry,
    MaxAge,
    ReasonEntry,
    RejectEntry,
    RemindEntry,
    RouteEntry,
    Wait,
    read_break_glass,
    read_edit,
    read_grants,
    read_reject,
    read_remind,
    read_route,
)
from bot.policy.values import (
    ChannelId,
    ClockTime,
    Duration,
    GroupTitle,
    LocalTime,
    Name,
    PersonId,
    Place,
    Reason,
    RequirementName,
    Turn,
    UsergroupId,
    YesNo,
    Zone,
    as_tuple,
    invalid,
    only_true,
    refuse,
)
from bot.records.terms import Risk

Scalar = str | int | float | bool | None
Op = Literal[
    "eq", "ne", "in", "not_in", "gt", "ge", "lt", "le", "matches", "contains", "exists", "missing"
]
"""The operators of conditions."""
DoorName = Literal["slack", "api", "mcp", "hook", "cli", "trigger", "schedule"]
"""The ways by which a call comes; see `bot.records.origin.RequestDoor`."""
Limit = Literal["tokens", "cost"]
"""The limits of an agent's models."""
Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]


class OverrideEntry(Filled):
    """A person who is on call out of turn, for some time."""

    from_: LocalTime = Field(alias="from")
    """When the override begins, in local time.

    Example: `from: 2026-12-24T09:00`

    Errors: `bad_value`
    """
    until: LocalTime
    """When the override ends, in local time. The override does not include that minute.

    Example: `until: 2026-12-27T09:00`

    Errors: `bad_value`, `bad_order`
    """
    user: PersonId
    """The person who is on call.

    Example: `user: U0MIA`

    Errors: `bad_id`, `unknown_id`
    """

    @model_validator(mode="after")
    def _ends_later(self) -> Self:
        if self.until <= self.from_:
            refuse("bad_order", "it ends before it begins", "make until later than from")
        return self


class RotationEntry(Filled):
    """People who are on call in turns."""

    start: LocalTime
    """When the first turn begins, in local time. The first person of `people` has this turn.

    Example: `start: 2026-11-02T09:00`

    Errors: `bad_value`
    """
    every: Turn
    """Length of a turn: whole hours, days or weeks, such as `12h`, `1d` or `1w`, at most a year.

    Example: `every: 1w`

    Errors: `bad_duration`
    """
    people: Annotated[tuple[PersonId, ...], BeforeValidator(as_tuple), Field(min_length=1)]
    """The people of the rotation, in order. After the last person, the first one follows.

    Example: `people: [U0ADA, U0BEN]`

    Errors: `bad_id`, `unknown_id`, `empty_group`
    """
    overrides: Annotated[tuple[OverrideEntry, ...], BeforeValidator(as_tuple)] = ()
    """Times in which another person is on call.

    Example: `overrides: [{from: 2026-12-24T09:00, until: 2026-12-27T09:00, user: U0MIA}]`

    Errors: `bad_order`
    """
    timezone: Zone | None = None
    """Time zone of the rotation. Without it, `timezone` of the file applies; one of both is
    required.

    Example: `timezone: Europe/Berlin`

    Errors: `bad_value`, `needs_zone`
    """


class GroupEntry(Filled):
    """A named set of people: the union of all its keys.

    Guests, apps, deactivated people and people of other workspaces never count.
    """

    users: Annotated[tuple[PersonId, ...], BeforeValidator(as_tuple)] = Field(
        default=(), min_length=1
    )
    """People, by their user ids.

    Example: `users: [U0MIA, U0SAM]`

    Errors: `bad_id`, `unknown_id`, `empty_group`
    """
    usergroups: Annotated[tuple[UsergroupId, ...], BeforeValidator(as_tuple)] = Field(
        (), min_length=1
    )
    """Slack user groups. Their members belong to the group.

    Example: `usergroups: [S0SRE]`

    Errors: `bad_id`, `unknown_id`, `empty_group`, `unresolvable`
    """
    channels: Annotated[tuple[ChannelId, ...], BeforeValidator(as_tuple)] = Field(
        default=(), min_length=1
    )
    """Channels whose members belong to the group: people who were members at the request and still
    are. A channel with more than 500 members counts as empty.

    Example: `channels: [C0OPS]`

    Errors: `bad_id`, `unknown_id`, `empty_group`, `bot_not_in_channel`
    """
    rotation: RotationEntry | None = None
    """The person who is on call now.

    Example: `rotation: {start: 2026-11-02T09:00, every: 1w, people: [U0ADA, U0BEN]}`

    Errors: `needs_zone`
    """
    here: Annotated[bool, BeforeValidator(only_true)] = False
    """The members of the thread's channel. Only a rule that names its channels can use such a
    group, because requesters choose where they write.

    Example: `here: true`

    Errors: `bad_value`, `here_needs_channel`
    """
    title: GroupTitle | None = None
    """Name of the group in messages. Without a title, messages name the user groups, people and
    channels. At most 60 characters, without markup.

    Example: `{title: On call, users: [U0MIA]}`

    Errors: `bad_value`
    """

    @model_validator(mode="before")
    @classmethod
    def _has_source(cls, value: object) -> object:
        if value == {} or (isinstance(value, dict) and set(value) == {"title"}):
            refuse(
                "empty_group",
                "the group is empty",
                "give it users, usergroups, channels, a rotation, or here: true",
            )
        return value


class QuietEntry(Filled):
    """Hours in which the bot mentions no approver and sends no reminder.

    Write a daily span, whole days, or both. A rule with `urgent: yes` ignores them.
    """

    from_: ClockTime | None = Field(default=None, alias="from")
    """When the quiet time begins each day. Put the time in quotes.

    Example: `{from: "20:00", until: "08:00"}`

    Errors: `bad_value`
    """
    until: ClockTime | None = None
    """When the quiet time ends. A time before `from` is on the next day.

    Example: `{from: "20:00", until: "08:00"}`

    Errors: `bad_value`
    """
    days: Annotated[tuple[Day, ...], BeforeValidator(as_tuple)] = Field(default=(), min_length=1)
    """Days that are quiet as a whole.

    Example: `days: [sat, sun]`

    Errors: `bad_value`
    """
    timezone: Zone | None = None
    """Time zone of the quiet hours. Without it, `timezone` of the file applies; one of both is
    required.

    Example: `{days: [sat, sun], timezone: Europe/Berlin}`

    Errors: `bad_value`, `needs_zone`
    """

    @model_validator(mode="after")
    def _has_time(self) -> Self:
        if (self.from_ is None) != (self.until is None):
            refuse("bad_value", "from and until belong together", "write both, or only days")
        if self.from_ is None and not self.days:
            refuse("bad_value", "it names no time", "write from and until, or days")
        if self.from_ is not None and self.from_ == self.until:
            refuse("bad_value", "from and until are the same", "name whole days in days")
        return self


class ApproveEntry(Filled):
    """A requirement: how many people of which groups must approve."""

    from_: Annotated[tuple[str, ...], BeforeValidator(as_tuple)] = Field(alias="from", min_length=1)
    """The groups whose members can fulfill the requirement.

    Example: `from: [sre, security]`

    Errors: `unknown_group`, `empty_group`, `no_approvers`
    """
    count: int = Field(default=1, ge=1, le=10)
    """How many different people must approve.

    Example: `count: 2`

    Errors: `bad_value`
    """
    name: RequirementName | None = None
    """Name of the requirement on the card and in the audit. Without a name, the groups are joined
    by `+`.

    Example: `name: two-of-sre`

    Errors: `bad_name`
    """

    @property
    def title(self) -> str:
        """The name of the requirement; by default, the groups joined by `+`."""
        return self.name or "+".join(self.from_)


Requirements = Annotated[
    tuple[ApproveEntry, ...], BeforeValidator(as_tuple), Field(min_length=1, max_length=20)
]


class StageEntry(Filled):
    """A stage: its requirements are asked when the stage before is complete."""

    name: Name
    """Name of the stage on the card and in the audit.

    Example: `name: team`

    Errors: `bad_name`
    """
    approve: Requirements
    """The requirements of the stage. All of them must be fulfilled.

    Example: `approve: [{from: [sre]}]`

    Errors: `no_approvers`, `unknown_group`
    """


class EscalateEntry(Filled):
    """A step that asks more people if a request is still undecided."""

    after: Wait
    """Time from the request to this step. It must be longer than the step before and shorter than
    `expires`.

    Example: `after: 1h`

    Errors: `bad_duration`, `bad_order`
    """
    add: Annotated[tuple[str, ...], BeforeValidator(as_tuple), Field(min_length=1)]
    """The groups whose members can approve from then on, too.

    Example: `add: [leads]`

    Errors: `unknown_group`
    """
    for_: Annotated[tuple[str, ...], BeforeValidator(as_tuple)] = Field(
        (), alias="for", min_length=1
    )
    """The requirements that the added people can fulfill. Required if there are several
    requirements.

    Example: `for: [sre]`

    Errors: `for_required`, `unknown_requirement`
    """


class AskEntry(Filled):
    """Ask people before the call runs.

    A key that is absent in a rule is taken from `defaults`, each key as a whole.
    """

    approve: Requirements | None = None
    """Requirements that must all be fulfilled, in any order. Each vote counts for one requirement,
    and each person votes once per call.

    Example: `approve: [{from: [sre], count: 2}, {from: [security]}]`

    Errors: `no_approvers`, `unknown_group`, `bad_name`, `approve_and_stages`
    """
    stages: (
        Annotated[
            tuple[StageEntry, ...], BeforeValidator(as_tuple), Field(min_length=2, max_length=5)
        ]
        | None
    ) = None
    """Stages that follow one another: people of a stage are asked when the stage before is
    complete. They can reject at any time. Excludes `approve`.

    Example: `stages: [{name: team, approve: [{from: [sre]}]},
    {name: lead, approve: [{from: [leads]}]}]`

    Errors: `approve_and_stages`, `bad_name`, `no_approvers`
    """
    exclude: Annotated[tuple[str, ...] | None, BeforeValidator(as_tuple)] = None
    """People who cannot approve, even as members of a group that can: `requesters`, `editors`, or
    names of groups. Requesters are all people whose words the agent read before the call. An
    excluded person can still reject. Default: `[requesters]`.

    Example: `exclude: [requesters, editors]`

    Errors: `unknown_group`
    """
    edit: Annotated[
        EditEntry | None,
        BeforeValidator(read_edit, json_schema_input_type=bool | Literal["yes", "no"] | EditEntry),
    ] = None
    """People who can edit the arguments: `no`, `yes` for the approvers, or `{by: […]}`. An edit is
    possible only if the tool's gate permits edits. Default: as the gate says.

    Example: `edit: {by: [approvers, requesters]}`

    Errors: `bad_value`, `unknown_group`
    """
    reject: Annotated[
        RejectEntry | None,
        BeforeValidator(read_reject, json_schema_input_type=Literal["any"] | RejectEntry),
    ] = None
    """How many people must reject to stop the call: `any` for one, or `{count: 2}`. Default: `any`.

    Example: `reject: {count: 2}`

    Errors: `bad_value`
    """
    expires: Expires | None = None
    """How long the request waits for a decision, from `1m` to `30d`. After that, the call does not
    run, and the agent hears `expired`, which is not a rejection. Default: `8h`.

    Example: `expires: 2h`

    Errors: `bad_duration`, `bad_order`
    """
    on_expiry: Literal["expired", "cancel_run"] | None = None
    """Effect of the expiry: `expired` tells the agent, and `cancel_run` ends the run.
    Default: `expired`.

    Example: `on_expiry: cancel_run`

    Errors: `bad_value`
    """
    on_delete: Literal["keep", "withdraw"] | None = None
    """Effect of the deletion of the message that asked: `keep` tells its author and the approvers,
    and `withdraw` withdraws the request, too. Default: `keep`.

    Example: `on_delete: withdraw`

    Errors: `bad_value`
    """
    max_age: MaxAge | None = None
    """How long after its approval the call may start, from `1m` to `24h`. After that, approvers are
    asked again. Default: `15m`.

    Example: `max_age: 30m`

    Errors: `bad_duration`
    """
    remind: Annotated[
        RemindEntry | None,
        BeforeValidator(
            read_remind, json_schema_input_type=Literal["never"] | Duration | RemindEntry
        ),
    ] = None
    """When to remind people: `never`, the time to the first reminder, or a map. Each wait is twice
    the wait before. The first must come before `expires`. Default: `{after: 15m, times: 3}`.

    Example: `remind: {after: 30m, times: 2}`

    Errors: `bad_duration`, `bad_order`, `bad_value`
    """
    escalate: Annotated[tuple[EscalateEntry, ...] | None, BeforeValidator(as_tuple)] = None
    """Steps that let more people approve while the request is undecided. Default: none.

    Example: `escalate: [{after: 1h, add: [leads]}]`

    Errors: `bad_order`, `for_required`, `unknown_requirement`
    """
    route: Annotated[
        RouteEntry | None,
        BeforeValidator(read_route, json_schema_input_type=Literal["thread", "dm"] | RouteEntry),
    ] = None
    """Where the card is: `thread`, `dm` for direct messages to the approvers, or `{channel: C…}`.
    Default: `thread`.

    Example: `route: {channel: C0APPR}`

    Errors: `bad_value`, `bad_id`, `unknown_id`, `bot_not_in_channel`
    """
    mention: YesNo | None = None
    """Whether the card mentions the approvers, so that Slack notifies them. Default: `yes`.

    Example: `mention: no`

    Errors: `bad_value`
    """
    clock: Literal["wall", "working"] | None = None
    """Time that counts for reminders, escalation and expiry: `wall` counts all time, and `working`
    leaves out the quiet hours. Default: `wall`.

    Example: `clock: working`

    Errors: `bad_value`
    """
    urgent: YesNo | None = None
    """Whether to disturb people in the quiet hours. Default: `no`.

    Example: `urgent: yes`

    Errors: `bad_value`
    """
    risk: Risk | None = None
    """The risk that the card shows. From `high` on, Slack asks before an approval, no one can
    allow later calls, and a person's own quiet hours do not count. Approvers of a `critical` call
    type a reason and the name of its subject. Default: the risk of the tool.

    Example: `risk: high`

    Errors: `bad_value`
    """
    confirm: YesNo | None = None
    """Whether Slack asks “Are you sure?” before an approval. Default: `yes` from risk `high` on.

    Example: `confirm: yes`

    Errors: `bad_value`
    """
    reason: ReasonEntry | None = None
    """Whether approvals and rejections need a reason. Default: reasons are optional.

    Example: `reason: {reject: required}`

    Errors: `bad_value`
    """
    reasons: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=75, pattern=r"\S")], ...] | None,
        BeforeValidator(as_tuple),
    ] = Field(default=None, max_length=8)
    """Reasons to choose from when rejecting: at most 8 texts of at most 75 characters. Default:
    none.

    Example: `reasons: [Wrong service, Not during the freeze]`

    Errors: `bad_value`
    """
    grants: Annotated[
        GrantsEntry | None,
        BeforeValidator(read_grants, json_schema_input_type=Literal["never"] | GrantsEntry),
    ] = None
    """Whether an approver can allow later equal calls: `never`, or limits. Possible only if one
    approval is enough and the risk is below `high`. Default: `never`.

    Example: `grants: {max_time: 1h, max_uses: 5}`

    Errors: `grants_slots`, `grants_risk`, `always_ask_conflict`, `bad_duration`
    """
    break_glass: Annotated[
        BreakGlassEntry | None,
        BeforeValidator(
            read_break_glass, json_schema_input_type=bool | Literal["no"] | BreakGlassEntry
        ),
    ] = None
    """People who can run the call alone in an emergency: `no`, or a map. Default: `no`.

    Example: `break_glass: {by: [leads], alert: C0ALERT}`

    Errors: `always_ask_conflict`, `unknown_group`, `bad_id`
    """
    delegation: YesNo | None = None
    """Whether a person's delegate can approve in their place. Default: `yes`.

    Example: `delegation: no`

    Errors: `bad_value`
    """
    always_ask: YesNo | None = None
    """Whether to switch off standing grants, break-glass and batches. Default: `no`.

    Example: `always_ask: yes`

    Errors: `always_ask_conflict`
    """

    @property
    def requirements(self) -> tuple[ApproveEntry, ...]:
        """All requirements of all stages; empty if the entry names none."""
        if self.stages is not None:
            return tuple(requirement for stage in self.stages for requirement in stage.approve)
        return self.approve or ()

    def over(self, defaults: AskEntry) -> Self:
        """Fill absent keys from the defaults, each key as a whole.

        `approve` and `stages` exclude each other: an entry with either takes neither.
        """
        absent = {
            name: getattr(defaults, name)
            for name in type(self).model_fields
            if getattr(self, name) is None
        }
        if self.approve is not None or self.stages is not None:
            absent.pop("approve", None)
            absent.pop("stages", None)
        return self.model_copy(update=absent)


class Then(Filled):
    """The decision of a rule: exactly one of `allow`, `deny` and `ask`."""

    allow: bool = False
    """Run the call without asking. Written as `then: allow`, without a colon.

    Example: `allow`

    Errors: `bad_then`, `allow_on_gated`
    """
    deny: Reason | None = None
    """Refuse the call, with a reason for the agent and the people. No approval, grant or
    break-glass changes this.

    Example: `deny: Nobody drops tables from here.`

    Errors: `bad_then`, `bad_value`
    """
    ask: AskEntry | None = None
    """Ask people, as the keys of `ask` say. `{}` asks as `defaults` say.

    Example: `ask: {approve: [{from: [sre]}]}`

    Errors: `bad_then`, `no_approvers`
    """

    @model_validator(mode="before")
    @classmethod
    def _exactly_one(cls, value: object) -> object:
        if value == "allow":
            return {"allow": True}
        remedy = "write allow, {deny: why}, or {ask: {…}}"
        if not isinstance(value, dict):
            refuse("bad_then", invalid(value), remedy)
        if "allow" in value or len(value) != 1:
            refuse("bad_then", "it is not exactly one of the three", remedy)
        return value


class ArgEntry(Entry):
    """A condition on an argument of the call.

    If a condition cannot be decided, for example because the argument is absent, the stricter
    result applies.
    """

    path: str = Field(min_length=1, max_length=200)
    """The argument. Dots lead into maps and lists; `*` means every item of a list and needs `each`.

    Example: `path: items.*.price`

    Errors: `unknown_path`, `each_required`
    """
    op: Op
    """The comparison. `gt`, `ge`, `lt` and `le` compare numbers; `matches` is a regular expression
    (RE2) that must match the whole text; `contains` looks into texts and lists; `exists` and
    `missing` take no value.

    Example: `op: eq`

    Errors: `bad_operator`, `bad_value`
    """
    value: Annotated[
        Scalar | tuple[Scalar, ...],
        BeforeValidator(as_tuple, json_schema_input_type=Scalar | list[Scalar]),
    ] = None
    """The value to compare with: a list for `in` and `not_in`, otherwise one value. A pattern has
    at most 200 characters.

    Example: `value: production`

    Errors: `missing_key`, `wrong_type`, `bad_value`, `bad_pattern`
    """
    each: Literal["any", "all"] | None = None
    """Whether `any` or `all` items of the list must fulfill the condition. Required with `*` in
    `path`.

    Example: `each: any`

    Errors: `each_required`, `bad_value`
    """
    as_: Literal["number"] | None = Field(default=None, alias="as")
    """Read a text such as `12.50` as a number, for `gt`, `ge`, `lt` and `le`.

    Example: `as: number`

    Errors: `bad_value`
    """

    @field_validator("path", "op", "each", "as_", mode="before")
    @classmethod
    def _has_value(cls, value: object) -> object:
        if value is None:
            refuse("wrong_type", "it has no value", "write one, or leave the key out")
        return value


class RequesterEntry(Filled):
    """A condition on all requesters of the call: exactly one of `in` and `not_in`."""

    in_: Annotated[tuple[str, ...], BeforeValidator(as_tuple)] = Field(
        default=(), alias="in", min_length=1
    )
    """Every requester is a member of one of these groups.

    Example: `in: [engineers]`

    Errors: `bad_value`, `unknown_group`
    """
    not_in: Annotated[tuple[str, ...], BeforeValidator(as_tuple)] = Field(default=(), min_length=1)
    """No requester is a member of any of these groups.

    Example: `not_in: [contractors]`

    Errors: `bad_value`, `unknown_group`
    """

    @model_validator(mode="before")
    @classmethod
    def _exactly_one(cls, value: object) -> object:
        if isinstance(value, dict) and len(value.keys() & {"in", "not_in"}) != 1:
            refuse("bad_value", "it is not exactly one of the two", "write in, or not_in")
        return value


class When(Filled):
    """The calls that a rule matches. Every key that is written must hold."""

    tool: Annotated[
        tuple[str, ...] | None,
        BeforeValidator(
            lambda value: (value,) if isinstance(value, str) else as_tuple(value),
            json_schema_input_type=str | list[str],
        ),
    ] = Field(default=None, min_length=1)
    """Names of tools: one name, a pattern with `*` and `?`, or a list of both.

    Example: `tool: [deploy, restart_*]`

    Errors: `unknown_tool`
    """
    limit: Annotated[
        tuple[Limit, ...] | None,
        BeforeValidator(
            lambda value: (value,) if isinstance(value, str) else as_tuple(value),
            json_schema_input_type=Limit | list[Limit],
        ),
    ] = Field(default=None, min_length=1)
    """Limits of an agent's models: `tokens`, `cost`, or a list of both. The rule then matches no
    call: it says who decides whether a turn goes on. Not together with `tool`, `tags`, `risk`,
    `gated` and `args`.

    Example: `limit: cost`

    Errors: `bad_value`
    """
    tags: Annotated[tuple[str, ...] | None, BeforeValidator(as_tuple)] = Field(
        default=None, min_length=1
    )
    """Tags of the tool. The tool must have all of them.

    Example: `tags: [read-only]`

    Errors: `unknown_tag`
    """
    risk: Annotated[tuple[Risk, ...] | None, BeforeValidator(as_tuple)] = Field(
        default=None, min_length=1
    )
    """Risks of the tool. The tool must have one of them.

    Example: `risk: [high, critical]`

    Errors: `bad_value`
    """
    gated: YesNo | None = None
    """Whether the tool has a gate in code.

    Example: `gated: no`

    Errors: `bad_value`
    """
    args: Annotated[tuple[ArgEntry, ...], BeforeValidator(as_tuple)] = Field(
        default=(), min_length=1
    )
    """Conditions on the arguments. All of them must hold.

    Example: `args: [{path: environment, op: eq, value: production}]`

    Errors: `unknown_path`, `bad_operator`
    """
    requester: RequesterEntry | None = None
    """A condition on the requesters.

    Example: `requester: {not_in: [contractors]}`

    Errors: `bad_value`, `unknown_group`
    """
    channel: Annotated[tuple[Place, ...] | None, BeforeValidator(as_tuple)] = Field(
        default=None, min_length=1
    )
    """Channels of the thread. `direct` means direct messages.

    Example: `channel: [C0OPS, direct]`

    Errors: `bad_id`, `unknown_id`
    """
    agent: Annotated[tuple[str, ...] | None, BeforeValidator(as_tuple)] = Field(
        default=None, min_length=1
    )
    """Names of the agents that make the call.

    Example: `agent: [deployer]`

    Errors: `unknown_agent`
    """
    origin: Annotated[
        tuple[DoorName, ...] | None,
        BeforeValidator(
            lambda value: (value,) if isinstance(value, str) else as_tuple(value),
            json_schema_input_type=DoorName | list[DoorName],
        ),
    ] = Field(default=None, min_length=1)
    """The way by which the call came: `slack` for agents of the bot; `api`, `mcp`, `hook` or `cli`
    for programs; `trigger` or `schedule` for threads that no person started. In such threads, also
    those of programs, a rule that allows must name the origin; without it, people are asked.

    Example: `origin: [api, cli]`

    Errors: `bad_value`
    """
    program: Annotated[
        tuple[str, ...] | None,
        BeforeValidator(
            lambda value: (value,) if isinstance(value, str) else as_tuple(value),
            json_schema_input_type=str | list[str],
        ),
    ] = Field(default=None, min_length=1)
    """Names of programs: one name, a pattern with `*` and `?`, or a list of both. A rule that
    allows a program's call must name `program` or `origin`; without them, people are asked.

    Example: `program: [deploy-*]`

    Errors: `bad_value`
    """

    @model_validator(mode="after")
    def _is_about_one(self) -> Self:
        others = self.tool or self.tags or self.risk or self.args or self.gated is not None
        if self.limit is not None and others:
            fault = "limit is about no tool, so no call can match the other keys"
            refuse("bad_value", fault, "remove limit, or tool, tags, risk, gated and args")
        return self


class RuleEntry(Filled):
    """A rule: which calls it matches, and what it decides."""

    name: Name
    """Name of the rule on the card, in the audit and in `policy explain`. Each name is used once,
    and `default` is reserved.

    Example: `name: production`

    Errors: `bad_name`, `duplicate_rule`
    """
    when: When = When()
    """The calls that the rule matches. Without `when`, the rule matches every call.

    Example: `when: {tool: deploy}`

    Errors: `unreachable`, `unknown_tool`
    """
    then: Then
    """The decision: `allow`, `{deny: …}` or `{ask: {…}}`.

    Example: `then: {ask: {approve: [{from: [sre]}]}}`

    Errors: `bad_then`
    """

    @model_validator(mode="after")
    def _keeps_the_limit(self) -> Self:
        if self.when.limit is not None and self.then.allow:
            fault = "it allows what exceeds the limit"
            refuse("bad_then", fault, "write {ask: {…}} or {deny: why}, or raise the limit")
        return self


class LiftEntry(Filled):
    """People who can lift a freeze."""

    from_: Annotated[tuple[str, ...], BeforeValidator(as_tuple)] = Field(
        default=(), alias="from", min_length=1
    )
    """Groups whose members can lift a freeze. Default: the people who can freeze.

    Example: `from: [leads]`

    Errors: `unknown_group`
    """
    count: int = Field(default=1, ge=1, le=3)
    """How many different people must confirm the lifting, from 1 to 3. Default: 1.

    Example: `count: 2`

    Errors: `bad_value`
    """


class FreezeEntry(Filled):
    """People who can freeze: stop every start of a call, until people lift the freeze."""

    by: Annotated[tuple[str, ...], BeforeValidator(as_tuple)] = Field(default=(), min_length=1)
    """Groups whose members can freeze, each of them alone. Default: admins and owners of the
    workspace. People listed by their user ids can freeze even while Slack cannot be asked.

    Example: `by: [sre, security]`

    Errors: `unknown_group`
    """
    lift: LiftEntry = LiftEntry()
    """People who can lift a freeze. Default: the people who can freeze, each of them alone.

    Example: `lift: {from: [leads], count: 2}`

    Errors: `unknown_group`, `bad_value`
    """

    alert: ChannelId | None = None
    """Channel that gets one message about each freeze, and its end. Default: the channel where the
    command was typed.

    Example: `alert: C0ALERT`

    Errors: `bad_id`, `unknown_id`, `bot_not_in_channel`
    """

    @property
    def lifters(self) -> tuple[str, ...]:
        """The groups whose members can lift a freeze; empty for admins."""
        return self.lift.from_ or self.by


def _whole_number(value: object) -> object:
    """Return another value than a whole number as text, because `True` and 1.0 equal 1."""
    return value if type(value) is int else str(value)


class PolicyFile(Filled):
    """The whole file."""

    version: Annotated[
        Literal[1], BeforeValidator(_whole_number, json_schema_input_type=Literal[1])
    ]
    """Version of the format.

    Example: `version: 1`

    Errors: `bad_version`
    """
    timezone: Zone | None = None
    """Time zone of rotations and quiet hours that name none.

    Example: `timezone: Europe/Berlin`

    Errors: `bad_value`, `needs_zone`
    """
    groups: dict[Name, GroupEntry] = Field(default_factory=dict)
    """Named sets of people. `requesters` and `editors` are reserved names.

    Example: `groups: {sre: {usergroups: [S0SRE]}}`

    Errors: `bad_name`, `empty_group`
    """
    quiet: QuietEntry | None = None
    """Quiet hours of all rules.

    Example: `quiet: {from: "20:00", until: "08:00", days: [sat, sun], timezone: Europe/Berlin}`

    Errors: `needs_zone`
    """
    freeze: FreezeEntry = FreezeEntry()
    """People who can stop every start of a call.

    Example: `freeze: {by: [sre], lift: {from: [leads], count: 2}}`

    Errors: `unknown_group`
    """
    defaults: AskEntry = AskEntry()
    """Keys of `ask` for every rule that does not write them.

    Example: `defaults: {approve: [{from: [sre]}], expires: 4h}`

    Errors: `unknown_group`
    """
    rules: Annotated[tuple[RuleEntry, ...], BeforeValidator(as_tuple)]
    """The rules, from top to bottom. The first rule that matches decides, so put specific rules
    first.

    Example: `rules: [{name: reading, when: {tags: [read-only]}, then: allow}]`

    Errors: `duplicate_rule`, `unreachable`
    """
    default: Then
    """The decision for a call that no rule matches.

    Example: `default: {ask: {}}`

    Errors: `bad_then`, `no_approvers`, `allow_on_gated`
    """
