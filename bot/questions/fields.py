"""Values by a JSON schema: missing arguments of a call, or a typed answer of a node."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import cast

from agents import InterruptContext
from agents.core.asking.infos import CallInfo
from agents.core.codec import Json
from agents.gates.questions import ParametersInfo, ParametersResult
from agents.graph.state.shapes import misfit
from bot.errors import InvalidInputError
from bot.layout.action_ids import ActionId
from bot.layout.argument_fields import Naming
from bot.layout.arguments import Listed
from bot.layout.blocks import Block, line, literal, rich
from bot.layout.forms.hints import humanised
from bot.layout.forms.pages import NO_DRAFT, FormDraft, read_new_form
from bot.layout.modals import Errors, Values, named
from bot.layout.text import show
from bot.ports.threads import CheckedCall
from bot.questions.base import QuestionDraft, as_object
from bot.questions.call import call_brief
from bot.questions.drawing import DecisionDraft, OpenModal, Proposal, register
from bot.questions.form import AnswerForm, Form, edited_digest, labels_in
from bot.questions.inputs import InputsQuestion
from bot.questions.shown import questions_of
from bot.questions.texts import QUESTION_WHOLE
from bot.questions.values import few_values, object_schema, typed_answer, value_brief
from bot.records.approval import Approval, Decision, Kind, Status
from bot.redaction.call import mask_value, written
from bot.redaction.mask import mask_text
from bot.redaction.masks import Words, has_guess, length, masks_in
from bot.words import say

_MOST_NAMES, _NAME = 12, 60
_FIELD = "answer"
_INTEGER = re.compile(r"-?\d{1,15}", re.ASCII)
_SPEAKING = frozenset({"title", "description", "default"})
"""JSON schema keywords that do not restrict a value."""
_SPOKEN = frozenset({"string", "integer", "number"})


@register
class FieldsQuestion(InputsQuestion):
    """Asks for values that match a JSON schema."""

    form = Form.FIELDS
    kinds = frozenset({Kind.APPROVAL, Kind.QUESTION})
    no_form = "line.no_answer"
    no_form_title = "form.answer_title"
    starts_empty = True

    @classmethod
    def read(cls, info: object) -> QuestionDraft | None:
        """Read the missing arguments of a call, or the schema of a node's answer."""
        if isinstance(info, ParametersInfo):
            brief = call_brief(info)
            ask = replace(brief.ask, form=Form.FIELDS, schema=object_schema(info.missing))
            return replace(brief, kind=Kind.QUESTION, ask=ask)
        schema = typed_answer(info)
        if schema is None or few_values(schema):
            return None
        return replace(value_brief(getattr(info, "value", None)), ask=_ask(schema))

    @classmethod
    def kind_at(cls, context: InterruptContext, brief: QuestionDraft) -> Kind:
        """Return the kind of answer. Missing arguments usually need no approver.

        If an outer gate already asked approvers about the same call, the values need approval, too:
        otherwise no approver would have seen them.
        """
        outer = context.parent if isinstance(context.info, ParametersInfo) else None
        while outer is not None and outer.address == context.address:
            if isinstance(outer.info, CallInfo) and not isinstance(outer.info, ParametersInfo):
                return Kind.APPROVAL
            outer = outer.parent
        return brief.kind

    def takes(self, decision: Decision) -> bool:
        """Accept values that match the schema; for a call, exactly the missing arguments."""
        values = as_object(as_object(decision.answer)["values"])
        if decision.status is not self.yes_status or misfit(cast("Json", self.ask.schema), values):
            return False
        if self.is_call and set(values) != set(self.ask.names):
            return False
        return self.digest_of(values) == decision.digest

    def no_status(self) -> Status:
        """Return the status after a refusal: the runtime knows no rejection, so cancel the call."""
        return Status.CANCELLED if self.is_call else super().no_status()

    def answer(self, info: object) -> object:
        """Return the values."""
        values, decision = as_object(self.given["values"]), self.decision
        if isinstance(info, ParametersInfo):
            return ParametersResult(values=values, digest=decision.digest, by=decision.by)
        return values[_FIELD] if self.ask.is_wrapped else values

    def read_reply(self, text: str) -> Json:
        """Read a reply as a text or an integer, if one is enough. Other types need the form."""
        words = text.strip()
        match self.spoken_type:
            case "string":
                return {"values": {_FIELD: text}}
            case "integer" | "number" if _INTEGER.fullmatch(words):
                return {"values": {_FIELD: int(words)}}
            case _:
                return None

    def is_yes(self, decision: Decision) -> bool:
        """Count the completion of a call as an approval."""
        return super().is_yes(decision) or (self.is_call and decision.status is Status.ANSWERED)

    def can_agree(self) -> bool:
        """Whether this is a call: only a call can be approved."""
        return self.is_call

    @property
    def spoken_type(self) -> str:
        """The JSON type that a reply in the thread can give.

        It is `string`, or `integer` or `number` for an integer; empty if only the form can answer.
        """
        if not self.ask.is_wrapped or self.is_call:
            return ""
        schema = self._properties.get(_FIELD)
        if not isinstance(schema, dict) or set(schema) - _SPEAKING - {"type"}:
            return ""
        kind = schema.get("type")
        return kind if isinstance(kind, str) and kind in _SPOKEN else ""

    def digest_of(self, values: Mapping[str, object]) -> str:
        """Return the digest that the values cover: of the completed call, or of the question."""
        if not self.is_call:
            return self.approval.digest
        return edited_digest(self.approval, {**self.arguments, **values})

    def needs(self, about: Mapping[str, str]) -> tuple[str, str]:
        """Say that details are needed."""
        if self._is_plain_question:
            return super().needs(about)
        return say("status.needs_details"), say("notify.needs", **about)

    def ended(self, who: str, time: str) -> tuple[str, str]:
        """Say that the agent goes on without the call."""
        if self.approval.status is Status.CANCELLED and self.is_call and who:
            return "⏭️", say("status.skipped", who=who, time=time)
        return super().ended(who, time)

    def who_can(self, who: str) -> str:
        """Say whether a reply can answer."""
        match self.spoken_type:
            case "":
                return say("line.can_fill", who=who)
            case "string":
                return say("line.can_answer", who=who)
            case _:
                return say("line.can_number", who=who)

    def of_call(self) -> Listed:
        """Return the names of the missing arguments of a call."""
        naming = self._naming
        names = [naming.label(name) for name in self._properties]
        views = [show(name, _NAME, one_line=True) for name in names[:_MOST_NAMES]]
        if not views:
            return Listed()
        hidden = sum(map(length, names[_MOST_NAMES:])) + sum(view.hidden for view in views)
        masks = [mask for name in names for mask in masks_in(name)]
        text = ", ".join(view.text or "…" for view in views)
        head, _, tail = say("line.missing", fields="\0").partition("\0")
        parts = [literal(head), literal(text, "bold"), *([literal(tail)] if tail else [])]
        return Listed(
            elements=(line(*parts),),
            hidden=hidden,
            masked=bool(masks),
            guessed=has_guess(masks),
            altered=any(view.altered for view in views),
            turned=any(view.turned for view in views),
        )

    def answered(self) -> str:
        """The values, with the labels of the form."""
        stored = self.stored.get("values")
        values = stored if isinstance(stored, dict) else {}
        if self.ask.is_wrapped and set(values) == {_FIELD}:  # the default name says nothing
            return written(mask_value(_FIELD, values[_FIELD])).strip()
        naming = self._naming
        pairs = [(naming.label(name), naming.words(name, value)) for name, value in values.items()]
        return "\n".join(f"{written(label)}: {written(words)}" for label, words in pairs)

    def final(self, decision: Decision) -> Approval:
        """Return the completed call, with the title of its tool."""
        approval = self.approval
        if not approval.tool.strip() or decision.answer is None:
            return approval
        title, preview = decision.title or approval.title, decision.preview or approval.preview
        return approval.changed(title=title, preview=preview)

    def more_details(self) -> Iterator[tuple[str, Words]]:
        """Yield the names of the missing fields."""
        if self.is_call:
            schema = self.ask.schema or {}
            labels, properties = labels_in(schema), schema.get("properties")
            names = properties if isinstance(properties, dict) else ()
            words = [labels.get(name) or humanised(name) for name in names]
            yield say("form.part_missing"), (mask_text(", ".join(words)),)

    def yes(self) -> Iterator[Block]:
        """*Answer…*."""
        if not self.obstacle:
            yield self.button(say("button.answer"), ActionId.ANSWER, "primary")

    def no(self) -> Iterator[Block]:
        """*Skip…*: the agent goes on without the call."""
        if self.is_call:
            yield self.button(say("button.skip"), ActionId.REJECT)

    def no_words(self) -> tuple[str, str]:
        """Return the title and the button for skipping the call."""
        return say("form.skip"), say("form.skip_submit")

    def no_help(self) -> str:
        """Say that the call is cancelled."""
        return say("form.skip_help")

    def can_withdraw(self) -> bool:
        """Return False for a call, whose *Skip…* does the same."""
        return not self.is_call

    def press(self, action: str) -> OpenModal | DecisionDraft:
        """Open the form."""
        if action != ActionId.ANSWER:
            return super().press(action)
        return self.form_modal()

    def form_modal(self, draft: FormDraft = NO_DRAFT) -> OpenModal:
        """The form of the values. For a call, its submission lets the call run."""
        words, action = say("form.answer_title"), ActionId.ANSWER_MODAL
        view = self.inputs_modal(action, (words, words), self._about(), draft)
        return OpenModal(view=view, agrees=action if self.is_call else None)

    def submit(self, modal_id: str, values: Values) -> DecisionDraft | Proposal | Errors:
        """Read the values; for a call, as a proposal that its tool validates."""
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
        """Complete the call with the values that the tool parsed."""
        given = proposal.arguments
        return self._draft({name: call.arguments.get(name, given[name]) for name in proposal.names})

    def _draft(self, values: Mapping[str, object]) -> DecisionDraft:
        answer: Json = {"values": cast("dict[str, Json]", dict(values))}
        return replace(self.draft(answer=answer), digest=self.digest_of(values))

    def _about(self) -> Block:
        """The title of the call, or the question."""
        if self.approval.tool.strip():
            return named(self.approval)
        question = mask_text(questions_of(self.approval)[0])
        return rich(line(literal(show(question, QUESTION_WHOLE, lines=40).text or "…")))

    @property
    def _naming(self) -> Naming:
        schema = cast("Mapping[str, Json]", self.ask.schema or {})
        return Naming(labels={**self.ask.labels, **labels_in(schema)}, masks=self.ask.masks)

    @property
    def _is_plain_question(self) -> bool:
        """Whether the question asks for one value, and the title has its text."""
        return self.ask.is_wrapped and not self.is_call

    @property
    def _properties(self) -> dict[str, Json]:
        properties = (self.ask.schema or {}).get("properties")
        return properties if isinstance(properties, dict) else {}


def _ask(schema: dict[str, Json]) -> AnswerForm:
    """Return the form of an answer with a JSON schema: its fields, or a single field."""
    if schema.get("type") == "object" and schema.get("properties"):
        return AnswerForm(form=Form.FIELDS, schema=schema)
    inner = {name: value for name, value in schema.items() if name != "$defs"}
    wrapped = object_schema({_FIELD: inner})
    if "$defs" in schema:
        wrapped["$defs"] = schema["$defs"]
    return AnswerForm(form=Form.FIELDS, schema=wrapped, is_wrapped=True)
