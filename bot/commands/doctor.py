"""`countersign doctor`: check everything that the bot needs, and print remedies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import aiohttp
from pydantic_ai.models import Model
from slack_sdk.errors import SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

from agents import Agent
from agents.core.errors import ModelError, ModelRefusedError
from agents.models import ask_once
from agents.runs.declared import people_named
from bot.clock import system_clock
from bot.commands.call import Call, Finding
from bot.commands.database import look_at_storage
from bot.commands.policy import look_at_policy
from bot.config.agents import load_agents, load_model
from bot.config.manifest import AGENT_SCOPE, check_manifest, manifest_text, needed_scopes
from bot.config.settings import Settings
from bot.errors import BotError, DirectoryError, InvalidSettingsError, SettingsError
from bot.policy.evaluation.context import world_of
from bot.policy.parser.lookups import SlackFacts
from bot.ports.people import CHANNEL, MOST_MEMBERS
from bot.ports.process import Clock
from bot.slack.calls import slack_fault
from bot.slack.directory import SlackDirectory
from bot.slack.ratelimit import Pacer
from bot.stores import Stores
from bot.threads.named_agents import Roster, load_roster
from bot.words.mrkdwn import is_person

TIMEOUT_S = 10
"""Longest time of a call to Slack by `countersign doctor`, in seconds."""

MODEL_S = 30
"""Longest time of the model's answer to `countersign doctor --model`, in seconds."""

