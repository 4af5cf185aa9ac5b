"""`countersign sandbox`: run the sandbox without the bot."""

from __future__ import annotations

from pathlib import Path

from bot.clock import system_seconds
from bot.commands.call import Call, stopped_by_signals
from bot.config.manifest import Manifest, bot_scopes, manifest_text, read_manifest
from bot.errors import BotError, SettingsError
from slack_sandbox import Sandbox, surfaces_of


async def execute(call: Call) -> None:
    """Run the command."""
    host, port = call.arguments.host, call.arguments.port
    stop = stopped_by_signals()
    manifest = _manifest(call.arguments.manifest)
    try:
        sandbox = Sandbox(
            clock=system_seconds,
            host=host,
            port=port,
            events_url=call.arguments.events_url,
            scopes=set(bot_scopes(manifest)),
            surfaces=surfaces_of(manifest),
            with_demo=False,
        )
    except ValueError as error:
        raise SettingsError("--host", str(error).rstrip("."), "use 127.0.0.1") from error
    try:
        await sandbox.start()
        call.say(_how_to_connect(sandbox))
        await stop.wait()
    except OSError as error:
        fault = f"cannot listen on {host}:{port}: {error.strerror}; choose another --port"
        raise BotError(fault) from error
    finally:
        await sandbox.stop()


def _manifest(path: Path | None) -> Manifest:
    try:
        return read_manifest(path.read_text("utf-8") if path else manifest_text())
    except OSError as error:
        raise SettingsError(
            "--manifest", f"{path}: {error.strerror}", "name a readable file"
        ) from error
    except ValueError as error:
        raise SettingsError(
            "--manifest", f"{path}: {error}", "use a manifest exported from Slack, as YAML or JSON"
        ) from error


def _how_to_connect(sandbox: Sandbox) -> str:
    if sandbox.events_url is None:
        proof = f"SLACK_APP_TOKEN={sandbox.app_token}"
    else:
        proof = f"SLACK_SIGNING_SECRET={sandbox.signing_secret}"
    return (
        f"The Slack sandbox is ready. Open this page:\n\n    {sandbox.url}\n\n"
        "Start the bot with these variables. They're valid until you stop the sandbox:\n\n"
        f"    export SLACK_API_URL={sandbox.api_url}\n"
        f"    export SLACK_BOT_TOKEN={sandbox.bot_token}\n"
        f"    export {proof}\n"
        "    export COUNTERSIGN_APPROVERS=channel\n"
        f"    export COUNTERSIGN_CHANNELS={','.join(sandbox.channel_ids)}\n"
    )
