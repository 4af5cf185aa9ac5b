"""Holds calls of tools until people have approved them; all other messages pass."""

from __future__ import annotations

import asyncio
import copy
import json
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any
from uuid import uuid4

from countersign_client import asking
from countersign_client.asynchronous import AsyncCountersign
from countersign_client.errors import CountersignError, InvalidRequest
from countersign_client.mcp.calls import Call, Options, RefusedCallError, call_of, round_of
from countersign_client.mcp.files import Definitions, Spool
from countersign_client.mcp.messages import (
    INVALID_REQUEST,
    REFUSED,
    MalformedMessageError,
    Message,
    is_id,
    marked,
    members_of,
    noted,
    parse,
    read,
    refusal,
    serialised,
)
from countersign_client.requests import AlreadyStarted, NotApproved, NotStarted, Request
from countersign_client.runs import AsyncRun
from countersign_client.sentences import text_for_model

logger = logging.getLogger("countersign_client")

BETWEEN = 10.0
"""Seconds between two signs of life, to the client while people think, to people while it runs."""
REPORTING = 5.0
"""Seconds that an answer waits until its outcome is on record."""
LONGEST_SUMMARY = 300
NOTE = " [People may be asked first; this can take long.]"
_AGAIN = "This is the result of the same call that was made before; it ran once, and not again."
_GONE = (
    "The server, or the connection to it, ended while this ran. Its outcome is unknown, and people "
    "are asked. Do not call again to find out."
)
_UNREACHED = "Not run: the server cannot be reached."
_LOST = "The outcome of this call is unknown, and people are asked. Do not call again to find out."
_ENDED = "Not run: the server has ended. The request stays; start the server, and call again."
_NO_RESULT = "Countersign: the server's answer has no result."
_PEOPLE = ("people", "break_glass")
_MOST_PAGES = 100
Send = Callable[[bytes], Awaitable[None]]


class ServerGoneError(Exception):
    """The server ended before it answered."""


class UnreachedError(Exception):
    """The server cannot have read a message."""


