"""The sandbox: a stand-in for Slack on this machine, for the demo and for tests."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar

from aiohttp import web

from bot.sandbox.delivery import RETRY_DELAYS, Delivery, HttpTransport
from bot.sandbox.events import Events
from bot.sandbox.guard import guard, is_loopback
from bot.sandbox.interactions import Interactions
from bot.sandbox.pageapi import PageApi
from bot.sandbox.pagehub import PageHub
from bot.sandbox.payloads import message_payload, view_payload
from bot.sandbox.people import APP
from bot.sandbox.records import Call, Channel, Features, Message, Payload, Person
from bot.sandbox.responses import ResponseUrls
from bot.sandbox.socketmode import SocketMode
from bot.sandbox.speech import Speech
from bot.sandbox.state import Workspace
from bot.sandbox.tasks import Tasks
from bot.sandbox.values import field_values
from bot.sandbox.webapi import APP_LEVEL, Failure, WebApi

T = TypeVar("T")

DEFAULT_SCOPES = frozenset(
    {
        "app_mentions:read",
        "channels:history",
        "channels:read",
        "chat:write",
        "groups:history",
        "groups:read",
        "im:history",
        "im:read",
        "usergroups:read",
        "users:read",
    }
)
"""What the bot's token may do, unless told otherwise: the scopes of the bot's manifest."""
_MOST_BYTES = 4 * 1024 * 1024


def _token(prefix: str) -> Callable[[], str]:
    return lambda: f"{prefix}-{secrets.token_hex(12)}"


@dataclass(eq=False, kw_only=True)
class Sandbox:
    """A small made-up workspace that talks as Slack does.

    Apps reach it by `api_url`, with Socket Mode or with signed requests to `events_url`; people
    act on the page at `url`, tests through the methods here. All of it lives in memory and on the
    loopback interface.
    """

    clock: Callable[[], float]
    """Seconds since 1970. Apps check signatures by their own clock: over HTTP it must be near."""
    host: str = "127.0.0.1"
    port: int = 0
    """0 takes any free one."""
    signing_secret: str = field(default_factory=lambda: secrets.token_hex(16), repr=False)
    bot_token: str = field(default_factory=_token("xoxb-sandbox"), repr=False)
    app_token: str = field(default_factory=_token(f"xapp-1-{APP}"), repr=False)
    events_url: str | None = None
    """Where events, interactions and commands go while no socket is connected."""
    scopes: set[str] = field(default_factory=lambda: set(DEFAULT_SCOPES))
    """What the bot token may do; may be changed while running."""
    commands: Collection[str] = ("/countersign",)
    bot_name: str = "countersign"
    ack_timeout: float = 3.0
    """Seconds that the app has to answer; real ones, whatever `clock` says."""
    retry_delays: Sequence[float] = RETRY_DELAYS
    sleep: Callable[[float], Awaitable[None]] = field(default=asyncio.sleep, repr=False)

    def __post_init__(self) -> None:
        if not is_loopback(self.host):
            raise ValueError(f"The sandbox listens on loopback only, not on {self.host}.")
        self.workspace = Workspace(
            self.clock, bot_name=self.bot_name, scopes=self.scopes, token=secrets.token_hex(12)
        )
        self._tasks = Tasks(self.workspace.changes)
        self._sockets = SocketMode(self.workspace, patience=self.ack_timeout)
        self._http = HttpTransport(
            lambda: self.events_url,
            self.signing_secret,
            clock=self.clock,
            patience=self.ack_timeout,
        )
        self._delivery = Delivery(
            (self._sockets, self._http), self._tasks, delays=self.retry_delays, sleep=self.sleep
        )
        self._responses = ResponseUrls(self.workspace)
        self._interactions = Interactions(self.workspace, self._delivery, self._responses)
        self._speech = Speech(self.workspace, self._interactions, self.commands)
        self._events = Events(self.workspace, self._delivery.announce)
        self._hub = PageHub(self.workspace, self._tasks)
        self._hub.is_connected = lambda: self._delivery.is_open
        self._api = WebApi(self.workspace, bot_token=self.bot_token, app_token=self.app_token)
        self._api.add_method("apps.connections.open", (APP_LEVEL,), self._sockets.open_connection)
        self._runner: web.AppRunner | None = None

    # ---- life -------------------------------------------------------------------------------

    async def start(self) -> None:
        """Listen; `url` is known then."""
        self._runner = web.AppRunner(self._web_app(), access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self.host, self.port)
        await site.start()
        port = self._runner.addresses[0][1]
        shown = f"[{self.host}]" if ":" in self.host else self.host
        self.workspace.url = f"http://{shown}:{port}"

    async def stop(self) -> None:
        """Close all connections, and leave nothing behind."""
        await self._sockets.disconnect("link_disabled")
        await self._hub.close()
        await self._tasks.stop()
        await self._http.close()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @property
    def url(self) -> str:
        """The address of the page; without a slash at the end."""
        return self.workspace.url

    @property
    def api_url(self) -> str:
        """What SLACK_API_URL must be: the Web API, with a slash at the end."""
        return f"{self.workspace.url}/api/"

    # ---- what people do ---------------------------------------------------------------------

    async def say(
        self,
        user: str,
        channel: str,
        text: str,
        thread_ts: str | None = None,
        *,
        broadcast: bool = False,
    ) -> str:
        """Write as a person; @names become mentions. Returns the message's ts."""
        message = self._speech.say(user, channel, text, thread_ts=thread_ts, broadcast=broadcast)
        return message.ts

    async def edit(self, user: str, channel: str, ts: str, text: str) -> None:
        """Change a person's own message."""
        self._speech.edit(user, channel, ts, text)

    async def remove(self, channel: str, ts: str) -> None:
        """Delete any message, as an administrator may."""
        self.workspace.remove(self.workspace.message(channel, ts))

    async def click(
        self,
        user: str,
        channel: str,
        ts: str,
        action_id: str,
        *,
        block_id: str | None = None,
        **chosen: Any,
    ) -> None:
        """Use a button or field of a message, and wait for the acknowledgement.

        `chosen` is what was chosen, by Slack's name for it, such as `selected_option`; for options
        just the `value` will do.
        """
        action = {"action_id": action_id, "block_id": block_id, **chosen}
        await self._interactions.click(user, channel, ts, action)

    def payload_of_click(
        self, user: str, channel: str, ts: str, action_id: str, **chosen: Any
    ) -> Payload:
        """What `click` would send now; to be sent later, twice, or changed."""
        action = {"action_id": action_id, **chosen}
        return self._interactions.click_payload(user, channel, ts, action)

    async def click_in_view(self, user: str, view: Payload, action_id: str, **chosen: Any) -> None:
        """Use a button or field of a modal or Home tab."""
        action = {"action_id": action_id, **chosen}
        await self._interactions.click_in_view(user, view["id"], action)

    async def submit(self, user: str, view: Payload, values: Payload | None = None) -> Payload:
        """Fill in a modal and press its button.

        Args:
            user: Who does it.
            view: The modal, as `open_views` shows it.
            values: block_id → what to fill in, as a plain text or option value; or the full shape
                of `state.values`.

        Returns:
            The outcome: `ok`, and `response_action` and `errors` if the app gave them.
        """
        blocks = self.workspace.views.find(view["id"]).content["blocks"]
        filled = field_values(blocks, values or {})
        return await self._interactions.submit(user, view["id"], filled)

    async def close_view(self, user: str, view: Payload, *, everything: bool = False) -> None:
        """Press Cancel, or the x of the whole modal."""
        await self._interactions.close(user, view["id"], everything=everything)

    async def command(self, user: str, channel: str, command: str, text: str = "") -> None:
        """Type a slash command."""
        await self._speech.command(user, channel, command, text)

    async def send_interaction(self, payload: Payload) -> Any:
        """Send any interaction to the app, true or forged; returns what it answered."""
        return (await self._interactions.send("interactive", payload)).body

    def emit(self, event: Payload) -> Payload:
        """Send any event to the app; returns the envelope, as for sending it twice."""
        return self._events.emit(event)

    def announce(self, envelope: Payload) -> None:
        """Send an envelope again, as Slack does now and then."""
        self._delivery.announce(envelope)

    # ---- what there is to see ---------------------------------------------------------------

    def messages(self, channel: str, *, thread_ts: str | None = None) -> list[Payload]:
        """What everybody sees in a channel, or in one thread of it, oldest first, with metadata."""
        found = self.workspace.public(channel)
        return [self._shown(one) for one in found if thread_ts in (None, one.root_ts)]

    def ephemerals(self, user: str) -> list[Payload]:
        """The ephemeral messages of a person, oldest first."""
        return [self._shown(one) for one in self.workspace.ephemerals(user)]

    def open_views(self, user: str) -> list[Payload]:
        """The open modal of a person, its topmost view last."""
        return [view_payload(self.workspace, one) for one in self.workspace.views.stack(user)]

    def home(self, user: str) -> Payload | None:
        """The Home tab of a person."""
        view = self.workspace.views.home(user)
        return None if view is None else view_payload(self.workspace, view)

    def user_id(self, name: str) -> str:
        """The id of a person, by name, first name or full name."""
        wanted = name.lower()
        for person in self.workspace.people.values():
            if wanted in {person.name.lower(), person.real_name.lower()}:
                return person.id
        raise LookupError(name)

    def channel_id(self, name: str) -> str:
        """The id of a channel, by its name without #."""
        for channel in self.workspace.channels.values():
            if channel.kind == "channel" and channel.name == name:
                return channel.id
        raise LookupError(name)

    def dm_id(self, user: str) -> str:
        """The id of a person's conversation with the bot."""
        return self.workspace.direct_message(user).id

    @property
    def calls(self) -> list[Call]:
        """Every Web API call so far, without its token."""
        return self._api.calls

    @property
    def faults(self) -> list[str]:
        """Answers of the app that Slack could not have used."""
        return self._interactions.faults

    @property
    def lost_events(self) -> list[Payload]:
        """Events that the app did not take, after all retries."""
        return self._delivery.lost

    @property
    def is_connected(self) -> bool:
        """Whether there is a way to the app: an open socket, or an address."""
        return self._delivery.is_open

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way to the app or to a page."""
        return self._tasks.count == 0

    @property
    def features(self) -> Features:
        """What can be switched off."""
        return self.workspace.features

    async def until(self, predicate: Callable[[], T], timeout: float = 5.0) -> T:
        """Wait until something is true, and return it; looked at whenever something changes.

        Raises:
            TimeoutError: It did not become true.
        """
        return await self.workspace.changes.until(predicate, timeout)

    # ---- arranging --------------------------------------------------------------------------

    def add_person(self, name: str, **facts: Any) -> Person:
        """Add somebody; `facts` are further fields of `Person`."""
        new_id = self.workspace.ids.new("U")
        given = {"id": new_id, "real_name": name.title(), "team_id": self.workspace.team_id}
        person = Person(name=name, **{**given, **facts})
        self.workspace.people[person.id] = person
        self._hub.refresh()
        return person

    def add_channel(self, name: str, members: Sequence[str], **facts: Any) -> Channel:
        """Add a channel; `facts` are further fields of `Channel`."""
        channel_id = self.workspace.ids.new("C")
        channel = Channel(**{"id": channel_id, "name": name, "members": list(members), **facts})
        self.workspace.channels[channel.id] = channel
        self._hub.refresh()
        return channel

    def join(self, user: str, channel: str) -> None:
        """Let a person, or the bot, into a channel; people of other workspaces make it shared."""
        person, room = self.workspace.person(user), self.workspace.channels[channel]
        if person.id not in room.members:
            room.members.append(person.id)
        if person.team_id != self.workspace.team_id:
            room.is_ext_shared = True
        self._hub.refresh()

    def leave(self, user: str, channel: str) -> None:
        """Take a person, or the bot, out of a channel."""
        self.workspace.channels[channel].members.remove(user)
        self._hub.refresh()

    def archive(self, channel: str) -> None:
        """Close a channel for writing."""
        self.workspace.channels[channel].is_archived = True
        self._hub.refresh()

    def fail(self, method: str, *, error: str | None = None, times: int = 1, **how: Any) -> None:
        """Let the next calls of a method go wrong; `how` are further fields of `Failure`."""
        self._api.fail(method, Failure(error=error, times=times, **how))

    async def disconnect(self, reason: str = "refresh_requested") -> None:
        """Close all sockets, as Slack does every few hours."""
        await self._sockets.disconnect(reason)

    def _shown(self, message: Message) -> Payload:
        channel = {"channel": message.channel}
        return {**message_payload(self.workspace, message, with_metadata=True), **channel}

    def _web_app(self) -> web.Application:
        app = web.Application(middlewares=[guard], client_max_size=_MOST_BYTES)
        page = PageApi(self.workspace, self._hub, self._interactions, self._speech)
        app.add_routes(
            [
                web.route("*", "/api/{method:[A-Za-z.]+}", self._api.handle),
                web.get("/socket", self._sockets.handle),
                web.post("/actions/{team}/{secret}", self._responses.handle),
                *page.routes(),
            ]
        )
        return app


async def serve(sandbox: Sandbox, *, ready: Callable[[Sandbox], None] = lambda _: None) -> None:
    """Run a sandbox until this is cancelled; `ready` is called once it listens."""
    async with sandbox:
        ready(sandbox)
        await asyncio.Event().wait()
