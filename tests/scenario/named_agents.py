"""Agents of a file of agents, for scenarios; some of its names cannot be used."""

from __future__ import annotations

from collections.abc import Callable

from pydantic_ai.models import Model

from agents import Agent, ChatModelAgent, ScriptedModel
from agents.models import say


def _named(name: str) -> Callable[[Model], Agent]:
    def make(_: Model) -> Agent:
        model = ScriptedModel([say(f"I am {name}.")] * 9)
        return ChatModelAgent(name=name, model=model, description=f"Of {name}.")

    return make


deploy, helpdesk, archive = map(_named, ("deploy", "helpdesk", "archive"))


def broken(_: Model) -> Agent:
    raise ValueError("no key")


def several(model: Model) -> dict[str, Agent]:
    return {"*": deploy(model)}


number = 7
