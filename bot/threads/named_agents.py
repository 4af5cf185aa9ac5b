"""Load the agents: of `COUNTERSIGN_AGENT`, or of a file that names several.

The file (`COUNTERSIGN_AGENTS_FILE`, usually `countersign.yaml`) is read once, at startup. All its
errors are reported together, each with its line and the correction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from re import fullmatch
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, ValidationError
from pydantic_ai.models import Model

from agents import Agent
from bot.config.agents import AGENT_NAME, CHANNEL, EVERYWHERE, load_agent, load_agents
from bot.config.settings import Settings
from bot.config.values import AGENT_PATH, AGENT_REMEDY
from bot.errors import InvalidSettingsError, SettingsError
from bot.policy.entries import Filled
from bot.policy.parser.problems import PolicyError, PolicyProblem
from bot.policy.parser.source import MAX_BYTES, SourceNode, read_source
from bot.policy.parser.structure import refused
from bot.policy.values import as_tuple, refuse, wrong_type
from bot.threads.runs.model_limits import ModelLimits, has_price
from bot.triggers.entries import ScheduleEntry, TriggerEntry

VARIABLE = "COUNTERSIGN_AGENTS_FILE"
MOST_PROMPTS = 4
"""Slack's maximum number of prompts."""

_CHANNEL_REMEDY = "write an id such as C0123ABC, a name such as #finance, or * for all others"


def _shaped(form: str, remedy: str) -> BeforeValidator:
    def read(value: object) -> str:
        if not isinstance(value, str):
            wrong_type(value, "a text")
        if not fullmatch(form, value):
            refuse("bad_value", f"{value!r} isn't in the right format", remedy)
        return value

    return BeforeValidator(read)


_Name = Annotated[
    str, _shaped(AGENT_NAME, "begin with a small letter; then small letters, digits, - and _")
]
_StartName = Annotated[
    str,
    _shaped(r"[a-z][a-z0-9-]{0,39}", "begin with a small letter; then small letters, digits and -"),
]
_Words = Annotated[str, _shaped(r"(?s)(?=.*\S).{1,2000}", "write from 1 to 2,000 characters")]
_Line = Annotated[str, _shaped(r"(?=.*\S).{1,75}", "write one line of at most 75 characters")]


