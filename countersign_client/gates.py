"""`gate`: people before a function of a program."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Literal, ParamSpec, TypeVar, overload

from countersign_client.asynchronous import AsyncCountersign
from countersign_client.binding import GatedCall
from countersign_client.requests import ExecutionMode
from countersign_client.sync import Countersign

P = ParamSpec("P")
R = TypeVar("R")


@overload
def gate(function: Callable[P, R], /) -> Callable[P, R]: ...
@overload
def gate(
    function: None = None,
    *,
    tool: str | None = None,
    title: str | None = None,
    edit: bool = False,
    execution: ExecutionMode = "once",
    key: Callable[..., str] | str | None = None,
    why: Callable[..., str] | str | None = None,
    preview: Callable[..., str] | None = None,
    secret: Sequence[str] = (),
    wait: float | timedelta | None = None,
    on_reject: Literal["raise", "return"] = "raise",
    client: Countersign | AsyncCountersign | None = None,
    **request: Any,
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def gate(  # noqa: PLR0913 - each is one part of the request
    function: Callable[P, R] | None = None,
    *,
    tool: str | None = None,
    title: str | None = None,
    edit: bool = False,
    execution: ExecutionMode = "once",
    key: Callable[..., str] | str | None = None,
    why: Callable[..., str] | str | None = None,
    preview: Callable[..., str] | None = None,
    secret: Sequence[str] = (),
    wait: float | timedelta | None = None,
    on_reject: Literal["raise", "return"] = "raise",
    client: Countersign | AsyncCountersign | None = None,
    **request: Any,
) -> Any:
    """Put people before a function, sync or async.

    Its arguments are bound to names, validated by its annotations and become the request's
    arguments. It runs with the decided arguments, validated again, at most once, and its end is
    reported: not what it returns. Its exceptions pass through unchanged. A sync function blocks
    until people have decided, also in an event loop.

        @gate(tool="refund", title="Refund {amount} € to {customer}", key="refund-{order}")
        async def refund(order: str, customer: str, amount: float) -> str: ...

    Args:
        function: The function, if `gate` is used without brackets.
        tool: The name that the policy judges; None: the function's name.
        title: What is asked; {names} of arguments are filled in. None: the tool and its short
            arguments.
        edit: Whether people may change arguments; the schema is made from the signature.
        execution: As `Countersign.create`.
        key: What makes two calls the same. None: a new random key for each call, so that a
            restarted program asks again. A text with {names} of arguments, or a function of the
            arguments: a restarted program finds the request, and AlreadyStarted if it ran.
        why: A text with {names}, or a function of the arguments.
        preview: A function of the arguments that tells what will happen.
        secret: Names of arguments, or paths with dots, that no person is shown.
        wait: Seconds; None: as long as the request lives.
        on_reject: "return": the function returns NotApproved and does not raise it, for tools that
            hand `text_for_model` of it to a model.
        client: The client; None: one from the environment for each call.
        request: Other arguments of `Countersign.create`.

    Returns:
        The function behind the gate, or a decorator.

    Raises:
        TypeError: The function takes *args or **kwargs, is a generator, or has an argument that is
            no JSON; or the client is not of its kind.
        ValueError: A {name} is no argument of the function.
    """
    options = {**locals(), **request}
    for part in ("function", "client", "request"):
        del options[part]

    def decorate(wrapped: Callable[P, R]) -> Callable[P, R]:
        if client is not None:
            return client.gate(**options)(wrapped)  # type: ignore[arg-type, return-value]
        call = GatedCall(wrapped, **options)
        if inspect.iscoroutinefunction(wrapped):
            return call.asynchronous(AsyncCountersign)
        return call.synchronous(Countersign)

    return decorate if function is None else decorate(function)
