"""The operations of both clients, each a generator of steps; see `countersign_client.engine`."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import inf
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from countersign_client import asking
from countersign_client.canonical import digest
from countersign_client.connection import runner_name
from countersign_client.engine import Engine, Send, Steps
from countersign_client.errors import ApiError
from countersign_client.requests import ExecutionMode, Request, StillPending, not_started
from countersign_client.webhooks import seconds

LONGEST_SUMMARY = 3000
_CONFLICT = 409
_ID = re.compile("apr_[0-9a-f]{32}")


class Started(BaseModel):
    """An answer to a start."""

    model_config = ConfigDict(frozen=True, extra="allow")

    token: str
    execution_id: str
    generation: int
    deadline: datetime
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Begun:
    """An execution that has begun; `started` is None for a request that has no start."""

    request: Request
    arguments: dict[str, Any]
    started: Started | None


class _Page(BaseModel):
    items: tuple[Request, ...]
    next_cursor: str | None = None


class _Introspection(BaseModel):
    active: bool
    request: str | None = None


class Operations(Engine):
    """Create, wait for, start and report requests; the clients have methods of these names.

    Attributes:
        source: Where in the program its requests arise, unless a request says more.
    """

    source: Mapping[str, str] = {}

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
    ) -> Steps[Request]:
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
        members["source"] = {**self.source, **(source or {})}
        headers = {"Idempotency-Key": asking.idempotency_key(key)}
        send = _post("/v1/requests", asking.body(title, **members), headers)
        return (yield from self._asked(send, Request))

    def approve(
        self,
        /,
        title: str,
        *,
        key: str,
        tool: str,
        arguments: Mapping[str, Any] | BaseModel,
        wait: float | timedelta | None = None,
        **more: Any,
    ) -> Steps[Request]:
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
        made = yield from self.create(title, key=key, tool=tool, arguments=arguments, **more)
        done = yield from self.wait(made, wait)
        done.check(tool, asking.plain(arguments) or {})
        return done

    def edit(
        self,
        /,
        title: str,
        *,
        key: str,
        tool: str,
        arguments: Mapping[str, Any] | BaseModel,
        schema: Mapping[str, Any] | type[BaseModel] | None = None,
        wait: float | timedelta | None = None,
        **more: Any,
    ) -> Steps[Request]:
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
        made = yield from self.create(
            title, key=key, kind="edit", tool=tool, arguments=arguments, schema=form, **more
        )
        done = yield from self.wait(made, wait)
        return asking.edited(done, tool, form)

    def ask(
        self,
        question: str,
        *,
        key: str,
        answer: type[BaseModel] | None = None,
        wait: float | timedelta | None = None,
        **more: Any,
    ) -> Steps[Any]:
        """Ask what only people know; as `Countersign.ask`."""
        made = yield from self.create(question, key=key, **asking.question(answer, more))
        done = yield from self.wait(made, wait)
        return asking.answer(done, answer, more)

    def get(self, id: str) -> Steps[Request]:  # noqa: A002 - the word of the API
        """Read a request.

        Args:
            id: `apr_` and 32 hexadecimal digits.
        """
        _, request_id = _known(id)
        return (yield from self._asked(Send("GET", f"/v1/requests/{request_id}"), Request))

    def find(self, key: str) -> Steps[Request | None]:
        """Read the request of a key of this program, also after a restart of everything.

        Args:
            key: The idempotency key.

        Returns:
            The newest request of the key; None if none was made.
        """
        items, _ = yield from self.page((("key", key), ("limit", 1)), None)
        return items[0] if items else None

    def page(
        self, filters: tuple[tuple[str, str | int], ...], cursor: str | None
    ) -> Steps[tuple[tuple[Request, ...], str | None]]:
        """Read a page of requests, and the cursor of the next one."""
        params = (*filters, ("cursor", cursor)) if cursor else filters
        page = yield from self._asked(Send("GET", "/v1/requests", params), _Page)
        return page.items, page.next_cursor

    def wait(
        self, request: Request | str, timeout: float | timedelta | None = None
    ) -> Steps[Request]:
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
        until = inf if timeout is None else self._now() + seconds(timeout)
        known, request_id = _known(request)
        while True:
            known = yield from self._poll(request_id, known, until)
            if known.is_over:
                return known
            if self._now() >= min(until, self._deadline(known)):
                raise StillPending(known)

    def change(self, known: Request) -> Steps[Request]:
        """Poll until a request has changed."""
        while True:
            fresh = yield from self._poll(known.id, known, inf)
            if fresh.is_over or fresh.revision > known.revision:
                return fresh
            if self._now() >= self._deadline(known):
                raise StillPending(fresh)

    def cancel(self, request: Request | str, reason: str | None = None) -> Steps[Request]:
        """Withdraw a pending request.

        Args:
            request: The request or its id.
            reason: Shown on the card; at most 500 characters.

        Returns:
            The cancelled request, also if it was cancelled before.

        Raises:
            ApiError: It is over in another way; the code is `not-pending`.
        """
        _, request_id = _known(request)
        body = {} if reason is None else {"reason": reason}
        send = _post(f"/v1/requests/{request_id}/cancel", body)
        return (yield from self._asked(send, Request))

    def start(
        self,
        request: Request | str,
        tool: str,
        arguments: Mapping[str, Any],
        runner: str | None = None,
    ) -> Steps[Begun]:
        """Start an approved call; all tries are one attempt.

        Raises:
            NotStarted: The server refused it.
            Unreachable: No answer until the decision lapsed.
        """
        known = (yield from self.get(request)) if isinstance(request, str) else request
        body = {
            "digest": digest(known.id, tool, arguments),
            "attempt": secrets.token_urlsafe(24),
            "runner": (runner or runner_name())[:120],
        }
        send = _post(f"/v1/requests/{known.id}/start", body)
        try:
            started = yield from self._asked(send, Started, until=self._lapse(known))
        except ApiError as refusal:
            if refusal.status != _CONFLICT:
                raise
            present = yield from self.get(known.id)
            raise not_started(refusal.code, present, refusal.detail) from refusal
        return Begun(known, dict(arguments), started)

    def execute(self, request: Request, runner: str | None = None) -> Steps[Begun]:
        """Start what was decided; a request without a start is read again, and must be usable."""
        if request.execution.mode == "none":
            request = yield from self.get(request.id)
            return Begun(request, request.approved().arguments or {}, None)
        decision = request.approved()
        tool, arguments = decision.tool or "", decision.arguments or {}
        return (yield from self.start(request, tool, arguments, runner))

    def report(
        self,
        request: Request | str,
        outcome: Literal["running", "ran", "failed", "not_run", "unknown"],
        summary: str | None = None,
        *,
        token: str | None = None,
    ) -> Steps[Request]:
        """Report what came of a started call, also after a restart of the program.

        Args:
            request: The request or its id.
            outcome: What happened. `unknown`: people are asked.
            summary: Shown on the card; at most 3,000 characters.
            token: Of the start. Without it the card says that the program told it afterwards.

        Returns:
            The request with its execution.
        """
        return (yield from self.tell(request, outcome, summary, token))

    def tell(
        self,
        request: Request | str,
        outcome: str,
        summary: str | None,
        token: str | None,
        patience: float | None = None,
    ) -> Steps[Request]:
        """Report an outcome within a patience of so many seconds; None: that of the client."""
        _, request_id = _known(request)
        body: dict[str, Any] = {"outcome": outcome}
        if summary is not None:
            # A lone surrogate, as in the name of a file, is no JSON.
            body["summary"] = summary[:LONGEST_SUMMARY].encode(errors="replace").decode()
        if token:
            body["token"] = token
        send = _post(f"/v1/requests/{request_id}/result", body)
        until = None if patience is None else self._now() + patience
        return (yield from self._asked(send, Request, until=until))

    def delivered(self, request: Request | str) -> Steps[Request]:
        """Report that the result was handed to its caller: `repeat="after_use"` then asks anew.

        Args:
            request: The request or its id.

        Returns:
            The request.
        """
        _, request_id = _known(request)
        send = _post(f"/v1/requests/{request_id}/result", {"delivered": True})
        return (yield from self._asked(send, Request))

    def introspect(
        self,
        token: str,
        *,
        tool: str,
        request: str,
        arguments: Mapping[str, Any],
        consume: bool = True,
    ) -> Steps[bool]:
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
        body = {"token": token, "digest": digest(request, tool, arguments), "consume": consume}
        send = _post("/v1/executions/introspect", body)
        answer = yield from self._asked(send, _Introspection)
        return answer.active and answer.request == request


def _post(path: str, body: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Send:
    content = json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
    return Send("POST", path, (), headers or {}, content)


def _known(request: Request | str) -> tuple[Request | None, str]:
    known = None if isinstance(request, str) else request
    request_id = request if isinstance(request, str) else request.id
    if not _ID.fullmatch(request_id):
        raise ValueError("the id of a request is apr_ and 32 hexadecimal digits")
    return known, request_id
