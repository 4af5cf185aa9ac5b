"""Questions with a typed input for each value: the form, why there may be none, and its errors."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from agents.core.errors import InvalidArgumentsError
from bot.errors import InvalidInputError
from bot.layout.arguments import read_object
from bot.layout.blocks import Block
from bot.layout.forms.edit import drawn, too_long
from bot.layout.forms.fields import Field, NotEditable, fields_of
from bot.layout.forms.parse import place
from bot.layout.forms.schema import pointer
from bot.layout.modals import Errors, modal, notice_modal
from bot.questions.drawing import DrawnQuestion
from bot.words.mrkdwn import escape


class InputsQuestion(DrawnQuestion):
    """A question whose schema makes a form."""

    purpose = ("Edit", "edited")
    """The purpose of the form: the title of a notice, and the deed that needs a form."""

    @cached_property
    def obstacle(self) -> str:
        """Why there is no form; empty when there is one, or none is wanted."""
        if self.ask.schema is None:
            return ""
        fields = self._fields
        return fields.reason if isinstance(fields, NotEditable) else too_long(fields)

    def notes(self) -> Iterator[str]:
        """Say why there is no form."""
        if self.obstacle:
            yield f"This cannot be {self.purpose[1]} here: {escape(self.obstacle)}"

    def inputs_modal(self, callback: str, words: tuple[str, str], about: Block) -> Block:
        """Draw the form; say so when there is none."""
        blocks = self._fields if isinstance(self._fields, NotEditable) else drawn(self._fields)
        if isinstance(blocks, NotEditable):
            title, done = self.purpose
            return notice_modal(title, f"This cannot be {done} here: {escape(blocks.reason)}")
        return modal(self.approval, callback, words, [about, *blocks])

    def place_errors(self, error: Exception) -> Errors:
        """Put what the tool's own validation found at the inputs of the form."""
        cause = error if isinstance(error, InvalidArgumentsError) else error.__cause__
        if not isinstance(cause, InvalidArgumentsError):
            return self._place({"": "The tool does not take these arguments."})
        return self._place({pointer(*fault.path): fault.message for fault in cause.errors})

    def refuse(self, why: str) -> Errors:
        """Say at the form why the rules do not let a call run with what was filled in."""
        return self._place({"": f"Not possible: {why}."})

    def _place(self, faults: dict[str, str]) -> Errors:
        if isinstance(self._fields, NotEditable):
            raise InvalidInputError("this form")
        return place(faults, self._fields)

    @cached_property
    def _fields(self) -> tuple[Field, ...] | NotEditable:
        if not self.ask.schema or read_object(self.approval.arguments_json) is None:
            return NotEditable(reason="the tool does not say what its arguments may be.")
        return fields_of(self.ask.schema, self.form_values(), self.ask.masks)
