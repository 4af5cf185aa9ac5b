"""The pages of a form that is longer than Slack lets a modal be, and what was typed on others.

What people changed on a page that they left is kept in the modal itself, as a draft: the form is
the only place that knows it. A draft comes back from Slack like all else that people type: nothing
in it is trusted, and the whole is checked when it is submitted.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from bot.errors import InvalidInputError
from bot.layout.action_ids import ActionId
from bot.layout.blocks import Block
from bot.layout.data import same
from bot.layout.forms.edit import MOST_BLOCKS, MOST_BYTES, ceiling, drawn, in_order, weight_of
from bot.layout.forms.fields import Field, FieldKind, NotEditable, fields_of
from bot.layout.forms.leaves import Missing, Path, rebuilt
from bot.layout.forms.parse import EditResult, place, read_fields
from bot.layout.forms.schema import Schema, check_arguments
from bot.layout.inputs import Values, read_state
from bot.redaction.masks import NO_NAMES, Names

DRAFT = "draft"
"""Stands for a block among the values of a modal; no block of ours has this id."""
MOST_DRAFT = 2_800
"""Characters of a draft: Slack keeps 3,000 with a modal."""
_MOST_OPENED = 200_000
"""Bytes of a draft that was made small."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormDraft:
    """The state of a form that has pages.

    Attributes:
        page: The number of the page that is shown, from 0.
        changes: The values that were changed on others, by path; `Missing.MISSING` for one that
            was taken away.
    """

    page: int = 0
    changes: Mapping[Path, object] = field(default_factory=lambda: MappingProxyType({}))

    def text(self) -> str:
        """Write it for a modal; empty for the first page of an untouched form."""
        if not self.page and not self.changes:
            return ""
        rows = [
            [list(path)] if value is Missing.MISSING else [list(path), value]
            for path, value in self.changes.items()
        ]
        data = json.dumps([self.page, rows], ensure_ascii=False, separators=(",", ":"))
        return base64.urlsafe_b64encode(zlib.compress(data.encode())).decode()

    @classmethod
    def read(cls, text: str) -> FormDraft:
        """Read what a modal kept.

        Raises:
            InvalidInputError: It is no draft.
        """
        if not text:
            return cls()
        try:
            unpacker = zlib.decompressobj()
            data = unpacker.decompress(base64.urlsafe_b64decode(text.encode()), _MOST_OPENED)
            if not unpacker.eof:
                raise InvalidInputError("this form")
            page, rows = json.loads(data)
            changes = {_path(row[0]): row[1] if len(row) > 1 else Missing.MISSING for row in rows}
        except (ValueError, TypeError, LookupError, zlib.error, RecursionError) as error:
            raise InvalidInputError("this form") from error
        if not isinstance(page, int) or isinstance(page, bool) or page < 0:
            raise InvalidInputError("this form")
        return cls(page=page, changes=changes)


NO_DRAFT = FormDraft()
"""The first page of an untouched form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputForm:
    """A form with its pages, as a draft has it.

    Attributes:
        schema: The tool's JSON schema.
        before: The arguments as asked for; empty for a form that starts empty.
        current: The same with the changes of the draft.
        pages: The fields of each page.
        page: The number of the page that is shown.
        is_new: Whether it started empty, so that all that is needed must be given.
    """

    schema: Schema
    before: Mapping[str, Any]
    current: Mapping[str, Any]
    pages: tuple[tuple[Field, ...], ...]
    page: int
    is_new: bool = False

    @property
    def shown(self) -> tuple[Field, ...]:
        """The fields of the page that is shown."""
        return self.pages[self.page]

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields of all pages."""
        return tuple(one for page in self.pages for one in page)

    def field(self, block_id: str) -> Field | None:
        """The field of the page whose input a block is; None where there is none."""
        return next((one for one in self.shown if block_id in one.block_ids), None)

    def read(self, values: Values) -> EditResult:
        """Read the page that is shown, with the changes of the others: the whole form.

        Args:
            values: `view.state.values` of the submission.

        Returns:
            All arguments, exactly those of before where nothing was changed; or the errors, each
            at its input, or at the first of the page where it belongs to another.
        """
        new, errors = read_fields(self.shown, values, is_new=self.is_new)
        made = self._with(new)
        if not errors and not self.is_new and same(made, dict(self.before)):
            return EditResult(arguments=made)
        faults = check_arguments(self.schema, made)
        if not self.is_new:
            faults = {path: words for path, words in faults.items() if self._is_news(path, made)}
        placed = place(faults, self.shown) if faults else {}
        found = {**placed, **errors}
        return EditResult(errors=found) if found else EditResult(arguments=made)

    def turned(self, values: Values, page: int) -> FormDraft | dict[str, str]:
        """Go to another page with what was typed on this one.

        Args:
            values: As typed; an input that was not sent has what it had.
            page: The number of the page to go to.

        Returns:
            The draft; or the errors of this page, by block.
        """
        sent = [one for one in self.shown if all(name in values for name in one.block_ids)]
        new, errors = read_fields(sent, values)
        if errors:
            return errors
        now = self._with(new)
        known = {one.path: one.value for one in _fields(self.schema, self.before)}
        changes = {
            one.path: one.value
            for one in _fields(self.schema, now)
            if not same(one.value, known.get(one.path, Missing.MISSING))
        }
        return FormDraft(page=min(max(page, 0), len(self.pages) - 1), changes=changes)

    def _with(self, new: Mapping[Path, object]) -> dict[str, Any]:
        changed = {
            one.path: new[one.path]
            for one in self.shown
            if one.path in new and not same(new[one.path], one.value)
        }
        made = rebuilt(self.current, changed)
        if self.is_new:
            nested = {one.path[0] for one in self.fields if len(one.path) > 1}
            needed = self.schema.get("required", ())
            made |= {name: {} for name in needed if name in nested - made.keys()}
        return made

    def _is_news(self, path: str, made: Mapping[str, Any]) -> bool:
        """Whether a fault was not there before: the tool took that when it was asked for."""
        if not path:
            return True
        name = path.split("/")[1].replace("~1", "/").replace("~0", "~")
        missing = Missing.MISSING
        return not same(made.get(name, missing), self.before.get(name, missing))


