"""`countersign policy explain`: how a policy file decides one call, rule by rule."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import yaml
from pydantic import ConfigDict, Field, JsonValue

from agents.policy.base import Allow, Ask, Deny, Ruling
from agents.policy.combine import strictest
from bot.commands.call import Call
from bot.errors import BotError
from bot.policy.evaluation.context import Gate, PolicyQuestion, ToolFacts, with_defaults
from bot.policy.evaluation.evaluate import DEFAULT, Judged, PolicyEvaluator
from bot.policy.evaluation.explain import explained, in_words, shortage_of
from bot.policy.model import Limit, PolicyFile
from bot.policy.parser.lookups import ids_in
from bot.policy.parser.problems import PolicyError
from bot.policy.parser.source import SourceNode, read_source
from bot.policy.parser.structure import read_structure
from bot.records.origin import RequestDoor
from bot.records.terms import Group, Risk, Terms
from bot.rehearsal.case_schema import Written, check
from bot.rehearsal.policy_cases import picture
from bot.rehearsal.scripted_agents import refused_by
from bot.rehearsal.world import CHANNEL, program_of
from bot.threads.runs.limit_terms import OPERATORS


class _Form(Written):
    model_config = ConfigDict(strict=False)  # lists become tuples


class ToolForm(_Form):
    """A tool in a call's file."""

    tags: tuple[str, ...] = ()
    risk: Risk = "medium"
    gate: Gate = "none"
    schema_: dict[str, JsonValue] = Field(default_factory=dict, alias="schema")


class CodeForm(_Form):
    """A decision of code on the call: ask, or deny with a reason."""

    rule: str = Field(min_length=1)
    kind: Literal["approval", "review"] = "approval"
    approvers: tuple[str, ...] = ()
    deny: str | None = None

    def ruling(self) -> Ruling:
        """Convert the decision to a ruling of the runtime."""
        if self.deny is not None:
            return Deny(self.deny, rule=self.rule)
        return Ask(rule=self.rule, kind=self.kind, approvers=self.approvers)


class WorldForm(_Form):
    """The tools and user groups for the evaluation of the call.

    Attributes:
        tools: Tools by name; must include the tool of the call.
        usergroups: Members of user groups by id; other user groups are unknown.
    """

    tools: dict[str, ToolForm] = Field(default_factory=dict)
    usergroups: dict[str, tuple[str, ...]] = Field(default_factory=dict)


class ProgramForm(_Form):
    """A program that makes the call; see `ProgramFacts`."""

    name: str
    trusted: bool = False
    claimed: tuple[str, ...] = ()


class CallForm(_Form):
    """A call in the file format of this command; `said` are the requesters."""

    tool: str
    args: dict[str, JsonValue] = Field(default_factory=dict)
    said: tuple[str, ...] = ()
    channel: str = ""
    agent: str = ""
    origin: RequestDoor | None = None
    program: ProgramForm | None = None
    code: tuple[CodeForm, ...] = ()
    world: WorldForm = WorldForm()


class LimitForm(CallForm):
    """A limit of an agent's models in place of a call."""

    tool: Literal[""] = ""
    limit: Limit


@dataclass(frozen=True, slots=True)
class _KnownPeople:
    """Looks up members of groups, from the user groups in the file.

    Attributes:
        usergroups: Members of user groups by id.
        unknown: Groups that a condition looked up in vain.
    """

    usergroups: Mapping[str, tuple[str, ...]]
    unknown: list[Group] = field(default_factory=list)

    def known(self, group: Group) -> frozenset[str] | None:
        if group.channels or group.rotation or group.here:
            return None
        if any(usergroup not in self.usergroups for usergroup in group.usergroups):
            return None
        lists = [group.users, *(self.usergroups[usergroup] for usergroup in group.usergroups)]
        return frozenset(user for users in lists for user in users)

    async def members(self, group: Group) -> frozenset[str] | None:
        people = self.known(group)
        if people is None:
            self.unknown.append(group)
        return people


async def execute(call: Call) -> None:
    """Run the command."""
    arguments = call.arguments
    root, file = _read_policy(Path(arguments.file))
    form = _read_call(Path(arguments.call))
    people = _KnownPeople(form.world.usergroups)
    question = _question(form, Path(arguments.call))
    judged = await PolicyEvaluator(file).judge(
        question, people.members, strictest([policy.ruling() for policy in form.code] or [Allow()])
    )
    shortage = shortage_of(judged, question.requesters, _known_groups(judged, people))
    if arguments.as_case and not isinstance(form, LimitForm):
        call.say(_as_case(root, form, judged, people.unknown))
    elif isinstance(form, LimitForm) and judged.names == (DEFAULT,):
        call.say(f"no rule names the limit of {form.limit}: {OPERATORS} decide, or the admins")
    else:
        refusal = refused_by(question.tool.schema, form.args)
        if arguments.json:
            data = {**explained(judged, shortage), "refused": refusal}
            call.say(json.dumps(data, ensure_ascii=False, indent=2))
            return
        call.say(in_words(judged, shortage))
        if refusal:
            call.say(f"  refused    by the tool itself, before any rule: {refusal}")


