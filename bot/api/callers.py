"""Values of the HTTP API: the program that calls, and the answer when it creates a request."""

from __future__ import annotations

from dataclasses import dataclass

from bot.api.shapes import ApiRequest
from bot.records.origin import RequestDoor, RequestOrigin
from bot.records.programs import ProgramKeyRecord, ProgramRecord


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
