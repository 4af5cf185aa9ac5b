"""Questions with one typed input per value: the form, and its errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

from agents.core.errors import InvalidArgumentsError
from bot.errors import InvalidInputError
from bot.layout.action_ids import ActionId, with_rest
from bot.layout.blocks import Block, plain
from bot.layout.forms.edit import drawn, label_of, matching_options
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
"""Maximum length of an alert, in characters: Slack's limit."""


class InputsQuestion(DrawnQuestion):
    """A question whose schema makes a form."""

    no_form = "line.no_edit"
    """Key of the text that says why there is no form."""
    no_form_title = "form.edit_title"
    """Key of the title of that notice."""

    starts_empty = False
    """Whether the form starts empty, so that people must fill in required values."""

    @cached_property
    def obstacle(self) -> str:
        """Why there is no form; empty if there is a form, or none is wanted."""
        if self.ask.schema is None:
            return ""
        form = self._form()
        return form.reason if isinstance(form, NotEditable) else ""

    @property
    def page_count(self) -> int:
        """Number of pages of the form; 0 without a form."""
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
        """Render the form, or a notice that there is none.

        Args:
            callback: Callback id of the modal.
            words: Title of the modal, and its button.
            about: First block.
            draft: The page to show, with the values typed on other pages.
            more: Inputs at the end of each page; typed values stay.
        """
        form = self._form(draft)
        blocks = form if isinstance(form, NotEditable) else drawn(form.shown)
        if isinstance(form, NotEditable) or isinstance(blocks, NotEditable):
            reason = blocks.reason if isinstance(blocks, NotEditable) else ""
            return notice_modal(say(self.no_form_title), say(self.no_form, why=escape(reason)))
        view = modal(self.approval, callback, words, [about, *_page_select(form), *blocks, *more])
        return {**view, "private_metadata": with_rest(view["private_metadata"], draft.text())}

    def turn(self, values: Values, page: int) -> OpenModal:
        """Render another page of the form, and keep the values typed on this page.

        Args:
            values: The typed values, with the draft.
            page: Number of the page to go to.

        Returns:
            The modal. If this page has errors, the modal shows this page with the errors. Slack
            keeps the values of inputs that stay.

        Raises:
            InvalidInputError: There is no such form.
        """
        before = draft_of(values)
        form = self._form(before)
        if isinstance(form, NotEditable):
            raise InvalidInputError("this form")
        draft = form.turned(values, page)
        if isinstance(draft, dict):
            names = {name: label_of(field) for field in form.shown for name in field.block_ids}
            faults = [f"{names.get(name, name)}: {words}" for name, words in draft.items()]
            return self._with_notice(before, " ".join(faults))
        if len(draft.text()) > MOST_DRAFT:
            return self._with_notice(before, say("form.edit_too_much"))
        return self.form_modal(draft)

    def _with_notice(self, draft: FormDraft, words: str) -> OpenModal:
        """Return the modal with a notice at its top."""
        form = self.form_modal(draft)
        notice = {"type": "alert", "level": "error", "text": plain(clip(words, _NOTICE))}
        return replace(form, view={**form.view, "blocks": [notice, *form.view["blocks"]]})

    def form_modal(self, draft: FormDraft = NO_DRAFT) -> OpenModal:  # noqa: ARG002 - a port
        """The modal with the form."""
        raise InvalidInputError("this form")

    def search(self, values: Values, block_id: str, typed: str) -> list[Block]:
        """Find the choices of an input that match a typed text.

        Args:
            values: The typed values, with the draft.
            block_id: Block id of the input.
            typed: A part of a choice.

        Raises:
            InvalidInputError: There is no such input.
        """
        form = self._form(draft_of(values))
        field = None if isinstance(form, NotEditable) else form.field(block_id)
        if field is None or not field.is_searched:
            raise InvalidInputError("this form")
        return matching_options(field, typed)

    def place_errors(self, error: Exception) -> Errors:
        """Assign the tool's validation errors to the inputs of the form."""
        cause = error if isinstance(error, InvalidArgumentsError) else error.__cause__
        if not isinstance(cause, InvalidArgumentsError):
            return self._place({"": say("error.not_taken")})
        return self._place({pointer(*fault.path): fault.message for fault in cause.errors})

    def refuse(self, why: str) -> Errors:
        """Return an error for the form: why the policy denies the call with these values."""
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
    """The menu of the form's pages; empty for a single page."""
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
