"""The call of a gate: its definition, and the digest that decisions are bound to."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NoReturn

from agents.core.asking.infos import CallInfo
from agents.core.calls import ToolReturn
from agents.core.codec import Json
from agents.core.component.context import current_checkpoint_id, current_why, session_values
from agents.core.digest import call_digest
from agents.core.errors import ResumeDataError
from agents.core.interrupt import keep_waiting
from agents.core.scope import current_address, current_scope
from agents.gates.rulings import DEFAULT_RULE, gates_around
from agents.policy.base import Ask, PolicyCall
from agents.tools.base import EXTERNAL, CallText, Tool, ToolSpec
from agents.tools.texts import open_schema, words_of


@dataclass(frozen=True, slots=True)
class BoundGate(ABC):
    """A wrapper of a tool, with the digest that its decisions are bound to."""

    tool: Tool
    _definition: tuple[ToolSpec, ToolSpec] | None = field(
        default=None, init=False, repr=False, compare=False
    )

    @property
    @abstractmethod
    def gate_name(self) -> str:
        """Return the gate's name. Stored with an interrupt: never change it."""

    @property
    def left_out(self) -> tuple[str, ...]:
        """Return the names of arguments that the model may omit and people fill in."""
        return ()

    @property
    def completes_arguments(self) -> bool:
        """Whether people may still fill in arguments, in this gate or an inner one."""
        if self.left_out:
            return True
        return isinstance(self.tool, BoundGate) and self.tool.completes_arguments

    @property
    def definition(self) -> ToolSpec:
        """Return the tool's definition with this gate added."""
        inner, cached = self.tool.definition, self._definition
        # Cached for the same inner definition, which each call reads several times.
        if cached is None or cached[0] is not inner:
            schema = open_schema(inner.schema, self.left_out) if self.left_out else inner.schema
            cached = inner, replace(inner, gates=(self.gate_name, *inner.gates), schema=schema)
            object.__setattr__(self, "_definition", cached)
        return cached[1]

    def validate(self, arguments: Mapping[str, object]) -> dict[str, Json]:
        """Validate arguments; see `Tool.validate`."""
        return self.tool.validate(arguments)

    def describe(self, arguments: Mapping[str, Json]) -> CallText:
        """Describe a call for people; see `Tool.describe`."""
        return self.tool.describe(arguments)

    def components(self) -> Mapping[tuple[str, str], object]:
        """Return the parts of its tool, such as an agent; see `agents.runs.topology`."""
        found: Mapping[tuple[str, str], object] = (
            self.tool.components() if hasattr(self.tool, "components") else {}
        )
        return found

    @abstractmethod
    async def call(self, arguments: dict[str, Json]) -> str | ToolReturn:
        """Request approval and run the approved call; see `Tool.call`."""

    @property
    def fills_in(self) -> bool:
        """Whether answers fill in arguments. The gate then does not ask about these."""
        return False

    @property
    def asks_people(self) -> bool:
        """Whether the gate itself requires approval. A policy's gate may not."""
        return not self.fills_in

    @property
    def always_asks(self) -> bool:
        """Whether the gate requires approval of every call."""
        return False

    @property
    def slot(self) -> str:
        """Return a slot that is unique among the nested gates; see `Demanding`."""
        # Counted from the inside: a new outer gate does not change the slots of pending calls.
        return f"gate{len(self.tool.definition.gates)}"

    def _rule_of(self, info: CallInfo | None) -> str:
        """Return the rule that a decision is bound to: the current or the requesting one."""
        return info.rule if info else DEFAULT_RULE

    def _ruling_of(self, info: CallInfo | None) -> str:
        """Return the terms that a decision is bound to; empty for old or missing requests."""
        return info.ruling if info is not None else ""

    def _shown(self, arguments: dict[str, Json], rule: str, ruling: str = "") -> dict[str, Any]:
        """Return the fields of an info about this call; the gate's terms are the default."""
        ruling = ruling or self._own_ruling(rule)
        spec, address = self.tool.definition, current_address()
        is_new = current_scope("a gate").point is None
        # A failing description refuses a new call, but must not block a pending request.
        words = self.describe(arguments) if is_new else words_of(self, arguments)
        return {
            "tool_name": spec.name,
            "arguments": arguments,
            "call_id": address.segments[-1].sub_id,
            "title": words.title,
            "why": current_why(),
            "preview": words.preview,
            "named": words.named,
            "leaves": EXTERNAL in spec.tags,
            "schema": dict(spec.schema),
            "digest": self._digest(arguments, rule, ruling),
            "rule": rule,
            "ruling": ruling,
            "thread": current_checkpoint_id(),
            "address": str(address),
            "secret": spec.secret,
            "shown": spec.shown,
        }

    def _policy_call(self, arguments: dict[str, Json]) -> PolicyCall:
        """Return this call as input for a policy or a predicate."""
        spec, address = self.tool.definition, current_address()
        return PolicyCall(
            tool=spec.name,
            # A copy: the policy is code of the application and may modify it.
            arguments=copy.deepcopy(arguments),
            call_id=address.segments[-1].sub_id,
            address=str(address),
            thread=current_checkpoint_id(),
            why=current_why(),
            tags=spec.tags,
            gated=self._is_gated,
            secret=spec.secret,
            shown=spec.shown,
            risk=spec.risk,
            idempotent=spec.idempotent,
            session=MappingProxyType(dict(session_values())),
        )

    @property
    def _is_gated(self) -> bool:
        """Whether code requires approval of its calls, in this, an outer or an inner gate."""
        around = any(one.gate.asks_people for one in gates_around())
        return around or any(
            one.asks_people for one in layers_of(self) if isinstance(one, BoundGate)
        )

    def _own_ruling(self, rule: str) -> str:
        return _gate_ruling(self.gate_name, rule)

    def _digest_of(self, info: CallInfo | None, arguments: dict[str, Json]) -> str:
        rule, ruling = self._rule_of(info), self._ruling_of(info)
        if info is not None and ruling and ruling != self._own_ruling(info.rule):
            rule = info.rule  # a policy asked: the complete terms are bound
        return self._digest(arguments, rule, ruling)

    def _digest(self, arguments: dict[str, Json], rule: str, ruling: str) -> str:
        return call_digest(
            thread=current_checkpoint_id(),
            address=str(current_address()),
            tool=self._name,
            arguments=arguments,
            rule=rule,
            ruling=ruling,
        )

    @property
    def _name(self) -> str:
        return self.tool.definition.name

    def _refuse(self, fault: str) -> NoReturn:
        keep_waiting(ResumeDataError(f"{self._name!r} did not run: {fault}"))


@lru_cache(maxsize=256)
def _gate_ruling(gate_name: str, rule: str) -> str:
    """Return the terms of a gate without a policy. Cached: compared at each decision."""
    return Ask(rule=rule).to_text(kind=gate_name)


def layers_of(tool: object) -> Iterator[object]:
    """Yield a tool and all that it wraps, outermost first."""
    while tool is not None:
        yield tool
        tool = getattr(tool, "tool", None)
