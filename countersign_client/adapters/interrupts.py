"""The forms of LangGraph's interrupts: what each asks, and the answer that resumes it."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from countersign_client.adapters.decisions import Asked, of_call, of_question, refusal
from countersign_client.adapters.frameworks import AdapterError
from countersign_client.requests import NotApproved, NotStarted, Rejected, Request
from countersign_client.schemas import is_kept, simplified

_log = logging.getLogger("countersign_client")
_INBOX = {
    "allow_accept": "approve",
    "allow_edit": "edit",
    "allow_respond": "respond",
    "allow_ignore": "ignore",
}
"""Members of an Agent Inbox's config, and the same in the words of LangChain's middleware."""


@dataclass(frozen=True)
class _Action:
    """A call that waits: what may be answered is in `allowed`, in the middleware's words."""

    tool: str
    arguments: dict[str, Any]
    why: str | None
    allowed: Collection[str]
    schema: Any = None

    def __post_init__(self) -> None:
        if not {"approve", "respond"} & set(self.allowed):
            raise AdapterError(f"{self.tool}: the interrupt allows neither approve nor respond")
        if not {"reject", "respond", "ignore"} & set(self.allowed):
            raise AdapterError(f"{self.tool}: the interrupt allows no way to refuse")

    def asked(self, key: str, source: Mapping[str, str]) -> Asked:
        if "approve" not in self.allowed:
            question = self.arguments.get("question") or self.why or self.tool
            return of_question(key, question, self.arguments.get("options"), source=source)
        edit = "edit" in self.allowed
        more: dict[str, Any] = {"why": self.why, "source": source}
        return of_call(key, self.tool, self.arguments, self.schema, edit=edit, **more)

    def decision(self, asked: Asked, done: Request) -> dict[str, Any]:
        """Give the decision in the words of the middleware."""
        try:
            decided = asked.decided(done)
        except (NotApproved, NotStarted) as error:
            return self._refused(error)
        if not asked.is_call:
            return {"type": "respond", "message": decided}
        if decided == self.arguments:
            return {"type": "approve"}
        return {"type": "edit", "edited_action": {"name": self.tool, "args": decided}}

    def _refused(self, error: NotApproved | NotStarted) -> dict[str, Any]:
        """LangChain calls each `reject` a rejection by the user; a silence is none."""
        is_no = isinstance(error, Rejected)
        order = ("reject", "respond", "ignore") if is_no else ("ignore", "respond", "reject")
        kind = next(each for each in order if each in self.allowed)
        if kind == "reject" and not is_no:
            _log.warning("%s was not rejected, but the graph takes no other word", self.tool)
        return {"type": kind, "message": refusal(error)}


class Form:
    """The form of one interrupt: a question, and its one answer; see `form_of` for others."""

    def __init__(self, value: Any, schema: Any, tool: str | None) -> None:
        """Read the value of a plain interrupt.

        Args:
            value: A text, or a mapping with `question` and perhaps `options`; else it is shown.
            schema: What the answer must fit: a JSON Schema of an object; None: a text.
            tool: If there is one and the value is a mapping, people decide on a call of this tool
                with the value as its arguments.

        Raises:
            AdapterError: The answer must be something that people cannot give.
        """
        self._members: dict[str, Any] = {}
        if schema is not None:
            simple = simplified(schema)
            if simple.get("type") != "object" or not is_kept(simple):
                raise AdapterError(
                    "response_schema: people fill in objects of simple members; this one is "
                    f"{json.dumps(schema)[:200]}"
                )
            self._members = {"kind": "form", "schema": simple}
        given = value if isinstance(value, Mapping) else {}
        shown = value if isinstance(value, str) else json.dumps(value, default=str)
        self._call = (tool, dict(given)) if tool and given and schema is None else None
        self._question = given.get("question") or shown
        self._options = None if schema is not None else given.get("options")

    @property
    def count(self) -> int:
        """How many requests it takes."""
        return 1

    def asked(self, key: str, position: int, source: Mapping[str, str]) -> Asked:
        """Give what people are asked.

        Args:
            key: The idempotency key.
            position: From 0, below `count`.
            source: What the card says about where it comes from.
        """
        del position
        if self._call:
            return of_call(key, *self._call, edit=True, source=source)
        return of_question(key, self._question, self._options, source=source, **self._members)

    def answer(self, ended: Sequence[tuple[Asked, Request]]) -> Any:
        """Give what resumes the interrupt; of a plain call, the arguments to run.

        Args:
            ended: What was asked and how it ended, by position.

        Raises:
            NotApproved: People did not answer a plain interrupt, or did not agree.
            NotStarted: The decision about a plain call must not be used now.
            InvalidRequest: What people gave does not fit.
        """
        ((asked, done),) = ended
        return asked.decided(done)


