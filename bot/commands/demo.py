"""`countersign demo`: run the sandbox and the bot in one process, with a temporary database."""

from __future__ import annotations

import asyncio
import errno
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from bot import main
from bot.clock import MovableClock, milliseconds
from bot.commands.call import Call, RunBot, stopped_by_signals
from bot.commands.demo_environment import demo_environment
from bot.commands.demo_guide import FIRST_MESSAGE, GUIDE
from bot.commands.keys import USUAL_KEY
from bot.commands.parser import PORT
from bot.config.agents import DEMO_AGENTS, DEMO_MODEL
from bot.config.manifest import bot_scopes, manifest_text, read_manifest
from bot.config.settings import Settings
from bot.demo import POLICY
from bot.demo.patterns.programs import ACCESS
from bot.errors import BotError
from bot.layout.action_ids import ActionId
from bot.records.programs import (
    ProgramKeyRecord,
    ProgramRecord,
    ProgramScope,
    key_digest,
    key_id,
    new_key,
    program_id,
)
from bot.records.webhooks import new_secret
from slack_sandbox import OPS, ROSA, Sandbox, surfaces_of

_OURS = "bot.demo:"
_PROGRAM, _PROGRAMS = "ci", "programs"
"""The program that asks in the demo, and its channel."""

_FIRST_CARD_S = 30.0
"""How long the greeting waits for the first card, in seconds."""

WELCOME = """\
Countersign is ready. Open this page:

    {url}
{guide}
Channels under Patterns and Policy show one thing each: their topics tell you
what to type. Press Ctrl-C to stop.
"""
WELCOME_PROGRAMS = """
Your own programs can ask in #programs. In their terminal, type:

    export COUNTERSIGN_URL={url}
    export COUNTERSIGN_KEY={key}
"""
WELCOME_GUIDE = """
Rosa has asked an agent for a deployment, and you are Ada: approve it. The page
then shows what else to try. The policy is in
{path}
"""
TOPICS = {
    "ops": "Staging: anyone here can approve. Production: two from @oncall; after an hour, "
    "Mia too. Refunds above 100: @finance. Use the clock to skip ahead.",
    "finance": "Write: @countersign refund order 1234 120.50, or: refund order 1234 20.00",
}
"""The topics of the demo's channels, if the demo's policy applies."""
WELCOME_YOURS = """\
Countersign is ready, with {agent}. Open this page:

    {url}

As Rosa, type @countersign and what you want. Then switch to Ada and approve it
on the card. Press Ctrl-C to stop.
"""
DEMO_MODEL_NOTE = """
No key is needed: unless your agent brings a model of its own, a rule-based demo model
calls the tool that you type. Type @countersign help to see how. To use a language
model, set COUNTERSIGN_MODEL and its key.
"""


async def execute(call: Call) -> None:
    """Run the command."""
    # Slack's library reads variables such as SLACK_CLIENT_ID, which must not affect the demo.
    for name in [name for name in call.environ if name.startswith("SLACK_")]:
        del call.environ[name]
    await try_out(
        call.environ,
        port=call.arguments.port,
        clock=MovableClock(),
        run_bot=call.run_bot or main.run_alone,
        stop=stopped_by_signals(),
        say=call.say,
    )


async def try_out(  # noqa: PLR0913 - all given by name
    environ: Mapping[str, str],
    *,
    port: int | None,
    clock: MovableClock,
    run_bot: RunBot,
    stop: asyncio.Event,
    say: Callable[[str], object],
    pace: Callable[[], float] | None = None,
) -> None:
    """Run the demo until a stop signal.

    The demo never contacts a real Slack or a real database, whatever the environment contains. Its
    database is in a temporary directory, which is deleted at the end.

    Args:
        environ: The variables of the process; only the bot's variables are used.
        port: Port of the page; None for `PORT`, or a free port if `PORT` is taken.
        clock: The time of the page and the bot, which people can advance on the page.
        run_bot: Runs the bot.
        stop: Ends the demo when it is set.
        say: Prints a text to the terminal.
        pace: A clock in seconds for Slack's rate limits; None for `clock`.

    Raises:
        InvalidSettingsError: A variable of the bot is invalid.
        BotError: The port is taken, or the data directory cannot be written.
    """
    checked = demo_environment(environ, "http://127.0.0.1/", "xoxb-demo", "xapp-demo", ["C000000"])
    settings = Settings.load(checked)
    with _directory(settings.data_dir) as directory:
        async with _sandbox(port, clock, settings, pace) as sandbox:
            settings = Settings.load(
                demo_environment(
                    environ,
                    sandbox.api_url,
                    sandbox.bot_token,
                    sandbox.app_token,
                    sandbox.channel_ids,
                )
            ).model_copy(update={"data_dir": Path(directory)})
            invitation = ""
            if settings.agent == DEMO_AGENTS and settings.agents_file is None:
                key = await _demo_program(settings, sandbox, clock)
                url = f"http://127.0.0.1:{settings.api_port}"
                ACCESS.update(COUNTERSIGN_URL=url, COUNTERSIGN_KEY=key)
                invitation = WELCOME_PROGRAMS.format(url=url, key=key)
            words = (
                welcome(
                    sandbox.url,
                    agent=_agents_of(settings),
                    model=settings.model,
                    policy=settings.policy,
                )
                + invitation
            )

            async def greet() -> None:
                if sandbox.guide is not None:
                    await _ask_first(sandbox)
                say(words)

            run = partial(run_bot, settings, stop=stop, demo=clock)
            await _run(run, greet)


