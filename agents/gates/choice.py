"""Choice from options: a gate for an argument of a call, and a tool for models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, cast

from pydantic import BaseModel, ConfigDict, Field

from agents.core.asking.answers import ANY_OUTCOME, Cancelled, Expired
from agents.core.asking.infos import CallInfo
from agents.core.calls import ToolReturn
from agents.core.codec import Json
from agents.core.component.state import get_interrupt_state, get_resume_context
from agents.core.digest import canonical_json
from agents.core.errors import AgentConfigError, InvalidArgumentsError, ToolError
from agents.core.interrupt import check_answer, stateful_interrupt
from agents.core.observers import ToolOutcome
from agents.core.tools import CallText, Tool, ToolSpec
from agents.gates.base import DEFAULT_RULE, CallGate
from agents.gates.questions import CallChoiceInfo, Choice, ChoiceInfo, ChoiceResult
from agents.gates.rulings import GateState
from agents.policy.base import Deny
from agents.tools.schema import Parameters, parameters
from agents.tools.texts import (
    completed_text,
    partial_text,
    rejected_text,
    unanswered_text,
)

CHOOSE_NAME = "choose"
_DESCRIPTION = (
    "Asks people to choose from options that you have found. Use it when only people can decide "
    "between them; do not ask for permission: tools that need it ask by themselves."
)


@dataclass(frozen=True, slots=True)
class ChoiceGate(CallGate):
    """A tool for which people choose one argument from options.

    Attributes:
        parameter: Name of the argument. The model may omit it or suggest a value.
        question: The question for people.
        options: The options.
        multiple: Whether several can be chosen; the argument is then a list.
        rule: Name of the rule; part of the digest.
    """

    parameter: str
    question: str
    options: tuple[Choice, ...]
    multiple: bool = False
    rule: str = DEFAULT_RULE
    gate_name = "choice"
    fills_in = True

    @property
    def left_out(self) -> tuple[str, ...]:
        """See `CallGate`."""
        return (self.parameter,)

    def validate(self, arguments: Mapping[str, object]) -> dict[str, Json]:
        """Validate arguments, with or without the chosen one; see `Tool.validate`."""
        if self.parameter in arguments:
            return self.tool.validate(arguments)
        # The model may omit the argument; the first option lets the other arguments be validated.
        first = self.options[0]
        value = first.id if first.value is None else first.value
        probe = {**arguments, self.parameter: [value] if self.multiple else value}
        full = self.tool.validate(probe)
        return {name: given for name, given in full.items() if name != self.parameter}

    def describe(self, arguments: Mapping[str, Json]) -> CallText:
        """Describe a call for people; see `Tool.describe`."""
        if self.parameter in arguments:
            return self.tool.describe(arguments)
        return partial_text(self.tool.definition, (self.parameter,))

    async def _question(self, arguments: dict[str, Json]) -> CallInfo:
        info = CallChoiceInfo(
            **self._shown(arguments, self.rule),
            question=self.question,
            options=self.options,
            parameter=self.parameter,
            multiple=self.multiple,
        )
        for option in self.options:
            self._check_option(info, option)
        return info

    def _check_option(self, info: CallChoiceInfo, option: Choice) -> None:
        """Refuse an option that the tool would not accept, before people see it."""
        try:
            self.tool.validate(info.chosen([option.id]))
        except InvalidArgumentsError as error:
            raise ToolError(
                f"the option {option.id!r} of {self.parameter!r} does not fit the tool: {error}"
            ) from error

    def _declined(self, info: CallInfo, answer: object) -> ToolReturn | None:
        match answer:
            case ChoiceResult(declined=True, reason=reason):
                return ToolReturn(rejected_text(info.tool_name, reason), ToolOutcome.REJECTED)
            case _:
                return None

    def _wanted(
        self,
        info: CallInfo,
        answer: object,
        arguments: dict[str, Json],  # noqa: ARG002 - see CallGate
    ) -> dict[str, Json]:
        chosen = cast("CallChoiceInfo", info).chosen(cast("ChoiceResult", answer).selected)
        return self._checked(chosen)

    def _decision_rule(self, info: CallInfo | None) -> str:  # noqa: ARG002 - see CallGate
        return self.rule

    async def demand(
        self,
        arguments: dict[str, Json],
        before: GateState,
        *,
        inside: bool,  # noqa: ARG002 - see CallGate
    ) -> Deny | None:
        """Deny the call unless the argument is the chosen one; see `CallGate`."""
        name = self.parameter
        chosen = (before.arguments or {}).get(name)
        if canonical_json(arguments.get(name)) == canonical_json(chosen):
            return None
        return Deny(
            f"people have chosen {name!r} for this call; reject it, and have them asked anew"
        )

    def _text_after_edit(self, arguments: dict[str, Json], text: str) -> str:
        return completed_text(arguments, text)


def choose_argument(
    tool: Tool,
    *,
    parameter: str,
    options: Sequence[Choice],
    question: str = "",
    multiple: bool = False,
    rule: str = DEFAULT_RULE,
) -> Tool:
    """Let people choose one argument of each call; asks with `CallChoiceInfo`.

    The choice also lets the call run. Wrap an approval gate to require approval as well, possibly
    by other people.

    Args:
        tool: The wrapped tool.
        parameter: Name of the argument that people choose.
        options: The options; the tool must accept each of them.
        question: The question for people.
        multiple: Whether several can be chosen; the tool then takes a list.
        rule: Name of the rule that asks.

    Raises:
        AgentConfigError: The argument is unknown, or the options are empty or not distinct.
    """
    properties = tool.definition.schema.get("properties")
    if not isinstance(properties, dict) or parameter not in properties:
        raise AgentConfigError(f"tool {tool.definition.name!r} has no argument {parameter!r}")
    _check_options(options)
    text = question or f"Which {parameter.replace('_', ' ')}?"
    return ChoiceGate(tool, parameter, text, tuple(options), multiple, rule)


@dataclass(frozen=True, slots=True)
class ChooseTool:
    """A tool that lets people choose from options and returns their choice."""

    definition: ToolSpec
    parameters: Parameters

    def validate(self, arguments: Mapping[str, object]) -> dict[str, Json]:
        """Validate arguments; see `Tool.validate`."""
        return self.parameters.canonical(arguments)

    def describe(self, arguments: Mapping[str, Json]) -> CallText:
        """Describe a call for people; see `Tool.describe`."""
        count = len(cast("list[Json]", arguments["options"]))
        return CallText(title=f"Choose from {count} options")

    async def call(self, arguments: dict[str, Json]) -> ToolReturn:
        """Ask people and return their choice; see `Tool.call`.

        Raises:
            InterruptSignal: People are asked.
        """
        was_interrupted, _, info = get_interrupt_state(ChoiceInfo)
        if not was_interrupted:
            asked = _choice_info(arguments)
            stateful_interrupt(asked, asked)
        if info is None:
            raise ToolError("the question has been lost; ask again")
        is_target, _, answer = get_resume_context(ANY_OUTCOME)
        if not is_target:
            stateful_interrupt(info, info)
        check_answer(info, answer)
        return _choice_return(info, answer)


def choose_tool(name: str = CHOOSE_NAME, description: str = _DESCRIPTION) -> Tool:
    """Make a tool by which the model lets people choose from two to ten options.

    Args:
        name: Name of the tool for the model.
        description: What the tool does, for the model.
    """
    signature = parameters(_choose)
    return ChooseTool(
        ToolSpec(name=name, description=description, schema=signature.schema, idempotent=True),
        signature,
    )


class _Option(BaseModel):
    """One option, as a model writes it."""

    model_config = ConfigDict(extra="forbid")

    label: Annotated[
        str, Field(min_length=1, max_length=75, pattern=r"\S", description="A few words.")
    ]
    description: Annotated[str, Field(max_length=300, description="What it means.")] = ""


def _choose(
    question: Annotated[str, Field(min_length=1, max_length=300, pattern=r"\S")],
    options: Annotated[list[_Option], Field(min_length=2, max_length=10)],
    multiple: bool = False,  # noqa: FBT001, FBT002 - given by name
) -> None:
    """Only its signature is used.

    Args:
        question: What is to be chosen.
        options: In the order in which people should read them.
        multiple: Whether several can be chosen.
    """


def _choice_info(arguments: Mapping[str, Json]) -> ChoiceInfo:
    options = cast("list[dict[str, str]]", arguments["options"])
    return ChoiceInfo(
        question=cast("str", arguments["question"]),
        options=tuple(
            Choice(id=str(at), label=option["label"], description=option["description"])
            for at, option in enumerate(options, 1)
        ),
        multiple=arguments["multiple"] is True,
    )


def _choice_return(info: ChoiceInfo, answer: object) -> ToolReturn:
    match answer:
        case ChoiceResult(declined=True, reason=reason):
            explanation = f"Reason: {reason}" if reason else "No reason was given."
            return ToolReturn(
                f"People chose none of the options. {explanation}", ToolOutcome.ANSWERED
            )
        case ChoiceResult(selected=selected):
            labels = [option.label for option in info.options if option.id in selected]
            return ToolReturn(f"People chose: {'; '.join(labels)}", ToolOutcome.ANSWERED)
        case Expired():
            return ToolReturn(unanswered_text(answer), ToolOutcome.EXPIRED)
        case _:
            text = unanswered_text(cast("Cancelled", answer))
            return ToolReturn(text, ToolOutcome.CANCELLED)


def _check_options(options: Sequence[Choice]) -> None:
    ids = [option.id for option in options]
    if not ids or len(set(ids)) < len(ids):
        raise AgentConfigError(f"options need ids of their own, at least one; got {ids}")
