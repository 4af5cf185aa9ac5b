"""Pydantic AI: calls that need approval, and calls that ask a question.

Decisions of people become `DeferredToolResults`. Extra: `countersign-client[pydantic-ai]`.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Any, Union, get_args, get_origin

from countersign_client.adapters.decisions import (
    Asked,
    key_of,
    of_call,
    of_question,
    over,
    refusal,
)
from countersign_client.adapters.frameworks import AdapterError, framework
from countersign_client.asynchronous import AsyncCountersign
from countersign_client.requests import NotApproved, NotStarted, Request, StillPending

_ai: Any = framework("pydantic_ai", "pydantic-ai-slim", "pydantic-ai", "2.60", "3")


class RunPending(StillPending):
    """People have not decided within `wait`. Give both members to a later `run`.

    Attributes:
        history: The messages so far; `pydantic_ai.ModelMessagesTypeAdapter` makes JSON of them.
        pending: The calls that wait, `pydantic_ai.DeferredToolRequests`.
    """

    def __init__(self, request: Request, history: Any, pending: Any) -> None:
        super().__init__(request)
        self.history = history
        self.pending = pending


async def run(  # noqa: PLR0913 - the arguments of `agent.run`, and those of the client
    agent: Any,
    prompt: str | None = None,
    *,
    client: AsyncCountersign,
    key: str,
    message_history: Any = None,
    pending: Any = None,
    wait: float | None = None,
    **kwargs: Any,
) -> Any:
    """Run an agent, and ask people about its deferred calls, until it has an answer.

        result = await run(agent, "Close account 7", client=AsyncCountersign(), key=f"chat-{id}")
        print(result.output)

    Args:
        agent: An agent with DeferredToolRequests among its output types.
        prompt: What the user says; None to go on from a history.
        client: The client.
        key: Names the run. With the id of a call it is the idempotency key, `{key}/{id}`.
        message_history: As `agent.run`.
        pending: `RunPending.pending` of an earlier run, with its history and no prompt.
        wait: Seconds to wait for people in each round; None: until they have decided.
        kwargs: As `agent.run`.

    Returns:
        The result of the last `agent.run`. Pydantic AI runs a round again that is given twice: drop
        a stored one as soon as it is given to `run`.

    Raises:
        AdapterError: The output types lack DeferredToolRequests, or a call is for another system.
        RunPending: People have not decided within `wait`; no call of the round was answered.
    """
    if not _defers(kwargs.get("output_type") or agent.output_type):
        raise AdapterError("Add DeferredToolRequests to the agent's output_type; nothing ran")
    if pending is None:
        result = await agent.run(prompt, message_history=message_history, **kwargs)
        pending, message_history = result.output, result.all_messages()
    elif prompt is None and message_history and isinstance(pending, _ai.DeferredToolRequests):
        result = None
    else:
        raise AdapterError("pending: give it with its message_history and without a prompt")
    while isinstance(pending, _ai.DeferredToolRequests):
        _check(pending)
        try:
            results = await _answers(client, key, pending, wait)
        except StillPending as error:
            raise RunPending(error.request, message_history, pending) from None
        result = await agent.run(
            message_history=message_history, deferred_tool_results=results, **kwargs
        )
        pending, message_history = result.output, result.all_messages()
    return result


class CountersignApprovals:
    """A handler that asks people and waits within the run; this process must live.

    Agent(..., capabilities=[HandleDeferredToolCalls(CountersignApprovals(client, key="chat-7"))])
    """

    def __init__(self, client: AsyncCountersign, *, key: str, wait: float | None = None) -> None:
        """Make a handler; nothing is asked yet.

        Args:
            client: The client.
            key: Names the run, as in `run`.
            wait: Seconds to wait for people; then the calls become the run's output.
        """
        self._client = client
        self._key = key
        self._wait = wait

    async def __call__(self, _: Any, requests: Any) -> Any:
        """Answer approvals and questions; None if there is none, or people did not decide.

        Args:
            _: The context of the run, which is not needed.
            requests: The deferred calls.
        """
        try:
            return await _answers(self._client, self._key, requests, self._wait)
        except StillPending:
            return None


async def _answers(client: AsyncCountersign, key: str, pending: Any, wait: float | None) -> Any:
    """Ask about all calls of a turn, by their ids, and build the results once all are over."""
    asked = {
        **{call.tool_call_id: _call(key, call) for call in pending.approvals},
        **{
            call.tool_call_id: _question(key, call, pending.metadata.get(call.tool_call_id))
            for call in pending.calls
            if _is_question(pending, call)
        },
    }
    if not asked:
        return None
    made = [await each.create(client, {}) for each in asked.values()]
    done = await over(client, made, wait)
    approvals: dict[str, Any] = {}
    calls: dict[str, Any] = {}
    for (id_, each), request in zip(asked.items(), done, strict=True):
        (approvals if each.is_call else calls)[id_] = _result(each, request)
    return pending.build_results(approvals=approvals, calls=calls)


def _result(asked: Asked, done: Request) -> Any:
    try:
        decided = asked.decided(done)
    except (NotApproved, NotStarted) as error:
        text = refusal(error)
        return _ai.ToolDenied(text) if asked.is_call else text
    if not asked.is_call:
        return decided
    return _ai.ToolApproved(override_args=None if decided == asked.arguments else decided)


def _call(key: str, call: Any) -> Asked:
    return of_call(
        key_of(key, call.tool_call_id),
        call.tool_name,
        _arguments(call),
        edit=True,
        source={"framework": "pydantic-ai", "call": call.tool_call_id},
    )


def _question(key: str, call: Any, metadata: Mapping[str, Any] | None) -> Asked:
    arguments = {**_arguments(call), **(metadata or {})}
    return of_question(
        key_of(key, call.tool_call_id),
        arguments.get("question") or f"{call.tool_name}: {call.args_as_json_str()}",
        arguments.get("options"),
        source={"framework": "pydantic-ai", "call": call.tool_call_id},
    )


def _arguments(call: Any) -> dict[str, Any]:
    try:
        arguments: dict[str, Any] = call.args_as_dict(raise_if_invalid=True)
    except (ValueError, AssertionError):
        raise AdapterError(f"{call.tool_name}: the arguments are no JSON object") from None
    return arguments


def _is_question(pending: Any, call: Any) -> bool:
    return bool(pending.kind(call.tool_call_id) == "question")


def _check(pending: Any) -> None:
    external = [call.tool_name for call in pending.calls if not _is_question(pending, call)]
    if external:
        raise AdapterError(
            f"{', '.join(external)}: deferred for another system, and no question to people "
            '(CallDeferred(kind="question")); answer these calls with agent.run'
        )


def _defers(output: Any) -> bool:
    """Whether DeferredToolRequests is among output types: one, a list, or a union."""
    if isinstance(output, list | tuple):
        return any(_defers(each) for each in output)
    if get_origin(output) in (Union, types.UnionType):
        return any(_defers(each) for each in get_args(output))
    return output is _ai.DeferredToolRequests
