"""Pages of a form that is too long for one modal, and the draft of other pages.

Changes on other pages are stored in the modal itself, as a draft. A draft comes back from Slack
like other input: it is not trusted, and the whole form is validated on submission.
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
from bot.layout.blocks import Values, read_state
from bot.layout.data import same
from bot.layout.forms.edit import MOST_BLOCKS, MOST_BYTES, ceiling, in_order, weight_of
from bot.layout.forms.fields import Field, FieldKind, NotEditable, fields_of
from bot.layout.forms.leaves import Missing, Path, rebuilt
from bot.layout.forms.parse import EditResult, place, read_fields
from bot.layout.forms.schema import Schema, check_arguments
from bot.redaction.masks import NO_NAMES, Names

DRAFT = "draft"
"""Key of the draft among the values of a modal; never a block id of ours."""
MOST_DRAFT = 2_800
"""The maximum number of characters of a draft; Slack stores 3,000 with a modal."""
_MOST_OPENED = 200_000
"""The maximum number of bytes of a decompressed draft."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormDraft:
    """The state of a form with pages.

    Attributes:
        page: Number of the current page, from 0.
        changes: Changed values of other pages, by path; `Missing.MISSING` for a deleted value.
    """

    page: int = 0
    changes: Mapping[Path, object] = field(default_factory=lambda: MappingProxyType({}))

    def text(self) -> str:
        """Serialize the draft; empty for the first page of an unchanged form."""
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
        """Parse the draft of a modal.

        Raises:
            InvalidInputError: The text is not a draft.
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
"""The first page of an unchanged form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputForm:
    """A form with its pages and draft.

    Attributes:
        schema: The tool's JSON schema.
        before: The requested arguments; empty for a new form.
        current: The same with the changes of the draft.
        pages: The fields of each page.
        page: Number of the current page.
        is_new: Whether the form started empty, so that required values must be given.
    """

    schema: Schema
    before: Mapping[str, Any]
    current: Mapping[str, Any]
    pages: tuple[tuple[Field, ...], ...]
    page: int
    is_new: bool = False

    @property
    def shown(self) -> tuple[Field, ...]:
        """The fields of the current page."""
        return self.pages[self.page]

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields of all pages."""
        return tuple(form_field for page in self.pages for form_field in page)

    def field(self, block_id: str) -> Field | None:
        """Return the field of a block on the current page, or None."""
        return next(
            (form_field for form_field in self.shown if block_id in form_field.block_ids), None
        )

    def read(self, values: Values) -> EditResult:
        """Parse the whole form: the current page, and the draft of the other pages.

        Returns:
            All arguments, exactly the requested ones if nothing was changed. Or the errors by
            input; errors of other pages are at the first input.
        """
        new, errors = read_fields(self.shown, values, is_new=self.is_new)
        made = self._with(new)
        if not errors and not self.is_new and same(made, dict(self.before)):
            return EditResult(arguments=made)
        faults = check_arguments(self.schema, made)
        if not self.is_new:
            faults = {path: words for path, words in faults.items() if self._is_news(path, made)}
        placed = place(faults, self.shown) if faults else {}
        all_errors = {**placed, **errors}
        return EditResult(errors=all_errors) if all_errors else EditResult(arguments=made)

    def turned(self, values: Values, page: int) -> FormDraft | dict[str, str]:
        """Go to another page and keep the changes of this page.

        Returns:
            The draft, or the errors of this page by block.
        """
        sent = [
            form_field
            for form_field in self.shown
            if all(name in values for name in form_field.block_ids)
        ]
        new, errors = read_fields(sent, values)
        if errors:
            return errors
        now = self._with(new)
        known = {
            form_field.path: form_field.value for form_field in _fields(self.schema, self.before)
        }
        changes = {
            form_field.path: form_field.value
            for form_field in _fields(self.schema, now)
            if not same(form_field.value, known.get(form_field.path, Missing.MISSING))
        }
        return FormDraft(page=min(max(page, 0), len(self.pages) - 1), changes=changes)

    def _with(self, new: Mapping[Path, object]) -> dict[str, Any]:
        changed = {
            form_field.path: new[form_field.path]
            for form_field in self.shown
            if form_field.path in new and not same(new[form_field.path], form_field.value)
        }
        made = rebuilt(self.current, changed)
        if self.is_new:
            nested = {form_field.path[0] for form_field in self.fields if len(form_field.path) > 1}
            needed = self.schema.get("required", ())
            made |= {name: {} for name in needed if name in nested - made.keys()}
        return made

    def _is_news(self, path: str, made: Mapping[str, Any]) -> bool:
        """Whether a fault is new: the tool accepted faults of the requested arguments."""
        if not path:
            return True
        name = path.split("/")[1].replace("~1", "/").replace("~0", "~")
        missing = Missing.MISSING
        return not same(made.get(name, missing), self.before.get(name, missing))


def read_edit_form(
    schema: Schema, current: Mapping[str, Any], values: Values, masks: Names = NO_NAMES
) -> EditResult:
    """Parse a submitted form with the changes of all pages.

    Returns:
        The edited arguments, exactly the current ones if nothing was changed. Or the errors by
        input.

    Raises:
        InvalidInputError: The arguments have no form.
    """
    return _of(form_of(schema, current, masks, draft_of(values))).read(values)


def read_new_form(schema: Schema, values: Values) -> EditResult:
    """Parse a submitted form that started empty; required values must be given.

    Returns:
        The values, or the errors by input.

    Raises:
        InvalidInputError: The values have no form.
    """
    return _of(form_of(schema, {}, draft=draft_of(values), is_new=True)).read(values)


def draft_of(values: Values) -> FormDraft:
    """Return the draft among the values of a modal.

    Raises:
        InvalidInputError: The draft is damaged.
    """
    text = read_state(values, DRAFT).get("value", "")
    return FormDraft.read(text if isinstance(text, str) else "?")


def with_draft(values: Values, text: str) -> Values:
    """Add the draft of a modal to its values."""
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
    """Build a form.

    Args:
        schema: The tool's JSON schema.
        before: The requested arguments.
        masks: The tool author's declarations of the arguments.
        draft: Changes of other pages; changes of fields that cannot be edited are ignored.
        is_new: Whether the form starts empty.
    """
    first = fields_of(schema, before, masks)
    if isinstance(first, NotEditable):
        return first
    open_paths = {form_field.path for form_field in first if form_field.kind is not FieldKind.FIXED}
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
    """Distribute fields to as few pages as possible."""
    pages: list[list[Field]] = [[]]
    blocks = size = 0
    # Measure the fields only if the upper bound is too large: drawing them takes time.
    weigh = ceiling if sum(map(ceiling, fields)) <= MOST_BYTES else weight_of
    for form_field in fields:
        more, weight = len(form_field.parts) + bool(form_field.groups), weigh(form_field)
        if pages[-1] and (blocks + more > MOST_BLOCKS or size + weight > MOST_BYTES):
            pages.append([])
            blocks = size = 0
        pages[-1].append(form_field)
        blocks, size = blocks + more, size + weight
    return [tuple(page) for page in pages]


def _fields(schema: Schema, arguments: Mapping[str, Any]) -> tuple[Field, ...]:
    fields = fields_of(schema, arguments)
    return () if isinstance(fields, NotEditable) else fields


def _path(names: object) -> Path:
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise TypeError("no path")
    return tuple(names)
