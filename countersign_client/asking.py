"""Turns the arguments of `create` into the body that the server takes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from pydantic import BaseModel, ValidationError

from countersign_client.canonical import canonical
from countersign_client.errors import InvalidRequest
from countersign_client.requests import Request
from countersign_client.schemas import Fault, faults, model_faults, schema_of
from countersign_client.webhooks import seconds

LONGEST_TITLE = 150
LONGEST_PREVIEW = 32_768
_CUT = "\n… cut here"
_SHORT = 40
_KEY = re.compile(r"[!#-~][!-~]{0,199}")
_UNSENT: dict[str, Any] = {
    "kind": "approval",
    "execution": "once",
    "run_timeout": 900,
    "multiple": False,
    "repeat": "same",
}
"""Defaults of the server; a member that has its default is not sent."""


def idempotency_key(key: str) -> str:
    """Check an idempotency key.

    Args:
        key: The program's own name for the request.

    Returns:
        The same key.

    Raises:
        ValueError: It is empty, longer than 200 characters, or has others than `!` to `~`; or it
            begins with a quotation mark, which HTTP would take for the syntax of the header.
    """
    if not _KEY.fullmatch(key):
        raise ValueError("key: 1 to 200 visible ASCII characters, the first one no quotation mark")
    return key


def body(title: str, **members: Any) -> dict[str, Any]:
    """Make the body of a new request.

    Args:
        title: What is asked.
        members: The other arguments of `Countersign.create`, without `key`.

    Returns:
        JSON data, without members that have their default.

    Raises:
        ValueError: A value is no JSON data.
        TypeError: As ValueError; or a name is no argument of `create`.
    """
    where = {
        "channel": members.pop("channel", None),
        "group": members.pop("group", None),
        "group_title": members.pop("group_title", None),
    }
    members |= {
        "arguments": plain(members.get("arguments")),
        "schema": _schema(members.get("schema")),
        "options": _options(members.get("options")),
        "preview": _preview(members.get("preview")),
        "run_timeout": _whole(members.get("run_timeout")),
        "expires_in": _whole(members.get("expires_in")),
        "where": {name: value for name, value in where.items() if value is not None},
    }
    for name in ("secret", "tags", "people"):
        members[name] = list(members.get(name) or ())
    for name in ("metadata", "source"):
        members[name] = dict(members.get(name) or {})
    sent = {
        name: value
        for name, value in members.items()
        if value not in (None, [], {}) and not _is_default(name, value)
    }
    if members["arguments"] == {}:
        sent["arguments"] = {}
    canonical(sent)
    return {"title": title, **sent}


def title_of_call(tool: str, arguments: Mapping[str, Any]) -> str:
    """Say a call in one line, with its short arguments, so that two calls of a tool look different.

    A value stands there whole or not at all: the server could not mask a part of a secret.

    Args:
        tool: The tool's name.
        arguments: JSON data.
    """
    title, separator = f"Run {tool}", ": "
    for name, value in arguments.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        part = f"{separator}{name} {text}"
        is_short = 0 < len(text) <= _SHORT and len(title) + len(part) <= LONGEST_TITLE
        if is_short and part.isprintable() and not isinstance(value, list | dict | None):
            title, separator = title + part, ", "
    return title[:LONGEST_TITLE]


def one_line(text: str) -> str:
    """Make a title: one line of printable characters.

    Args:
        text: Any text.
    """
    line = " ".join(text.split())
    return "".join(letter if letter.isprintable() else "?" for letter in line)[:LONGEST_TITLE]


def cut(text: str) -> str:
    """Cut a preview to what the server takes, and say so in it.

    Args:
        text: Any text.
    """
    return text if len(text) <= LONGEST_PREVIEW else text[: LONGEST_PREVIEW - len(_CUT)] + _CUT


def plain(arguments: Mapping[str, Any] | BaseModel | None) -> dict[str, Any] | None:
    """Give arguments as JSON data.

    Args:
        arguments: A mapping, a model, or None.

    Returns:
        The members of the mapping, or the JSON form of the model.

    Raises:
        ValueError: Something is no JSON data.
        TypeError: As ValueError.
    """
    if arguments is None:
        return None
    if isinstance(arguments, BaseModel):
        arguments = arguments.model_dump(mode="json", by_alias=True)
    canonical(arguments)
    return dict(arguments)


def _is_default(name: str, value: Any) -> bool:
    return name in _UNSENT and bool(value == _UNSENT[name])


def _schema(schema: Mapping[str, Any] | type[BaseModel] | None) -> dict[str, Any] | None:
    if isinstance(schema, type):
        return schema_of(schema)
    return None if schema is None else dict(schema)


def _options(
    options: Sequence[str | Mapping[str, str]] | None,
) -> list[dict[str, str]] | None:
    if options is None:
        return None
    return [
        {"value": option, "label": option} if isinstance(option, str) else dict(option)
        for option in options
    ]


def _preview(preview: str | Mapping[str, Any] | None) -> dict[str, Any] | None:
    if isinstance(preview, str):
        return {"format": "text", "text": preview}
    return None if preview is None else dict(preview)


def _whole(value: float | timedelta | None) -> int | None:
    return None if value is None else round(seconds(value))


def form_of(
    arguments: Mapping[str, Any] | BaseModel, schema: Mapping[str, Any] | type[BaseModel] | None
) -> Mapping[str, Any] | type[BaseModel] | None:
    """Give what edited arguments must fit.

    Args:
        arguments: The arguments as asked.
        schema: What the program named.
    """
    if schema is None and isinstance(arguments, BaseModel):
        return type(arguments)
    return schema


def edited(done: Request, tool: str, form: Mapping[str, Any] | type[BaseModel] | None) -> Request:
    """Check what people made of the arguments.

    Args:
        done: The request, over.
        tool: As asked.
        form: What the arguments must fit.

    Returns:
        The same request.

    Raises:
        NotApproved: It is not approved.
        DigestMismatch: Another tool was approved, or the decision's digest is of something else.
        InvalidRequest: The decided arguments do not fit.
    """
    arguments = done.approved().arguments or {}
    done.check(tool, arguments)
    if isinstance(form, type):
        _model(form, arguments, "arguments-do-not-fit")
    elif form is not None:
        wrong = tuple(faults(arguments, form))
        if wrong:
            raise unfit("arguments-do-not-fit", wrong)
    return done


def question(form: type[BaseModel] | None, more: Mapping[str, Any]) -> dict[str, Any]:
    """Give the arguments of `create` for a question.

    Args:
        form: The model of the answer.
        more: What the program gave.
    """
    kind = "form" if form else "choice" if more.get("options") is not None else "question"
    return {"kind": kind, **({"schema": form} if form else {}), **more}


def answer(done: Request, form: type[BaseModel] | None, more: Mapping[str, Any]) -> Any:
    """Give the answer to a question, checked.

    Args:
        done: The request, over.
        form: The model of the answer.
        more: What the program gave.

    Raises:
        NotApproved: Nobody answered.
        InvalidRequest: The answer does not fit.
    """
    given = done.answered().answer
    if form is not None:
        return _model(form, given, "answer-does-not-fit")
    options = [option["value"] for option in _options(more.get("options")) or ()]
    if more.get("multiple"):
        fits = isinstance(given, list) and all(value in options for value in given)
    else:
        fits = isinstance(given, str) and (not options or given in options)
    if not fits:
        raise unfit("answer-does-not-fit", (("/answer", "is none of the options, or no text"),))
    return given


def filters(
    status: Sequence[str], group: str | None, metadata: Mapping[str, str] | None
) -> tuple[tuple[str, str | int], ...]:
    """Give the parameters of a list.

    Args:
        status: As `Countersign.list`.
        group: As `Countersign.list`.
        metadata: As `Countersign.list`; the server is asked for the first one.
    """
    first = [("metadata", f"{name}={value}") for name, value in (metadata or {}).items()][:1]
    of_group = [("group", group)] if group is not None else []
    return (*(("status", word) for word in status), *of_group, *first)


def has(request: Request, metadata: Mapping[str, str] | None) -> bool:
    """Whether a request has all of these texts.

    Args:
        request: The request.
        metadata: Texts by name.
    """
    return (metadata or {}).items() <= request.metadata.items()


def unfit(code: str, wrong: tuple[Fault, ...]) -> InvalidRequest:
    """Make the error of values that do not fit; they never leave the program.

    Args:
        code: The error's code.
        wrong: Pointers and sentences.
    """
    return InvalidRequest(422, code, "What people gave does not fit", errors=wrong)


def _model(form: type[BaseModel], given: Any, code: str) -> BaseModel:
    try:
        return form.model_validate_json(canonical(given))
    except ValidationError as error:
        raise unfit(code, model_faults(error)) from None
