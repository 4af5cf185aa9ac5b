"""`countersign policy`: check a policy file, and show the current policy."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from bot.clock import system_clock
from bot.commands.call import Call, Finding
from bot.config.agents import load_model
from bot.config.settings import Settings
from bot.errors import FaultyPolicyError, SettingsError
from bot.policy.current import reader_of
from bot.policy.evaluation.context import PolicyWorld, world_of
from bot.policy.parser.checks import CheckedPolicy, check, check_all
from bot.policy.parser.lookups import SlackFacts
from bot.policy.parser.problems import PolicyError
from bot.policy.parser.schema import schema_text
from bot.policy.parser.settings import policy_text, settings_policy
from bot.ports.people import MOST_MEMBERS
from bot.threads.named_agents import load_roster

OFFLINE = "offline: user, user group and channel IDs weren't checked in Slack"
DEMO_TOOLS = (
    "checked against the demo's tools, because COUNTERSIGN_AGENT isn't set; "
    "set it to check against your own tools"
)
_AGENT_SETTINGS = ("COUNTERSIGN_AGENT", "COUNTERSIGN_AGENTS_FILE")
_NO_TOKEN = "set it to the bot token, or add --offline"  # noqa: S105 - no secret
_ANY_TOKENS = {"SLACK_BOT_TOKEN": "xoxb-none", "SLACK_APP_TOKEN": "xapp-none"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsedCall(Call):
    """An invocation in a simulated world.

    Attributes:
        world: The simulated tools and agents.
        slack: Looks up ids in the simulated workspace.
    """

    world: PolicyWorld
    slack: SlackFacts


async def execute(call: Call) -> None:
    """Run the command."""
    await _ACTIONS[call.arguments.action](call)


async def _check(call: Call) -> None:
    path = Path(call.arguments.file)
    rehearsed = call if isinstance(call, RehearsedCall) else None
    world = rehearsed.world if rehearsed else load_world(call.environ)
    if not rehearsed and names_no_agents(call.environ):
        call.say(DEMO_TOOLS)
    if call.arguments.offline:
        await check_file(path, world, None, call.say)
        return
    slack = nullcontext(rehearsed.slack) if rehearsed else _slack(call.environ)
    async with slack as facts:
        await check_file(path, world, facts, call.say)


async def _schema(call: Call) -> None:
    call.say(schema_text())


async def _show(call: Call) -> None:
    settings = Settings.load({**_ANY_TOKENS, **call.environ})
    if settings.policy is not None:
        data = await _read(settings.policy)
        call.say(data.decode(errors="replace").rstrip())
    else:
        call.say(policy_text(settings_policy(settings)).rstrip())


_ACTIONS: Mapping[str, Callable[[Call], Awaitable[None]]] = {
    "check": _check,
    "schema": _schema,
    "show": _show,
}


async def check_file(
    path: Path, world: PolicyWorld, slack: SlackFacts | None, say: Callable[[str], object]
) -> CheckedPolicy:
    """Check a policy file and print the result.

    Args:
        path: The file.
        world: The tools and agents that exist.
        slack: Looks up ids; None skips the look-ups.
        say: Prints a text to the terminal.

    Raises:
        FaultyPolicyError: The file has faults. The text lists all of them, one per line.
    """
    data = await _read(path)
    if slack is None:
        say(OFFLINE)
    try:
        checked = check(data, world) if slack is None else await check_all(data, world, slack)
    except PolicyError as error:
        raise FaultyPolicyError(error.text(str(path))) from error
    count = len(checked.file.rules)
    say(f"{path}: ok, {count} {'rule' if count == 1 else 'rules'}, SHA-256 {checked.hash}")
    return checked


async def look_at_policy(path: Path, world: PolicyWorld, slack: SlackFacts | None) -> Finding:
    """Check a policy file for the doctor; without Slack, all but its ids."""
    lines: list[str] = []
    large: list[str] = []

    def warn(channel_id: str, count: int) -> None:
        large.append(f"{channel_id} has {count:,} members; at most {MOST_MEMBERS} can decide")

    try:
        facts = replace(slack, warn=warn) if slack is not None else None
        await check_file(path, world, facts, lines.append)
    except FaultyPolicyError as error:
        remedy = "fix the file; a running bot keeps using the last valid one"
        return Finding(subject="COUNTERSIGN_POLICY", text=str(error), remedy=remedy)
    if large:
        remedy = "name people or user groups instead of the channel"
        return Finding(subject="COUNTERSIGN_POLICY", text="; ".join(large), remedy=remedy)
    return Finding(subject="policy", text=lines[-1])


def names_no_agents(environ: Mapping[str, str]) -> bool:
    """Return whether no setting names the agents, so that those of the demo are loaded."""
    return not any(environ.get(name) for name in _AGENT_SETTINGS)


def load_world(environ: Mapping[str, str]) -> PolicyWorld:
    """Return the tools of the agents in `COUNTERSIGN_AGENT`; other settings may be missing.

    Raises:
        InvalidSettingsError: A setting is invalid.
        SettingsError: The agents cannot be loaded.
    """
    names = (*_AGENT_SETTINGS, "COUNTERSIGN_MODEL")
    given = {name: environ[name] for name in names if name in environ}
    settings = Settings.load({**_ANY_TOKENS, "COUNTERSIGN_APPROVERS": "U0NOBODY00", **given})
    return world_of(load_roster(settings, load_model(settings.model)).agents.values())


async def _read(path: Path) -> bytes:
    try:
        return await reader_of(path)()
    except OSError as error:
        raise FaultyPolicyError(f"can't read {path}: {error.strerror or error}") from error


@asynccontextmanager
async def _slack(environ: Mapping[str, str]) -> AsyncIterator[SlackFacts]:
    # The import takes a second, and only checks in Slack need it.
    from bot.slack import connect  # noqa: PLC0415
    from bot.slack.directory import SlackDirectory  # noqa: PLC0415
    from bot.slack.ratelimit import Pacer  # noqa: PLC0415

    names = ("SLACK_BOT_TOKEN", "SLACK_API_URL")
    given = {name: environ[name] for name in names if environ.get(name, "").strip()}
    if "SLACK_BOT_TOKEN" not in given:
        raise SettingsError("SLACK_BOT_TOKEN", "not set, but needed to look up IDs", _NO_TOKEN)
    settings = Settings.load({**_ANY_TOKENS, "COUNTERSIGN_APPROVERS": "U0NOBODY00", **given})
    slack = await connect.reach_slack(settings)
    async with connect.lookup_session() as session:
        client = slack.client(timeout_s=connect.LOOKUP_S, session=session)
        directory = SlackDirectory(
            client, team_id=slack.identity.team_id, clock=system_clock, pacer=Pacer()
        )
        yield SlackFacts(lookups=directory, bot_user_id=slack.identity.bot_user_id)
