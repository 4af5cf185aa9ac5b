"""The human gate: people accept, ignore, answer or edit a call.

Names and wire format are those of LangGraph's agent inbox and of gographgo's prebuilt agent. Unlike
there, an answer that is not allowed, incomplete or malformed is refused and the call does not run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, cast, get_args

from agents.core.asking.answers import Cancelled, Expired, check_texts, check_voters
from agents.core.asking.infos import CallInfo, wrong_answer
from agents.core.calls import ToolReturn
from agents.core.codec import Json, register
from agents.core.errors import AgentConfigError, ResumeDataError
from agents.core.observers import ToolOutcome
from agents.core.tools import Tool
from agents.gates.base import DEFAULT_RULE, CallGate
from agents.policy.base import Ask, PolicyCall
from agents.tools.texts import ignored_text

ResponseType = Literal["accept", "ignore", "response", "edit"]
_TYPES: tuple[ResponseType, ...] = get_args(ResponseType)


@dataclass(frozen=True, slots=True, kw_only=True)
class HumanInterruptConfig:
    """The answers that people may give to a call.

    Attributes:
        allow_accept: The call may run as shown.
        allow_ignore: The call may be ignored: it does not run, and the model is told.
        allow_respond: People may write the result instead: the call does not run.
        allow_edit: The call may run with other arguments.
        description: Description for people: a text, or a function of the call. Empty names the tool
            and its arguments.
        when: Whether people are asked about a call; called once per call. None, an error or any
            result except False means that they are asked.

    Raises:
        AgentConfigError: No answer is allowed.
    """

    allow_accept: bool = True
    allow_ignore: bool = True
    allow_respond: bool = True
    allow_edit: bool = True
    description: str | Callable[[PolicyCall], str] = ""
    when: Callable[[PolicyCall], bool] | None = None

    def __post_init__(self) -> None:
        if not self.allowed:
            raise AgentConfigError("a HumanInterruptConfig has to allow at least one answer")

    @property
    def allowed(self) -> tuple[ResponseType, ...]:
        """Return the allowed types of responses."""
        flags = (self.allow_accept, self.allow_ignore, self.allow_respond, self.allow_edit)
        return tuple(kind for kind, flag in zip(_TYPES, flags, strict=True) if flag is True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionRequest:
    """An agent's request to call a tool.

    Attributes:
        action: Name of the tool.
        args: Arguments of the call.
    """

    action: str
    args: dict[str, Json]


@register("countersign.human_response/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class HumanResponse:
    """A person's answer to a call; made by `accept`, `ignore`, `respond` and `edit`.

    Stored: version 1, must stay readable.

    Attributes:
        type: Kind of answer.
        args: None for `ignore`; the text for `response`; for `edit` all arguments as
            `{"action": tool, "args": {…}}`, where an empty action is the same tool; for `accept`
            None, or the shown call in the same form.
        digest: Digest of the shown or edited call. Optional for direct answers; required if
            requests and answers are handled at different times, as in a bot.
        by: Who decided.
        ruling: For `edit`: terms under which the arguments were approved, if they differ from the
            request's terms; see `CallInfo.ruling`.
        edited_by: For `edit`: who edited last, if another person decided.
        voters: All counted voters, if more than one vote was required.
        editors: For `edit`: everyone who made earlier edits of the arguments.
    """

    type: ResponseType
    args: Json = None
    digest: str | None = None
    by: str | None = None
    ruling: str | None = None
    edited_by: str | None = None
    voters: tuple[str, ...] = ()
    editors: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_voters(self.voters)
        check_voters(self.editors, "editors")
        check_texts(self, "digest", "by", "ruling", "edited_by", optional=True)
        fault = _fault(self.type, self.args)
        if fault:
            raise ValueError(fault)

    @property
    def request(self) -> ActionRequest | None:
        """Return the call that this answer approves, or None."""
        if not isinstance(self.args, dict):
            return None
        args = cast("dict[str, Json]", self.args["args"])
        return ActionRequest(action=cast("str", self.args["action"]), args=args)

    @classmethod
    def read(cls, answer: object) -> HumanResponse:
        """Read a response or its wire form `{"type": …, "args": …}`.

        Raises:
            ResumeDataError: The answer is neither, or malformed.
        """
        if isinstance(answer, HumanResponse):
            return answer
        if not isinstance(answer, dict):
            raise wrong_answer("the call", answer, "HumanResponse")
        unknown = sorted(str(key) for key in answer if key not in {"type", "args"})
        if unknown or "type" not in answer:
            fault = f"unknown keys: {', '.join(unknown)}" if unknown else "no type"
            raise ResumeDataError(f"the response is malformed: {fault}; nothing ran")
        try:
            return cls(type=answer["type"], args=answer.get("args"))
        except ValueError as error:
            raise ResumeDataError(f"the response is malformed: {error}; nothing ran") from error


def accept(*, digest: str | None = None, by: str | None = None) -> HumanResponse:
    """Approve the call as shown."""
    return HumanResponse(type="accept", digest=digest, by=by)


def ignore(*, by: str | None = None) -> HumanResponse:
    """Ignore the call: it does not run."""
    return HumanResponse(type="ignore", by=by)


def respond(text: str, *, by: str | None = None) -> HumanResponse:
    """Give the model a text instead of the tool's result; the call does not run.

    Raises:
        ValueError: The text is empty.
    """
    return HumanResponse(type="response", args=text, by=by)


def edit(
    args: Mapping[str, Json], *, action: str = "", digest: str | None = None, by: str | None = None
) -> HumanResponse:
    """Approve the call with other arguments.

    Args:
        args: All arguments, including unchanged ones.
        action: Name of the tool; must be the tool of the request.
        digest: Digest of the edited call; see `HumanInterrupt.edit`.
        by: Who decided.
    """
    request: dict[str, Json] = {"action": action, "args": dict(args)}
    return HumanResponse(type="edit", args=request, digest=digest, by=by)


@register("countersign.human_interrupt/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class HumanInterrupt(CallInfo):
    """Asks what to do with a call. Stored: version 1, must stay readable.

    Attributes:
        allowed: Types of responses that are accepted.
        description: Description for people.
    """

    allowed: tuple[ResponseType, ...]
    description: str

    def __str__(self) -> str:
        return f"{self.description}\n\nAnswer with one of: {', '.join(self.allowed)}."

    @property
    def action_request(self) -> ActionRequest:
        """Return the requested call: the tool and its arguments."""
        return ActionRequest(action=self.tool_name, args=self.arguments)

    @property
    def config(self) -> HumanInterruptConfig:
        """Return the answers that people may give."""
        return HumanInterruptConfig(
            allow_accept="accept" in self.allowed,
            allow_ignore="ignore" in self.allowed,
            allow_respond="response" in self.allowed,
            allow_edit="edit" in self.allowed,
            description=self.description,
        )

    def accept(self, *, by: str | None = None) -> HumanResponse:
        """Approve the call as shown."""
        return accept(digest=self.digest, by=by)

    def ignore(self, *, by: str | None = None) -> HumanResponse:
        """Ignore the call: it does not run."""
        return ignore(by=by)

    def respond(self, text: str, *, by: str | None = None) -> HumanResponse:
        """Give the model a text instead of the tool's result; the call does not run."""
        return respond(text, by=by)

    def edit(self, args: Mapping[str, Json], *, by: str | None = None) -> HumanResponse:
        """Approve the call with these arguments. Include unchanged ones."""
        return edit(args, action=self.tool_name, digest=self.digest_of(args), by=by)

    def check_answer(self, answer: object) -> None:
        """Refuse an answer that does not fit this request.

        The gate checks whether edited arguments fit the tool.

        Raises:
            ResumeDataError: The answer is malformed, not allowed, about another tool, or about
                other arguments than the shown ones.
        """
        if isinstance(answer, Expired | Cancelled):
            return
        response = HumanResponse.read(answer)
        if response.type not in self.allowed:
            raise ResumeDataError(
                f"{response.type!r} is not allowed for {self.tool_name!r}; "
                f"allowed are: {', '.join(self.allowed)}; nothing ran"
            )
        if response.type in {"accept", "edit"}:
            self._check_request(response)

    def _check_request(self, response: HumanResponse) -> None:
        # An `accept` may omit the call.
        request = response.request or self.action_request
        if request.action not in {"", self.tool_name}:
            raise ResumeDataError(
                f"a response cannot switch tools: {self.tool_name!r} was asked about, "
                f"not {request.action!r}; nothing ran"
            )
        # Computed here, because the digest of a response is optional.
        digest = self.digest_of(request.args, ruling=response.ruling)
        if response.digest is not None:
            self.check_digest(response.digest, digest)
        if response.type == "accept":
            self.check_digest(digest, self.digest)