_NO_ANSWER = ("connection failed", "no answer")
"""Beginnings of the faults of a network."""
_NETWORK = "check the network of this machine"
_SLACK_FAULTS = (SlackClientError, aiohttp.ClientError, OSError, TimeoutError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """The tools of the doctor.

    Attributes:
        manifest: The text of the app's manifest.
        load_model: Creates a model by name; raises `SettingsError`.
        load_agents: Imports agents by their path; returns them by channel; raises `SettingsError`.
        ask_model: Asks a model for one word; raises `ModelError`. None skips this check.
        make_storage: Creates the configured storage without opening it.
    """

    manifest: str
    load_model: Callable[[str], Model]
    load_agents: Callable[[str, Model], Mapping[str, Agent]]
    ask_model: Callable[[Model], Awaitable[None]] | None = None
    make_storage: Callable[[Settings], Stores]
    clock: Clock


async def execute(call: Call) -> None:
    """Run the command."""
    tools = Tools(
        manifest=manifest_text(),
        load_model=load_model,
        load_agents=load_agents,
        ask_model=ask_once if call.arguments.model else None,
        make_storage=Settings.make_storage,
        clock=system_clock,
    )
    faults = 0
    async for finding in examine(call.environ, tools):
        call.say(str(finding))
        faults += not finding.is_ok
    if faults:
        raise BotError(f"{faults} {'problem' if faults == 1 else 'problems'} to fix")


async def examine(environ: Mapping[str, str], tools: Tools) -> AsyncIterator[Finding]:
    """Check one subject after the other. Tables that an existing database lacks are created.

    Args:
        environ: The variables of the process.
        tools: The doctor's access to the rest of the program.
    """
    yield _look_at_manifest(tools.manifest)
    try:
        settings = Settings.load(environ)
    except InvalidSettingsError as error:
        for problem in error.problems:
            yield _finding(problem)
        return
    transport = "Socket Mode" if settings.is_socket_mode else "HTTP"
    yield Finding(subject="settings", text=f"complete; connects to Slack over {transport}")
    findings, roster = _look_at_agents(settings, tools)
    agents = tuple(roster.agents.values())
    faults = await _policy_faults(settings, agents)
    for finding in (*findings, *faults):
        yield finding
    if tools.ask_model is not None:
        yield await _look_at_model(settings, tools.load_model, tools.ask_model)
    async for finding in look_at_storage(settings, tools.make_storage):
        yield finding
    async for finding in _look_at_slack(settings, roster, tools.clock, has_faults=bool(faults)):
        yield finding


def _look_at_manifest(text: str) -> Finding:
    faults = check_manifest(text)
    if faults:
        return Finding(
            subject="manifest.yml",
            text="; ".join(faults),
            remedy="use the manifest of this release, or make the changes listed",
        )
    return Finding(subject="manifest.yml", text="matches this release")


def _look_at_agents(settings: Settings, tools: Tools) -> tuple[list[Finding], Roster]:
    """Load the agents; return the findings and the agents, without agents after a failure."""
    try:
        roster = load_roster(settings, tools.load_model(settings.model), load=tools.load_agents)
    except InvalidSettingsError as error:
        return [_finding(problem) for problem in error.problems], Roster(agents={})
    except SettingsError as error:
        return [_finding(error)], Roster(agents={})
    agents = roster.agents
    names = ", ".join(dict.fromkeys(agent.name for agent in agents.values()))
    text = f"{names}, with the model {settings.model}"
    limits = (f"{name}: {', '.join(entry.words())}" for name, entry in roster.limits.items())
    text += "".join(f"; limits of {words}" for words in limits)
    if tools.ask_model is None:
        text += "; model not tested (add --model to test it)"
    return [Finding(subject="agent", text=text)], roster


async def _policy_faults(settings: Settings, agents: Sequence[Agent]) -> list[Finding]:
    """Return the faults of the policy file that need no look at Slack."""
    if settings.policy is None or not agents:
        return []
    finding = await look_at_policy(settings.policy, world_of(agents), None)
    return [] if finding.is_ok else [finding]


async def _look_at_model(
    settings: Settings,
    load_model: Callable[[str], Model],
    ask_model: Callable[[Model], Awaitable[None]],
) -> Finding:
    try:
        async with asyncio.timeout(MODEL_S):
            await ask_model(load_model(settings.model))
    except SettingsError as error:
        return _finding(error)
    except ModelRefusedError as error:
        return Finding(
            subject="COUNTERSIGN_MODEL",
            text=f"{settings.model} rejects requests",
            remedy=str(error),
        )
    except (ModelError, TimeoutError) as error:
        why = type(error.__cause__ or error).__name__
        return Finding(
            subject="COUNTERSIGN_MODEL",
            text=f"{settings.model} isn't responding ({why})",
            remedy=(
                "try again; if it keeps failing, check your network and the provider's status page"
            ),
        )
    return Finding(subject="model", text=f"{settings.model} responds")


async def _look_at_slack(
    settings: Settings, roster: Roster, clock: Clock, *, has_faults: bool
) -> AsyncIterator[Finding]:
    agents = tuple(roster.agents.values())
    token = settings.slack_bot_token.get_secret_value()
    client = AsyncWebClient(token=token, base_url=settings.slack_api_url, timeout=TIMEOUT_S)
    try:
        answer = await client.auth_test()
    except _SLACK_FAULTS as error:
        yield _slack_finding(error, is_set="slack_api_url" in settings.model_fields_set)
    else:
        yield Finding(
            subject="SLACK_BOT_TOKEN",
            text=f"valid; connected as {answer.get('user')} in {answer.get('team')}",
        )
        granted = _header(answer.headers, "x-oauth-scopes")
        yield _compare_scopes(frozenset(scope.strip() for scope in granted.split(",")))
        team_id = str(answer.get("team_id"))
        directory = SlackDirectory(client, team_id=team_id, clock=clock, pacer=Pacer())
        named = tuple(dict.fromkeys(name for agent in agents for name in people_named(agent)))
        if settings.policy is not None and not has_faults:
            slack = SlackFacts(lookups=directory, bot_user_id=str(answer.get("user_id")))
            yield await look_at_policy(settings.policy, world_of(agents), slack)
        async for finding in _look_at_deciders(settings, named, directory):
            yield finding
        if roster.triggers or roster.schedules:
            yield await _look_at_starts(roster, directory)
    yield await _look_at_transport(settings, client)


def _header(headers: Mapping[str, object], name: str) -> str:
    values = (str(value) for key, value in headers.items() if key.lower() == name)
    return next(values, "")


def _compare_scopes(granted: frozenset[str]) -> Finding:
    needed = needed_scopes()
    if missing := sorted(needed - granted - {AGENT_SCOPE}):
        return Finding(
            subject="scopes",
            text=f"the bot token is missing {', '.join(missing)}",
            remedy="update the app's manifest from manifest.yml, then reinstall the app",
        )
    surplus = ", ".join(sorted(granted - needed - {""}))
    remark = f"; not needed, consider removing: {surplus}" if surplus else ""
    if AGENT_SCOPE not in granted:
        remark += f"; without {AGENT_SCOPE}, Slack shows no suggested prompts or stop button"
    return Finding(subject="scopes", text=f"match manifest.yml{remark}")


async def _look_at_deciders(
    settings: Settings, named: Sequence[str], directory: SlackDirectory
) -> AsyncIterator[Finding]:
    """Check all approvers that the settings and the policies of tools name."""
    if settings.policy is None:
        yield await _look_at_people("COUNTERSIGN_APPROVERS", settings.approvers, directory)
    if settings.escalate_to:
        yield await _look_at_people("COUNTERSIGN_ESCALATE_TO", settings.escalate_to, directory)
    if named:
        yield await _look_at_people("COUNTERSIGN_AGENT", named, directory)
    if settings.channels or CHANNEL in named:
        yield await _look_at_channels(settings, named, directory)


async def _look_at_starts(roster: Roster, directory: SlackDirectory) -> Finding:
    """Check the owners and the channels of triggers and schedules."""
    faults: list[str] = []
    entries = {**roster.triggers, **roster.schedules}
    for name, entry in entries.items():
        try:
            if not (await directory.person(entry.owner)).is_full_member:
                faults.append(f"the owner of {name} is no active full member")
            if not await directory.is_in(entry.channel):
                faults.append(f"the bot isn't in {entry.channel} of {name}")
        except DirectoryError as error:
            faults.append(f"can't look up {name} ({error.detail})")
    subject = "triggers and schedules"
    if faults:
        remedy = "name another owner, or invite the bot: nothing starts"
        return Finding(subject=subject, text="; ".join(faults), remedy=remedy)
    return Finding(subject=subject, text=", ".join(entries))


async def _look_at_channels(
    settings: Settings, named: Sequence[str], directory: SlackDirectory
) -> Finding:
    variable, counts, faults = "COUNTERSIGN_CHANNELS", [], []
    decides = CHANNEL in {*settings.approvers, *settings.escalate_to, *named}
    for channel in settings.channels:
        try:
            count = len(await directory.channel_members(channel))
        except DirectoryError as error:
            faults.append(f"can't look up {channel} ({error.detail})")
            continue
        counts.append(f"{channel} ({count} {'member' if count == 1 else 'members'})")
        if decides and count > MOST_MEMBERS:
            faults.append(
                f"{channel} has {count} members; in channels with more than "
                f"{MOST_MEMBERS}, members can't approve"
            )
    if decides and not settings.channels:
        faults.append(
            "a tool's policy lets `channel` approve, which means no one until this is set"
        )
    if faults:
        remedy = "list IDs of channels the bot is in, or name people or groups as approvers"
        return Finding(subject=variable, text="; ".join(faults), remedy=remedy)
    words = f"approvals work only in {', '.join(counts)}"
    if decides:
        words += (
            "; `channel`: anyone who was a member when it was requested and still is can "
            "approve, except the requester. Anyone who can invite people there can add "
            "approvers."
        )
    return Finding(subject="channels", text=words)


async def _look_at_people(
    variable: str, names: Sequence[str], directory: SlackDirectory
) -> Finding:
    faults: list[str] = []
    for name in names:
        try:
            faults += await _approver_faults(name, directory)
        except DirectoryError as error:
            faults.append(f"can't look up {name} ({error.detail})")
    if faults:
        remedy = "use people in this workspace, or groups that have members"
        return Finding(subject=variable, text="; ".join(faults), remedy=remedy)
    return Finding(subject=_DECIDERS[variable], text=", ".join(names))


_DECIDERS = {
    "COUNTERSIGN_APPROVERS": "approvers",
    "COUNTERSIGN_ESCALATE_TO": "backup people",
    "COUNTERSIGN_AGENT": "approvers of policies",
}


async def _approver_faults(name: str, directory: SlackDirectory) -> Iterator[str]:
    if name.startswith("S"):
        members = await directory.group_members(name)
        return iter(() if members else (f"{name} has no members",))
    if name == CHANNEL:
        return iter(())
    if not is_person(name):
        return iter((f"{name!r} isn't a user ID or a user group ID",))
    person = await directory.person(name)
    traits = {
        "is an app": person.is_bot,
        "is a guest": person.is_guest,
        "isn't in this workspace": not person.team_id,
        "belongs to another workspace": person.is_external and bool(person.team_id),
        "is deactivated": person.is_deleted,
    }
    return (
        f"{name} {trait}, so they can never approve" for trait, has_it in traits.items() if has_it
    )


async def _look_at_transport(settings: Settings, client: AsyncWebClient) -> Finding:
    if settings.slack_app_token is None:
        return Finding(
            subject="SLACK_SIGNING_SECRET", text="set; it's checked when Slack sends a request"
        )
    try:
        await client.apps_connections_open(app_token=settings.slack_app_token.get_secret_value())
    except _SLACK_FAULTS as error:
        fault = slack_fault(error)
        remedy = "create an app-level token with connections:write, and turn on Socket Mode"
        return Finding(
            subject="SLACK_APP_TOKEN",
            text=f"can't open a Socket Mode connection: {fault}",
            remedy=_NETWORK if fault.startswith(_NO_ANSWER) else remedy,
        )
    return Finding(subject="SLACK_APP_TOKEN", text="valid; Socket Mode works")


def _slack_finding(error: BaseException, *, is_set: bool) -> Finding:
    """Return the fault of a call to Slack; `is_set`: whether the operator set its address."""
    fault = slack_fault(error)
    if fault.startswith(_NO_ANSWER):
        if is_set:
            text, remedy = f"Slack isn't responding: {fault}", "check the address and the network"
            return Finding(subject="SLACK_API_URL", text=text, remedy=remedy)
        return Finding(subject="Slack", text=f"isn't responding: {fault}", remedy=_NETWORK)
    return Finding(
        subject="SLACK_BOT_TOKEN",
        text=f"Slack rejected it: {fault}",
        remedy="copy the Bot User OAuth Token again (app settings, OAuth & Permissions)",
    )


def _finding(problem: SettingsError) -> Finding:
    return Finding(subject=problem.variable, text=problem.fault, remedy=problem.remedy)
