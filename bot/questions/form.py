"""The form of an approval's answers, as stored in its field `form`.

A bare JSON schema is that of a call's arguments, which people may edit. None is the plain form of
the approval's kind. Every other form is an object with the key `countersign.form/1`. Nobody can
answer an approval whose form cannot be read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from agents.core.codec import Json, well_formed
from agents.core.digest import call_digest, canonical_json
from bot.records.approval import Approval, Kind
from bot.redaction.masks import Names, once
from bot.words import say

FORM = "countersign.form/1"
"""Key of a stored form. Stored: version 1, must stay readable."""


class Form(StrEnum):
    """The built-in forms of answers. Stored: version 1, must stay readable.

    An external kind of question adds its own name; see `add_form`.
    """

    CALL = "call"  # may it run: approve, reject, edit
    HUMAN = "human"  # the same with the answers that the agent allows: see `Ask.allowed`
    STEP = "step"  # may the run go on: continue, stop, edit
    LIMIT = "limit"  # may the run go on beyond a limit: approve, reject
    TEXTS = "texts"  # a text for each question
    FEEDBACK = "feedback"  # feedback on a text, or its acceptance
    CHOICE = "choice"  # one of the options, or several
    FIELDS = "fields"  # values by JSON schema
    PROGRAM = "program"  # only a program can answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """An option that people can select.

    Attributes:
        id: Unique among the options.
        label: Text for people; untrusted.
        description: Further text; may be empty. Untrusted.
        value: The value that the option selects.
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
    """The form of an approval: the answers that it accepts.

    Attributes:
        form: One of `Form`, or a name added by `add_form`.
        schema: JSON schema of the values that people may edit or enter; None if they may not. A
            schema that is not of an object makes no form.
        is_wrapped: Whether the answer is the only field, `answer`, of that schema.
        question: The question of a choice; empty for other forms.
        options: The options of a choice.
        multiple: Whether people can select several options.
        parameter: Name of the call's argument that people select; empty if they select none.
        can_decline: Whether people can select no option.
        allowed: Accepted answers: some of `accept`, `ignore`, `response`, `edit`.
        reason: Why the policy asks people, in its words; may be empty.
        label: Heading above the arguments; empty for `Arguments`.
        program: Why people cannot answer, and what a program must do.
        secret: Names of arguments that are always masked.
        shown: Names of arguments that are not secret, whatever their values look like.
        named: Names of the arguments whose whole values the title shows.
        labels: Labels of arguments by name, if the tool's author gave labels.
        leaves: Whether the effect of the call is visible outside of the company.
        limit: For a call in doubt: the limit of time that it reached, in seconds; 0 for none.
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
    limit: int = 0

    def to_data(self) -> dict[str, Json] | None:
        """Return the form as stored data; see `ask_of`."""
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
            "limit": self.limit,
        }
        filled = {
            name: value for name, value in fields.items() if value not in (None, False, "", [], {})
        }
        if self.form in {Form.CALL, Form.TEXTS} and set(filled) <= {"schema"}:
            return self.schema
        return {FORM: str(self.form), **filled}

    @property
    def masks(self) -> Names:
        """The tool author's lists of secret and of shown arguments."""
        return Names(secret=self.secret, shown=self.shown)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the fields that people fill in."""
        properties = (self.schema or {}).get("properties")
        return tuple(properties) if isinstance(properties, dict) else ()


_ADDED: set[str] = set()
"""Names of external forms."""


def add_form(name: str) -> None:
    """Register the name of an external form. Nobody can answer a form that is not registered."""
    if name not in _OURS:
        _ADDED.add(name)


def ask_of(approval: Approval) -> AnswerForm:
    """Read the form of an approval. Callers must not change its schema, which is shared."""
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
    """Return the digest of the call with other arguments, as the executor computes it."""
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
    """Return JSON text that keeps the order of keys, as the tool's author wrote them."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
    if well_formed(text) == text:
        return text
    # Databases refuse half a surrogate pair, so write it in ASCII.
    return json.dumps(data, separators=(",", ":"))


def labels_in(schema: Mapping[str, Json]) -> dict[str, str]:
    """Return the titles of fields in a schema."""
    fields = schema.get("properties")
    titles = {
        name: field_schema.get("title")
        for name, field_schema in (fields.items() if isinstance(fields, dict) else ())
        if isinstance(field_schema, dict)
    }
    return {
        name: title for name, title in titles.items() if isinstance(title, str) and title.strip()
    }


def _ask_from(data: Mapping[str, Json]) -> AnswerForm:
    options = tuple(_option_from(option) for option in _list(data.get("options", [])))
    if len({option.id for option in options}) < len(options):
        raise ValueError("two options have one id")
    name, schema = _text(data, FORM), data.get("schema")
    return AnswerForm(
        form=name if name in _ADDED else Form(name),
        schema=_object(schema) if schema is not None else None,
        is_wrapped=data.get("is_wrapped") is True,
        question=_text(data, "question"),
        options=options,
        multiple=data.get("multiple") is True,
        parameter=_text(data, "parameter"),
        can_decline=data.get("can_decline") is True,
        allowed=tuple(str(value) for value in _list(data.get("allowed", []))),
        reason=_text(data, "reason"),
        label=_text(data, "label"),
        program=_text(data, "program"),
        secret=tuple(str(name) for name in _list(data.get("secret", []))),
        shown=tuple(str(name) for name in _list(data.get("shown", []))),
        named=tuple(str(name) for name in _list(data.get("named", []))),
        labels={name: str(label) for name, label in _object(data.get("labels", {})).items()},
        leaves=data.get("leaves") is True,
        limit=_whole(data.get("limit", 0)),
    )


_OURS = frozenset(map(str, Form))


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
    value = data.get(name, "")
    if not isinstance(value, str):
        raise TypeError(f"{name} is no text")
    return value


def _whole(data: Json) -> int:
    if type(data) is not int:
        raise TypeError("not a whole number")
    return data


def _list(data: Json) -> list[Json]:
    if not isinstance(data, list):
        raise TypeError("not a list")
    return data


def _object(data: Json) -> dict[str, Json]:
    if not isinstance(data, dict):
        raise TypeError("not an object")
    return data
