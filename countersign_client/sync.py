"""The client for programs without an event loop."""

from __future__ import annotations

import builtins
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from datetime import timedelta
from types import TracebackType
from typing import Any, Literal, ParamSpec, TypeVar, overload

import httpx
from pydantic import BaseModel

from countersign_client import asking, connection
from countersign_client.binding import GatedCall
from countersign_client.engine import Engine, Fault, Pause, Reply, Steps
from countersign_client.requests import ExecutionMode, Request, Status
from countersign_client.runs import Run
from countersign_client.webhooks import seconds

P = ParamSpec("P")
R = TypeVar("R")
M = TypeVar("M", bound=BaseModel)
_T = TypeVar("_T")


class Countersign:
    """A client for programs without an event loop. Threads may share it.

        cs = Countersign()  # COUNTERSIGN_URL, COUNTERSIGN_KEY
        done = cs.approve("Delete 3 backups", key=f"clean-{day}", tool="backups.delete",
                          arguments={"ids": ids})
        with cs.execute(done) as run:  # starts once
            delete(**run.arguments)  # leaves: reports ran; raises: reports failed

    Each method raises `Unreachable` if the server does not answer within `patience`, and `ApiError`
    if it refuses: `KeyRefused`, `InvalidRequest`, or `Busy` after all retries.
    """

    _now = staticmethod(time.monotonic)
    _sleep = staticmethod(time.sleep)

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        patience: float | timedelta = 60,
        http: httpx.Client | None = None,
        source: str | None = None,
        user_agent: str | None = None,
    ) -> None:
        """Make a client; nothing is sent yet.

        Args:
            url: The address of the API; None: COUNTERSIGN_URL. https, but for loopback.
            key: The program's key; None: COUNTERSIGN_KEY, or the text of COUNTERSIGN_KEY_FILE.
            patience: Seconds that an unreachable server is tried within one call. A wait goes on
                over any outage.
            http: A client of httpx to use, for example with a proxy; redirects are not followed.
            source: The agent or part of the program that asks; shown small on the card.
            user_agent: What the program calls itself.

        Raises:
            CountersignError: Address or key is missing or malformed.
        """
        self._target = connection.target(url, key, user_agent)
        self._engine = Engine(patience=seconds(patience), now=self._now)
        self._given = http
        self._own: httpx.Client | None = None
        self._pid = os.getpid()
        self._source = {"agent": source} if source else {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._target.url!r})"

    def __enter__(self) -> Countersign:
        return self

    def __exit__(
        self,
        a: type[BaseException] | None,
        b: BaseException | None,
        c: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; a later call opens new ones. A given `http` stays open."""
        if self._own is not None:
            self._own.close()
            self._own = None

    def create(  # noqa: PLR0913 - a request has many parts, each of them optional
        self,
        title: str,
        *,
        key: str,
        kind: str = "approval",
        tool: str | None = None,
        arguments: Mapping[str, Any] | BaseModel | None = None,
        why: str | None = None,
        preview: str | Mapping[str, Any] | None = None,
        schema: Mapping[str, Any] | type[BaseModel] | None = None,
        options: Sequence[str | Mapping[str, str]] | None = None,
        multiple: bool = False,
        secret: Sequence[str] = (),
        tags: Sequence[str] = (),
        risk: str | None = None,
        execution: ExecutionMode = "once",
        run_timeout: float | timedelta = 900,
        channel: str | None = None,
        group: str | None = None,
        group_title: str | None = None,
        people: Sequence[str] = (),
        requested_for: str | None = None,
        expires_in: float | timedelta | None = None,
        repeat: Literal["same", "after_use"] = "same",
        callback_url: str | None = None,
        state: str | None = None,
        metadata: Mapping[str, str] | None = None,
        source: Mapping[str, str] | None = None,
    ) -> Request:
        """Ask, and return at once. Safe to call again with the same key: the same request.

        Args:
            title: What is asked: a verb and an object, one line, at most 150 characters.
            key: The program's own name for the request, 1 to 200 visible ASCII characters.
            kind: approval (yes or no), edit (yes, no, or yes with changes), question, choice, form.
            tool: The name that the policy judges; for approval and edit.
            arguments: What is about to run, all of it; for approval and edit.
            why: Why, in the program's words; at most 3,000 characters.
            preview: What will happen: text, or `format` (text, diff, table) and its content.
            schema: Of the arguments (edit) or of the answer (form): a model or a JSON Schema.
            options: The 2 to 20 answers of a choice.
            multiple: Whether several of them may be picked.
            secret: Paths, with dots, of arguments that no person is shown.
            tags: Claims about the call. They can make the policy stricter.
            risk: low, medium, high or critical. It can raise the policy's.
            execution: `once`: `start` works once. `idempotent`: it may be repeated, with the same
                execution id. `none`: there is no start.
            run_timeout: Seconds after the start until people are asked; at most a day.
            channel: Where to ask; None: the first channel of the key.
            group: Requests of one group stand in one thread.
            group_title: The first message of that thread, one line of at most 150 characters;
                None: the group's name.
            people: User ids and group ids that may answer, of those whom the policy names.
            requested_for: User id of the person whose wish this is; cannot approve it.
            expires_in: Seconds; None: what the policy says, which this can shorten.
            repeat: `same`: the key names one request for ever. `after_use`: when it is used up,
                the key makes a new one.
            callback_url: Gets the events of this request.
            state: Text that comes back unchanged; at most 8 KiB.
            metadata: Texts by name that come back, and by which requests are listed.
            source: framework, agent, run, call and url: where in the program it arose.

        Returns:
            The request. A rule may have decided it already.

        Raises:
            ValueError: The key is malformed, or something is no JSON data.
            TypeError: Something is no JSON data.
        """
        members = {k: v for k, v in locals().items() if k not in ("self", "title", "key")}
        members["source"] = {**self._source, **(source or {})}
        return self._run(
            self._engine.create(asking.idempotency_key(key), asking.body(title, **members))
        )

    def approve(
        self,
        title: str,
        *,
        key: str,
        tool: str,
        arguments: Mapping[str, Any] | BaseModel,
        wait: float | timedelta | None = None,
        **more: Any,
    ) -> Request:
        """Ask, and wait for a yes.

        Args:
            title: As `create`.
            key: As `create`.
            tool: As `create`.
            arguments: As `create`.
            wait: Seconds; None: as long as the request lives.
            more: The other arguments of `create`.

        Returns:
            The approved request.

        Raises:
            NotApproved: Each other end.
            StillPending: `wait` has passed. The request lives.
            DecisionLapsed: It has no start, and the decision may not be acted on any more.
            DigestMismatch: Something else was approved.
        """
        made = self.create(title, key=key, tool=tool, arguments=arguments, **more)
        done = self.wait(made, wait)
        done.check(tool, asking.plain(arguments) or {})
        return done

    def edit(
        self,
        title: str,
        *,
        key: str,
        tool: str,
        arguments: Mapping[str, Any] | BaseModel,
        schema: Mapping[str, Any] | type[BaseModel] | None = None,
        wait: float | timedelta | None = None,
        **more: Any,
    ) -> Request:
        """Ask, and wait for a yes; people may change arguments.

        Args:
            title: As `create`.
            key: As `create`.
            tool: As `create`.
            arguments: As `create`.
            schema: What the arguments must fit, also after a change; None: the model of
                `arguments`, if it is one.
            wait: Seconds; None: as long as the request lives.
            more: The other arguments of `create`.

        Returns:
            The approved request; `decision.arguments` were validated.

        Raises:
            NotApproved: Each other end.
            StillPending: `wait` has passed. The request lives.
            DecisionLapsed: As `approve`.
            DigestMismatch: Another tool was approved.
            InvalidRequest: The decided arguments do not fit.
        """
        form = asking.form_of(arguments, schema)
        made = self.create(
            title, key=key, kind="edit", tool=tool, arguments=arguments, schema=form, **more
        )
        return asking.edited(self.wait(made, wait), tool, form)

    @overload
    def ask(
        self,
        question: str,
        *,
        key: str,
        options: Sequence[str],
        multiple: Literal[False] = False,
        wait: float | timedelta | None = None,
        **more: Any,
    ) -> str: ...
    @overload
    def ask(
        self,
        question: str,
        *,
        key: str,
        options: Sequence[str],
        multiple: Literal[True],
        wait: float | timedelta | None = None,
        **more: Any,
    ) -> builtins.list[str]: ...
    @overload
    def ask(
        self,
        question: str,
        *,
        key: str,
        answer: type[M],
        wait: float | timedelta | None = None,
        **more: Any,
    ) -> M: ...
    @overload
    def ask(
        self, question: str, *, key: str, wait: float | timedelta | None = None, **more: Any
    ) -> str: ...
    def ask(
        self,
        question: str,
        *,
        key: str,
        answer: type[BaseModel] | None = None,
        wait: float | timedelta | None = None,
        **more: Any,
    ) -> Any:
        """Ask what only people know: free text, one of `options`, or a form made from a model.

            region = cs.ask("Which region first?", key=f"region-{run}", options=["eu", "us"])

        Args:
            question: What is asked, one line, at most 150 characters.
            key: As `create`.
            answer: The model of the answer.
            wait: Seconds; None: as long as the request lives.
            more: `options`, `multiple`, and other arguments of `create`.

        Returns:
            Text; the value of an option, or with `multiple` a list of them; or the model.

        Raises:
            NotApproved: Nobody answered: Expired, Cancelled, Failed.
            StillPending: `wait` has passed. The request lives.
            InvalidRequest: The answer does not fit the options or the model.
        """
        made = self.create(question, key=key, **asking.question(answer, more))
        return asking.answer(self.wait(made, wait), answer, more)

    def get(self, id: str) -> Request:  # noqa: A002 - the word of the API
        """Read a request.

        Args:
            id: `apr_` and 32 hexadecimal digits.
        """
        return self._run(self._engine.get(id))

    def find(self, key: str) -> Request | None:
        """Read the request of a key of this program, also after a restart of everything.

        Args:
            key: The idempotency key.

        Returns:
            The newest request of the key; None if none was made.
        """
        items, _ = self._run(self._engine.page((("key", key), ("limit", 1)), None))
        return items[0] if items else None

    def wait(self, request: Request | str, timeout: float | timedelta | None = None) -> Request:
        """Wait until a request is over, also over outages and restarts of the server.

        An interrupt of the program leaves the request as it is.

        Args:
            request: The request or its id.
            timeout: Seconds; None: as long as the request lives.

        Returns:
            The request, whatever its end.

        Raises:
            StillPending: `timeout` has passed; nothing is cancelled.
            Unreachable: The server was never seen within `patience`, or not until a minute after
                the request's end.
        """
        return self._run(self._engine.wait(request, None if timeout is None else seconds(timeout)))

    def updates(self, request: Request | str) -> Iterator[Request]:
        """Give the present state, and each visible change until it is over; states may be merged.

        Args:
            request: The request or its id.
        """
        known = self._run(self._engine.get(request))
        yield known
        while not known.is_over:
            known = self._run(self._engine.change(known))
            yield known

    def list(
        self,
        *,
        status: Sequence[Status] = (),
        group: str | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> Iterator[Request]:
        """Give the program's requests, newest first.

        Args:
            status: Only these; empty: all.
            group: Only those of this group.
            metadata: Only those that have all of these.
        """
        filters = asking.filters(status, group, metadata)
        items, cursor = self._run(self._engine.page(filters, None))
        while True:
            yield from (item for item in items if asking.has(item, metadata))
            if not cursor:
                return
            items, cursor = self._run(self._engine.page(filters, cursor))

    def cancel(self, request: Request | str, reason: str | None = None) -> Request:
        """Withdraw a pending request.

        Args:
            request: The request or its id.
            reason: Shown on the card; at most 500 characters.

        Returns:
            The cancelled request, also if it was cancelled before.

        Raises:
            ApiError: It is over in another way; the code is `not-pending`.
        """
        return self._run(self._engine.cancel(request, reason))

    def start(
        self,
        request: Request | str,
        *,
        tool: str,
        arguments: Mapping[str, Any],
        runner: str | None = None,
    ) -> Run:
        """Start an approved call: the last step before acting.

        The digest is made from these arguments, and the server compares it with the decision's.

        Args:
            request: The request or its id.
            tool: The tool that is about to run.
            arguments: All of its arguments.
            runner: Host, job or process, shown on the card; None: host and process id.

        Returns:
            The execution; use it in `with`, or report the end.

        Raises:
            NotStarted: AlreadyStarted, DecisionLapsed, Frozen, DigestMismatch, or another refusal.
        """
        known = self.get(request) if isinstance(request, str) else request
        name = runner or connection.runner_name()
        started = self._run(self._engine.start(known, tool, arguments, name))
        return self._made(known, dict(arguments), started)

    def execute(self, request: Request, *, runner: str | None = None) -> Run:
        """Start what was decided.

        Leaving `with` reports `ran`; an exception reports `failed` and goes on; KeyboardInterrupt
        and SystemExit report `unknown`. A report that cannot be sent within a minute is a warning
        in the log. A request without a start is read again, and must be usable.

        Args:
            request: An approved request.
            runner: As `start`.

        Raises:
            NotApproved: It is not approved.
            NotStarted: As `start`.
        """
        if request.execution.mode == "none":
            request = self.get(request.id)
            return self._made(request, request.approved().arguments or {}, None)
        decision = request.approved()
        return self.start(
            request,
            tool=decision.tool or "",
            arguments=decision.arguments or {},
            runner=runner,
        )

    def report(
        self,
        request: Request | str,
        outcome: Literal["running", "ran", "failed", "not_run", "unknown"],
        summary: str | None = None,
        *,
        token: str | None = None,
    ) -> Request:
        """Report what came of a started call, also after a restart of the program.

        Args:
            request: The request or its id.
            outcome: What happened. `unknown`: people are asked.
            summary: Shown on the card; at most 3,000 characters.
            token: Of the start. Without it the card says that the program told it afterwards.

        Returns:
            The request with its execution.
        """
        return self._run(self._engine.report(request, outcome, summary, token))

    def delivered(self, request: Request | str) -> Request:
        """Report that the result was handed to its caller: `repeat="after_use"` then asks anew.

        Args:
            request: The request or its id.

        Returns:
            The request.
        """
        return self._run(self._engine.delivered(request))

    def introspect(
        self,
        token: str,
        *,
        tool: str,
        request: str,
        arguments: Mapping[str, Any],
        consume: bool = True,
    ) -> bool:
        """Check a start, in the service that acts.

        Args:
            token: What the program handed over.
            tool: The tool that is about to run.
            request: The request's id.
            arguments: All of the tool's arguments.
            consume: Mark the token as used; a second call then gives False.

        Returns:
            Whether the start is real, for this call, and unused.
        """
        steps = self._engine.introspect(token, tool, request, arguments, consume=consume)
        return self._run(steps)

    def gate(self, **options: Any) -> Callable[[Callable[P, R]], Callable[P, R]]:
        """As `countersign_client.gate`, with this client.

        Args:
            options: The arguments of `countersign_client.gate`.
        """

        def decorator(function: Callable[P, R]) -> Callable[P, R]:
            return GatedCall(function, **options).synchronous(lambda: nullcontext(self))

        return decorator

    def _made(self, request: Request, arguments: dict[str, Any], started: Any) -> Run:
        def report(outcome: str, summary: str | None, token: str) -> Request:
            patience = 0.0 if outcome == "running" else None
            return self._run(
                self._engine.report(request, outcome, summary, token, patience=patience)
            )

        return Run(report, request, arguments, started)

    def _run(self, steps: Steps[_T]) -> _T:
        answer: Reply | Fault | None = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration as end:
                result: _T = end.value
                return result
            if isinstance(step, Pause):
                self._sleep(step.seconds)
                answer = None
                continue
            try:
                answer = connection.reply(self._http().request(**self._target.of(step)))
            except httpx.RequestError as error:
                answer = connection.fault(error)

    def _http(self) -> httpx.Client:
        if self._given is not None:
            return self._given
        pid = os.getpid()
        if self._own is None or pid != self._pid:  # a forked process has connections of its own
            self._own, self._pid = httpx.Client(limits=connection.LIMITS), pid
        return self._own