class PromptEntry(Filled):
    """A suggested prompt in the file."""

    title: _Line
    message: _Words


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A suggested prompt as displayed."""

    title: str
    message: str


class AgentEntry(Filled):
    """An agent.

    Attributes:
        use: Import path, as in `COUNTERSIGN_AGENT`.
        channels: Ids or names of channels where it works without its name; `*` for all others.
        description: Replaces the agent's own description.
        prompts: Suggested prompts of a new conversation.
        limits: What its models may use.
    """

    use: Annotated[str, _shaped(AGENT_PATH, AGENT_REMEDY)]
    channels: Annotated[
        tuple[Annotated[str, _shaped(CHANNEL, _CHANNEL_REMEDY)], ...], BeforeValidator(as_tuple)
    ] = ()
    description: _Words | None = None
    prompts: Annotated[
        tuple[PromptEntry, ...], BeforeValidator(as_tuple), Field(max_length=MOST_PROMPTS)
    ] = ()
    limits: ModelLimits | None = None


class RosterFile(Filled):
    """The file: agents by the name with which people address them; triggers and schedules."""

    version: Literal[1]
    agents: dict[_Name, AgentEntry]
    triggers: dict[_StartName, TriggerEntry] = Field(default_factory=dict)
    schedules: dict[_StartName, ScheduleEntry] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Roster:
    """The loaded agents."""

    agents: Mapping[str, Agent]
    descriptions: Mapping[str, str] = field(default_factory=dict)
    prompts: Mapping[str, tuple[PromptEntry, ...]] = field(default_factory=dict)
    limits: Mapping[str, ModelLimits] = field(default_factory=dict)
    triggers: Mapping[str, TriggerEntry] = field(default_factory=dict)
    schedules: Mapping[str, ScheduleEntry] = field(default_factory=dict)

    def offered(self) -> tuple[Prompt, ...]:
        """Return the prompts of a direct message: the default agent's first.

        Prompts of other agents begin with the agent's name.
        """
        default = self.agents.get(EVERYWHERE)
        prompts = list(self._prompts_of(default, ""))
        for key, agent in self.agents.items():
            if key.startswith("@") and agent is not default:
                prompts += self._prompts_of(agent, f"{key[1:]}: ")
        return tuple(prompts[:MOST_PROMPTS])

    def _prompts_of(self, agent: Agent | None, call: str) -> Iterator[Prompt]:
        for prompt in self.prompts.get(agent.name, ()) if agent is not None else ():
            yield Prompt(title=prompt.title, message=f"{call}{prompt.message}")


def load_roster(
    settings: Settings,
    model: Model,
    *,
    load: Callable[[str, Model], Mapping[str, Agent]] = load_agents,
) -> Roster:
    """Import the agents of the settings.

    Raises:
        SettingsError: An agent cannot be imported.
        InvalidSettingsError: The file has errors; lists all of them.
    """
    path = settings.agents_file
    if path is None:
        return Roster(agents=load(settings.agent, model))
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        fault = f"{path} cannot be read: {error.strerror or error}"
        raise SettingsError(VARIABLE, fault, "give the path of a file that is there") from error
    try:
        return read_roster(data, model)
    except PolicyError as error:
        problems = [_settings_error(path, problem) for problem in error.problems]
        raise InvalidSettingsError(problems) from error


def read_roster(data: bytes, model: Model) -> Roster:
    """Read a file of agents and import them.

    Raises:
        PolicyError: The file has errors; lists all of them, in file order.
    """
    root, problems = read_source(data)
    try:
        file = RosterFile.model_validate(root.plain())
    except ValidationError as error:
        raise PolicyError([*problems, *refused(RosterFile, root, error)]) from error
    loaded, faults = _loaded(root, file, model)
    problems += [*_without_agents(root, file), *_double_places(root), *faults]
    problems += [*_unpriced(root, file, model), *_unknown_agents(root, file)]
    if problems:
        raise PolicyError(problems)
    return _roster(file, loaded)


def _roster(file: RosterFile, loaded: Mapping[str, Agent]) -> Roster:
    places = {f"@{name}": agent for name, agent in loaded.items()}
    for name, entry in file.agents.items():
        places |= dict.fromkeys(entry.channels, loaded[name])
    entries = {loaded[name].name: entry for name, entry in file.agents.items()}
    return Roster(
        agents=places,
        descriptions={
            name: entry.description for name, entry in entries.items() if entry.description
        },
        prompts={name: entry.prompts for name, entry in entries.items() if entry.prompts},
        limits={name: entry.limits for name, entry in entries.items() if entry.limits},
        triggers=file.triggers,
        schedules=file.schedules,
    )


def _loaded(
    root: SourceNode, file: RosterFile, model: Model
) -> tuple[dict[str, Agent], list[PolicyProblem]]:
    """Return the imported agents, and the errors of the others."""
    loaded: dict[str, Agent] = {}
    problems: list[PolicyProblem] = []
    lines: dict[str, int] = {}
    for name, entry in file.agents.items():
        node = root.get("agents", name, "use") or root
        try:
            agent = load_agent(entry.use, model)
        except SettingsError as error:
            problems.append(node.problem("bad_value", error.fault, error.remedy))
            continue
        loaded[name] = agent
        if (line := lines.setdefault(agent.name, node.line)) != node.line:
            fault = f"its agent is called {agent.name!r}, as that of line {line}"
            remedy = "give each agent a unique name"
            problems.append(node.problem("bad_name", fault, remedy))
    return loaded, problems


def _unpriced(root: SourceNode, file: RosterFile, model: Model) -> Iterator[PolicyProblem]:
    """Yield limits of cost that cannot be kept, because the model has no known price."""
    for name, entry in file.agents.items():
        node = root.get("agents", name, "limits", "cost")
        limits = entry.limits
        if node is None or limits is None or limits.price is not None or has_price(model):
            continue
        fault = f"the model {model.model_name!r} has no known price"
        remedy = "add price: {input: 2.50 USD, output: 10 USD} of a million tokens, or limit tokens"
        yield node.problem("bad_value", fault, remedy)


def _unknown_agents(root: SourceNode, file: RosterFile) -> Iterator[PolicyProblem]:
    """Yield triggers and schedules whose agent is not in the file."""
    for part, entries in (("triggers", file.triggers), ("schedules", file.schedules)):
        for name, entry in entries.items():
            node = root.get(part, name, "agent")
            if node is not None and entry.agent not in file.agents:
                fault = f"no agent is called {entry.agent!r}"
                yield node.problem("bad_name", fault, "name one of `agents`, or leave it out")


def _without_agents(root: SourceNode, file: RosterFile) -> Iterator[PolicyProblem]:
    if not file.agents:
        node = root.get("agents") or root
        remedy = 'add one, such as helpdesk: {use: "helpdesk.agent:build", channels: ["*"]}'
        yield node.problem("bad_value", "it names no agent", remedy)


def _double_places(root: SourceNode) -> Iterator[PolicyProblem]:
    agents = root.get("agents")
    lines: dict[str, int] = {}
    for entry in (agents.entries or {}).values() if agents is not None else ():
        for node, text in entry.texts("channels"):
            if text in lines:
                fault = f"{text} is there already, in line {lines[text]}"
                yield node.problem("bad_value", fault, "let one agent work in it")
            lines.setdefault(text, node.line)


def _settings_error(path: Path, problem: PolicyProblem) -> SettingsError:
    key = f"{problem.key}: " if problem.key else ""
    return SettingsError(
        VARIABLE, f"{path.name}:{problem.line}: {key}{problem.fault}", problem.remedy
    )
