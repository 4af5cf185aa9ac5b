"""Ask people about calls that a framework holds back, and read what they decided."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from countersign_client import asking
from countersign_client.asynchronous import AsyncCountersign
from countersign_client.requests import NotApproved, NotStarted, Request, StillPending
from countersign_client.schemas import faults, is_kept, simplified
from countersign_client.sentences import text_for_model


@dataclass(frozen=True)
class Asked:
    """A call or a question of a framework, as people are asked.

    Attributes:
        key: The idempotency key, see `key_of`.
        kind: approval, edit, question, choice or form.
        title: At most 150 characters.
        tool: None for a question that names none.
        arguments: JSON data; None for a question.
        schema: What edited arguments, or the answer of a form, must fit.
        options: Of a choice.
        why: The words of the model.
        source: What the card says about where it comes from.
    """

    key: str
    kind: str
    title: str
    tool: str | None = None
    arguments: dict[str, Any] | None = None
    schema: Mapping[str, Any] | None = None
    options: Sequence[str] | None = None
    why: str | None = None
    source: Mapping[str, str] = field(default_factory=dict)

    async def create(self, client: AsyncCountersign, more: Mapping[str, Any]) -> Request:
        """Ask, or find the request that was made with the same key.

        Args:
            client: The client.
            more: Further arguments of `AsyncCountersign.create`.
        """
        members: dict[str, Any] = {
            "kind": self.kind,
            "tool": self.tool,
            "arguments": self.arguments,
            "schema": self.schema,
            "options": self.options,
            "why": self.why and self.why[:3000],
            "source": {name: text[:120] for name, text in self.source.items() if text},
            "execution": "none" if self.is_call else "once",
        }
        return await client.create(self.title, key=self.key, **{**members, **more})

    @property
    def is_call(self) -> bool:
        """Whether people decide on a call; else they answer a question."""
        return self.kind in ("approval", "edit")

    def decided(self, done: Request) -> Any:
        """Give the arguments to run or, for a question, the answer; both are checked.

        Args:
            done: The request, over, and just read.

        Raises:
            NotApproved: People did not agree, or did not answer.
            NotStarted: The decision must not be used now, or is about another call.
            InvalidRequest: What people gave does not fit.
        """
        if not self.is_call:
            if self.kind != "form":
                return asking.answer(done, None, {"options": self.options})
            given = done.answered().answer
            if wrong := tuple(faults(given, self.schema or {})):
                raise asking.unfit("answer-does-not-fit", wrong)
            return given
        if self.kind == "approval":
            done.check(self.tool or "", self.arguments or {})
        return asking.edited(done, self.tool or "", self.schema).approved().arguments


def of_call(
    key: str, tool: str, arguments: dict[str, Any], schema: Any = None, *, edit: bool, **more: Any
) -> Asked:
    """Ask about a call; people may edit it if the form keeps all that the schema demands.

    Args:
        key: The idempotency key.
        tool: The tool's name.
        arguments: What the model gave.
        schema: JSON Schema of the arguments; None: not known.
        edit: Whether the framework takes edited arguments.
        more: `why` and `source`.
    """
    schema = None if schema is None else simplified(schema)
    is_editable = edit and (
        schema is None or (is_kept(schema) and not any(faults(arguments, schema)))
    )
    return Asked(
        key,
        "edit" if is_editable else "approval",
        asking.title_of_call(tool, arguments),
        tool,
        arguments,
        schema if is_editable else None,
        **more,
    )


def of_question(key: str, question: Any, options: Any = None, **more: Any) -> Asked:
    """Ask a question, with options if there are some.

    Args:
        key: The idempotency key.
        question: What the framework gave.
        options: Texts to choose from; anything else is no options.
        more: Further members of `Asked`.
    """
    text = " ".join(str(question).split())
    is_short = 0 < len(text) <= 150 and text.isprintable()
    is_choice = (
        isinstance(options, list | tuple)
        and 2 <= len(set(options)) == len(options) <= 20
        and all(isinstance(option, str) and 0 < len(option) <= 75 for option in options)
    )
    members: dict[str, Any] = {
        "kind": "choice" if is_choice else "question",
        "options": list(options) if is_choice else None,
        "why": None if is_short else str(question),
        **more,
    }
    return Asked(key, title=text if is_short else "The agent asks a question", **members)


async def over(
    client: AsyncCountersign, requests: Sequence[Request], wait: float | None
) -> list[Request]:
    """Wait until all are over, and read each again: an early decision may have lapsed since.

    Args:
        client: The client.
        requests: The requests of one round.
        wait: Seconds to wait for all of them; None: until they are over.

    Raises:
        StillPending: The wait ended before; nothing may be resumed.
    """
    waits = [asyncio.ensure_future(client.wait(request, wait)) for request in requests]
    try:
        states = await asyncio.gather(*waits)
    finally:
        for task in waits:
            task.cancel()
    for state in states:
        if not state.is_over:
            raise StillPending(state)
    return [await client.get(state.id) for state in states]


def refusal(error: NotApproved | NotStarted) -> str:
    """Say to a model why a call did not run; a request that is still pending is no answer.

    Args:
        error: What `Asked.decided` raised.

    Raises:
        StillPending: It is not over.
    """
    if isinstance(error, StillPending):
        raise error
    return text_for_model(error)


def key_of(prefix: str, *parts: str) -> str:
    """Make an idempotency key of names that may hold any character.

    Args:
        prefix: Taken as it is.
        parts: Each is quoted, so that no two lists of names give one key.

    Returns:
        A key of at most 200 characters.
    """
    key = "/".join([prefix, *(quote(part, safe="|:@+=,") for part in parts)])
    if len(key) <= 200:
        return key
    return f"{key[:130]}/{hashlib.sha256(key.encode()).hexdigest()}"
