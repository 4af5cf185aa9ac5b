"""Check a policy when an agent is created: unknown tools, tags and arguments.

A rule with a misspelled name would never match and protect nothing. It is therefore an error.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from agents.core.codec import Json
from agents.core.errors import AgentConfigError
from agents.core.tools import ToolSpec
from agents.policy.base import Ask


def check_policy(policy: object, time_limit: float) -> None:
    """Refuse what is no policy, and a time limit that would deny all calls."""
    if not callable(getattr(policy, "evaluate", None)):
        raise AgentConfigError(f"{policy!r} is no policy: it has no method `evaluate`")
    if not time_limit > 0:
        raise AgentConfigError(
            f"a policy that has {time_limit} seconds would deny all calls; give it more than 0"
        )


def check_names(policy: object, known: Collection[str]) -> None:
    """Refuse a policy that refers to unknown tools; see `Policy`."""
    _optional(policy, "check_names")(known)


def check_tool(policy: object, tool: ToolSpec) -> None:
    """Refuse a policy that refers to unknown arguments of a tool; see `Policy`."""
    _optional(policy, "check_tool")(tool)


def check_tags(policy: object, known: Collection[str]) -> None:
    """Refuse a policy that refers to unknown tags; see `Policy`."""
    _optional(policy, "check_tags")(known)


def rule_names(policies: Iterable[object]) -> tuple[str, ...]:
    """Return the names of the rules that ask people, as far as policies list them."""
    return tuple(name for policy in policies for name in _optional(policy, "rule_names")() or ())


def people_of(*policies: object) -> tuple[str, ...]:
    """Return all people that policies or rulings may ask, without duplicates.

    Policies that cannot list them are skipped.
    """
    people: dict[str, None] = {}
    for policy in policies:
        if isinstance(policy, Ask):
            people.update(dict.fromkeys((*policy.approvers, *policy.backups)))
        else:
            people.update(dict.fromkeys(_optional(policy, "people")() or ()))
    return tuple(people)


def _optional(policy: object, name: str) -> Callable[..., Any]:
    """Return an optional method of a policy; without it, a function that does nothing."""
    return getattr(policy, name, None) or (lambda *_: None)


def check_rule_names(names: Sequence[str]) -> None:
    """Refuse duplicate names: a decision and its audit must identify one rule."""
    for name in names:
        if names.count(name) > 1:
            raise AgentConfigError(
                f"two rules of one policy ask by the name {name!r}; give each a name of its own: "
                "`Ask(rule=…)`"
            )


def has_path(schema: Mapping[str, Json], path: Sequence[str]) -> bool:
    """Whether a JSON schema of an object allows a value at a path of arguments.

    A star in the path matches every item of a list.
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
        if isinstance(branches, list) and any(_has(branch, path, root) for branch in branches):
            return True
    return _has_field(schema, path, root) or _has_item(schema, path, root)


def _has_field(schema: Mapping[str, Json], path: list[str], root: Mapping[str, Json]) -> bool:
    fields = schema.get("properties")
    if isinstance(fields, dict) and path[0] in fields:
        return _has(fields[path[0]], path[1:], root)
    # A schema that lists fields only takes these: tools drop or refuse additional ones.
    more = schema.get("additionalProperties", not fields and schema.get("type") == "object")
    return more is not False and _has(more, path[1:], root)


def _has_item(schema: Mapping[str, Json], path: list[str], root: Mapping[str, Json]) -> bool:
    if schema.get("type") != "array" or not (path[0] == "*" or path[0].isdecimal()):
        return False
    first = schema.get("prefixItems")
    several = first if isinstance(first, list) else []
    items = schema.get("items", not several)
    return any(_has(item_schema, path[1:], root) for item_schema in [*several, items])


def _target(root: Mapping[str, Json], reference: Json) -> Json:
    """Return the target of a reference inside a schema, or None if it has none."""
    target: Json = dict(root)
    for part in str(reference).removeprefix("#/").split("/"):
        target = target.get(part) if isinstance(target, dict) else None
    return target