@dataclass(frozen=True, slots=True)
class HumanGate(CallGate):
    """A tool whose calls run only after a person accepts or edits them.

    Attributes:
        config: The allowed answers, and when people are asked.
        rule: Name of the rule; part of the digest.
    """

    config: HumanInterruptConfig
    rule: str = DEFAULT_RULE
    gate_name = "human"

    async def _question(self, arguments: dict[str, Json]) -> CallInfo | None:
        call = self._policy_call(arguments)
        if not _asks(self.config, call):
            return None
        return HumanInterrupt(
            **self._shown(arguments, self.rule),
            allowed=self.config.allowed,
            description=_description(self.config, call),
        )

    def _declined(self, info: CallInfo, answer: object) -> ToolReturn | None:
        response = HumanResponse.read(answer)
        match response.type:
            case "ignore":
                return ToolReturn(ignored_text(info.tool_name), ToolOutcome.REJECTED)
            case "response":
                return ToolReturn(cast("str", response.args), ToolOutcome.ANSWERED)
            case _:
                return None

    def _wanted(
        self,
        info: CallInfo,  # noqa: ARG002 - see CallGate
        answer: object,
        arguments: dict[str, Json],
    ) -> dict[str, Json]:
        response = HumanResponse.read(answer)
        if response.type == "edit" and response.request is not None:
            return self._checked(response.request.args)
        return arguments

    def _narrowed(self, info: CallInfo, ask: Ask) -> CallInfo:
        if ask.kind == "review" or not isinstance(info, HumanInterrupt):
            return info
        return replace(info, allowed=tuple(kind for kind in info.allowed if kind != "edit"))

    def _decision_rule(self, info: CallInfo | None) -> str:  # noqa: ARG002 - see CallGate
        return self.rule


