"""The form of an approval's answers, as stored with it.

The record's `form` holds it. A bare JSON schema there is that of a call's arguments, which
people may edit; nothing there is the plain form of the record's kind. Everything else is an object
with the key `countersign.form/1`. Nobody can answer a form that cannot be read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from agents.core.codec import Json, well_formed
from agents.core.digest import call_digest, canonical_json
from bot.approvals.model import Approval, Kind
from bot.redaction.masks import Names, once
from bot.words import say

FORM = "countersign.form/1"
"""Stored: version 1, must stay readable."""


class Form(StrEnum):
    """Our own ways to answer. Stored: version 1, must stay readable.

    A kind of question from outside has a name of its own: see `add_form`.
    """

    CALL = "call"  # may it run: approve, reject, edit
    HUMAN = "human"  # the same with the answers that the agent allows: see `Ask.allowed`
    STEP = "step"  # may it go on: continue, stop, edit
    TEXTS = "texts"  # a text for each question
    FEEDBACK = "feedback"  # a text about a text, or nothing to say
    CHOICE = "choice"  # one of the options, or several
    FIELDS = "fields"  # values by JSON schema
    PROGRAM = "program"  # not by people


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """Something to choose.

    Attributes:
        id: Unique among the options.
        label: What people read; untrusted.
        description: More about it; may be empty. Untrusted.
        value: What it stands for.
    """

    id: str
    label: str
    description: str = ""
    value: Json = None

    @property
    def words(self) -> str:
        """Label and description as one text, unmasked."""
        return f"{self.label}: {self.description}" if self.description else self.label


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerForm:
    """An approval's form: the answers that it takes.

    Attributes:
        form: The way: one of `Form`, or a name that somebody added.
        schema: JSON schema of what people may edit, or give; None when they may not. One that is
            not a schema of an object makes no form.
        is_wrapped: Whether the answer is the one field `answer` of that schema.
        question: What is to be chosen; empty for other forms.
        options: What there is to choose.
        multiple: Whether several can be chosen.
        parameter: Of a call, the argument that is chosen; else empty.
        can_decline: Whether none can be chosen.
        allowed: Answers that are taken, of `accept`, `ignore`, `response`, `edit`.
        reason: Why people are asked, in the words of a policy; may be empty.
        label: What stands above the arguments; empty for `Arguments`.
        program: Why people cannot answer, and what a program would.
        secret: Names of arguments that nobody is shown.
        shown: Names of arguments that are no secrets, whatever they look like.
        named: Names of the arguments of which the title shows all.
        labels: Names of arguments as their tool's author writes them for people, where they do.
        leaves: Whether people outside of the company see what the call does.
    """

    form: str
    schema: dict[str, Json] | None = None
    is_wrapped: bool = False
    question: str = ""
    options: tuple[Option, ...] = ()
    multiple: bool = False
    parameter: str = ""
    can_decline: bool = False
    allowed: tuple[str, ...] = ()
    reason: str = ""
    label: str = ""
    program: str = ""
    secret: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    leaves: bool = False

    def to_data(self) -> dict[str, Json] | None:
        """Write it as a record keeps it: see `ask_of`."""
        fields: dict[str, Json] = {
            "schema": self.schema,
            "is_wrapped": self.is_wrapped,
            "question": self.question,
            "options": [_option_fields(option) for option in self.options],
            "multiple": self.multiple,
            "parameter": self.parameter,
            "can_decline": self.can_decline,
            "allowed": list(self.allowed),
            "reason": self.reason,
            "label": self.label,
            "program": self.program,
            "secret": list(self.secret),
            "shown": list(self.shown),
            "named": list(self.named),
            "labels": dict(self.labels),
            "leaves": self.leaves,
        }
        told = {name: one for name, one in fields.items() if one not in (None, False, "", [], {})}
        if self.form in {Form.CALL, Form.TEXTS} and set(told) <= {"schema"}:
            return self.schema
        return {FORM: str(self.form), **told}

    @property
    def masks(self) -> Names:
        """The tool author's lists of names: of secret arguments, and of those that are shown."""
        return Names(secret=self.secret, shown=self.shown)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the fields that people fill in."""
        found = (self.schema or {}).get("properties")
        return tuple(found) if isinstance(found, dict) else ()


_ADDED: set[str] = set()
"""Names of forms from outside."""


def add_form(name: str) -> None:
    """Make the name of a form known; a form that nobody knows is answered by nobody."""
    if name not in _OURS:
        _ADDED.add(name)


def ask_of(approval: Approval) -> AnswerForm:
    """Read how an approval is answered; the schema in it is shared, and changed by nobody."""
    plain = Form.TEXTS if approval.kind is Kind.QUESTION else Form.CALL
    if approval.form is None:
        return AnswerForm(form=plain)
    if FORM not in approval.form:
        return AnswerForm(form=plain, schema=approval.form if plain is Form.CALL else None)
    return once(_ask_in, approval.form)


def _ask_in(data: dict[str, Json]) -> AnswerForm:
    try:
        return _ask_from(data)
    except (TypeError, ValueError, KeyError):
        return AnswerForm(form=Form.PROGRAM, program=say("reason.no_form"))


def edited_digest(approval: Approval, arguments: Mapping[str, object]) -> str:
    """The digest of the same call with other arguments: what the executor will compare."""
    return call_digest(
        thread=approval.checkpoint_id,
        address=approval.address,
        tool=approval.tool,
        arguments=arguments,
        rule=approval.rule,
        ruling=ruling_text(approval),
    )


def ruling_text(approval: Approval) -> str:
    """The ruling as the digest covers it; empty if no gate asks."""
    return "" if approval.ruling is None else canonical_json(approval.ruling)


def in_order(data: object) -> str:
    """JSON text with the keys in their order: the one in which the tool's author wrote them."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
    if well_formed(text) == text:
        return text
    # Half of a surrogate pair, which databases refuse, is written in ASCII.
    return json.dumps(data, separators=(",", ":"))