class _OpenCall:
    """An unanswered call: one request and at most one run for all messages that ask for it."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.waiters = 0
        self.is_started = False
        self.is_kept = False
        self.run: AsyncRun | None = None
        self.request_id: str | None = None
        self.outcome: asyncio.Task[Any] | None = None
        """Reports what came of it; None: there is nothing to hand over."""
        self.task: asyncio.Task[Message]


class Proxy:
    """A client and a server. The transport hands messages in, and carries messages out."""

    def __init__(
        self,
        countersign: AsyncCountersign,
        options: Options,
        files: tuple[Definitions, Spool],
        to_client: Send,
        to_server: Send,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """Begin with nothing on its way.

        Args:
            countersign: Asks people.
            options: How to ask.
            files: The server's tools, and the results that no client took.
            to_client: Sends a line to the client.
            to_server: Sends a line to the server; OSError if it is gone, UnreachedError if the
                server cannot have read the line.
            sleep: Waits for so many seconds.
        """
        self._countersign = countersign
        self._options = options
        self._definitions, self._spool = files
        self._to_client = to_client
        self._to_server = to_server
        self._sleep = sleep
        self._held = {"tools/call", *options.gates}
        self._client_name = self._session = ""
        self._passed: dict[str, Message] = {}
        """Requests that the server got as they are and has not answered, by id."""
        self._greeting: list[Message] = []
        self._rounds: dict[str, AsyncRun] = {}
        self._waiting: dict[str, asyncio.Task[None]] = {}
        self._cancelled: set[str] = set()
        self._being_written: set[str] = set()
        """Messages whose answers are being written to the client."""
        self._open_calls: dict[str, _OpenCall] = {}
        self._running: dict[str, asyncio.Future[Message]] = {}
        self._later: set[asyncio.Task[Any]] = set()
        self._is_gone = False

    def joined(self, to_client: Send, to_server: Send, session: str) -> Proxy:
        """Serve another client of the same server; the same call of both is one call.

        Args:
            to_client: Sends a line to this client.
            to_server: Sends a line to the server, for this client.
            session: In which the ids of messages are unique.
        """
        proxy = copy.copy(self)
        proxy._to_client, proxy._to_server = to_client, to_server  # noqa: SLF001 - of the same class
        proxy._session, proxy._passed, proxy._running = session, {}, {}  # noqa: SLF001
        return proxy

    async def from_client(self, line: bytes) -> None:
        """Take a message of the client; a held call goes on by itself.

        Args:
            line: The message, JSON.
        """
        try:
            message = parse(line)
            if self.takes(message):
                return
        except MalformedMessageError as error:
            await self._to_client(serialised(error.answer))
            return
        with suppress(OSError):  # its end is noticed elsewhere
            await self._to_server(serialised(message))

    def takes(self, message: Message) -> bool:
        """Take a message that the server does not get as it is: a held call, or its end.

        Args:
            message: Of the client; parsed.

        Raises:
            MalformedMessageError: It is a call that could not be answered.
        """
        params = members_of(message.get("params"))
        if message.get("method") in self._held:
            self._hold(message)
            return True
        if message.get("method") == "notifications/cancelled":
            # The server knows a held call by another id, if at all.
            return self.give_up(params.get("requestId"), is_cancelled=True)
        if "id" in message and "method" in message:
            self._passed[json.dumps(message["id"])] = message
        if message.get("method") == "initialize":
            self._client_name = str(members_of(params.get("clientInfo")).get("name", ""))
            self._greeting = [message]
        elif message.get("method") == "notifications/initialized":
            self._greeting.append(message)
        return False

    def give_up(self, message_id: Any, *, is_cancelled: bool) -> bool:
        """End the wait of a client for a held call. A call that runs goes on.

        Args:
            message_id: As the client sent it.
            is_cancelled: Whether the client said so, and did not only go away.

        Returns:
            Whether there is such a call.
        """
        name = self._name(message_id)
        held = self._waiting.get(name)
        if held is None:
            return False
        if is_cancelled and self._options.withdraws:
            self._cancelled.add(name)
        held.cancel()
        return True

    def when_over(self, message_id: Any, act: Callable[[], object]) -> None:
        """Call a function when a held call has its answer, or gets none.

        Args:
            message_id: As the client sent it.
            act: The function.
        """
        self._waiting[self._name(message_id)].add_done_callback(lambda _: act())

    async def from_server(self, line: bytes) -> None:
        """Take a message of the server; all but answers to held calls and lists pass as they are.

        Args:
            line: The message, with its end of line.
        """
        passed = self.passed(line)
        if passed is not None:
            await self._to_client(passed)

    def passed(self, line: bytes) -> bytes | None:
        """Give what the client gets of a message of the server; None: nothing.

        Args:
            line: The message.
        """
        try:
            message = read(line)
        except (ValueError, RecursionError):
            return line
        if not isinstance(message, dict) or "method" in message or not is_id(message.get("id")):
            return line
        running = self._running.pop(str(message["id"]), None)
        if running is not None:
            running.set_result(message)
            return None
        if self._name(message["id"]) in self._waiting:
            return None  # people have not decided, and the server was not asked
        asked = self._passed.pop(json.dumps(message["id"]), {})
        if asked.get("method") == "tools/list":
            is_first = members_of(asked.get("params")).get("cursor") is None
            return serialised(self._listed(message, is_first=is_first))
        return line

    def server_gone(self) -> None:
        """Let the calls that run end with an unknown outcome."""
        self._is_gone = True
        for own_id in list(self._running):
            self.lose(own_id)

    async def server_died(self) -> None:
        """Answer all that the server leaves, and wait for `greet_again` of another one."""
        self.server_gone()
        self._definitions.take_page([], is_first=True)
        passed, self._passed = self._passed, {}
        for message in passed.values():
            error = {"code": REFUSED, "message": "Countersign: the server ended. Try again."}
            answer = {"jsonrpc": "2.0", "id": message["id"], "error": error}
            with suppress(OSError):  # the client is gone
                await self._to_client(serialised(answer))

    async def greet_again(self) -> None:
        """Begin with a server that was started again, as the client began with the first one."""
        with suppress(ServerGoneError, OSError):  # it ended as well
            for message in self._greeting:
                if "id" in message:
                    await self._asked({**message, "id": f"countersign-{uuid4().hex}"})
                else:
                    await self._to_server(serialised(message))
            self._is_gone = False

    def schema_of(self, name: str) -> Any:
        """Give the JSON Schema of a tool's arguments, as the server listed it last.

        Args:
            name: The tool, as the server names it.
        """
        return members_of(self._definitions.listed(name)).get("inputSchema")

    def runs(self, own_id: str) -> bool:
        """Whether the server has not answered a call.

        Args:
            own_id: As the server knows the call.
        """
        return own_id in self._running

    def lose(self, own_id: str) -> None:
        """Let a call end with an unknown outcome, if the server has not answered it.

        Args:
            own_id: As the server knows the call.
        """
        running = self._running.pop(own_id, None)
        if running is not None:
            running.set_exception(ServerGoneError)

    def abort(self) -> None:
        """End the calls that run, with an unknown outcome; this process ends."""
        for open_call in list(self._open_calls.values()):
            open_call.task.cancel()

    async def close(self) -> None:
        """End the calls that wait for people, whose requests stay; finish those that run."""
        if not self._is_gone:  # the client is, and takes no answer
            for name, held in list(self._waiting.items()):
                if name not in self._being_written:  # a client may read its answer, and go at once
                    held.cancel()
        for open_call in list(self._open_calls.values()):
            if not open_call.is_started:
                open_call.task.cancel()
        while pending := {
            *self._waiting.values(),
            *(open_call.task for open_call in self._open_calls.values()),
            *self._later,
        }:
            await asyncio.wait(pending)

    def _hold(self, message: Message) -> None:
        message_id = message.get("id")
        if not is_id(message_id):
            raise MalformedMessageError(INVALID_REQUEST, "a call needs an id, text or a number")
        name = self._name(message_id)
        if name in self._waiting:
            raise MalformedMessageError(INVALID_REQUEST, "a call has this id", message_id)
        self._waiting[name] = task = asyncio.create_task(self._answer(message))
        task.add_done_callback(lambda _: self._waiting.pop(name, None))

    def _name(self, message_id: Any) -> str:
        return json.dumps([self._session, message_id])

    async def _answer(self, message: Message) -> None:
        """Answer one message, when its call has ended."""
        try:
            call = await self._call_of(message)
        except RefusedCallError as error:
            await self._tell(message, refusal(message, str(error), None))
            return
        open_call = self._open_calls.get(call.round or call.key)
        is_again = open_call is not None
        if open_call is None:
            open_call = self._open_calls[call.round or call.key] = _OpenCall(call)
            open_call.task = asyncio.create_task(self._carry_out(open_call))
            open_call.task.add_done_callback(lambda _: self._forget(open_call))
        open_call.waiters += 1
        try:
            await self._wait(call, open_call)
        finally:
            open_call.waiters -= 1
            is_cancelled = self._name(message["id"]) in self._cancelled
            self._cancelled.discard(self._name(message["id"]))
            if not open_call.waiters and not open_call.is_started:
                self._forget(open_call)  # so that nobody joins a call that ends
                open_call.task.cancel()
                if is_cancelled and open_call.request_id is not None:
                    self._in_background(self._countersign.cancel(open_call.request_id))
        if open_call.task.cancelled():
            await self._tell(message, refusal(message, _ENDED, open_call.request_id))
            return
        answer = open_call.task.result()
        if open_call.is_kept or (is_again and open_call.is_started):
            answer = noted(answer, _AGAIN)
        name = self._name(message["id"])
        self._being_written.add(name)
        try:
            is_written = await self._tell(message, answer)
        finally:
            self._being_written.discard(name)
        if is_written and open_call.outcome is not None:
            self._spool.drop(call.key)
            self._in_background(self._hand_over(open_call))

    async def _call_of(self, message: Message) -> Call:
        """Make the call; a client may have listed the tools before this process began."""
        if message["method"] == "tools/call" and not self._definitions.is_listed:
            await self._list(message)
        return call_of(message, self._options, self._definitions, self._client_name)

    async def _tell(self, message: Message, answer: Message) -> bool:
        """Answer a message, and say whether the client is still there."""
        try:
            await self._to_client(serialised({**answer, "jsonrpc": "2.0", "id": message["id"]}))
        except OSError:
            return False
        return True

    def _forget(self, open_call: _OpenCall) -> None:
        name = open_call.call.round or open_call.call.key
        if self._open_calls.get(name) is open_call:
            del self._open_calls[name]

    async def _wait(self, call: Call, open_call: _OpenCall) -> None:
        """Wait for the end of a call; the client hears that people are asked."""
        token, begun, count = call.progress_token, time.monotonic(), 0
        while not open_call.task.done():
            if is_id(token) and not open_call.is_started:
                text = f"Waiting for people since {time.monotonic() - begun:.0f} s"
                text += f": {open_call.request_id}" if open_call.request_id else ""
                # Below zero, so that the numbers of the server itself still rise.
                params = {"progressToken": token, "progress": -1 + count / 100_000, "message": text}
                progress = {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
                with suppress(OSError):  # the client is gone
                    await self._to_client(serialised(progress))
            count += 1
            tick = asyncio.ensure_future(self._sleep(BETWEEN))
            try:
                await asyncio.wait({open_call.task, tick}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                tick.cancel()

    async def _carry_out(self, open_call: _OpenCall) -> Message:
        """Ask, start, run and report; or say why it did not run."""
        call = open_call.call
        kept = None if call.round else self._spool.get(call.key)
        if kept is not None:
            open_call.is_started = open_call.is_kept = True
            open_call.request_id = kept["request"]
            report = self._countersign.report(kept["request"], kept["outcome"], kept["summary"])
            open_call.outcome = self._in_background(report)
            answer: Message = kept["answer"]
            return answer
        try:
            return await self._run(open_call, await self._started(open_call))
        except (NotApproved, NotStarted) as error:
            known = error.request.execution.state in ("ran", "failed", "not_run")
            if isinstance(error, AlreadyStarted) and known:
                open_call.outcome = self._in_background(asyncio.sleep(0))
            text = text_for_model(error)
        except InvalidRequest as error:
            text = f"Not run: Countersign refuses this call: {error}"
        except RefusedCallError as error:
            text = str(error)
        except ServerGoneError:
            text = _GONE
        except Exception as error:  # noqa: BLE001 - a client waits for an answer, whatever it is
            logger.warning("%s did not run: %r", call.tool, error)
            text = (
                f"Not run: people could not be asked. {error}" if open_call.run is None else _LOST
            )
        return refusal(call.message, text, open_call.request_id)

    async def _decide(self, open_call: _OpenCall) -> Request:
        """Ask, wait for people, and check what they decided."""
        call = open_call.call
        request = await self._countersign.create(key=call.key, **call.asked)
        open_call.request_id = request.id
        request = await self._countersign.wait(request)
        if call.schema is None:
            request.check(call.tool, call.arguments)
        else:
            asking.edited(request, call.tool, call.schema)
        if call.changed is not None and request.approved().source not in _PEOPLE:
            raise RefusedCallError(
                f"Not run: the definition of this tool has changed since {call.changed.since}, and "
                "no person has approved a call of it since then; a rule or a grant is not enough."
            )
        return request

    async def _started(self, open_call: _OpenCall) -> AsyncRun:
        """Ask and start; or find the run that goes on, once the client gave what it asked for."""
        call = open_call.call
        if call.round is None:
            request = await self._decide(open_call)
            open_call.is_started = True  # from here on nobody knows, until the server has answered
            decided = request.approved().arguments or {}
            return await self._countersign.start(request, tool=call.tool, arguments=decided)
        open_call.is_started = True
        run = self._rounds.pop(call.round, None)
        if run is None:
            text = "Not run: no call that was approved goes on here. Call again from the beginning."
            raise RefusedCallError(text)
        open_call.request_id = run.request.id
        return run

    async def _run(self, open_call: _OpenCall, run: AsyncRun) -> Message:
        """Let the server run what was decided, and report what came of it."""
        call, own_id = open_call.call, f"countersign-{uuid4().hex}"
        open_call.run = run
        if self._is_gone:
            await run.not_run("The server had ended")
            raise RefusedCallError(_ENDED)
        if call.changed is not None:
            self._definitions.accept(call.own_name)
        alive = asyncio.create_task(self._report_running(run))
        try:
            message = await self._asked(call.forwarded(own_id, run.arguments))
        except UnreachedError:
            await run.not_run("The server cannot be reached")
            raise RefusedCallError(_UNREACHED) from None
        except (ServerGoneError, asyncio.CancelledError):
            unknown = self._countersign.report(
                run.request, "unknown", "The server ended", token=run.token
            )
            self._in_background(unknown)
            raise
        finally:
            alive.cancel()
        result = members_of(message.get("result"))
        if result.get("resultType") == "input_required":  # it is not over
            self._rounds[round_of(call, result)] = run
            return marked({"result": result}, run.request.id)
        return await self._settle(open_call, run, message)

    async def _asked(self, message: Message) -> Message:
        """Send the server a message with an id of our own, and give its answer."""
        own_id = message["id"]
        running: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._running[own_id] = running
        try:
            with suppress(OSError):  # it may have read the message; its end is noticed elsewhere
                await self._to_server(serialised(message))
            return await running
        finally:
            self._running.pop(own_id, None)

    async def _list(self, message: Message) -> None:
        """List the tools, all pages."""
        meta = members_of(members_of(message.get("params")).get("_meta"))
        meta.pop("progressToken", None)
        params: dict[str, Any] = {"_meta": meta} if meta else {}
        for page in range(_MOST_PAGES):
            own_id = f"countersign-{uuid4().hex}"
            asked = {"jsonrpc": "2.0", "id": own_id, "method": "tools/list", "params": params}
            try:
                listed = await self._asked(asked)
            except (ServerGoneError, UnreachedError):
                raise RefusedCallError(_UNREACHED) from None
            self._listed(listed, is_first=page == 0)
            cursor = members_of(listed.get("result")).get("nextCursor")
            if cursor is None:
                break
            params = {**params, "cursor": cursor}

    async def _settle(self, open_call: _OpenCall, run: AsyncRun, message: Message) -> Message:
        """Keep and report what came of it, and tell the model what people have changed."""
        call = open_call.call
        answer: Message = {name: message[name] for name in ("result", "error") if name in message}
        answer = answer or {"error": {"code": REFUSED, "message": _NO_RESULT}}
        has_failed = "result" not in answer or members_of(answer["result"]).get("isError") is True
        summary = self._summary(answer)
        decision = run.request.decision
        if decision is not None and decision.edited:
            shown = json.dumps(run.arguments, ensure_ascii=False)
            answer = noted(answer, f"People approved this with changes: it ran with {shown}.")
        answer = marked(answer, run.request.id)
        outcome = "failed" if has_failed else "ran"
        kept = {"request": run.request.id, "outcome": outcome, "summary": summary, "answer": answer}
        try:
            self._spool.put(call.key, kept)
        except OSError as error:
            logger.warning("the result of %s cannot be kept: %s", run.request.id, error)
        report = run.failed(summary) if has_failed else run.ran(summary)
        open_call.outcome = self._in_background(report)
        await asyncio.wait({open_call.outcome}, timeout=REPORTING)
        return answer

    async def _report_running(self, run: AsyncRun) -> None:
        """Report that it runs, so that nobody is asked about it too early."""
        while True:
            await self._sleep(BETWEEN * 6)
            await run.progress("It runs")

    async def _hand_over(self, open_call: _OpenCall) -> None:
        """Report that the client has the result, so that the same call is asked about anew."""
        if open_call.outcome is not None and open_call.request_id is not None:
            await asyncio.wait({open_call.outcome})
            await self._countersign.delivered(open_call.request_id)

    def _summary(self, answer: Message) -> str | None:
        if not self._options.tells_summary:
            return None
        result = members_of(answer.get("result"))
        blocks = result.get("content") if isinstance(result.get("content"), list) else []
        texts = [str(members_of(block).get("text", "")) for block in blocks or ()]
        text = " ".join(texts) or str(members_of(answer.get("error")).get("message", ""))
        return text[:LONGEST_SUMMARY]

    def _listed(self, message: Message, *, is_first: bool) -> Message:
        """Remember the tools of a list, and tell the model what it has to expect."""
        result = message.get("result")
        if not isinstance(result, dict) or not isinstance(result.get("tools"), list):
            return message
        tools = [
            tool
            for tool in result["tools"]
            if isinstance(tool, dict) and isinstance(tool.get("name"), str)
        ]
        self._definitions.take_page(tools, is_first=is_first)
        shown = [
            {
                **{name: part for name, part in tool.items() if name != "outputSchema"},
                "description": f"{tool.get('description') or ''}{NOTE}".strip(),
            }
            for tool in tools
        ]
        return {**message, "result": {**result, "tools": shown}}

    def _in_background(self, work: Awaitable[Any]) -> asyncio.Task[Any]:
        async def quietly() -> None:
            try:
                await work
            except CountersignError as error:
                logger.warning("Countersign did not hear of an outcome: %s", error)

        task = asyncio.create_task(quietly())
        self._later.add(task)
        task.add_done_callback(self._later.discard)
        return task
