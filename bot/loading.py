"""Finds the agent that the settings name."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import cast

from pydantic_ai.models import Model

from agents import Agent, AgentConfigError, resolve_model
from bot.demo.model import DemoModel
from bot.errors import SettingsError

DEMO_MODEL = "demo"


def load_model(name: str) -> Model:
    """Make the model that `COUNTERSIGN_MODEL` names.

    Raises:
        SettingsError: The provider is unknown, its package is missing, or its key is not set.
    """
    if name == DEMO_MODEL:
        return DemoModel()
    try:
        return resolve_model(name)
    except AgentConfigError as error:
        raise SettingsError("COUNTERSIGN_MODEL", f"{name!r} cannot be used", str(error)) from error


def load_agent(path: str, model: Model) -> Agent:
    """Import the agent that `COUNTERSIGN_AGENT` names.

    Args:
        path: `module:attribute`; the attribute is an agent, or a function that takes the model
            and returns one.
        model: Handed to such a function.

    Raises:
        SettingsError: It does not import, or is not an agent.
    """
    module_name, _, attribute = path.partition(":")
    try:
        found = getattr(importlib.import_module(module_name), attribute)
    except ImportError as error:
        raise SettingsError(
            "COUNTERSIGN_AGENT",
            f"the module {module_name!r} does not import: {error}",
            "give module:attribute of a module that Python finds",
        ) from error
    except AttributeError as error:
        raise SettingsError(
            "COUNTERSIGN_AGENT",
            f"the module {module_name!r} has no {attribute!r}",
            "name an agent, or a function that takes a model and returns an agent",
        ) from error
    except (Exception, SystemExit) as error:
        raise SettingsError(
            "COUNTERSIGN_AGENT",
            f"the module {module_name!r} failed while it was imported: {error!r}",
            "mend the module",
        ) from error
    return _as_agent(path, found, model)


def _as_agent(path: str, found: object, model: Model) -> Agent:
    if _is_agent(found):
        return cast(Agent, found)
    if callable(found):
        try:
            made = cast(Callable[[Model], object], found)(model)
        except Exception as error:
            raise SettingsError(
                "COUNTERSIGN_AGENT",
                f"{path!r} failed: {error!r}",
                "mend the function; it is called with the model",
            ) from error
        if _is_agent(made):
            return cast(Agent, made)
    raise SettingsError(
        "COUNTERSIGN_AGENT",
        f"{path!r} is not an agent",
        "name an agent, or a function that takes a model and returns an agent",
    )


def _is_agent(found: object) -> bool:
    return not isinstance(found, type) and hasattr(found, "run") and hasattr(found, "name")