async def _demo_program(settings: Settings, sandbox: Sandbox, clock: MovableClock) -> str:
    """Make the program of `#programs`, which is Rosa's; return its key."""
    key, storage = new_key(), settings.make_storage()
    await storage.open()
    try:
        program = ProgramRecord(
            id=program_id(_PROGRAM),
            team_id=sandbox.workspace.team_id,
            name=_PROGRAM,
            owner_id=ROSA,
            salt=secrets.token_hex(32),
            scopes=(ProgramScope.WRITE, ProgramScope.READ),
            tools=("*",),
            channels=(sandbox.channel_id(_PROGRAMS),),
            callback_secrets=(new_secret(),),
            created_ms=clock(),
        )
        await storage.programs.add(program)
        await storage.programs.add_key(
            ProgramKeyRecord(
                id=key_id(key) or "",
                program_id=program.id,
                digest=key_digest(key),
                created_ms=clock(),
                expires_ms=clock() + milliseconds(USUAL_KEY),
            )
        )
    finally:
        await storage.close()
    return key


def welcome(
    url: str, *, agent: str = DEMO_AGENTS, model: str = DEMO_MODEL, policy: Path | None = None
) -> str:
    """Return the greeting for people at the terminal.

    Args:
        url: Address of the page.
        agent: The agents, in the form of `COUNTERSIGN_AGENT`, or the path of their file.
        model: The model, in the form of `COUNTERSIGN_MODEL`.
        policy: The policy file, or None. The text explains only the demo's own policy.
    """
    if not agent.startswith(_OURS):
        note = DEMO_MODEL_NOTE if model == DEMO_MODEL else ""
        return WELCOME_YOURS.format(url=url, agent=agent) + note
    guide = WELCOME_GUIDE.format(path=policy) if _is_guided(agent, model, policy) else ""
    return WELCOME.format(url=url, guide=guide)


def _is_guided(agent: str, model: str, policy: Path | None) -> bool:
    """Whether the page shows the guide: it tells what the demo's agents and policy do.

    A language model costs money, so the demo sends it no first request.
    """
    return agent == DEMO_AGENTS and model == DEMO_MODEL and policy == POLICY


async def _ask_first(sandbox: Sandbox) -> None:
    """Write the guide's first request, and wait until its card is there."""
    await sandbox.say(ROSA, OPS, FIRST_MESSAGE)
    with suppress(TimeoutError):
        await sandbox.until(lambda: ActionId.APPROVE in str(sandbox.messages(OPS)), _FIRST_CARD_S)


def _agents_of(settings: Settings) -> str:
    """Return the agents for the greeting: the path of their file, or `COUNTERSIGN_AGENT`."""
    return str(settings.agents_file or settings.agent)


async def _run(
    run: Callable[..., Coroutine[None, None, None]], on_ready: Callable[[], Awaitable[None]]
) -> None:
    """Run the bot; call `on_ready` once it takes messages."""
    ready = asyncio.Event()
    bot = asyncio.create_task(run(ready=ready))
    ready_or_not = asyncio.create_task(ready.wait())
    try:
        await asyncio.wait({bot, ready_or_not}, return_when=asyncio.FIRST_COMPLETED)
        if ready.is_set():
            await on_ready()
        await bot
    finally:
        bot.cancel()
        ready_or_not.cancel()
        await asyncio.gather(bot, ready_or_not, return_exceptions=True)


@asynccontextmanager
async def _sandbox(
    port: int | None,
    clock: MovableClock,
    settings: Settings,
    pace: Callable[[], float] | None,
) -> AsyncIterator[Sandbox]:
    """Open a sandbox with exactly the permissions of the manifest and the demo's channels."""
    manifest = read_manifest(manifest_text())
    make = partial(
        Sandbox,
        clock=clock.seconds,
        time=clock,
        pace=pace,
        scopes=set(bot_scopes(manifest)),
        surfaces=surfaces_of(manifest),
        with_demo=_agents_of(settings).startswith(_OURS),
        topics=TOPICS if settings.policy == POLICY else {},
        guide=GUIDE if _is_guided(_agents_of(settings), settings.model, settings.policy) else None,
    )
    sandbox = make(port=PORT if port is None else port)
    try:
        await sandbox.start()
    except OSError as error:
        await sandbox.stop()
        if port is not None or error.errno != errno.EADDRINUSE:
            raise BotError(
                f"can't listen on port {sandbox.port}: {error.strerror}; use --port to choose "
                "another"
            ) from error
        sandbox = make()
        await sandbox.start()
    try:
        yield sandbox
    finally:
        await sandbox.stop()


def _directory(base: Path) -> TemporaryDirectory[str]:
    try:
        base.mkdir(mode=0o700, parents=True, exist_ok=True)
        return TemporaryDirectory(prefix="demo-", dir=base)
    except OSError as error:
        raise BotError(
            f"can't write to the data directory {base} ({error.strerror}); set "
            "COUNTERSIGN_DATA_DIR to another one"
        ) from error
