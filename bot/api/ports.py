"""The use cases that the HTTP door calls. The door knows the program; these do the work."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from bot.api.shapes import (
    ApiCreateRequest,
    ApiListQuery,
    ApiPerson,
    ApiRequest,
    ApiResult,
)
from bot.records.origin import RequestDoor, RequestOrigin
from bot.records.programs import ProgramKeyRecord, ProgramRecord
from storage.documents import Place


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiCaller:
    """A program with a valid key, as the door checked it.

    Attributes:
        program: The program.
        key: Its key, at most 15 s old. A start reads it anew.
        door: The door by which the call came.
    """

    program: ProgramRecord
    key: ProgramKeyRecord
    door: RequestDoor = RequestDoor.API

    def origin(self, requested_for: str | None) -> RequestOrigin:
        """Return the origin of what the program asks or starts.

        Args:
            requested_for: Slack user id of the person whom the program names; None for nobody.
        """
        program = self.program
        return RequestOrigin(
            door=self.door,
            program=program.id,
            program_name=program.name,
            key=self.key.public_id,
            owner=program.owner_id,
            is_personal=program.is_personal,
            requested_for=requested_for or "",
            claimed=requested_for is not None,
        )


@dataclass(frozen=True, slots=True)
class AskedRequest:
    """The answer to a creation.

    Attributes:
        request: The present state of the request.
        is_new: Whether this call made it; False if the idempotency key had it.
    """

    request: ApiRequest
    is_new: bool


class ChangeFeed(Protocol):
    """The changed requests of one program, each once with its newest state."""

    async def next(self, *, timeout_s: float) -> ApiRequest | None:
        """Return the next changed request; None if none changed in time.

        None before the time means that the feed is over: the bot stops, or the reader is too slow.
        The feed holds ids, not states: a request that changes twice before it is taken comes once.
        """


class ProgramUseCases(Protocol):
    """The use cases of programs. A method may raise `bot.api.problems.ApiProblemError`.

    The request of another program is as one that does not exist: `not-found`. Other errors of
    records and of Slack are turned into `store-unavailable` and `slack-unavailable` by the door.
    """

    async def create(
        self, caller: ApiCaller, asked: ApiCreateRequest, *, idempotency_key: str
    ) -> AskedRequest:
        """Ask people, once per idempotency key.

        The shape, the scope and the rate were checked; the tool, the channel, the people, the
        callback, the schema and the arguments were not.

        Raises:
            ApiProblemError: A check of the table failed; nothing is stored.
        """

    async def get(
        self, caller: ApiCaller, request_id: str, *, wait_s: float = 0, after: int | None = None
    ) -> ApiRequest:
        """Return the present state, at once or when something happens.

        Args:
            caller: The program.
            request_id: The request.
            wait_s: Seconds to wait at most until the request is over. The door waits in parts, and
                checks the key between them.
            after: With `wait_s`, a revision: wait until the present one is greater.

        Raises:
            ApiProblemError: `not-found`.
        """

    async def list(
        self, caller: ApiCaller, query: ApiListQuery, *, after: Place | None
    ) -> tuple[Sequence[ApiRequest], Place | None]:
        """Return requests of the program, newest first, and the end of the page if more follow.

        Args:
            caller: The program.
            query: Conditions, all of which must hold, and the maximum number of requests.
            after: End of the page before; None for the first page.
        """

    async def cancel(self, caller: ApiCaller, request_id: str, *, reason: str | None) -> ApiRequest:
        """Withdraw a pending request; one that was cancelled before is returned as it is.

        Raises:
            ApiProblemError: `not-found`, `not-pending`.
        """

    async def report(self, caller: ApiCaller, request_id: str, result: ApiResult) -> ApiRequest:
        """Record the outcome of a start, or that it still runs.

        Raises:
            ApiProblemError: `not-found`, `not-started`, `result-known`.
        """

    def changed_since(
        self, caller: ApiCaller, since_ms: int | None
    ) -> AbstractAsyncContextManager[ChangeFeed]:
        """Open a feed of the program's requests.

        Args:
            caller: The program.
            since_ms: The feed begins with all that changed at or after this time; None for changes
                from now on.
        """

    async def owner(self, caller: ApiCaller) -> ApiPerson:
        """Return the person who answers for the program."""

    async def link(self, request_id: str) -> str:
        """Return the address of a request's card, or of a thread, in Slack; empty without one.

        Raises:
            ApiProblemError: `not-found`.
        """

    def stop_waiting(self) -> None:
        """Answer all held calls and feeds at once, and hold none from now on."""
