"""One of some options, or several: as a question, or as an argument of a call."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from agents.core.codec import Json
from agents.gates.questions import CallChoiceInfo, Choice, ChoiceInfo, ChoiceResult
from bot.errors import InvalidInputError
from bot.layout.action_ids import PICKS, ActionId
from bot.layout.arguments import Listed, read_object, text_width
from bot.layout.blocks import LABEL, Block, line, literal, plain, rich
from bot.layout.forms.fields import MOST_CHECKS
from bot.layout.modals import Errors, Values, modal, notice_modal, read_state
from bot.layout.parts import REASON, said
from bot.layout.text import clip, is_plain, show, width
from bot.questions.base import Brief, as_text
from bot.questions.call import call_brief
from bot.questions.drawing import (
    BUTTONS_ONLY,
    MOST_QUESTIONS,
    DecisionDraft,
    DrawnQuestion,
    OpenModal,
    Proposal,
    register,
    rest_of,
    untold,
)
from bot.questions.form import AnswerForm, Form, Option, edited_digest, in_order
from bot.questions.texts import QUESTION_WHOLE
from bot.questions.values import few_values, first_question, typed_answer, value_brief
from bot.redaction.call import Words, has_guess, length, mask_call, masks_in, written
from storage.records import Approval, Decision, Kind, Status

CHOICE = "choice"
"""Block id of the options in the form."""
OPTIONS = 2_400
"""Characters of all options together."""
OPTION = 400
MOST_SHOWN = 20
"""More options are in Details."""
MOST_OPTIONS = 100
"""More do not fit a menu."""
_SHORT = 40
"""Longer labels do not fit a button on a phone."""
_CHOSEN = "Chosen"


def selected_json(ids: Sequence[str]) -> str:
    """Write chosen options as a decision keeps them."""
    return in_order({"selected": list(ids)})


@register
class ChoiceQuestion(DrawnQuestion):
    """Asks what to choose."""

    form = Form.CHOICE
    kinds = frozenset({Kind.APPROVAL, Kind.QUESTION})
    outcomes: ClassVar[Mapping[Status, str]] = {
        Status.APPROVED: _CHOSEN,
        Status.ANSWERED: _CHOSEN,
        Status.REJECTED: "None chosen",
    }

    @classmethod
    def read(cls, info: object) -> Brief | None:
        """Read options: of a question, of an argument, or of a node's typed answer."""
        if isinstance(info, CallChoiceInfo):
            return _of_call(info)
        if isinstance(info, ChoiceInfo):
            return _free(info)
        schema = typed_answer(info)
        values = few_values(schema) if schema is not None else []
        if not values:
            return None
        brief = value_brief(getattr(info, "value", None))
        return replace(brief, ask=_ask_of_values(first_question(brief), values))

    def takes(self, decision: Decision) -> bool:
        """Options that there are, and the call with them; or none, where that is allowed."""
        if decision.status is Status.REJECTED:
            return self.ask.can_decline
        ids = json.loads(decision.answer_json)["selected"]
        is_bound = self.digest_of([str(one) for one in ids]) == decision.digest
        return decision.status is self.yes_status and is_bound

    def no_status(self) -> Status:
        """None of these, where that is allowed."""
        return Status.REJECTED if self.ask.can_decline else super().no_status()

    def answer(self, info: object) -> object:
        """Return the choice; for a node, the value that it stands for."""
        if not isinstance(info, ChoiceInfo | CallChoiceInfo):
            (option,) = [one for one in self.ask.options if (one.id,) == self._selected]
            return option.value
        decision = self.decision
        if decision.status is Status.REJECTED:
            return ChoiceResult(declined=True, reason=self.reason, by=decision.by)
        return ChoiceResult(selected=self._selected, digest=decision.digest, by=decision.by)

    def read_reply(self, text: str) -> str:
        """The option that a reply names by its number or its label, and no other."""
        wanted = text.strip().casefold().rstrip(".!").strip()
        found = {
            option.id
            for number, option in enumerate(self.ask.options, 1)
            if wanted in {str(number), option.label.casefold().strip().rstrip(".!").strip()}
        }
        return selected_json([*found]) if len(found) == 1 and not self.is_yes_or_no else ""

    def reply_hint(self) -> str:
        """Say how a reply names an option."""
        if self.is_yes_or_no:
            return super().reply_hint()
        return (
            "This is not exactly one of the options. Please use the card, or reply with one "
            "number or label."
        )

    def is_yes(self, decision: Decision) -> bool:
        """Every choice agrees to what it is."""
        return decision.status in {Status.APPROVED, Status.ANSWERED}

    def more_agreed(self) -> list[tuple[str, Words]]:
        """The question and the options."""
        options = [
            (f"option {number}", (*mask_call(option.label), *mask_call(option.description)))
            for number, option in enumerate(self.ask.options, 1)
        ]
        return [("question", mask_call(self.ask.question)), *options]

    @property
    def is_yes_or_no(self) -> bool:
        """Whether the choice may be a decision: only buttons answer it."""
        return any(isinstance(option.value, bool) for option in self.ask.options)

    def no_label(self) -> str:
        """A free choice is not rejected."""
        return "Reject" if self.is_call else "None of these"

    def digest_of(self, ids: Sequence[str]) -> str:
        """Return the digest that a choice covers: of the call with the options, or of the question.

        Raises:
            InvalidInputError: There is no such option.
        """
        if not self._chosen(ids):
            raise InvalidInputError("this choice")
        if self.approval.kind is not Kind.APPROVAL:
            return self.approval.digest
        return edited_digest(self.approval, self.with_options(ids))

    def with_options(self, ids: Sequence[str]) -> dict[str, object]:
        """A call's arguments with what people chose in them; empty when there is no such option."""
        values = [option.value for option in self._chosen(ids)]
        if not values:
            return {}
        chosen = values if self.ask.multiple else values[0]
        return {**self.arguments, self.ask.parameter: chosen}

    def hint(self) -> str:
        """Say that a reply can name an option."""
        if self.is_yes_or_no:
            return BUTTONS_ONLY
        return "Choose below, or reply in this thread with one number or label."

    def content(self) -> tuple[Listed, ...]:
        """Return the part below the question, then the question and the options."""
        return (self.below(), self.of_call())

    def of_call(self) -> Listed:
        """Return the question and the options, with their numbers."""
        words = mask_call(self.ask.question)
        question = show(words, OPTIONS, lines=20)
        elements = [line(literal(question.text or "…", "bold"), *rest_of(question.hidden))]
        hidden, views = question.hidden, [question]
        masks = [*masks_in(words)]
        room = OPTIONS
        listed = () if self.is_yes_or_no else self.ask.options  # the buttons say it all
        for number, option in enumerate(listed, 1):
            words = mask_call(option.words)
            masks += masks_in(words)
            if number > MOST_SHOWN or room < OPTION:
                hidden += length(words)
                continue
            views.append(show(words, OPTION, lines=5))
            parts = (literal(f"{number}. ", "bold"), literal(views[-1].text or "…"))
            elements.append(line(*parts, *rest_of(views[-1].hidden)))
            room -= text_width(elements[-1:])
            hidden += views[-1].hidden
        return Listed(
            elements=tuple(elements),
            hidden=hidden,
            masked=bool(masks),
            guessed=has_guess(masks),
            altered=any(view.altered for view in views),
            turned=any(view.turned for view in views),
        )

    def spoken(self) -> list[str]:
        """The question and the first options."""
        options = [option.words for option in self.ask.options[:MOST_QUESTIONS]]
        return [written(mask_call(one)) for one in (self.ask.question, *options)]

    def answered(self) -> Listed:
        """The options that people chose."""
        ids = self.stored.get("selected")
        chosen = [one for one in self.ask.options if isinstance(ids, list) and one.id in ids]
        return said("Choice", "\n".join(option.label for option in chosen), REASON)

    def final(self, decision: Decision) -> Approval:
        """A call with what was chosen; the model may have had a choice of its own."""
        approval = self.approval
        if not approval.tool.strip() or not decision.answer_json:
            return approval
        arguments = read_object(approval.arguments_json) or {}
        if self.ask.parameter not in arguments:
            title, preview = decision.title or approval.title, decision.preview or approval.preview
            return replace(approval, title=title, preview=preview)
        ids = self.stored.get("selected")
        values = [one.value for one in self.ask.options if isinstance(ids, list) and one.id in ids]
        chosen = values if self.ask.multiple else (values or [None])[0]
        return replace(
            approval,
            arguments_json=in_order({**arguments, self.ask.parameter: chosen}),
            title=decision.title or untold(approval, "with what was chosen"),
            preview=decision.preview,
        )

    def laid_out(self) -> frozenset[str]:
        """The names that are not shown as JSON: a free choice lays them out."""
        names = {"question", "questions", "options", "multiple"}
        return frozenset() if self.is_call else frozenset(names)

    def notes(self) -> Iterator[str]:
        """Say when there are too many options."""
        if len(self.ask.options) > MOST_OPTIONS:
            yield "There are too many options for a form."

    def yes(self) -> Iterator[Block]:
        """A button for each of a few short options, or *Choose…*."""
        labels = [
            option_label(option, number, LABEL) for number, option in enumerate(self.ask.options, 1)
        ]
        short = all(is_plain(one) and "\n" not in one and width(one) <= _SHORT for one in labels)
        if labels and len(labels) <= len(PICKS) and short and not self.ask.multiple:
            for label, action in zip(labels, PICKS, strict=False):
                yield self.button(label, action)
        elif 0 < len(labels) <= MOST_OPTIONS:
            yield self.button("Choose…", ActionId.CHOOSE, "primary")

    def no(self) -> Iterator[Block]:
        """*None of these…*; of a call, *Reject…*."""
        if self.ask.can_decline:
            style = "danger" if self.is_call else ""
            yield self.button(f"{self.no_label()}…", ActionId.REJECT, style)

    def needs_all(self) -> bool:
        """Every choice agrees to something."""
        return True

    def press(self, action: str) -> OpenModal | DecisionDraft:
        """Choose the option whose number the button has, or open the form."""
        if action == ActionId.CHOOSE:
            return OpenModal(view=self._modal(), is_yes=True)
        if action not in PICKS:
            return super().press(action)
        number = [str(pick) for pick in PICKS].index(action)
        if number >= len(self.ask.options):
            raise InvalidInputError("this button")
        return self._draft([self.ask.options[number].id])

    def submit(self, modal_id: str, values: Values) -> DecisionDraft | Proposal | Errors:
        """Read the form: ids of the chosen options, in their order."""
        if modal_id != ActionId.CHOOSE_MODAL:
            return super().submit(modal_id, values)
        state = read_state(values, CHOICE)
        one = [state.get("selected_option")]
        found = state.get("selected_options") if self.ask.multiple else one
        listed = found if isinstance(found, list) else []
        chosen = [one.get("value") for one in listed if isinstance(one, dict)]
        ids = [one.id for index, one in enumerate(self.ask.options) if str(index) in chosen]
        if not ids or len(ids) != len(chosen):
            return {CHOICE: "Please choose one of the options."}
        return self._draft(ids)

    def _draft(self, ids: Sequence[str]) -> DecisionDraft:
        return replace(
            self.draft(answer=selected_json(ids)),
            digest=self.digest_of(ids),
            completes=(self.with_options(ids) or None) if self.is_call else None,
        )

    def _chosen(self, ids: Sequence[str]) -> list[Option]:
        """The options with these ids; none when the choice does not fit."""
        found = [option for option in self.ask.options if option.id in ids]
        fits = len(found) == len(ids) and (len(found) == 1 or self.ask.multiple)
        return found if fits else []

    @property
    def _selected(self) -> tuple[str, ...]:
        found = self.given["selected"]
        if not isinstance(found, list):
            raise TypeError("the choice is no list")
        return tuple(as_text(one) for one in found)

    def _modal(self) -> Block:
        """Ask which of the options; say so when there is no such form."""
        ask = self.ask
        if not 0 < len(ask.options) <= MOST_OPTIONS:
            return notice_modal("Choose", "There is no form for this. Please look at the card.")
        few = len(ask.options) <= MOST_CHECKS
        if ask.multiple:
            kind = "checkboxes" if few else "multi_static_select"
        else:
            kind = "radio_buttons" if few else "static_select"
        options = [_choosable(option, index) for index, option in enumerate(ask.options)]
        block: Block = {
            "type": "input",
            "block_id": CHOICE,
            "label": plain("Choose one or more" if ask.multiple else "Choose one"),
            "optional": False,
            "element": {"type": kind, "action_id": str(ActionId.VALUE), "options": options},
        }
        question = show(mask_call(ask.question), QUESTION_WHOLE, lines=40).text
        blocks = [rich(line(literal(question or "…", "bold"))), block]
        return modal(self.approval, ActionId.CHOOSE_MODAL, ("Choose", "Choose"), blocks)