def edit_form(
    schema: Schema, current: Mapping[str, Any], masks: Names = NO_NAMES, draft: FormDraft = NO_DRAFT
) -> list[Block] | NotEditable:
    """Draw the inputs of a page of a form.

    Args:
        schema: The tool's JSON schema.
        current: The arguments as asked for.
        masks: What the tool's author says of them.
        draft: The page, and what was changed on others.

    Returns:
        The blocks, or why there is no form.
    """
    form = form_of(schema, current, masks, draft)
    return form if isinstance(form, NotEditable) else drawn(form.shown)


def read_edit_form(
    schema: Schema, current: Mapping[str, Any], values: Values, masks: Names = NO_NAMES
) -> EditResult:
    """Read a submitted form, with what was typed on other pages.

    Args:
        schema: The tool's JSON schema.
        current: The arguments as asked for.
        values: `view.state.values` of the submission, with its `DRAFT`.
        masks: What the tool's author says of the arguments.

    Returns:
        The edited arguments, or the errors, each at its input. When nothing was changed, the
        arguments are exactly the current ones.

    Raises:
        InvalidInputError: There is no such form.
    """
    return _of(form_of(schema, current, masks, draft_of(values))).read(values)


def read_new_form(schema: Schema, values: Values) -> EditResult:
    """Read a submitted form that started empty: all that is needed must be there.

    Args:
        schema: JSON schema of the values.
        values: `view.state.values` of the submission, with its `DRAFT`.

    Returns:
        The values, or the errors, each at its input.

    Raises:
        InvalidInputError: There is no such form.
    """
    return _of(form_of(schema, {}, draft=draft_of(values), is_new=True)).read(values)


def draft_of(values: Values) -> FormDraft:
    """The draft that a modal kept, which stands among its values.

    Raises:
        InvalidInputError: It is none.
    """
    text = read_state(values, DRAFT).get("value", "")
    return FormDraft.read(text if isinstance(text, str) else "?")


def with_draft(values: Values, text: str) -> Values:
    """The values of a modal with the draft that it kept."""
    return {**values, DRAFT: {ActionId.VALUE: {"value": text}}}


def _of(form: InputForm | NotEditable) -> InputForm:
    if isinstance(form, NotEditable):
        raise InvalidInputError("this form")
    return form


def form_of(
    schema: Schema,
    before: Mapping[str, Any],
    masks: Names = NO_NAMES,
    draft: FormDraft = NO_DRAFT,
    *,
    is_new: bool = False,
) -> InputForm | NotEditable:
    """Make a form.

    Args:
        schema: The tool's JSON schema.
        before: The arguments as asked for.
        masks: What the tool's author says of them.
        draft: What was changed on other pages; a change of what nobody may edit is left out.
        is_new: Whether the form starts empty.
    """
    first = fields_of(schema, before, masks)
    if isinstance(first, NotEditable):
        return first
    open_paths = {one.path for one in first if one.kind is not FieldKind.FIXED}
    changes = {path: value for path, value in draft.changes.items() if path in open_paths}
    current = rebuilt(before, changes) if changes else dict(before)
    fields = fields_of(schema, current, masks) if changes else first
    if isinstance(fields, NotEditable):
        return fields
    pages = tuple(_pages(in_order(fields)))
    page = min(draft.page, len(pages) - 1)
    return InputForm(
        schema=schema, before=before, current=current, pages=pages, page=page, is_new=is_new
    )


def _pages(fields: Sequence[Field]) -> list[tuple[Field, ...]]:
    """Put fields on as few pages as they fit on."""
    pages: list[list[Field]] = [[]]
    blocks = size = 0
    # What a field weighs is found out only where it may matter: drawing takes time.
    weigh = ceiling if sum(map(ceiling, fields)) <= MOST_BYTES else weight_of
    for one in fields:
        more, weight = len(one.parts) + bool(one.groups), weigh(one)
        if pages[-1] and (blocks + more > MOST_BLOCKS or size + weight > MOST_BYTES):
            pages.append([])
            blocks = size = 0
        pages[-1].append(one)
        blocks, size = blocks + more, size + weight
    return [tuple(page) for page in pages]


def _fields(schema: Schema, arguments: Mapping[str, Any]) -> tuple[Field, ...]:
    found = fields_of(schema, arguments)
    return () if isinstance(found, NotEditable) else found


def _path(names: object) -> Path:
    if not isinstance(names, list) or not names or not all(isinstance(one, str) for one in names):
        raise TypeError("no path")
    return tuple(names)
