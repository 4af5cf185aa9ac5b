"""Faults of a policy before it judges anything: names, tags and paths that do not exist.

A misspelled word protects nothing, and nobody would notice: so it is refused when an agent is made.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from agents.core.codec import Json
from agents.core.errors import AgentConfigError


class KnownTool(Protocol):
    """The part of a tool that a policy is checked against; a `ToolSpec` is one."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def schema(self) -> Mapping[str, Json]:
        """JSON schema of its arguments."""
        ...

    @property
    def tags(self) -> tuple[str, ...]:
        """Words for its kind."""
        ...


@runtime_checkable
class NamesTools(Protocol):
    """A policy that names tools, and can check that they exist."""

    def check_names(self, known: Collection[str]) -> None:
        """Refuse names of tools that do not exist: a misspelled name would protect nothing.

        Args:
            known: Names of all tools that the policy is asked about.

        Raises:
            AgentConfigError: It names a tool that is not among them.
        """
        ...


@runtime_checkable
class NamesArguments(Protocol):
    """A policy that names arguments of tools, and can check that they exist."""

    def check_tool(self, tool: KnownTool) -> None:
        """Refuse rules about a tool that name an argument, or a tag, which it does not have.

        Args:
            tool: A tool that the policy is asked about.

        Raises:
            AgentConfigError: A rule would protect nothing.
        """
        ...


@runtime_checkable
class NamesTags(Protocol):
    """A policy that names tags of tools, and can check that some tool has them."""

    def check_tags(self, known: Collection[str]) -> None:
        """Refuse tags that no tool has.

        Args:
            known: The tags of all tools that the policy is asked about.

        Raises:
            AgentConfigError: It names a tag that is not among them.
        """
        ...


@runtime_checkable
class NamesRules(Protocol):
    """A policy that can say by which names its rules ask people."""

    def rule_names(self) -> Sequence[str]:
        """The names, given or default; one that stands for two rules is there twice."""
        ...


def check_names(policy: object, known: Collection[str]) -> None:
    """Refuse a policy that names tools that do not exist; see `NamesTools`. Others pass."""
    if isinstance(policy, NamesTools):
        policy.check_names(known)


def check_tool(policy: object, tool: KnownTool) -> None:
    """Refuse a policy that names arguments that a tool does not have; see `NamesArguments`."""
    if isinstance(policy, NamesArguments):
        policy.check_tool(tool)


def check_tags(policy: object, known: Collection[str]) -> None:
    """Refuse a policy that names tags that no tool has; see `NamesTags`. Others pass."""
    if isinstance(policy, NamesTags):
        policy.check_tags(known)


def rule_names(policies: Iterable[object]) -> tuple[str, ...]:
    """The names by which the rules of some policies ask people; of others they are not known."""
    return tuple(
        name for one in policies if isinstance(one, NamesRules) for name in one.rule_names()
    )


def check_rule_names(names: Sequence[str]) -> None:
    """Refuse two rules of one name: a decision, and whoever reads of it, has to know which.

    Args:
        names: Of all rules of one policy, given or default.

    Raises:
        AgentConfigError: Two are the same.
    """
    for name in names:
        if names.count(name) > 1:
            raise AgentConfigError(
                f"two rules of one policy ask by the name {name!r}; give each a name of its own: "
                "`Ask(rule=…)`"
            )


def has_path(schema: Mapping[str, Json], path: Sequence[str]) -> bool:
    """Whether there can be anything at a path of arguments with a JSON schema.

    Args:
        schema: Of an object.
        path: Names of fields and positions in lists; a star stands for every item.
    """
    return _has(schema, list(path), schema)


def _has(schema: Json | Mapping[str, Json], path: list[str], root: Mapping[str, Json]) -> bool:
    if not path:
        return True
    if not isinstance(schema, Mapping):
        return schema is True
    if "$ref" in schema:
        return _has(_target(root, schema["$ref"]), path, root)
    for name in ("anyOf", "oneOf", "allOf"):
        branches = schema.get(name)
        if isinstance(branches, list) and any(_has(one, path, root) for one in branches):
            return True
    return _has_field(schema, path, root) or _has_item(schema, path, root)


def _has_field(schema: Mapping[str, Json], path: list[str], root: Mapping[str, Json]) -> bool:
    fields = schema.get("properties")
    if isinstance(fields, dict) and path[0] in fields:
        return _has(fields[path[0]], path[1:], root)
    # Whoever lists fields and says nothing of others takes no others: tools drop or refuse them.
    more = schema.get("additionalProperties", not fields and schema.get("type") == "object")
    return more is not False and _has(more, path[1:], root)


def _has_item(schema: Mapping[str, Json], path: list[str], root: Mapping[str, Json]) -> bool:
    if schema.get("type") != "array" or not (path[0] == "*" or path[0].isdecimal()):
        return False
    first = schema.get("prefixItems")
    several = first if isinstance(first, list) else []
    items = schema.get("items", not several)
    return any(_has(one, path[1:], root) for one in [*several, items])


def _target(root: Mapping[str, Json], reference: Json) -> Json:
    """Return the target of a reference inside of a schema; None when it leads nowhere."""
    found: Json = dict(root)
    for part in str(reference).removeprefix("#/").split("/"):
        found = found.get(part) if isinstance(found, dict) else None
    return found
