"""The guide of the demo's page: a first request, and four things to try."""

from __future__ import annotations

from typing import Final

from bot.layout.action_ids import ActionId
from slack_sandbox import ADA, BEN, OPS, ROSA, Guide, GuideStep, Pointer

FIRST_MESSAGE: Final = "@countersign deploy payments 1.4.2 to staging"
"""The message of Rosa that is there when the page opens."""

GUIDE: Final = Guide(
    person=ADA,
    channel=OPS,
    first=GuideStep(
        title="Approve",
        text="You are Ada. Rosa asked an AI agent for a deployment, and the agent waits for a "
        "person to agree.",
        pointers=(Pointer(person=ADA, target=ActionId.APPROVE, text="Press Approve"),),
        outcome="The agent went on from where it had stopped, and the card says who decided. "
        "Try more:",
    ),
    steps=(
        GuideStep(
            title="Edit",
            text="Rosa asks again. Change Replicas from 3 to 5, and approve: your version runs.",
            author=ROSA,
            channel=OPS,
            message="@countersign deploy search 2.0.1 to staging",
            pointers=(Pointer(person=ADA, target=ActionId.EDIT, text="Change the call"),),
        ),
        GuideStep(
            title="Two people",
            text="The policy demands two people of @oncall for production. Nothing runs after "
            "the first one.",
            author=ROSA,
            channel=OPS,
            message="@countersign deploy payments 1.4.2 to production",
            pointers=(
                Pointer(person=ADA, target=ActionId.APPROVE, text="Approve as Ada"),
                Pointer(person=BEN, target=ActionId.APPROVE, text="Approve as Ben, too"),
            ),
            outcome="Two different people have agreed, so the deployment runs.",
        ),
        GuideStep(
            title="The clock",
            text="No one answers. Skip ahead: @oncall gets a reminder after 15 minutes, Mia can "
            "decide after an hour, and after four hours the request expires. Nothing runs.",
            author=ROSA,
            channel=OPS,
            message="@countersign deploy cache 7.2.5 to production",
            pointers=(
                Pointer(person=ADA, target="time-toggle", text="Open the clock"),
                Pointer(person=ADA, target="time-900", text="Skip ahead, and watch the thread"),
            ),
        ),
        GuideStep(
            title="Your own agent",
            text="A tool is a Python function. Stop the demo, and start it with the agent of "
            "examples/wifi.py:",
            command="COUNTERSIGN_AGENT=wifi:build PYTHONPATH=examples .venv/bin/countersign demo",
        ),
    ),
)