def labels_in(schema: Mapping[str, Json]) -> dict[str, str]:
    """The titles that the author of a schema gives to its fields."""
    fields = schema.get("properties")
    titles = {
        name: one.get("title")
        for name, one in (fields.items() if isinstance(fields, dict) else ())
        if isinstance(one, dict)
    }
    return {name: one for name, one in titles.items() if isinstance(one, str) and one.strip()}


def _ask_from(data: Mapping[str, Json]) -> AnswerForm:
    options = tuple(_option_from(one) for one in _list(data.get("options", [])))
    if len({option.id for option in options}) < len(options):
        raise ValueError("two options have one id")
    schema = data.get("schema")
    return AnswerForm(
        form=_form(_text(data, FORM)),
        schema=_object(schema) if schema is not None else None,
        is_wrapped=data.get("is_wrapped") is True,
        question=_text(data, "question"),
        options=options,
        multiple=data.get("multiple") is True,
        parameter=_text(data, "parameter"),
        can_decline=data.get("can_decline") is True,
        allowed=tuple(str(one) for one in _list(data.get("allowed", []))),
        reason=_text(data, "reason"),
        label=_text(data, "label"),
        program=_text(data, "program"),
        secret=tuple(str(one) for one in _list(data.get("secret", []))),
        shown=tuple(str(one) for one in _list(data.get("shown", []))),
        named=tuple(str(one) for one in _list(data.get("named", []))),
        labels={name: str(one) for name, one in _object(data.get("labels", {})).items()},
        leaves=data.get("leaves") is True,
    )


_OURS = frozenset(map(str, Form))


def _form(name: str) -> str:
    return name if name in _ADDED else Form(name)


def _option_fields(option: Option) -> Json:
    return {
        "id": option.id,
        "label": option.label,
        "description": option.description,
        "value": option.value,
    }


def _option_from(data: Json) -> Option:
    fields = _object(data)
    return Option(
        id=_text(fields, "id"),
        label=_text(fields, "label"),
        description=_text(fields, "description"),
        value=fields.get("value"),
    )


def _text(data: Mapping[str, Json], name: str) -> str:
    found = data.get(name, "")
    if not isinstance(found, str):
        raise TypeError(f"{name} is no text")
    return found


def _list(data: Json) -> list[Json]:
    if not isinstance(data, list):
        raise TypeError("not a list")
    return data


def _object(data: Json) -> dict[str, Json]:
    if not isinstance(data, dict):
        raise TypeError("not an object")
    return data
