"""The completing gate: people fill in arguments that the model omitted."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from agents.core.asking.infos import CallInfo
from agents.core.codec import Json
from agents.core.digest import canonical_json
from agents.core.errors import AgentConfigError, ArgumentError, InvalidArgumentsError, ToolError
from agents.core.tools import CallText, Tool
from agents.gates.base import DEFAULT_RULE, CallGate
from agents.gates.questions import ParametersInfo, ParametersResult
from agents.gates.rulings import GateState
from agents.tools.texts import completed_text, partial_text


@dataclass(frozen=True, slots=True)
class CompleteGate(CallGate):
    """A tool for which people fill in arguments that the model omitted.

    Attributes:
        missing: Names of the arguments that the model may omit.
        rule: Name of the rule; part of the digest.
    """

    missing: tuple[str, ...]
    rule: str = DEFAULT_RULE
    gate_name = "complete"
    fills_in = True

    @property
    def left_out(self) -> tuple[str, ...]:
        """See `CallGate`."""
        return self.missing

    def validate(self, arguments: Mapping[str, object]) -> dict[str, Json]:
        """Validate the model's arguments; see `Tool.validate`.

        Arguments that people will fill in are omitted. Other defaults are filled in.
        """
        known = self._known(arguments)
        absent = self._absent(known)
        if not absent:
            return self.tool.validate(known)
        try:
            full = self.tool.validate(known)
        except InvalidArgumentsError as error:
            # Errors about arguments that people will fill in do not count.
            left = [
                problem
                for problem in error.errors
                if problem.path not in {(name,) for name in absent}
            ]
            if left:
                raise InvalidArgumentsError(left) from error
            # The failed validation has filled in no defaults.
            full = {**self._defaults(), **known}
        return {name: value for name, value in full.items() if name not in absent}

    def describe(self, arguments: Mapping[str, Json]) -> CallText:
        """Describe a call for people; see `Tool.describe`."""
        absent = self._absent(arguments)
        if absent:
            return partial_text(self.tool.definition, absent)
        return self.tool.describe(arguments)

    async def _question(self, arguments: dict[str, Json]) -> CallInfo | None:
        absent = self._absent(arguments)
        if not absent:
            return None
        fields = self._fields()
        shown = self._shown(arguments, self.rule)
        return ParametersInfo(**shown, missing={name: fields[name] for name in absent})

    def _wanted(
        self,
        info: CallInfo,
        answer: object,
        arguments: dict[str, Json],  # noqa: ARG002 - see CallGate
    ) -> dict[str, Json]:
        values = cast("ParametersResult", answer).values
        return self._checked({**info.arguments, **values})

    def _decision_rule(self, info: CallInfo | None) -> str:  # noqa: ARG002 - see CallGate
        return self.rule

    async def demand(
        self,
        arguments: dict[str, Json],
        before: GateState,
        *,
        inside: bool,
    ) -> None:
        """Return None: this gate asks for values and never for approval."""

    def _text_after_edit(self, arguments: dict[str, Json], text: str) -> str:
        return completed_text(arguments, text)

    def _fields(self) -> dict[str, Json]:
        return cast("dict[str, Json]", self.tool.definition.schema.get("properties") or {})

    def _absent(self, arguments: Mapping[str, object]) -> tuple[str, ...]:
        return tuple(name for name in self.missing if name not in arguments)

    def _known(self, arguments: Mapping[str, object]) -> dict[str, Json]:
        """Return the model's values as JSON data, without nulls that the tool refuses."""
        try:
            known = cast("dict[str, Json]", json.loads(canonical_json(dict(arguments))))
        except ToolError as error:
            raise InvalidArgumentsError((ArgumentError((), str(error)),)) from error
        fields = self._fields()
        return {
            name: value
            for name, value in known.items()
            if value is not None or name not in self.missing or _takes_null(fields[name])
        }

    def _defaults(self) -> dict[str, Json]:
        return {
            name: field["default"]
            for name, field in self._fields().items()
            if isinstance(field, dict) and "default" in field and name not in self.missing
        }


def fill_arguments(tool: Tool, missing: Sequence[str] = (), *, rule: str = DEFAULT_RULE) -> Tool:
    """Let people fill in arguments that the model omitted; asks with `ParametersInfo`.

    A complete call is not asked about. The answer lets the call run. Wrap an approval gate to also
    require approval of all arguments. If the approval gate is the outer one, people approve an
    incomplete call.

    Args:
        tool: The wrapped tool.
        missing: Names of the arguments that the model may omit; empty means all required ones.
        rule: Name of the rule that asks.

    Raises:
        AgentConfigError: An argument is unknown, or the tool has no required argument.
    """
    spec = tool.definition
    fields = cast("dict[str, Json]", spec.schema.get("properties") or {})
    names = tuple(missing) or tuple(cast("list[str]", spec.schema.get("required") or []))
    unknown = [name for name in names if name not in fields]
    if unknown or not names:
        named = ", ".join(map(repr, unknown)) or "that is required"
        raise AgentConfigError(
            f"tool {spec.name!r} has no argument {named}; it has: {', '.join(fields) or 'none'}"
        )
    return CompleteGate(tool, names, rule)


def _takes_null(schema: Json) -> bool:
    if not isinstance(schema, dict):
        return False
    kinds = schema.get("type")
    if kinds == "null" or (isinstance(kinds, list) and "null" in kinds):
        return True
    several = [*_several(schema.get("anyOf")), *_several(schema.get("oneOf"))]
    return any(_takes_null(branch) for branch in several)


def _several(schemas: Json) -> list[Json]:
    return schemas if isinstance(schemas, list) else []
