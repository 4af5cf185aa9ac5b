"""Methods of the agent view: session status and suggested prompts."""

from __future__ import annotations

from bot.sandbox.api.rooms import writable
from bot.sandbox.args import Args
from bot.sandbox.errors import RefusedError
from bot.sandbox.workspace.agentview import STATUSES
from bot.sandbox.workspace.records import Payload
from bot.sandbox.workspace.state import Workspace

_MOST_TITLE = 200
_MOST_PROMPTS = 4


def set_session_status(workspace: Workspace, args: Args) -> Payload:
    """agents.sessions.setStatus."""
    _check_feature(workspace)
    channel = writable(workspace, args.need("channel_id"))
    thread_ts = workspace.thread_root(channel, args.need("thread_ts"))
    named = [status for status in STATUSES if status == args.text("status")]
    title = args.text("title")
    if not named:
        raise RefusedError("invalid_status")
    if len(title) > _MOST_TITLE:
        raise RefusedError("invalid_title")
    key = (channel.id, str(thread_ts))
    session = workspace.agent_view.set_status(key, named[0], title)
    return {"status": session.status, "title": session.title}


def set_suggested_prompts(workspace: Workspace, args: Args) -> Payload:
    """assistant.threads.setSuggestedPrompts; for an agent it does nothing with a thread.

    Source:
        https://docs.slack.dev/reference/methods/assistant.threads.setSuggestedPrompts
    """
    _check_feature(workspace)
    channel = writable(workspace, args.need("channel_id"))
    prompts = args.items("prompts", "invalid_prompts") or []
    if not 1 <= len(prompts) <= _MOST_PROMPTS or not all(map(_is_prompt, prompts)):
        raise RefusedError("invalid_prompts")
    if channel.kind == "im" and not args.text("thread_ts"):
        shown = {"title": args.text("title"), "prompts": prompts}
        workspace.agent_view.suggest(channel.id, shown)
    return {}


def _is_prompt(prompt: Payload) -> bool:
    texts = (prompt.get("title"), prompt.get("message"))
    return all(isinstance(text, str) and text for text in texts)


def _check_feature(workspace: Workspace) -> None:
    if not workspace.features.agent_view:
        raise RefusedError("unknown_method")
