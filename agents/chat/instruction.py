"""An agent's instruction: a text, a template of session values, or a function."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias, cast

from agents.core.codec import Json
from agents.core.errors import AgentConfigError, CheckpointDecodeError

Instruction: TypeAlias = str | Callable[[Mapping[str, object]], str | Awaitable[str]]
"""An agent's instruction, which its model reads first.

In a text, `{name}` stands for the session value of that name; `{{name}}` is written `{name}`, and
all other braces stay. A function receives the session values. Either is evaluated once, when a run
begins, and kept over its resumes.
"""

_NAME = re.compile(r"\{\{([A-Za-z_]\w*)\}\}|\{([A-Za-z_]\w*)\}")


async def settle(agent_name: str, instruction: Instruction, session: Mapping[str, object]) -> Json:
    """Evaluate what an instruction depends on, when a run begins.

    Returns:
        Data for `render`, also after a resume: the session values that a text names, or the text
        that a function returned. A long template is not stored.
    """
    if isinstance(instruction, str):
        return {name: _value(agent_name, name, session) for name in _names(instruction)}
    made = instruction(session)
    return await made if inspect.isawaitable(made) else made


def render(instruction: Instruction, settled: Json) -> str:
    """Return the text of an instruction."""
    if not isinstance(instruction, str):
        return settled if isinstance(settled, str) else ""
    values = cast("dict[str, str]", settled) if isinstance(settled, dict) else {}
    missing = [name for name in _names(instruction) if name not in values]
    if missing:
        raise CheckpointDecodeError(
            f"the instruction has changed since this run began: {missing[0]!r} was not kept"
        )
    # One pass: braces inside of a value are never read as names.
    return _NAME.sub(
        lambda match: f"{{{match[1]}}}" if match[1] else values[match[2]],
        instruction,
    )


def fixed(instruction: Instruction) -> str:
    """Return an instruction's text, or an empty text if it depends on session values."""
    is_fixed = isinstance(instruction, str) and not _names(instruction)
    return render(instruction, {}) if is_fixed else ""


def _names(text: str) -> list[str]:
    return [match[2] for match in _NAME.finditer(text) if match[2]]


def _value(agent_name: str, name: str, session: Mapping[str, object]) -> str:
    if name not in session:
        raise AgentConfigError(
            f"the instruction of agent {agent_name!r} names {{{name}}}, which is no session value; "
            f"set it before the run, or write {{{{{name}}}}} for the text itself"
        )
    return str(session[name])
