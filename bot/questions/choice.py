"""Choice of one or several options: as a question, or for an argument of a call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from agents.core.codec import Json
from agents.gates.questions import CallChoiceInfo, Choice, ChoiceInfo, ChoiceResult
from bot.errors import InvalidInputError
from bot.layout.action_ids import PICKS, ActionId
from bot.layout.arguments import Listed, text_width
from bot.layout.blocks import LABEL, Block, line, literal, numbered, plain, rich
from bot.layout.forms.fields import MOST_CHECKS
from bot.layout.modals import Errors, Values, modal, named, notice_modal, read_state
from bot.layout.text import ShownText, clip, is_plain, show, width
from bot.questions.base import QuestionDraft, as_object, as_text
from bot.questions.call import call_brief
from bot.questions.drawing import DecisionDraft, DrawnQuestion, OpenModal, Proposal, register
from bot.questions.form import AnswerForm, Form, Option, edited_digest
from bot.questions.shown import rest_of, tool_of
from bot.questions.texts import QUESTION_WHOLE
from bot.questions.values import (
    few_values,
    questions_in,
    title_of_questions,
    typed_answer,
    value_brief,
)
from bot.questions.yes import Proof, yes
from bot.records.approval import Approval, Decision, Kind, Status
from bot.redaction.call import mask_call, written
from bot.redaction.masks import Mask, Words, has_guess, length, masks_in
from bot.words import say

CHOICE = "choice"
"""Block id of the options in the form."""
OPTIONS = 2_400
"""Maximum length of all shown options together, in characters."""
OPTION = 400
MOST_SHOWN = 20
"""Maximum number of options on a card. The details show the others."""
MOST_OPTIONS = 100
"""Maximum number of options in a menu."""
_SHORT = 40
"""Maximum length of an option on a button, in characters. A longer one does not fit on a phone."""


def selected(ids: Sequence[str]) -> Json:
    """Return the answer that selects options by their ids."""
    return {"selected": list(ids)}


@register
class ChoiceQuestion(DrawnQuestion):
    """Asks people to select one or several options."""

    form = Form.CHOICE
    kinds = frozenset({Kind.APPROVAL, Kind.QUESTION})

    @classmethod
    def read(cls, info: object) -> QuestionDraft | None:
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
        return replace(brief, ask=_ask_of_values(questions_in(brief)[0], values))

    def takes(self, decision: Decision) -> bool:
        """Accept existing options, with the completed call; or none, if that is permitted."""
        if decision.status is Status.REJECTED:
            return self.ask.can_decline
        ids = as_object(decision.answer)["selected"]
        if not isinstance(ids, list):
            return False
        is_bound = self.digest_of([str(option_id) for option_id in ids]) == decision.digest
        return decision.status is self.yes_status and is_bound

    def no_status(self) -> Status:
        """Return the status after *None of these*, if that is permitted."""
        return Status.REJECTED if self.ask.can_decline else super().no_status()

    def answer(self, info: object) -> object:
        """Return the selection; for a node, the selected value."""
        if not isinstance(info, ChoiceInfo | CallChoiceInfo):
            (option,) = [
                candidate for candidate in self.ask.options if (candidate.id,) == self._selected
            ]
            return option.value
        decision = self.decision
        if decision.status is Status.REJECTED:
            return ChoiceResult(declined=True, reason=self.reason, by=decision.by)
        return ChoiceResult(selected=self._selected, digest=decision.digest, by=decision.by)

    def read_reply(self, text: str) -> Json:
        """Return the option that a reply names by its number or label; None for other replies."""
        wanted = text.strip().casefold().rstrip(".!").strip()
        ids = {
            option.id
            for number, option in enumerate(self.ask.options, 1)
            if wanted in {str(number), option.label.casefold().strip().rstrip(".!").strip()}
        }
        return selected([*ids]) if len(ids) == 1 and not self.is_yes_or_no else None

    def reply_hint(self) -> str:
        """Say how a reply can name an option."""
        if self.is_yes_or_no:
            return super().reply_hint()
        return say("refuse.reply_option")

    def is_yes(self, decision: Decision) -> bool:
        """Count every selection as an approval of what it selects."""
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
        """Whether the options may mean yes and no. Then a reply cannot answer, only buttons."""
        return any(isinstance(option.value, bool) for option in self.ask.options)

    def no_words(self) -> tuple[str, str]:
        """Return the title and button of *None of these…*; for a call, those of a rejection."""
        if self.is_call:
            return super().no_words()
        return say("form.none_title"), say("form.none_submit")

    def needs(self, about: Mapping[str, str]) -> tuple[str, str]:
        """Say that a selection is needed."""
        return say("status.needs_choice"), say("notify.choice", **about)

    def ended(self, who: str, time: str) -> tuple[str, str]:
        """Say whether something was selected."""
        match self.approval.status:
            case Status.APPROVED | Status.ANSWERED:
                return "💬", say("status.chosen", who=who, time=time)
            case Status.REJECTED if not self.is_call:
                return "💬", say("status.none_chosen", who=who, time=time)
            case _:
                return super().ended(who, time)

    def digest_of(self, ids: Sequence[str]) -> str:
        """Return the digest that a selection covers: of the completed call, or of the question.

        Raises:
            InvalidInputError: An option does not exist.
        """
        if not self._chosen(ids):
            raise InvalidInputError("this choice")
        if self.approval.kind is not Kind.APPROVAL:
            return self.approval.digest
        return edited_digest(self.approval, self.with_options(ids))

    def with_options(self, ids: Sequence[str]) -> dict[str, object]:
        """Return a call's arguments with the selection; empty if an option does not exist."""
        values = [option.value for option in self._chosen(ids)]
        if not values:
            return {}
        chosen = values if self.ask.multiple else values[0]
        return {**self.arguments, self.ask.parameter: chosen}

    def who_can(self, who: str) -> str:
        """Say who can select."""
        return say("line.can_choose", who=who)

    def asked(self) -> list[str]:
        """Return the question."""
        return [self.ask.question]

    def content(self) -> tuple[Listed, ...]:
        """Return the question and the options, with the usual content above them."""
        return (self.below(), self.of_call())

    def of_call(self) -> Listed:
        """Return the question, unless it is the title, and the options without a button."""
        words = mask_call(self.ask.question)
        question = show(words, OPTIONS, lines=20)
        heading = line(literal(question.text or "…", "bold"), *rest_of(question.hidden))
        is_title = self.in_title(self.ask.question)
        options = _listed(() if self._is_on_buttons else self.ask.options)
        masks = [*masks_in(words)]
        return Listed(
            elements=(*(() if is_title else (heading,)), *options.elements),
            hidden=options.hidden + (0 if is_title else question.hidden),
            masked=bool(masks) or options.masked,
            guessed=has_guess(masks) or options.guessed,
            altered=question.altered or options.altered,
            turned=question.turned or options.turned,
        )

    def answered(self) -> str:
        """The selected options, with their numbers."""
        ids = self.stored.get("selected")
        chosen = [
            f"{number}. {written(mask_call(option.label))}"
            for number, option in enumerate(self.ask.options, 1)
            if isinstance(ids, list) and option.id in ids
        ]
        return "\n".join(chosen)

    def final(self, decision: Decision) -> Approval:
        """Return a call with the selection in place of the model's own value."""
        approval = self.approval
        if not approval.tool.strip() or decision.answer is None:
            return approval
        arguments = approval.arguments
        if self.ask.parameter not in arguments:
            title, preview = decision.title or approval.title, decision.preview or approval.preview
            return approval.changed(title=title, preview=preview)
        ids = self.stored.get("selected")
        values = [
            option.value
            for option in self.ask.options
            if isinstance(ids, list) and option.id in ids
        ]
        chosen = values if self.ask.multiple else (values or [None])[0]
        return approval.changed(
            arguments={**arguments, self.ask.parameter: chosen},
            title=decision.title or say("card.other_choice", tool=tool_of(approval)),
            preview=decision.preview,
        )

    def laid_out(self) -> frozenset[str]:
        """The arguments that the details do not show as JSON: a free choice lists its options."""
        names = {"question", "questions", "options", "multiple"}
        return frozenset() if self.is_call else frozenset(names)

    def notes(self) -> Iterator[str]:
        """Say that there are too many options."""
        if len(self.ask.options) > MOST_OPTIONS:
            yield say("line.too_many_options")

    def agree(self, proof: Proof) -> Iterator[Block]:
        """A button for each option, if there are only a few short ones."""
        for label, action in zip(self._picks, PICKS, strict=False):
            yield yes(action, self.button(label, ActionId.DETAILS), proof)

    def yes(self) -> Iterator[Block]:
        """*Choose…*, if the options have no buttons."""
        if not self._picks and 0 < len(self.ask.options) <= MOST_OPTIONS:
            yield self.button(say("button.choose"), ActionId.CHOOSE, "primary")

    def no(self) -> Iterator[Block]:
        """*None of these…*, unless the menu has it; for a call, *Reject…*."""
        if self.ask.can_decline and self.is_call:
            yield self.button(say("button.reject"), ActionId.REJECT)
        elif self.ask.can_decline and not self._picks:
            yield self.button(say("button.none_of_these"), ActionId.REJECT)

    def more(self) -> Iterator[tuple[str, ActionId]]:
        """*None of these…* in the menu, if the options have buttons."""
        if self.ask.can_decline and not self.is_call and self._picks:
            yield say("button.none_of_these"), ActionId.REJECT

    def press(self, action: str) -> OpenModal | DecisionDraft:
        """Select the option with the button's number, or open the form."""
        if action == ActionId.CHOOSE:
            return OpenModal(view=self._modal(), agrees=ActionId.CHOOSE_MODAL)
        if action not in PICKS:
            return super().press(action)
        number = [str(pick) for pick in PICKS].index(action)
        if number >= len(self.ask.options):
            raise InvalidInputError("this button")
        return self._draft([self.ask.options[number].id])

    def submit(self, modal_id: str, values: Values) -> DecisionDraft | Proposal | Errors:
        """Read the form: ids of the selected options, in their order."""
        if modal_id != ActionId.CHOOSE_MODAL:
            return super().submit(modal_id, values)
        state = read_state(values, CHOICE)
        single = [state.get("selected_option")]
        selection = state.get("selected_options") if self.ask.multiple else single
        listed = selection if isinstance(selection, list) else []
        chosen = [option.get("value") for option in listed if isinstance(option, dict)]
        ids = [option.id for index, option in enumerate(self.ask.options) if str(index) in chosen]
        if not ids or len(ids) != len(chosen):
            return {CHOICE: say("error.choose_option")}
        return self._draft(ids)

    @cached_property
    def _picks(self) -> list[str]:
        """The labels of the options' buttons; empty if there are too many or too long ones."""
        options = self.ask.options
        if self.ask.multiple or len(options) > len(PICKS):
            return []
        labels = [option_label(option, number, LABEL) for number, option in enumerate(options, 1)]
        short = all(
            is_plain(label) and "\n" not in label and width(label) <= _SHORT for label in labels
        )
        return labels if short else []

    @property
    def _is_on_buttons(self) -> bool:
        """Whether the buttons show everything about the options."""
        is_bare = not any(option.description.strip() for option in self.ask.options)
        return bool(self._picks) and (is_bare or self.is_yes_or_no)

    def _draft(self, ids: Sequence[str]) -> DecisionDraft:
        return replace(
            self.draft(answer=selected(ids)),
            digest=self.digest_of(ids),
            completes=(self.with_options(ids) or None) if self.is_call else None,
        )

    def _chosen(self, ids: Sequence[str]) -> list[Option]:
        """The options with these ids; empty if the selection is not valid."""
        options = [option for option in self.ask.options if option.id in ids]
        fits = len(options) == len(ids) and (len(options) == 1 or self.ask.multiple)
        return options if fits else []

    @property
    def _selected(self) -> tuple[str, ...]:
        selection = self.given["selected"]
        if not isinstance(selection, list):
            raise TypeError("the choice is no list")
        return tuple(as_text(option_id) for option_id in selection)

    def _modal(self) -> Block:
        """Return the form with the options, or a notice that there is no form."""
        ask = self.ask
        if not 0 < len(ask.options) <= MOST_OPTIONS:
            return notice_modal(say("form.choose_title"), say("form.choose_none"))
        few = len(ask.options) <= MOST_CHECKS
        if ask.multiple:
            kind = "checkboxes" if few else "multi_static_select"
        else:
            kind = "radio_buttons" if few else "static_select"
        options = [_choosable(option, index) for index, option in enumerate(ask.options)]
        block: Block = {
            "type": "input",
            "block_id": CHOICE,
            "label": plain(say("form.choose_many" if ask.multiple else "form.choose_one")),
            "optional": False,
            "element": {"type": kind, "action_id": str(ActionId.VALUE), "options": options},
        }
        question = show(mask_call(ask.question), QUESTION_WHOLE, lines=40).text
        about = [named(self.approval)] if self.is_call else []
        blocks = [*about, rich(line(literal(question or "…", "bold"))), block]
        words = (say("form.choose_title"), say("form.choose_title"))
        return modal(self.approval, ActionId.DETAILS_MODAL, words, blocks)


