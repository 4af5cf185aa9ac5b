"""A pydantic model as the schema of a graph's state, validated at each write."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo


class ModelSchema:
    """A pydantic model as the schema of a state.

    Only validators of the model convert values, and their results are stored. Validators must
    therefore be idempotent.
    """

    def __init__(self, model: type[BaseModel]) -> None:
        self._model = model

    @property
    def fields(self) -> Mapping[str, FieldInfo]:
        """The fields by name."""
        return self._model.model_fields

    def read(self, given: object) -> dict[str, object] | None:
        """Return the fields that an instance was created with, or None for another object."""
        if not isinstance(given, self._model):
            return None
        return {
            name: getattr(given, name)
            for name, field in self.fields.items()
            if name in given.model_fields_set or getattr(given, name) != _default(field)
        }

    def view(self, values: Mapping[str, Any]) -> BaseModel:
        """Return the state as a model, without validating it again."""
        known = {name: value for name, value in values.items() if name in self.fields}
        return self._model.model_construct(**known)

    def validated(
        self, values: Mapping[str, Any], written: Collection[str]
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """Validate a whole state. As in pydantic, defaults that were not written are not validated.

        Returns:
            The validated state and no faults; or the faults by field, where an empty name means the
            whole state.
        """
        given = {
            name: value
            for name, value in values.items()
            if name in self.fields and (name in written or value != _default(self.fields[name]))
        }
        try:
            made = self._model.model_validate(given, strict=True, by_name=True, by_alias=False)
        except ValidationError as error:
            return {}, _faults(error)
        except Exception as error:  # noqa: BLE001 - code of the graph's author: a validator
            return {}, {"": f"a validator failed: {type(error).__name__}: {error}"}
        return {name: getattr(made, name) for name in self.fields}, {}

    def faults_of(self, update: Mapping[str, Any]) -> dict[str, str]:
        """Return the faults of single fields. Faults between fields need the whole state."""
        _, faults = self.validated(update, update)
        return {name: fault for name, fault in faults.items() if name in update}


def _default(field: FieldInfo) -> object:
    takes_data = field.default_factory_takes_validated_data is True
    return object() if takes_data else field.get_default(call_default_factory=True)


def _faults(error: ValidationError) -> dict[str, str]:
    faults: dict[str, str] = {}
    for fault in error.errors(include_url=False, include_input=False, include_context=False):
        name = str(fault["loc"][0]) if fault["loc"] else ""
        line = told(fault["loc"], fault["msg"])
        faults[name] = f"{faults[name]}; {line}" if name in faults else line
    return faults


def told(path: Sequence[int | str], message: str) -> str:
    """Format a fault as a line: field and message."""
    return f"{'.'.join(map(str, path))}: {message}" if path else message