def _as_case(root: SourceNode, form: CallForm, judged: Judged, unknown: Sequence[Group]) -> str:
    """Return a file of cases that expects the call's present evaluation.

    Raises:
        BotError: The evaluation would be another one in a case, where all groups are known.
    """
    if unknown:
        missing = [each for group in unknown for each in group.usergroups]
        raise BotError(
            f"it is not known who is in {', '.join(missing) or 'the groups'} of a condition on "
            "requesters; add the user groups to world.usergroups of the call, or write the case by "
            "hand"
        )
    ids = ids_in(root)
    usergroups = {
        usergroup: [*form.world.usergroups.get(usergroup, ())] for usergroup in ids.usergroups
    }
    users = {*ids.people, *form.said}
    users |= {user for members in usergroups.values() for user in members}
    channels = {*ids.channels, form.channel or CHANNEL}
    world = {
        "people": {user: {} for user in sorted(users)},
        "usergroups": usergroups,
        "channels": {channel: sorted(users) for channel in sorted(channels)},
        "bot_in": sorted(channels),
        "agents": [form.agent or "agent"],
        "tools": form.model_dump(mode="json", by_alias=True)["world"]["tools"],
    }
    call = form.model_dump(mode="json", exclude={"world"}, exclude_defaults=True)
    outcome = picture(judged)
    expect = {
        name: outcome[name] for name in ("effect", "names", "requirements") if name in outcome
    }
    case = {"id": form.tool, "kind": "explain", "call": {"said": [], **call}, "expect": expect}
    return yaml.safe_dump({"world": world, "cases": [case]}, sort_keys=False).rstrip()


def _known_groups(judged: Judged, people: _KnownPeople) -> dict[str, frozenset[str]]:
    groups = judged.ruling.groups if isinstance(judged.ruling, Terms) else {}
    members_by_name = {name: people.known(group) for name, group in groups.items()}
    return {name: members for name, members in members_by_name.items() if members is not None}


def _question(form: CallForm, path: Path) -> PolicyQuestion:
    if isinstance(form, LimitForm):
        return PolicyQuestion(
            tool=ToolFacts(name="", limit=form.limit),
            arguments={},
            requesters=form.said,
            channel=form.channel,
            agent=form.agent,
        )
    tool = form.world.tools.get(form.tool)
    if tool is None:
        raise BotError(
            f"{path}: the tool {form.tool} isn't described; "
            f'add "world": {{"tools": {{"{form.tool}": {{"tags": […], "risk": "…"}}}}}}'
        )
    program = program_of(form.program.model_dump() if form.program else None)
    door = form.origin or (RequestDoor.SLACK if program is None else RequestDoor.API)
    return PolicyQuestion(
        tool=ToolFacts(
            name=form.tool, tags=tool.tags, risk=tool.risk, gate=tool.gate, schema=tool.schema_
        ),
        arguments=with_defaults(tool.schema_, form.args),
        requesters=form.said,
        channel=form.channel,
        agent=program.name if program else form.agent,
        gated=program is not None or tool.gate != "none" or bool(form.code),
        door=door,
        program=program,
        is_unattended=program is None and door is not RequestDoor.SLACK,
    )


def _read_policy(path: Path) -> tuple[SourceNode, PolicyFile]:
    try:
        root, problems = read_source(path.read_bytes())
        file, faults = read_structure(root)
    except OSError as error:
        raise BotError(f"can't read {path}: {error.strerror}") from error
    except PolicyError as error:
        raise BotError(error.text(str(path))) from error
    if file is None or problems or faults:
        raise BotError(PolicyError([*problems, *faults]).text(str(path)))
    return root, file


def _read_call(path: Path) -> CallForm:
    """Read the file of a call.

    Raises:
        BotError: It cannot be read, is no JSON, repeats a key, or is no call.
    """
    try:
        data = json.loads(path.read_bytes(), object_pairs_hook=_object, parse_constant=_refuse)
    except OSError as error:
        raise BotError(f"can't read {path}: {error.strerror}") from error
    except _RepeatedKeyError as error:
        raise BotError(
            f"{path}: the key {error.args[0]!r} is there twice; remove one of them"
        ) from error
    except json.JSONDecodeError as error:
        raise BotError(f"{path}:{error.lineno}: not JSON: {error.msg}") from error
    except _NoNumberError as error:
        raise BotError(
            f"{path}: {error.args[0]} is no number of JSON; write a number or a text"
        ) from error
    except (ValueError, RecursionError) as error:
        raise BotError(f"{path}: not JSON in UTF-8") from error
    form = LimitForm if isinstance(data, dict) and "limit" in data else CallForm
    check(form, data, str(path))
    return form.model_validate(data)


class _RepeatedKeyError(Exception):
    """An object has a key twice."""


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields: dict[str, object] = {}
    for name, value in pairs:
        if name in fields:
            raise _RepeatedKeyError(name)
        fields[name] = value
    return fields


class _NoNumberError(Exception):
    """A number is infinite or no number."""


def _refuse(constant: str) -> object:
    raise _NoNumberError(constant)