def _listed(options: Sequence[Option]) -> Listed:
    """Format options as a numbered list, with their descriptions."""
    lines: list[Block] = []
    hidden, room = 0, OPTIONS
    masks: list[Mask] = []
    views: list[ShownText] = []
    for number, option in enumerate(options, 1):
        label, more_about = mask_call(option.label), mask_call(option.description)
        masks += [*masks_in(label), *masks_in(more_about)]
        if number > MOST_SHOWN or room < OPTION:
            hidden += length(label) + length(more_about)
            continue
        head = show(label, OPTION, lines=2)
        rest = show(more_about, OPTION, lines=5)
        parts = [literal(head.text or "…", "bold"), *rest_of(head.hidden)]
        if rest.text:
            parts += [literal(f" \u2013 {rest.text}"), *rest_of(rest.hidden)]
        lines.append(line(*parts))
        views += [head, rest]
        room -= text_width(lines[-1:])
        hidden += head.hidden + rest.hidden
    return Listed(
        elements=(numbered(lines),) if lines else (),
        hidden=hidden,
        masked=bool(masks),
        guessed=has_guess(masks),
        altered=any(view.altered for view in views),
        turned=any(view.turned for view in views),
    )


def option_label(option: Option, number: int, most: int) -> str:
    """Format an option as a label. The number comes first, because the label is untrusted."""
    if isinstance(option.value, bool) and option.label.strip():
        return clip(mask_call(option.label), most)
    return f"{number}. {clip(mask_call(option.label), most - 5)}"


def _choosable(option: Option, index: int) -> Block:
    made: Block = {"text": plain(option_label(option, index + 1, LABEL)), "value": str(index)}
    if option.description.strip():
        made["description"] = plain(clip(mask_call(option.description), LABEL))
    return made


def _of_call(info: CallChoiceInfo) -> QuestionDraft:
    ask = replace(
        _ask(info.question, info.options, multiple=info.multiple),
        reason=info.reason,
        parameter=info.parameter,
        secret=info.secret,
        shown=info.shown,
    )
    return replace(call_brief(info), ask=ask)


def _free(info: ChoiceInfo) -> QuestionDraft:
    listed: list[Json] = [[option.id, option.label, option.description] for option in info.options]
    return QuestionDraft(
        kind=Kind.QUESTION,
        title=title_of_questions([info.question]),
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
    """Return the form of an answer that has only a few possible values."""
    words = {True: say("line.yes"), False: say("line.no")}
    options = tuple(
        Option(
            id=str(at), label=words[value] if isinstance(value, bool) else str(value), value=value
        )
        for at, value in enumerate(values, 1)
    )
    return AnswerForm(form=Form.CHOICE, question=question, options=options)
