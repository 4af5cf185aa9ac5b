"""The simulated Slack: a client whose calls go to the sandbox, with the people of a world."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from aiohttp import ClientSession
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot.observability.events import TellEvent
from bot.rehearsal.case_file import ZONE
from bot.rehearsal.case_schema import Data
from bot.rehearsal.world import World
from bot.slack.connect import Slack
from slack_sandbox.workspace.records import Payload, SlackChannel, SlackUser, UserGroup
from slack_sandbox.workspace.state import Workspace


class AnswersCalls(Protocol):
    """Responds to calls of Slack's API."""

    def answer(self, method: str, values: Mapping[str, Any]) -> Payload:
        """Return the response to a call."""
        ...


class _MadeUpClient(AsyncWebClient):
    """A Slack client whose calls go to the simulated workspace."""

    stage: AnswersCalls

    async def api_call(self, api_method: str, **options: Any) -> AsyncSlackResponse:
        given: dict[str, Any] = {}
        for name in ("params", "data", "json"):
            given.update(options.get(name) or {})
        values = {name: value for name, value in given.items() if value is not None}
        values.pop("token", None)
        answer = self.stage.answer(api_method, values)
        response = AsyncSlackResponse(
            client=self,
            http_verb="POST",
            api_url=api_method,
            req_args={},
            data=answer,
            headers={},
            status_code=200,
        )
        if not answer.get("ok"):
            raise SlackApiError(  # type: ignore[no-untyped-call] # not typed in slack_sdk
                f"{api_method}: {answer.get('error')}", response
            )
        return response


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeUpSlack(Slack):
    """The access to the simulated Slack.

    Attributes:
        stage: Responds to the calls.
    """

    stage: AnswersCalls

    def client(
        self,
        *,
        timeout_s: int,
        tell: TellEvent | None = None,  # noqa: ARG002 - see Slack
        session: ClientSession | None = None,  # noqa: ARG002 - see Slack
    ) -> AsyncWebClient:
        """See `Slack.client`."""
        made = _MadeUpClient(token=self.token, timeout=timeout_s, retry_handlers=[])
        made.stage = self.stage
        return made


_STRANGERS = "T0STRANGER"


def settle_in(workspace: Workspace, world: World) -> None:
    """Replace the people, groups and channels of a workspace by those of a world."""
    bot = workspace.person(workspace.bot_user)
    workspace.people.clear()
    workspace.groups.clear()
    workspace.channels.clear()
    workspace.people[bot.id] = bot
    for user, flags in world.people.items():
        workspace.people[user] = _person(user, flags, workspace.team_id)
    for name, members in world.usergroups.items():
        workspace.groups[name] = UserGroup(
            id=name, handle=name.lower(), name=name, members=list(members)
        )
    for name, members in world.channels.items():
        workspace.channels[name] = _channel(name, members, bot.id, has_bot=name in world.bot_in)


def _person(user: str, flags: Data, team_id: str) -> SlackUser:
    return SlackUser(
        id=user,
        name=user.lower(),
        real_name=user.removeprefix("U0").title(),
        team_id=_STRANGERS if flags.get("external") else team_id,
        is_bot=bool(flags.get("bot")),
        is_restricted=bool(flags.get("guest")),
        is_stranger=bool(flags.get("external")),
        deleted=bool(flags.get("deactivated")),
        is_admin=bool(flags.get("admin")),
        tz=ZONE.key,
    )


def _channel(name: str, members: Any, bot: str, *, has_bot: bool) -> SlackChannel:
    if isinstance(members, dict):
        members = [f"U0CROWD{number:04}" for number in range(int(members["size"]))]
    is_direct = name.startswith("D")
    return SlackChannel(
        id=name,
        name=name.lower(),
        kind="im" if is_direct else "channel",
        members=[*members, *([bot] if has_bot or is_direct else [])],
    )
