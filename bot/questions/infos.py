"""What people are shown of an interrupt, and how they answer it: one reading for each info.

An info that is not known here is a question, which a text answers when the info takes one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeGuard, cast

from agents import (
    ApprovalInfo,
    ApprovalResult,
    DoubtInfo,
    FollowUpInfo,
    InterruptContext,
    ReviewEditInfo,
    call_digest,
)
from agents.core.cancel import CancelInfo
from agents.core.codec import Json, encode
from agents.core.errors import ResumeDataError
from agents.core.infos import CallInfo
from agents.core.pending import Answerable
from agents.gates.human import HumanInterrupt
from agents.gates.questions import CallChoiceInfo, Choice, ChoiceInfo, FeedbackInfo, ParametersInfo
from agents.graph.nodes.questions import Question
from agents.graph.state.shapes import schema_of
from agents.prebuilt.stages import StageInfo
from bot.questions.form import Ask, Form, Option
from storage.records import Kind

_VERDICT = schema_of(ApprovalResult)
"""A node that wants this answer asks for approval, and not for something to know."""
_FIELD = "answer"
_MOST_ERROR = 300
_DESCRIBED = "Tool execution requires approval\n\nTool: "
"""How the description begins that a human gate makes when its author gave none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What differs between the infos.

    Attributes:
        kind: What it asks of people.
        title: Verb and object, in words.
        arguments: What is shown, JSON data; of a call, its arguments.
        ask: How it is answered.
        tool: See `Approval.tool`.
        why: See `Approval.why`.
        preview: See `Approval.preview`.
        rule: See `Approval.rule`.
        digest: What the runtime will compare; empty when it compares nothing.
    """

    kind: Kind
    title: str
    arguments: dict[str, object]
    ask: Ask
    tool: str = ""
    why: str = ""
    preview: str = ""
    rule: str = ""
    digest: str = ""

    def digest_at(self, checkpoint_id: str, address: str) -> str:
        """What a decision is bound to: what the runtime compares, or a digest of what is shown."""
        return self.digest or call_digest(
            thread=checkpoint_id,
            address=address,
            tool=self.tool,
            arguments=self.arguments,
            rule=self.rule,
        )


def asks_people(context: InterruptContext) -> bool:
    """Whether an interrupt waits for people; where a run was stopped, nobody is asked."""
    return not isinstance(context.info, CancelInfo)


def shown_of(info: object) -> Shown:
    """Read an info."""
    match info:
        case CallInfo():
            shown = _of_call(info)
        case DoubtInfo():
            shown = _of_doubt(info)
        case FollowUpInfo():
            shown = _of_texts([str(question) for question in info.questions])
        case FeedbackInfo():
            shown = _of_feedback(info)
        case ChoiceInfo():
            shown = _of_choice(info)
        case Question():
            shown = _of_graph(info)
        case StageInfo():
            shown = _of_stage(info)
        case _:
            shown = _of_unknown(info)
    return shown


def kind_of(context: InterruptContext, shown: Shown) -> Kind:
    """What an interrupt asks of people.

    Who fills in what is missing need not be an approver, unless others have approved the call
    before: then it is theirs, too, or the values would be nobody's.
    """
    if not isinstance(context.info, ParametersInfo):
        return shown.kind
    outer = context.parent
    while outer is not None and outer.address == context.address:
        if isinstance(outer.info, CallInfo) and not isinstance(outer.info, ParametersInfo):
            return Kind.APPROVAL
        outer = outer.parent
    return shown.kind


def _of_call(info: CallInfo) -> Shown:
    shown = Shown(
        kind=Kind.APPROVAL,
        title=info.title or f"Run {info.tool_name}",
        arguments=dict(info.arguments),
        ask=Ask(form=Form.CALL, reason=info.reason, secret=info.secret, shown=info.shown),
        tool=info.tool_name,
        why=info.why or "",
        preview=info.preview or "",
        rule=info.rule,
        digest=info.digest,
    )
    match info:
        case ApprovalInfo():
            return shown
        case ReviewEditInfo():
            return replace(shown, ask=replace(shown.ask, schema=dict(info.schema)))
        case HumanInterrupt():
            return _of_human(info, shown)
        case CallChoiceInfo():
            choice = _choice(info.question, info.options, multiple=info.multiple)
            ask = replace(
                choice,
                reason=info.reason,
                parameter=info.parameter,
                secret=info.secret,
                shown=info.shown,
            )
            return replace(shown, ask=ask)
        case ParametersInfo():
            ask = replace(shown.ask, form=Form.FIELDS, schema=_object_of(info.missing))
            return replace(shown, kind=Kind.QUESTION, ask=ask)
        case _:
            # A gate of somebody's own: nothing runs by a guess at what it takes.
            ask = replace(shown.ask, form=Form.PROGRAM, reason="", program=_only_programs(info))
            return replace(shown, ask=ask)


def _of_doubt(info: DoubtInfo) -> Shown:
    return Shown(
        kind=Kind.DOUBT,
        title=info.title or f"Did {info.tool_name} run?",
        arguments=dict(info.arguments),
        ask=Ask(form=Form.CALL, secret=info.secret, shown=info.shown),
        tool=info.tool_name,
    )


def _of_feedback(info: FeedbackInfo) -> Shown:
    return Shown(
        kind=Kind.QUESTION,
        title="Review this text",
        arguments={"content": info.original_content},
        ask=Ask(form=Form.FEEDBACK),
    )


def _of_human(info: HumanInterrupt, shown: Shown) -> Shown:
    told = "" if info.description.startswith(_DESCRIBED) else info.description
    ask = replace(
        shown.ask,
        form=Form.HUMAN,
        allowed=info.allowed,
        schema=dict(info.schema) if "edit" in info.allowed else None,
    )
    preview = "\n\n".join(text for text in (told, info.preview) if text)
    return replace(shown, ask=ask, preview=preview)


def _of_choice(info: ChoiceInfo) -> Shown:
    ask = _choice(info.question, info.options, multiple=info.multiple)
    listed = [[option.id, option.label, option.description] for option in info.options]
    return Shown(
        kind=Kind.QUESTION,
        title="A choice for you",
        arguments={"question": info.question, "options": listed, "multiple": info.multiple},
        ask=ask,
    )


def _choice(question: str, options: Sequence[Choice], *, multiple: bool) -> Ask:
    return Ask(
        form=Form.CHOICE,
        question=question,
        options=tuple(
            Option(
                id=option.id,
                label=option.label,
                description=option.description,
                value=option.id if option.value is None else option.value,
            )
            for option in options
        ),
        multiple=multiple,
        can_decline=True,
    )


def _of_graph(info: Question) -> Shown:
    if info.kind != "node":
        return _of_breakpoint(info)
    asked = _of_value(info.value)
    if info.schema is None:
        return asked
    if info.schema == _VERDICT:
        return replace(
            asked,
            kind=Kind.APPROVAL,
            title=f"Step “{info.node}” asks for approval",
            ask=Ask(form=Form.CALL, label="What it asks"),
        )
    questions = cast("list[str]", asked.arguments["questions"])
    return replace(asked, ask=_typed(info.schema, questions[0]))


def _of_breakpoint(info: Question) -> Shown:
    state = {name: _readable(encode(value)) for name, value in (info.state or {}).items()}
    return Shown(
        kind=Kind.APPROVAL,
        title=f"The graph stopped {info.kind} “{info.node}”",
        arguments=cast("dict[str, object]", {**state, **_sends(info, state)}),
        ask=Ask(form=Form.STEP, label="State", schema=_state_schema(info)),
        rule=f"{info.kind} {info.node}",
    )


def _sends(info: Question, state: Mapping[str, Json]) -> dict[str, Json]:
    """What runs with arguments of its own; after an edit, the graph works it out anew."""
    found: dict[str, Json] = {}
    for at, send in enumerate(info.sends, 1):
        which = f" ({at} of {len(info.sends)})" if len(info.sends) > 1 else ""
        name = f"“{send.node}” gets, unless edited{which}"
        while name in state:
            name = f"{name} "
        found[name] = _readable(encode(send.arg))
    return found


def _of_stage(info: StageInfo) -> Shown:
    stage = "it thinks" if info.stage == "agent" else "its tools run"
    return Shown(
        kind=Kind.APPROVAL,
        title=f"“{info.agent_name}” stopped {info.when} {stage}",
        arguments={"calls": [dict(call) for call in info.calls]} if info.calls else {},
        ask=Ask(form=Form.STEP, label="What it wants to call"),
        why=info.said,
        digest=info.digest,
    )


def _of_unknown(info: object) -> Shown:
    if info is None or isinstance(info, str | int | float | list | dict):
        return _of_value(info)
    shown = _of_texts([_words(info)])
    program = _only_programs(info)
    return replace(shown, ask=Ask(form=Form.PROGRAM, program=program)) if program else shown


def _of_value(value: object) -> Shown:
    """A question that is any storable value: a text as it is, the rest laid out below."""
    if isinstance(value, str) and value.strip():
        return _of_texts([value])
    shown = _readable(encode(value))
    if not isinstance(shown, dict):
        return _of_texts([json.dumps(shown, ensure_ascii=False)])
    asked = shown.get("question")
    has_question = isinstance(asked, str) and asked.strip()
    question = cast("str", asked) if has_question else "What is your answer to this?"
    rest = {name: item for name, item in shown.items() if not has_question or name != "question"}
    made = _of_texts([question])
    return replace(made, arguments={**made.arguments, "shown": rest} if rest else made.arguments)


def _of_texts(questions: list[str]) -> Shown:
    one = len(questions) == 1
    return Shown(
        kind=Kind.QUESTION,
        title="A question for you" if one else "Some questions for you",
        arguments={"questions": questions},
        ask=Ask(form=Form.TEXTS),
    )


def _typed(schema: dict[str, Json], question: str) -> Ask:
    """The form of an answer with a JSON schema: options, fields, or one field."""
    values = _few_values(schema)
    if values:
        words = {True: "Yes", False: "No"}
        options = tuple(
            Option(id=str(at), label=words[one] if isinstance(one, bool) else str(one), value=one)
            for at, one in enumerate(values, 1)
        )
        return Ask(form=Form.CHOICE, question=question, options=options)
    if schema.get("type") == "object" and schema.get("properties"):
        return Ask(form=Form.FIELDS, schema=schema)
    inner = {name: value for name, value in schema.items() if name != "$defs"}
    wrapped = _object_of({_FIELD: inner})
    if "$defs" in schema:
        wrapped["$defs"] = schema["$defs"]
    return Ask(form=Form.FIELDS, schema=wrapped, is_wrapped=True)


def _few_values(schema: Mapping[str, Json]) -> list[Json]:
    """The values of an answer that has only a few; empty when it has many."""
    if schema.get("type") == "boolean" and "enum" not in schema and "const" not in schema:
        return [True, False]
    found = schema.get("enum")
    if not isinstance(found, list) or not all(isinstance(one, str | int) for one in found):
        return []
    return found if len({str(one) for one in found}) == len(found) else []


def _object_of(fields: Mapping[str, Json]) -> dict[str, Json]:
    """JSON schema of an object that needs all these fields."""
    return {
        "type": "object",
        "properties": dict(fields),
        "required": list(fields),
        "additionalProperties": False,
    }


_KINDS = {bool: "boolean", int: "integer", float: "number", str: "string"}


def _state_schema(info: Question) -> dict[str, Json] | None:
    """JSON schema of what can be edited of a state: what is plain JSON data.

    What the graph says of its keys counts; of others, the kind of value that is there.
    """
    state = info.state or {}
    plain = {name: encode(value) for name, value in state.items() if _is_plain(value)}
    if not plain:
        return None
    known = info.state_schema or {}
    return _object_of({name: known.get(name) or _kind(value) for name, value in plain.items()})


def _kind(value: Json) -> Json:
    if type(value) in _KINDS:
        return {"type": _KINDS[type(value)]}
    if isinstance(value, list):
        texts = value and all(isinstance(one, str) for one in value)
        return {"type": "array", **({"items": {"type": "string"}} if texts else {})}
    return {"type": "object"} if isinstance(value, dict) else {}


def _is_plain(value: object) -> TypeGuard[Json]:
    """Whether a value is JSON data, and is written as it is."""
    match value:
        case None | bool() | int() | float() | str():
            return encode(cast("object", value)) == value
        case list():
            return all(_is_plain(item) for item in value)
        case dict():
            return "$type" not in value and all(_is_plain(item) for item in value.values())
        case _:
            return False


def _readable(data: Json) -> Json:
    """Stored data as people read it: without the names of types."""
    if isinstance(data, list):
        return [_readable(item) for item in data]
    if not isinstance(data, dict):
        return data
    if set(data) == {"$type", "value"}:
        return _readable(data["value"])
    return {name: _readable(item) for name, item in data.items()}


def _words(info: object) -> str:
    try:
        return str(info).strip() or type(info).__name__
    except Exception:  # noqa: BLE001 - code of an agent's author: a question is shown all the same
        return type(info).__name__


def _only_programs(info: object) -> str:
    """Why a text does not answer an info; empty when it does."""
    if not isinstance(info, Answerable):
        return "" if not isinstance(info, CallInfo) else type(info).__name__
    try:
        info.check_answer("text")
    except ResumeDataError as error:
        return f"{type(info).__name__}: {error}"[:_MOST_ERROR]
    except Exception as error:  # noqa: BLE001 - code of an agent's author; then nobody answers here
        return f"{type(info).__name__}: it fails with {type(error).__name__}"
    return ""
