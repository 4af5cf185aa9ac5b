"""Values by JSON schema: what is missing of a call, or a node's typed answer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import ClassVar, cast

from agents import InterruptContext
from agents.core.codec import Json
from agents.core.infos import CallInfo
from agents.gates.questions import ParametersInfo, ParametersResult
from agents.graph.state.shapes import misfit
from bot.errors import InvalidInputError
from bot.layout.action_ids import ActionId
from bot.layout.arguments import Budget, Listed, list_arguments
from bot.layout.blocks import Block, line, literal, rich
from bot.layout.forms.pages import NO_DRAFT, FormDraft, read_new_form
from bot.layout.modals import Errors, Values, named
from bot.layout.parts import REASON, said, worded
from bot.layout.text import show
from bot.ports import CheckedCall
from bot.questions.base import Brief, as_object
from bot.questions.call import call_brief
from bot.questions.drawing import DecisionDraft, OpenModal, Proposal, questions_of, register
from bot.questions.form import AnswerForm, Form, edited_digest, in_order
from bot.questions.inputs import InputsQuestion
from bot.questions.texts import QUESTION_WHOLE
from bot.questions.values import few_values, object_schema, typed_answer, value_brief
from bot.redaction.call import Words, mask_value, written
from bot.redaction.mask import mask_text
from storage.records import Approval, Decision, Kind, Status

FILLED = Budget(whole=1_600, value=500)
_FIELD = "answer"
_INTEGER = re.compile(r"-?\d{1,15}", re.ASCII)
_SPEAKING = frozenset({"title", "description", "default"})
"""Keys of a JSON schema that ask nothing of a value."""
_SPOKEN = frozenset({"string", "integer", "number"})
_HINTS = {
    "": "Choose *Answer…* for a short form.",
    "string": "Reply in this thread, or choose *Answer…*",
}
_NUMBER = "Reply in this thread with a whole number, or choose *Answer…*"


def values_json(values: Mapping[str, object]) -> str:
    """Write what people filled in as a decision keeps it."""
    return in_order({"values": dict(values)})


@register
class FieldsQuestion(InputsQuestion):
    """Asks for values."""

    form = Form.FIELDS
    kinds = frozenset({Kind.APPROVAL, Kind.QUESTION})
    outcomes: ClassVar[Mapping[Status, str]] = {Status.APPROVED: "Filled in"}
    no_form = "line.no_answer"
    no_form_title = "form.answer_title"
    starts_empty = True

    @classmethod
    def read(cls, info: object) -> Brief | None:
        """Read what is missing of a call, or the schema of a node's answer."""
        if isinstance(info, ParametersInfo):
            brief = call_brief(info)
            ask = replace(brief.ask, form=Form.FIELDS, schema=object_schema(info.missing))
            return replace(brief, kind=Kind.QUESTION, ask=ask)
        schema = typed_answer(info)
        if schema is None or few_values(schema):
            return None
        return replace(value_brief(getattr(info, "value", None)), ask=_ask(schema))

    @classmethod
    def kind_at(cls, context: InterruptContext, brief: Brief) -> Kind:
        """Return the kind: to fill in what is missing takes no approver, as a rule.

        It does when others have approved the call: then it is theirs, too, or the values would be
        nobody's.
        """
        outer = context.parent if isinstance(context.info, ParametersInfo) else None
        while outer is not None and outer.address == context.address:
            if isinstance(outer.info, CallInfo) and not isinstance(outer.info, ParametersInfo):
                return Kind.APPROVAL
            outer = outer.parent
        return brief.kind

    def takes(self, decision: Decision) -> bool:
        """Values that fit; of a call exactly what is missing, bound to the call with them."""
        values = json.loads(decision.answer_json)["values"]
        if decision.status is not self.yes_status or misfit(cast("Json", self.ask.schema), values):
            return False
        if self.is_call and set(values) != set(self.ask.names):
            return False
        return self.digest_of(values) == decision.digest

    def no_status(self) -> Status:
        """The runtime knows no rejection of what is missing: it is called off."""
        return Status.CANCELLED if self.is_call else super().no_status()

    def answer(self, info: object) -> object:
        """The values."""
        values, decision = as_object(self.given["values"]), self.decision
        if isinstance(info, ParametersInfo):
            return ParametersResult(values=values, digest=decision.digest, by=decision.by)
        return values[_FIELD] if self.ask.is_wrapped else values

    def read_reply(self, text: str) -> str:
        """A text or a whole number, where any will do; all else has a form, which checks it."""
        words = text.strip()
        match self.spoken_type:
            case "string":
                return values_json({_FIELD: text})
            case "integer" | "number" if _INTEGER.fullmatch(words):
                return values_json({_FIELD: int(words)})
            case _:
                return ""

    def is_yes(self, decision: Decision) -> bool:
        """Completing a call agrees to it."""
        return super().is_yes(decision) or (self.is_call and decision.status is Status.ANSWERED)

    def can_agree(self) -> bool:
        """A question agrees to nothing, a call does."""
        return self.is_call

    @property
    def spoken_type(self) -> str:
        """The JSON type that a reply in the thread can give.

        It is `string`, or `integer` or `number` for a whole number; empty when only the form will
        do.
        """
        if not self.ask.is_wrapped or self.is_call:
            return ""
        schema = self._properties.get(_FIELD)
        if not isinstance(schema, dict) or set(schema) - _SPEAKING - {"type"}:
            return ""
        kind = schema.get("type")
        return kind if isinstance(kind, str) and kind in _SPOKEN else ""

    def digest_of(self, values: Mapping[str, object]) -> str:
        """Return the digest that the values cover: of the call with them, or of the question."""
        if not self.is_call:
            return self.approval.digest
        return edited_digest(self.approval, {**self.arguments, **values})

    def hint(self) -> str:
        """Say whether a reply will do."""
        return _HINTS.get(self.spoken_type, _NUMBER)

    def of_call(self) -> Listed:
        """Return the list of the values that the call still needs."""
        described = {
            name: str(field.get("description") or "") if isinstance(field, dict) else ""
            for name, field in self._properties.items()
        }
        lines = [f"{name}: {words}" if words else name for name, words in described.items()]
        return said("What is missing", "\n".join(lines), 2 * REASON)

    def outcome(self) -> str:
        """A call is filled in, a question answered."""
        is_filled = self.is_call and self.approval.status is Status.ANSWERED
        return "Filled in" if is_filled else super().outcome()

    def answered(self) -> Listed:
        """The values."""
        found = self.stored.get("values")
        values = found if isinstance(found, dict) else {}
        if self.ask.is_wrapped and set(values) == {_FIELD}:  # our own name says nothing
            return worded("Answer", written(mask_value(_FIELD, values[_FIELD])), 4 * REASON)
        listed = list_arguments(values.items(), FILLED, self.ask.masks)
        if not listed.elements:
            return Listed()
        return replace(listed, elements=(line(literal("Answer", "bold")), *listed.elements))

    def final(self, decision: Decision) -> Approval:
        """The completed call, in its tool's words."""
        approval = self.approval
        if not approval.tool.strip() or not decision.answer_json:
            return approval
        title, preview = decision.title or approval.title, decision.preview or approval.preview
        return replace(approval, title=title, preview=preview)

    def more_details(self) -> Iterator[tuple[str, Words]]:
        """Yield the missing fields, whole."""
        if self.is_call:
            yield "What is missing", mask_value("", (self.ask.schema or {}).get("properties"))

    def yes(self) -> Iterator[Block]:
        """*Answer…*; of a call, *Fill in…*."""
        if not self.obstacle:
            label = "Fill in…" if self.is_call else "Answer…"
            yield self.button(label, ActionId.ANSWER, "primary")

    def no(self) -> Iterator[Block]:
        """*Cancel…*."""
        if self.is_call:
            yield self.button(f"{self.no_label()}…", ActionId.REJECT)

    def no_label(self) -> str:
        """It is called off."""
        return "Cancel"

    def can_withdraw(self) -> bool:
        """The *Cancel* of a call does the same."""
        return not self.is_call

    def press(self, action: str) -> OpenModal | DecisionDraft:
        """Open the form."""
        if action != ActionId.ANSWER:
            return super().press(action)
        return OpenModal(view=self.form_modal())

    def form_modal(self, draft: FormDraft = NO_DRAFT) -> Block:
        """The form of the values."""
        words = "Fill in" if self.is_call else "Answer"
        return self.inputs_modal(ActionId.ANSWER_MODAL, (words, words), self._about(), draft)

    def submit(self, modal_id: str, values: Values) -> DecisionDraft | Proposal | Errors:
        """Read the values; of a call, its tool has to take them."""
        if modal_id != ActionId.ANSWER_MODAL:
            return super().submit(modal_id, values)
        if not self.ask.schema:
            raise InvalidInputError("this form")
        result = read_new_form(self.ask.schema, values)
        if result.arguments is None:
            return result.errors
        if not self.is_call:
            return self._draft(result.arguments)
        arguments = {**self.arguments, **result.arguments}
        return Proposal(arguments=arguments, names=tuple(result.arguments))

    def settle(self, proposal: Proposal, call: CheckedCall) -> DecisionDraft:
        """Fill in the values as the tool reads them."""
        given = proposal.arguments
        return self._draft({name: call.arguments.get(name, given[name]) for name in proposal.names})

    def reject_words(self) -> str:
        """The modal has a *Cancel* of its own."""
        return "Cancel request"

    def _draft(self, values: Mapping[str, object]) -> DecisionDraft:
        return replace(self.draft(answer=values_json(values)), digest=self.digest_of(values))

    def _about(self) -> Block:
        """The title of the call, or the question."""
        if self.approval.tool.strip():
            return named(self.approval)
        question = mask_text(questions_of(self.approval)[0])
        return rich(line(literal(show(question, QUESTION_WHOLE, lines=40).text or "…")))

    @property
    def _properties(self) -> dict[str, Json]:
        found = (self.ask.schema or {}).get("properties")
        return found if isinstance(found, dict) else {}


def _ask(schema: dict[str, Json]) -> AnswerForm:
    """The form of an answer with a JSON schema: its fields, or one field."""
    if schema.get("type") == "object" and schema.get("properties"):
        return AnswerForm(form=Form.FIELDS, schema=schema)
    inner = {name: value for name, value in schema.items() if name != "$defs"}
    wrapped = object_schema({_FIELD: inner})
    if "$defs" in schema:
        wrapped["$defs"] = schema["$defs"]
    return AnswerForm(form=Form.FIELDS, schema=wrapped, is_wrapped=True)
