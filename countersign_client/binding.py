"""A function's arguments as a request, and back: what a gate does, with either client."""

from __future__ import annotations

import inspect
import json
import string
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, suppress
from dataclasses import field, make_dataclass
from functools import wraps
from typing import Any, get_type_hints
from urllib.parse import quote
from uuid import uuid4

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

from countersign_client.asking import one_line, title_of_call, unfit
from countersign_client.canonical import canonical
from countersign_client.requests import NotApproved
from countersign_client.schemas import is_kept, model_faults, simplified

_SAFE = "!#$&'()*+,-./:;<=>?@[]^_`{|}~"
"""Characters that stand in a key as they are; others, and the percent sign, are encoded."""

_Filled = Callable[..., str]


class GatedCall:
    """A function behind a gate."""

    def __init__(  # noqa: PLR0913 - as `gate`
        self,
        function: Callable[..., Any],
        *,
        tool: str | None = None,
        title: str | None = None,
        edit: bool = False,
        key: _Filled | str | None = None,
        why: _Filled | str | None = None,
        preview: _Filled | None = None,
        on_reject: str = "raise",
        **options: Any,
    ) -> None:
        """Look at the function; the arguments are those of `countersign_client.gate`.

        Raises:
            TypeError: The function cannot be gated.
            ValueError: A {name} is no argument of the function.
        """
        if not inspect.isfunction(function):
            raise TypeError("gate: put it directly on a function, below @staticmethod and the like")
        self.function = function
        self.name = function.__qualname__
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(f"{self.name}: a generator cannot be gated; it has no end to report")
        self.tool = tool or function.__name__
        self.edit = edit
        self.signature = inspect.signature(function)
        parameters = list(self.signature.parameters.values())
        if parameters and parameters[0].name in ("self", "cls"):
            parameters = parameters[1:]
        self.names = [parameter.name for parameter in parameters]
        self.adapter: TypeAdapter[Any]
        self.adapter, schema = self._adapter(parameters)
        self.schema = schema if is_kept(schema) else None
        self.title = self._filled("title", title) if title else self._title
        self.key = self._filled("key", key) if key is not None else None
        self.why = self._filled("why", why) if why is not None else None
        self.preview = preview
        self.returns_refusal = on_reject == "return"
        self.options = options

    def _title(self, **arguments: Any) -> str:
        return title_of_call(self.tool, arguments)

    def _adapter(
        self, parameters: list[inspect.Parameter]
    ) -> tuple[TypeAdapter[Any], dict[str, Any]]:
        if any(each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD) for each in parameters):
            raise TypeError(f"{self.name}: *args and **kwargs cannot be gated; name the arguments")
        hints = get_type_hints(self.function, include_extras=True)
        members = [(each.name, hints.get(each.name, Any), _default(each)) for each in parameters]
        strict = {"__pydantic_config__": ConfigDict(extra="forbid")}
        try:
            shape = make_dataclass("Arguments", members, kw_only=True, namespace=strict)
            adapter: TypeAdapter[Any] = TypeAdapter(shape)
            schema = simplified(adapter.json_schema())
        except PydanticUserError as error:
            raise self._no_json(str(error).partition("\n")[0]) from error
        if '"writeOnly": true' in json.dumps(schema):
            raise self._no_json("pydantic masks a SecretStr; take a str, and name it in secret")
        return adapter, schema

    def _no_json(self, fault: object) -> TypeError:
        return TypeError(
            f"{self.name}: no person can approve what cannot be shown as JSON: {fault}"
        )

    def _filled(self, part: str, text: _Filled | str) -> _Filled:
        """Make a function of the arguments from a text with {names}."""
        if not isinstance(text, str):
            return text
        names = {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}
        strange = sorted(names - set(self.names))
        if strange:
            raise ValueError(f"{self.name}: {part} names {strange}, which are no arguments")
        return text.format

    def asked(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Give the arguments of `approve` or `edit` for a call.

        Raises:
            ValidationError: The arguments do not fit the annotations.
            TypeError: They are not the function's, or no JSON.
        """
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        values = {name: bound.arguments[name] for name in self.names}
        instance = self.adapter.validate_python(values)
        try:
            for value in values.values():
                with suppress(TypeError):  # an object, which pydantic may know how to write
                    canonical(value)  # a number that has no JSON, of which pydantic makes null
            arguments = self.adapter.dump_python(instance, mode="json")
            canonical(arguments)
        except (TypeError, ValueError) as error:
            raise self._no_json(error) from error
        key = self.key(**arguments) if self.key else f"gate/{self.tool}/{uuid4()}"
        return {
            **self.options,
            "title": one_line(self.title(**arguments)),
            "key": quote(key, safe=_SAFE),
            "tool": self.tool,
            "arguments": arguments,
            "why": self.why(**arguments) if self.why else None,
            "preview": self.preview(**arguments) if self.preview else None,
            **({"schema": self.schema} if self.edit else {}),
        }

    def decided(
        self, arguments: Mapping[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> inspect.BoundArguments:
        """Give the decided arguments as the function takes them.

        Raises:
            ValidationError: They do not fit the annotations.
        """
        instance = self.adapter.validate_json(canonical(arguments))
        bound = self.signature.bind(*args, **kwargs)  # has self or cls
        bound.apply_defaults()
        bound.arguments.update({name: getattr(instance, name) for name in self.names})
        return bound

    def synchronous(self, connect: Callable[[], AbstractContextManager[Any]]) -> Callable[..., Any]:
        """Give the function behind the gate.

        Args:
            connect: Gives a `Countersign` for a call.

        Raises:
            TypeError: The function is async.
        """
        if inspect.iscoroutinefunction(self.function):
            raise TypeError(f"{self.name} is an async function; it needs an AsyncCountersign")

        @wraps(self.function)
        def gated(*args: Any, **kwargs: Any) -> Any:
            asked = self.asked(args, kwargs)
            with connect() as client:
                try:
                    done = (client.edit if self.edit else client.approve)(**asked)
                except NotApproved as refusal:
                    if self.returns_refusal:
                        return refusal
                    raise
                with client.execute(done) as run:
                    try:
                        bound = self.decided(run.arguments, args, kwargs)
                    except ValidationError as error:
                        run.not_run(_listed(error))
                        raise unfit("arguments-do-not-fit", model_faults(error)) from None
                    return self.function(*bound.args, **bound.kwargs)

        return gated

    def asynchronous(
        self, connect: Callable[[], AbstractAsyncContextManager[Any]]
    ) -> Callable[..., Any]:
        """Give the async function behind the gate.

        Args:
            connect: Gives an `AsyncCountersign` for a call.

        Raises:
            TypeError: The function is not async.
        """
        if not inspect.iscoroutinefunction(self.function):
            raise TypeError(f"{self.name} is no async function; it needs a Countersign")

        @wraps(self.function)
        async def gated(*args: Any, **kwargs: Any) -> Any:
            asked = self.asked(args, kwargs)
            async with connect() as client:
                try:
                    done = await (client.edit if self.edit else client.approve)(**asked)
                except NotApproved as refusal:
                    if self.returns_refusal:
                        return refusal
                    raise
                async with client.execute(done) as run:
                    try:
                        bound = self.decided(run.arguments, args, kwargs)
                    except ValidationError as error:
                        await run.not_run(_listed(error))
                        raise unfit("arguments-do-not-fit", model_faults(error)) from None
                    return await self.function(*bound.args, **bound.kwargs)

        return gated


def _default(parameter: inspect.Parameter) -> Any:
    if parameter.default is parameter.empty:
        return field()
    return field(default_factory=lambda: parameter.default)


def _listed(error: ValidationError) -> str:
    faults = "; ".join(f"{at} {fault}" for at, fault in model_faults(error))
    return f"the decided arguments do not fit: {faults}"