def option_label(option: Option, number: int, most: int) -> str:
    """An option as a label, behind its number: what a model wrote never stands alone."""
    if isinstance(option.value, bool) and option.label.strip():
        return clip(mask_call(option.label), most)
    return f"{number}. {clip(mask_call(option.label), most - 5)}"


def _choosable(option: Option, index: int) -> Block:
    made: Block = {"text": plain(option_label(option, index + 1, LABEL)), "value": str(index)}
    if option.description.strip():
        made["description"] = plain(clip(mask_call(option.description), LABEL))
    return made


def _of_call(info: CallChoiceInfo) -> Brief:
    ask = replace(
        _ask(info.question, info.options, multiple=info.multiple),
        reason=info.reason,
        parameter=info.parameter,
        secret=info.secret,
        shown=info.shown,
    )
    return replace(call_brief(info), ask=ask)


def _free(info: ChoiceInfo) -> Brief:
    listed = [[option.id, option.label, option.description] for option in info.options]
    return Brief(
        kind=Kind.QUESTION,
        title="A choice for you",
        arguments={"question": info.question, "options": listed, "multiple": info.multiple},
        ask=_ask(info.question, info.options, multiple=info.multiple),
    )


def _ask(question: str, options: Sequence[Choice], *, multiple: bool) -> AnswerForm:
    return AnswerForm(
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


def _ask_of_values(question: str, values: Sequence[Json]) -> AnswerForm:
    """The form of an answer that has only a few values."""
    words = {True: "Yes", False: "No"}
    options = tuple(
        Option(id=str(at), label=words[one] if isinstance(one, bool) else str(one), value=one)
        for at, one in enumerate(values, 1)
    )
    return AnswerForm(form=Form.CHOICE, question=question, options=options)
