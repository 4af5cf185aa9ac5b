"""The demo agent and its simulated tools: they change nothing outside this process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field
from pydantic_ai.models import Model

from agents.agent import Agent
from agents.chat.agent import ChatModelAgent
from agents.core.tools import Tool
from agents.gates.decorator import tool
from agents.gates.followup import follow_up_tool
from agents.tools.schema import Multiline

INSTRUCTION = """\
You help the engineer on call. You can read the status of services, deploy them, roll them back, \
restart them, refund orders and announce things.
Every action that changes something is shown to people first: call the tool, and it asks them. \
Never ask for permission in words. With each such call, say in one short sentence why you make it.
When a value is missing that only people know, such as a version or an environment, \
ask with ask_people, and never guess.
When a call was rejected, say so with the reason, and do not try it again or work around it. \
When nobody answered, say that: it is not a rejection. Say truthfully what failed. \
The card of a call says what it did, who decided and why: do not say that again, but what follows. \
Answer in a few plain sentences.
"""

Environment = Literal["staging", "production"]
Version = Annotated[str, Field(pattern=r"^\d+\.\d+\.\d+(-[0-9A-Za-z.]+)?$", max_length=40)]
Service = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$", max_length=40)]
Reason = Literal["customer request", "duplicate charge", "late delivery", "faulty goods"]
Channel = Literal["status", "engineering", "support"]


@dataclass(frozen=True, slots=True)
class Effect:
    """Something that a tool has done, for whoever watches.

    Attributes:
        tool: Name of the tool.
        result: What it reported.
    """

    tool: str
    result: str


@dataclass(frozen=True, slots=True)
class RunningRelease:
    """The release that runs in one environment."""

    version: str
    replicas: int


@dataclass(slots=True)
class DemoServices:
    """A made-up set of services in memory, and what can be done with it.

    Attributes:
        note: Is told of each effect.
    """

    note: Callable[[Effect], object]
    _running: dict[tuple[str, str], list[RunningRelease]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for service, version in (("payments", "1.4.1"), ("search", "2.0.0"), ("cache", "7.2.4")):
            self._running[service, "staging"] = [RunningRelease(version, 1)]
            self._running[service, "production"] = [RunningRelease(version, 3)]
        # The first roll-back of the demo finds a release to go back to.
        self._running["payments", "production"].insert(0, RunningRelease("1.4.0", 3))

    def get_status(self, service: Service) -> str:
        """Look up what runs of a service, and whether it is healthy. Changes nothing.

        Args:
            service: The service, in lowercase letters, digits and hyphens, such as payments.
        """
        deployments = [
            f"{releases[-1].version} in {environment} with {_replicas(releases[-1].replicas)}"
            for (name, environment), releases in self._running.items()
            if name == service
        ]
        if not deployments:
            known = ", ".join(sorted({name for name, _ in self._running}))
            raise LookupError(f"there is no service {service!r}; there are {known}")
        return f"{service} is healthy: {', '.join(deployments)}"

    def deploy(
        self,
        service: Service,
        version: Version,
        environment: Environment,
        replicas: Annotated[int, Field(ge=1, le=50)] = 3,
    ) -> str:
        """Put a version of a service live. People are asked first.

        Args:
            service: The service, in lowercase letters, digits and hyphens, such as payments.
            version: The version to deploy, such as 1.4.2.
            environment: The environment to deploy to.
            replicas: How many copies run at the same time.
        """
        release = RunningRelease(version, replicas)
        self._running.setdefault((service, environment), []).append(release)
        return self._did(
            "deploy", f"{service} {version} is live in {environment} with {_replicas(replicas)}"
        )

    def roll_back(self, service: Service, environment: Environment) -> str:
        """Go back to the version of a service that ran before. People are asked first.

        Args:
            service: The service, in lowercase letters, digits and hyphens, such as payments.
            environment: The environment to roll back in.
        """
        releases = self._running.get((service, environment), [])
        if len(releases) < 2:
            raise LookupError(f"{service} has no earlier version in {environment}")
        left = releases.pop().version
        now = releases[-1].version
        return self._did("roll_back", f"{service} went back from {left} to {now} in {environment}")

    def refund_order(
        self,
        order_id: Annotated[str, Field(pattern=r"^[0-9A-Za-z-]{1,20}$")],
        amount: Annotated[Decimal, Field(gt=0, decimal_places=2, max_digits=8)],
        reason: Reason = "customer request",
        notify: bool = True,  # noqa: FBT001, FBT002 - tools are called by name only
    ) -> str:
        """Pay money back for an order. People are asked first.

        Args:
            order_id: Number of the order.
            amount: How much, in euros, such as 120.50.
            reason: Why the money is paid back.
            notify: Whether the customer gets an e-mail about it.
        """
        notice = "the customer was told" if notify else "the customer was not told"
        return self._did(
            "refund_order",
            f"{amount:.2f} EUR were refunded for order {order_id} ({reason}); {notice}",
        )

    def restart(self, service: Service, day: date, at: datetime | None = None) -> str:
        """Plan the restart of a service. People are asked first.

        Args:
            service: The service, in lowercase letters, digits and hyphens, such as payments.
            day: On which day.
            at: The exact time, when it matters; on that day.
        """
        when = f"{day.isoformat()}"
        if at is not None:
            if at.date() != day:
                raise ValueError(f"the time {at.isoformat()} is not on the day {when}")
            when = f"{when} at {at:%H:%M}"
        return self._did("restart", f"the restart of {service} is planned for {when}")

    def announce(
        self,
        message: Annotated[str, Field(min_length=1, max_length=2000), Multiline],
        channels: Annotated[list[Channel], Field(min_length=1)],
    ) -> str:
        """Tell people something in channels of theirs. People are asked first.

        Args:
            message: The text, which may have several lines.
            channels: The channels to post in.
        """
        where = ", ".join(channels)
        return self._did("announce", f"the message of {len(message)} characters is in {where}")

    def replaces(self, service: str, environment: Environment, replicas: int, **_: object) -> str:
        """Say what a deployment will do."""
        releases = self._running.get((service, environment))
        how = "all at once" if replicas == 1 else "one replica after another"
        if not releases:
            return f"The first release there, {how}."
        return f"Replaces {releases[-1].version}, {how}."

    def goes_back(self, service: str, environment: Environment) -> str:
        """Say what a roll-back will do."""
        releases = self._running.get((service, environment), [])
        if len(releases) < 2:
            return "There is no earlier version, so this will fail."
        before, now = releases[-2].version, releases[-1].version
        return f"{before} runs again, in place of {now}."

    def tools(self) -> list[Tool]:
        """Return the agent's tools: one free tool, one gate that only approves, and reviews."""
        return [
            tool(title="Look up {service}", tags=["read-only"])(self.get_status),
            tool(
                title="Deploy {service} {version} to {environment}",
                preview=self.replaces,
                gate="review",
                batch_title=_deployments,
                batch_key="replicas",
            )(self.deploy),
            tool(
                title="Roll back {service} in {environment}",
                preview=self.goes_back,
                gate="approval",
                batch_title="{n} roll-backs",
            )(self.roll_back),
            tool(
                title="Refund {amount} EUR for order {order_id}",
                gate="review",
                batch_title="{n} refunds, {amount:sum} EUR in total",
                batch_key="amount",
            )(self.refund_order),
            tool(
                title="Restart {service} on {day}",
                preview=_goes_away,
                gate="review",
                batch_title="{n} restarts",
            )(self.restart),
            tool(
                title="Announce in {channels}",
                gate="review",
                batch_title="{n} announcements",
            )(self.announce),
            follow_up_tool(),
        ]

    def _did(self, name: str, result: str) -> str:
        self.note(Effect(name, result))
        return result


def build(model: Model, *, effects: Callable[[Effect], object] | None = None) -> Agent:
    """Make the demo agent.

    Args:
        model: Who speaks: `DemoModel()`, or any other model of pydantic-ai.
        effects: Is told of everything that a tool has done; for example the `append` of a list.
    """
    services = DemoServices(effects or _nothing)
    return ChatModelAgent(
        name="oncall",
        description="Helps the engineer on call: status, deployments, restarts, refunds.",
        model=model,
        instruction=INSTRUCTION,
        tools=services.tools(),
    )


def _nothing(effect: Effect) -> None:
    """Nobody watches."""


def _replicas(count: int) -> str:
    return "1 replica" if count == 1 else f"{count} replicas"


def _deployments(calls: list[dict[str, object]]) -> str:
    """Say in one line what several deployments are, and where to."""
    places = dict.fromkeys(str(call["environment"]) for call in calls)
    return f"{len(calls)} deployments to {' and '.join(places)}"


def _goes_away(**_: object) -> str:
    return "It is away for about a minute."
