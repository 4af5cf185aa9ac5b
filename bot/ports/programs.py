"""The port to requests and threads of programs, for the workers that process them."""

from __future__ import annotations

from typing import Protocol

from agents.core.codec import Json
from agents.gates.rulings import Judgement
from bot.records.approval import Approval
from bot.records.starts import ThreadStart
from bot.records.thread import Thread


class ProgramCalls(Protocol):
    """Takes what becomes of the requests and threads of programs."""

    async def judge(self, approval: Approval, arguments: dict[str, Json]) -> Judgement:
        """Return what the policy requires if the pending call has these arguments.

        Raises:
            InvalidArgumentsError: They do not fit the schema of the program.
        """
        ...

    async def close_request(self, approval: Approval) -> None:
        """Take a decision whose audit is written: settle a doubt, and close the request."""
        ...

    def due_ms(self, approval: Approval) -> int | None:
        """Return when the call of a program ends by itself; None if it waits for nothing."""
        ...

    async def placed(self, approval: Approval) -> Approval:
        """Return the request in the thread of its group, under the lease of the worker.

        Raises:
            DeliveryError: The first message of the thread could not be posted for now.
        """
        ...

    async def overdue(self, approval: Approval) -> Approval:
        """End the call of a program that was not started, or not reported, in time."""
        ...

    async def hand_over(self, approval: Approval) -> None:
        """Give the events of a request to the queues of the endpoints that want them.

        Raises:
            StorageError: Some queues may have them; the next pass gives them to all.
        """
        ...

    async def thread_ended(self, thread: Thread) -> None:
        """Give the end of the newest turn of a program's thread to the queues, as `hand_over`."""
        ...

    async def start_ended(self, start: ThreadStart) -> None:
        """Give the end of a program's start that began no thread to the queues."""
        ...

    async def deliver_due(self, now_ms: int) -> int:
        """Start the delivery of events that are due; return the number of queues."""
        ...
