"""OpenAI Agents SDK: interruptions of a run. Its package is called `agents`, as the bot's own.

So a program that uses this module cannot have the distribution `countersign-bot` beside it. Extra:
`countersign-client[openai-agents]`.
"""

from __future__ import annotations

from typing import Any, Protocol

from countersign_client.adapters.decisions import Asked, key_of, of_call, over, refusal
from countersign_client.adapters.frameworks import AdapterError, UnsupportedVersion, framework
from countersign_client.asynchronous import AsyncCountersign
from countersign_client.canonical import strict_json
from countersign_client.requests import NotApproved, NotStarted, Request

_sdk: Any = framework("agents", "openai-agents", "openai-agents", "0.20", "1")
if not hasattr(_sdk, "RunState"):
    raise UnsupportedVersion(f"{_sdk.__file__} hides the package `agents` of openai-agents")


class SnapshotStore(Protocol):
    """Keeps the snapshot of a run that waits. A snapshot has no seal: keep it to yourself."""

    def load(self, key: str) -> str | None:
        """Give the snapshot; None if there is none."""

    def save(self, key: str, text: str) -> None:
        """Keep a snapshot in place of an older one."""

    def delete(self, key: str) -> None:
        """Forget the snapshot, if there is one."""


async def run(
    agent: Any,
    input: Any,  # noqa: A002 - the SDK's word
    *,
    client: AsyncCountersign,
    key: str,
    store: SnapshotStore | None = None,
    wait: float | None = None,
    **kwargs: Any,
) -> Any:
    """Run an agent, and ask people about its interruptions, until there are none.

        result = await run(agent, "Pay invoice 4711", client=client, key="invoice-4711")
        print(result.final_output)

    The SDK takes no edited arguments: people approve or reject. A snapshot is used once: it is
    deleted before the run goes on, so that a crash after that runs no call twice.

    Args:
        agent: The agent.
        input: As `Runner.run`; ignored if the store has a snapshot of this run.
        client: The client.
        key: Names the run. With the id of a call it is the idempotency key, `{key}/{id}`.
        store: Keeps the run while people decide, so that a restarted program goes on from there.
        wait: Seconds to wait for people in each round; None: until they have decided.
        kwargs: As `Runner.run`.

    Returns:
        The result of the last `Runner.run`.

    Raises:
        AdapterError: The snapshot does not fit the agent or the SDK, or a call has no arguments
            that can be shown. Nothing was resumed.
        StillPending: People have not decided within `wait`; the store has the run.
    """
    text = store.load(key) if store is not None else None
    result, state = None, None
    if text is None:
        result = await _sdk.Runner.run(agent, input, **kwargs)
    else:
        state = await _loaded(agent, text)
    while result is None or result.interruptions:
        if result is not None:
            state = result.to_state()
        await _decide(client, key, state, store, wait)
        result = await _sdk.Runner.run(agent, state, **kwargs)
    return result


async def _loaded(agent: Any, text: str) -> Any:
    try:
        state = await _sdk.RunState.from_string(agent, text)
    except (_sdk.AgentsException, ValueError, KeyError, TypeError) as error:
        raise AdapterError(f"The snapshot fits another agent or SDK: {error}") from error
    if not state.get_interruptions():
        raise AdapterError("The snapshot is of a run that waits for nobody")
    return state


async def _decide(
    client: AsyncCountersign, key: str, state: Any, store: SnapshotStore | None, wait: float | None
) -> None:
    """Ask about all interruptions, and put each decision into the state."""
    items = state.get_interruptions()
    asked = [_asked(key, item) for item in items]
    if store is not None:
        store.save(key, state.to_string())  # before there is a decision in it
    made = [await each.create(client, {}) for each in asked]
    done = await over(client, made, wait)
    if store is not None:
        store.delete(key)
    for item, each, request in zip(items, asked, done, strict=True):
        _put(state, item, each, request)


def _put(state: Any, item: Any, asked: Asked, done: Request) -> None:
    try:
        asked.decided(done)
    except (NotApproved, NotStarted) as error:
        state.reject(item, rejection_message=refusal(error))
    else:
        state.approve(item)


def _asked(key: str, item: Any) -> Asked:
    tool = item.qualified_name or item.name
    try:
        arguments = strict_json(item.arguments or "{}")
    except ValueError as error:
        raise AdapterError(f"{tool}: the arguments are no JSON ({error})") from None
    if not item.call_id or not isinstance(arguments, dict):
        raise AdapterError(f"{tool}: the call has no id, or its arguments are no JSON object")
    source = {"framework": "openai-agents", "agent": item.agent.name, "call": item.call_id}
    return of_call(key_of(key, item.call_id), tool, arguments, edit=False, source=source)