class _Review(Form):
    """Calls of LangChain's middleware, or of an Agent Inbox; the answer has as many decisions."""

    def __init__(
        self, actions: Sequence[_Action], wrapped: Callable[[list[dict[str, Any]]], Any]
    ) -> None:
        if not actions:
            raise AdapterError("The interrupt names no call")
        self._actions = actions
        self._wrapped = wrapped

    @property
    def count(self) -> int:
        return len(self._actions)

    def asked(self, key: str, position: int, source: Mapping[str, str]) -> Asked:
        return self._actions[position].asked(key, source)

    def answer(self, ended: Sequence[tuple[Asked, Request]]) -> Any:
        both = zip(self._actions, ended, strict=True)
        return self._wrapped([action.decision(asked, done) for action, (asked, done) in both])


def form_of(value: Any, schema: Any, tool: str | Callable[[Any], str] | None) -> Form:
    """Tell the forms of interrupts apart.

    Args:
        value: The interrupt's value.
        schema: Its `response_schema`, JSON Schema.
        tool: Names the tool of a plain interrupt; a function gets the value.

    Raises:
        AdapterError: It looks like a form of LangChain, and is not of its shape.
    """
    try:
        if isinstance(value, Mapping) and "action_requests" in value:
            return _Review(_batched(value), lambda given: {"decisions": given})
        if isinstance(value, Mapping) and value.get("type") == "tool_approval":
            return _Review([_per_call(value, schema)], lambda given: given[0])
        if isinstance(value, list | tuple) and value and _is_inbox(value[0]):
            return _Review(
                [_inbox(each) for each in value], lambda given: [_human(g) for g in given]
            )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise AdapterError(f"The interrupt is of no known form: {error!r}") from None
    return Form(value, schema, tool(value) if callable(tool) else tool)


def _is_inbox(value: Any) -> bool:
    return isinstance(value, Mapping) and "action_request" in value


def _batched(value: Mapping[str, Any]) -> list[_Action]:
    both = zip(value["action_requests"], value["review_configs"], strict=True)
    actions = []
    for request, config in both:
        if request["name"] != config["action_name"]:
            raise ValueError("action_requests and review_configs name other tools")
        allowed = config["allowed_decisions"]
        actions.append(
            _Action(request["name"], dict(request["args"]), request.get("description"), allowed)
        )
    return actions


def _per_call(value: Mapping[str, Any], schema: Any) -> _Action:
    branches = [_resolved(branch, schema) for branch in schema.get("oneOf", [schema])]
    by_type = {branch["properties"]["type"]["const"]: branch for branch in branches}
    arguments = None
    if "edit" in by_type:
        edited = _resolved(by_type["edit"]["properties"]["edited_action"], schema)
        arguments = _resolved(edited["properties"]["args"], schema)
        used = {
            name: part
            for name, part in schema.get("$defs", {}).items()
            if name in _named(arguments, schema)
        }
        arguments = {**arguments, "$defs": used} if used else arguments
    return _Action(
        value["name"], dict(value["args"]), value.get("description"), tuple(by_type), arguments
    )


def _resolved(part: Any, root: Any) -> Any:
    if "$ref" in part:
        return root["$defs"][part["$ref"].removeprefix("#/$defs/")]
    return part


def _named(part: Any, root: Any) -> set[str]:
    """Names of the definitions that a part of a schema refers to, also through others."""
    names: set[str] = set()
    left = [part]
    while left:
        each = left.pop()
        name = each.get("$ref", "").removeprefix("#/$defs/") if isinstance(each, dict) else ""
        if name and name not in names:
            names.add(name)
            left.append(root["$defs"][name])
        left += each.values() if isinstance(each, dict) else each if isinstance(each, list) else []
    return names


def _inbox(value: Mapping[str, Any]) -> _Action:
    request, config = value["action_request"], value["config"]
    allowed = [word for name, word in _INBOX.items() if config.get(name)]
    return _Action(request["action"], dict(request["args"]), value.get("description"), allowed)


def _human(decision: Mapping[str, Any]) -> dict[str, Any]:
    """Write a decision in the words of an Agent Inbox."""
    if decision["type"] == "edit":
        edited = decision["edited_action"]
        return {"type": "edit", "args": {"action": edited["name"], "args": edited["args"]}}
    if decision["type"] == "respond":
        return {"type": "response", "args": decision["message"]}
    return {"type": "accept" if decision["type"] == "approve" else "ignore", "args": None}
