"""The sandbox: a stand-in for Slack on this machine, for the demo and for tests."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Literal, Self, TypeVar

from aiohttp import web

from slack_sandbox.api.limits import RateLimits
from slack_sandbox.api.methods import APP_LEVEL, WebApi
from slack_sandbox.api.responses import ResponseUrls
from slack_sandbox.delivery.dispatcher import RETRY_DELAYS, Dispatcher
from slack_sandbox.delivery.events import Events
from slack_sandbox.delivery.faults import Faults
from slack_sandbox.delivery.http import HttpTransport, Transport
from slack_sandbox.delivery.socketmode import SocketModeServer
from slack_sandbox.delivery.stats import Statistics
from slack_sandbox.people.interactions import Interactions, field_values
from slack_sandbox.people.shortcuts import Shortcuts
from slack_sandbox.people.speech import Speech
from slack_sandbox.web.arrange import Arrangements, Skippable
from slack_sandbox.web.control import Control
from slack_sandbox.web.loopback import is_loopback, loopback_only
from slack_sandbox.web.pageapi import Doings, PageApi
from slack_sandbox.web.pagehub import PageHub
from slack_sandbox.workspace.changes import BackgroundTasks
from slack_sandbox.workspace.guide import Guide
from slack_sandbox.workspace.payloads import message_payload, view_payload
from slack_sandbox.workspace.people import APP, first_cast
from slack_sandbox.workspace.records import ApiCall, Payload, SlackMessage
from slack_sandbox.workspace.state import Workspace
from slack_sandbox.workspace.surfaces import FIRST_SURFACES, Surfaces

T = TypeVar("T")

DEFAULT_SCOPES = frozenset(
    {
        "app_mentions:read",
        "assistant:write",
        "channels:history",
        "channels:read",
        "chat:write",
        "commands",
        "groups:history",
        "groups:read",
        "im:history",
        "im:read",
        "im:write",
        "mpim:history",
        "mpim:read",
        "reactions:write",
        "usergroups:read",
        "users:read",
    }
)
"""The default scopes of the bot's token: those of the bot's manifest."""
_MOST_BYTES = 4 * 1024 * 1024


def _token(prefix: str) -> Callable[[], str]:
    return lambda: f"{prefix}-{secrets.token_hex(12)}"


@dataclass(eq=False, kw_only=True)
class Sandbox(Arrangements):
    """A small made-up workspace that behaves as Slack does.

    Apps reach it at `api_url`, with Socket Mode or with signed requests to `events_url`. People act
    on the page at `url`, tests through the methods of this class. All data is in memory, and the
    server listens on the loopback interface only.
    """

    clock: Callable[[], float]
    """Returns seconds since 1970. Apps check signatures by a clock of their own."""
    time: Skippable | None = None
    """The clock behind `clock` if people may skip time; the app must use it, too."""
    pace: Callable[[], float] | None = None
    """Returns seconds, to count calls against Slack's rate limits; None for `clock`."""
    host: str = "127.0.0.1"
    port: int = 0
    """The port; 0 for any free port."""
    signing_secret: str = field(default_factory=lambda: secrets.token_hex(16), repr=False)
    bot_token: str = field(default_factory=_token("xoxb-sandbox"), repr=False)
    app_token: str = field(default_factory=_token(f"xapp-1-{APP}"), repr=False)
    events_url: str | None = None
    """The address for events, interactions and commands, used while no socket is connected."""
    scopes: set[str] = field(default_factory=lambda: set(DEFAULT_SCOPES))
    """The scopes of the bot's token. They may change while the sandbox runs."""
    surfaces: Surfaces = FIRST_SURFACES
    """Commands, shortcuts and the Home tab, from the app's manifest."""
    bot_name: str = "countersign"
    with_demo: bool = True
    """Whether there are channels for the demo's agents, with examples of messages."""
    topics: Mapping[str, str] = field(default_factory=dict)
    """Topics of channels by name, in place of the default topics."""
    guide: Guide | None = None
    """The guide that the page shows newcomers."""
    ack_timeout: float = 3.0
    """Maximum number of seconds for the app's answer, in real time, whatever `clock` says."""
    retry_delays: Sequence[float] = RETRY_DELAYS
    sleep: Callable[[float], Awaitable[None]] = field(default=asyncio.sleep, repr=False)
    timer: Callable[[], float] = field(default=perf_counter, repr=False)
    """Returns seconds; measures how long the app takes to acknowledge."""

    def __post_init__(self) -> None:
        if not is_loopback(self.host):
            raise ValueError(f"The sandbox listens on loopback only, not on {self.host}.")
        self.workspace = Workspace(
            self.clock,
            cast=first_cast(self.bot_name, with_demo=self.with_demo),
            scopes=self.scopes,
            token=secrets.token_hex(12),
        )
        for name, topic in self.topics.items():
            self.workspace.channels[self.channel_id(name)].topic = topic
        self._tasks = BackgroundTasks(self.workspace.changes)
        self._hub = PageHub(self.workspace, self._tasks, self.surfaces, self.guide)
        self.faults = Faults(self._hub.refresh)
        self.limits = RateLimits(self.pace or self.clock)
        self.stats = Statistics()
        self.workspace.on_change.append(self.stats.changed)
        self._build_ways_out()
        self._build_ways_in()
        self._hub.is_connected = lambda: self._dispatcher.is_open
        self._hub.troubles = lambda: self.troubles
        self._hub.ahead = lambda: None if self.time is None else self.time.ahead_ms / 1_000
        self._runner: web.AppRunner | None = None

    def _build_ways_out(self) -> None:
        """Build the transports to the app."""
        patience = self.ack_timeout
        self._sockets = SocketModeServer(self.workspace, self._tasks, patience=patience)
        self._sockets.sleep = self.sleep
        self._http = HttpTransport(
            lambda: self.events_url, self.signing_secret, clock=self.clock, patience=patience
        )
        self._dispatcher = Dispatcher(
            (self._sockets, self._http),
            self._tasks,
            faults=self.faults,
            stats=self.stats,
            triggers=self.workspace.triggers,
            timer=self.timer,
        )
        self._dispatcher.delays, self._dispatcher.sleep = self.retry_delays, self.sleep
        self._events = Events(self.workspace, self._dispatcher.announce)

    def _build_ways_in(self) -> None:
        """Build the interfaces for the app and for people."""
        self._responses = ResponseUrls(self.workspace)
        self._interactions = Interactions(self.workspace, self._dispatcher, self._responses)
        self._speech = Speech(self.workspace, self._interactions, self.surfaces)
        self._shortcuts = Shortcuts(
            self.workspace, self._interactions, self._responses, self.surfaces
        )
        self._api = WebApi(
            self.workspace,
            {self.bot_token: "bot", self.app_token: "app"},
            faults=self.faults,
            limits=self.limits,
            stats=self.stats,
            tasks=self._tasks,
        )
        self._api.sleep = self.sleep
        self._refused_tokens = self._api.refused_tokens
        self._api.add_method("apps.connections.open", (APP_LEVEL,), self._sockets.open_connection)

    # ---- life -------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start to listen. `url` is known afterwards."""
        self._runner = web.AppRunner(self._web_app(), access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self.host, self.port)
        await site.start()
        port = self._runner.addresses[0][1]
        shown = f"[{self.host}]" if ":" in self.host else self.host
        self.workspace.url = f"http://{shown}:{port}"

    async def stop(self) -> None:
        """Close all connections and stop all tasks."""
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
        """The address of the page, without a slash at the end."""
        return self.workspace.url

    @property
    def api_url(self) -> str:
        """The value for SLACK_API_URL: the Web API, with a slash at the end."""
        return f"{self.workspace.url}/api/"

    # ---- without a port ---------------------------------------------------------------------

    def use(self, transport: Transport) -> None:
        """Reach the app in this process by the given transport only."""
        self._dispatcher.use(transport)

    def answer(self, method: str, values: Mapping[str, Any]) -> Payload:
        """Answer a Web API call of this process, made with the bot's token."""
        body = self._api.call(method, self.bot_token, values).body
        assert isinstance(body, dict)  # noqa: S101 - only faults are answered with HTML
        return body

    @property
    def is_busy(self) -> bool:
        """Whether a payload to the app is under way."""
        return self._tasks.count > 0

    async def idle(self) -> None:
        """Wait until no payload to the app is under way."""
        await self._tasks.idle()

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

        `chosen` is the selection, by Slack's field name, such as `selected_option`. For an option,
        its `value` is enough.
        """
        action = {"action_id": action_id, "block_id": block_id, **chosen}
        await self._interactions.click(user, channel, ts, action)

    def payload_of_click(
        self, user: str, channel: str, ts: str, action_id: str, **chosen: Any
    ) -> Payload:
        """Return the payload that `click` would send now, to send it later, twice, or changed."""
        action = {"action_id": action_id, **chosen}
        return self._interactions.click_payload(user, channel, ts, action)

    async def click_in_view(self, user: str, view: Payload, action_id: str, **chosen: Any) -> None:
        """Use a button or field of a modal or Home tab."""
        action = {"action_id": action_id, **chosen}
        await self._interactions.click_in_view(user, view["id"], action)

    async def submit(self, user: str, view: Payload, values: Payload | None = None) -> Payload:
        """Fill in a modal and press its button.

        Args:
            user: Id or name of the person.
            view: The modal, as `open_views` shows it.
            values: block_id → a plain text or an option's value; or the full shape of
                `state.values`.

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

    async def shortcut(
        self, user: str, callback_id: str, *, channel: str = "", ts: str = ""
    ) -> None:
        """Use a shortcut of a message's menu if `ts` is given, else of the composer's menu."""
        if ts:
            await self._shortcuts.on_message(user, channel, ts, callback_id)
        else:
            await self._shortcuts.everywhere(user, callback_id)

    async def suggest(
        self, user: str, view: Payload, action_id: str, typed: str, *, block_id: str | None = None
    ) -> Payload:
        """Type into a view's list whose options come from the app; return the options."""
        where = {"view_id": view["id"], "action_id": action_id, "block_id": block_id}
        return await self._shortcuts.suggest(user, where, typed)

    def open_home(self, user: str, tab: Literal["home", "messages"] = "home") -> None:
        """Open the app's conversation at one of its tabs."""
        self._events.home_opened(user, tab)

    def stop_agent(self, user: str, channel: str, thread_ts: str) -> None:
        """Press the stop button that Slack shows while the agent works in a thread."""
        self._events.session_stopped(user, channel, thread_ts)

    async def send_interaction(self, payload: Payload) -> Any:
        """Send an interaction to the app, genuine or forged; return the app's answer."""
        return (await self._interactions.send("interactive", payload)).body

    def emit(self, event: Payload) -> Payload:
        """Send an event to the app; return its envelope, to send it twice."""
        return self._events.emit(event)

    def announce(self, envelope: Payload) -> None:
        """Send an envelope again, as Slack sometimes does."""
        self._dispatcher.announce(envelope)

    # ---- what there is to see ---------------------------------------------------------------

    def messages(self, channel: str, *, thread_ts: str | None = None) -> list[Payload]:
        """Return the public messages of a channel or a thread, oldest first, with metadata."""
        messages = self.workspace.public(channel)
        return [
            self._shown(message) for message in messages if thread_ts in (None, message.root_ts)
        ]

    def ephemerals(self, user: str) -> list[Payload]:
        """The ephemeral messages of a person, oldest first."""
        return [self._shown(message) for message in self.workspace.ephemerals(user)]

    def open_views(self, user: str) -> list[Payload]:
        """Return the views of a person's open modal, the topmost last."""
        return [view_payload(self.workspace, view) for view in self.workspace.views.stack(user)]

    def home(self, user: str) -> Payload | None:
        """The Home tab of a person."""
        view = self.workspace.views.home(user)
        return None if view is None else view_payload(self.workspace, view)

    def user_id(self, name: str) -> str:
        """Return the id of a person, by name, first name or full name."""
        wanted = name.lower()
        for person in self.workspace.people.values():
            if wanted in {person.name.lower(), person.real_name.lower()}:
                return person.id
        raise LookupError(name)

    @property
    def channel_ids(self) -> list[str]:
        """Return the ids of all channels, without direct messages."""
        return [
            channel_id for channel_id in self.workspace.channels if not channel_id.startswith("D")
        ]

    def channel_id(self, name: str) -> str:
        """Return the id of a channel, by its name without #."""
        for channel in self.workspace.channels.values():
            if channel.kind == "channel" and channel.name == name:
                return channel.id
        raise LookupError(name)

    def dm_id(self, user: str) -> str:
        """Return the id of a person's direct message with the bot."""
        return self.workspace.direct_message(user).id

    @property
    def calls(self) -> list[ApiCall]:
        """All Web API calls so far, without their tokens."""
        return self._api.calls

    @property
    def bad_answers(self) -> list[str]:
        """Invalid answers of the app, one sentence each."""
        return self._interactions.bad_answers

    async def until(self, predicate: Callable[[], T], timeout: float = 60.0) -> T:
        """Wait until the predicate returns a true value, and return that value.

        The predicate runs again at each change.

        Raises:
            TimeoutError: The value did not become true in time.
        """
        return await self.workspace.changes.until(predicate, timeout)

    def _shown(self, message: SlackMessage) -> Payload:
        channel = {"channel": message.channel}
        return {**message_payload(self.workspace, message, with_metadata=True), **channel}

    def _web_app(self) -> web.Application:
        app = web.Application(middlewares=[loopback_only], client_max_size=_MOST_BYTES)
        doings = Doings(
            interactions=self._interactions,
            speech=self._speech,
            shortcuts=self._shortcuts,
            events=self._events,
        )
        page = PageApi(self.workspace, self._hub, doings)
        app.add_routes(
            [
                web.route("*", "/api/{method:[A-Za-z.]+}", self._api.handle),
                web.get("/socket", self._sockets.handle),
                web.post("/actions/{team}/{secret}", self._responses.handle),
                *page.routes(),
                *Control(self, lambda: self._interactions.bad_answers).routes(),
            ]
        )
        return app


async def serve(sandbox: Sandbox, *, ready: Callable[[Sandbox], None] = lambda _: None) -> None:
    """Run a sandbox until this task is cancelled; call `ready` once it listens."""
    async with sandbox:
        ready(sandbox)
        await asyncio.Event().wait()
