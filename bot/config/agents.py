"""Finds the agents that the settings name."""

from __future__ import annotations

import importlib
import re
import shlex
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

from pydantic_ai.models import Model

import agents
from agents import Agent, AgentConfigError, resolve_model
from bot.errors import SettingsError

DEMO_MODEL = "demo"
DEMO_AGENTS = "bot.demo:channels"
"""The agents of `countersign demo`, in the form of `COUNTERSIGN_AGENT`."""

EVERYWHERE = "*"
"""In place of a channel: all channels without an agent of their own."""

_AGENTS = Path(agents.__file__).parent
_MACHINERY = (__file__, importlib.__file__)
AGENT_NAME = r"[a-z][a-z0-9_-]{0,30}"
"""Pattern of an agent's name, with which people address the agent."""
CHANNEL = r"\*|[CDG][A-Z0-9]{2,}|#[^\sA-Z#@<>|,.]{1,80}"
"""Pattern of a channel where an agent works: an id, a name, or `*`."""
_KEY = re.compile(rf"{CHANNEL}|@{AGENT_NAME}")
_REMEDY = (
    "name an agent, a dict of agents by channel, or a function that takes a model and returns "
    "one of these"
)


def load_model(name: str) -> Model:
    """Create the model that `COUNTERSIGN_MODEL` names.

    Raises:
        SettingsError: The provider is unknown, its package is missing, or its key is not set.
    """
    if name == DEMO_MODEL:
        from bot.demo.model import DemoModel  # noqa: PLC0415 - most bots run without the demo

        return DemoModel()
    try:
        model = resolve_model(name)
    except AgentConfigError as error:
        remedy = "give provider:model with its package and its key, or demo"
        raise SettingsError("COUNTERSIGN_MODEL", str(error).rstrip("."), remedy) from error
    client = getattr(model, "client", None)
    if client is not None and hasattr(client, "max_retries"):
        # The bot retries by itself: a client that waits for minutes would tell nobody.
        client.max_retries = 0
    return model


def load_agents(path: str, model: Model) -> Mapping[str, Agent]:
    """Import the agents that `COUNTERSIGN_AGENT` names.

    Args:
        path: `module:attribute`. The attribute is an agent, a mapping from channels to agents, or a
            function that takes the model and returns one of these. A channel is an id, a name with
            `#`, or `*` for all other channels. `@deploy` is an agent that works in every thread
            whose first message begins with `deploy:`.
        model: The argument of such a function.

    Returns:
        The agents by channel. A single agent has the channel `*`.

    Raises:
        SettingsError: The import failed, or the attribute has another type.
    """
    value = _made(path, model)
    if _is_agent(value):
        return {EVERYWHERE: cast(Agent, value)}
    if isinstance(value, Mapping):
        return _checked(path, value)
    raise _fault(f"{path!r} isn't an agent", _REMEDY)


def load_agent(path: str, model: Model) -> Agent:
    """Import a single agent; see `load_agents` for the arguments.

    Raises:
        SettingsError: The import failed, or the attribute is not one agent.
    """
    value = _made(path, model)
    if _is_agent(value):
        return cast(Agent, value)
    what = "several agents" if isinstance(value, Mapping) else "not an agent"
    raise _fault(f"{path!r} is {what}", "name an agent, or a function that makes one of a model")


def _made(path: str, model: Model) -> object:
    value = _imported(path)
    if not _is_agent(value) and not isinstance(value, Mapping) and callable(value):
        try:
            value = cast(Callable[[Model], object], value)(model)
        except Exception as error:
            raise _fault(
                f"{path!r} failed: {error!r}{_where(error)}",
                "fix the function; Countersign calls it with the model",
            ) from error
    return value


def _imported(path: str) -> object:
    module_name, _, attribute = path.partition(":")
    try:
        return getattr(importlib.import_module(module_name), attribute)
    except ModuleNotFoundError as error:
        if _is_part_of(error.name, module_name):
            raise _fault(
                f"there is no module {error.name!r}",
                "use module:attribute with a module on Python's path; for a file in the "
                "current directory, set PYTHONPATH=.",
            ) from error
        raise _fault(
            (
                f"the module {module_name!r} needs {error.name!r}, which isn't "
                f"installed{_where(error)}"
            ),
            f"install it beside Countersign: {shlex.quote(sys.executable)} -m pip install with the "
            "name of its package; or correct the import",
        ) from error
    except AttributeError as error:
        raise _fault(f"the module {module_name!r} has no {attribute!r}", _REMEDY) from error
    except (Exception, SystemExit) as error:
        raise _fault(
            f"the module {module_name!r} failed while it was imported: {_words(error)}",
            "fix the module",
        ) from error


def _is_part_of(missing: str | None, module_name: str) -> bool:
    """Whether a missing module is the named module or one of its packages."""
    return bool(missing) and f"{module_name}.".startswith(f"{missing}.")


def _words(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return f"{error.msg}, at {error.filename}:{error.lineno}"
    return f"{error!r}{_where(error)}"


def _where(error: BaseException) -> str:
    """Return the file and line of an error: the last frame, or the agent author's last frame."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith("<frozen") and frame.filename not in _MACHINERY
    ]
    # `AgentConfigError` is raised by the package `agents`, but its cause is in the author's code.
    theirs = [frame for frame in frames if not Path(frame.filename).is_relative_to(_AGENTS)]
    shown = theirs if theirs and isinstance(error, AgentConfigError) else frames
    return f", at {shown[-1].filename}:{shown[-1].lineno}" if shown else ""


def _checked(path: str, agents: Mapping[object, object]) -> dict[str, Agent]:
    """Check the channels and agents; refuse two agents with one name."""
    by_name: dict[str, object] = {}
    for channel, agent in agents.items():
        if not isinstance(channel, str) or not _KEY.fullmatch(channel):
            raise _fault(
                f"{path!r} has an agent for {channel!r}, which is no channel",
                "use an id such as C0123ABC, a name such as #finance, * for all others, or @deploy "
                "for messages that begin with “deploy:”",
            )
        if not _is_agent(agent):
            raise _fault(f"what {path!r} has for {channel} isn't an agent", _REMEDY)
        name = cast(Agent, agent).name
        if by_name.setdefault(name, agent) is not agent:
            raise _fault(
                f"{path!r} has two agents named {name!r}",
                "give each agent a unique name",
            )
    if not agents:
        raise _fault(f"{path!r} has no agents", "add one; * stands for all channels")
    return {cast(str, channel): cast(Agent, agent) for channel, agent in agents.items()}


def _fault(fault: str, remedy: str) -> SettingsError:
    return SettingsError("COUNTERSIGN_AGENT", fault, remedy)


def _is_agent(candidate: object) -> bool:
    return (
        not isinstance(candidate, type) and hasattr(candidate, "run") and hasattr(candidate, "name")
    )
