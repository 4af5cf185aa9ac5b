"""The port of a tool: what a model may call, and what the runtime must know about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from agents.core.calls import Risk, ToolReturn
from agents.core.codec import Json

EXTERNAL = "external"
"""The tag of a tool whose calls are seen outside of the company, such as mail to customers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool's definition: its name, its arguments and its gates, without the code that it runs.

    Attributes:
        name: What the model calls it; unique among the tools of one agent.
        description: What it does, for the model.
        schema: JSON schema of its arguments, an object.
        gates: Names of the gates around it, outermost first. Stored with an interrupt, so that a
            gate that was taken away meanwhile is noticed.
        idempotent: Whether a call may run twice with the same effect as once.
        tags: Words by which policies know kinds of tools, such as `money` or `read-only`.
            `EXTERNAL` stands on the card.
        risk: The harm that a call can do, as the tool's author sees it.
        secret: Names of arguments that people are never shown, such as a password.
        shown: Names of arguments that are no secrets, whatever they look like, such as the number
            of an account.
    """

    name: str
    description: str
    schema: Mapping[str, Json]
    gates: tuple[str, ...] = ()
    idempotent: bool = False
    tags: tuple[str, ...] = ()
    risk: Risk = "medium"
    secret: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()

    @property
    def masks(self) -> dict[str, tuple[str, ...]]:
        """The lists `secret` and `shown` of its arguments."""
        return {"secret": self.secret, "shown": self.shown}


@dataclass(frozen=True, slots=True, kw_only=True)
class CallText:
    """A call in words for people.

    Attributes:
        title: Verb and object, one line.
        preview: What will happen, from the tool's author; empty when there is none.
        named: Names of the arguments that stand in the title, each whole and apart from the rest.
    """

    title: str
    preview: str = ""
    named: tuple[str, ...] = ()


class Tool(Protocol):
    """A tool that a model can call.

    The runtime validates first, then calls with what `validate` returned, inside the address
    segment `tool:<name>:<call_id>`.
    """

    @property
    def definition(self) -> ToolSpec:
        """The tool's definition. The same on each access."""
        ...

    def validate(self, arguments: Mapping[str, object]) -> dict[str, Json]:
        """Check arguments and bring them into their one canonical form; runs nothing.

        Validating the result again gives the same. Defaults are filled in.

        Raises:
            InvalidArgumentsError: They do not fit the schema.
        """
        ...

    def describe(self, arguments: Mapping[str, Json]) -> CallText:
        """Say in words what a call with these canonical arguments does; runs nothing."""
        ...

    async def call(self, arguments: dict[str, Json]) -> str | ToolReturn:
        """Run with canonical arguments.

        Returns:
            The result, for the model; with its outcome, when it is another than `ran`.

        Raises:
            InterruptSignal: People are needed first. Must pass through.
        """
        ...
