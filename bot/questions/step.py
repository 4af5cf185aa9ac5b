"""Approval of a step of a graph or an agent: approve, reject, or edit its state."""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from typing import TypeGuard, cast

from agents.core.address import Address
from agents.core.codec import Json, encode
from agents.graph.commands import StateUpdate
from agents.graph.nodes.questions import Question
from agents.prebuilt.stages import StageInfo, StageResult
from bot.questions.base import QuestionDraft
from bot.questions.call import CallQuestion
from bot.questions.drawing import register
from bot.questions.form import AnswerForm, Form, in_order
from bot.questions.values import object_schema, readable, step_of
from bot.records.approval import Decision, Kind, Status
from bot.words import say

_KINDS = {bool: "boolean", int: "integer", float: "number", str: "string"}


@register
class StepQuestion(CallQuestion):
    """Asks whether to go on at a breakpoint of a graph, or a stage of an agent."""

    form = Form.STEP

    @classmethod
    def read(cls, info: object) -> QuestionDraft | None:
        """Read the info of a breakpoint, or of an agent's stage."""
        if isinstance(info, StageInfo):
            return _of_stage(info)
        is_breakpoint = isinstance(info, Question) and info.kind != "node"
        return _of_breakpoint(cast("Question", info)) if is_breakpoint else None

    def takes(self, decision: Decision) -> bool:
        """Accept a refusal, or an approval. Only a state with a form can be edited."""
        if not super().takes(decision):
            return False
        before, after = self.arguments, decision.arguments
        if after is None:
            return True
        names = set(self.ask.names)
        return set(after) <= set(before) | names and all(
            name in after and in_order(after[name]) == in_order(before[name])
            for name in set(before) - names
        )

    def answer(self, info: object) -> object:
        """Return whether to go on, with the edited state if there is one."""
        decision = self.decision
        is_yes = decision.status is Status.APPROVED
        if isinstance(info, StageInfo):
            return StageResult(
                proceed=is_yes,
                reason=None if is_yes else self.reason,
                digest=decision.digest,
                by=decision.by,
            )
        is_edited = is_yes and self._edited is not None
        return StateUpdate(self._changes()) if is_edited else self.verdict()

    def form_values(self) -> dict[str, object]:
        """Return the part of the state that people can edit."""
        known = self.arguments
        return {name: known[name] for name in self.ask.names if name in known}

    def lets_run(self, address: str) -> bool:
        """Whether approval runs an address: the interrupt's own, or the node after a breakpoint."""
        if super().lets_run(address):
            return True
        here = Address.parse(address)
        node = here.segments[-1]
        return str(here.parent) == self.approval.address and (
            node.type == "node" and self.approval.rule == f"before {node.id}"
        )

    def edited_title(self, decision: Decision) -> str:  # noqa: ARG002 - it names the step
        """Return the unchanged title, because it names the step and not the state."""
        return self.approval.title

    @property
    def _edited(self) -> dict[str, Json] | None:
        """The approved state, if a person edited it; else None."""
        if self.decision.arguments is not None:
            return self.decision.arguments
        return self.arguments if self.approval.edits.original is not None else None

    def _changes(self) -> dict[str, object]:
        original = self.approval.edits.original
        before = self.arguments if original is None else original
        return {
            name: deepcopy(value)
            for name, value in (self._edited or {}).items()
            if name not in before or json.dumps(before[name]) != json.dumps(value)
        }


def _of_stage(info: StageInfo) -> QuestionDraft:
    what = "think" if info.stage == "agent" else "tools"
    return QuestionDraft(
        kind=Kind.APPROVAL,
        title=say(f"card.{info.when}_{what}", agent=info.agent_name),
        arguments={"calls": [dict(call) for call in info.calls]} if info.calls else {},
        ask=AnswerForm(form=Form.STEP, label=say("card.wants")),
        why=info.said,
        digest=info.digest,
        is_vague=True,
    )


def _of_breakpoint(info: Question) -> QuestionDraft:
    state = {name: readable(encode(value)) for name, value in (info.state or {}).items()}
    return QuestionDraft(
        kind=Kind.APPROVAL,
        title=say(f"card.go_on_{info.kind}", node=info.node),
        arguments={**state, **_sends(info, state)},
        ask=AnswerForm(form=Form.STEP, label=say("card.state"), schema=_state_schema(info)),
        rule=f"{info.kind} {info.node}",
        preview=step_of(info),
        is_vague=True,
    )


def _sends(info: Question, state: Mapping[str, Json]) -> dict[str, Json]:
    """Return the nodes that run with own arguments; after an edit, the graph finds them again."""
    by_name: dict[str, Json] = {}
    for at, send in enumerate(info.sends, 1):
        which = f" ({at} of {len(info.sends)})" if len(info.sends) > 1 else ""
        name = f"“{send.node}” gets, unless edited{which}"
        while name in state:
            name = f"{name} "
        by_name[name] = readable(encode(send.arg))
    return by_name


def _state_schema(info: Question) -> dict[str, Json] | None:
    """Return the JSON schema of the editable part of a state: the plain JSON data.

    The graph's own schema of a key comes first. Without one, the type of the present value counts.
    """
    state = info.state or {}
    plain = {name: encode(value) for name, value in state.items() if _is_plain(value)}
    if not plain:
        return None
    known = info.state_schema or {}
    return object_schema({name: known.get(name) or _kind(value) for name, value in plain.items()})


def _kind(value: Json) -> Json:
    if type(value) in _KINDS:
        return {"type": _KINDS[type(value)]}
    if isinstance(value, list):
        texts = value and all(isinstance(entry, str) for entry in value)
        return {"type": "array", **({"items": {"type": "string"}} if texts else {})}
    return {"type": "object"} if isinstance(value, dict) else {}


def _is_plain(value: object) -> TypeGuard[Json]:
    """Whether a value is JSON data that is stored as it is."""
    match value:
        case None | bool() | int() | float() | str():
            return encode(cast("object", value)) == value
        case list():
            return all(_is_plain(item) for item in value)
        case dict():
            return "$type" not in value and all(_is_plain(item) for item in value.values())
        case _:
            return False