def human_gate(tool: Tool, config: HumanInterruptConfig, *, rule: str = DEFAULT_RULE) -> Tool:
    """Require that a person accepts or edits each call of a tool.

    Args:
        tool: Any tool, including one that asks people itself.
        config: The allowed answers, and when people are asked.
        rule: Name of the rule that asks.
    """
    return HumanGate(tool, config, rule)


def _fault(kind: object, args: object) -> str:
    """Return the fault of a response; empty if it is valid."""
    match kind:
        case "accept":
            is_fine = args is None or _is_request(args)
            wanted = "nothing, or what was shown: {action, args}"
        case "ignore":
            is_fine, wanted = args is None, "nothing"
        case "response":
            is_fine = isinstance(args, str) and bool(args.strip())
            wanted = "a text that is not empty"
        case "edit":
            is_fine, wanted = _is_request(args), "{action, args} with all arguments"
        case _:
            return f"its type is {kind!r}; use one of {', '.join(_TYPES)}"
    return "" if is_fine else f"{kind!r} takes as args: {wanted}"


def _is_request(args: object) -> bool:
    return (
        isinstance(args, dict)
        and set(args) == {"action", "args"}
        and isinstance(args["action"], str)
        and isinstance(args["args"], dict)
        and all(isinstance(name, str) for name in args["args"])
    )


def _asks(config: HumanInterruptConfig, call: PolicyCall) -> bool:
    if config.when is None:
        return True
    try:
        return config.when(call) is not False
    except Exception:  # noqa: BLE001 - after any failure, people are asked
        return True


def _description(config: HumanInterruptConfig, call: PolicyCall) -> str:
    text: object = config.description
    if callable(text):
        try:
            text = text(call)
        except Exception:  # noqa: BLE001 - people must be asked even if the text fails
            text = ""
    if isinstance(text, str) and text.strip():
        return text
    args = json.dumps(call.arguments, ensure_ascii=False, sort_keys=True)
    return f"Tool execution requires approval\n\nTool: {call.tool}\nArgs: {args}"
