"""Questions with one typed input per value: the form, and its errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

from agents.core.errors import InvalidArgumentsError
from bot.errors import InvalidInputError
from bot.layout.action_ids import ActionId, with_rest
from bot.layout.blocks import Block, plain
from bot.layout.forms.edit import drawn, found, label_of
from bot.layout.forms.fields import OPTION, NotEditable
from bot.layout.forms.pages import MOST_DRAFT, NO_DRAFT, FormDraft, InputForm, draft_of, form_of
from bot.layout.forms.parse import place
from bot.layout.forms.schema import pointer
from bot.layout.modals import Errors, Values, modal, notice_modal
from bot.layout.text import clip
from bot.questions.drawing import DrawnQuestion, OpenModal
from bot.words import say
from bot.words.mrkdwn import escape

_NOTICE = 200
"""Characters of an alert: Slack's limit."""


class InputsQuestion(DrawnQuestion):
    """A question whose schema makes a form."""

    no_form = "line.no_edit"
    """The key of the text that says why there is no form."""
    no_form_title = "form.edit_title"
    """The key of the title of such a notice."""

    starts_empty = False
    """Whether people are asked for all of it, so that what is needed has to be given."""

    @cached_property
    def obstacle(self) -> str:
        """Why there is no form; empty when there is one, or none is wanted."""
        if self.ask.schema is None:
            return ""
        form = self._form()
        return form.reason if isinstance(form, NotEditable) else ""

    @property
    def page_count(self) -> int:
        """The number of pages of the form; 0 where there is none."""
        form = self._form()
        return 0 if isinstance(form, NotEditable) else len(form.pages)

    def notes(self) -> Iterator[str]:
        """Say why there is no form."""
        if self.obstacle:
            yield say(self.no_form, why=escape(self.obstacle))

    def inputs_modal(
        self,
        callback: str,
        words: tuple[str, str],
        about: Block,
        draft: FormDraft = NO_DRAFT,
        *,
        more: Sequence[Block] = (),
    ) -> Block:
        """Draw the form; say so when there is none.

        Args:
            callback: Of the modal.
            words: Its title, and its button.
            about: Its first block.
            draft: The page to show, with what was changed on others.
            more: Inputs at the end of each page; what is typed there stays.
        """
        form = self._form(draft)
        blocks = form if isinstance(form, NotEditable) else drawn(form.shown)
        if isinstance(form, NotEditable) or isinstance(blocks, NotEditable):
            reason = blocks.reason if isinstance(blocks, NotEditable) else ""
            return notice_modal(say(self.no_form_title), say(self.no_form, why=escape(reason)))
        view = modal(self.approval, callback, words, [about, *_page_select(form), *blocks, *more])
        return {**view, "private_metadata": with_rest(view["private_metadata"], draft.text())}

    def turn(self, values: Values, page: int) -> OpenModal:
        """Draw another page of the form, with what was typed on this one.

        Args:
            values: As typed, with the draft.
            page: Number of the page to go to.

        Returns:
            The modal; of the same page where something has to be corrected first, and what. Slack
            keeps what is typed in inputs that stay.

        Raises:
            InvalidInputError: There is no such form.
        """
        before = draft_of(values)
        form = self._form(before)
        if isinstance(form, NotEditable):
            raise InvalidInputError("this form")
        draft = form.turned(values, page)
        if isinstance(draft, dict):
            names = {name: label_of(one) for one in form.shown for name in one.block_ids}
            faults = [f"{names.get(name, name)}: {words}" for name, words in draft.items()]
            return self._with_notice(before, " ".join(faults))
        if len(draft.text()) > MOST_DRAFT:
            return self._with_notice(before, say("form.edit_too_much"))
        return self.form_modal(draft)

    def _with_notice(self, draft: FormDraft, words: str) -> OpenModal:
        """The modal as it is, with our words at its top."""
        form = self.form_modal(draft)
        notice = {"type": "alert", "level": "error", "text": plain(clip(words, _NOTICE))}
        return replace(form, view={**form.view, "blocks": [notice, *form.view["blocks"]]})

    def form_modal(self, draft: FormDraft = NO_DRAFT) -> OpenModal:  # noqa: ARG002 - a port
        """The modal with the form."""
        raise InvalidInputError("this form")

    def search(self, values: Values, block_id: str, typed: str) -> list[Block]:
        """Find the choices of an input that fit what somebody typed.

        Args:
            values: With the draft.
            block_id: Of the input.
            typed: A part of a choice.

        Raises:
            InvalidInputError: There is no such input.
        """
        form = self._form(draft_of(values))
        field = None if isinstance(form, NotEditable) else form.field(block_id)
        if field is None or not field.is_searched:
            raise InvalidInputError("this form")
        return found(field, typed)

    def place_errors(self, error: Exception) -> Errors:
        """Put what the tool's own validation found at the inputs of the form."""
        cause = error if isinstance(error, InvalidArgumentsError) else error.__cause__
        if not isinstance(cause, InvalidArgumentsError):
            return self._place({"": say("error.not_taken")})
        return self._place({pointer(*fault.path): fault.message for fault in cause.errors})

    def refuse(self, why: str) -> Errors:
        """Say at the form why the rules do not let a call run with what was filled in."""
        return self._place({"": say("error.denied", why=why.rstrip("."))})

    def _place(self, faults: dict[str, str]) -> Errors:
        form = self._form()
        if isinstance(form, NotEditable):
            raise InvalidInputError("this form")
        return place(faults, form.shown)

    def _form(self, draft: FormDraft = NO_DRAFT) -> InputForm | NotEditable:
        if not self.ask.schema:
            return NotEditable(reason=say("form.edit_no_schema"))
        before, masks = self.form_values(), self.ask.masks
        return form_of(self.ask.schema, before, masks, draft, is_new=self.starts_empty)


def _page_select(form: InputForm) -> list[Block]:
    """The menu of the form's pages; nothing where there is one."""
    count = len(form.pages)
    if count == 1:
        return []
    options = []
    for number, page in enumerate(form.pages):
        ends = label_of(page[0]), label_of(page[-1])
        words = say("form.edit_page", n=number + 1, of=count, first=ends[0], last=ends[1])
        options.append({"text": plain(clip(words, OPTION)), "value": str(number)})
    menu = {
        "type": "static_select",
        "action_id": str(ActionId.EDIT_PAGE),
        "options": options,
        "initial_option": options[form.page],
    }
    return [{"type": "actions", "block_id": "page", "elements": [menu]}]
