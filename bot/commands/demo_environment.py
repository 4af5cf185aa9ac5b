"""The environment of the demo's bot: the sandbox in the place of Slack, and default approvers."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence

from bot.config.agents import DEMO_AGENTS
from bot.config.settings import IN_A_POLICY, OURS
from bot.demo import POLICY
from bot.ports.people import CHANNEL

_NOT_TAKEN_OVER = frozenset({"COUNTERSIGN_HOST", "COUNTERSIGN_PORT"})


def demo_environment(
    environ: Mapping[str, str],
    api_url: str,
    bot_token: str,
    app_token: str,
    channels: Sequence[str],
) -> dict[str, str]:
    """Return the bot's variables, with the sandbox's addresses and tokens instead of Slack's."""
    ours = {
        name: value
        for name, value in environ.items()
        if name.upper().startswith(OURS) and name not in _NOT_TAKEN_OVER
    }
    agents = {} if "COUNTERSIGN_AGENTS_FILE" in ours else {"COUNTERSIGN_AGENT": DEMO_AGENTS}
    return {
        "COUNTERSIGN_LOG": "warning",
        "COUNTERSIGN_API_PORT": str(_free_port()),
        **agents,
        **_deciders(ours, channels),
        **ours,
        "COUNTERSIGN_PORT": "0",
        "SLACK_API_URL": api_url,
        "SLACK_BOT_TOKEN": bot_token,
        "SLACK_APP_TOKEN": app_token,
    }


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _deciders(ours: Mapping[str, str], channels: Sequence[str]) -> dict[str, str]:
    """Return default settings for the approvers, if the environment has none.

    The demo's agents get the demo's policy. With other agents, or with settings that conflict with
    a policy, all members of the channel are approvers.
    """
    if "COUNTERSIGN_POLICY" in ours:
        return {}
    has_others = (
        "COUNTERSIGN_AGENTS_FILE" in ours
        or ours.get("COUNTERSIGN_AGENT", DEMO_AGENTS) != DEMO_AGENTS
    )
    if not has_others and not IN_A_POLICY.keys() & ours.keys():
        return {"COUNTERSIGN_POLICY": str(POLICY)}
    return {"COUNTERSIGN_APPROVERS": CHANNEL, "COUNTERSIGN_CHANNELS": ",".join(channels)}
